//! Who is heard, and where the requests inside a call go: carriers answer and hang up from other hosts than the one that was called, and
//! what they say about where they are must not lead us astray.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use phone::call::{CallRequest, PlacedCall};
use phone::ending::{Ending, Side};
use phone::media::stream::PlaybackItem;
use phone::signalling::{
    LookupSource, RefusalCounts, Resolver, Signalling, SignallingConfig, SipRefusal, SrvRecord,
    Transport,
};
use phone::trunk::{SipTrunkConfig, Trunk};
use supervisor::Supervisor;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::lab::{PATIENCE, call_request, caller, eventually, loopback, sound, unseen_events};
use crate::puppet::{Puppet, header};

/// A trunk whose endpoint counts what it refuses, and knows the names of others.
struct Line {
    trunk: Arc<Trunk>,
    refusals: Arc<RefusalCounts>,
}

impl Line {
    async fn to(trunk: SocketAddr, transport: Transport) -> Self {
        let refusals = Arc::new(RefusalCounts::default());
        let config = SignallingConfig {
            resolver: Resolver::of(Elsewhere),
            refusals: Arc::clone(&refusals),
            ..SignallingConfig::new(transport, loopback())
        };
        let signalling = Signalling::start(&Supervisor::new(), &config, None).await;
        let trunk = Trunk::start(
            &Supervisor::new(),
            SipTrunkConfig::new("test", trunk.into()),
            Arc::new(signalling.unwrap()),
            Resolver::default(),
        );
        Self { trunk, refusals }
    }

    fn refused(&self, refusal: SipRefusal) -> u64 {
        self.refusals.get(refusal)
    }

    fn call(&self, frames: i32) -> JoinHandle<PlacedCall> {
        let trunk = Arc::clone(&self.trunk);
        let request: CallRequest = call_request(vec![PlaybackItem::Sound(sound(frames))]);
        tokio::spawn(async move {
            let never = CancellationToken::new();
            let (phone, events) = (caller(), unseen_events());
            let placed = phone.call(&trunk, &request, &events, &never).await;
            let nothing = || trunk.signalling().open().0 == 0;
            eventually("nothing is left open", nothing).await;
            placed
        })
    }
}

/// Every name is somewhere on the network segment.
struct Elsewhere;

#[async_trait::async_trait]
impl LookupSource for Elsewhere {
    async fn lookup_srv(&self, _: &str) -> Result<Vec<SrvRecord>, String> {
        Err("no such name".to_owned())
    }

    async fn lookup_a_aaaa(&self, _: &str) -> Result<Vec<IpAddr>, String> {
        Ok(vec!["169.254.7.7".parse().unwrap()])
    }
}

/// A puppet at another address than the trunk's.
async fn other_host(peer: Option<SocketAddr>) -> Puppet {
    Puppet {
        socket: UdpSocket::bind("127.0.0.2:0").await.unwrap(),
        peer,
    }
}

