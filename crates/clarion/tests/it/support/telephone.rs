//! A telephone outside the server: it answers by a script, and a test can look at everything that reached it.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use clarion::domain::call::CallSid;
use g711::Codec;
use phone::call::MediaConfig;
use phone::ending::Side;
use phone::signalling::{SignallingConfig, Transport};
use phone::test_phone::{HeardCall, Script, TestPhone, TestPhoneConfig};
use supervisor::Supervisor;

use super::eventually;

/// Tolerance for late packets on a busy machine, which would make two calls seem to overlap.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// An INVITE that has arrived.
#[derive(Debug, Clone)]
pub struct Dialled {
    pub number: String,
    pub at: Instant,
}

#[derive(Default)]
struct Seen {
    dialled: Vec<Dialled>,
    heard: Vec<HeardCall>,
}

pub struct Telephone {
    phone: TestPhone,
    seen: Arc<Mutex<Seen>>,
}

impl Telephone {
    pub async fn start(script: impl Fn(&str) -> Script + Send + 'static) -> Self {
        let sip = SignallingConfig::new(Transport::Udp, (Ipv4Addr::LOCALHOST, 0).into());
        Self::start_with(sip, script).await
    }

    /// Starts a telephone over TLS, with this certificate and key.
    pub async fn over_tls(
        own: (String, String),
        script: impl Fn(&str) -> Script + Send + 'static,
    ) -> Self {
        let mut sip = SignallingConfig::new(Transport::Tls, (Ipv4Addr::LOCALHOST, 0).into());
        sip.tls.own = Some((own.0.into_bytes(), own.1.into_bytes()));
        Self::start_with(sip, script).await
    }

    async fn start_with(
        sip: SignallingConfig,
        script: impl Fn(&str) -> Script + Send + 'static,
    ) -> Self {
        let here = Ipv4Addr::LOCALHOST;
        let config = TestPhoneConfig {
            sip,
            media: MediaConfig::new(here.into(), 30_000..=39_999),
            codecs: Codec::ALL.to_vec(),
            credentials: None,
        };
        let seen = Arc::new(Mutex::new(Seen::default()));
        let note = Arc::clone(&seen);
        let (phone, mut heard) = TestPhone::start(&Supervisor::new(), &config, move |number| {
            note.lock().unwrap().dialled.push(Dialled {
                number: number.to_owned(),
                at: Instant::now(),
            });
            script(number)
        })
        .await
        .unwrap();
        let note = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Some(call) = heard.recv().await {
                note.lock().unwrap().heard.push(call);
            }
        });
        Self { phone, seen }
    }

    /// Starts a telephone that answers every call by the same script.
    pub async fn that(script: Script) -> Self {
        Self::start(move |_| script.clone()).await
    }

    /// Returns the settings of a trunk that leads here. `more` comes last.
    pub fn trunk(&self, name: &str, more: &str) -> String {
        format!(
            "[[trunk]]\nname = \"{name}\"\nhost = \"{}\"\nbind = \"127.0.0.1:0\"\noptions_seconds = 0\nprefixes = [\"\"]\n{more}\n",
            self.phone.contact()
        )
    }

    /// Returns the settings of such a trunk with enough channels for any test.
    pub fn wide_trunk(&self, name: &str, more: &str) -> String {
        self.trunk(
            name,
            &format!("channels = 100\ncalls_per_second = 200\n{more}"),
        )
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap()
    }

    pub fn dialled(&self) -> Vec<Dialled> {
        self.seen().dialled.clone()
    }

    pub fn heard(&self) -> Vec<HeardCall> {
        self.seen().heard.clone()
    }

    /// Returns the most calls that were there at the same time. A call that this telephone has hung up was there from its INVITE to that
    /// moment. For any other call only its packets count, because this telephone may notice a hang-up later than the caller, who may
    /// already have begun another call.
    pub fn peak_concurrency(&self) -> usize {
        let time = |call: &HeardCall| {
            if call.hung_up_by == Some(Side::Us) {
                return Some((call.invited, call.ended));
            }
            let (first, last) = (call.packets.first()?, call.packets.last()?);
            Some((first.arrived, last.arrived.checked_sub(LAST_WORDS)?))
        };
        let times: Vec<_> = self.seen().heard.iter().filter_map(time).collect();
        let at = |moment| {
            let sounds = |(from, until): &&(Instant, Instant)| (*from..*until).contains(&moment);
            times.iter().filter(sounds).count()
        };
        times.iter().map(|(from, _)| at(*from)).max().unwrap_or(0)
    }

    /// Waits until a call is over, and returns what was heard of it.
    pub async fn has_heard(&self, sid: &CallSid) -> HeardCall {
        let find = || {
            let of = |call: &&HeardCall| call.call_id.starts_with(sid.as_str());
            self.seen().heard.iter().find(of).cloned()
        };
        eventually("a call is over", async || find().is_some()).await;
        find().unwrap()
    }

    /// Returns the number of dialogs and of transactions that are open now.
    pub fn open(&self) -> (usize, usize) {
        self.phone.open()
    }
}
