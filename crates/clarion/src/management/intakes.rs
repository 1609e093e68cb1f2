//! Intakes: where alerts come in, what is said of them and who is called. A template is tried when it is saved, and so is the plan: at night nobody can
//! correct them.

use std::sync::Arc;

use jiff::SignedDuration;

use super::change::NotedChange;
use super::{Management, ManagementError, settings};
use crate::api::alerts::AlertCaller;
use crate::domain::account::{Account, AppId, Application};
use crate::domain::call::CallSid;
use crate::domain::intake::change::IntakeChange;
use crate::domain::intake::incident::Incident;
use crate::domain::intake::{Intake, IntakeFormat, IntakeName, IntakeSettings, IntakeToken};
use crate::domain::status_code::Refusal;
use crate::domain::wording::{Wording, wording};
use crate::intakes::alert::{AlertGroup, AlertNews};
use crate::intakes::formats::{AlertReader, sample};
use crate::placing::CallPlacing;
use crate::random;

/// The least time between two changes.
const A_MOMENT: SignedDuration = SignedDuration::from_millis(1);
/// Incidents that are shown of an intake.
const MAX_SHOWN: u32 = 100;

/// An intake that is to be made.
#[derive(Debug)]
pub struct NewIntake {
    pub name: IntakeName,
    pub app: AppId,
    pub format: IntakeFormat,
    pub settings: IntakeChange,
}

/// What an alert would come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriedAlert {
    /// What the tool calls the incident.
    pub key: String,
    /// `None` if it is the end of one, or calls nobody for another reason.
    pub notice: Option<TriedNotice>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriedNotice {
    pub text: String,
    /// Why the template did not make the text, where it did not.
    pub failure: Option<String>,
    /// Whom it would call, in the order of their turns.
    pub callees: Vec<String>,
    /// Why those are not called whom the alert names.
    pub not_called: Option<Wording>,
    /// The call that was made, where one was wanted.
    pub call: Option<CallSid>,
}

/// Everything that it takes to try an intake.
struct TrialRoom {
    placing: Arc<CallPlacing>,
    account: Account,
    application: Application,
    intake: Intake,
}

impl TrialRoom {
    fn caller(&self) -> AlertCaller<'_> {
        AlertCaller {
            placing: &self.placing,
            account: &self.account,
            intake: &self.intake,
            is_trial: false,
        }
    }

    fn read(&self, body: &[u8]) -> Result<Vec<AlertNews>, ManagementError> {
        let reader = AlertReader {
            format: self.intake.format,
            settings: &self.intake.settings,
            zone: self.placing.clock().zone(),
        };
        Ok(reader.read(body)?)
    }
}

impl Management {
    /// By their names.
    pub async fn intakes(&self) -> Result<Vec<Intake>, ManagementError> {
        Ok(self.store.intakes().await?)
    }

    pub async fn intake(&self, name: &IntakeName) -> Result<Intake, ManagementError> {
        let found = self.store.intake(name).await?;
        found.ok_or_else(|| ManagementError::missing(format!("intake {name}")))
    }

    /// The newest first.
    pub async fn incidents(&self, name: &IntakeName) -> Result<Vec<Incident>, ManagementError> {
        Ok(self.store.open_incidents(name, MAX_SHOWN).await?)
    }

    /// The intake with its token, which is never shown again.
    pub async fn add_intake(
        &self,
        new: NewIntake,
    ) -> Result<(Intake, IntakeToken), ManagementError> {
        let change = NotedChange::new("intake add")
            .on(&new.name)
            .with("app", &new.app)
            .with("format", new.format.as_str());
        let change = settings::noted(change, &new.settings);
        let token = IntakeToken::new(random::bytes());
        let now = self.clock.now();
        let mut intake = Intake {
            name: new.name,
            app: new.app,
            format: new.format,
            token: token.hash(),
            settings: IntakeSettings::default(),
            created_at: now,
            updated_at: now,
        };
        intake.settings.apply(new.settings);
        let add = async {
            self.check_intake(&intake).await?;
            self.store.add_intake(intake.clone()).await?;
            Ok::<_, ManagementError>(intake)
        };
        let intake = self.noted(change, Box::pin(add)).await?;
        Ok((intake, token))
    }

    pub async fn set_intake(
        &self,
        name: &IntakeName,
        settings: IntakeChange,
    ) -> Result<Intake, ManagementError> {
        let change = settings::noted(NotedChange::new("intake set").on(name), &settings);
        let set = async {
            loop {
                let mut intake = self.intake(name).await?;
                let read_at = intake.updated_at;
                intake.settings.apply(settings.clone());
                // Later than before, so that whoever has read it before notices.
                intake.updated_at = (self.clock.now()).max(read_at + A_MOMENT);
                self.check_intake(&intake).await?;
                if self.store.set_intake(intake.clone(), read_at).await? {
                    return Ok::<_, ManagementError>(intake);
                }
            }
        };
        self.noted(change, Box::pin(set)).await
    }

    /// The intake with its new token, which is never shown again. The old one is worth nothing from now on.
    pub async fn rotate_intake_token(
        &self,
        name: &IntakeName,
    ) -> Result<(Intake, IntakeToken), ManagementError> {
        let change = NotedChange::new("intake rotate-token").on(name);
        let token = IntakeToken::new(random::bytes());
        let rotate = async {
            let set = self
                .store
                .set_intake_token(name, token.hash(), self.clock.now());
            set.await?;
            self.intake(name).await
        };
        let intake = self.noted(change, rotate).await?;
        Ok((intake, token))
    }

