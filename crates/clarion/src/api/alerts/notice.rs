//! The notice of an alert: the request that an application would have sent. It is read by the same rules and placed by the same code, so that every number
//! of it is checked like `to`.

use super::super::landing_calls;
use super::super::placing::{self, CommonFields, MadeCall, WantedCall};
use super::super::wire::Fields;
use crate::domain::account::{Account, Application};
use crate::domain::call::Priority;
use crate::domain::call_list::{CallList, ListName};
use crate::domain::intake::{Intake, IntakeFormat, IntakeTarget};
use crate::domain::notice::Recipient;
use crate::domain::notice::silence::NoticeSilence;
use crate::domain::number_pattern::matches_any;
use crate::domain::phone_number::PhoneNumber;
use crate::domain::request_key::RequestKey;
use crate::domain::status_code::{Refusal, StatusCode};
use crate::domain::wording::wording;
use crate::intakes::alert::AlertGroup;
use crate::intakes::speech::{AlertSpeaker, SpokenAlert};
use crate::placing::CallPlacing;

/// Below Alertmanager's own address.
const SILENCES: &str = "/api/v2/silences";

/// Stands for whom alerts will name, where the other fields of a request are checked before.
const SOMEBODY: &str = "+8613800000000";

/// Who calls because of an alert.
#[derive(Debug, Clone, Copy)]
pub struct AlertCaller<'a> {
    pub placing: &'a CallPlacing,
    pub account: &'a Account,
    pub intake: &'a Intake,
    /// A trial is about nothing that could be silenced.
    pub is_trial: bool,
}

/// A notice that keeps all rules, as far as they can be known before it is placed.
#[derive(Debug)]
pub struct WantedAlert {
    pub spoken: SpokenAlert,
    /// Whom it calls, in the order of their turns, as operators write them.
    pub callees: Vec<String>,
    /// Why those are not called whom the alert names, where that is so.
    pub not_called: Option<Refusal>,
    /// Why some of the intake's people are not called, where that is so.
    pub left_out: Option<Refusal>,
    call: WantedCall,
}

/// People in the order of their turns.
struct Turns {
    callees: Vec<String>,
    left_out: Option<Refusal>,
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

    /// The notice that an alert asks for. It calls those whom the alert names, if the intake allows them, or else its own people: whoever can write a label
    /// can neither call the world nor keep an alert from being heard; whoever names a number in a body is told no.
    pub async fn wanted(&self, group: &AlertGroup) -> Result<WantedAlert, Refusal> {
        if group.to.is_empty() {
            return self.wanted_of_own(group, None).await;
        }
        let named = async {
            let turns = self.turns_of_named(&self.allowed(&group.to)?).await?;
            self.read(group, turns)
        };
        match named.await {
            Err(refusal) if self.own_stand_in(&refusal) => {
                self.wanted_of_own(group, Some(refusal)).await
            }
            wanted => wanted,
        }
    }

    async fn wanted_of_own(
        &self,
        group: &AlertGroup,
        not_called: Option<Refusal>,
    ) -> Result<WantedAlert, Refusal> {
        let turns = self.turns_of_own().await?;
        Ok(WantedAlert {
            not_called,
            ..self.read(group, turns)?
        })
    }

    /// Whether the people of the intake are called where those whom an alert names cannot be.
    fn own_stand_in(&self, refusal: &Refusal) -> bool {
        let by_label = match self.intake.format {
            IntakeFormat::Alertmanager | IntakeFormat::Grafana | IntakeFormat::UptimeKuma => true,
            IntakeFormat::Zabbix | IntakeFormat::SmsEagle | IntakeFormat::Json => false,
        };
        by_label && !self.intake.settings.to.is_empty() && !is_passing(refusal)
    }

