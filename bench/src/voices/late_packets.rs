//! Whether calls that are playing notice that the natural voice works: packets that leave late while it is at rest and while it works, in turns.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clarion::client::Connection;
use clarion::clock::Clock;
use jiff::ToSpan;
use jiff::tz::TimeZone;
use phone::test_phone::Script;

use super::speaking::SPEAKERS;
use super::{VoicesOptions, english};
use crate::accepts::customer::BenchCustomer;
use crate::accepts::site::Site;
use crate::calls::engine::raise_file_limit;
use crate::job::ledger::Ledger;
use crate::job::telephone::BenchTelephone;
use crate::latency::median;
use crate::options::DatabaseKind;
use crate::server::{self, BenchServer};

const POLL: Duration = Duration::from_millis(100);
/// What does not happen within this time does not happen.
const PATIENCE: Duration = Duration::from_secs(120);
const RENDERED: &str = "clarion_prompts_prerendered_total{result=\"rendered\"}";
const ANSWERED: &str = "clarion_calls{state=\"answered\"}";

/// Packets of calls, which count when these are over.
#[derive(Debug, Clone, Copy)]
struct Packets {
    all: f64,
    late: f64,
    /// Texts that the natural voice has spoken meanwhile.
    texts: f64,
    at: Instant,
}

impl Packets {
    async fn so_far(server: &mut BenchServer) -> anyhow::Result<Self> {
        let metrics = server.metrics().await?;
        let spoken =
            |speaker| format!("clarion_voice_texts_total{{voice=\"{speaker}\",result=\"spoken\"}}");
        Ok(Self {
            all: metrics.value("clarion_media_packets_total"),
            late: metrics.value("clarion_media_packets_late_total"),
            texts: metrics.value(&spoken(SPEAKERS[0])),
            at: Instant::now(),
        })
    }