    /// Its incidents go with it; notices under way go on.
    pub async fn remove_intake(&self, name: &IntakeName) -> Result<(), ManagementError> {
        let change = NotedChange::new("intake remove").on(name);
        self.noted(change, self.store.remove_intake(name)).await
    }

    /// What an alert would come to, with these settings: this alert, or the sample of the format. Nothing is changed.
    pub async fn preview_intake(
        &self,
        name: &IntakeName,
        settings: IntakeChange,
        body: Option<&[u8]>,
    ) -> Result<Vec<TriedAlert>, ManagementError> {
        let mut intake = self.intake(name).await?;
        intake.settings.apply(settings);
        let room = self.trial_room(intake).await?;
        Box::pin(tried(&room, body, false)).await
    }

    /// The same with a call: the people of the intake are called as if such an alert had come. No incident is opened.
    pub async fn test_intake(
        &self,
        name: &IntakeName,
        body: Option<&[u8]>,
    ) -> Result<Vec<TriedAlert>, ManagementError> {
        let change = NotedChange::new("intake test").on(name);
        let change = change.where_so("call", true);
        let test = async {
            let room = self.trial_room(self.intake(name).await?).await?;
            tried(&room, body, true).await
        };
        self.noted(change, Box::pin(test)).await
    }

    async fn trial_room(&self, intake: Intake) -> Result<TrialRoom, ManagementError> {
        let application = self.application(&intake.app).await?;
        let account = self.account(&application.account).await?;
        account.check_state()?;
        application.check_usable_by(&account.sid)?;
        Ok(TrialRoom {
            placing: self.placing().await?,
            account,
            application,
            intake,
        })
    }

    /// Whether an alert of its format would be said and would call somebody, by all rules of a request.
    async fn check_intake(&self, intake: &Intake) -> Result<(), ManagementError> {
        let settings = &intake.settings;
        let has_silence = settings.silence_key.is_some() || settings.silence_url.is_some();
        if has_silence && intake.format != IntakeFormat::Alertmanager {
            return Err(ManagementError::rule(wording!(
                "only an intake of the format alertmanager has silences",
                "只有 alertmanager 格式的接入点支持静默"
            )));
        }
        if settings.silence_key.is_some() != settings.silence_url.is_some() {
            return Err(ManagementError::rule(wording!(
                "a silence needs both silence-key and silence-url",
                "启用静默须同时填写静默键和 Alertmanager 地址"
            )));
        }
        let room = self.trial_room(intake.clone()).await?;
        for news in room.read(sample(intake.format).as_bytes())? {
            let AlertNews::Firing(mut group) = news else {
                continue;
            };
            let said = room.caller().speaking(|speaker| speaker.check(&group));
            said.map_err(|why| ManagementError::rule(wording!("text", "模板有误").because(why)))?;
            group.to.clear();
            room.caller().check_plan(&group)?;
            // Where alerts name their callees themselves, there may be nobody here.
            if settings.to.is_empty() {
                if settings.allowed_numbers.is_empty() && settings.to_label.is_none() {
                    return Err(ManagementError::rule(wording!(
                        "to: name somebody to call, or what alerts may name (allow-numbers, to-label)",
                        "请填写呼叫对象，或告警可指定的号码，或指定呼叫对象的标签"
                    )));
                }
                continue;
            }
            if let Some(refusal) = room.caller().wanted(&group).await?.left_out {
                return Err(refusal.into());
            }
        }
        Ok(())
    }
}

async fn tried(
    room: &TrialRoom,
    body: Option<&[u8]>,
    is_called: bool,
) -> Result<Vec<TriedAlert>, ManagementError> {
    let body = body.unwrap_or(sample(room.intake.format).as_bytes());
    let mut tried = Vec::new();
    for news in room.read(body)? {
        tried.push(match news {
            AlertNews::Firing(group) => TriedAlert {
                notice: Some(tried_notice(room, &group, is_called).await?),
                key: group.key,
            },
            AlertNews::Resolved(key) | AlertNews::PartlyResolved(key) => {
                TriedAlert { key, notice: None }
            }
            AlertNews::Nothing => TriedAlert {
                key: String::new(),
                notice: None,
            },
        });
    }
    Ok(tried)
}

async fn tried_notice(
    room: &TrialRoom,
    group: &AlertGroup,
    is_called: bool,
) -> Result<TriedNotice, ManagementError> {
    let caller = AlertCaller {
        is_trial: is_called,
        ..room.caller()
    };
    let wanted = caller.wanted(group).await?;
    let not_called = wanted.not_called.as_ref();
    let mut notice = TriedNotice {
        text: wanted.spoken.text.clone(),
        failure: wanted.spoken.failure.clone(),
        callees: wanted.callees.clone(),
        not_called: not_called.map(Refusal::wording),
        call: None,
    };
    if is_called {
        let placed = caller.place(&room.application, group, wanted, None);
        let (made, refused) = placed.await?;
        notice.call = Some(made.call);
        notice.not_called = notice
            .not_called
            .or(refused.map(|refusal| refusal.wording()));
    }
    Ok(notice)
}
