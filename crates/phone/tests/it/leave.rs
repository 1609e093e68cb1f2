//! Every INVITE waits for its leave, and with what is recorded then its leg can be ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use phone::call::{CallEvent, LeaveRequest, PlacedCall};
use phone::ending::{Cause, Ending};
use phone::signalling::{
    DialogSnapshot, Leave, Signalling, SignallingConfig, SipCredentials, Transport,
};
use phone::trunk::{SipTrunkConfig, Trunk};
use supervisor::Supervisor;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::lab::{call_request, caller, loopback, trunk, trunk_of, trunk_to};
use crate::puppet::{Puppet, header};

/// A call whose leave the test gives or refuses.
struct Asking {
    calling: JoinHandle<PlacedCall>,
    happened: UnboundedReceiver<CallEvent>,
    hang_up: CancellationToken,
}

impl Asking {
    fn over(trunk: Arc<Trunk>) -> Self {
        let (events, happened) = unbounded_channel();
        let hang_up = CancellationToken::new();
        let asked = hang_up.clone();
        let calling = tokio::spawn(async move {
            let request = call_request(vec![]);
            caller().call(&trunk, &request, &events, &asked).await
        });
        Self {
            calling,
            happened,
            hang_up,
        }
    }

    async fn ready(&mut self) -> (DialogSnapshot, LeaveRequest) {
        match self.happened.recv().await {
            Some(CallEvent::Ready(snapshot, leave)) => (*snapshot, leave),
            event => panic!("no INVITE is ready: {event:?}"),
        }
    }

    /// The call ends without another INVITE. How many have left.
    async fn withheld(self) -> usize {
        self.ends_by(&[Cause::Withheld]).await
    }

    async fn ends_by(self, causes: &[Cause]) -> usize {
        let placed = self.calling.await.unwrap();
        match placed.ending {
            Ending::Failed(failure) => assert!(causes.contains(&failure.cause), "{failure}"),
            Ending::Talked { .. } => panic!("it was answered"),
        }
        placed.legs.len()
    }
}

/// Whatever was sent before this is asked has arrived before the mark: this machine is all there is between us.
async fn hears_no_invite(puppet: &mut Puppet) {
    let marker = tokio::net::UdpSocket::bind(loopback()).await.unwrap();
    marker.send_to(b"MARK", puppet.address()).await.unwrap();
    loop {
        let heard = puppet.request("").await;
        if heard == "MARK" {
            return;
        }
        assert!(!heard.starts_with("INVITE"), "{heard}");
    }
}

fn switch() -> (Arc<AtomicBool>, Leave) {
    let switch = Arc::new(AtomicBool::new(true));
    let look = Arc::clone(&switch);
    (
        switch,
        Leave::while_holds(move || look.load(Ordering::Relaxed)),
    )
}

fn with_password(puppet: &Puppet) -> SipTrunkConfig {
    SipTrunkConfig {
        credentials: Some(SipCredentials {
            user: "customer".to_owned(),
            auth_user: None,
            password: "secret".to_owned(),
        }),
        ..SipTrunkConfig::new("test", puppet.address().into())
    }
}

