//! Strangers: what they send disturbs no call and brings nothing down.

use std::net::SocketAddr;
use std::time::Duration;

use g711::Codec;
use phone::ending::Side;
use phone::media::stream::PlaybackItem;
use phone::test_phone::{Script, TestPhone};
use supervisor::Supervisor;
use tokio::net::UdpSocket;
use tokio::sync::mpsc::unbounded_channel;
use tokio_util::sync::CancellationToken;

use crate::lab::{Lab, PATIENCE, call_request, callee_config, loopback, next_event, sound};

/// Sends one message and gives the first line of the answer; `None` if there is none soon.
async fn ask(to: SocketAddr, message: &[u8], patience: Duration) -> Option<String> {
    let socket = UdpSocket::bind(loopback()).await.unwrap();
    let text = String::from_utf8_lossy(message)
        .replace("{from}", &socket.local_addr().unwrap().to_string());
    let message = if message.is_ascii() {
        text.into_bytes()
    } else {
        message.to_vec()
    };
    socket.send_to(&message, to).await.unwrap();
    let mut buffer = vec![0; 65_536];
    let length = tokio::time::timeout(patience, socket.recv(&mut buffer))
        .await
        .ok()?
        .ok()?;
    let answer = String::from_utf8_lossy(&buffer[..length]).into_owned();
    answer.lines().next().map(str::to_owned)
}

fn request(method: &str, extra: &str) -> String {
    format!(
        "{method} sip:100@host SIP/2.0\r\nVia: SIP/2.0/UDP {{from}};branch=z9hG4bK{:08x}\r\nMax-Forwards: 70\r\nFrom: <sip:a@b>;tag=1\r\nTo: <sip:100@host>{extra}\r\nCall-ID: {:016x}\r\nCSeq: 1 {method}\r\nContent-Length: 0\r\n\r\n",
        rand::random::<u32>(),
        rand::random::<u64>()
    )
}

/// A flood may fill the socket's buffer, and then our packet is lost too: like any client, we ask again.
async fn is_alive(to: SocketAddr) {
    let mut answer = None;
    let limit = tokio::time::Instant::now() + PATIENCE;
    while answer.is_none() && tokio::time::Instant::now() < limit {
        let options = request("OPTIONS", "");
        answer = ask(to, options.as_bytes(), Duration::from_secs(1)).await;
    }
    assert_eq!(answer.as_deref(), Some("SIP/2.0 200 OK"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_are_answered_politely_and_get_nothing() {
    let lab = Lab::new(&Codec::ALL, Script::answer()).await;
    // The caller's endpoint: it answers no calls.
    let us = lab.trunk.signalling().contact();
    for (method, extra, expected) in [
        ("OPTIONS", "", "SIP/2.0 200 OK"),
        ("INVITE", "", "SIP/2.0 403 Forbidden"),
        ("REGISTER", "", "SIP/2.0 405 Method Not Allowed"),
        ("MESSAGE", "", "SIP/2.0 405 Method Not Allowed"),
        ("SUBSCRIBE", "", "SIP/2.0 405 Method Not Allowed"),
        (
            "BYE",
            ";tag=unknown",
            "SIP/2.0 481 Call/Transaction Does Not Exist",
        ),
        (
            "INVITE",
            ";tag=unknown",
            "SIP/2.0 481 Call/Transaction Does Not Exist",
        ),
        ("CANCEL", "", "SIP/2.0 481 Call/Transaction Does Not Exist"),
    ] {
        let answer = ask(us, request(method, extra).as_bytes(), PATIENCE).await;
        assert_eq!(answer.as_deref(), Some(expected), "{method}{extra}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_brings_nothing_down() {
    let lab = Lab::new(&Codec::ALL, Script::answer()).await;
    let us = lab.trunk.signalling().contact();
    let socket = UdpSocket::bind(loopback()).await.unwrap();
    let good = request("OPTIONS", "").replace("{from}", "127.0.0.1:9");
    for round in 0..20_000u32 {
        let mut message = good.clone().into_bytes();
        match round % 4 {
            0 => {
                message = (0..rand::random_range(0..1400))
                    .map(|_| rand::random())
                    .collect();
            }
            1 => message.truncate(rand::random_range(0..message.len())),
            2 => {
                let place = rand::random_range(0..message.len());
                message[place] = rand::random();
            }
            _ => {
                let place = rand::random_range(0..message.len());
                let piece = message[place..].to_vec();
                message.extend(piece);
            }
        }
        socket.send_to(&message, us).await.unwrap();
        if round % 64 == 0 {
            tokio::task::yield_now().await;
        }
    }
    is_alive(us).await;
    lab.call(call_request(vec![PlaybackItem::Sound(sound(5))]))
        .await
        .talked();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_not_disturbed_by_strangers() {
    let mut lab = Lab::new(&Codec::ALL, Script::answer()).await;
    let us = lab.trunk.signalling().contact();
    let callee = lab.callee.contact();
    let (events, mut happened) = unbounded_channel();
    let never = CancellationToken::new();
    let to_callee = call_request(vec![PlaybackItem::Sound(sound(100))]);
    let call_id = to_callee.call_id.clone();
    let attack = async move {
        let snapshot = loop {
            if let phone::call::CallEvent::Answered(snapshot, _) = next_event(&mut happened).await {
                break snapshot;
            }
        };
        // A BYE with the right Call-ID and wrong tags, to both sides.
        for to in [us, callee] {
            let ours = format!("Call-ID: {call_id}\r\nX-Was: ");
            let bye = request("BYE", ";tag=guessed").replace("Call-ID: ", &ours);
            let answer = ask(to, bye.as_bytes(), PATIENCE).await;
            assert_eq!(
                answer.as_deref(),
                Some("SIP/2.0 481 Call/Transaction Does Not Exist")
            );
        }
        // RTP and RTCP to every port that could be ours, from a third address.
        let injector = UdpSocket::bind("127.0.0.2:0").await.unwrap();
        let mut packet = vec![0x80, 8, 0, 1, 0, 0, 0, 1, 0xde, 0xad, 0xbe, 0xef];
        packet.extend([0x11; 160]);
        for port in (20_000..20_400u16).chain(30_000..30_400) {
            let _ = injector.send_to(&packet, ("127.0.0.1", port)).await;
        }
        snapshot
    };
    let call = lab.phone.call(&lab.trunk, &to_callee, &events, &never);
    let (placed, _facts) = tokio::join!(call, attack);
    let ending = placed.ending;
    assert!(
        matches!(
            ending,
            phone::ending::Ending::Talked {
                hung_up_by: Side::Us,
                ..
            }
        ),
        "{ending:?}"
    );
    let heard = lab.heard().await;
    assert!(heard.hung_up_by == Some(Side::Them));
    drop(events);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_phone_survives_a_flood_of_calls_that_go_nowhere() {
    let (phone, _heard) = TestPhone::start(&Supervisor::new(), &callee_config(&Codec::ALL), |_| {
        Script::answer()
    })
    .await
    .unwrap();
    let socket = UdpSocket::bind(loopback()).await.unwrap();
    for _ in 0..2000 {
        // No description: nothing that could be agreed on.
        let invite = request("INVITE", "").replace("{from}", "127.0.0.1:9");
        socket
            .send_to(invite.as_bytes(), phone.contact())
            .await
            .unwrap();
        tokio::task::yield_now().await;
    }
    is_alive(phone.contact()).await;
}
