//! Hostile input through the front door: an error or a closed connection, in bounded memory and time, and the next one is served.

mod bodies;
mod connections;
mod downloads;
mod heads;
mod http2;
mod memory;

use clarion::client::ApiCredentials;

use crate::support::raw::Door;
use crate::support::{APP, SID, TOKEN, clock, status_code};

/// A LandingCalls request that is right so far; the header lines that a test adds and the empty line are still to come.
fn head(format: &str) -> String {
    let credentials = ApiCredentials {
        sid: SID.parse().unwrap(),
        token: TOKEN.parse().unwrap(),
    };
    let signature = credentials.sign(&clock().wall());
    format!(
        "POST /2013-12-26/Accounts/{SID}/Calls/LandingCalls?sig={} HTTP/1.1\r\nHost: localhost\r\nAccept: application/{format}\r\n\
         Content-Type: application/{format};charset=utf-8\r\nAuthorization: {}\r\n",
        signature.sig, signature.authorization
    )
}

/// A whole request with this body.
fn request(format: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("{}Content-Length: {}\r\n\r\n", head(format), body.len());
    [head.as_bytes(), body].concat()
}

/// The statusCode of the answer to a body. The answer's HTTP status is 200 whatever the body was.
async fn code(door: &Door, format: &str, body: &[u8]) -> String {
    let answer = door.send_raw(&request(format, body)).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.len() < 2000, "an answer is short: {answer}");
    status_code(&answer).to_owned()
}

fn good_body() -> String {
    format!(
        "<LandingCall><appId>{APP}</appId><to>13800000000</to><mediaTxt>x</mediaTxt></LandingCall>"
    )
}

async fn assert_still_serves(door: &Door) {
    assert_eq!(code(door, "xml", good_body().as_bytes()).await, "000000");
}