    fn read(&self, group: &AlertGroup, turns: Turns) -> Result<WantedAlert, Refusal> {
        let spoken = self.speaking(|speaker| speaker.say(group));
        let silence = self.silence(group);
        let fields = self.fields(group, &spoken, &turns.callees, silence.as_ref())?;
        let mut call = landing_calls::read(&fields, self.account, self.placing.config())?;
        if let Some(wanted) = &mut call.notice {
            wanted.notice.silence = silence;
        }
        Ok(WantedAlert {
            spoken,
            callees: turns.callees,
            not_called: None,
            left_out: turns.left_out,
            call,
        })
    }

    /// Whether the plan of the intake keeps the rules, whoever will be called.
    pub fn check_plan(&self, group: &AlertGroup) -> Result<(), Refusal> {
        let spoken = self.speaking(|speaker| speaker.say(group));
        let config = self.placing.config();
        let number = PhoneNumber::parse(SOMEBODY, &config.numbers)?;
        let to = Recipient {
            called: SOMEBODY.to_owned(),
            callee: config.numbers.callee(&number),
            caller: self.account.caller(None, &number, &config.numbers),
            number,
        };
        let fields = self.fields(group, &spoken, &[], self.silence(group).as_ref())?;
        let common = CommonFields::read_for(to, &fields, config)?;
        landing_calls::read_others(common, &fields, self.account, config)?;
        Ok(())
    }

    /// Why those were not called whom the alert names is told beside the call, where that is found out only now.
    pub async fn place(
        &self,
        application: &Application,
        group: &AlertGroup,
        wanted: WantedAlert,
        request: Option<RequestKey>,
    ) -> Result<(MadeCall, Option<Refusal>), Refusal> {
        let (placing, account) = (self.placing, self.account);
        let is_named = !group.to.is_empty() && wanted.not_called.is_none();
        let made = placing::make(placing, account, application, wanted.call, request.clone());
        match made.await {
            Err(refusal) if is_named && self.own_stand_in(&refusal) => {
                let own = self.wanted_of_own(group, None).await?;
                let made = placing::make(placing, account, application, own.call, request).await?;
                Ok((made, Some(refusal)))
            }
            made => Ok((made?, None)),
        }
    }

    /// The fields of the request.
    fn fields(
        &self,
        group: &AlertGroup,
        spoken: &SpokenAlert,
        callees: &[String],
        silence: Option<&NoticeSilence>,
    ) -> Result<Fields, Refusal> {
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
        Fields::of(&landing_calls::FORM, texts)
    }

    /// What a callee may ask Alertmanager for. A group that has no labels cannot be told from others, so it cannot be silenced.
    fn silence(&self, group: &AlertGroup) -> Option<NoticeSilence> {
        let is_known = self.intake.format == IntakeFormat::Alertmanager;
        let has_labels = group.group.values().any(|value| !value.is_empty());
        let silence = self.intake.settings.silence();
        let silence = silence.filter(|_| is_known && has_labels && !self.is_trial)?;
        Some(NoticeSilence {
            key: silence.key,
            url: format!("{}{SILENCES}", silence.url.trim_end_matches('/')),
            minutes: silence.minutes,
            labels: group.group.clone(),
            author: format!("clarion, intake {}", self.intake.name),
        })
    }

    /// Those whom an alert names, if all of them may be named.
    fn allowed(&self, names: &[String]) -> Result<Vec<IntakeTarget>, Refusal> {
        let plan = &self.placing.config().numbers;
        let allow = |name: &String| {
            if let Some(list) = name.strip_prefix('@') {
                let list = list.parse::<ListName>().map_err(|rule| {
                    let refusal = Refusal::worded(StatusCode::FieldWrong, &rule);
                    refusal.about("to: after '@',")
                })?;
                return Ok(IntakeTarget::List(list));
            }
            match PhoneNumber::parse(name, plan) {
                Ok(number) => {
                    let patterns = &self.intake.settings.allowed_numbers;
                    if !matches_any(patterns, number.digits()) {
                        let rule = wording!(
                            "to: the number is not one that this intake allows (its setting allow-numbers)",
                            "该号码不在“告警可指定的号码”之内"
                        );
                        return Err(Refusal::worded(StatusCode::CalledNotAllowed, &rule));
                    }
                    Ok(IntakeTarget::Number(name.clone()))
                }
                // What is no number may be the name of a list, unless it looks like one that was mistyped.
                Err(refusal) if !name.contains(char::is_alphabetic) => Err(refusal),
                Err(refusal) => match name.parse() {
                    Ok(list) => Ok(IntakeTarget::List(list)),
                    Err(_) => Err(refusal),
                },
            }
        };
        names.iter().map(allow).collect()
    }

