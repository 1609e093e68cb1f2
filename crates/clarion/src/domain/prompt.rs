//! What the called party hears: speech first, then audio files, then a code, all of it one to three times.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::account::{AppId, Application};
use super::lexicon::Reading;
use super::status_code::{Refusal, StatusCode};
use super::voice_name::VoiceName;
use super::wording::wording;

/// The vendor's test file. It is documented with type 1, but old clients cannot send a type. So the name is found with either type, unless
/// the owner has a file of that name.
pub const TEST_FILE: &str = "ccp_marketingcall.wav";

const LONGEST_FILE_NAME: usize = 128;

/// An audio file's name: a name, never a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FileName(String);

impl FileName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for FileName {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        Self::named_by("mediaName", text)
    }
}

impl FileName {
    /// Reads a name. A refusal names the field.
    pub fn named_by(field: &str, text: &str) -> Result<Self, Refusal> {
        let is_wav = text.len() > 4
            && text.is_char_boundary(text.len() - 4)
            && text[text.len() - 4..].eq_ignore_ascii_case(".wav");
        let is_path = text.contains(['/', '\\', ':'])
            || text.starts_with('.')
            || text.chars().any(char::is_control);
        if is_path || !is_wav || text.chars().count() > LONGEST_FILE_NAME {
            let rule = wording!(
                "a voice file is named by a plain file name of at most {LONGEST_FILE_NAME} characters that ends in .wav, without a path",
                "语音文件名最多 {LONGEST_FILE_NAME} 个字符，以 .wav 结尾，不带路径"
            );
            let refusal = Refusal::worded(StatusCode::FieldWrong, &rule);
            return Err(refusal.about(&format!("{field}:")));
        }
        Ok(Self(text.to_owned()))
    }
}

/// Reads the file names of a field. Semicolons separate several files. An empty part between them is ignored.
pub fn file_names(field: &str, text: &str, limit: usize) -> Result<Vec<FileName>, Refusal> {
    let names: Vec<_> = text
        .split(';')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect();
    if names.len() > limit {
        return Err(Refusal::new(
            StatusCode::DataTooLong,
            format!("{field} names more than {limit} files"),
        ));
    }
    let names = names.into_iter();
    names.map(|name| FileName::named_by(field, name)).collect()
}

/// The kind of owner whose file a name means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileOwner {
    /// mediaNameType 0.
    Application,
    /// mediaNameType 1.
    Platform,
}

/// The owner of an audio file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AudioOwner {
    Application(AppId),
    Platform,
}

impl AudioOwner {
    /// Returns the owner as it is stored: an application's id, or nothing.
    pub fn as_stored(&self) -> &str {
        match self {
            Self::Application(app) => app.as_str(),
            Self::Platform => "",
        }
    }
}

/// An audio file that somebody has added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedFile {
    pub owner: AudioOwner,
    pub name: FileName,
    pub content: ContentId,
    pub bytes: u64,
    /// Milliseconds.
    pub duration: u64,
    pub added_at: Timestamp,
}

/// One audio file as it was when the call was accepted. A file that is replaced later does not change accepted calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AudioFile {
    pub name: FileName,
    pub content: ContentId,
}

/// Identifies the bytes of an audio file: their SHA-256, or a sound that is built in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ContentId(String);

impl ContentId {
    pub fn test_file() -> Self {
        Self(format!("builtin:{TEST_FILE}"))
    }

    pub fn of(bytes: &[u8]) -> Self {
        Self(hex::encode(Sha256::digest(bytes)))
    }

