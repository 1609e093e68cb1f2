//! Keeps us registered with a trunk that wants it.

use std::sync::Arc;
use std::time::Duration;

use supervisor::Watch;
use tokio::sync::watch;

use super::Trunk;
use super::health::{Checks, Health, HealthSource};
use crate::signalling::{Registered, Registration};

/// A registration is renewed when this part of it is over.
const RENEW_AFTER: f64 = 0.8;
const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// While it is our duty and until the trunk is stopped, registers and renews; then takes the registration back.
pub(super) async fn keep_registered(trunk: Arc<Trunk>, time: Duration, watch: Watch) {
    let mut duty = trunk.duty.clone();
    while trunk
        .unless_stopped(becomes(&mut duty, true))
        .await
        .is_some()
    {
        let mut registration = None;
        tokio::select! {
            _ = trunk.unless_stopped(becomes(&mut duty, false)) => {}
            () = renew(&trunk, &mut registration, time, &watch) => {}
        }
        // Whoever has the duty now knows whether the trunk is there.
        trunk.note_health(HealthSource::Registration, Health::Unknown);
        if let Some(mut registration) = registration {
            let _ = trunk
                .signalling()
                .register(&mut registration, Duration::ZERO)
                .await;
        }
    }
    watch.release();
}

/// Waits until it is so; for ever if nobody can change it any more.
async fn becomes(duty: &mut watch::Receiver<bool>, wanted: bool) {
    if duty.wait_for(|is| *is == wanted).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Never comes back.
async fn renew(
    trunk: &Trunk,
    registration: &mut Option<Registration>,
    time: Duration,
    watch: &Watch,
) {
    let mut checks = Checks::new(HealthSource::Registration, LONGEST_PAUSE);
    loop {
        let registered = Box::pin(register(trunk, registration, time)).await;
        watch.heartbeat();
        tokio::time::sleep(checks.judge(trunk, registered)).await;
    }
}

/// Registers with the first address that accepts it. Returns the time until the next renewal.
async fn register(
    trunk: &Trunk,
    current: &mut Option<Registration>,
    time: Duration,
) -> Result<Duration, String> {
    let Some(credentials) = trunk.config.credentials.clone() else {
        return Err("a registration needs a user and a password".to_owned());
    };
    let signalling = trunk.signalling();
    let mut why = String::new();
    for address in trunk.addresses().await? {
        // The same registration goes on as long as the address does: same Call-ID, growing CSeq.
        let registration = match current.take() {
            Some(known) if known.destination() == address => known,
            _ => signalling
                .registration(&trunk.config.domain(), address, credentials.clone())
                .map_err(|error| error.to_string())?,
        };
        // It is kept at once: even a registration that is interrupted by `stop` is taken back.
        let registration = current.insert(registration);
        match signalling.register(registration, time).await {
            Ok(Registered::For(granted)) => {
                return Ok(renewed_after(granted));
            }
            Ok(Registered::Refused(code)) => {
                why = format!("{address} refuses the registration with {code}");
            }
            Ok(Registered::Silence) => why = format!("{address} does not answer"),
            Err(error) => why = error.to_string(),
        }
    }
    Err(why)
}

/// A registration that was granted for this long is renewed after the result.
fn renewed_after(granted: Duration) -> Duration {
    granted.mul_f64(RENEW_AFTER).max(SHORTEST_INTERVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registration_is_renewed_before_it_ends_and_not_all_the_time() {
        for seconds in [2, 3, 60, 3600] {
            let granted = Duration::from_secs(seconds);
            assert!(renewed_after(granted) < granted, "{seconds}");
            assert!(renewed_after(granted) >= granted / 2, "{seconds}");
        }
        assert_eq!(renewed_after(Duration::ZERO), SHORTEST_INTERVAL);
    }
}
