//! SIPp as registrar.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use phone::signalling::{Resolver, Signalling, SignallingConfig, SipCredentials, Trace, Transport};
use phone::trunk::{Health, SipTrunkConfig, Trunk};
use supervisor::Supervisor;

use super::Play;
use crate::lab::{PATIENCE, eventually, loopback};

pub fn registering(address: std::net::SocketAddr) -> SipTrunkConfig {
    SipTrunkConfig {
        credentials: Some(SipCredentials {
            user: "customer".to_owned(),
            auth_user: None,
            password: "secret".to_owned(),
        }),
        register: Some(Duration::from_secs(3600)),
        ..SipTrunkConfig::new("test", address.into())
    }
}

pub async fn becomes(
    health: &mut tokio::sync::watch::Receiver<Health>,
    wanted: impl FnMut(&Health) -> bool,
) {
    tokio::time::timeout(PATIENCE, health.wait_for(wanted))
        .await
        .expect("the trunk's health changes in time")
        .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_registration_is_proved_renewed_in_time_and_taken_back() {
    let sipp = Play::new("registrar").start().await;
    let granted = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&granted);
    let mut config = SignallingConfig::new(Transport::Udp, loopback());
    config.trace = Some(Trace::new(move |message| {
        let grants = message.text.starts_with("SIP/2.0 200") && message.text.contains("REGISTER");
        count.fetch_add(u32::from(grants), Ordering::Relaxed);
    }));
    let signalling = Arc::new(
        Signalling::start(&Supervisor::new(), &config, None)
            .await
            .unwrap(),
    );
    let trunk = Trunk::start(
        &Supervisor::new(),
        registering(sipp.address),
        signalling,
        Resolver::default(),
    );
    becomes(&mut trunk.health(), |health| *health == Health::Up).await;
    // SIPp has granted three seconds and does not look at the clock; that they are kept is said by the trunk's own test.
    eventually("the registration is renewed", || {
        granted.load(Ordering::Relaxed) == 2
    })
    .await;
    trunk.stop();
    sipp.end_satisfied().await;
}
