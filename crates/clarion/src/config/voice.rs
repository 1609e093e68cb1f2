//! `[[voice]]`: who may speak a text besides the embedded voice, in the order in which they are tried.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sound::speech::{EMBEDDED, TextForm, VoiceLanguages, VoiceLimits};
use toml::Table;

use super::named_tables::read_named;
use super::section::{Mistake, Section};
use super::speech::{SpeechConfig, SpeechService};
use super::values::HttpUrl;
use crate::domain::voice_name::VoiceName;
use crate::domain::wording::{Wording, wording};

/// Every setting of a voice with its default.
pub const VOICE_DEFAULTS: &str = include_str!("voice.default.toml");

const LONGEST: u32 = 86_400;
const KINDS: &str = "espeak, natural, command, json and openai";
const NATURAL: &str = "natural";
/// Who speaks English where nobody is named.
const ENGLISH_SPEAKER: &str = "af_heart";

/// The voices of the settings.
#[derive(Debug, Clone, Default)]
pub struct VoicesConfig {
    voices: Vec<VoiceSettings>,
    names_natural: bool,
}

#[derive(Debug, Clone)]
pub struct VoiceSettings {
    pub name: VoiceName,
    pub kind: VoiceKind,
    pub languages: VoiceLanguages,
    pub text_form: TextForm,
    pub version: String,
    /// Time limit for one text.
    pub time: Duration,
    pub limits: VoiceLimits,
}

/// What speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VoiceKind {
    /// The embedded program with other voices of its own.
    Espeak {
        chinese_voice: String,
        english_voice: String,
    },
    Command {
        program: String,
        arguments: Vec<String>,
    },
    /// A speaker of the natural voice on this machine.
    Natural { speaker: String },
    /// A server that gets our JSON.
    Json(SpeechServer),
    /// A server that speaks the protocol of `POST /v1/audio/speech`.
    OpenAi {
        server: SpeechServer,
        model: String,
        speaker: String,
        native_speed: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpeechServer {
    pub url: HttpUrl,
    /// Authorities that are trusted besides the public ones.
    pub ca_file: Option<PathBuf>,
    /// Where the key is that it wants.
    pub key_file: Option<PathBuf>,
}

impl VoiceKind {
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Espeak { .. } => "espeak",
            Self::Command { .. } => "command",
            Self::Natural { .. } => NATURAL,
            Self::Json(_) => "json",
            Self::OpenAi { .. } => "openai",
        }
    }

    /// Whether it comes with us: then nothing of what it is given leaves this machine.
    pub fn is_own(&self) -> bool {
        matches!(self, Self::Espeak { .. } | Self::Natural { .. })
    }

    /// Where the key is that its server wants.
    pub fn key_file(&self) -> Option<&Path> {
        match self {
            Self::Json(server) | Self::OpenAi { server, .. } => server.key_file.as_deref(),
            Self::Espeak { .. } | Self::Command { .. } | Self::Natural { .. } => None,
        }
    }

    /// Whether what it is given leaves this machine.
    pub fn is_remote(&self) -> bool {
        matches!(self, Self::Json(_) | Self::OpenAi { .. })
    }
}

impl VoiceSettings {
    /// As it is written.
    pub fn language(&self) -> &'static str {
        match self.languages {
            VoiceLanguages::Both => "any",
            VoiceLanguages::Chinese => "zh",
            VoiceLanguages::English => "en",
        }
    }
}

impl VoicesConfig {
    pub fn iter(&self) -> impl Iterator<Item = &VoiceSettings> {
        self.voices.iter()
    }

    /// Whether the operator has named a natural voice. Without one there is one for English.
    pub fn names_natural(&self) -> bool {
        self.names_natural
    }

    /// The name of every voice, the embedded one last.
    pub fn names(&self) -> Vec<&str> {
        let names = self.voices.iter().map(|voice| voice.name.as_str());
        names.chain([EMBEDDED]).collect()
    }

    /// Whether there is such a voice; if not, which there are.
    pub fn check_name(&self, name: &str) -> Result<(), Wording> {
        let names = self.names();
        if names.contains(&name) {
            return Ok(());
        }
        let known = names.join(", ");
        Err(wording!(
            "there is no voice {name:?}; there are: {known}",
            "没有发音人 {name:?}，可用的有：{known}"
        ))
    }
}

/// Reads all voices, in the order of the file, or the one of `[speech]`.
pub(super) fn read_all(
    tables: Vec<Table>,
    speech: Option<&SpeechConfig>,
    mistakes: &mut Vec<Mistake>,
) -> VoicesConfig {
    let mut voices = read_named(
        "voice",
        VOICE_DEFAULTS,
        tables,
        mistakes,
        read,
        |voice: &VoiceSettings| voice.name.as_str(),
    );
    let Some(speech) = speech else {
        return VoicesConfig::default();
    };
    if speech.service.is_some() && !voices.is_empty() {
        mistakes.push(Mistake {
            path: "speech.command".to_owned(),
            text: "speech.command, speech.url: write it as one of the [[voice]] instead".to_owned(),
        });
    }
    let of_speech = speech
        .service
        .as_ref()
        .map(|service| of_speech(speech, service));
    voices.extend(of_speech);
    let is_natural = |voice: &VoiceSettings| matches!(voice.kind, VoiceKind::Natural { .. });
    let names_natural = voices.iter().any(is_natural);
    if !names_natural && !voices.iter().any(|voice| voice.name.as_str() == NATURAL) {
        voices.push(natural_english(speech));
    }
    VoicesConfig {
        voices,
        names_natural,
    }
}

