//! The SIP messages of a call, as an operator asks for them: over TLS, with passwords and encrypted sound.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use g711::Codec;
use phone::call::MediaConfig;
use phone::signalling::{SignallingConfig, SipCredentials, Transport};
use phone::test_phone::{Script, TestPhone, TestPhoneConfig};
use supervisor::Supervisor;
use tokio::process::Command;

use crate::check::trunks::authority;
use crate::support::child::{Caller, ChildServer, Installation};
use crate::support::eventually;

/// A server with a trunk over TLS to a telephone that wants a password.
struct SecureDesk {
    site: Installation,
    server: ChildServer,
    telephone: TestPhone,
    _files: tempfile::TempDir,
}

async fn telephone(certificate: String, key: String) -> TestPhone {
    let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let mut sip = SignallingConfig::new(Transport::Tls, SocketAddr::new(here, 0));
    sip.tls.own = Some((certificate.into_bytes(), key.into_bytes()));
    let config = TestPhoneConfig {
        sip,
        media: MediaConfig::new(here, 30_000..=39_999),
        codecs: Codec::ALL.to_vec(),
        credentials: Some(SipCredentials {
            user: "shop".to_owned(),
            auth_user: None,
            password: "open-sesame".to_owned(),
        }),
    };
    let script = |_: &str| Script::hang_up_after(Duration::from_millis(200));
    let (telephone, mut heard) = TestPhone::start(&Supervisor::new(), &config, script)
        .await
        .unwrap();
    tokio::spawn(async move { while heard.recv().await.is_some() {} });
    telephone
}

impl SecureDesk {
    async fn open() -> Self {
        let (ca, certificate, key) = authority();
        let telephone = telephone(certificate, key).await;
        let files = tempfile::tempdir().unwrap();
        let trusted = files.path().join("ca.pem");
        std::fs::write(&trusted, ca).unwrap();
        let settings = format!(
            "[media]\nbind = \"127.0.0.1\"\n[[trunk]]\nname = \"secure\"\nhost = \"{}\"\ntransport = \"tls\"\nca = {:?}\n\
             bind = \"127.0.0.1:0\"\nprefixes = [\"86\"]\nchannels = 10\ncalls_per_second = 10\nsrtp = true\n\
             user = \"shop\"\npassword = \"open-sesame\"\noptions_seconds = 1\n",
            telephone.contact(),
            trusted
        );
        let site = Installation::with_settings(None, &settings).await;
        let server = site.start().await;
        Self {
            site,
            server,
            telephone,
            _files: files,
        }
    }

    async fn call(&self) -> String {
        let mut caller = Caller::connect(&self.server.client).await.unwrap();
        let fields = "\"to\":\"13800000001\",\"mediaTxt\":\"hello\"";
        let sid = caller.place(fields).await.unwrap();
        eventually("it has ended", async || {
            let shown = self.says(&["call", "show", &sid]).await;
            shown.contains("outcome                talked")
        })
        .await;
        sid
    }

    async fn says(&self, arguments: &[&str]) -> String {
        self.site.says(arguments).await
    }

    async fn refuses(&self, arguments: &[&str]) -> String {
        let output = self.site.clarion(arguments).await;
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    }
}

/// Everything that is written after `mark`.
fn after<'a>(text: &'a str, mark: &str) -> Vec<&'a str> {
    text.split(mark).skip(1).collect()
}

/// The lines above the messages, without times and addresses: direction and first line.
fn ladder(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| line.starts_with("20"));
    let short = lines.map(|line| {
        let direction = line.split(' ').nth(2).unwrap();
        let first = line.split(": ").nth(1).unwrap();
        let name = first.strip_prefix("SIP/2.0 ").unwrap_or(first);
        format!("{direction} {}", name.split(' ').next().unwrap())
    });
    short.collect()
}

/// No proof of a password and no key, and yet both were there.
fn has_no_secret(text: &str) {
    let hidden = |mark: &str, secret: &str| {
        let found = after(text, mark);
        assert!(!found.is_empty(), "no {mark} in {text}");
        assert!(found.iter().all(|rest| rest.starts_with(secret)), "{text}");
    };
    hidden(" response=", "\"***\"");
    hidden(" cnonce=", "\"***\"");
    hidden("inline:", "***");
    assert!(!text.contains("open-sesame"));
    let proofs = after(text, "uthorization: ");
    for proof in proofs {
        assert!(proof.starts_with("Digest username=\"shop\""), "{proof}");
        let line = proof.lines().next().unwrap();
        assert!(
            after(line, "nonce=")
                .iter()
                .all(|rest| rest.starts_with("\"***\""))
        );
    }
}

