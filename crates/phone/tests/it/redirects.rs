//! Where a 3xx leads, and where it does not.

use std::net::SocketAddr;

use g711::Codec;
use phone::ending::{Cause, Failure, Side};
use phone::media::stream::PlaybackItem;
use phone::signalling::SipCredentials;
use phone::test_phone::{HeardCall, Script, TestPhone};
use phone::trunk::{NumberCheck, RedirectHosts, SipTrunkConfig};
use supervisor::Supervisor;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::lab::{Story, call, call_request, callee_config, caller, sound, trunk};
use crate::puppet::{Puppet, header};
use crate::sipp::Play;

fn following(address: SocketAddr) -> SipTrunkConfig {
    SipTrunkConfig {
        follow_redirects: true,
        ..SipTrunkConfig::new("test", address.into())
    }
}

async fn phone(script: Script) -> (TestPhone, UnboundedReceiver<HeardCall>) {
    let config = callee_config(&Codec::ALL);
    let supervisor = Supervisor::new();
    let started = TestPhone::start(&supervisor, &config, move |_| script.clone());
    started.await.unwrap()
}

/// A call that SIPp answers with 302 and these contacts.
async fn redirected_by_sipp(
    contacts: &str,
    config: impl FnOnce(SocketAddr) -> SipTrunkConfig,
) -> Story {
    let sipp = Play::new("refuse")
        .key("code", 302)
        .key("phrase", "Moved Temporarily")
        .key("header", contacts)
        .start()
        .await;
    let trunk = trunk(config(sipp.address)).await;
    let request = call_request(vec![PlaybackItem::Sound(sound(5))]);
    let story = call(&caller(), &trunk, request).await;
    sipp.end_satisfied().await;
    story
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contacts_are_called_by_q_until_one_answers() {
    let (busy, mut refused) = phone(Script::refuse(486)).await;
    let (silent, mut unheard) = phone(Script::answer()).await;
    let (free, mut answered) = phone(Script::answer()).await;
    // The last one is not needed any more.
    let contacts = format!(
        "Contact: <sip:3@{}>;q=0.2, <sip:2@{}>;q=0.5\nContact: <sip:1@{}>",
        silent.contact(),
        free.contact(),
        busy.contact()
    );
    let story = redirected_by_sipp(&contacts, following).await;
    let codes: Vec<_> = story.legs.iter().map(|leg| leg.code).collect();
    assert_eq!(codes, [Some(302), Some(486), Some(200)], "{story:?}");
    assert_eq!(story.talked().1, Side::Us);
    assert_eq!(refused.recv().await.unwrap().number, "1");
    assert_eq!(answered.recv().await.unwrap().number, "2");
    assert!(unheard.try_recv().is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_that_may_not_be_called_is_not_called_by_a_redirect_either() {
    let (callee, mut heard) = phone(Script::answer()).await;
    let check = NumberCheck::new(|number| match number.strip_prefix("+8616") {
        Some(_) => Err("it leads to a number that is not called".to_owned()),
        None => Ok(()),
    });
    let checked = |address| SipTrunkConfig {
        redirect_check: check.clone(),
        ..following(address)
    };
    let premium = format!("Contact: <sip:%2B861680@{}>", callee.contact());
    let failure = redirected_by_sipp(&premium, checked).await.failure();
    let said = "Moved Temporarily (not followed: it leads to a number that is not called)";
    assert_eq!(failure.response, Some((302, said.to_owned())));
    assert_eq!(failure.cause, Cause::Rejected);
    assert!(heard.try_recv().is_err());
    // The next one may be called.
    let both = format!(
        "{premium}\nContact: <sip:+86138@{}>;q=0.1",
        callee.contact()
    );
    let story = redirected_by_sipp(&both, checked).await;
    assert_eq!(story.talked().1, Side::Us);
    assert_eq!(heard.recv().await.unwrap().number, "+86138");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redirect_leads_to_hosts_that_the_operator_knows() {
    let elsewhere = "Contact: <sip:1@127.0.0.2:9>";
    let failure = redirected_by_sipp(elsewhere, following).await.failure();
    let said = "Moved Temporarily (not followed: 127.0.0.2 is no host of the trunk)";
    assert_eq!(failure.response, Some((302, said.to_owned())));
    let (callee, _heard) = phone(Script::answer()).await;
    let known = "localhost".parse().unwrap();
    for hosts in [RedirectHosts::These(vec![known]), RedirectHosts::Any] {
        let contact = format!("Contact: <sip:1@localhost:{}>", callee.contact().port());
        let config = |address| SipTrunkConfig {
            redirect_hosts: hosts.clone(),
            ..following(address)
        };
        let story = redirected_by_sipp(&contact, config).await;
        assert_eq!(story.talked().1, Side::Us);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_rang_and_nothing_after_a_6xx_is_called_again() {
    for (status, rings) in [("486 Busy Here", true), ("603 Decline", false)] {
        let mut puppet = Puppet::new().await;
        let trunk = trunk(following(puppet.address())).await;
        let calling =
            tokio::spawn(async move { call(&caller(), &trunk, call_request(vec![])).await });
        let invite = puppet.request("INVITE").await;
        let contacts = format!(
            "Contact: <sip:1@{0}>;q=0.9, <sip:2@{0}>;q=0.8\r\n",
            puppet.address()
        );
        puppet.respond(&invite, "302 Moved", &contacts).await;
        let first = puppet.request("INVITE").await;
        assert!(first.starts_with("INVITE sip:1@"), "{first}");
        // The target is new, and the party that is called is the same (RFC 3261 section 8.1.3.4).
        assert_eq!(header(&first, "To"), header(&invite, "To"));
        if rings {
            puppet.respond(&first, "180 Ringing", "").await;
        }
        puppet.respond(&first, status, "").await;
        let story = calling.await.unwrap();
        assert_eq!(story.legs.len(), 2, "{story:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redirects_that_never_end_are_given_up() {
    let mut puppet = Puppet::new().await;
    let trunk = trunk(following(puppet.address())).await;
    let calling = tokio::spawn(async move { call(&caller(), &trunk, call_request(vec![])).await });
    for number in 0..6 {
        let invite = puppet.request("INVITE").await;
        let again = format!("Contact: <sip:{number}@{}>\r\n", puppet.address());
        puppet.respond(&invite, "302 Moved", &again).await;
    }
    let story = calling.await.unwrap();
    assert_eq!(story.legs.len(), 6, "{story:?}");
    assert_eq!(story.cause(), Cause::Rejected);
}

/// What a trunk with a password sends to whom it redirects to, and what it says about that failure.
async fn challenged_at(name: &str) -> (bool, Failure) {
    let (mut carrier, mut target) = (Puppet::new().await, Puppet::new().await);
    let known = RedirectHosts::These(vec!["localhost".parse().unwrap()]);
    let trunk = trunk(SipTrunkConfig {
        redirect_hosts: known,
        credentials: Some(SipCredentials {
            user: "customer".to_owned(),
            auth_user: None,
            password: "secret".to_owned(),
        }),
        ..following(carrier.address())
    })
    .await;
    let mut calling =
        tokio::spawn(async move { call(&caller(), &trunk, call_request(vec![])).await });
    let invite = carrier.request("INVITE").await;
    let contact = format!("Contact: <sip:1@{name}:{}>\r\n", target.address().port());
    carrier.respond(&invite, "302 Moved", &contact).await;
    let invite = target.request("INVITE").await;
    let challenge = "WWW-Authenticate: Digest realm=\"test\", nonce=\"abc\"\r\n";
    target.respond(&invite, "401 Unauthorized", challenge).await;
    let proved = async {
        loop {
            let invite = target.request("INVITE").await;
            if invite.contains("Authorization: Digest") {
                target.respond(&invite, "402 Payment Required", "").await;
                return;
            }
        }
    };
    tokio::select! {
        story = &mut calling => (false, story.unwrap().failure()),
        () = proved => (true, calling.await.unwrap().failure()),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_hosts_of_the_trunk_get_a_proof_of_its_password() {
    for (name, is_proved, code) in [("127.0.0.1", true, 402), ("localhost", false, 401)] {
        let (proved, failure) = challenged_at(name).await;
        assert_eq!(proved, is_proved, "{name}");
        assert!(failure.is_redirected(), "{name}");
        assert_eq!(failure.response.map(|(code, _)| code), Some(code));
    }
}
