//! What an operator does to calls and trunks from the command line, beside a running server.

use serde_json::{Value, json};

use crate::support::child::{Caller, ChildServer, Installation};
use crate::support::{SID, eventually};

/// A server whose only trunk leads to the telephone inside it.
struct Desk {
    site: Installation,
    server: ChildServer,
}

const TRUNK: &str = "[[trunk]]\nname = \"lab\"\nloopback = true\nchannels = 20\ncalls_per_second = 50\nprefixes = [\"\"]\n";

impl Desk {
    async fn open() -> Self {
        Self::open_after(&[]).await
    }

    /// With a command that is given before the server starts.
    async fn open_after(first: &[&str]) -> Self {
        let site = Installation::with_settings(None, TRUNK).await;
        if !first.is_empty() {
            assert!(site.clarion(first).await.status.success());
        }
        let server = site.start().await;
        Self { site, server }
    }

    async fn says(&self, arguments: &[&str]) -> String {
        self.site.says(arguments).await
    }

    async fn refuses(&self, arguments: &[&str]) -> String {
        let output = self.site.clarion(arguments).await;
        assert!(!output.status.success(), "{arguments:?} succeeded");
        String::from_utf8(output.stderr).unwrap()
    }

    async fn json(&self, arguments: &[&str]) -> Value {
        let text = self.says(&[arguments, &["--json"]].concat()).await;
        serde_json::from_str(&text).unwrap()
    }

    async fn sids(&self, arguments: &[&str]) -> Vec<String> {
        let calls = self.json(arguments).await;
        let sid = |call: &Value| call["callSid"].as_str().unwrap().to_owned();
        calls.as_array().unwrap().iter().map(sid).collect()
    }

    async fn call(&self, number: &str) -> String {
        let mut caller = Caller::connect(&self.server.client).await.unwrap();
        let fields = format!("\"to\":\"{number}\",\"mediaTxt\":\"hello\"");
        caller.place(&fields).await.unwrap()
    }

    async fn show(&self, sid: &str) -> Value {
        self.json(&["call", "show", sid]).await
    }

    async fn becomes(&self, sid: &str, name: &str, value: &str) {
        eventually(value, async || self.show(sid).await[name] == value).await;
    }

