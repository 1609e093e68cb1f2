//! How fast prompts are made, and how fast they are handed out again: speech beside the engine's own program on the same texts in the
//! same run, prompts from memory and from disk, and resampling alone.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::Args;
use clarion::clock::Clock;
use jiff::tz::TimeZone;
use sound::renderer::{Piece, Requester};
use sound::resample::resample;
use sound::speech::{Espeak, Speaker};
use sound::wav::{Wav, WavLimits};
use sound::{PromptError, PromptRenderer, RendererSettings, Utterance, VoiceChoice, VoiceOptions};
use supervisor::Supervisor;

use crate::machine::Machine;
use crate::options::PlaceOptions;

const BENCH: Requester<'static> = Requester("bench");
/// For one text.
const TIME: Duration = Duration::from_secs(60);

#[derive(Debug, Args)]
pub struct SoundOptions {
    /// Texts of each language
    #[arg(long, default_value_t = 40)]
    texts: usize,
    /// Prompts taken from the warm cache
    #[arg(long, default_value_t = 1_000_000)]
    prompts: usize,
    #[command(flatten)]
    place: PlaceOptions,
}

pub async fn run(options: SoundOptions) -> anyhow::Result<()> {
    let folder = options.place.folder("sound")?;
    let text = measure(&options, &folder).await?;
    options.place.publish("sound", &text)
}

async fn measure(options: &SoundOptions, folder: &std::path::Path) -> anyhow::Result<String> {
    let machine = Machine::look(folder)?;
    let day = Clock::new(TimeZone::system()).wall().date();
    let mut text = format!(
        "{day}, Clarion {}. {machine}.\n\n",
        env!("CARGO_PKG_VERSION")
    );
    text.push_str(
        "One text after the other, on one thread; medians. A real-time factor of 0.01 makes a hundred seconds of sound a second. `engine alone` runs \
         espeak-ng on the same phrases with the same options and throws its sound away.\n\n\
         | speech | sound, s | engine alone, ms | new, ms | factor | from disk, ms |\n|---|---:|---:|---:|---:|---:|\n",
    );
    for (name, text_of) in [
        ("English", english as fn(usize) -> String),
        ("Chinese", chinese),
        ("mixed", mixed),
    ] {
        let texts: Vec<String> = (0..options.texts.max(1)).map(text_of).collect();
        writeln!(text, "{}", speech(name, &texts, folder).await?)?;
    }
    text.push('\n');
    writeln!(text, "{}", from_memory(options.prompts).await?)?;
    text.push_str(&resampling()?);
    Ok(text)
}

fn english(number: usize) -> String {
    format!(
        "Hello, this is a message about your order number {}. It has been shipped and will arrive tomorrow afternoon. \
         Please have {} dollars ready for the driver. If you have any questions, please call our service desk. Thank you and goodbye.",
        10_000 + number,
        number + 20
    )
}

fn chinese(number: usize) -> String {
    format!(
        "您好，您的订单{}已经发货，预计明天下午送达，请准备好{}元现金。如有疑问，请拨打客服热线4008101234。谢谢，再见。",
        10_000 + number,
        number + 20
    )
}

fn mixed(number: usize) -> String {
    format!(
        "您好 Mr. Wang，您的 iPhone 订单{}已经发货，预计明天 15:30 送达，请准备好{}元。Thank you，再见。",
        10_000 + number,
        number + 20
    )
}

fn renderer(folder: &std::path::Path) -> anyhow::Result<PromptRenderer> {
    let settings = RendererSettings {
        workers: 1,
        disk: Some((folder.to_owned(), 1 << 30)),
        ..RendererSettings::default()
    };
    let speaker = Speaker::new(Vec::new(), Arc::new(Espeak::default()), TIME);
    Ok(PromptRenderer::open(
        &Supervisor::new(),
        &settings,
        speaker,
    )?)
}

fn piece(text: &str) -> Piece {
    Piece::Speech {
        speech: speech_of(text),
        choice: VoiceChoice::default(),
    }
}

fn speech_of(text: &str) -> Utterance {
    Utterance {
        text: text.to_owned(),
        options: VoiceOptions::default(),
    }
}

