//! Why a request was not answered as it wished.

use axum::http::StatusCode;

use super::sentence::Sentence;
use super::words::Words;
use crate::domain::wording::Wording;
use crate::management::ManagementError;

#[derive(Debug)]
pub enum Refused {
    NotSignedIn,
    NotAllowed,
    WrongToken,
    ForeignOrigin,
    BadForm,
    NotFound,
    /// Too many at once.
    Busy,
    /// A file is larger than files may be, or there are too many.
    TooLarge,
    /// What was wanted cannot be done, and why.
    Conflict(Wording),
    /// The store could not be asked.
    Failed(String),
}

impl From<ManagementError> for Refused {
    fn from(error: ManagementError) -> Self {
        if error.is_missing() {
            return Self::NotFound;
        }
        if error.is_refusal() {
            return Self::Conflict(error.wording());
        }
        Self::Failed(error.to_string())
    }
}

impl Refused {
    pub fn status(&self) -> StatusCode {
        match self {
            Self::NotSignedIn => StatusCode::UNAUTHORIZED,
            Self::NotAllowed | Self::WrongToken | Self::ForeignOrigin => StatusCode::FORBIDDEN,
            Self::BadForm => StatusCode::BAD_REQUEST,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Busy => StatusCode::TOO_MANY_REQUESTS,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Conflict(_) => StatusCode::CONFLICT,
            Self::Failed(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// Strangers are not told what the database says.
    pub fn sentence(&self, words: &Words, is_signed_in: bool) -> Sentence {
        let because = |text: &str, said: &Wording| Sentence::with_wording(words, text, &[], said);
        let text = match self {
            Self::NotSignedIn => words.refused_not_signed_in,
            Self::NotAllowed => words.refused_not_allowed,
            Self::WrongToken => words.refused_token,
            Self::ForeignOrigin => words.refused_origin,
            Self::BadForm => words.refused_form,
            Self::NotFound => words.refused_not_found,
            Self::Busy => words.refused_busy,
            Self::TooLarge => words.refused_too_large,
            Self::Conflict(said) => return because(words.refused_conflict, said),
            Self::Failed(said) if is_signed_in => {
                let text = format!("{} {{why}}", words.refused_failed);
                return because(&text, &Wording::quoting(said));
            }
            Self::Failed(_) => words.refused_failed,
        };
        text.into()
    }
}