    /// A call has waited for seconds with every reason to be dialled but the operator's word.
    async fn waits(&self, sid: &str) {
        eventually("it has waited for two seconds", async || {
            let oldest = self.server.metric("clarion_queue_oldest_seconds").await;
            oldest.is_some_and(|seconds| seconds > 2.0)
        })
        .await;
        let call = self.show(sid).await;
        assert_eq!(
            (&call["state"], &call["tries"]),
            (&"queued".into(), &0.into())
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_are_listed_newest_first_and_shown_with_all_that_is_known() {
    let desk = Desk::open().await;
    let busy = desk.call("13800000002").await;
    let ringing = desk.call("13900000003").await;
    let declined = desk.call("13800000004-123").await;
    desk.becomes(&busy, "outcome", "busy").await;
    desk.becomes(&declined, "outcome", "declined").await;
    desk.becomes(&ringing, "state", "ringing").await;

    let mut all = vec![busy.clone(), ringing.clone(), declined.clone()];
    all.sort();
    all.reverse();
    assert_eq!(desk.sids(&["call", "list"]).await, all);
    assert_eq!(desk.sids(&["call", "list", "--account", SID]).await, all);
    let nobody = "f".repeat(32);
    assert!(
        desk.sids(&["call", "list", "--account", &nobody])
            .await
            .is_empty()
    );
    assert_eq!(
        desk.sids(&["call", "list", "--alive"]).await,
        [ringing.as_str()]
    );
    assert_eq!(desk.sids(&["call", "list", "--limit", "1"]).await, all[..1]);
    assert_eq!(
        desk.sids(&["call", "list", "--before", &all[0]]).await,
        all[1..]
    );
    let text = desk.says(&["call", "list"]).await;
    assert_eq!(text.lines().count(), 3);
    assert!(
        !text.contains("13800000002"),
        "a whole number in a list: {text}"
    );

    let shown = desk.show(&busy).await;
    assert_eq!(
        (&shown["trunk"], &shown["sipCode"], &shown["tries"]),
        (&"lab".into(), &486.into(), &1.into())
    );
    for time in ["accepted", "dialled", "ended"] {
        assert!(shown[time].is_string(), "{time}: {shown}");
    }
    assert!(shown["answered"].is_null());
    let (attempt, leg) = (&shown["attempts"][0], &shown["legs"][0]);
    assert_eq!(
        (&attempt["outcome"], &attempt["orderId"], &attempt["to"]),
        (&"busy".into(), &busy.as_str().into(), &shown["to"])
    );
    assert_eq!(
        (&leg["trunk"], &leg["sipCode"], &leg["hungUpBy"]),
        (&"lab".into(), &486.into(), &"nobody".into())
    );
    let text = desk.says(&["call", "show", &busy]).await;
    let legs: Vec<_> = text.split("\nleg ").skip(1).collect();
    assert_eq!(legs.len(), 1, "{text}");
    for line in [
        "  trunk                  lab\n",
        "  response               486 ",
        "  hung up by             nobody",
    ] {
        assert!(legs[0].contains(line), "{text}");
    }
    assert!(!text.contains("13800000002"), "a whole number: {text}");
    assert!(desk.says(&["call", "show", &busy]).await.contains("busy"));
    let unknown = "2".repeat(32);
    assert!(
        desk.refuses(&["call", "show", &unknown])
            .await
            .contains("there is no call")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_story_of_a_call_says_what_was_played_and_pressed_and_who_hung_up() {
    let desk = Desk::open().await;
    let mut caller = Caller::connect(&desk.server.client).await.unwrap();
    let text = "hello and good morning to everybody who listens to this message";
    let fields = format!("\"to\":\"13800000010\",\"mediaTxt\":\"{text}\"");
    let sid = caller.place(&fields).await.unwrap();
    desk.becomes(&sid, "outcome", "talked").await;
    let leg = &desk.show(&sid).await["legs"][0];
    let keys = leg["keys"].as_array().unwrap().iter();
    let keys: Vec<_> = keys
        .map(|pressed| pressed["key"].as_str().unwrap())
        .collect();
    assert_eq!(keys, ["1", "2", "3"]);
    assert_eq!(
        (&leg["hungUpBy"], &leg["hangUpReason"]),
        (&json!("us"), &json!("played"))
    );
    let played = leg["playedSeconds"].as_f64().unwrap();
    assert!(played > 1.0 && leg["messageSeconds"] == played, "{leg}");
    assert!(
        leg["packetsSent"].as_f64().unwrap() >= played * 50.0,
        "{leg}"
    );
    assert!(
        leg["mediaAddress"]
            .as_str()
            .unwrap()
            .starts_with("127.0.0.1:")
    );
    let text = desk.says(&["call", "show", &sid]).await;
    for part in [
        "\n  response               200",
        "\n  hung up by             us: everything was played\n",
        "\n  codec                  PCMA to 127.0.0.1:",
        &format!("\n  message                {played:.1} of {played:.1} s played\n"),
        " s after the answer, 2 ",
        "\n  packets received       ",
        "\n  jitter                 ",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_was_refused_until_it_expired_says_so() {
    let times = "[calls]\nexpire_seconds = 3\n[dispatch]\nretry_seconds = 1\n";
    let site = Installation::with_settings(None, &format!("{times}{TRUNK}")).await;
    let server = site.start().await;
    let desk = Desk { site, server };
    let sid = desk.call("13800000007").await;
    desk.becomes(&sid, "outcome", "expired").await;
    let text = desk.says(&["call", "show", &sid]).await;
    let told = text.contains("in vain; the last trunk, lab, said: 503 ");
    assert!(told && text.contains("\nleg 1\n"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiting_call_is_not_dialled_and_one_under_way_is_hung_up() {
    let desk = Desk::open().await;
    // Two calls to one callee: the second waits for the first.
    let first = desk.call("13800000003").await;
    desk.becomes(&first, "state", "ringing").await;
    let second = desk.call("13800000003").await;
    assert_eq!(
        desk.says(&["call", "cancel", &second]).await,
        format!("{second} will not be dialled\n")
    );
    desk.becomes(&second, "outcome", "cancelled").await;
    assert_eq!(desk.show(&second).await["tries"], 0);
    assert_eq!(
        desk.says(&["call", "cancel", &first]).await,
        format!("{first} is being hung up\n")
    );
    desk.becomes(&first, "outcome", "cancelled").await;
    let again = desk.refuses(&["call", "cancel", &first]).await;
    assert!(again.contains("has ended already"), "{again}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_dialling_is_stopped_and_goes_on() {
    let desk = Desk::open_after(&["call", "stop-all"]).await;
    let sid = desk.call("13800000004").await;
    desk.waits(&sid).await;
    assert_eq!(
        desk.says(&["call", "resume"]).await,
        "calls are dialled again\n"
    );
    desk.becomes(&sid, "outcome", "declined").await;
    // And while it runs.
    desk.says(&["call", "stop-all"]).await;
    eventually("the running server has heard of it", async || {
        desk.server.metric("clarion_dialling_stopped").await == Some(1.0)
    })
    .await;
    let another = desk.call("13800000004").await;
    desk.waits(&another).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_barred_number_is_refused_until_it_is_unbarred() {
    let desk = Desk::open().await;
    let mut caller = Caller::connect(&desk.server.client).await.unwrap();
    assert_eq!(desk.says(&["call", "barred"]).await, "none\n");
    // The number that the caller asks for, in another spelling.
    let bar = ["call", "bar", "+8613800000000"];
    assert_eq!(desk.says(&bar).await, "+8613800000000 is never called\n");
    assert_eq!(
        desk.says(&bar).await,
        "+8613800000000 is never called, as before\n"
    );
    assert_eq!(
        desk.json(&["call", "barred"]).await,
        serde_json::json!(["8613800000000"])
    );
    eventually("it is refused", async || caller.try_call().await.is_none()).await;
    assert_eq!(caller.refused().await, "108035");
    assert_eq!(
        desk.says(&["call", "unbar", "13800000000"]).await,
        "+8613800000000 may be called\n"
    );
    eventually("it is accepted", async || caller.try_call().await.is_some()).await;
    let nonsense = desk.refuses(&["call", "bar", "nobody"]).await;
    assert!(
        nonsense.contains("nobody") || nonsense.contains("number"),
        "{nonsense}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trunk_runs_empty_and_is_opened_again() {
    let desk = Desk::open().await;
    let up = async |wanted: f64| {
        eventually("the trunk's state is seen", async || {
            desk.server.metric("clarion_trunk_up{trunk=\"lab\"}").await == Some(wanted)
        })
        .await;
    };
    up(1.0).await;
    let trunks = desk.json(&["trunk", "list"]).await;
    assert_eq!(
        (
            &trunks[0]["name"],
            &trunks[0]["host"],
            &trunks[0]["state"],
            &trunks[0]["channels"]
        ),
        (
            &"lab".into(),
            &"loopback".into(),
            &"open".into(),
            &20.into()
        )
    );
    let under_way = desk.call("13900000003").await;
    desk.becomes(&under_way, "state", "ringing").await;
    let drained = desk.says(&["trunk", "drain", "lab"]).await;
    assert_eq!(
        drained,
        "lab gets no more calls, until `clarion trunk open lab`\n"
    );
    assert_eq!(desk.json(&["trunk", "list"]).await[0]["state"], "drained");
    up(0.0).await;
    assert_eq!(
        desk.show(&under_way).await["state"],
        "ringing",
        "what is under way goes on"
    );
    let sid = desk.call("13800000004").await;
    desk.waits(&sid).await;
    assert_eq!(desk.says(&["trunk", "open", "lab"]).await, "lab is used\n");
    desk.becomes(&sid, "outcome", "declined").await;
    let unknown = desk.refuses(&["trunk", "drain", "elsewhere"]).await;
    assert!(
        unknown.contains("there is no trunk elsewhere; the configuration has: lab"),
        "{unknown}"
    );
}
