//! The fields of a notice that are about keys. Those that the vendor has too are never refused: a client of today that sends something else there
//! stays accepted, as if it had not sent it.

use super::wire::{Field, Fields};
use crate::config::Config;
use crate::domain::notice::keys::{NoticeKeys, key};
use crate::domain::prompt::{FileName, FileOwner};
use crate::domain::status_code::Refusal;

const WAIT: std::ops::RangeInclusive<u16> = 1..=60;
const USUAL_WAIT: u16 = 10;

pub const CONFIRM_DTMF: Field = Field::optional(
    "confirmDtmf",
    "none: an answer is enough",
    "Keys separated by `;`, such as `1` or `1;2`: a callee who presses one of them has confirmed, and nobody is called any more. Keys count from the first sample of the message.",
);
pub const WAIT_DTMF_TIME: Field = Field::optional(
    "waitDtmfTime",
    "10",
    "1 to 60: seconds that a key is waited for after the message. Another value means the default.",
);
pub const REPLAY_DTMF: Field = Field::optional(
    "replayDtmf",
    "none",
    "A key that plays the message again, at most 5 times. Another value means the default.",
);
pub const INPUT_DTMF_PROMPT: Field = Field::optional(
    "inputDtmfPrompt",
    "the platform's sentence, in the language of the text",
    "A voice file, or text: played after the message to ask for the key. A file that is not there means the default.",
);
pub const STOP_DTMF: Field = Field::optional(
    "stopDtmf",
    "none",
    "A key. A callee who presses it twice gets no more calls of the account, and the next number has its turn.",
);

/// What asks for the key, as the request brings it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WantedQuestion {
    Text(String),
    /// A file of the same owner as those of the message.
    File(FileOwner, FileName),
}

/// The keys of a request.
#[derive(Debug)]
pub struct WantedKeys {
    pub keys: NoticeKeys,
    pub question: Option<WantedQuestion>,
}

impl WantedKeys {
    /// `None` if the request asks for no key: then there is nothing to wait for either.
    pub fn read(fields: &Fields, config: &Config) -> Result<Option<Self>, Refusal> {
        let confirm = confirm(fields)?;
        let stop = match fields.text(STOP_DTMF.name)? {
            Some(text) => Some(key(text).ok_or_else(|| Refusal::field(ONE_KEY))?),
            None => None,
        };
        let replay = fields.if_text(REPLAY_DTMF.name).and_then(key);
        if confirm.is_empty() && stop.is_none() && replay.is_none() {
            return Ok(None);
        }
        check_differ(&confirm, replay, stop)?;
        let wait = fields.if_text(WAIT_DTMF_TIME.name);
        let wait = wait.and_then(|text| text.parse().ok());
        Ok(Some(Self {
            keys: NoticeKeys {
                confirm,
                replay,
                stop,
                wait: wait
                    .filter(|wait| WAIT.contains(wait))
                    .unwrap_or(USUAL_WAIT),
                question: None,
                voice: None,
            },
            question: question(fields, config)?,
        }))
    }

    /// It asks for more than the vendor's clients do.
    pub fn is_new(&self) -> bool {
        !self.keys.confirm.is_empty() || self.keys.stop.is_some()
    }

    /// What tells this request from another one.
    pub fn told_by(&self) -> String {
        let question = self.question.as_ref().map(|question| match question {
            WantedQuestion::Text(text) => ("text", text.as_str()),
            WantedQuestion::File(FileOwner::Application, name) => ("file", name.as_str()),
            WantedQuestion::File(FileOwner::Platform, name) => ("common file", name.as_str()),
        });
        let keys = &self.keys;
        let told = (&keys.confirm, keys.replay, keys.stop, keys.wait, question);
        serde_json::to_string(&told).unwrap_or_default()
    }
}

const ONE_KEY: &str = "stopDtmf must be one of the keys 0 to 9, * and #";

fn confirm(fields: &Fields) -> Result<Vec<char>, Refusal> {
    let Some(text) = fields.text(CONFIRM_DTMF.name)? else {
        return Ok(Vec::new());
    };
    let wrong =
        || Refusal::field("confirmDtmf must be keys separated by ;, each one of 0 to 9, * and #");
    let mut confirm = Vec::new();
    for part in text.split(';') {
        let key = key(part.trim()).ok_or_else(wrong)?;
        if !confirm.contains(&key) {
            confirm.push(key);
        }
    }
    Ok(confirm)
}

fn check_differ(confirm: &[char], replay: Option<char>, stop: Option<char>) -> Result<(), Refusal> {
    let named = [(REPLAY_DTMF.name, replay), (STOP_DTMF.name, stop)];
    for (name, key) in named {
        if key.is_some_and(|key| confirm.contains(&key)) {
            return Err(Refusal::field(format!(
                "{name} must be another key than those of confirmDtmf"
            )));
        }
    }
    if replay.is_some() && replay == stop {
        return Err(Refusal::field(
            "stopDtmf must be another key than replayDtmf",
        ));
    }
    Ok(())
}

fn question(fields: &Fields, config: &Config) -> Result<Option<WantedQuestion>, Refusal> {
    let Some(text) = fields.if_text(INPUT_DTMF_PROMPT.name) else {
        return Ok(None);
    };
    let is_file = text.to_ascii_lowercase().ends_with(".wav");
    let owner = match fields.text("mediaNameType")? {
        Some("1") => FileOwner::Platform,
        _ => FileOwner::Application,
    };
    let fits = text.chars().count() <= config.calls.max_text_characters;
    Ok(if is_file {
        let name = FileName::named_by(INPUT_DTMF_PROMPT.name, text).ok();
        name.map(|name| WantedQuestion::File(owner, name))
    } else {
        fits.then(|| WantedQuestion::Text(text.to_owned()))
    })
}
