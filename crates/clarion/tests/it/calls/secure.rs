//! Calls over TLS, on which nobody can connect to us.

use std::time::Duration;

use clarion::domain::leg::HungUpBy;
use phone::test_phone::Script;

use super::stage::{Stage, field};
use super::vanished::LONG;
use crate::check::trunks::authority;
use crate::support::telephone::Telephone;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_callee_who_hangs_up_over_tls_is_billed_to_that_moment() {
    let (ca, certificate, key) = authority();
    // The number ends in the tenths of a second after which it hangs up.
    let script = |number: &str| {
        let tenths = number[number.len() - 2..].parse().unwrap();
        Script::hang_up_after(Duration::from_millis(100) * tenths)
    };
    let telephone = Telephone::over_tls((certificate, key), script).await;
    let files = tempfile::tempdir().unwrap();
    let trusted = files.path().join("ca.pem");
    std::fs::write(&trusted, ca).unwrap();
    let more = format!("transport = \"tls\"\nca = {trusted:?}");
    let trunk = telephone.wide_trunk("secure", &more);
    // Where there is no port of ours, the BYE comes on the connection that we have opened.
    let stage = Stage::on(&trunk, "").await;
    for tenths in ["03", "13", "23"] {
        let sid = stage.call(&format!("138000000{tenths}"), LONG).await;
        let report = stage.report_of(&sid).await;
        let heard = telephone.has_heard(&sid).await;
        let legs = stage.legs(&sid).await;
        assert_eq!(legs.len(), 1);
        assert_eq!(legs[0].hung_up_by, HungUpBy::Them);
        let line = stage.bill_line(&sid).await;
        assert_eq!(field(&report, "duration"), line.seconds.to_string());
        let billed = Duration::from_secs(line.seconds.into());
        // It heard us for less than the talk, and its own time is longer by the ways there and back. A second that has begun counts.
        let (first, last) = (
            heard.packets.first().unwrap(),
            heard.packets.last().unwrap(),
        );
        let (least, most) = (last.arrived - first.arrived, heard.talked);
        println!("billed {billed:?}, heard for {least:?}, up for {most:?}");
        assert!(
            billed + SECOND >= least && billed < most + SECOND,
            "{billed:?}, not {least:?} to {most:?}"
        );
        assert!(billed < 8 * SECOND, "not to the end of the message");
    }
}
