//! What SIPp asks before and after the answer, and what it is told.

use phone::ending::Side;
use phone::media::stream::PlaybackItem;

use super::Play;
use super::play::{description, fragment};
use crate::lab::{call_request, call_telling, caller, sound, trunk_to};

/// A request of SIPp, the code of our response, and what that has to say.
struct Question {
    method: &'static str,
    /// Its headers and its body.
    says: String,
    code: u16,
    answer: &'static str,
}

fn question(
    method: &'static str,
    says: impl Into<String>,
    code: u16,
    answer: &'static str,
) -> Question {
    let says = says.into();
    Question {
        method,
        says,
        code,
        answer,
    }
}

/// They are asked one after the other.
fn asked(questions: &[Question], first: usize) -> String {
    let steps = questions.iter().zip(first..).map(|(question, number)| {
        let Question {
            method,
            says,
            code,
            answer,
        } = question;
        let ack = match (*method, code) {
            ("INVITE", 200) => acknowledged(number, "{dialog}"),
            // It belongs to its INVITE, four messages before (RFC 3261 section 17.1.1.3).
            ("INVITE", _) => {
                acknowledged(number, &fragment("dialog").replace("[branch]", "[branch-4]"))
            }
            _ => String::new(),
        };
        format!(
            "<send retrans=\"500\">\n<![CDATA[\n{method} [$target] SIP/2.0\n{{dialog}}\nCSeq: {number} {method}\nContact: <sip:sipp@{{contact}}>\n{says}\n]]>\n</send>\n\
             <recv request=\"INVITE\" optional=\"true\"/>\n\
             <recv response=\"100\" optional=\"true\"/>\n\
             <recv response=\"{code}\"><action><ereg regexp=\"{answer}\" search_in=\"msg\" check_it=\"true\" assign_to=\"said\"/></action></recv>\n\
             {ack}"
        )
    });
    steps.collect()
}

fn acknowledged(number: usize, dialog: &str) -> String {
    format!(
        "<send>\n<![CDATA[\nACK [$target] SIP/2.0\n{dialog}\nCSeq: {number} ACK\n{{empty}}\n]]>\n</send>\n"
    )
}

/// A body of this type.
fn body(kind: &str, body: &str) -> String {
    format!("Content-Type: {kind}\nContent-Length: [len]\n\n{body}")
}

const METHODS: &str = "Allow: INVITE, ACK, CANCEL, BYE, OPTIONS, INFO, UPDATE, PRACK";
const EVERYTHING: &str = "Accept: application/sdp|Supported: 100rel, timer";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_sipp_asks_before_and_after_the_answer_gets_what_fits() {
    let key = body("application/dtmf-relay", "Signal=1\nDuration=160");
    let unknown_codec = description().replace("RTP/AVP 8 101", "RTP/AVP 97 101");
    let with_video = format!(
        "{}\nm=video 9 RTP/AVP 96\na=rtpmap:96 H264/90000",
        description()
    );
    let early = [
        question("OPTIONS", "{empty}", 200, METHODS),
        // A key that nobody was asked for.
        question("INFO", &key, 200, "200 OK"),
        // Our own offer is not answered, and our INVITE is not over (RFC 3261 section 14.2).
        question("UPDATE", "{sdp}", 491, "491"),
        question("INVITE", "{sdp}", 491, "491"),
        question(
            "UPDATE",
            body("text/plain", "hello"),
            415,
            "Accept: application/sdp",
        ),
    ];
    let later = [
        question("OPTIONS", "{empty}", 200, METHODS),
        question("OPTIONS", "{empty}", 200, EVERYTHING),
        question(
            "OPTIONS",
            "Require: unheard-of\n{empty}",
            420,
            "Unsupported: unheard-of",
        ),
        question("INFO", "{empty}", 200, "200 OK"),
        question("NOTIFY", "Event: x\n{empty}", 405, METHODS),
        question(
            "REFER",
            "Refer-To: <sip:elsewhere@example.com>\n{empty}",
            405,
            METHODS,
        ),
        question(
            "UPDATE",
            body("text/plain", "hello"),
            415,
            "Accept: application/sdp",
        ),
        question("UPDATE", unknown_codec.clone(), 488, "488"),
        question("INVITE", unknown_codec, 488, "488"),
        // What we do not take of an offer is refused in its place (RFC 3264 section 6).
        question("INVITE", with_video, 200, "m=audio [1-9].*m=video 0 "),
    ];
    let sipp = Play::new("questions")
        .key("early questions", asked(&early, 1))
        .key("questions", asked(&later, early.len() + 1))
        .start()
        .await;
    let trunk = trunk_to(sipp.address).await;
    let stop = tokio_util::sync::CancellationToken::new();
    let request = call_request(vec![PlaybackItem::Sound(sound(1500))]);
    let phone = caller();
    let calling = call_telling(&phone, &trunk, request, &stop, |_| ());
    let last = format!("sent ACK {0} ACK", early.len() + later.len());
    let asking = async {
        sipp.has(&last).await;
        stop.cancel();
    };
    let (story, ()) = tokio::join!(calling, asking);
    assert_eq!(story.course(), ["dialling", "ringing", "answered"]);
    assert!(story.legs[0].keys.is_empty(), "{story:?}");
    assert_eq!(story.talked().1, Side::Us);
    sipp.end_satisfied().await;
}
