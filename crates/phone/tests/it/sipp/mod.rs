//! The engine against SIPp, a peer that nobody here wrote. The scenarios are in `tests/sipp`: SIPp fails where it does not get what a
//! scenario expects, so its satisfaction is half of every test.

mod answers;
mod changes;
mod giving_up;
mod passwords;
mod refusals;
pub mod registrations;
mod relay;
mod slow;

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicU16, Ordering};

use phone::signalling::Transport;
use tokio::process::{Child, Command};

use crate::lab::{Folder, PATIENCE, eventually};

/// A description whose sound goes to a port of its own.
pub fn described_at(port: u16) -> String {
    let (_, sdp) = FRAGMENTS
        .into_iter()
        .find(|(name, _)| *name == "sdp")
        .unwrap();
    sdp.replace("{rtp}", &port.to_string())
}

/// What stands in many scenarios, by the key that it is written for there.
const FRAGMENTS: [(&str, &str); 7] = [
    // Remembers of the INVITE what requests in the other direction need.
    (
        "invite",
        r#"<recv request="INVITE">
    <action>
      <ereg regexp=".*" search_in="hdr" header="From:" check_it="true" assign_to="us"/>
      <ereg regexp="sip:[^&gt;]*" search_in="hdr" header="Contact:" check_it="true" assign_to="target"/>
    </action>
  </recv>"#,
    ),
    // The headers of a response: one that opens the dialog, one that does not yet, one inside of it.
    (
        "opening",
        "[last_Via:]\n[last_From:]\n[last_To:];tag=sipp\n[last_Call-ID:]\n[last_CSeq:]",
    ),
    (
        "trying",
        "[last_Via:]\n[last_From:]\n[last_To:]\n[last_Call-ID:]\n[last_CSeq:]",
    ),
    (
        "inside",
        "[last_Via:]\n[last_From:]\n[last_To:]\n[last_Call-ID:]\n[last_CSeq:]",
    ),
    // Those of a request inside the dialog.
    (
        "dialog",
        "Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch]\nMax-Forwards: 70\nFrom: <sip:sipp@{contact}>;tag=sipp\nTo:[$us]\nCall-ID: [call_id]",
    ),
    ("empty", "Content-Length: 0\n\n"),
    (
        "sdp",
        "Content-Type: application/sdp\nContent-Length: [len]\n\nv=0\no=- 1 1 IN IP4 127.0.0.1\ns=-\nc=IN IP4 127.0.0.1\nt=0 0\nm=audio {rtp} RTP/AVP 8 101\na=rtpmap:101 telephone-event/8000",
    ),
];

/// A SIPp that plays one scenario; it dies with this.
pub struct Sipp {
    child: Child,
    folder: Folder,
    pub address: SocketAddr,
}

/// What a scenario is played with.
pub struct Play<'a> {
    scenario: &'a str,
    transport: Transport,
    calls: u32,
    keys: Vec<(&'a str, String)>,
    /// Whom to call, for a scenario that calls.
    target: Option<SocketAddr>,
}

impl<'a> Play<'a> {
    pub fn new(scenario: &'a str) -> Self {
        Self {
            scenario,
            transport: Transport::Udp,
            calls: 1,
            keys: Vec::new(),
            target: None,
        }
    }

    pub fn over(self, transport: Transport) -> Self {
        Self { transport, ..self }
    }

    pub fn calls(self, calls: u32) -> Self {
        Self { calls, ..self }
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "numbers and texts read better without a reference"
    )]
    pub fn key(mut self, name: &'a str, value: impl ToString) -> Self {
        self.keys.push((name, value.to_string()));
        self
    }

    pub fn calling(self, target: SocketAddr) -> Self {
        Self {
            target: Some(target),
            ..self
        }
    }

    /// The scenario with its keys filled in. SIPp has keys of its own, but does not take them everywhere.
    fn scenario(&self, address: SocketAddr) -> String {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("tests/sipp")
            .join(format!("{}.xml", self.scenario));
        let text = std::fs::read_to_string(path).unwrap();
        // Nobody reads what is sent there, unless a test says otherwise.
        let defaults = [
            ("contact", address.to_string()),
            ("linger", "0".to_owned()),
            ("rtp", free_address().port().to_string()),
        ];
        let fragments = FRAGMENTS.map(|(name, text)| (name, text.to_owned()));
        // Keys hold fragments and fragments hold keys.
        let all = self.keys.iter().chain(&fragments).chain(&self.keys);
        all.chain(&defaults).fold(text, |text, (name, value)| {
            text.replace(&format!("{{{name}}}"), value)
        })
    }

    /// Starts SIPp and waits until it listens.
    pub async fn start(self) -> Sipp {
        let folder = Folder::new();
        let address = free_address();
        std::fs::write(folder.path().join("scenario"), self.scenario(address)).unwrap();
        let mut command = Command::new("sipp");
        command
            .args(["-nostdin", "-timeout", "90s", "-timeout_error"])
            .args(["-trace_err", "-error_file", "errors"])
            .args(["-trace_msg", "-message_file", "messages"])
            .args(["-i", "127.0.0.1", "-p", &address.port().to_string()])
            .args(["-m", &self.calls.to_string()])
            .args(["-sf", "scenario"])
            .args([
                "-t",
                if self.transport == Transport::Tcp {
                    "t1"
                } else {
                    "u1"
                },
            ]);
        if let Some(target) = self.target {
            command.arg(target.to_string());
        }
        let child = command
            .current_dir(folder.path())
            .env("TERM", "dumb")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("sipp must be installed: it is in the Debian package sip-tester");
        let mut sipp = Sipp {
            child,
            folder,
            address,
        };
        let table = match self.transport {
            Transport::Udp => "/proc/net/udp",
            _ => "/proc/net/tcp",
        };
        let local = format!(" 0100007F:{:04X} ", address.port());
        eventually("SIPp listens", || {
            let gone = sipp.child.try_wait().unwrap().is_some();
            assert!(!gone || self.target.is_some(), "{}", sipp.log());
            gone || std::fs::read_to_string(table).unwrap().contains(&local)
        })
        .await;
        sipp
    }
}

impl Sipp {
    /// Waits for the end of the scenario: everything that it expected must have come.
    pub async fn end_satisfied(mut self) {
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        let satisfied = ended.is_ok_and(|status| status.unwrap().success());
        assert!(satisfied, "{}", self.log());
    }

    fn log(&self) -> String {
        let read =
            |name| std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
        format!(
            "SIPp is not satisfied:\n{}\nWhat was said:\n{}",
            read("errors"),
            read("messages")
        )
    }
}

/// A port that is free for UDP and TCP. SIPp wants to be told one; these lie where neither the system nor our own media choose theirs.
pub fn free_address() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = NEXT.load(Ordering::Relaxed);
    if first == 0 {
        let random = rand::random_range(1..9000);
        let _ = NEXT.compare_exchange(0, random, Ordering::Relaxed, Ordering::Relaxed);
    }
    loop {
        let port = 10_000 + NEXT.fetch_add(1, Ordering::Relaxed) % 9000;
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        if UdpSocket::bind(address).is_ok() && TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}
