//! The notice of an alert: the request that an application would have sent. It is read by the same rules and placed by the same code, so that every number
//! of it is checked like `to`.

use super::super::landing_calls;
use super::super::placing::{self, MadeCall, WantedCall};
use super::super::wire::Fields;
use crate::domain::account::{Account, Application};
use crate::domain::call::Priority;
use crate::domain::call_list::{CallList, ListName};
use crate::domain::intake::{Intake, IntakeFormat, IntakeTarget};
use crate::domain::notice::silence::NoticeSilence;
use crate::domain::number_pattern::matches_any;
use crate::domain::phone_number::PhoneNumber;
use crate::domain::request_key::RequestKey;
use crate::domain::status_code::{Refusal, StatusCode};
use crate::intakes::alert::AlertGroup;
use crate::intakes::speech::{AlertSpeaker, SpokenAlert};
use crate::placing::CallPlacing;

/// Below Alertmanager's own address.
const SILENCES: &str = "/api/v2/silences";

/// Who calls because of an alert.
#[derive(Debug, Clone, Copy)]
pub struct AlertCaller<'a> {
    pub placing: &'a CallPlacing,
    pub account: &'a Account,
    pub intake: &'a Intake,
}

/// A notice that keeps all rules, as far as they can be known before it is placed.
#[derive(Debug)]
pub struct WantedAlert {
    pub spoken: SpokenAlert,
    /// Whom it calls, in the order of their turns, as operators write them.
    pub callees: Vec<String>,
    /// Why those are not called whom the alert names, where that is so.
    pub not_called: Option<Refusal>,
    call: WantedCall,
}