    pub fn from_stored(text: String) -> Self {
        Self(text)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Text to be spoken, with the voice options of the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Speech {
    pub text: String,
    pub speed: i16,
    pub volume: i8,
    pub pitch: i16,
    /// 0 is none, 1 to 6 are the platform's background sounds.
    pub background: u8,
    /// Who is to speak, where the request or its application has said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voice: Option<VoiceName>,
    /// The words in it that its application wants to be said otherwise, as they were when the call was accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readings: Vec<Reading>,
}

impl Speech {
    /// What is said around a message, in the voice of it.
    pub fn beside(message: Option<&Self>, text: &str) -> Self {
        match message {
            Some(message) => Self {
                text: text.to_owned(),
                background: 0,
                readings: Vec::new(),
                ..message.clone()
            },
            None => Self::plain(text),
        }
    }

    /// In the natural voice.
    pub fn plain(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            speed: 0,
            volume: 0,
            pitch: 0,
            background: 0,
            voice: None,
            readings: Vec::new(),
        }
    }

    /// As an application wants its texts to be spoken, where the request has not said otherwise.
    #[must_use]
    pub fn of_application(mut self, application: &Application) -> Self {
        self.voice = self.voice.or_else(|| application.voice.clone());
        self.readings = application.lexicon.readings_in(&self.text);
        self
    }
}

/// Reads a whole number within bounds. A missing option is zero, the natural voice.
pub fn voice_option<T: TryFrom<i32> + Default>(
    name: &str,
    value: Option<&str>,
    lowest: i32,
    highest: i32,
) -> Result<T, Refusal> {
    let Some(text) = value else {
        return Ok(T::default());
    };
    text.parse::<i32>()
        .ok()
        .filter(|number| (lowest..=highest).contains(number))
        .and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| {
            Refusal::field(format!(
                "{name} must be a whole number from {lowest} to {highest}"
            ))
        })
}

/// The language in which the characters of a code are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CodeLanguage {
    #[serde(rename = "zh")]
    Chinese,
    #[serde(rename = "en")]
    English,
}

impl CodeLanguage {
    pub fn read(value: Option<&str>) -> Result<Self, Refusal> {
        match value {
            None => Ok(Self::Chinese),
            Some(text) if text.eq_ignore_ascii_case("zh") => Ok(Self::Chinese),
            Some(text) if text.eq_ignore_ascii_case("en") => Ok(Self::English),
            Some(_) => Err(Refusal::field("lang must be zh or en")),
        }
    }

    /// The one that a text is written in: Chinese if any character of it is.
    pub fn of_text(text: &str) -> Self {
        let is_chinese = |character| matches!(character, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}');
        if text.chars().any(is_chinese) {
            Self::Chinese
        } else {
            Self::English
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chinese => "zh",
            Self::English => "en",
        }
    }
}

const CODE_LENGTH: RangeInclusive<usize> = 4..=8;

/// A code that is spoken character by character. It is a secret of the application and of the callee: it is never shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyCode {
    /// Digits and capital letters.
    characters: String,
    pub language: CodeLanguage,
}

impl VerifyCode {
    pub fn parse(text: &str, language: CodeLanguage) -> Result<Self, Refusal> {
        if !CODE_LENGTH.contains(&text.chars().count()) {
            return Err(StatusCode::VerifyCodeLength.into());
        }
        if !text.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(Refusal::field(
                "verifyCode must consist of the letters A to Z and the digits 0 to 9",
            ));
        }
        Ok(Self {
            characters: text.to_ascii_uppercase(),
            language,
        })
    }

    pub fn reveal(&self) -> &str {
        &self.characters
    }
}

impl fmt::Debug for VerifyCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifyCode")
            .field("language", &self.language)
            .finish_non_exhaustive()
    }
}

/// The message of one call, stored with the call as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompt {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speech: Option<Speech>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<AudioFile>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<VerifyCode>,
    pub plays: u8,
}

impl Prompt {
    /// Words alone, said once.
    pub fn spoken(speech: Speech) -> Self {
        Self {
            speech: Some(speech),
            files: Vec::new(),
            code: None,
            plays: 1,
        }
    }

