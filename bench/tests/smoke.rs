//! A short form of the bench, so that it cannot rot: every measurement once, on both databases. The figures of a debug build mean nothing.

use std::path::Path;
use std::process::Command;

const BENCH: &str = env!("CARGO_BIN_EXE_clarion-bench");

/// Runs the bench with these options; the document that it has written holds all that is wanted.
fn measure(options: &[&str], wanted: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("measured.md");
    let output = Command::new(BENCH)
        .args(options)
        .arg("--dir")
        .arg(folder.path())
        .arg("--write-table")
        .arg(&table)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let written = std::fs::read_to_string(&table).unwrap();
    for text in wanted {
        assert!(written.contains(text), "no {text} in {written}");
    }
    written
}

#[test]
fn every_measurement_runs_once() {
    let sizes = "accepts --rows 1000 --seconds 1 --rounds 1 --stall-seconds 0 --commit-rounds 1 --patience 0";
    measure(
        &sizes.split(' ').collect::<Vec<_>>(),
        &[
            "SQLite",
            "PostgreSQL",
            "| server / plain loop |",
            "| p99.9 of the server's commits at most 3 times that of the plain loop | SQLite",
            "(too few rounds) | inconclusive |",
            "<!-- accepts -->",
            "<!-- /accepts -->",
        ],
    );
}

#[test]
fn the_console_is_measured_once() {
    let sizes =
        "console --calls 500 --accounts 3 --times 1 --rounds 1 --rate 5 --seconds 1 --watchers 2";
    measure(
        &sizes.split(' ').collect::<Vec<_>>(),
        &[
            "| Calls over a trunk that is not there |",
            "| PostgreSQL",
            "| too few rounds | 1 | inconclusive |",
        ],
    );
}

#[test]
fn calls_are_measured_once() {
    let rates = "calls --seconds 1 --short-rates 20 --long-rates 2 --sipp-rates 20";
    measure(
        &rates.split(' ').collect::<Vec<_>>(),
        &["20 of 20 | 1000 of 1000", "2 of 2 | 1000 of 1000"],
    );
}

#[test]
fn the_measurements_of_sound_run_once() {
    measure(
        &["sound", "--texts", "2", "--prompts", "100"],
        &["Chinese", "From memory", "48000 Hz", "<!-- /sound -->"],
    );
}

#[test]
fn voices_are_measured_once() {
    measure(
        &["voices", "--texts", "2"],
        &["| espeak | English |", "| espeak | Chinese |"],
    );
}

#[test]
fn the_measurements_of_bills_run_once() {
    measure(
        &["bills", "--lines", "5000", "--seconds", "1"],
        &[
            "SQLite",
            "PostgreSQL",
            "5000 lines",
            "times as fast",
            "| closing at least as fast as the database's own export | PostgreSQL",
            "<!-- /bills -->",
        ],
    );
}

#[test]
fn whole_jobs_are_measured_once() {
    let load = "job --seconds 1 --rates 3,5 --connections 4 --text hi";
    measure(
        &load.split(' ').collect::<Vec<_>>(),
        &[
            "SQLite",
            "PostgreSQL",
            "| 3 | 3 of 3 |",
            "| 5 | 5 of 5 |",
            "<!-- /job -->",
        ],
    );
}

#[test]
fn noisy_neighbours_are_measured_once() {
    let sizes = "neighbours --database sqlite --calls 8 --rate 4 --rounds 1";
    measure(
        &sizes.split(' ').collect::<Vec<_>>(),
        &[
            "SQLite",
            "| request → INVITE |",
            "| hang-up → callback |",
            "| too few rounds | inconclusive |",
            // How many is a matter of the machine.
            "of 8 calls done beside the noise",
            "<!-- /neighbours -->",
        ],
    );
}

/// One round says nothing about speed, whatever the machine is doing: the verdict must say that.
#[test]
fn a_version_is_compared_with_itself() {
    let written = compare_with_itself(
        "--workloads accepts,bills",
        &[
            "in the order base, new, new, base",
            "| accepts on SQLite | processor per accept |",
            "| bills | processor for closing the day |",
            "| too few rounds | 3 % | inconclusive |",
        ],
    );
    assert!(!written.contains("slower |"), "{written}");
}

#[test]
fn two_versions_are_measured_at_once() {
    let written = compare_with_itself(
        "--workloads calls,job --together",
        &[
            "both at the same time, each under half of the load",
            "| calls | processor per call of 1 s |",
            "| job on SQLite | processor per job |",
            "| too few rounds | 3 % | inconclusive |",
        ],
    );
    assert!(!written.contains("slower |"), "{written}");
}

fn compare_with_itself(workloads: &str, wanted: &[&str]) -> String {
    let folder = Path::new(BENCH).parent().unwrap().to_str().unwrap();
    let sizes = "--database sqlite --rounds 1 --seconds 1 --percent 4 --base-name one --new-name other --base";
    let options = format!("compare {workloads} {sizes}");
    let options: Vec<_> = options.split(' ').chain([folder]).collect();
    let names = ["Base `one`, new `other`", "<!-- /compare -->"];
    measure(&options, &[&names, wanted].concat())
}