async fn speech(name: &str, texts: &[String], folder: &std::path::Path) -> anyhow::Result<String> {
    let folder = folder.join(name);
    let new = renderer(&folder)?;
    let (mut alone, mut made, mut factors, mut seconds) = (vec![], vec![], vec![], vec![]);
    // Engine and renderer take turns, so that whoever else uses the machine disturbs both alike.
    for text in texts {
        alone.push(engine_alone(text)?);
        let began = Instant::now();
        let sound = new.piece(BENCH, piece(text)).ready().await?.sound;
        made.push(began.elapsed().as_secs_f64() * 1e3);
        seconds.push(sound.seconds());
        factors.push(began.elapsed().as_secs_f64() / sound.seconds());
    }
    let again = renderer(&folder)?;
    let mut read = vec![];
    for text in texts {
        let began = Instant::now();
        again.piece(BENCH, piece(text)).ready().await?;
        read.push(began.elapsed().as_secs_f64() * 1e3);
    }
    ensure!(again.counts().made == 0, "the disk did not remember");
    Ok(format!(
        "| {name} | {:.1} | {:.1} | {:.1} | {:.4} | {:.2} |",
        median(seconds),
        median(alone),
        median(made),
        median(factors),
        median(read)
    ))
}

/// The engine's own program on the same phrases, in milliseconds.
fn engine_alone(text: &str) -> anyhow::Result<f64> {
    let calls = Espeak::default().calls(&speech_of(text));
    let began = Instant::now();
    for (arguments, phrase) in calls {
        let mut child = Command::new("espeak-ng")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .context("espeak-ng is missing: run `make setup`")?;
        let mut input = child.stdin.take().context("it has an input")?;
        input.write_all(phrase.as_bytes())?;
        drop(input);
        child.wait()?;
    }
    Ok(began.elapsed().as_secs_f64() * 1e3)
}

/// Whole prompts of two pieces that are in memory already.
async fn from_memory(prompts: usize) -> anyhow::Result<String> {
    const DIFFERENT: usize = 500;
    let settings = RendererSettings::default();
    let speaker = Speaker::new(Vec::new(), Arc::new(Espeak::default()), TIME);
    let renderer = PromptRenderer::open(&Supervisor::new(), &settings, speaker)?;
    let file = |number: usize| {
        let bytes = sound::wav::mono_16_bit(&vec![1000; 80_000], 8000);
        Piece::File {
            content: number.to_string(),
            read: Box::new(move || Ok(bytes)),
        }
    };
    for number in 0..DIFFERENT {
        renderer.piece(BENCH, file(number)).ready().await?;
    }
    let known = |number: usize| Piece::File {
        content: number.to_string(),
        read: Box::new(|| Err(PromptError::Missing("it should be in memory".into()))),
    };
    let began = Instant::now();
    for number in 0..prompts {
        let pieces = vec![known(number % DIFFERENT), known((number + 7) % DIFFERENT)];
        renderer.prompt(BENCH, pieces, 2).await?;
    }
    let rate = prompts as f64 / began.elapsed().as_secs_f64();
    Ok(format!(
        "From memory: {rate:.0} prompts a second on one thread, each of two pieces ({DIFFERENT} different ones of 10 s).\n"
    ))
}

fn resampling() -> anyhow::Result<String> {
    let mut text =
        "| resampling 10 s to 8 kHz | ms | times real time |\n|---|---:|---:|\n".to_owned();
    for rate in [16_000, 22_050, 44_100, 48_000] {
        let frames = rate as usize * 10;
        let ramp = (0..20_011_i16).map(|level| level - 10_000);
        let samples: Vec<i16> = ramp.step_by(37).cycle().take(frames).collect();
        let bytes = sound::wav::mono_16_bit(&samples, rate);
        let wav = Wav::read(&bytes, &WavLimits::default())?;
        let times = (0..15).map(|_| {
            let began = Instant::now();
            let made = resample(rate, 8000, frames, &mut |first, out| wav.mono(first, out));
            assert_eq!(made.len(), 80_000);
            began.elapsed()
        });
        let time = Duration::from_secs_f64(median(times.map(|time| time.as_secs_f64()).collect()));
        let (millis, faster) = (time.as_secs_f64() * 1e3, 10.0 / time.as_secs_f64());
        writeln!(
            text,
            "| from {rate} Hz, WAV decoding included | {millis:.2} | {faster:.0} |"
        )?;
    }
    Ok(text)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
