//! A trunk whose carrier runs Kamailio: registrar and proxy, with callees behind it.

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use g711::Codec;
use phone::call::{CallRequest, MediaOptions};
use phone::ending::Side;
use phone::leg_record::WhyHungUp;
use phone::media::engine::Encryption;
use phone::media::stream::PlaybackItem;
use phone::signalling::{
    Resolver, Signalling, SignallingConfig, SipCredentials, TlsFiles, Transport,
};
use phone::test_phone::{HeardCall, Script, TestPhone};
use phone::trunk::{Health, SipTrunkConfig, Trunk};
use supervisor::Supervisor;
use tokio::net::UdpSocket;
use tokio::process::{Child, Command};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::far_end::packet;
use crate::lab::{
    Folder, PATIENCE, call, call_request, callee_config, caller, eventually, loopback, sound,
};
use crate::puppet::{Puppet, header};
use crate::sipp::free_address;
use crate::transports::Certificates;

const TRANSPORTS: [Transport; 3] = [Transport::Udp, Transport::Tcp, Transport::Tls];

/// Calls of each kind: `make interop` asks for more.
fn rounds() -> usize {
    let rounds = std::env::var("INTEROP_ROUNDS").ok();
    rounds.map_or(1, |rounds| {
        rounds.parse().expect("INTEROP_ROUNDS is a number")
    })
}

/// It ends with this.
struct Kamailio {
    child: Child,
    folder: Folder,
    address: SocketAddr,
    tls_address: SocketAddr,
    certificates: Certificates,
}

impl Kamailio {
    /// With whoever is behind it.
    async fn start(first: SocketAddr, second: SocketAddr) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = Folder::new();
        let certificates = Certificates::for_name("carrier.example");
        let write = |name: &str, bytes: &[u8]| {
            std::fs::write(folder.path().join(name), bytes).unwrap();
        };
        let (address, tls_address) = (free_address(), free_address());
        let config = include_str!("../kamailio/kamailio.cfg")
            .replace("{port}", &address.port().to_string())
            .replace("{tls_port}", &tls_address.port().to_string())
            .replace("{folder}", folder.path().to_str().unwrap())
            .replace("{first}", &first.to_string())
            .replace("{second}", &second.to_string());
        write("config", config.as_bytes());
        write("certificate", &certificates.certificate);
        write("key", &certificates.key);
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        let child = Command::new("kamailio")
            .env("PATH", format!("{path}:/usr/sbin"))
            .args(["-DD", "-E", "-m", "16", "-M", "4", "-f", "config", "-Y"])
            .arg(folder.path())
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .expect("kamailio must be installed: it is in the Debian package kamailio");
        let mut kamailio = Self {
            child,
            folder,
            address,
            tls_address,
            certificates,
        };
        for address in [address, tls_address] {
            eventually("Kamailio listens", || {
                let gone = kamailio.child.try_wait().unwrap().is_some();
                assert!(!gone, "{}", kamailio.log());
                std::net::TcpStream::connect(address).is_ok()
            })
            .await;
        }
        kamailio
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    async fn trunk(
        &self,
        transport: Transport,
        change: impl FnOnce(&mut SipTrunkConfig),
    ) -> Arc<Trunk> {
        let mut sip = SignallingConfig::new(transport, loopback());
        let mut address = self.address;
        if transport == Transport::Tls {
            address = self.tls_address;
            sip.tls = TlsFiles {
                authorities: self.certificates.authority.clone(),
                peer_name: Some("carrier.example".to_owned()),
                own: None,
            };
        }
        let signalling = Signalling::start(&Supervisor::new(), &sip, None).await;
        let mut config = SipTrunkConfig {
            credentials: Some(SipCredentials {
                user: "customer".to_owned(),
                auth_user: None,
                password: "secret".to_owned(),
            }),
            ..SipTrunkConfig::new("carrier", address.into())
        };
        change(&mut config);
        let signalling = Arc::new(signalling.unwrap());
        Trunk::start(&Supervisor::new(), config, signalling, Resolver::default())
    }
}