    /// What is left of it when what was said is to be forgotten. The names of files can tell a code as well.
    #[must_use]
    pub fn forgotten(&self) -> Self {
        Self {
            speech: None,
            files: Vec::new(),
            code: None,
            plays: self.plays,
        }
    }
}

pub fn play_times(value: Option<&str>) -> Result<u8, Refusal> {
    match value.map(str::parse) {
        None => Ok(1),
        Some(Ok(times @ 1..=3)) => Ok(times),
        Some(_) => Err(StatusCode::PlayTimesRange.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_names_and_never_paths() {
        let names = |text| {
            file_names("mediaName", text, 3)
                .map(|names| names.iter().map(FileName::to_string).collect::<Vec<_>>())
        };
        assert_eq!(names("a.wav").unwrap(), ["a.wav"]);
        assert_eq!(
            names(" a.wav ;b.WAV;;欢迎.wav;").unwrap(),
            ["a.wav", "b.WAV", "欢迎.wav"]
        );
        assert_eq!(names(";;").unwrap(), Vec::<String>::new());
        for text in [
            "../a.wav",
            "/etc/a.wav",
            "c:\\a.wav",
            ".wav",
            ".a.wav",
            "a.mp3",
            "a\u{7}.wav",
            "欢",
        ] {
            assert_eq!(
                names(text).unwrap_err().code,
                StatusCode::FieldWrong,
                "{text}"
            );
        }
        assert_eq!(
            names("a.wav;b.wav;c.wav;d.wav").unwrap_err().code,
            StatusCode::DataTooLong
        );
    }

    #[test]
    fn a_prompt_is_stored_and_read_back() {
        let prompt = Prompt {
            speech: Some(Speech {
                text: "你好".into(),
                speed: -500,
                volume: 20,
                pitch: 0,
                background: 6,
                voice: Some("anna".parse().unwrap()),
                readings: vec![Reading::parse("k8s", "kubernetes").unwrap()],
            }),
            files: vec![AudioFile {
                name: "a.wav".parse().unwrap(),
                content: ContentId::test_file(),
            }],
            code: Some(VerifyCode::parse("a1b2", CodeLanguage::English).unwrap()),
            plays: 3,
        };
        let stored = serde_json::to_string(&prompt).unwrap();
        assert_eq!(serde_json::from_str::<Prompt>(&stored).unwrap(), prompt);
        assert!(!format!("{prompt:?}").contains("A1B2"), "{prompt:?}");
        let forgotten = serde_json::to_string(&prompt.forgotten()).unwrap();
        assert_eq!(forgotten, r#"{"plays":3}"#);
    }

    #[test]
    fn a_code_has_four_to_eight_letters_or_digits() {
        let parse = |text| VerifyCode::parse(text, CodeLanguage::Chinese);
        for (text, characters) in [("1234", "1234"), ("aB9z", "AB9Z"), ("12345678", "12345678")] {
            assert_eq!(parse(text).unwrap().reveal(), characters);
        }
        for text in ["", "123", "123456789", "一二三"] {
            assert_eq!(
                parse(text).unwrap_err().code,
                StatusCode::VerifyCodeLength,
                "{text}"
            );
        }
        for text in ["12 4", "12-34", "１２３４", "12é4", "一二三四"] {
            let refusal = parse(text).unwrap_err();
            assert_eq!(refusal.code, StatusCode::FieldWrong, "{text}");
            assert!(!refusal.message.contains(text), "{refusal}");
        }
    }

    #[test]
    fn a_language_is_chinese_unless_it_is_english() {
        for (value, language) in [
            (None, CodeLanguage::Chinese),
            (Some("zh"), CodeLanguage::Chinese),
            (Some("EN"), CodeLanguage::English),
        ] {
            assert_eq!(CodeLanguage::read(value), Ok(language));
        }
        assert!(
            CodeLanguage::read(Some("fr"))
                .unwrap_err()
                .message
                .contains("lang")
        );
    }
}
