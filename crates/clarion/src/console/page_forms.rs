//! Forms: their fields, and what becomes of one that is refused. Its page comes again with what was typed, and says what is wrong with which field. The rules
//! are those of `management` and of the types of `domain`; here they are only put into the words of the page.

mod setting_words;
mod settings;

use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::Arc;

use axum::http::StatusCode;

use super::refusal::Refused;
use super::sentence::Sentence;
use super::visit::Visit;
use super::words::{Words, fill};
use crate::domain::wording::Wording;
use crate::management::ManagementError;
use crate::management::settings::{SettingError, SettingRule};

pub use self::settings::{SettingGroup, change_of, groups};

/// What is wrong with a field, in a sentence that names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldMistake {
    /// Empty if it is the form as a whole.
    pub field: &'static str,
    pub sentence: Sentence,
}

/// Why a form is not taken.
#[derive(Debug)]
pub enum FormError {
    /// What was typed cannot be meant.
    Mistakes(Vec<FieldMistake>),
    /// The layer below did not do it.
    Management(ManagementError),
}

impl From<ManagementError> for FormError {
    fn from(error: ManagementError) -> Self {
        Self::Management(error)
    }
}

impl From<FieldMistake> for FormError {
    fn from(mistake: FieldMistake) -> Self {
        Self::Mistakes(vec![mistake])
    }
}

/// Reads a field into a value that cannot be wrong.
pub fn read<T: FromStr<Err: Into<Wording>>>(
    visit: &Visit,
    field: &'static str,
    label: &str,
) -> Result<T, FieldMistake> {
    let value = visit.field(field).trim().parse();
    value.map_err(|rule: T::Err| {
        let words = visit.language.words();
        let (text, why) = (words.rule_form, rule.into());
        FieldMistake {
            field,
            sentence: Sentence::with_wording(words, text, &[("field", label)], &why),
        }
    })
}

/// Reads a whole number. Whether it lies within its bounds is for the layer below to say.
pub fn read_number(
    visit: &Visit,
    field: &'static str,
    label: &str,
    within: RangeInclusive<u32>,
) -> Result<u32, FieldMistake> {
    let number = visit.field(field).trim().parse();
    number.map_err(|_| FieldMistake {
        field,
        sentence: said(
            &SettingRule::Between(*within.start(), *within.end()),
            label,
            visit.language.words(),
        ),
    })
}

/// The same of a field that may be left empty.
pub fn read_any<T: FromStr<Err: Into<Wording>>>(
    visit: &Visit,
    field: &'static str,
    label: &str,
) -> Result<Option<T>, FieldMistake> {
    if visit.field(field).trim().is_empty() {
        return Ok(None);
    }
    read(visit, field, label).map(Some)
}

/// What is wrong with a setting that stands in a form of its own.
pub fn setting_mistake(error: &SettingError, label: &str, words: &Words) -> FieldMistake {
    FieldMistake {
        field: error.setting,
        sentence: said(&error.rule, label, words),
    }
}

/// The rule of a setting, in the words of the page.
fn said(rule: &SettingRule, label: &str, words: &Words) -> Sentence {
    let text = match rule {
        SettingRule::Between(least, most) => {
            let (least, most) = (least.to_string(), most.to_string());
            fill(
                words.rule_between,
                &[("field", label), ("least", &least), ("most", &most)],
            )
        }
        SettingRule::OnOff | SettingRule::OneOf(_) => fill(words.rule_choice, &[("field", label)]),
        SettingRule::EmptyList => fill(words.rule_empty, &[("field", label)]),
        SettingRule::Unknown(name) => fill(words.rule_unknown, &[("field", name)]),
        SettingRule::Form(why) => {
            return Sentence::with_wording(words, words.rule_form, &[("field", label)], why);
        }
    };
    text.into()
}

/// The forms of a page: as they stand, or one of them as it was sent and refused.
#[derive(Debug, Default)]
pub struct PageForms {
    refused: Option<RefusedForm>,
}

#[derive(Debug)]
struct RefusedForm {
    form: String,
    visit: Arc<Visit>,
    mistakes: Vec<FieldMistake>,
    status: StatusCode,
}

