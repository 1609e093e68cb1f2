//! Proofs that SIPp cannot check: SHA-256, and what becomes of challenges that nobody can answer.

use std::io::Write;
use std::process::{Command, Stdio};

use phone::ending::Cause;
use phone::signalling::SipCredentials;
use phone::trunk::SipTrunkConfig;

use crate::lab::{call, call_request, caller, trunk};
use crate::puppet::Puppet;

/// By a program that nobody here wrote.
fn hash(plan: &str, text: &str) -> String {
    let mut plan = Command::new(plan)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|_| panic!("{plan} must be there: it is in the Debian package coreutils"));
    let mut input = plan.stdin.take().unwrap();
    input.write_all(text.as_bytes()).unwrap();
    drop(input);
    let output = String::from_utf8(plan.wait_with_output().unwrap().stdout).unwrap();
    output.split_whitespace().next().unwrap().to_owned()
}

fn field<'a>(proof: &'a str, name: &str) -> &'a str {
    let fields = proof.split_once("Digest ").unwrap().1.split(',');
    fields
        .filter_map(|field| field.trim().split_once('='))
        .find(|(found, _)| *found == name)
        .unwrap_or_else(|| panic!("{name} is missing in {proof}"))
        .1
        .trim_matches('"')
}

async fn calling(puppet: &Puppet) -> tokio::task::JoinHandle<crate::lab::Story> {
    let trunk = trunk(SipTrunkConfig {
        credentials: Some(SipCredentials {
            user: "customer".to_owned(),
            auth_user: None,
            password: "secret".to_owned(),
        }),
        ..SipTrunkConfig::new("test", puppet.address().into())
    })
    .await;
    tokio::spawn(async move { call(&caller(), &trunk, call_request(vec![])).await })
}

async fn check_proof(status: &str, kind: &str, algorithm: &str, plan: &str) {
    let mut puppet = Puppet::new().await;
    let calling = calling(&puppet).await;
    let invite = puppet.request("INVITE").await;
    // RFC 8760: several to choose from, the peer's favourite first. Nobody here knows the first one.
    let challenges = ["SHA-512-256", algorithm, "MD5"].map(|algorithm| {
        format!("{kind}-Authenticate: Digest realm=\"trunk\", nonce=\"of {algorithm}\", algorithm={algorithm}, qop=\"auth,auth-int\", opaque=\"o\"\r\n")
    });
    puppet.respond(&invite, status, &challenges.concat()).await;
    puppet.request("ACK").await;
    let invite = puppet.request("INVITE").await;
    let proof = invite
        .lines()
        .find(|line| line.contains("Authorization: Digest"))
        .unwrap();
    let nonce = format!("of {algorithm}");
    for (name, value) in [("algorithm", algorithm), ("nonce", &nonce), ("opaque", "o")] {
        assert_eq!(field(proof, name), value, "{proof}");
    }
    // RFC 7616 section 3.4.1.
    let hash = |text: &str| hash(plan, text);
    let who = hash("customer:trunk:secret");
    let what = hash(&format!("INVITE:{}", field(proof, "uri")));
    let (count, own) = (field(proof, "nc"), field(proof, "cnonce"));
    let expected = hash(&format!("{who}:{nonce}:{count}:{own}:auth:{what}"));
    assert_eq!(field(proof, "response"), expected, "{proof}");
    puppet.respond(&invite, "486 Busy Here", "").await;
    assert_eq!(calling.await.unwrap().cause(), Cause::Busy);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_is_proved_by_the_best_way_that_is_offered() {
    check_proof("401 Unauthorized", "WWW", "SHA-256", "sha256sum").await;
    check_proof(
        "407 Proxy Authentication Required",
        "Proxy",
        "SHA-256",
        "sha256sum",
    )
    .await;
    check_proof(
        "407 Proxy Authentication Required",
        "Proxy",
        "MD5",
        "md5sum",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_challenge_that_nobody_can_answer_is_a_refusal() {
    for challenge in [
        "WWW-Authenticate: Digest realm=\"trunk\", nonce=\"n\", algorithm=SHA-512-256\r\n",
        "WWW-Authenticate: Digest realm=\"trunk\", nonce=\"n\", qop=\"auth-int\"\r\n",
        "WWW-Authenticate: Basic realm=\"trunk\"\r\n",
        "WWW-Authenticate: Digest nonsense\r\n",
        "WWW-Authenticate: Digest realm=\"no nonce\"\r\n",
        "",
    ] {
        let mut puppet = Puppet::new().await;
        let calling = calling(&puppet).await;
        let invite = puppet.request("INVITE").await;
        puppet.respond(&invite, "401 Unauthorized", challenge).await;
        puppet.request("ACK").await;
        let failure = calling.await.unwrap().failure();
        assert_eq!(failure.cause, Cause::Rejected, "{challenge}");
        assert_eq!(
            failure.response,
            Some((401, "Unauthorized".to_owned())),
            "{challenge}"
        );
    }
}
