//! The fields of a notice: what a request may ask for beyond one call. A request that sends none of them is a simple call.

use std::sync::Arc;

use jiff::SignedDuration;
use jiff::civil::DateTime;

use super::event_fields;
use super::key_fields::{WantedKeys, WantedQuestion};
use super::wire::{Field, Fields};
use crate::config::Config;
use crate::domain::account::Account;
use crate::domain::call::Priority;
use crate::domain::call_list::ListName;
use crate::domain::call_window::CallWindow;
use crate::domain::notice::machine::MachineDetection;
use crate::domain::notice::plan::{NoticePlan, RedialReason};
use crate::domain::notice::{NamedList, Notice, Recipient};
use crate::domain::prompt::Prompt;
use crate::domain::status_code::Refusal;
use crate::domain::voice_name::VoiceName;
use crate::placing::{PlacingTimes, RequestTimes, recipient};

const MAX_REDIALS: u16 = 10;
const SHORTEST_PAUSE: i64 = 10;
const LONGEST_PAUSE: i64 = 86_400;
const MAX_BACKUPS: usize = 20;
const LONGEST_DELAY: SignedDuration = SignedDuration::from_hours(30 * 24);
const LONGEST_VALIDITY: i64 = 30 * 86_400;
const RING: std::ops::RangeInclusive<u16> = 10..=120;

pub const REDIAL_TIMES: Field = Field::optional(
    "redialTimes",
    "0",
    "0 to 10: further tries of a number after the first.",
);
pub const REDIAL_INTERVAL: Field = Field::optional(
    "redialInterval",
    "60",
    "Seconds from the end of a number's last try to its next one, 10 to 86400; up to 10 values separated by `;`, of which the last repeats.",
);
pub const REDIAL_ON: Field = Field::optional(
    "redialOn",
    "all but declined",
    "Endings after which a number is tried again, separated by `;`: busy, noanswer, declined, unconfirmed, machine, failed. Any other ending finishes the number, and the next one has its turn.",
);
pub const BACKUP_TO: Field = Field::optional(
    "backupTo",
    "",
    "Up to 20 numbers, separated by `;`, that are called in turn when a number is finished. `@name` stands for the numbers of a list of the account, as they are when they have their turn.",
);
pub const BACKUP_AFTER: Field = Field::optional(
    "backupAfter",
    "all of them",
    "1 to 11: tries of a number before the next one has its turn; after the last number the first begins again while tries are left.",
);
pub const START_TIME: Field = Field::optional(
    "startTime",
    "now",
    "yyyyMMddHHmmss in the platform's zone, at most 30 days ahead: nothing is dialled before.",
);
pub const CALL_WINDOW: Field = Field::optional(
    "callWindow",
    "the account's hours",
    "Days (1 is Monday) and hours in which calls may be made, in the platform's zone, such as `1-5 0800-2100;6-7 1000-1800`. `2200-0600` belongs to the day on which it begins.",
);
pub const VALID_TIME: Field = Field::optional(
    "validTime",
    "the platform's",
    "1 to 2592000 (30 days): seconds after which no further attempt is begun; only time in the open window counts, by the hours that the account has when the request comes.",
);
pub const PRIORITY: Field = Field::optional(
    "priority",
    "5",
    "1 to 9: 1 is dialled first among the calls of an account.",
);
pub const RING_TIME: Field = Field::optional(
    "ringTime",
    "the platform's",
    "10 to 120: seconds that one attempt may ring.",
);

pub const MACHINE_DETECT: Field = Field::optional(
    "machineDetect",
    "0",
    "0: people and answering machines are not told apart. 1: `answeredby` says who answered. 2: as 1, and a machine is hung up on. 3: as 1, and the message is spoken after the beep of a machine, for which is waited 45 seconds at most. With 2 and 3 the message begins when it is known who has answered, after 4 seconds at most.",
);

/// Each of them makes a request a notice.
const NAMES: [&str; 10] = [
    REDIAL_TIMES.name,
    REDIAL_INTERVAL.name,
    REDIAL_ON.name,
    BACKUP_TO.name,
    BACKUP_AFTER.name,
    START_TIME.name,
    CALL_WINDOW.name,
    VALID_TIME.name,
    PRIORITY.name,
    RING_TIME.name,
];

/// A notice as a request asks for it.
#[derive(Debug)]
pub struct WantedNotice {
    pub notice: Notice,
    pub priority: Priority,
    /// What is asked of the callee, as the request says it.
    keys: Option<WantedKeys>,
    /// It asks for more than the vendor's clients do.
    pub is_new: bool,
    start_at: Option<DateTime>,
    valid_for: Option<SignedDuration>,
}