/// What a reader that nobody here wrote finds in a capture file.
async fn read_capture(file: &Path) -> String {
    let read = Command::new("tcpdump")
        .args(["-nn", "-vv", "-A", "-r"])
        .arg(file)
        .output()
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&read.stderr).into_owned();
    assert!(read.status.success(), "{said}");
    String::from_utf8_lossy(&read.stdout).into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_over_tls_is_shown_as_text_and_as_a_capture_without_its_secrets() {
    let site = SecureDesk::open().await;
    let sid = site.call().await;
    let text = site.says(&["call", "trace", &sid]).await;
    let course = ladder(&text);
    assert_eq!(
        course[..3],
        ["sent INVITE", "received 407", "sent ACK"],
        "{text}"
    );
    for step in ["sent ACK", "received 200", "received BYE", "sent 200"] {
        assert!(course.iter().any(|known| known == step), "{step}: {text}");
    }
    assert_eq!(
        course.iter().filter(|step| *step == "sent INVITE").count(),
        2
    );
    let there = site.telephone.contact();
    let tls = format!(" > {there}: ");
    assert!(
        after(&text, " sent tls 127.0.0.1:")[0].contains(&tls),
        "{text}"
    );
    assert!(!text.contains("unknown"), "an address is missing: {text}");
    has_no_secret(&text);

    let file = site.site.folder.path().join("call.pcapng");
    let name = file.to_str().unwrap();
    let said = site.says(&["call", "trace", &sid, "--pcap", name]).await;
    assert!(
        said.contains(&format!("{} messages are in", course.len())),
        "{said}"
    );
    let read = read_capture(&file).await;
    has_no_secret(&String::from_utf8_lossy(&std::fs::read(&file).unwrap()));
    assert_eq!(after(&read, "proto UDP (17)").len(), course.len(), "{read}");
    let port = there.port();
    assert!(read.contains(&format!("> 127.0.0.1.{port}: ")), "{read}");
    assert!(
        after(&read, "INVITE sip:+8613800000001@").len() >= 2,
        "{read}"
    );
    assert!(after(&read, "[udp sum ok]").len() == course.len(), "{read}");
    assert!(
        !read.contains("bad cksum") && !read.contains("truncated"),
        "{read}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_are_found_by_number_and_by_trunk() {
    let site = SecureDesk::open().await;
    let sid = site.call().await;
    let by_call = ladder(&site.says(&["call", "trace", &sid]).await);
    let number = site
        .says(&["call", "trace", "--number", "+8613800000001"])
        .await;
    assert_eq!(ladder(&number), by_call);
    eventually("the trunk was asked whether it is there", async || {
        let trunk = site.says(&["call", "trace", "--trunk", "secure"]).await;
        let course = ladder(&trunk);
        let asked = course.contains(&"sent OPTIONS".to_owned());
        asked && by_call.iter().all(|step| course.contains(step))
    })
    .await;
    for (arguments, expected) in [
        (
            ["--number", "+8613800000099"],
            "has no such messages; it has messages since 20",
        ),
        (
            ["--trunk", "elsewhere"],
            "there is no trunk elsewhere; the server has: secure",
        ),
        (["--number", "nobody"], "nobody is not a number"),
    ] {
        let said = site
            .refuses(&[&["call", "trace"][..], &arguments].concat())
            .await;
        assert!(said.contains(expected), "{said}");
    }
    let unknown = "2".repeat(32);
    let said = site.refuses(&["call", "trace", &unknown]).await;
    assert!(
        said.contains(&format!("there is no call {unknown}")),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_server_or_without_a_memory_there_is_a_clear_word() {
    let site = Installation::new(None).await;
    let sid = "2".repeat(32);
    let said = async |site: &Installation| {
        let output = site.clarion(&["call", "trace", &sid]).await;
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(said(&site).await.contains("no server answers at"));
    // A server that was killed leaves its socket.
    let mut server = site.start().await;
    assert!(said(&site).await.contains("there is no call"));
    server.process.kill().await.unwrap();
    assert!(site.folder.path().join("trace.sock").exists());
    assert!(said(&site).await.contains("no server answers at"));
    let mut again = site.start().await;
    assert!(said(&site).await.contains("there is no call"));
    again.process.kill().await.unwrap();
    let off = Installation::with_settings(None, "sip_trace_mb = 0\n").await;
    assert!(said(&off).await.contains("sip_trace_mb is 0"));
}