const CHALLENGE: &str =
    "Proxy-Authenticate: Digest realm=\"trunk\", nonce=\"n\", algorithm=MD5\r\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invite_without_leave_is_not_sent() {
    let mut puppet = Puppet::new().await;
    let mut asking = Asking::over(trunk_to(puppet.address()).await);
    let (_, leave) = asking.ready().await;
    drop(leave);
    assert_eq!(asking.withheld().await, 0);
    hears_no_invite(&mut puppet).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leave_that_does_not_hold_any_more_is_none() {
    let mut puppet = Puppet::new().await;
    let mut asking = Asking::over(trunk_to(puppet.address()).await);
    let (_, leave) = asking.ready().await;
    leave.grant(Leave::while_holds(|| false));
    assert_eq!(asking.withheld().await, 0);
    hears_no_invite(&mut puppet).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_given_up_before_it_has_leave_is_not_sent() {
    let mut puppet = Puppet::new().await;
    let mut asking = Asking::over(trunk_to(puppet.address()).await);
    let (_, leave) = asking.ready().await;
    asking.hang_up.cancel();
    assert_eq!(asking.withheld().await, 0);
    leave.grant(Leave::always());
    hears_no_invite(&mut puppet).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_address_needs_a_leave_of_its_own() {
    let (mut first, mut second) = (Puppet::new().await, Puppet::new().await);
    let mut asking = Asking::over(trunk_of(vec![first.address(), second.address()]).await);
    let (snapshot, leave) = asking.ready().await;
    assert_eq!(snapshot.sent_to, Some(first.address()));
    leave.grant(Leave::always());
    let invite = first.request("INVITE").await;
    assert_eq!(snapshot.call_id, header(&invite, "Call-ID"));
    assert_eq!(snapshot.via.as_deref(), Some(header(&invite, "Via")));
    first.respond(&invite, "503 Service Unavailable", "").await;
    let (snapshot, leave) = asking.ready().await;
    assert_eq!(snapshot.sent_to, Some(second.address()));
    drop(leave);
    assert_eq!(asking.withheld().await, 1);
    hears_no_invite(&mut second).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redirect_needs_a_leave_of_its_own() {
    let (mut first, mut second) = (Puppet::new().await, Puppet::new().await);
    let config = SipTrunkConfig {
        follow_redirects: true,
        ..SipTrunkConfig::new("test", first.address().into())
    };
    let mut asking = Asking::over(trunk(config).await);
    asking.ready().await.1.grant(Leave::always());
    let invite = first.request("INVITE").await;
    let elsewhere = format!("Contact: <sip:1@{}>\r\n", second.address());
    first
        .respond(&invite, "302 Moved Temporarily", &elsewhere)
        .await;
    let (snapshot, leave) = asking.ready().await;
    assert_eq!(snapshot.sent_to, Some(second.address()));
    drop(leave);
    assert_eq!(asking.withheld().await, 1);
    hears_no_invite(&mut second).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invite_is_not_repeated_when_its_leave_is_over() {
    let mut puppet = Puppet::new().await;
    let mut asking = Asking::over(trunk_to(puppet.address()).await);
    let (holds, leave) = switch();
    asking.ready().await.1.grant(leave);
    puppet.request("INVITE").await;
    // It has no response, so it would be repeated soon.
    holds.store(false, Ordering::Relaxed);
    assert_eq!(asking.ends_by(&[Cause::LeaveLost]).await, 1);
    hears_no_invite(&mut puppet).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_takes_up_an_invite_that_is_not_repeated_any_more_is_told_that_it_is_over() {
    for answers in [false, true] {
        let mut puppet = Puppet::new().await;
        let trunk = trunk_to(puppet.address()).await;
        let mut asking = Asking::over(Arc::clone(&trunk));
        let (holds, leave) = switch();
        asking.ready().await.1.grant(leave);
        let invite = puppet.request("INVITE").await;
        holds.store(false, Ordering::Relaxed);
        assert_eq!(asking.ends_by(&[Cause::LeaveLost]).await, 1);
        if answers {
            puppet.answer_as("puppet", &invite).await;
            puppet.request("ACK").await;
            let bye = puppet.request("BYE").await;
            puppet.respond(&bye, "200 OK", "").await;
        } else {
            puppet.respond(&invite, "180 Ringing", "").await;
            let cancel = puppet.request("CANCEL").await;
            assert_eq!(header(&cancel, "Via"), header(&invite, "Via"));
            puppet.respond(&cancel, "200 OK", "").await;
            puppet.respond(&invite, "487 Request Terminated", "").await;
            puppet.request("ACK").await;
        }
        drop(trunk);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_is_not_proved_when_the_leave_is_over() {
    let mut puppet = Puppet::new().await;
    let mut asking = Asking::over(trunk(with_password(&puppet)).await);
    let (holds, leave) = switch();
    asking.ready().await.1.grant(leave);
    let invite = puppet.request("INVITE").await;
    holds.store(false, Ordering::Relaxed);
    puppet
        .respond(&invite, "407 Proxy Authentication Required", CHALLENGE)
        .await;
    // On a busy machine the INVITE is to be repeated before the challenge is read.
    let causes = [Cause::Withheld, Cause::LeaveLost];
    assert_eq!(asking.ends_by(&causes).await, 1);
    hears_no_invite(&mut puppet).await;
}

/// The branch of a request.
fn branch(request: &str) -> &str {
    let (_, branch) = header(request, "Via").split_once("branch=").unwrap();
    branch.split(';').next().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invite_that_was_repeated_with_a_password_is_cancelled_by_what_was_recorded_before() {
    let mut puppet = Puppet::new().await;
    let mut asking = Asking::over(trunk(with_password(&puppet)).await);
    let (recorded, leave) = asking.ready().await;
    leave.grant(Leave::always());
    let first = puppet.request("INVITE").await;
    puppet
        .respond(&first, "407 Proxy Authentication Required", CHALLENGE)
        .await;
    puppet.request("ACK").await;
    let repeated = puppet.request("INVITE").await;
    for name in ["Call-ID", "From", "To"] {
        assert_eq!(header(&first, name), header(&repeated, name));
    }
    // Another process ends it, by nothing but the first snapshot.
    let config = SignallingConfig::new(Transport::Udp, loopback());
    let other = Signalling::start(&Supervisor::new(), &config, None)
        .await
        .unwrap();
    let ending = tokio::spawn(async move { other.end_orphan(&recorded).await });
    loop {
        let cancel = puppet.request("CANCEL").await;
        let is_known = branch(&cancel) == branch(&repeated);
        let status = if is_known { "200 OK" } else { "481 Unknown" };
        puppet.respond(&cancel, status, "").await;
        if is_known {
            let number = |request: &str| {
                header(request, "CSeq")
                    .split(' ')
                    .next()
                    .unwrap()
                    .to_owned()
            };
            assert_eq!(number(&cancel), number(&repeated));
            break;
        }
    }
    ending.abort();
    asking.calling.abort();
}