impl PageForms {
    /// With the form of this name refused. What no other input would mend is refused as a whole.
    pub fn refused(
        visit: &Arc<Visit>,
        form: impl Into<String>,
        error: FormError,
    ) -> Result<Self, Refused> {
        let words = visit.language.words();
        let whole = |why: &Wording| {
            let sentence = Sentence::with_wording(words, words.rule_whole, &[], why);
            vec![FieldMistake {
                field: "",
                sentence,
            }]
        };
        let (mistakes, status) = match error {
            FormError::Mistakes(mistakes) => (mistakes, StatusCode::UNPROCESSABLE_ENTITY),
            FormError::Management(ManagementError::Setting(error)) => {
                let mistakes = vec![setting_mistake(&error, error.setting, words)];
                (mistakes, StatusCode::UNPROCESSABLE_ENTITY)
            }
            FormError::Management(ManagementError::Rule(why)) => {
                (whole(&why), StatusCode::UNPROCESSABLE_ENTITY)
            }
            FormError::Management(error) => match Refused::from(error) {
                Refused::Conflict(why) => (whole(&why), StatusCode::CONFLICT),
                refused => return Err(refused),
            },
        };
        Ok(Self {
            refused: Some(RefusedForm {
                form: form.into(),
                visit: Arc::clone(visit),
                mistakes,
                status,
            }),
        })
    }

    /// With the form of this name as it was sent, and nothing wrong with it.
    pub fn kept(visit: &Arc<Visit>, form: impl Into<String>) -> Self {
        Self {
            refused: Some(RefusedForm {
                form: form.into(),
                visit: Arc::clone(visit),
                mistakes: Vec::new(),
                status: StatusCode::OK,
            }),
        }
    }

    pub fn status(&self) -> StatusCode {
        let refused = self.refused.as_ref();
        refused.map_or(StatusCode::OK, |refused| refused.status)
    }

    /// What is wrong with this form.
    pub fn mistakes(&self, form: &str) -> &[FieldMistake] {
        let refused = self.refused_form(form);
        refused.map_or(&[], |refused| &refused.mistakes)
    }

    /// What was typed, or else what the form begins with.
    pub fn value(&self, form: &str, field: &str, otherwise: &str) -> String {
        let typed = self.refused_form(form);
        let typed = typed.and_then(|refused| refused.visit.given(field));
        // Browsers send line breaks of two characters.
        typed.unwrap_or(otherwise).replace("\r\n", "\n")
    }

    /// A field of one line.
    pub fn line(
        &self,
        form: &str,
        name: &'static str,
        label: &'static str,
        hint: &'static str,
        otherwise: &str,
    ) -> FormField {
        let mut mistakes = self.mistakes(form).iter();
        FormField {
            id: format!("{form}-{name}"),
            name,
            label,
            hint,
            value: self.value(form, name, otherwise),
            was: None,
            is_wrong: mistakes.any(|mistake| mistake.field == name),
            is_secret: false,
            rows: 0,
            choices: Vec::new(),
        }
    }

    fn refused_form(&self, form: &str) -> Option<&RefusedForm> {
        let refused = self.refused.as_ref();
        refused.filter(|refused| refused.form == form)
    }
}

/// A field as a page shows it.
#[derive(Debug)]
pub struct FormField {
    pub id: String,
    pub name: &'static str,
    pub label: &'static str,
    /// Empty if there is nothing to say.
    pub hint: &'static str,
    pub value: String,
    /// What the page showed: whoever leaves that as it is changes nothing, whatever others do meanwhile.
    pub was: Option<String>,
    pub is_wrong: bool,
    /// What is typed is shown to nobody.
    pub is_secret: bool,
    /// Lines of a text; 0 if it has one.
    pub rows: u8,
    /// What can be chosen; none if it is typed.
    pub choices: Vec<FieldChoice>,
}

#[derive(Debug)]
pub struct FieldChoice {
    pub value: &'static str,
    pub word: &'static str,
}

impl FormField {
    #[must_use]
    pub fn secret(mut self) -> Self {
        self.is_secret = true;
        self.value = String::new();
        self
    }

    #[must_use]
    pub fn of_lines(mut self, rows: u8) -> Self {
        self.rows = rows;
        self
    }

    #[must_use]
    pub fn one_of(mut self, choices: Vec<FieldChoice>) -> Self {
        self.choices = choices;
        self
    }

    pub fn is_chosen(&self, choice: &FieldChoice) -> bool {
        self.value == choice.value
    }
}
