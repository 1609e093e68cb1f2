//! Which addresses the server lets itself be sent to.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use clarion::callbacks::delivery::{WebhookResponse, WebhookSender};
use clarion::config::Config;
use clarion::domain::callback::{
    CallbackKey, CallbackLease, CallbackState, ClaimedCallback, DeliveryResult, RespUrl,
};
use clarion::domain::intake::IntakeFormat;
use clarion::outgoing::resolver::Resolve;
use jiff::SignedDuration;

use crate::alerting::Intake;
use crate::calls::stage::Stage;
use crate::support::owed::{key, now};
use crate::support::receiver::{Receiver, ok};
use crate::support::{SID, TestServer, app_id, eventually};

#[tokio::test]
async fn addresses_that_are_not_public_are_blocked_and_given_up_at_once() {
    let server = TestServer::start().await;
    let receiver = Receiver::start(vec![ok()]).await;
    let port = receiver.address.port();
    let hosts = [
        "127.0.0.1",
        "127.0.0.2",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "017700000001",
        "0",
        "0.0.0.0",
        "localhost",
        "LOCALHOST",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[64:ff9b:1::7f00:1]",
        "[2002:7f00:1::]",
        "[2001::1]",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "2852039166",
        "0xa9fea9fe",
        "100.64.0.1",
        "100.100.100.200",
        "192.0.2.1",
        "198.18.0.1",
        "203.0.113.1",
        "224.0.0.1",
        "255.255.255.255",
        "[fd00:ec2::254]",
        "[fc00::1]",
        "[fe80::1]",
        "[fec0::1]",
        "[ff02::1]",
        "[2001:db8::1]",
    ];
    let urls: Vec<_> = hosts
        .iter()
        .map(|host| format!("http://{host}:{port}/"))
        .collect();
    server.owe(&urls).await;
    for (number, host) in (1..).zip(hosts) {
        let attempts = server.callback_is(number, CallbackState::GivenUp).await;
        assert_eq!(attempts.len(), 1, "{host}");
        assert_eq!(
            attempts[0].verdict,
            DeliveryResult::Blocked,
            "{host}: {attempts:?}"
        );
        let error = attempts[0].error.as_deref().unwrap();
        assert!(error.contains("callbacks.allowed_networks"), "{error}");
    }
    assert_eq!(receiver.connections(), 0);
}

/// Whatever else is owed beside the final callback takes the same way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_and_silences_go_through_the_address_policy() {
    let stage = Stage::new("[dispatch]\nring_seconds = 1\n").await;
    let within = "http://10.0.0.1:9093";
    let fields = format!("\"mediaTxt\":\"x\",\"callStateUrl\":\"{within}/\"");
    let call = stage.call("13800000005", &fields).await;
    let event = CallbackKey { call, seq: 1 };
    let settings = [
        ("to", "13800000012"),
        ("silence-key", "1"),
        ("silence-url", within),
    ];
    let intake = Intake::add(&stage.server, "prod", IntakeFormat::Alertmanager, &settings).await;
    let group = r#"{"version":"4","groupKey":"g","status":"firing","groupLabels":{"alertname":"Down"},"alerts":[{"status":"firing","labels":{"alertname":"Down"}}]}"#;
    let silence = CallbackKey::of_silence(intake.send(group).await.call());
    for key in [event, silence] {
        eventually("it is given up", async || {
            let owed = stage.server.store.callback(&key).await.unwrap();
            owed.is_some_and(|(owed, _)| owed.state == CallbackState::GivenUp)
        })
        .await;
        let (_, attempts) = stage.server.store.callback(&key).await.unwrap().unwrap();
        assert_eq!(attempts.len(), 1, "{attempts:?}");
        assert_eq!(attempts[0].verdict, DeliveryResult::Blocked);
    }
}

#[tokio::test]
async fn credentials_and_other_schemes_are_refused_before_anything_is_owed() {
    for url in [
        "http://u:p@example.com/",
        "http://u@example.com/",
        "ftp://example.com/",
        "file:///etc/passwd",
        "gopher://127.0.0.1/",
    ] {
        assert!(RespUrl::parse(url).is_err(), "{url}");
    }
}

/// Says something else each time it is asked.
#[derive(Debug)]
struct Liar {
    answers: Mutex<Vec<Vec<SocketAddr>>>,
    asked: AtomicUsize,
}

impl Liar {
    fn new(answers: Vec<Vec<SocketAddr>>) -> Arc<Self> {
        Arc::new(Self {
            answers: Mutex::new(answers),
            asked: AtomicUsize::new(0),
        })
    }
}

#[async_trait]
impl Resolve for Liar {
    async fn resolve(&self, _: &str, _name: &str, _port: u16) -> io::Result<Vec<SocketAddr>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let mut answers = self.answers.lock().unwrap();
        if answers.len() > 1 {
            return Ok(answers.remove(0));
        }
        Ok(answers[0].clone())
    }
}

/// 127.0.0.2 stands for a public address, because the operator allows it and nothing else.
async fn deliver_by(resolver: &Arc<Liar>) -> WebhookResponse {
    let settings = "[callbacks]\nallowed_networks = [\"127.0.0.2\"]\ntime_limit_seconds = 5\n";
    let config = Config::from_parts(settings, &[]).unwrap();
    let resolver: Arc<dyn Resolve> = Arc::clone(resolver) as _;
    let sender = WebhookSender::new(&config.callbacks, resolver).unwrap();
    let callback = ClaimedCallback {
        lease: CallbackLease {
            key: key(1),
            fence: 1,
        },
        account: SID.parse().unwrap(),
        app: app_id(),
        webhook_id: "msg_1".into(),
        url: RespUrl::parse("http://rebinding.example/").unwrap(),
        body: "x".into(),
        secret: None,
        lag: SignedDuration::ZERO,
        time_left: None,
        attempts: 0,
        failures: 0,
    };
    let delivered = sender.deliver(&callback, now(), |_| true).await;
    delivered.expect("there is a place")
}

#[tokio::test]
async fn a_name_that_turns_from_a_public_to_a_private_address_does_not_get_through() {
    let inside = Receiver::start(vec![ok()]).await;
    let outside = SocketAddr::from(([127, 0, 0, 2], inside.address.port()));
    let liar = Liar::new(vec![vec![outside], vec![inside.address]]);
    // The first answer is judged and connected to; nobody asks a second time in between.
    let reply = deliver_by(&liar).await;
    assert_eq!(reply.verdict, DeliveryResult::Unreachable, "{reply:?}");
    assert_eq!(liar.asked.load(Ordering::Relaxed), 1);
    let reply = deliver_by(&liar).await;
    assert_eq!(reply.verdict, DeliveryResult::Blocked);
    assert_eq!(inside.connections(), 0);
}

#[tokio::test]
async fn of_several_addresses_only_admitted_ones_are_tried() {
    let inside = Receiver::start(vec![ok()]).await;
    let outside = SocketAddr::from(([127, 0, 0, 2], inside.address.port()));
    let liar = Liar::new(vec![vec![inside.address, outside, inside.address]]);
    let reply = deliver_by(&liar).await;
    assert_eq!(reply.verdict, DeliveryResult::Unreachable, "{reply:?}");
    assert_eq!(inside.connections(), 0);
    let nothing = Liar::new(vec![vec![]]);
    assert_eq!(
        deliver_by(&nothing).await.verdict,
        DeliveryResult::Unreachable
    );
}