impl AlertCaller<'_> {
    /// How this intake says an alert at this moment.
    pub fn speaking<T>(&self, work: impl FnOnce(&AlertSpeaker<'_>) -> T) -> T {
        let now = self.placing.clock().wall();
        work(&AlertSpeaker {
            intake: &self.intake.name,
            format: self.intake.format,
            settings: &self.intake.settings,
            now: &now,
            longest: self.placing.config().calls.max_text_characters,
        })
    }

    /// The notice that an alert asks for.
    pub async fn wanted(&self, group: &AlertGroup) -> Result<WantedAlert, Refusal> {
        let spoken = self.speaking(|speaker| speaker.say(group));
        let (callees, not_called) = self.callees(group).await?;
        let silence = self.silence(group);
        let texts = self.texts(group, &spoken, &callees, silence.as_ref());
        let fields = Fields::of(&landing_calls::FORM, texts)?;
        let config = self.placing.config();
        let mut call = landing_calls::read(&fields, self.account, config)?;
        if let Some(wanted) = &mut call.notice {
            wanted.notice.silence = silence;
        }
        Ok(WantedAlert {
            spoken,
            callees,
            not_called,
            call,
        })
    }

    pub async fn place(
        &self,
        application: &Application,
        wanted: WantedAlert,
        request: Option<RequestKey>,
    ) -> Result<MadeCall, Refusal> {
        let (placing, account) = (self.placing, self.account);
        placing::make(placing, account, application, wanted.call, request).await
    }

    /// The fields of the request.
    fn texts<'a>(
        &'a self,
        group: &'a AlertGroup,
        spoken: &SpokenAlert,
        callees: &[String],
        silence: Option<&NoticeSilence>,
    ) -> Vec<(&'a str, String)> {
        let plan = &self.intake.settings.plan;
        // A notice in any case: only those end as resolved.
        let mut texts = vec![("priority", Priority::USUAL.number().to_string())];
        texts.extend(
            plan.iter()
                .map(|(field, value)| (field.as_str(), value.clone())),
        );
        texts.extend(group.fields.iter().cloned());
        if let Some(silence) = silence {
            let own = texts.iter().rfind(|(field, _)| *field == "confirmDtmf");
            let own = own.map_or_else(String::new, |(_, keys)| format!("{keys};"));
            texts.push(("confirmDtmf", format!("{own}{}", silence.key)));
        }
        let (to, backups) = callees.split_at(usize::from(!callees.is_empty()));
        let key = group.incident();
        let about = serde_json::json!({ "intake": self.intake.name.as_str(), "key": key.as_str() });
        texts.push(("to", to.concat()));
        texts.push(("backupTo", backups.join(";")));
        texts.push(("mediaTxt", spoken.text.clone()));
        texts.push(("userData", about.to_string()));
        texts
    }

    /// What a callee may ask Alertmanager for. A group that has no labels cannot be told from others, so it cannot be silenced.
    fn silence(&self, group: &AlertGroup) -> Option<NoticeSilence> {
        let is_known = self.intake.format == IntakeFormat::Alertmanager;
        let has_labels = group.group.values().any(|value| !value.is_empty());
        let terms = self.intake.settings.silence();
        let terms = terms.filter(|_| is_known && has_labels)?;
        Some(NoticeSilence {
            key: terms.key,
            url: format!("{}{SILENCES}", terms.url.trim_end_matches('/')),
            minutes: terms.minutes,
            labels: group.group.clone(),
            author: format!("clarion, intake {}", self.intake.name),
        })
    }

    /// Whom to call: those whom the alert names, if the intake allows them, or else its own people. Whoever can write a label can neither call the world
    /// nor keep an alert from being heard; whoever names a number in a body is told no.
    async fn callees(&self, group: &AlertGroup) -> Result<(Vec<String>, Option<Refusal>), Refusal> {
        let own = &self.intake.settings.to;
        if group.to.is_empty() {
            return Ok((self.turns(own).await?, None));
        }
        let by_label = match self.intake.format {
            IntakeFormat::Alertmanager | IntakeFormat::Grafana | IntakeFormat::UptimeKuma => true,
            IntakeFormat::Zabbix | IntakeFormat::SmsEagle | IntakeFormat::Json => false,
        };
        let named = async { self.turns(&self.allowed(&group.to)?).await };
        match named.await {
            Ok(callees) => Ok((callees, None)),
            Err(refusal) if by_label && !own.is_empty() && !is_passing(&refusal) => {
                Ok((self.turns(own).await?, Some(refusal)))
            }
            Err(refusal) => Err(refusal),
        }
    }

    /// Those whom an alert names, if all of them may be named.
    fn allowed(&self, names: &[String]) -> Result<Vec<IntakeTarget>, Refusal> {
        let plan = &self.placing.config().numbers;
        let allow = |name: &String| {
            if let Some(list) = name.strip_prefix('@') {
                let list = list
                    .parse::<ListName>()
                    .map_err(|rule| Refusal::field(format!("to: after '@', {rule}")))?;
                return Ok(IntakeTarget::List(list));
            }
            match PhoneNumber::parse(name, plan) {
                Ok(number) => {
                    let patterns = &self.intake.settings.allowed_numbers;
                    if !matches_any(patterns, number.digits()) {
                        return Err(Refusal::new(
                            StatusCode::CalledNotAllowed,
                            "to: the number is not one that this intake allows (its setting allow-numbers)",
                        ));
                    }
                    Ok(IntakeTarget::Number(name.clone()))
                }
                // What is no number may be the name of a list.
                Err(refusal) => match name.parse() {
                    Ok(list) => Ok(IntakeTarget::List(list)),
                    Err(_) => Err(refusal),
                },
            }
        };
        names.iter().map(allow).collect()
    }

    /// As a request names them: the first is a number, so where a list comes first, its first number that may be called does.
    async fn turns(&self, targets: &[IntakeTarget]) -> Result<Vec<String>, Refusal> {
        let names: Vec<_> = targets
            .iter()
            .filter_map(|target| match target {
                IntakeTarget::List(name) => Some(name.clone()),
                IntakeTarget::Number(_) => None,
            })
            .collect();
        let lists = self.placing.lists(self.account, &names).await?;
        let missing = names
            .iter()
            .find(|name| !lists.iter().any(|list| list.name == **name));
        if let Some(name) = missing {
            return Err(Refusal::field(format!(
                "to: {name} must be a list of the account, and there is none of that name"
            )));
        }
        let written = || targets.iter().map(ToString::to_string);
        let first_of = |target: &IntakeTarget| match target {
            IntakeTarget::Number(number) => Some(number.clone()),
            IntakeTarget::List(name) => {
                let list: &CallList = lists.iter().find(|list| list.name == *name)?;
                self.placing.first_of(list, self.account).map(str::to_owned)
            }
        };
        if let Some(IntakeTarget::Number(_)) = targets.first() {
            return Ok(written().collect());
        }
        let first = targets.iter().find_map(first_of).ok_or_else(|| {
            let message = "to: the intake has nobody who may be called, and the alert names nobody";
            Refusal::new(StatusCode::CalledNotAllowed, message)
        })?;
        Ok(std::iter::once(first).chain(written()).collect())
    }
}

/// Whether trying again helps.
fn is_passing(refusal: &Refusal) -> bool {
    matches!(refusal.code, StatusCode::UnknownError | StatusCode::NoRoom)
}
