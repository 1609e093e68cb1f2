//! `POST …/Calls/LandingCalls`: one voice notification.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;

use super::Api;
use super::notice_fields::{self, WantedNotice};
use super::placing::{self, CommonFields, WantedCall};
use super::request::{APP_ID, Authenticated};
use super::wire::{Field, Fields, Form};
use super::{event_fields, key_fields};
use crate::config::Config;
use crate::domain::account::Account;
use crate::domain::call::CallKind;
use crate::domain::prompt::{self, FileOwner, Speech};
use crate::domain::status_code::{Refusal, StatusCode};
use crate::domain::voice_name::VoiceName;
use crate::domain::wording::Wording;
use crate::placing::NamedFiles;

/// The current names, and the names of the older interface that clients still send. A current name wins over its older one.
pub const FORM: Form = Form {
    root: "LandingCall",
    fields: &[
        APP_ID,
        placing::TO,
        Field::optional(
            "mediaName",
            "",
            "Voice file names ending in .wav, separated by `;`. mediaName and mediaTxt must not both be empty. In XML the attribute `type` carries mediaNameType.",
        ),
        Field::optional(
            "mediaNameType",
            "0",
            "0 = file of the application, 1 = common file of the platform.",
        ),
        Field::optional(
            "mediaTxt",
            "",
            "Text to be spoken. Effective when mediaName is empty, or when playMode is 1.",
        ),
        placing::DISPLAY_NUM,
        placing::PLAY_TIMES,
        placing::RESP_URL,
        placing::USER_DATA,
        Field::optional(
            "txtSpeed",
            "0",
            "-500 to 500. Checked only when mediaTxt is effective.",
        ),
        Field::optional(
            "txtVolume",
            "0",
            "-20 to 20. Checked only when mediaTxt is effective.",
        ),
        Field::optional(
            "txtPitch",
            "0",
            "-500 to 500. Checked only when mediaTxt is effective.",
        ),
        Field::optional(
            "txtBgsound",
            "0",
            "0 = none, 1 to 6 = background sound. Checked only when mediaTxt is effective.",
        ),
        Field::optional(
            "playMode",
            "0",
            "0 = text or files, 1 = the text first, then the files.",
        ),
        Field::optional("speed", "", "Older name of txtSpeed."),
        Field::optional("volume", "", "Older name of txtVolume."),
        Field::optional("pitch", "", "Older name of txtPitch."),
        Field::optional("bgsound", "", "Older name of txtBgsound."),
        Field::optional(
            "voice",
            "the application's",
            "Name of the voice that speaks mediaTxt and what the platform says around the message, one of the platform's. Checked only when mediaTxt is effective; otherwise a wrong one counts as absent.",
        ),
        placing::MAX_CALL_TIME,
        placing::REQUEST_ID,
        key_fields::CONFIRM_DTMF,
        key_fields::WAIT_DTMF_TIME,
        key_fields::REPLAY_DTMF,
        key_fields::INPUT_DTMF_PROMPT,
        key_fields::STOP_DTMF,
        notice_fields::REDIAL_TIMES,
        notice_fields::REDIAL_INTERVAL,
        notice_fields::REDIAL_ON,
        notice_fields::BACKUP_TO,
        notice_fields::BACKUP_AFTER,
        notice_fields::START_TIME,
        notice_fields::CALL_WINDOW,
        notice_fields::VALID_TIME,
        notice_fields::PRIORITY,
        notice_fields::RING_TIME,
        notice_fields::MACHINE_DETECT,
        event_fields::CALL_STATE_URL,
        event_fields::CALL_STATE_PUSH,
    ],
    attributes: &[("mediaName", "type", "mediaNameType")],
    unclosed: None,
};

pub async fn create(State(api): State<Arc<Api>>, request: Authenticated) -> Response {
    placing::place(&api, &request, &FORM, read).await
}

pub fn read(fields: &Fields, account: &Account, config: &Config) -> Result<WantedCall, Refusal> {
    let common = CommonFields::read(fields, account, config)?;
    read_others(common, fields, account, config)
}

/// The fields that only this operation has.
pub fn read_others(
    common: CommonFields,
    fields: &Fields,
    account: &Account,
    config: &Config,
) -> Result<WantedCall, Refusal> {
    let names = prompt::file_names(
        "mediaName",
        fields.text("mediaName")?.unwrap_or_default(),
        config.calls.max_files,
    )?;
    let owner = match fields.text("mediaNameType")? {
        None | Some("0") => FileOwner::Application,
        Some("1") => FileOwner::Platform,
        Some(_) => return Err(Refusal::field("mediaNameType must be 0 or 1")),
    };
    let together = match fields.text("playMode")? {
        None | Some("0") => false,
        Some("1") => true,
        Some(_) => return Err(Refusal::field("playMode must be 0 or 1")),
    };
    let effective_text = names.is_empty() || together;
    let speech = if effective_text {
        speech(fields, config)?
    } else {
        None
    };
    // Beside files it is not worth a refusal, like the other options of the voice.
    let voice = match voice(fields, config) {
        Err(_) if !effective_text => None,
        voice => voice?,
    };
    if names.is_empty() && speech.is_none() {
        return Err(StatusCode::NothingToPlay.into());
    }
    Ok(WantedCall {
        kind: CallKind::Notification,
        notice: WantedNotice::read(fields, account, config, &common.to)?,
        common,
        voice,
        speech,
        files: vec![NamedFiles {
            field: "mediaName",
            owner,
            names,
        }],
        code: None,
        valid_for: config.calls.expiry,
    })
}

fn speech(fields: &Fields, config: &Config) -> Result<Option<Speech>, Refusal> {
    let Some(text) = fields.text("mediaTxt")? else {
        return Ok(None);
    };
    let limit = config.calls.max_text_characters;
    if text.chars().count() > limit {
        return Err(Refusal::new(
            StatusCode::DataTooLong,
            format!("mediaTxt is longer than {limit} characters"),
        ));
    }
    Ok(Some(Speech {
        speed: voice_option(fields, "txtSpeed", "speed", -500, 500)?,
        volume: voice_option(fields, "txtVolume", "volume", -20, 20)?,
        pitch: voice_option(fields, "txtPitch", "pitch", -500, 500)?,
        background: voice_option(fields, "txtBgsound", "bgsound", 0, 6)?,
        ..Speech::plain(text)
    }))
}

fn voice(fields: &Fields, config: &Config) -> Result<Option<VoiceName>, Refusal> {
    let Some(text) = fields.text("voice")? else {
        return Ok(None);
    };
    let name: Result<VoiceName, Wording> = text.parse();
    let known = name.and_then(|name| {
        config.voices.check_name(name.as_str())?;
        Ok(name)
    });
    known
        .map(Some)
        .map_err(|rule| Refusal::field(format!("voice: {rule}")))
}

/// Reads an option by its current name, or by its older name if the current one is empty. A refusal names the field that the client sent.
fn voice_option<T: TryFrom<i32> + Default>(
    fields: &Fields,
    name: &'static str,
    older: &'static str,
    lowest: i32,
    highest: i32,
) -> Result<T, Refusal> {
    match fields.text(name)? {
        None => prompt::voice_option(older, fields.text(older)?, lowest, highest),
        value => prompt::voice_option(name, value, lowest, highest),
    }
}