fn hung_up_by(placed: &PlacedCall) -> Side {
    match &placed.ending {
        Ending::Talked { hung_up_by, .. } => *hung_up_by,
        Ending::Failed(failure) => panic!("it was not answered: {failure:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bye_of_another_host_of_the_carrier_ends_the_call_and_that_of_a_stranger_does_not() {
    let mut puppet = Puppet::new().await;
    let line = Line::to(puppet.address(), Transport::Udp).await;
    let calling = line.call(1000);
    let invite = puppet.request("INVITE").await;
    puppet.answer_as("puppet", &invite).await;
    puppet.request("ACK").await;
    let mut other = other_host(puppet.peer).await;
    // The Call-ID is no secret; our tag is one.
    let (own, _) = header(&invite, "From").rsplit_once("tag=").unwrap();
    let guessed = invite.replace(header(&invite, "From"), &format!("{own}tag=guessed"));
    other.ask("BYE", 1, &guessed, "").await;
    eventually("the stranger is dropped", || {
        line.refused(SipRefusal::Datagram) == 1
    })
    .await;
    other.ask("BYE", 2, &invite, "").await;
    let answer = other.request("SIP/2.0").await;
    assert!(answer.starts_with("SIP/2.0 200"), "{answer}");
    assert!(header(&answer, "CSeq").starts_with('2'), "{answer}");
    assert_eq!(hung_up_by(&calling.await.unwrap()), Side::Them);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_of_another_host_than_the_one_that_was_called_is_heard() {
    let mut puppet = Puppet::new().await;
    let line = Line::to(puppet.address(), Transport::Udp).await;
    let calling = line.call(5);
    let invite = puppet.request("INVITE").await;
    let mut other = other_host(puppet.peer).await;
    other.respond(&invite, "100 Trying", "").await;
    other.answer_as("other", &invite).await;
    other.request("ACK").await;
    let bye = other.request("BYE").await;
    other.respond(&bye, "200 OK", "").await;
    assert_eq!(hung_up_by(&calling.await.unwrap()), Side::Us);
    assert_eq!(line.refused(SipRefusal::Datagram), 0);
}

/// Answers with a Contact of its own, and perhaps with a route.
async fn answer_at(puppet: &Puppet, invite: &str, contact: &str, route: Option<&str>) {
    let sdp = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 9 RTP/AVP 8\r\n";
    let route = route.map(|route| format!("Record-Route: <{route}>\r\n"));
    let extra = format!(
        "{}Contact: <{contact}>\r\nContent-Type: application/sdp\r\n",
        route.unwrap_or_default()
    );
    puppet
        .respond_as("puppet", invite, "200 OK", &extra, sdp)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_contact_or_route_to_where_the_trunk_is_not_leads_back_to_the_trunk() {
    for (contact, route) in [
        ("sip:x@169.254.169.254", None),
        ("sip:x@224.0.0.1:5060", None),
        ("sip:x@0.0.0.0:5060", None),
        ("sip:x@255.255.255.255", None),
        // A name is judged by what it resolves to.
        ("sip:x@edge.example", None),
        ("sip:x@198.51.100.7", Some("sip:169.254.169.254;lr")),
        ("sip:x@198.51.100.7", Some("sip:edge.example;lr")),
    ] {
        let mut puppet = Puppet::new().await;
        let line = Line::to(puppet.address(), Transport::Udp).await;
        let calling = line.call(5);
        let invite = puppet.request("INVITE").await;
        answer_at(&puppet, &invite, contact, route).await;
        for method in ["ACK", "BYE"] {
            let request = puppet.request(method).await;
            // Whom it is for has not changed.
            let line = request.lines().next().unwrap();
            assert_eq!(line, format!("{method} {contact} SIP/2.0"));
            puppet.respond(&request, "200 OK", "").await;
        }
        assert_eq!(hung_up_by(&calling.await.unwrap()), Side::Us, "{contact}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_contact_or_route_does_not_change_the_transport() {
    for (parameters, by_route) in [(";transport=tcp", false), (";transport=tcp", true)] {
        let (mut puppet, tcp) = Puppet::beside_tcp().await;
        let line = Line::to(puppet.address(), Transport::Udp).await;
        let calling = line.call(5);
        let invite = puppet.request("INVITE").await;
        let contact = format!("sip:x@{}{parameters}", puppet.address());
        let route = format!("sip:{}{parameters};lr", puppet.address());
        answer_at(&puppet, &invite, &contact, by_route.then_some(&route)).await;
        puppet.request("ACK").await;
        let bye = puppet.request("BYE").await;
        let for_it = format!("BYE {contact}").to_lowercase();
        assert!(bye.to_lowercase().starts_with(&for_it), "{bye}");
        puppet.respond(&bye, "200 OK", "").await;
        assert_eq!(hung_up_by(&calling.await.unwrap()), Side::Us);
        let nobody = at_once(tcp.accept());
        assert!(nobody.await.is_none(), "it came over TCP");
    }
}

/// What is there already.
async fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        now = future => Some(now),
        () = std::future::ready(()) => None,
    }
}

/// A peer on a connection.
struct Caller {
    stream: TcpStream,
    read: String,
}

impl Caller {
    async fn accept(listener: &TcpListener) -> Self {
        let accepted = tokio::time::timeout(PATIENCE, listener.accept()).await;
        let (stream, _) = accepted.expect("a connection in time").unwrap();
        Self {
            stream,
            read: String::new(),
        }
    }

    async fn request(&mut self, method: &str) -> String {
        loop {
            if let Some((head, rest)) = self.read.split_once("\r\n\r\n") {
                let length: usize = header(head, "Content-Length").parse().unwrap();
                if rest.len() >= length {
                    let (head, rest) = (head.to_owned(), rest[length..].to_owned());
                    self.read = rest;
                    if head.starts_with(method) {
                        return head;
                    }
                    continue;
                }
            }
            let mut buffer = vec![0; 65_536];
            let read = tokio::time::timeout(PATIENCE, self.stream.read(&mut buffer)).await;
            let length = read.expect("bytes in time").unwrap();
            assert!(length > 0, "the connection is closed before {method}");
            self.read += std::str::from_utf8(&buffer[..length]).unwrap();
        }
    }

    async fn respond(&mut self, request: &str, contact: &str, body: &str) {
        let kept = ["Via", "From", "Call-ID", "CSeq"]
            .map(|name| format!("{name}: {}\r\n", header(request, name)))
            .concat();
        let to = header(request, "To").trim_end_matches(";tag=callee");
        let response = format!(
            "SIP/2.0 200 OK\r\n{kept}To: {to};tag=callee\r\n{contact}Content-Type: application/sdp\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.write_all(response.as_bytes()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_has_lost_its_connection_is_ended_on_a_new_one_to_the_trunk() {
    let listener = TcpListener::bind(loopback()).await.unwrap();
    let elsewhere = TcpListener::bind("127.0.0.4:0").await.unwrap();
    let line = Line::to(listener.local_addr().unwrap(), Transport::Tcp).await;
    let calling = line.call(50);
    let mut callee = Caller::accept(&listener).await;
    let invite = callee.request("INVITE").await;
    let at = elsewhere.local_addr().unwrap();
    let contact = format!(
        "Record-Route: <sip:{at};transport=udp;lr>\r\nContact: <sip:x@{at};transport=udp>\r\n"
    );
    let sdp = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 9 RTP/AVP 8\r\n";
    callee.respond(&invite, &contact, sdp).await;
    callee.request("ACK").await;
    drop(callee);
    let mut callee = Caller::accept(&listener).await;
    let bye = callee.request("BYE").await;
    callee.respond(&bye, "", "").await;
    assert_eq!(hung_up_by(&calling.await.unwrap()), Side::Us);
    assert!(at_once(elsewhere.accept()).await.is_none());
}
