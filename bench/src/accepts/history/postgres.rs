//! Fills a PostgreSQL database with COPY, a step of calls and then the step's bill lines.

use std::fmt::Write;
use std::pin::pin;

use bytes::Bytes;
use futures_util::SinkExt;
use tokio_postgres::Client;

use super::super::progress::Progress;
use super::super::site::connect;
use super::past::{BILL_TYPE, CALLER, Past, PastCall};
use super::steps;

const COPY_CALLS: &str = "COPY calls (call_sid, account_sid, app_id, accepted_at, called, number, prompt, resp_url, user_data, outcome, \
   caller, trunk, attempts, dialled_at, rang_at, answered_at, ended_at, sip_code) FROM STDIN";
const COPY_BILL_LINES: &str = "COPY bill_lines (order_id, account_sid, app_id, bill_day, type, call_sid, caller, called, started_at, \
   answered_at, ended_at, seconds, units, rate, fee, outcome, user_data) FROM STDIN";

pub async fn fill(url: &str, past: &Past, progress: &mut Progress) -> anyhow::Result<()> {
    let client = connect(url).await?;
    // The history need not survive a crash of the machine while it is being made.
    client.batch_execute("SET synchronous_commit = off").await?;
    for step in steps(past.calls) {
        let done = step.end;
        let (mut calls, mut bill_lines) = (String::new(), String::new());
        for call in step.map(|order| past.call(order)) {
            write_call(&mut calls, past, &call)?;
            write_bill_line(&mut bill_lines, past, &call)?;
        }
        copy(&client, COPY_CALLS, calls).await?;
        copy(&client, COPY_BILL_LINES, bill_lines).await?;
        progress.show(done);
    }
    // What the database would otherwise do by itself in the middle of a measurement.
    for statement in [
        "VACUUM ANALYZE calls",
        "VACUUM ANALYZE bill_lines",
        "CHECKPOINT",
    ] {
        client.batch_execute(statement).await?;
    }
    Ok(())
}

async fn copy(client: &Client, statement: &str, rows: String) -> anyhow::Result<()> {
    let mut sink = pin!(client.copy_in(statement).await?);
    sink.send(Bytes::from(rows)).await?;
    sink.finish().await?;
    Ok(())
}

/// COPY's text format. None of these texts holds a tab, a line break or a backslash but the prompt, whose backslashes are doubled.
fn write_call(rows: &mut String, past: &Past, call: &PastCall) -> std::fmt::Result {
    let prompt = past.prompt.replace('\\', "\\\\");
    writeln!(
        rows,
        "{}\t{}\t{}\t{}\t{}\t{}\t{prompt}\t{}\t{}\t{}\t{CALLER}\t{}\t1\t{}\t{}\t{}\t{}\t{}",
        call.sid,
        past.account,
        past.app,
        call.accepted_at,
        call.called,
        call.number,
        past.resp_url,
        call.user_data,
        call.outcome.number(),
        call.trunk,
        call.dialled_at,
        or_null(call.rang_at),
        or_null(call.answered_at),
        call.ended_at,
        call.sip_code,
    )
}

fn write_bill_line(rows: &mut String, past: &Past, call: &PastCall) -> std::fmt::Result {
    writeln!(
        rows,
        "{0}\t{1}\t{2}\t{3}\t{BILL_TYPE}\t{0}\t{CALLER}\t{4}\t{5}\t{6}\t{7}\t{8}\t{9}\t{10}\t{11}\t{12}\t{13}",
        call.sid,
        past.account,
        past.app,
        call.day,
        call.called,
        call.dialled_at,
        or_null(call.answered_at),
        call.ended_at,
        call.seconds,
        call.units,
        call.rate,
        call.fee,
        call.outcome.as_str(),
        call.user_data,
    )
}

fn or_null(number: Option<i64>) -> String {
    number.map_or_else(|| "\\N".to_owned(), |number| number.to_string())
}
