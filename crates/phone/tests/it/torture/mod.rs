//! The torture messages of RFC 4475: none of them brings an endpoint down or disturbs a call, and each gets what it deserves.

mod messages;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use g711::Codec;
use messages::TORTURES;
use phone::ending::Side;
use phone::media::stream::PlaybackItem;
use phone::test_phone::Script;
use tokio::net::UdpSocket;

use crate::lab::{Lab, PATIENCE, call_request, sound};

/// What becomes of a message.
#[derive(Debug, Clone, Copy)]
pub enum Then {
    /// It is valid, and answered with one of these.
    Answer(&'static [u16]),
    /// It is valid, and the library does not understand it. Whoever sees this fail may write down an answer.
    Missed,
    /// It is no request, or not one that can be answered.
    Nothing,
    /// It is invalid: refused or passed over, never agreed to.
    NotWelcome,
    /// It is wrong, and the RFC leaves it to us to understand it all the same.
    Tolerated,
}

fn on_the_wire(text: &str, from: SocketAddr) -> Vec<u8> {
    let id = format!("{:016x}", rand::random::<u64>());
    let text = text
        .replace("{from}", &from.to_string())
        .replace("{id}", &id)
        .replace("{long}", &"long".repeat(25))
        .replace('\n', "\r\n");
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let binary: Vec<u8> = (0..=255).collect();
    let length = body.len()
        + if body.contains("{binary}") {
            256 - 8
        } else {
            0
        };
    let text = text.replace("{length}", &length.to_string());
    match text.split_once("{binary}") {
        Some((before, after)) => [before.as_bytes(), &binary, after.as_bytes()].concat(),
        None => text.into_bytes(),
    }
}

/// Somebody whom the endpoint does not know.
struct Torturer {
    socket: UdpSocket,
    victim: SocketAddr,
}

/// An address of the trunk: nobody else is heard.
const TORTURER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 3));

impl Torturer {
    /// One for each message: an answer that comes late is never taken for the next one's.
    async fn of(victim: SocketAddr) -> Self {
        let socket = UdpSocket::bind((TORTURER, 0)).await.unwrap();
        Self { socket, victim }
    }

    /// The code of the next response and the Call-ID in it; `None` if there is none in time.
    async fn response(&self, patience: Duration) -> Option<(u16, String)> {
        let mut buffer = vec![0; 65_536];
        let receiving = async {
            loop {
                let length = self.socket.recv(&mut buffer).await.unwrap();
                let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
                // A stray answer of a trunk is acknowledged and ended.
                if !["ACK", "BYE"].iter().any(|method| text.starts_with(method)) {
                    return text;
                }
            }
        };
        let text = tokio::time::timeout(patience, receiving).await.ok()?;
        let code = text.get(8..11).and_then(|code| code.parse().ok());
        Some((
            code.unwrap_or_else(|| panic!("not a response: {text}")),
            text,
        ))
    }

    /// Sends a message and then asks whether the endpoint still lives. The codes that came back for the message; an answer that must come is
    /// waited for.
    async fn torture(&self, text: &str, then: Then) -> Vec<u16> {
        let awaited = matches!(then, Then::Answer(_));
        let from = self.socket.local_addr().unwrap();
        let wire = on_the_wire(text, from);
        self.socket.send_to(&wire, self.victim).await.unwrap();
        let probe = on_the_wire(
            "OPTIONS sip:probe@host SIP/2.0\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nMax-Forwards: 70\nFrom: <sip:a@b>;tag=1\nTo: <sip:probe@host>\nCall-ID: probe-{id}\nCSeq: 1 OPTIONS\nContent-Length: 0\n\n",
            from,
        );
        self.socket.send_to(&probe, self.victim).await.unwrap();
        let (mut codes, mut alive) = (Vec::new(), false);
        // Responses may overtake each other, so there is some time more after the one to the probe.
        loop {
            let patience = if alive && !(awaited && codes.is_empty()) {
                Duration::from_millis(60)
            } else {
                PATIENCE
            };
            match self.response(patience).await {
                Some((code, text)) if text.contains("probe-") => {
                    assert_eq!(code, 200);
                    alive = true;
                }
                Some((code, _)) => codes.push(code),
                None => break,
            }
        }
        assert!(alive, "the endpoint is dead");
        codes
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn torture_disturbs_no_call_and_is_answered_as_it_deserves() {
    let mut lab = Lab::new(&Codec::ALL, Script::answer()).await;
    let victim = lab.trunk.signalling().contact();
    lab.trunk.signalling().add_peer(TORTURER);
    let torture = async {
        let mut wrong = Vec::new();
        for (name, text, then) in TORTURES {
            let codes = Torturer::of(victim).await.torture(text, *then).await;
            let right = match then {
                Then::Answer(allowed) => codes.len() == 1 && allowed.contains(&codes[0]),
                Then::Nothing | Then::Missed => codes.is_empty(),
                Then::NotWelcome => codes.iter().all(|code| *code >= 400),
                Then::Tolerated => true,
            };
            if !right {
                wrong.push(format!("{name}: {codes:?} instead of {then:?}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    };
    let plan = call_request(vec![PlaybackItem::Sound(sound(300))]);
    let (story, ()) = tokio::join!(lab.call(plan), torture);
    assert_eq!(story.stats.packets_sent, 300);
    assert_eq!(story.talked().1, Side::Us);
    let heard = lab.heard().await;
    assert_eq!((heard.lost(), heard.hung_up_by), (0, Some(Side::Them)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn torture_does_not_bring_down_a_phone_that_answers() {
    let lab = Lab::new(&Codec::ALL, Script::answer()).await;
    for (name, text, then) in TORTURES {
        // What is expected here is only that nothing is agreed to.
        let torturer = Torturer::of(lab.callee.contact()).await;
        let codes = torturer.torture(text, Then::Tolerated).await;
        let agreed = codes.contains(&200) && text.starts_with("INVITE");
        assert!(!agreed, "{name}: {codes:?}, {then:?}");
    }
    lab.call(call_request(vec![PlaybackItem::Sound(sound(5))]))
        .await
        .talked();
}