impl WantedNotice {
    /// `None` if the request sends none of the fields.
    pub fn read(
        fields: &Fields,
        account: &Account,
        config: &Config,
        to: &Recipient,
    ) -> Result<Option<Self>, Refusal> {
        let machine = machine_detection(fields)?;
        let mut any = machine.is_some();
        for name in NAMES {
            any |= fields.text(name)?.is_some();
        }
        let keys = WantedKeys::read(fields, config)?;
        let is_watched = event_fields::subscription(fields).is_some();
        if !any && keys.is_none() && !is_watched {
            return Ok(None);
        }
        let (backups, lists) = backups(fields, account, config, to)?;
        let plan = NoticePlan {
            redials: whole(fields, REDIAL_TIMES.name, 0..=MAX_REDIALS)?.unwrap_or(0),
            pauses: pauses(fields)?,
            redial_on: redial_on(fields)?,
            tries_a_turn: whole(fields, BACKUP_AFTER.name, 1..=MAX_REDIALS + 1)?,
        };
        if plan.redials > 0 || !backups.is_empty() || !lists.is_empty() {
            to.number.check_no_emergency("to", &config.numbers)?;
        }
        let mut numbers = vec![to.clone()];
        numbers.extend(backups);
        let window = fields.text(CALL_WINDOW.name)?;
        let window = window.map(str::parse::<CallWindow>).transpose();
        let window = window.map_err(|rule| Refusal::field(format!("callWindow: {rule}")))?;
        let priority = whole(fields, PRIORITY.name, 1..=9_u8)?;
        let priority = priority.and_then(Priority::new).unwrap_or(Priority::USUAL);
        let may_lift = account.permissions.urgent_outside_hours;
        let shown = match &lists[..] {
            [] => None,
            _ => account.shown(fields.text("displayNum")?, &config.numbers),
        };
        Ok(Some(Self {
            notice: Notice {
                plan,
                numbers,
                lists,
                shown,
                window,
                lifts_hours: may_lift && priority == Priority::FIRST,
                ring: whole(fields, RING_TIME.name, RING)?,
                keys: keys.as_ref().map(|wanted| wanted.keys.clone()),
                silence: None,
                machine,
            },
            priority,
            is_new: any || keys.as_ref().is_some_and(WantedKeys::is_new),
            keys,
            start_at: start_at(fields)?,
            valid_for: whole(fields, VALID_TIME.name, 1..=LONGEST_VALIDITY)?
                .map(SignedDuration::from_secs),
        }))
    }

    pub fn times(&self, request: &RequestTimes<'_>) -> Result<PlacingTimes, Refusal> {
        let (zone, now) = (request.now.time_zone(), request.now.timestamp());
        let wished = match self.start_at {
            Some(start_at) => {
                let start_at = start_at.to_zoned(zone.clone()).ok();
                let start_at = start_at.map(|start_at| start_at.timestamp());
                start_at
                    .filter(|start_at| start_at.duration_since(now) <= LONGEST_DELAY)
                    .ok_or_else(|| Refusal::field("startTime must be at most 30 days ahead"))?
                    .max(now)
            }
            None => now,
        };
        let windows = self.notice.hours(request.hours);
        request.within(
            &windows,
            wished,
            self.valid_for.unwrap_or(request.valid_for),
        )
    }

    /// What tells this request from another one: what it says, and nothing that an operator may change meanwhile; a list is told by its name. It never changes afterwards: names are
    /// remembered for days, longer than an upgrade takes.
    pub fn told_by(&self) -> String {
        let (notice, plan) = (&self.notice, &self.notice.plan);
        let pauses: Vec<_> = plan.pauses.iter().map(SignedDuration::as_secs).collect();
        let redial_on: Vec<_> = plan
            .redial_on
            .iter()
            .map(|reason| reason.as_str())
            .collect();
        let mut numbers: Vec<_> = notice.numbers.iter().map(Recipient::line).collect();
        for named in notice.lists.iter().rev() {
            numbers.insert(named.place, named.name.to_string());
        }
        let window = notice.window.as_ref().map(ToString::to_string);
        let start_at = self.start_at.map(|start_at| start_at.to_string());
        let valid_for = self.valid_for.map(|valid_for| valid_for.as_secs());
        let attempts = (plan.redials, pauses, redial_on, plan.tries_a_turn, numbers);
        let times = (window, notice.ring, start_at, valid_for);
        let told = serde_json::to_string(&(attempts, times, self.priority.number()));
        let mut told = told.unwrap_or_default();
        if let Some(keys) = &self.keys {
            told.push_str(&keys.told_by());
        }
        if let Some(machine) = notice.machine {
            told.push_str(machine.as_str());
        }
        told
    }

    /// What asks for the key, where the request brings it.
    pub fn question(&self) -> Option<&WantedQuestion> {
        self.keys.as_ref()?.question.as_ref()
    }

    /// The notice itself, with its question as it is played, and who speaks where there is none.
    pub fn into_notice(
        mut self,
        question: Option<Prompt>,
        voice: Option<VoiceName>,
    ) -> Arc<Notice> {
        if let Some(keys) = &mut self.notice.keys {
            keys.question = question;
            keys.voice = voice;
        }
        Arc::new(self.notice)
    }
}

