//! The callee of every job: answers at once and hears the message to its end.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use g711::Codec;
use phone::call::MediaConfig;
use phone::ending::Side;
use phone::signalling::{SignallingConfig, Transport};
use phone::test_phone::{HeardCall, Script, TestPhone, TestPhoneConfig};
use supervisor::Supervisor;

use super::ledger::Ledger;

#[derive(Debug)]
pub struct BenchTelephone(TestPhone);

impl BenchTelephone {
    /// What it does is said by the number that is called.
    pub async fn start(
        ledger: &Arc<Ledger>,
        script: impl Fn(&str) -> Script + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        let here = Ipv4Addr::LOCALHOST;
        let config = TestPhoneConfig {
            sip: SignallingConfig::new(Transport::Udp, (here, 0).into()),
            // Below the ports that are handed out to everybody.
            media: MediaConfig::new(here.into(), 20_000..=31_999),
            codecs: Codec::ALL.to_vec(),
            credentials: None,
        };
        let note = Arc::clone(ledger);
        let (phone, mut heard) = TestPhone::start(&Supervisor::new(), &config, move |number| {
            let now = Instant::now();
            note.record(bare(number), |job| job.invited = Some(now));
            script(bare(number))
        })
        .await?;
        let note = Arc::clone(ledger);
        tokio::spawn(async move {
            while let Some(call) = heard.recv().await {
                let now = Instant::now();
                note.record(bare(&call.number), |job| {
                    job.hung_up = Some(now);
                    job.heard = is_whole(&call);
                });
            }
        });
        Ok(Self(phone))
    }

    pub fn address(&self) -> SocketAddr {
        self.0.contact()
    }
}

/// Every packet came, and the caller hung up when it was done.
fn is_whole(call: &HeardCall) -> bool {
    call.answered
        && call.hung_up_by == Some(Side::Them)
        && !call.packets.is_empty()
        && call.lost() == 0
}

/// The number as the application has written it.
fn bare(number: &str) -> &str {
    number.strip_prefix("+86").unwrap_or(number)
}
