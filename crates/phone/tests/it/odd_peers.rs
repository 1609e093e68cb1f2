//! Peers that are right in an unusual way, or wrong in a usual one.

use std::time::Duration;

use phone::call::{CallEvent, CallRequest};
use phone::ending::{Cause, Ending, Side};
use phone::leg_record::WhyHungUp;
use phone::media::stream::PlaybackItem;
use phone::signalling::Leave;
use phone::trunk::SipTrunkConfig;
use tokio::task::{JoinHandle, JoinSet};

use crate::lab::{
    Story, call, call_request, caller, eventually, next_event, sound, trunk, trunk_to,
};
use crate::puppet::{Puppet, header};

async fn calling(puppet: &Puppet, frames: i32, ring_time: Duration) -> JoinHandle<Story> {
    let trunk = trunk_to(puppet.address()).await;
    let request = CallRequest {
        ring_time,
        ..call_request(vec![PlaybackItem::Sound(sound(frames))])
    };
    tokio::spawn(async move {
        let story = call(&caller(), &trunk, request).await;
        eventually("nothing is left open", || trunk.signalling().open().0 == 0).await;
        story
    })
}

const PATIENT: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_several_that_ring_the_one_that_answers_is_talked_to() {
    let mut puppet = Puppet::new().await;
    let calling = calling(&puppet, 10, PATIENT).await;
    let invite = puppet.request("INVITE").await;
    for tag in ["one", "two", "three"] {
        puppet
            .respond_as(tag, &invite, "180 Ringing", &puppet.contact(), "")
            .await;
    }
    puppet.answer_as("two", &invite).await;
    let ack = puppet.request("ACK").await;
    assert!(header(&ack, "To").ends_with("tag=two"), "{ack}");
    let bye = puppet.request("BYE").await;
    assert!(header(&bye, "To").ends_with("tag=two"), "{bye}");
    puppet.respond(&bye, "200 OK", "").await;
    assert_eq!(calling.await.unwrap().talked().1, Side::Us);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_that_answer_the_second_is_hung_up_on_at_once() {
    let mut puppet = Puppet::new().await;
    let calling = calling(&puppet, 100, PATIENT).await;
    let invite = puppet.request("INVITE").await;
    puppet.answer_as("first", &invite).await;
    let ack = puppet.request("ACK").await;
    assert!(header(&ack, "To").ends_with("tag=first"), "{ack}");
    puppet.answer_as("second", &invite).await;
    let ack = puppet.request("ACK").await;
    assert!(header(&ack, "To").ends_with("tag=second"), "{ack}");
    let bye = puppet.request("BYE").await;
    assert!(header(&bye, "To").ends_with("tag=second"), "{bye}");
    puppet.respond(&bye, "200 OK", "").await;
    let bye = puppet.request("BYE").await;
    assert!(header(&bye, "To").ends_with("tag=first"), "{bye}");
    puppet.respond(&bye, "200 OK", "").await;
    let story = calling.await.unwrap();
    assert_eq!(story.stats.packets_sent, 100);
    assert_eq!(story.talked().1, Side::Us);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_given_up_before_anything_came_back_is_cancelled_when_something_does() {
    for answered in [false, true] {
        let mut puppet = Puppet::new().await;
        let calling = calling(&puppet, 10, Duration::from_millis(300)).await;
        let invite = puppet.request("INVITE").await;
        // The second one comes after the call was given up.
        puppet.request("INVITE").await;
        if answered {
            puppet.answer_as("puppet", &invite).await;
            puppet.request("ACK").await;
            let bye = puppet.request("BYE").await;
            puppet.respond(&bye, "200 OK", "").await;
        } else {
            puppet
                .respond(&invite, "180 Ringing", &puppet.contact())
                .await;
            let cancel = puppet.request("CANCEL").await;
            puppet.respond(&cancel, "200 OK", "").await;
            puppet.respond(&invite, "487 Request Terminated", "").await;
            puppet.request("ACK").await;
        }
        let failure = calling.await.unwrap().failure();
        assert_eq!(failure.cause, Cause::NoAnswer, "{failure:?}");
        assert!(!failure.may_fail_over());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_without_a_description_is_acknowledged_and_ended() {
    let mut puppet = Puppet::new().await;
    let calling = calling(&puppet, 10, PATIENT).await;
    let invite = puppet.request("INVITE").await;
    puppet.respond(&invite, "200 OK", &puppet.contact()).await;
    puppet.request("ACK").await;
    let bye = puppet.request("BYE").await;
    puppet.respond(&bye, "200 OK", "").await;
    let failure = calling.await.unwrap().failure();
    assert_eq!((failure.cause, failure.rang), (Cause::BadMedia, true));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_without_a_contact_is_not_called_again_elsewhere() {
    let mut puppet = Puppet::new().await;
    let calling = calling(&puppet, 10, PATIENT).await;
    let invite = puppet.request("INVITE").await;
    puppet.respond(&invite, "200 OK", "").await;
    puppet.request("ACK").await;
    let bye = puppet.request("BYE").await;
    puppet.respond(&bye, "200 OK", "").await;
    let failure = calling.await.unwrap().failure();
    assert!(!failure.may_fail_over(), "{failure:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_whose_contact_makes_no_sense_breaks_nothing() {
    // Together, because some of them are waited for until nobody can be there any more.
    let mut answers: JoinSet<()> = [
        "<>",
        "*",
        "<sip:>",
        "nonsense",
        "<sip:a@[::1>",
        "\"<sip:a@b",
    ]
    .into_iter()
    .map(answer_from)
    .collect();
    while let Some(answer) = answers.join_next().await {
        answer.unwrap();
    }
}

async fn answer_from(contact: &'static str) {
    let mut puppet = Puppet::new().await;
    let mut calling = calling(&puppet, 10, PATIENT).await;
    let invite = puppet.request("INVITE").await;
    let extra = format!("Contact: {contact}\r\n");
    puppet
        .respond_as("puppet", &invite, "180 Ringing", &extra, "")
        .await;
    puppet
        .respond_as("puppet", &invite, "200 OK", &extra, "")
        .await;
    // Somebody has answered: whatever else it comes to, it is not tried again. A hang-up finds its way where the Contact says nothing at all;
    // where it names a host that nobody knows, it cannot.
    puppet.request("ACK").await;
    let story = tokio::select! {
        story = &mut calling => story,
        bye = puppet.request("BYE") => {
            puppet.respond(&bye, "200 OK", "").await;
            calling.await
        }
    };
    let failure = story.unwrap().failure();
    assert!(!failure.may_fail_over(), "{contact}: {failure:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_is_acknowledged_when_it_is_written_down() {
    let mut puppet = Puppet::new().await;
    let trunk = trunk_to(puppet.address()).await;
    let (events, mut happened) = tokio::sync::mpsc::unbounded_channel();
    let calling = tokio::spawn(async move {
        let request = call_request(vec![PlaybackItem::Sound(sound(10))]);
        let hang_up = tokio_util::sync::CancellationToken::new();
        caller().call(&trunk, &request, &events, &hang_up).await
    });
    let recording = tokio::spawn(async move {
        loop {
            if let CallEvent::Answered(snapshot, written) = next_event(&mut happened).await {
                return (snapshot, written);
            }
        }
    });
    let invite = puppet.request("INVITE").await;
    puppet.answer_as("puppet", &invite).await;
    let answered = recording.await.unwrap();
    assert!(answered.0.unwrap().to.ends_with("tag=puppet"));
    // It repeats itself, and asks for something else: only that is answered.
    puppet.answer_as("puppet", &invite).await;
    let target = header(&invite, "Contact").replace(['<', '>'], "");
    let question = format!(
        "OPTIONS {target} SIP/2.0\r\nVia: SIP/2.0/UDP {};branch=z9hG4bKo\r\nFrom: <sip:s@x>;tag=s\r\nTo: <sip:x@x>\r\nCall-ID: o\r\nCSeq: 1 OPTIONS\r\nMax-Forwards: 70\r\nContent-Length: 0\r\n\r\n",
        puppet.address()
    );
    puppet.send(&question).await;
    let first = puppet.request("").await;
    assert!(first.starts_with("SIP/2.0"), "{first}");
    drop(answered.1);
    let second = puppet.request("").await;
    assert!(second.starts_with("ACK"), "{second}");
    let bye = puppet.request("BYE").await;
    puppet.respond(&bye, "200 OK", "").await;
    let ending = calling.await.unwrap().ending;
    assert!(matches!(ending, Ending::Talked { .. }), "{ending:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_callee_does_not_wait_for_a_writer_that_does_not_write() {
    let mut puppet = Puppet::new().await;
    let trunk = trunk_to(puppet.address()).await;
    let (events, mut happened) = tokio::sync::mpsc::unbounded_channel();
    let calling = tokio::spawn(async move {
        let request = call_request(vec![PlaybackItem::Sound(sound(10))]);
        let hang_up = tokio_util::sync::CancellationToken::new();
        caller().call(&trunk, &request, &events, &hang_up).await
    });
    let Some(CallEvent::Ready(_, leave)) = happened.recv().await else {
        panic!("no INVITE is ready");
    };
    leave.grant(Leave::always());
    // Nobody looks at any other event.
    let invite = puppet.request("INVITE").await;
    puppet.answer_as("puppet", &invite).await;
    puppet.request("ACK").await;
    let bye = puppet.request("BYE").await;
    puppet.respond(&bye, "200 OK", "").await;
    let ending = calling.await.unwrap().ending;
    assert!(matches!(ending, Ending::Talked { .. }), "{ending:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_may_hang_up_in_the_same_moment() {
    let mut puppet = Puppet::new().await;
    let calling = calling(&puppet, 10, PATIENT).await;
    let invite = puppet.request("INVITE").await;
    puppet.answer_as("puppet", &invite).await;
    puppet.request("ACK").await;
    let bye = puppet.request("BYE").await;
    puppet.ask("BYE", 1, &invite, "").await;
    let answer = puppet.request("SIP/2.0").await;
    assert!(
        answer.starts_with("SIP/2.0 200") || answer.starts_with("SIP/2.0 481"),
        "{answer}"
    );
    puppet
        .respond(&bye, "481 Call/Transaction Does Not Exist", "")
        .await;
    assert_eq!(calling.await.unwrap().talked().1, Side::Us);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_asked_during_a_call_is_answered() {
    let mut puppet = Puppet::new().await;
    let calling = calling(&puppet, 100, PATIENT).await;
    let invite = puppet.request("INVITE").await;
    puppet.answer_as("puppet", &invite).await;
    puppet.request("ACK").await;
    let asked = [
        ("OPTIONS", "", "200"),
        ("INFO", "", "200"),
        ("NOTIFY", "Event: x\r\n", "405"),
        ("MESSAGE", "", "405"),
        ("REFER", "Refer-To: <sip:elsewhere@example.com>\r\n", "405"),
        ("UPDATE", "", "200"),
        ("OPTIONS", "Require: unheard-of\r\n", "420"),
    ];
    for ((method, extra, code), cseq) in asked.into_iter().zip(1..) {
        puppet.ask(method, cseq, &invite, extra).await;
        let answer = puppet.request("SIP/2.0").await;
        assert!(
            answer.starts_with(&format!("SIP/2.0 {code}")),
            "{method} {extra}: {answer}"
        );
    }
    let bye = puppet.request("BYE").await;
    puppet.respond(&bye, "200 OK", "").await;
    let story = calling.await.unwrap();
    assert_eq!(story.stats.packets_sent, 100);
    assert_eq!(story.talked().1, Side::Us);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_holds_us_for_too_long_is_hung_up_on() {
    let mut puppet = Puppet::new().await;
    let mut config = SipTrunkConfig::new("test", puppet.address().into());
    config.media.hold_limit = Some(Duration::from_millis(300));
    let trunk = trunk(config).await;
    let request = call_request(vec![PlaybackItem::Sound(sound(150))]);
    let calling = tokio::spawn(async move { call(&caller(), &trunk, request).await });
    let invite = puppet.request("INVITE").await;
    puppet.answer_as("puppet", &invite).await;
    puppet.request("ACK").await;
    let held = "v=0\r\no=- 1 9 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 9 RTP/AVP 8\r\na=inactive\r\n";
    let described = "Content-Type: application/sdp\r\n";
    puppet.ask_with("UPDATE", 1, &invite, described, held).await;
    let answer = puppet.request("SIP/2.0").await;
    assert!(answer.starts_with("SIP/2.0 200"), "{answer}");
    assert!(answer.contains("a=inactive"), "{answer}");
    let bye = puppet.request("BYE").await;
    puppet.respond(&bye, "200 OK", "").await;
    let story = calling.await.unwrap();
    let [leg] = &story.legs[..] else {
        panic!("{story:?}");
    };
    assert_eq!(leg.why_hung_up, Some(WhyHungUp::HeldTooLong));
    assert!(story.stats.packets_sent < 150, "{story:?}");
    assert_eq!(story.talked().1, Side::Us);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_are_heard_from_peers_that_tell_them_by_info() {
    let mut puppet = Puppet::new().await;
    let calling = calling(&puppet, 100, PATIENT).await;
    let invite = puppet.request("INVITE").await;
    puppet.answer_as("puppet", &invite).await;
    puppet.request("ACK").await;
    for (kind, body, cseq) in [
        ("application/dtmf-relay", "Signal=5\r\nDuration=160\r\n", 1),
        ("application/dtmf", "#", 2),
        ("application/xml", "<x/>", 3),
    ] {
        let kind = format!("Content-Type: {kind}\r\n");
        puppet.ask_with("INFO", cseq, &invite, &kind, body).await;
        let answer = puppet.request("SIP/2.0").await;
        assert!(answer.starts_with("SIP/2.0 200"), "{answer}");
    }
    let bye = puppet.request("BYE").await;
    puppet.respond(&bye, "200 OK", "").await;
    let story = calling.await.unwrap();
    assert_eq!(story.events, ["dialling", "answered", "5", "#"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_callee_may_hang_up_as_soon_as_it_is_acknowledged() {
    // It is asked once only: over UDP a repetition would hide that a BYE was overheard, over TCP there is none.
    for _ in 0..50 {
        let mut puppet = Puppet::new().await;
        let calling = calling(&puppet, 200, PATIENT).await;
        let invite = puppet.request("INVITE").await;
        puppet.answer_as("puppet", &invite).await;
        puppet.request("ACK").await;
        puppet.ask("BYE", 1, &invite, "").await;
        let answer = puppet.request("SIP/2.0").await;
        assert!(answer.starts_with("SIP/2.0 200"), "{answer}");
        assert_eq!(calling.await.unwrap().talked().1, Side::Them);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_before_the_answer_is_judged() {
    let mut puppet = Puppet::new().await;
    let calling = calling(&puppet, 10, PATIENT).await;
    let invite = puppet.request("INVITE").await;
    let sdp = |media: &str| {
        format!(
            "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n{media}\r\n"
        )
    };
    let (good, unknown) = (sdp("m=audio 9 RTP/AVP 8"), sdp("m=audio 9 RTP/AVP 97"));
    let described = "Content-Type: application/sdp\r\n";
    let extra = format!("{}{described}", puppet.contact());
    puppet
        .respond(&invite, "180 Ringing", &puppet.contact())
        .await;
    let questions = [
        (1, "", "", "200"),
        // Our own offer is not answered yet.
        (2, described, good.as_str(), "491"),
        (3, described, good.as_str(), "200"),
        (4, described, unknown.as_str(), "488"),
        (5, "Content-Type: text/plain\r\n", "hello", "415"),
    ];
    for (number, extra_of_it, body, code) in questions {
        if number == 3 {
            let status = "183 Session Progress";
            puppet
                .respond_as("puppet", &invite, status, &extra, &good)
                .await;
        }
        puppet
            .ask_with("UPDATE", number, &invite, extra_of_it, body)
            .await;
        let answer = puppet.request("SIP/2.0").await;
        let status = format!("SIP/2.0 {code}");
        assert!(answer.starts_with(&status), "{number}: {answer}");
        let accepts = answer.contains("Accept: application/sdp");
        assert_eq!(accepts, code == "415", "{answer}");
    }
    puppet.respond(&invite, "486 Busy Here", "").await;
    puppet.request("ACK").await;
    assert_eq!(calling.await.unwrap().cause(), Cause::Busy);
}

/// What comes of requests before the answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_before_the_answer_get_a_response_that_fits() {
    let mut puppet = Puppet::new().await;
    let calling = calling(&puppet, 10, PATIENT).await;
    let invite = puppet.request("INVITE").await;
    puppet
        .respond(&invite, "180 Ringing", &puppet.contact())
        .await;
    let key = "Content-Type: application/dtmf-relay\r\n";
    for (number, method, extra, body, status) in [
        (1, "OPTIONS", "", "", "200"),
        (2, "INFO", key, "Signal=1\r\nDuration=160\r\n", "200"),
        (3, "INVITE", "", "", "491"),
    ] {
        let extra = format!("{}{extra}", puppet.contact());
        puppet.ask_with(method, number, &invite, &extra, body).await;
        let response = loop {
            let response = puppet.request("SIP/2.0").await;
            if header(&response, "CSeq") == format!("{number} {method}")
                && !response.starts_with("SIP/2.0 100")
            {
                break response;
            }
        };
        let expected = format!("SIP/2.0 {status} ");
        assert!(response.starts_with(&expected), "{method}: {response}");
        if method == "OPTIONS" {
            assert!(header(&response, "Allow").contains("UPDATE"), "{response}");
        }
    }
    puppet.answer_as("puppet", &invite).await;
    let bye = puppet.request("BYE").await;
    puppet.respond(&bye, "200 OK", "").await;
    let story = calling.await.unwrap();
    assert!(story.legs[0].keys.is_empty(), "{story:?}");
    assert_eq!(story.talked().1, Side::Us);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refreshes_are_done_by_whom_the_peer_names_or_by_us_where_it_does_not_know_them() {
    let mut puppet = Puppet::new().await;
    let calling = calling(&puppet, 300, PATIENT).await;
    let invite = puppet.request("INVITE").await;
    puppet.answer_as("puppet", &invite).await;
    puppet.request("ACK").await;
    let known = "Supported: timer\r\n";
    for (number, asked, supported, agreed, required) in [
        (1, "600;refresher=uas", known, "600;refresher=uas", true),
        (2, "600", known, "600;refresher=uac", true),
        (3, "600", "", "600;refresher=uas", false),
    ] {
        let extra = format!(
            "{}Session-Expires: {asked}\r\n{supported}",
            puppet.contact()
        );
        puppet.ask("UPDATE", number, &invite, &extra).await;
        let response = puppet.request("SIP/2.0 200").await;
        assert_eq!(header(&response, "Session-Expires"), agreed);
        assert_eq!(response.contains("Require: timer"), required, "{response}");
    }
    puppet.ask("BYE", 4, &invite, "").await;
    assert_eq!(calling.await.unwrap().talked().1, Side::Them);
}
