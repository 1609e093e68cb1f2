//! SIPp, which plays one scenario of `tests/sipp`. The tests of Clarion have it too: what they share is here, and what each has of its own
//! (a folder, a free port, patience) is in the module above.

use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};

use phone::signalling::Transport;
use tokio::process::{Child, Command};

use super::{Folder, PATIENCE, eventually, free_address};

/// A description whose sound goes to a port of its own.
pub fn described_at(port: u16) -> String {
    description().replace("{rtp}", &port.to_string())
}

/// The description that scenarios have as `{sdp}`.
pub fn description() -> &'static str {
    fragment("sdp")
}

/// What stands for a key in many scenarios.
pub fn fragment(key: &str) -> &'static str {
    let mut fragments = FRAGMENTS.into_iter();
    let (_, text) = fragments.find(|(name, _)| *name == key).unwrap();
    text
}

/// What stands in many scenarios, by the key that it is written for there.
const FRAGMENTS: [(&str, &str); 9] = [
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
    // The ACK of the final response. On a busy machine the INVITE may be repeated before it: SIPp itself does not know it any more once it has sent
    // two responses.
    (
        "acknowledged",
        r#"<recv request="INVITE" optional="true"/>
  <recv request="ACK">
    <action>
      <ereg regexp="{number} ACK" search_in="hdr" header="CSeq:" check_it="true" assign_to="ack"/>
      <ereg regexp="tag=sipp" search_in="hdr" header="To:" check_it="true" assign_to="tag"/>
    </action>
  </recv>"#,
    ),
    // Waits for the test (`Sipp::go_on`).
    ("go on", r#"<recv request="MESSAGE"/>"#),
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

/// For `{ringing}`, where a scenario may ring before it refuses.
pub const RINGING: &str = "  <send>\n<![CDATA[\nSIP/2.0 180 Ringing\n{opening}\nContact: <sip:sipp@{contact}>\n{empty}\n]]>\n</send>\n";

/// A SIPp that plays one scenario; it dies with this.
pub struct Sipp {
    child: Child,
    folder: Folder,
    pub address: SocketAddr,
    /// So many times it was told to go on.
    told: AtomicU32,
}

/// What a scenario is played with.
pub struct Play<'a> {
    scenario: &'a str,
    transport: Transport,
    calls: u32,
    keys: Vec<(&'a str, String)>,
    files: Vec<(&'a str, Vec<u8>)>,
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
            files: Vec::new(),
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

    /// A file beside the scenario, such as sound.
    pub fn file(mut self, name: &'a str, bytes: Vec<u8>) -> Self {
        self.files.push((name, bytes));
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
            .join("../phone/tests/sipp")
            .join(format!("{}.xml", self.scenario));
        let text = std::fs::read_to_string(path).unwrap();
        // Nobody reads what is sent there, unless a test says otherwise.
        let defaults = [
            ("contact", address.to_string()),
            ("linger", "0".to_owned()),
            ("rtp", free_address().port().to_string()),
            ("ringing", String::new()),
            // Of our INVITE, where it is the first of its endpoint.
            ("number", "1".to_owned()),
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
        for (name, bytes) in &self.files {
            std::fs::write(folder.path().join(name), bytes).unwrap();
        }
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
            told: AtomicU32::new(0),
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

    /// It dies in this moment, whatever it is doing.
    pub async fn kill(&mut self) {
        self.child.kill().await.unwrap();
    }

    /// What passed until now, each by whether it was sent or received, its method or code, and its CSeq: `received 200 1 INVITE`.
    pub fn ladder(&self) -> Vec<String> {
        let log = self.read("messages");
        let blocks = log.split("-----------------------------------------------");
        let messages = blocks.filter_map(|block| {
            let (head, text) = block.split_once("\n\n")?;
            let direction = ["sent", "received"].into_iter();
            let direction = { direction }.find(|word| head.contains(&format!("message {word}")))?;
            // The last one may be half written.
            let is_whole = text.contains("\r\n\r\n");
            is_whole.then(|| format!("{direction} {}", name(text)))
        });
        messages.collect()
    }

    /// How often a message has passed, by its name in the ladder.
    pub fn count(&self, name: &str) -> usize {
        self.ladder().iter().filter(|seen| *seen == name).count()
    }

    /// Waits until a message has passed, by its name in the ladder.
    pub async fn has(&self, name: &str) {
        eventually(name, || self.count(name) > 0).await;
    }

    /// Lets a scenario go on that waits for it with `{go on}`: its one call gets a MESSAGE that tells SIPp nothing else.
    pub fn go_on(&self) {
        let log = self.read("messages");
        let call = log.lines().find_map(|line| line.strip_prefix("Call-ID: "));
        let number = self.told.fetch_add(1, Ordering::Relaxed) + 1;
        let message = format!(
            "MESSAGE sip:sipp@{0} SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1:9;branch=z9hG4bKtest{number}\r\nMax-Forwards: 70\r\n\
             From: <sip:test@{0}>;tag=test\r\nTo: <sip:sipp@{0}>\r\nCall-ID: {1}\r\nCSeq: {number} MESSAGE\r\nContent-Length: 0\r\n\r\n",
            self.address,
            call.expect("it has a call").trim(),
        );
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.send_to(message.as_bytes(), self.address).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }

    fn log(&self) -> String {
        format!(
            "SIPp is not satisfied:\n{}\nWhat was said:\n{}",
            self.read("errors"),
            self.read("messages")
        )
    }
}

/// The method or the code, and the CSeq.
pub fn name(message: &str) -> String {
    let mut words = message.split_whitespace();
    let first = words.next().unwrap_or_default();
    let what = if first == "SIP/2.0" {
        words.next().unwrap_or_default()
    } else {
        first
    };
    let cseq = message.lines().find_map(|line| line.strip_prefix("CSeq:"));
    format!("{what} {}", cseq.unwrap_or_default().trim())
}
