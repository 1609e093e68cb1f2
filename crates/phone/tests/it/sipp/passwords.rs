//! SIPp asks for a password and checks what it gets.

use phone::ending::{Cause, Side};
use phone::media::stream::PlaybackItem;
use phone::signalling::SipCredentials;
use phone::trunk::SipTrunkConfig;

use super::Play;
use crate::lab::{call, call_request, caller, sound, trunk};

fn found(name: &str, text: &str) -> String {
    format!("<ereg regexp=\"{text}\" search_in=\"msg\" assign_to=\"{name}\"/>")
}

async fn check(code: u16, challenge: &'static str, how: &'static str, password: &'static str) {
    let verify = |name: &str| match (code, password) {
        (401, _) => {
            format!("<verifyauth assign_to=\"{name}\" username=\"customer\" password=\"secret\"/>")
        }
        // SIPp does not look into Proxy-Authorization; that the proof in it is right is shown in `crate::passwords`.
        (_, "secret") => found(name, "Proxy-Authorization: Digest username=.customer"),
        _ => found(name, "nothing like this"),
    };
    let sipp = Play::new("challenge")
        .key("verify", verify("right"))
        .key("verify again", verify("still"))
        .key("code", code)
        .key("challenge", challenge)
        .key("how", how)
        .key("nonce", format!("{:016x}", rand::random::<u64>()))
        .start()
        .await;
    let trunk = trunk(SipTrunkConfig {
        credentials: Some(SipCredentials {
            user: "customer".to_owned(),
            auth_user: None,
            password: password.to_owned(),
        }),
        ..SipTrunkConfig::new("test", sipp.address.into())
    })
    .await;
    let story = call(
        &caller(),
        &trunk,
        call_request(vec![PlaybackItem::Sound(sound(5))]),
    )
    .await;
    if password == "secret" {
        assert_eq!(story.talked().1, Side::Us);
    } else {
        let failure = story.failure();
        assert_eq!(failure.cause, Cause::Rejected);
        assert_eq!(failure.response.unwrap().0, code);
    }
    sipp.end_satisfied().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_is_proved_and_proved_again_when_the_nonce_is_stale() {
    for (code, challenge) in [(401, "WWW-Authenticate"), (407, "Proxy-Authenticate")] {
        for how in [
            "algorithm=MD5",
            "qop=\"auth\", algorithm=MD5",
            "qop=\"auth,auth-int\", opaque=\"dim\"",
        ] {
            check(code, challenge, how, "secret").await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_password_is_tried_once() {
    check(401, "WWW-Authenticate", "qop=\"auth\"", "wrong").await;
    check(407, "Proxy-Authenticate", "algorithm=MD5", "wrong").await;
}