    fn since(self, before: Self) -> PacketsOfCalls {
        PacketsOfCalls {
            all: self.all - before.all,
            late: self.late - before.late,
            texts_a_second: (self.texts - before.texts) / (self.at - before.at).as_secs_f64(),
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct PacketsOfCalls {
    all: f64,
    late: f64,
    texts_a_second: f64,
}

impl PacketsOfCalls {
    fn late_percent(&self) -> f64 {
        self.late / self.all * 100.0
    }
}

pub async fn measure(
    folder: &Path,
    natural: &Path,
    options: &VoicesOptions,
) -> anyhow::Result<String> {
    raise_file_limit();
    let site = Site::new(&DatabaseKind::Sqlite, folder)?;
    let customer = BenchCustomer::new(Clock::new(TimeZone::system()));
    site.open(&customer).await?;
    let telephone =
        BenchTelephone::start(&Arc::new(Ledger::default()), |_| Script::answer()).await?;
    let settings = settings(&telephone, natural, options.workers);
    let program = server::program()?;
    let mut server =
        BenchServer::start_with(&program, &site.folder, &site.address(), &settings).await?;
    let mut asker = Asker {
        connection: server.client.connect().await?,
        customer,
        number: 0,
        texts: 0,
    };
    asker.long_call().await?;
    asker.natural_text().await?;
    until(&mut server, "the natural voice is ready", 2.0, RENDERED).await?;
    until(&mut server, "the first call is over", 0.0, ANSWERED).await?;
    let mut rounds = Vec::new();
    for _ in 0..options.rounds {
        let rest = calls(&mut server, &mut asker, options, 0).await?;
        let work = calls(&mut server, &mut asker, options, options.workers).await?;
        println!("  at rest {rest:?}, at work {work:?}");
        rounds.push((rest, work));
    }
    server.stop().await?;
    Ok(table(&rounds, options))
}

/// All calls from their beginning to their end, while the voice always has so many texts to speak, and one more.
async fn calls(
    server: &mut BenchServer,
    asker: &mut Asker,
    options: &VoicesOptions,
    texts_at_once: usize,
) -> anyhow::Result<PacketsOfCalls> {
    let before = Packets::so_far(server).await?;
    let rendered_before = server.metrics().await?.value(RENDERED);
    let asked_before = f64::from(asker.number);
    let end = Instant::now() + PATIENCE;
    for _ in 0..options.calls {
        asker.long_call().await?;
    }
    let mut has_played = false;
    loop {
        let metrics = server.metrics().await?;
        let playing = metrics.value(ANSWERED);
        has_played |= playing >= f64::from(options.calls);
        if has_played && playing < 0.5 {
            break;
        }
        ensure!(Instant::now() < end, "the calls do not come to their end");
        let rendered = metrics.value(RENDERED) - rendered_before;
        let under_way = f64::from(asker.number) - asked_before - rendered;
        if texts_at_once > 0 && under_way <= texts_at_once as f64 {
            asker.natural_text().await?;
        }
        tokio::time::sleep(POLL).await;
    }
    let packets = Packets::so_far(server).await?.since(before);
    let asked = f64::from(asker.number) - asked_before;
    until(
        server,
        "all texts are spoken",
        rendered_before + asked,
        RENDERED,
    )
    .await?;
    Ok(packets)
}

async fn until(
    server: &mut BenchServer,
    what: &str,
    value: f64,
    metric: &str,
) -> anyhow::Result<()> {
    let end = Instant::now() + PATIENCE;
    while (server.metrics().await?.value(metric) - value).abs() > 0.5 {
        ensure!(Instant::now() < end, "it does not happen: {what}");
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}

fn settings(telephone: &BenchTelephone, natural: &Path, workers: usize) -> String {
    let trunk = format!(
        "[dispatch]\ncalls_at_once = 1000000\ncalls_per_second = 1000000\n[media]\nbind = '127.0.0.1'\nports = '10000-19999'\n\
         [[trunk]]\nname = 'telephone'\nhost = '{}'\nbind = '127.0.0.1:0'\noptions_seconds = 0\nchannels = 1000000\ncalls_per_second = 1000000\nprefixes = ['']\n",
        telephone.address()
    );
    let speaker = SPEAKERS[0];
    format!(
        "{trunk}[speech]\nnatural_folder = '{}'\nnatural_workers = {workers}\n[[voice]]\nname = '{speaker}'\nkind = 'natural'\nspeaker = '{speaker}'\nlanguage = 'en'\n",
        natural.display()
    )
}

struct Asker {
    connection: Connection,
    customer: BenchCustomer,
    number: u32,
    texts: u32,
}

impl Asker {
    /// It plays for some twenty seconds, in the embedded voice.
    async fn long_call(&mut self) -> anyhow::Result<()> {
        let text = "this message goes on for as long as anybody wants to listen to it ".repeat(5);
        self.ask(&format!(r#""mediaTxt":"{text}","voice":"espeak""#))
            .await
    }

    /// A new text for tomorrow, which is spoken today.
    async fn natural_text(&mut self) -> anyhow::Result<()> {
        self.texts += 1;
        let tomorrow = self.customer.clock.wall().checked_add(1.day())?;
        let tomorrow = tomorrow.strftime("%Y%m%d%H%M%S");
        let text = english(self.texts as usize);
        self.ask(&format!(
            r#""mediaTxt":"{text}","voice":"{}","startTime":"{tomorrow}""#,
            SPEAKERS[0]
        ))
        .await
    }

    async fn ask(&mut self, fields: &str) -> anyhow::Result<()> {
        self.number += 1;
        let customer = &self.customer;
        let signature = customer.credentials.sign(&customer.clock.wall());
        let body = format!(
            r#"{{"appId":"{}","to":"139{:08}",{fields}}}"#,
            customer.app, self.number
        );
        let answer = self.connection.operation(
            &customer.credentials,
            &signature,
            "Calls/LandingCalls",
            "application/json",
            Some(body),
        );
        let answer = answer.await.context("the server answers")?;
        ensure!(answer.contains("\"000000\""), "not accepted: {answer}");
        Ok(())
    }
}

fn table(rounds: &[(PacketsOfCalls, PacketsOfCalls)], options: &VoicesOptions) -> String {
    let middle = |of: &dyn Fn(&(PacketsOfCalls, PacketsOfCalls)) -> f64| {
        let values: Vec<f64> = rounds.iter().map(of).collect();
        let (least, most) = values
            .iter()
            .fold((f64::MAX, 0_f64), |(least, most), value| {
                (least.min(*value), most.max(*value))
            });
        (median(&values, |value| *value), least, most)
    };
    let shown =
        |(middle, least, most): (f64, f64, f64)| format!("{middle:.3} % ({least:.3} – {most:.3})");
    let (rest, work) = (
        middle(&|round| round.0.late_percent()),
        middle(&|round| round.1.late_percent()),
    );
    let (texts, ..) = middle(&|round| round.1.texts_a_second);
    format!(
        "{} calls that play for some twenty seconds, the natural voice at rest and then at work with {} processes, {} rounds. Packets that leave more than 5 ms late:\n\n\
         | the natural voice | median (least – most) | its texts/s meanwhile |\n|---|---:|---:|\n| at rest | {} | 0 |\n| at work | {} | {texts:.2} |\n",
        options.calls,
        options.workers,
        rounds.len(),
        shown(rest),
        shown(work),
    )
}
