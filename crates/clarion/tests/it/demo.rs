//! `make demo`, to the last line: it ends with a bill.

use tokio::process::Command;

use crate::support::PATIENCE;
use crate::support::child::Installation;

/// The demonstration checks what it claims, and fails where it is not so. Here it is made sure that it claims it.
#[tokio::test]
async fn the_demonstration_ends_with_a_bill_that_agrees_with_its_calls() {
    let output = Command::new(env!("CARGO_BIN_EXE_clarion"))
        .arg("demo")
        .output()
        .await
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{error}");
    assert!(!said.contains('\x1b'), "no colours where nobody sees them");
    let (_, bill) = said.split_once("■ Yesterday's bill").unwrap();
    let line = |beginning: &str| -> Vec<&str> {
        let line = bill.lines().find(|line| line.contains(beginning));
        let line = line.unwrap_or_else(|| panic!("no {beginning} in {bill}"));
        line.split_whitespace().collect()
    };
    // The server of this morning is the one that the last start has named, and curl would reach it there.
    let (before, _) = said.split_once("■ Yesterday's bill").unwrap();
    let port = before.rsplit("https://127.0.0.1:").next().unwrap();
    let port = port.split(' ').next().unwrap();
    let address = line("  GET ")[1];
    let wanted = format!("https://localhost:{port}/bills/");
    let token = address
        .strip_prefix(&wanted)
        .and_then(|rest| rest.split_once("?token="));
    let (file, token) = token.unwrap_or_else(|| panic!("{address} is not {wanted}…"));
    assert_eq!((file.len(), token.len()), (32, 32), "{address}");
    assert!(line("  start ").ends_with(&["units", "rate", "fee", "userData"]));
    let code = bill.lines().filter(|line| line.contains(" talked ")).nth(1);
    let code: Vec<_> = code.expect("the code too").split_whitespace().collect();
    let code_units = code[5].parse::<u32>().unwrap();
    let code_seconds = code[4].parse::<u32>().unwrap();
    assert_eq!(code_units, code_seconds.div_ceil(3), "{code:?}");
    assert!(said.contains("<action>VoiceCode</action>"), "{said}");
    let talked = line(" talked ");
    let [seconds, units] = [4, 5].map(|place| talked[place].parse::<u32>().unwrap());
    assert!(seconds > 3, "{talked:?}");
    assert_eq!(units, seconds.div_ceil(3), "{talked:?}");
    assert_eq!(talked[8..], ["order", "42"]);
    let busy = line(" busy ");
    assert_eq!(busy[4..], ["0", "1", "0.01", "0.01"], "{busy:?}");
    let lost = line(" interrupted ");
    assert_eq!(lost[4..], ["0", "0", "0.03", "0.00"], "{lost:?}");
    let missed = line(" not-answered ");
    assert_eq!(missed[4..], ["0", "1", "0.01", "0.01"], "{missed:?}");
    let confirmed = line(" confirmed ");
    let [heard, heard_units] = [4, 5].map(|place| confirmed[place].parse::<u32>().unwrap());
    assert_eq!(heard_units, heard.div_ceil(3), "{confirmed:?}");
    for told in [
        "escalated",
        "key",
        "<confirmNumber>13800000012</confirmNumber><dtmf>1</dtmf>",
    ] {
        assert!(said.contains(told), "{told}: {said}");
    }
    let sum = format!("0.{:02}", (units + code_units + heard_units) * 3 + 2);
    assert_eq!(line("in all")[2], sum);
    for shown in [
        "✓ 5 calls with 6 attempts, 6 lines, each with its callSid",
        &format!(
            "✓ {} s of talk in the bill and by CallResult",
            seconds + code_seconds + heard
        ),
        &format!("✓ the fees add up to {sum},"),
        &format!("the recorded one: 6 lines, {sum} in all"),
    ] {
        assert!(bill.contains(shown), "{shown} in {bill}");
    }
}

/// Elsewhere than on the demonstration's own stage a clock is not to be moved.
#[tokio::test]
async fn a_server_that_can_call_somebody_has_the_clock_of_its_machine() {
    const LOOPBACK: &str = "name = \"loopback\"\nloopback = true";
    const REAL: &str = "name = \"real\"\nhost = \"127.0.0.1:9\"\noptions_seconds = 0";
    for (trunk, listen) in [(REAL, "127.0.0.1:0"), (LOOPBACK, "0.0.0.0:0")] {
        let settings = format!("[[trunk]]\n{trunk}\nprefixes = [\"86\"]\n");
        let installation = Installation::with_settings(None, &settings).await;
        let serving = Command::new(env!("CARGO_BIN_EXE_clarion"))
            .arg("--config")
            .arg(installation.folder.path().join("clarion.toml"))
            .args(["serve", "--demo-clock-ahead", "3600"])
            .env("CLARION_HTTP__LISTEN", format!("[\"{listen}\"]"))
            .kill_on_drop(true)
            .output();
        let output = tokio::time::timeout(PATIENCE, serving).await;
        let output = output.expect("it refuses to start").unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{error}");
        assert!(error.contains("is for the demonstration"), "{error}");
    }
}
