//! A short form of the bench, so that it cannot rot: every measurement once, on both databases. The figures of a debug build mean nothing.

use std::path::Path;
use std::process::Command;

#[test]
fn every_measurement_runs_once() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("measured.md");
    let output = Command::new(env!("CARGO_BIN_EXE_clarion-bench"))
        .args([
            "accepts",
            "--rows",
            "1000",
            "--seconds",
            "1",
            "--rounds",
            "1",
            "--stall-seconds",
            "0",
            "--patience",
            "0",
        ])
        .arg("--dir")
        .arg(folder.path())
        .arg("--write-table")
        .arg(&table)
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{printed}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let written = std::fs::read_to_string(&table).unwrap();
    for wanted in [
        "SQLite",
        "PostgreSQL",
        "<!-- accepts -->",
        "<!-- /accepts -->",
    ] {
        assert!(written.contains(wanted), "no {wanted} in {written}");
    }
}

#[test]
fn calls_are_measured_once() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("measured.md");
    let output = Command::new(env!("CARGO_BIN_EXE_clarion-bench"))
        .args(["calls", "--seconds", "1", "--short-rates", "20"])
        .args(["--long-rates", "2", "--sipp-rates", "20", "--dir"])
        .arg(folder.path())
        .arg("--write-table")
        .arg(&table)
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{printed}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let written = std::fs::read_to_string(&table).unwrap();
    for wanted in ["20 of 20 | 1000 of 1000", "2 of 2 | 1000 of 1000"] {
        assert!(written.contains(wanted), "no {wanted} in {written}");
    }
}

#[test]
fn the_measurements_of_sound_run_once() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("measured.md");
    let output = Command::new(env!("CARGO_BIN_EXE_clarion-bench"))
        .args(["sound", "--texts", "2", "--prompts", "100"])
        .arg("--dir")
        .arg(folder.path())
        .arg("--write-table")
        .arg(&table)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let written = std::fs::read_to_string(&table).unwrap();
    for wanted in ["Chinese", "From memory", "48000 Hz", "<!-- /sound -->"] {
        assert!(written.contains(wanted), "no {wanted} in {written}");
    }
}

#[test]
fn the_measurements_of_bills_run_once() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("measured.md");
    let output = Command::new(env!("CARGO_BIN_EXE_clarion-bench"))
        .args(["bills", "--lines", "5000", "--seconds", "1", "--dir"])
        .arg(folder.path())
        .arg("--write-table")
        .arg(&table)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let written = std::fs::read_to_string(&table).unwrap();
    for wanted in [
        "SQLite",
        "PostgreSQL",
        "5000 lines",
        "times as fast",
        "| closing at least as fast as the database's own export | PostgreSQL",
        "<!-- /bills -->",
    ] {
        assert!(written.contains(wanted), "no {wanted} in {written}");
    }
}

#[test]
fn whole_jobs_are_measured_once() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("measured.md");
    let output = Command::new(env!("CARGO_BIN_EXE_clarion-bench"))
        .args(["job", "--seconds", "1", "--rates", "3,5"])
        .args(["--connections", "4", "--text", "hi", "--dir"])
        .arg(folder.path())
        .arg("--write-table")
        .arg(&table)
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{printed}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let written = std::fs::read_to_string(&table).unwrap();
    for wanted in [
        "SQLite",
        "PostgreSQL",
        "| 3 | 3 of 3 |",
        "| 5 | 5 of 5 |",
        "<!-- /job -->",
    ] {
        assert!(written.contains(wanted), "no {wanted} in {written}");
    }
}

/// One round says nothing about speed, whatever the machine is doing: the verdict must say that.
#[test]
fn a_version_is_compared_with_itself() {
    let bench = Path::new(env!("CARGO_BIN_EXE_clarion-bench"));
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("measured.md");
    let output = Command::new(bench)
        .args(["compare", "--rounds", "1", "--seconds", "1"])
        .args(["--percent", "2", "--database", "sqlite", "--base"])
        .arg(bench.parent().unwrap())
        .args(["--base-name", "one", "--new-name", "other", "--dir"])
        .arg(folder.path())
        .arg("--write-table")
        .arg(&table)
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{printed}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let written = std::fs::read_to_string(&table).unwrap();
    for wanted in [
        "Base `one`, new `other`",
        "| calls | processor per call of 1 s |",
        "| job on SQLite | processor per job |",
        "| accepts on SQLite | processor per accept |",
        "| bills | processor for closing the day |",
        "| sound | processor for the whole run |",
        "| too few rounds | 3 % | inconclusive |",
        "<!-- /compare -->",
    ] {
        assert!(written.contains(wanted), "no {wanted} in {written}");
    }
    assert!(!written.contains("slower |"), "{written}");
}