/// A whole number between two others.
fn whole<T>(
    fields: &Fields,
    name: &'static str,
    range: std::ops::RangeInclusive<T>,
) -> Result<Option<T>, Refusal>
where
    T: std::str::FromStr + PartialOrd + std::fmt::Display,
{
    let Some(text) = fields.text(name)? else {
        return Ok(None);
    };
    let (least, most) = (range.start(), range.end());
    let wrong = || {
        Refusal::field(format!(
            "{name} must be a whole number from {least} to {most}"
        ))
    };
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let value = text.parse().ok().filter(|_| is_plain).ok_or_else(wrong)?;
    if range.contains(&value) {
        Ok(Some(value))
    } else {
        Err(wrong())
    }
}

/// 0 is as if it were not sent.
fn machine_detection(fields: &Fields) -> Result<Option<MachineDetection>, Refusal> {
    let asked = fields.text(MACHINE_DETECT.name)?;
    let Some(asked) = asked.filter(|asked| *asked != "0") else {
        return Ok(None);
    };
    let found = MachineDetection::ALL
        .into_iter()
        .find(|machine| machine.as_str() == asked);
    let wrong = || Refusal::field("machineDetect must be 0, 1, 2 or 3");
    found.map(Some).ok_or_else(wrong)
}

fn pauses(fields: &Fields) -> Result<Vec<SignedDuration>, Refusal> {
    let Some(text) = fields.text(REDIAL_INTERVAL.name)? else {
        return Ok(NoticePlan::single().pauses);
    };
    let pause = |part: &str| {
        let seconds = part.trim().parse().ok();
        let seconds = seconds.filter(|seconds| (SHORTEST_PAUSE..=LONGEST_PAUSE).contains(seconds));
        seconds.map(SignedDuration::from_secs)
    };
    let pauses: Option<Vec<_>> = text.split(';').map(pause).collect();
    pauses
        .filter(|pauses| pauses.len() <= usize::from(MAX_REDIALS))
        .ok_or_else(|| {
            Refusal::field(format!(
                "redialInterval must be up to {MAX_REDIALS} numbers of seconds from {SHORTEST_PAUSE} to {LONGEST_PAUSE}, separated by ;"
            ))
        })
}

fn redial_on(fields: &Fields) -> Result<Vec<RedialReason>, Refusal> {
    let Some(text) = fields.text(REDIAL_ON.name)? else {
        return Ok(NoticePlan::single().redial_on);
    };
    let reason = |part: &str| {
        let word = part.trim();
        RedialReason::ALL
            .into_iter()
            .find(|reason| reason.as_str() == word)
    };
    let reasons: Option<Vec<_>> = text.split(';').map(reason).collect();
    reasons.ok_or_else(|| {
        let words = RedialReason::ALL.map(RedialReason::as_str).join(", ");
        Refusal::field(format!("redialOn must be some of {words}, separated by ;"))
    })
}

fn start_at(fields: &Fields) -> Result<Option<DateTime>, Refusal> {
    let Some(text) = fields.text(START_TIME.name)? else {
        return Ok(None);
    };
    let is_plain = text.len() == 14 && text.bytes().all(|byte| byte.is_ascii_digit());
    let time = DateTime::strptime("%Y%m%d%H%M%S", text).ok();
    time.filter(|_| is_plain)
        .map(Some)
        .ok_or_else(|| Refusal::field("startTime must be a time written as yyyyMMddHHmmss"))
}

/// Every number is checked like `to`; those of the lists are when the lists are read.
fn backups(
    fields: &Fields,
    account: &Account,
    config: &Config,
    to: &Recipient,
) -> Result<(Vec<Recipient>, Vec<NamedList>), Refusal> {
    let text = fields.text(BACKUP_TO.name)?.unwrap_or_default();
    let parts: Vec<_> = text
        .split(';')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect();
    if parts.len() > MAX_BACKUPS {
        return Err(Refusal::field(format!(
            "backupTo must have at most {MAX_BACKUPS} numbers and lists"
        )));
    }
    let shown = fields.text("displayNum")?;
    let (mut backups, mut lists) = (Vec::<Recipient>::new(), Vec::<NamedList>::new());
    for part in parts {
        if let Some(name) = part.strip_prefix('@') {
            let name: ListName = name
                .parse()
                .map_err(|rule| Refusal::field(format!("backupTo: after '@', {rule}")))?;
            if !lists.iter().any(|known| known.name == name) {
                let place = 1 + backups.len();
                lists.push(NamedList { name, place });
            }
            continue;
        }
        let backup = recipient("backupTo", part, shown, account, config)?;
        let is_same = |known: &Recipient| known.number == backup.number;
        if !is_same(to) && !backups.iter().any(is_same) {
            backups.push(backup);
        }
    }
    Ok((backups, lists))
}
