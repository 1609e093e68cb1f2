//! `POST …/Calls/VoiceVerify`: a call that says a code, character by character.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;

use super::Api;
use super::event_fields;
use super::placing::{self, CommonFields, WantedCall};
use super::request::{APP_ID, Authenticated};
use super::wire::{Field, Fields, Form};
use crate::config::Config;
use crate::domain::account::Account;
use crate::domain::call::CallKind;
use crate::domain::prompt::{self, CodeLanguage, FileOwner, Speech, VerifyCode};
use crate::domain::status_code::{Refusal, StatusCode};
use crate::placing::NamedFiles;
use crate::store::VERIFICATION;

pub const FORM: Form = Form {
    root: "VoiceVerify",
    fields: &[
        APP_ID,
        Field::optional(
            "verifyCode",
            "",
            "The code: 4 to 8 letters or digits, whose case does not matter. Required unless playVerifyCode is given.",
        ),
        placing::TO,
        placing::PLAY_TIMES,
        placing::DISPLAY_NUM,
        placing::RESP_URL,
        Field::optional("lang", "zh", "Language of the code: zh or en."),
        placing::USER_DATA,
        Field::optional(
            "welcomePrompt",
            "a sentence in the language of the code",
            "Voice files of the application that are played before the code, separated by `;`.",
        ),
        Field::optional(
            "playVerifyCode",
            "",
            "Voice files of the application that are played instead of the code, separated by `;`. verifyCode and lang are then ignored.",
        ),
        placing::MAX_CALL_TIME,
        placing::REQUEST_ID,
        event_fields::CODE_STATE_URL,
        event_fields::CALL_STATE_PUSH,
    ],
    attributes: &[],
    unclosed: None,
};

pub async fn create(State(api): State<Arc<Api>>, request: Authenticated) -> Response {
    // It would take the call, and say nothing.
    if api.store.oldest_node() < VERIFICATION {
        let message = "VoiceVerify is not offered while a server of an earlier version is running";
        let refusal = Refusal::new(StatusCode::NotOffered, message);
        return request.answer(&Err(refusal));
    }
    placing::place(&api, &request, &FORM, read).await
}

pub fn read(fields: &Fields, account: &Account, config: &Config) -> Result<WantedCall, Refusal> {
    let common = CommonFields::read(fields, account, config)?;
    let files = |field: &'static str| {
        let text = fields.text(field)?.unwrap_or_default();
        let names = prompt::file_names(field, text, config.calls.max_files)?;
        Ok::<_, Refusal>(NamedFiles {
            field,
            owner: FileOwner::Application,
            names,
        })
    };
    let (welcome, instead) = (files("welcomePrompt")?, files("playVerifyCode")?);
    let code = match fields.text("verifyCode")? {
        _ if !instead.names.is_empty() => None,
        None => return Err(Refusal::field("verifyCode is required")),
        Some(text) => {
            let language = CodeLanguage::read(fields.text("lang")?)?;
            Some(VerifyCode::parse(text, language)?)
        }
    };
    let introduction = code.as_ref().filter(|_| welcome.names.is_empty());
    let introduction = introduction.and_then(|code| config.calls.introduction(code.language));
    Ok(WantedCall {
        kind: CallKind::Verification,
        common,
        voice: None,
        speech: introduction.map(Speech::plain),
        files: vec![welcome, instead],
        code,
        valid_for: config.calls.code_expiry,
        notice: None,
    })
}