/// Speaks English as soon as it is installed, unless the operator has named natural voices.
fn natural_english(speech: &SpeechConfig) -> VoiceSettings {
    VoiceSettings {
        name: NATURAL.parse().expect("it is a name"),
        kind: VoiceKind::Natural {
            speaker: ENGLISH_SPEAKER.to_owned(),
        },
        languages: VoiceLanguages::English,
        text_form: TextForm::AsWritten,
        version: String::new(),
        time: speech.time,
        limits: VoiceLimits::default(),
    }
}

/// The one external voice that `[speech]` names.
fn of_speech(speech: &SpeechConfig, service: &SpeechService) -> VoiceSettings {
    let kind = match service.clone() {
        SpeechService::Command { program, arguments } => VoiceKind::Command { program, arguments },
        SpeechService::Http { url, ca_file } => VoiceKind::Json(SpeechServer {
            url,
            ca_file,
            key_file: None,
        }),
    };
    VoiceSettings {
        name: kind.as_str().parse().expect("it is a name"),
        kind,
        languages: VoiceLanguages::Both,
        text_form: TextForm::AsWritten,
        version: speech.version.clone(),
        time: speech.time,
        limits: VoiceLimits {
            tries: speech.tries,
            characters_per_day: None,
        },
    }
}

fn read(section: &mut Section) -> Result<VoiceSettings, Mistake> {
    let name: VoiceName = section.parsed("name")?;
    if name.as_str() == EMBEDDED {
        let rule = format!("{EMBEDDED} is the embedded voice, which is always there");
        return Err(section.mistake("name", rule));
    }
    let kind = kind(section)?;
    // It makes words of a text by itself.
    let is_natural = matches!(kind, VoiceKind::Natural { .. });
    let text_form = section.parsed_by("text", text_form)?;
    let characters = section.number("characters_per_day", 0..=u64::MAX)?;
    Ok(VoiceSettings {
        name,
        kind,
        languages: section.parsed_by("language", languages)?,
        text_form: if is_natural {
            TextForm::AsWritten
        } else {
            text_form
        },
        version: section.text("version")?,
        time: section.seconds("seconds", 1..=LONGEST)?,
        limits: VoiceLimits {
            tries: section.number("tries", 1..=10)?,
            characters_per_day: Some(characters).filter(|limit| *limit > 0),
        },
    })
}

fn kind(section: &mut Section) -> Result<VoiceKind, Mistake> {
    let kind = section.text("kind")?;
    let words = section.list("command", |text| Ok::<_, String>(text.to_owned()))?;
    let url: Option<HttpUrl> = section.parsed_or_none("url", str::parse)?;
    let (ca_file, key_file) = (
        section.path_or_none("ca_file")?,
        section.path_or_none("key_file")?,
    );
    let (model, speaker) = (section.text("model")?, section.text("speaker")?);
    let native_speed = section.flag("native_speed")?;
    let voices = (
        section.text("chinese_voice")?,
        section.text("english_voice")?,
    );
    let server = |section: &Section| match url {
        Some(url) => Ok(SpeechServer {
            url,
            ca_file,
            key_file,
        }),
        None => Err(section.mistake("url", "name the address of the speech server")),
    };
    match kind.as_str() {
        "espeak" => Ok(VoiceKind::Espeak {
            chinese_voice: voices.0,
            english_voice: voices.1,
        }),
        "command" => {
            let mut words = words.into_iter();
            let program = words.next();
            let program = program
                .ok_or_else(|| section.mistake("command", "name a program and its arguments"))?;
            Ok(VoiceKind::Command {
                program,
                arguments: words.collect(),
            })
        }
        NATURAL if speaker.is_empty() => {
            Err(section.mistake("speaker", "name a speaker of the natural voice"))
        }
        NATURAL => Ok(VoiceKind::Natural { speaker }),
        "json" => Ok(VoiceKind::Json(server(section)?)),
        "openai" => Ok(VoiceKind::OpenAi {
            server: server(section)?,
            model,
            speaker,
            native_speed,
        }),
        _ => Err(section.mistake("kind", format!("must be one of {KINDS}"))),
    }
}

fn languages(text: &str) -> Result<VoiceLanguages, &'static str> {
    match text {
        "any" => Ok(VoiceLanguages::Both),
        "zh" => Ok(VoiceLanguages::Chinese),
        "en" => Ok(VoiceLanguages::English),
        _ => Err("must be zh, en or any"),
    }
}

fn text_form(text: &str) -> Result<TextForm, &'static str> {
    match text {
        "words" => Ok(TextForm::Words),
        "written" => Ok(TextForm::AsWritten),
        _ => Err("must be words or written"),
    }
}
