//! A client that speaks plain HTTP to a port for TLS gets an answer that it can read.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The beginnings of requests. What TLS sends begins with a byte that is no letter.
const METHODS: [&[u8]; 8] = [
    b"GET ", b"POST", b"PUT ", b"HEAD", b"DELE", b"OPTI", b"PATC", b"PRI ",
];
const ANSWER: &str = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 57\r\nConnection: close\r\n\r\n\
     This port speaks HTTPS: write https:// in place of http:\n";
/// So much of the request is read, so that the client has sent it when the connection closes.
const MAX_READ: usize = 16 << 10;

/// Looks at the first bytes without taking them.
pub async fn is_spoken(stream: &TcpStream) -> bool {
    let mut beginning = [0; 4];
    // Fewer than four bytes at first are rare, and go the way of a failed handshake.
    matches!(stream.peek(&mut beginning).await, Ok(4)) && METHODS.contains(&&beginning[..])
}

pub async fn refuse(mut stream: TcpStream) {
    let mut rest = vec![0; MAX_READ];
    let _ = stream.read(&mut rest).await;
    let _ = stream.write_all(ANSWER.as_bytes()).await;
    let _ = stream.shutdown().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_as_long_as_it_says() {
        let (_, body) = ANSWER.split_once("\r\n\r\n").unwrap();
        assert!(
            ANSWER.contains(&format!("Content-Length: {}\r\n", body.len())),
            "{}",
            body.len()
        );
    }
}
