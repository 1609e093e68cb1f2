//! What is the fault of a trunk, and what is not; and which failures leave a call to its next host.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use g711::Codec;
use phone::call::Phone;
use phone::ending::{Cause, Failure};
use phone::signalling::{Resolver, SignallingConfig, Transport};
use phone::test_phone::{Script, TestPhone, TestPhoneConfig};
use phone::trunk::{HostFailover, SipTrunkConfig, Trunk};
use supervisor::Supervisor;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::lab::{
    call, call_request, callee_config, caller, loopback, media, signalling, trunk, trunk_to,
};
use crate::puppet::Puppet;

async fn over_tcp(config: SipTrunkConfig) -> Arc<Trunk> {
    let signalling = signalling(Transport::Tcp).await;
    Trunk::start(&Supervisor::new(), config, signalling, Resolver::default())
}

/// Where nobody listens.
async fn closed() -> SocketAddr {
    let listener = tokio::net::TcpListener::bind(loopback()).await.unwrap();
    listener.local_addr().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shortage_of_our_own_ports_is_not_the_trunks_fault() {
    let taken = UdpSocket::bind(loopback()).unwrap();
    let port = taken.local_addr().unwrap().port() & !1;
    // One of the only two is taken.
    let phone = Phone::start(&Supervisor::new(), &media(port..=port + 1)).unwrap();
    let puppet = Puppet::new().await;
    let trunk = trunk_to(puppet.address()).await;
    let story = call(&phone, &trunk, call_request(vec![])).await;
    assert_eq!(story.cause(), Cause::Exhausted);
    let heard = puppet.socket.try_recv(&mut [0; 64]);
    assert!(heard.is_err(), "nothing was sent: {heard:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_cannot_be_reached_says_less_than_one_that_has_answered() {
    let supervisor = Supervisor::new();
    let config = TestPhoneConfig {
        sip: SignallingConfig::new(Transport::Tcp, loopback()),
        ..callee_config(&Codec::ALL)
    };
    let started = TestPhone::start(&supervisor, &config, |_| Script::refuse(503));
    let (refusing, _heard) = started.await.unwrap();
    let (there, gone) = (refusing.contact(), closed().await);
    for (first, second) in [(there, gone), (gone, there)] {
        let trunk = over_tcp(SipTrunkConfig {
            more_hosts: vec![second.into()],
            ..SipTrunkConfig::new("test", first.into())
        })
        .await;
        let failure = call(&caller(), &trunk, call_request(vec![]))
            .await
            .failure();
        assert_eq!(failure.cause, Cause::Unavailable);
        assert_eq!(failure.reason(), Some((503, None)));
    }
}

/// Answers the first request of a connection with a redirect.
async fn redirecting(contact: String) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind(loopback()).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut connection, _) = listener.accept().await.unwrap();
        let mut bytes = Vec::new();
        while !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
            let mut more = [0; 4096];
            let length = connection.read(&mut more).await.unwrap();
            bytes.extend_from_slice(&more[..length]);
        }
        let invite = String::from_utf8_lossy(&bytes);
        let kept = invite.lines().filter(|line| {
            let kept = ["Via:", "From:", "Call-ID:", "CSeq:"];
            kept.iter().any(|name| line.starts_with(name))
        });
        let kept = kept.collect::<Vec<_>>().join("\r\n");
        let to = invite.lines().find(|line| line.starts_with("To:")).unwrap();
        let moved = format!(
            "SIP/2.0 302 Moved\r\n{kept}\r\n{to};tag=tcp\r\nContact: {contact}\r\nContent-Length: 0\r\n\r\n"
        );
        connection.write_all(moved.as_bytes()).await.unwrap();
        // Its ACK is read, and the connection stays.
        while connection.read(&mut [0; 4096]).await.unwrap_or(0) > 0 {}
    });
    address
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redirect_to_where_nobody_listens_is_not_the_trunks_fault() {
    let gone = closed().await;
    let trunk = over_tcp(SipTrunkConfig {
        follow_redirects: true,
        ..SipTrunkConfig::new("test", redirecting(format!("<sip:1@{gone}>")).await.into())
    })
    .await;
    let failure = call(&caller(), &trunk, call_request(vec![]))
        .await
        .failure();
    let (code, said) = failure.response.clone().unwrap();
    assert_eq!((code, failure.cause), (302, Cause::Rejected));
    assert!(
        said.contains("not followed") && said.contains(&gone.to_string()),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_policy_of_a_trunk_decides_whether_its_next_host_is_called() {
    let is = |wanted: u16| {
        move |failure: &Failure| failure.reason().is_some_and(|(code, _)| code == wanted)
    };
    for (status, failover, goes_on) in [
        ("503 Service Unavailable", is(408), false),
        ("408 Request Timeout", is(408), true),
    ] {
        let (mut first, mut second) = (Puppet::new().await, Puppet::new().await);
        let trunk = trunk(SipTrunkConfig {
            more_hosts: vec![second.address().into()],
            failover: HostFailover::new(failover),
            ..SipTrunkConfig::new("test", first.address().into())
        })
        .await;
        let calling =
            tokio::spawn(async move { call(&caller(), &trunk, call_request(vec![])).await });
        let invite = first.request("INVITE").await;
        first.respond(&invite, "100 Trying", "").await;
        first.respond(&invite, status, "").await;
        if goes_on {
            let again = second.request("INVITE").await;
            second.respond(&again, "486 Busy Here", "").await;
        }
        let story = calling.await.unwrap();
        assert_eq!(story.legs.len(), 1 + usize::from(goes_on), "{status}");
    }
}
