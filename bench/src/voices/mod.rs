//! How much each voice can say: new texts a second and for each second of processor, how long a prompt takes, what it costs in memory, and whether calls that are
//! playing notice it.

mod late_packets;
mod speaking;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use clarion::clock::Clock;
use jiff::tz::TimeZone;

use self::speaking::{BenchVoice, VoiceRow};
use crate::machine::Machine;
use crate::options::PlaceOptions;

#[derive(Debug, Args)]
pub struct VoicesOptions {
    /// Where `clarion voice install natural` has installed the natural voice; without it the embedded voice alone is measured
    #[arg(long, value_name = "FOLDER")]
    natural: Option<PathBuf>,
    /// New texts of each voice and language
    #[arg(long, default_value_t = 40)]
    texts: usize,
    /// Processes of the natural voice
    #[arg(long, default_value_t = 2)]
    workers: usize,
    /// Calls that play while the voice works
    #[arg(long, default_value_t = 100)]
    calls: u32,
    /// Rounds of playing calls, each with the voice at rest and at work
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    #[command(flatten)]
    place: PlaceOptions,
}

pub async fn run(options: VoicesOptions) -> anyhow::Result<()> {
    let folder = options.place.folder("voices")?;
    let text = measure(&options, &folder).await?;
    options.place.publish("voices", &text)
}

async fn measure(options: &VoicesOptions, folder: &Path) -> anyhow::Result<String> {
    let machine = Machine::look(folder)?;
    println!("{machine}");
    let day = Clock::new(TimeZone::system()).wall().date();
    let mut text = format!(
        "{day}, Clarion {}. {machine}.\n\n{} new texts of each voice, as many at once as it has processes ({} for the natural voice), nothing else at work. \
         A text has about five seconds.\n\n\
         | voice | text | sound of a text, s | texts/s | sound, s a second | texts for a second of processor | time to a ready prompt p50 / p99, s | memory of its processes |\n\
         |---|---|---:|---:|---:|---:|---:|---:|\n",
        env!("CARGO_PKG_VERSION"),
        options.texts,
        options.workers,
    );
    for voice in BenchVoice::all(options.natural.as_deref(), options.workers)? {
        for (language, text_of) in [
            ("English", english as fn(usize) -> String),
            ("Chinese", chinese),
        ] {
            let texts: Vec<String> = (0..=options.texts).map(text_of).collect();
            let spoken = VoiceRow::by(&voice, language, &texts).await?;
            println!("  {spoken}");
            writeln!(text, "{spoken}")?;
        }
    }
    if let Some(natural) = &options.natural {
        let natural = std::path::absolute(natural)?;
        let late = late_packets::measure(folder, &natural, options).await?;
        write!(text, "\n{late}")?;
    }
    Ok(text)
}

fn english(number: usize) -> String {
    format!(
        "Your order number {} has been shipped, and will arrive tomorrow afternoon at five.",
        10_000 + number * 7
    )
}

fn chinese(number: usize) -> String {
    format!(
        "您好，您的订单{}已经发货，预计明天下午五点送达，请注意查收。",
        10_000 + number * 7
    )
}
