//! SIPp as registrar.

use std::time::Duration;

use phone::signalling::Credentials;
use phone::trunk::{Health, TrunkConfig};

use super::Play;
use crate::lab::{PATIENCE, trunk};

fn registering(address: std::net::SocketAddr) -> TrunkConfig {
    TrunkConfig {
        credentials: Some(Credentials {
            user: "customer".to_owned(),
            password: "secret".to_owned(),
        }),
        register: Some(Duration::from_secs(3600)),
        ..TrunkConfig::new("test", address.into())
    }
}

async fn becomes(
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
    let began = std::time::Instant::now();
    let trunk = trunk(registering(sipp.address)).await;
    becomes(&mut trunk.health(), |health| *health == Health::Up).await;
    // The renewal is due after 1.6 of the two seconds; SIPp expects it before the registration is taken back.
    crate::lab::eventually("the registration is renewed", || {
        began.elapsed() > Duration::from_millis(2200)
    })
    .await;
    trunk.stop();
    sipp.end_satisfied().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trunk_whose_registrar_refuses_is_down_until_it_does_not() {
    let sipp = Play::new("grudging_registrar").start().await;
    let trunk = trunk(registering(sipp.address)).await;
    let mut health = trunk.health();
    becomes(&mut health, |health| !health.usable()).await;
    let Health::Down { why } = health.borrow().clone() else {
        panic!("it is up again")
    };
    assert!(why.contains("403"), "{why}");
    becomes(&mut health, |health| *health == Health::Up).await;
    sipp.end_satisfied().await;
}
