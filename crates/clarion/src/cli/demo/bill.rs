//! The last scene: midnight passes on the demonstration's own clock. The customer gets yesterday's bill and compares it with the calls.

use anyhow::{Context, ensure};

use super::customer::DemoCustomer;
use super::paint::{bold, more, shown, step};
use super::stage::{DemoStage, RunningServer};
use crate::domain::bill::{COLUMNS, csv};
use crate::domain::money::Money;

/// The columns of a line that are shown, and their widths. The other columns would not fit.
const SHOWN: [(&str, usize); 8] = [
    ("start", 19),
    ("called", 11),
    ("outcome", 12),
    ("seconds", 7),
    ("units", 5),
    ("rate", 5),
    ("fee", 5),
    ("userData", 8),
];

pub async fn show(
    stage: &mut DemoStage<'_>,
    server: RunningServer,
    customer: &mut DemoCustomer,
) -> anyhow::Result<RunningServer> {
    step("Midnight: the demonstration moves its own clock on; the machine's stays as it is");
    server.stop().await?;
    let day = stage.pass_midnight()?;
    let server = stage.start().await?;
    customer.connect(stage, &server).await?;
    println!(
        "  it is {} there; {day} is over and closed, and its lines never change again",
        stage.clock.wall().strftime("%Y-%m-%d %H:%M:%S")
    );

    step("Yesterday's bill, asked for and fetched with the token that was granted");
    let bill = Bill::read(&customer.bill().await?)?;
    bill.print()?;
    compare(&bill, customer).await?;
    let day = day.to_string();
    let verdict = stage.command(&["bill", "verify", &day, "--json"]).await?;
    shown(&format!(
        "the file is what its lines say, and its SHA-256 is the recorded one: {} lines, {} in all",
        verdict["lines"],
        verdict["fee"].as_str().unwrap_or_default()
    ));
    more("docs/bills.md: every column, prices, limits, records of other services");
    Ok(server)
}

struct Bill(Vec<Vec<String>>);

impl Bill {
    fn read(file: &str) -> anyhow::Result<Self> {
        let rows = csv::read(file)
            .map_err(|(line, why)| anyhow::anyhow!("line {line} of the bill: {why}"))?;
        let mut rows = rows.into_iter().map(|(_, cells)| cells);
        let header = rows.next().context("a bill has a header")?;
        ensure!(header == COLUMNS, "an unknown header: {header:?}");
        Ok(Self(rows.collect()))
    }

    fn cell(line: &[String], name: &str) -> String {
        let place = COLUMNS.iter().position(|column| *column == name);
        let cell = place.and_then(|place| line.get(place));
        cell.map_or_else(String::new, |cell| csv::unguarded(cell))
    }

    fn amount(line: &[String]) -> anyhow::Result<Money> {
        let fee = Self::cell(line, "fee");
        fee.parse().map_err(anyhow::Error::msg)
    }

    fn sum(&self) -> anyhow::Result<Money> {
        self.0
            .iter()
            .try_fold(Money::ZERO, |sum, line| Ok(sum.plus(Self::amount(line)?)))
    }

    fn print(&self) -> anyhow::Result<()> {
        let row = |cell: &dyn Fn(&str) -> String| {
            let cells = SHOWN.map(|(name, width)| {
                let text = cell(name);
                // Numbers are aligned to the right.
                if matches!(name, "seconds" | "units" | "rate" | "fee") {
                    format!("{text:>width$}")
                } else {
                    format!("{text:<width$}")
                }
            });
            format!("  {}", cells.join("  ").trim_end())
        };
        println!("{}", bold(&row(&str::to_owned)));
        for line in &self.0 {
            println!("{}", row(&|name| Self::cell(line, name)));
        }
        let sum = self.sum()?.to_string();
        let in_all = |name: &str| match name {
            "start" => "in all".to_owned(),
            "fee" => sum.clone(),
            _ => String::new(),
        };
        println!("{}", bold(&row(&in_all)));
        Ok(())
    }
}

/// Compares the bill with the result query of each call.
async fn compare(bill: &Bill, customer: &mut DemoCustomer) -> anyhow::Result<()> {
    let calls = customer.calls.clone();
    let (mut seconds, mut fees, mut attempts) = (0, Money::ZERO, 0);
    for sid in &calls {
        let end = customer.end_of(sid).await?;
        let lines = bill.0.iter();
        let lines = lines.filter(|line| Bill::cell(line, "callSid") == *sid);
        let billed = lines.map(|line| Bill::cell(line, "seconds").parse::<u32>());
        let billed = billed.collect::<Result<Vec<_>, _>>()?;
        ensure!(
            billed.len() == end.attempts as usize,
            "call {sid} has {} lines and {} attempts",
            billed.len(),
            end.attempts
        );
        let billed: u32 = billed.iter().sum();
        ensure!(
            billed == end.seconds,
            "call {sid} has {billed} seconds in the bill, and {} by CallResult",
            end.seconds
        );
        attempts += end.attempts;
        seconds += end.seconds;
        fees = fees.plus(end.fee()?);
    }
    ensure!(
        bill.0.len() == attempts as usize,
        "{attempts} attempts were made, and the bill has {} lines",
        bill.0.len()
    );
    let sum = bill.sum()?;
    ensure!(
        sum == fees,
        "the bill adds up to {sum}, the calls to {fees}"
    );
    shown(&format!(
        "{} calls with {attempts} attempts, {attempts} lines, each with its callSid",
        calls.len()
    ));
    shown(&format!(
        "{seconds} s of talk in the bill and by CallResult"
    ));
    shown(&format!(
        "the fees add up to {sum}, which is what the rate makes of the calls"
    ));
    Ok(())
}