impl Drop for Kamailio {
    fn drop(&mut self) {
        // Asked kindly, it ends its children too.
        let id = self.child.id().and_then(|id| i32::try_from(id).ok());
        if let Some(id) = id.and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
            let limit = Instant::now() + Duration::from_secs(10);
            while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < limit {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

async fn callee(
    script: impl Fn(&str) -> Script + Send + 'static,
) -> (TestPhone, UnboundedReceiver<HeardCall>) {
    let config = callee_config(&Codec::ALL);
    TestPhone::start(&Supervisor::new(), &config, script)
        .await
        .unwrap()
}

async fn heard(calls: &mut UnboundedReceiver<HeardCall>) -> HeardCall {
    let heard = tokio::time::timeout(PATIENCE, calls.recv()).await;
    heard.expect("the callee tells in time").unwrap()
}

fn request(number: &str, frames: i32) -> CallRequest {
    CallRequest {
        number: number.to_owned(),
        ..call_request(vec![PlaybackItem::Sound(sound(frames))])
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trunks_register_with_a_password() {
    let kamailio = Kamailio::start(free_address(), free_address()).await;
    for transport in TRANSPORTS {
        for (password, up) in [("secret", true), ("wrong", false)] {
            let trunk = kamailio.trunk(transport, |config| {
                config.register = Some(Duration::from_secs(3600));
                let credentials = config.credentials.as_mut().unwrap();
                password.clone_into(&mut credentials.password);
            });
            let trunk = trunk.await;
            let mut health = trunk.health();
            let known = health.wait_for(|health| *health != Health::Unknown);
            let known = tokio::time::timeout(PATIENCE, known).await.unwrap();
            let is_up = *known.unwrap() == Health::Up;
            assert_eq!(is_up, up, "{transport} {password}");
            trunk.stop();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_are_heard_over_every_transport() {
    let (phone, mut calls) = callee(|_| Script::answer()).await;
    let kamailio = Kamailio::start(phone.contact(), free_address()).await;
    for transport in TRANSPORTS {
        for encryption in [Encryption::Off, Encryption::Sdes] {
            let trunk = kamailio.trunk(transport, |config| {
                config.media.encryption = encryption;
            });
            let trunk = trunk.await;
            for _ in 0..rounds() {
                let story = call(&caller(), &trunk, request("1000", 25)).await;
                assert_eq!(story.stats.encrypted, encryption == Encryption::Sdes);
                // A proxy of several processes may let the answer overtake the ringing.
                assert_eq!(story.course().last().unwrap(), "answered");
                assert_eq!(story.talked().1, Side::Us);
                let heard = heard(&mut calls).await;
                assert_eq!(heard.sound(), sound(25).bytes(Codec::Pcma).to_vec());
                assert_eq!(heard.hung_up_by, Some(Side::Them), "the BYE finds its way");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callees_hang_up_over_every_transport() {
    let (phone, mut calls) = callee(|_| Script::hang_up_after(Duration::from_millis(300))).await;
    let kamailio = Kamailio::start(phone.contact(), free_address()).await;
    for transport in TRANSPORTS {
        // We have no certificate over TLS, and so no door: the BYE comes back on the connection that we have opened.
        let trunk = kamailio.trunk(transport, |_| ()).await;
        for _ in 0..rounds() {
            let story = call(&caller(), &trunk, request("1000", 500)).await;
            let (time, side) = story.talked();
            assert_eq!(side, Side::Them, "{transport}");
            assert!(time < Duration::from_secs(4), "{time:?}");
            assert_eq!(heard(&mut calls).await.hung_up_by, Some(Side::Us));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_telephones_that_ring_one_talks() {
    for both_answer in [false, true] {
        let (first, mut first_calls) = callee(move |_| {
            if both_answer {
                Script::answer()
            } else {
                Script::never_answer()
            }
        })
        .await;
        let (second, mut second_calls) = callee(|_| Script::answer()).await;
        let kamailio = Kamailio::start(first.contact(), second.contact()).await;
        let trunk = kamailio.trunk(Transport::Udp, |_| ()).await;
        for _ in 0..rounds() {
            let story = call(&caller(), &trunk, request("1022", 25)).await;
            story.talked();
            let heard = [
                heard(&mut first_calls).await,
                heard(&mut second_calls).await,
            ];
            let whole = sound(25).bytes(Codec::Pcma).to_vec();
            let talked = heard.iter().filter(|call| call.sound() == whole).count();
            assert_eq!(talked, 1, "{heard:?}");
            if !both_answer {
                assert!(!heard[0].answered);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_contacts_of_a_redirect_are_tried_in_their_order() {
    let (phone, mut calls) = callee(|number| match number {
        "1002" => Script::refuse(480),
        _ => Script::answer(),
    })
    .await;
    let kamailio = Kamailio::start(phone.contact(), free_address()).await;
    let trunk = kamailio.trunk(Transport::Udp, |config| {
        config.follow_redirects = true;
    });
    let trunk = trunk.await;
    for _ in 0..rounds() {
        call(&caller(), &trunk, request("1302", 25)).await.talked();
        let heard = [heard(&mut calls).await, heard(&mut calls).await];
        let numbers = heard.each_ref().map(|call| call.number.as_str());
        assert_eq!(numbers, ["1002", "1000"]);
        assert_eq!(heard[1].sound(), sound(25).bytes(Codec::Pcma).to_vec());
    }
}

/// A callee of bare sockets behind the proxy.
struct Routed {
    puppet: Puppet,
    rtp: UdpSocket,
    invite: String,
}

impl Routed {
    async fn new() -> Self {
        Self {
            puppet: Puppet::new().await,
            rtp: UdpSocket::bind(loopback()).await.unwrap(),
            invite: String::new(),
        }
    }

    /// A description of where the sound goes.
    fn description(rtp: &UdpSocket, attribute: &str) -> String {
        let port = rtp.local_addr().unwrap().port();
        format!(
            "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio {port} RTP/AVP 8\r\n{attribute}"
        )
    }

    async fn invited(&mut self) {
        self.invite = self.puppet.request("INVITE").await;
    }

    /// The way back, under the name that it has in requests or in responses.
    fn routes(&self, name: &str) -> String {
        let routes = self.invite.lines().filter_map(|line| {
            let route = line.strip_prefix("Record-Route: ")?;
            Some(format!("{name}: {route}\r\n"))
        });
        let routes: String = routes.collect();
        assert!(!routes.is_empty(), "{}", self.invite);
        routes
    }

    async fn respond(&self, status: &str, extra: &str, body: &str) {
        let kind = if body.is_empty() {
            ""
        } else {
            "Content-Type: application/sdp\r\n"
        };
        let (contact, routes) = (self.puppet.contact(), self.routes("Record-Route"));
        let extra = format!("{contact}{routes}{kind}{extra}");
        self.puppet
            .respond_as("puppet", &self.invite, status, &extra, body)
            .await;
    }

    /// Asks for something, and has the answer.
    async fn ask(&mut self, method: &str, number: u32, body: &str) -> String {
        let kind = if body.is_empty() {
            ""
        } else {
            "Content-Type: application/sdp\r\n"
        };
        let (contact, routes) = (self.puppet.contact(), self.routes("Route"));
        let extra = format!("{contact}{routes}{kind}");
        self.puppet
            .ask_with(method, number, &self.invite, &extra, body)
            .await;
        loop {
            let answer = self.puppet.request("SIP/2.0").await;
            if !answer.starts_with("SIP/2.0 100") {
                assert!(answer.starts_with("SIP/2.0 200"), "{answer}");
                return answer;
            }
        }
    }

    async fn acknowledge(&self, number: u32, body: &str) {
        let kind = if body.is_empty() {
            ""
        } else {
            "Content-Type: application/sdp\r\n"
        };
        let extra = format!("{}{kind}", self.routes("Route"));
        self.puppet
            .ask_with("ACK", number, &self.invite, &extra, body)
            .await;
    }

    async fn hang_up_is_answered(&mut self) {
        let bye = self.puppet.request("BYE").await;
        self.puppet.respond(&bye, "200 OK", "").await;
    }
}

/// Waits for a packet of sound.
async fn hears(socket: &UdpSocket) {
    let mut packet = [0; 2000];
    let hearing = async { while socket.recv(&mut packet).await.unwrap() != 172 {} };
    tokio::time::timeout(PATIENCE, hearing)
        .await
        .expect("sound in time");
}

/// Waits until no sound comes.
async fn hears_nothing(socket: &UdpSocket) {
    let mut packet = [0; 2000];
    let moment = Duration::from_millis(100);
    let limit = Instant::now() + PATIENCE;
    while tokio::time::timeout(moment, socket.recv(&mut packet))
        .await
        .is_ok()
    {
        assert!(Instant::now() < limit, "it is held in time");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_callee_holds_and_resumes_with_and_without_an_offer() {
    for _ in 0..rounds() {
        hold_and_resume().await;
    }
}

async fn hold_and_resume() {
    let mut callee = Routed::new().await;
    let kamailio = Kamailio::start(callee.puppet.address(), free_address()).await;
    let trunk = kamailio.trunk(Transport::Udp, |_| ()).await;
    let phone = caller();
    let plan = vec![PlaybackItem::Silence { frames: 3000 }];
    let stop = tokio_util::sync::CancellationToken::new();
    let holding = async {
        callee.invited().await;
        let here = Routed::description(&callee.rtp, "");
        let held = Routed::description(&callee.rtp, "a=sendonly\r\n");
        callee.respond("200 OK", "", &here).await;
        callee.puppet.request("ACK").await;
        hears(&callee.rtp).await;
        let answer = callee.ask("INVITE", 1, &held).await;
        assert!(answer.contains("a=recvonly"), "{answer}");
        callee.acknowledge(1, "").await;
        hears_nothing(&callee.rtp).await;
        callee.ask("INVITE", 2, &here).await;
        callee.acknowledge(2, "").await;
        hears(&callee.rtp).await;
        // Without an offer: the description comes with the ACK.
        let offer = callee.ask("INVITE", 3, "").await;
        assert!(offer.contains("m=audio"), "{offer}");
        callee.acknowledge(3, &held).await;
        hears_nothing(&callee.rtp).await;
        callee.ask("INVITE", 4, "").await;
        callee.acknowledge(4, &here).await;
        hears(&callee.rtp).await;
        stop.cancel();
        callee.hang_up_is_answered().await;
    };
    let (events, request) = (crate::lab::unseen_events(), call_request(plan));
    let calling = phone.call(&trunk, &request, &events, &stop);
    let (placed, ()) = tokio::join!(calling, holding);
    crate::lab::Story::new(placed, Vec::new()).talked();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn early_media_moves_before_the_answer() {
    for _ in 0..rounds() {
        move_early().await;
    }
}

async fn move_early() {
    let mut callee = Routed::new().await;
    let after = UdpSocket::bind(loopback()).await.unwrap();
    let kamailio = Kamailio::start(callee.puppet.address(), free_address()).await;
    let trunk = kamailio.trunk(Transport::Udp, |_| ()).await;
    let moving = async {
        callee.invited().await;
        let before = Routed::description(&callee.rtp, "");
        let moved = Routed::description(&after, "");
        let reliable = "Require: 100rel\r\nRSeq: 5\r\n";
        callee
            .respond("183 Session Progress", reliable, &before)
            .await;
        let prack = callee.puppet.request("PRACK").await;
        assert_eq!(header(&prack, "RAck"), "5 2 INVITE");
        callee.puppet.respond(&prack, "200 OK", "").await;
        callee.ask("UPDATE", 1, &moved).await;
        callee.respond("200 OK", "", "").await;
        callee.puppet.request("ACK").await;
        callee.hang_up_is_answered().await;
    };
    let phone = caller();
    let (story, ()) = tokio::join!(call(&phone, &trunk, request("1000", 25)), moving);
    assert_eq!(story.stats.packets_sent, 25);
    story.talked();
    hears(&after).await;
    assert!(callee.rtp.try_recv(&mut [0; 2000]).is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_callee_that_is_killed_is_billed_to_its_last_sign_of_life() {
    // Most of the time passes until the silence counts.
    let mut dying = tokio::task::JoinSet::new();
    for _ in 0..rounds() {
        dying.spawn(kill());
    }
    dying.join_all().await;
}

async fn kill() {
    let mut callee = Routed::new().await;
    let kamailio = Kamailio::start(callee.puppet.address(), free_address()).await;
    let quiet = Duration::from_millis(300);
    let trunk = kamailio.trunk(Transport::Udp, |config| {
        config.media = MediaOptions {
            quiet_after: Some(quiet),
            ..MediaOptions::default()
        };
    });
    let trunk = trunk.await;
    let dying = async move {
        callee.invited().await;
        let here = Routed::description(&callee.rtp, "");
        callee.respond("200 OK", "", &here).await;
        callee.puppet.request("ACK").await;
        let offered = callee.invite.lines().find_map(|line| {
            let line = line.strip_prefix("m=audio ")?;
            line.split(' ').next()?.parse::<u16>().ok()
        });
        let to = ("127.0.0.1", offered.unwrap());
        hears(&callee.rtp).await;
        let last_sign = Instant::now();
        callee.rtp.send_to(&packet(1), to).await.unwrap();
        // It dies here.
        last_sign
    };
    let phone = caller();
    let long = call_request(vec![PlaybackItem::Silence { frames: 3000 }]);
    let (story, last_sign) = tokio::join!(call(&phone, &trunk, long), dying);
    assert_eq!(story.why_hung_up(), Some(WhyHungUp::Vanished), "{story:?}");
    let leg = story.legs.last().unwrap();
    let after = leg.ended_at.duration_since(last_sign);
    assert!(leg.ended_at >= last_sign, "{story:?}");
    // Two questions without a response take far longer.
    assert!(after < Duration::from_secs(4), "{after:?}");
    assert!(story.stats.packets_sent < 3000, "{story:?}");
}