    /// All of them may be called.
    async fn turns_of_named(&self, targets: &[IntakeTarget]) -> Result<Turns, Refusal> {
        for number in targets.iter().filter_map(IntakeTarget::number) {
            self.check_callee(number)?;
        }
        self.turns(targets, None).await
    }

    /// One of the intake's people who may not be called any more makes way for the others: nobody can correct that at night.
    async fn turns_of_own(&self) -> Result<Turns, Refusal> {
        let (mut targets, mut left_out) = (Vec::new(), None);
        for target in &self.intake.settings.to {
            match target
                .number()
                .map_or(Ok(()), |number| self.check_callee(number))
            {
                Ok(()) => targets.push(target.clone()),
                Err(refusal) => left_out = left_out.or(Some(refusal)),
            }
        }
        match left_out {
            Some(refusal) if targets.is_empty() => Err(refusal),
            left_out => self.turns(&targets, left_out).await,
        }
    }

    fn check_callee(&self, number: &str) -> Result<(), Refusal> {
        self.placing
            .check_callee(number, self.shown(), self.account)
    }

    fn shown(&self) -> Option<&str> {
        let shown = self.intake.settings.plan.get("displayNum");
        shown.map(String::as_str)
    }

    /// As a request names them: the first is a number, so where a list comes first, its first number that may be called does.
    async fn turns(
        &self,
        targets: &[IntakeTarget],
        left_out: Option<Refusal>,
    ) -> Result<Turns, Refusal> {
        let lists = targets.iter().filter_map(IntakeTarget::list);
        let names: Vec<_> = lists.cloned().collect();
        let lists = self.placing.lists(self.account, &names).await?;
        let missing = names
            .iter()
            .find(|name| !lists.iter().any(|list| list.name == **name));
        if let Some(name) = missing {
            let rule = wording!(
                "to: {name} must be a list of the account, and there is none of that name",
                "账户没有名为 {name} 的号码列表"
            );
            return Err(Refusal::worded(StatusCode::FieldWrong, &rule));
        }
        let written = targets.iter().map(ToString::to_string);
        if targets
            .first()
            .is_some_and(|first| first.number().is_some())
        {
            return Ok(Turns {
                callees: written.collect(),
                left_out,
            });
        }
        let first_of = |target: &IntakeTarget| match target {
            IntakeTarget::Number(number) => Some(number.clone()),
            IntakeTarget::List(name) => {
                let list: &CallList = lists.iter().find(|list| list.name == *name)?;
                let first = self.placing.first_of(list, self.shown(), self.account);
                first.map(str::to_owned)
            }
        };
        let first = targets.iter().find_map(first_of).ok_or_else(|| {
            let rule = wording!(
                "to: the intake has nobody who may be called, and the alert names nobody",
                "接入点没有可以呼叫的号码，告警也未指定"
            );
            Refusal::worded(StatusCode::CalledNotAllowed, &rule)
        })?;
        Ok(Turns {
            callees: std::iter::once(first).chain(written).collect(),
            left_out,
        })
    }
}

/// Whether trying again helps.
fn is_passing(refusal: &Refusal) -> bool {
    matches!(refusal.code, StatusCode::UnknownError | StatusCode::NoRoom)
}
