//! The whole of it against the real program, whose memory is then looked at.

use super::bodies::send_a_gigabyte;
use super::heads::flood_in_every_way;
use super::http2::{continue_for_ever, leave_bodies_open, reset_rapidly};
use super::{assert_still_serves, code};
use crate::support::APP;
use crate::support::child::Installation;
use crate::support::raw::Door;

/// What all attacks together may add to what the idle server holds: a hundredth of what they send. The busier the machine, the more of them
/// are there at once; 30 to 50 MiB were seen.
const LIMIT: u64 = 96 << 20;

#[tokio::test]
async fn the_servers_memory_stays_bounded_under_attack() {
    let installation = Installation::new(None).await;
    let settings = ["--to", "13800000001", "--format", "grafana", "--app", APP];
    let added = installation
        .says(&[&["intake", "add", "shop"], &settings[..]].concat())
        .await;
    let token = added.split_whitespace().find(|word| word.len() == 64);
    let token = token.expect("a token").to_owned();
    let server = installation.start().await;
    let door = &server.door;
    assert_still_serves(door).await;
    let before = server.peak_memory();

    let deep = "<a>".repeat(20_000);
    let references = format!(
        "<LandingCall><to>{}</to></LandingCall>",
        "&#38;&a;&".repeat(7000)
    );
    // As many alerts as fit into the longest body.
    let mut alerts = br#"{"groupKey":"g","status":"firing","alerts":[{}"#.to_vec();
    alerts.extend(b",{}".repeat((4 << 20) / 3 - 100));
    alerts.extend(b"]}");
    let attacks = (0..20).map(|_| async {
        assert_eq!(code(door, "xml", deep.as_bytes()).await, "112613");
        assert_eq!(code(door, "xml", references.as_bytes()).await, "111169");
        assert_eq!(code(door, "json", &b"[".repeat(60_000)).await, "110141");
        assert_eq!(code(door, "json", &b"x".repeat(1 << 20)).await, "110062");
    });
    futures_util::future::join_all(attacks).await;
    let gigabytes = (0..8).map(|n| send_a_gigabyte(door, n % 2 == 0));
    futures_util::future::join_all(gigabytes).await;
    flood_in_every_way(door).await;
    reset_rapidly(door).await;
    continue_for_ever(door).await;
    let lists = (0..40).map(|_| is_taken(door, &token, &alerts));
    let taken = futures_util::future::join_all(lists).await;
    assert!(taken.contains(&true), "one that has a place is taken");
    let strangers = (0..20).map(|_| leave_bodies_open(door, 100));
    let strangers = futures_util::future::join_all(strangers).await;
    assert_still_serves(door).await;
    drop(strangers);

    let grown = server.peak_memory() - before;
    println!("{} MiB, then {} MiB more", before >> 20, grown >> 20);
    assert!(grown < LIMIT, "{} MiB more", grown >> 20);
    assert_still_serves(door).await;
}

/// An account has two places for long alerts; the others wait for them for a while, and on a busy machine in vain.
async fn is_taken(door: &Door, token: &str, alerts: &[u8]) -> bool {
    let head = format!(
        "POST /intake/shop HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\ncontent-length: {}\r\n\r\n",
        alerts.len()
    );
    let answer = door.send_raw(&[head.as_bytes(), alerts].concat()).await;
    let has_no_place = answer.starts_with("HTTP/1.1 503") && answer.contains("long alerts");
    assert!(
        has_no_place || answer.starts_with("HTTP/1.1 200"),
        "{answer}"
    );
    !has_no_place
}
