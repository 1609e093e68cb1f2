//! What becomes of a call that a trunk refuses, by one table: is it over, does another trunk get it, does it wait, or is the trunk down. Nothing
//! that has rung is dialled again, whatever the table says.
//!
//! The rules of a trunk come first. Then words decide that say that our account is shut, then a Q.850 cause where the code is vague, then the
//! kind of carrier, then the code by the default table.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::account_words::{ShutAccount, shut_account};
use super::outcome::Outcome;

/// What is done about a refusal before anything has rung.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The answer is about the callee: no other trunk would get another.
    Final,
    /// This trunk does not carry this call. When all have said so, the call is over.
    NextTrunk,
    /// The next trunk is tried. When there is none, the call waits and is tried again.
    Wait,
    /// As `Wait`, and the trunk gets no calls for a while.
    TrunkDown,
}

impl Verdict {
    pub const ALL: [Verdict; 4] = [
        Verdict::Final,
        Verdict::NextTrunk,
        Verdict::Wait,
        Verdict::TrunkDown,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Final => "final",
            Verdict::NextTrunk => "next-trunk",
            Verdict::Wait => "wait",
            Verdict::TrunkDown => "trunk-down",
        }
    }

    /// In a document, for an operator.
    pub fn meaning(self) -> &'static str {
        match self {
            Verdict::Final => "the call is over",
            Verdict::NextTrunk => {
                "the next trunk is tried; when all have refused, the call is over"
            }
            Verdict::Wait => {
                "the next trunk is tried; when there is none, the call waits and is tried again"
            }
            Verdict::TrunkDown => "as `wait`, and the trunk gets no calls for a while",
        }
    }
}

/// A verdict, and the outcome of a call that ends with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Judgement {
    pub verdict: Verdict,
    pub outcome: Outcome,
}

const fn over(outcome: Outcome) -> Judgement {
    Judgement {
        verdict: Verdict::Final,
        outcome,
    }
}

const fn refused(verdict: Verdict) -> Judgement {
    Judgement {
        verdict,
        outcome: Outcome::TrunkFailure,
    }
}

/// Another trunk may know the number. If none does, it is wrong.
const UNKNOWN_HERE: Judgement = Judgement {
    verdict: Verdict::NextTrunk,
    outcome: Outcome::InvalidNumber,
};
const NOT_ANSWERED: Judgement = over(Outcome::NotAnswered);
const NEXT: Judgement = refused(Verdict::NextTrunk);
const WAIT: Judgement = refused(Verdict::Wait);

/// As an operator writes what shall become of a call: an outcome that ends it, or what is done instead.
impl FromStr for Judgement {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let outcomes = [
            Outcome::Busy,
            Outcome::Declined,
            Outcome::NotAnswered,
            Outcome::InvalidNumber,
            Outcome::TrunkFailure,
        ];
        if let Some(outcome) = outcomes.into_iter().find(|known| known.as_str() == text) {
            return Ok(over(outcome));
        }
        let verdicts = [Verdict::NextTrunk, Verdict::Wait, Verdict::TrunkDown];
        let verdict = verdicts.into_iter().find(|known| known.as_str() == text);
        verdict.map(refused).ok_or_else(|| {
            let words = outcomes.map(Outcome::as_str).into_iter();
            let words = words.chain(verdicts.map(Verdict::as_str));
            let words: Vec<&str> = words.collect();
            format!("`{text}` is none of {}", words.join(", "))
        })
    }
}

/// A final response that is no answer.
#[derive(Debug, Clone, Copy)]
pub struct TrunkResponse<'a> {
    pub code: u16,
    /// It has rung before.
    pub rang: bool,
    /// What the telephone network said, where a gateway has passed it on (RFC 3326).
    pub q850: Option<u8>,
    /// The words behind the code, and those of the network.
    pub phrases: [&'a str; 2],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseRule {
    pub codes: RangeInclusive<u16>,
    pub q850: Option<RangeInclusive<u8>>,
    /// A part of the peer's words, whatever the case of its letters.
    pub phrase: Option<String>,
    pub then: Judgement,
}

impl ResponseRule {
    fn fits(&self, refusal: &TrunkResponse<'_>) -> bool {
        let said = |wanted: &String| {
            let wanted = wanted.to_lowercase();
            let contains = |phrase: &str| phrase.to_lowercase().contains(&wanted);
            refusal.phrases.iter().any(|phrase| contains(phrase))
        };
        let caused =
            |wanted: &RangeInclusive<u8>| refusal.q850.is_some_and(|cause| wanted.contains(&cause));
        self.codes.contains(&refusal.code)
            && self.q850.as_ref().is_none_or(caused)
            && self.phrase.as_ref().is_none_or(said)
    }
}

/// A kind of carrier whose codes mean something else than the standard says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CarrierKind {
    #[default]
    Standard,
    /// A private exchange such as Asterisk, FreeSWITCH or a gateway with lines behind it.
    Pbx,
    /// The IMS of a network operator.
    Ims,
    /// A reseller who has several routes behind it, and says "not found" where it has none.
    Wholesale,
}

impl CarrierKind {
    pub const ALL: [CarrierKind; 4] = [Self::Standard, Self::Pbx, Self::Ims, Self::Wholesale];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Pbx => "pbx",
            Self::Ims => "ims",
            Self::Wholesale => "wholesale",
        }
    }

    /// Where it differs from the default table: codes, what becomes of the call, and why.
    pub fn differences(self) -> &'static [(RangeInclusive<u16>, Judgement, &'static str)] {
        match self {
            Self::Standard => &[],
            Self::Pbx => &[
                (
                    603..=603,
                    NEXT,
                    "Asterisk says 603 for every failure that it has no other word for",
                ),
                (480..=480, WAIT, "a line behind it is not registered now"),
            ],
            Self::Ims => &[(
                606..=606,
                NOT_ANSWERED,
                "the callee's terminal is not reachable",
            )],
            Self::Wholesale => &[
                (404..=404, UNKNOWN_HERE, "it has no route for the number"),
                (604..=604, UNKNOWN_HERE, "it has no route for the number"),
                (480..=480, WAIT, "its own supplier has no capacity now"),
                (
                    603..=603,
                    NEXT,
                    "it does not carry the call, whatever the callee would say",
                ),
            ],
        }
    }
}

impl CarrierKind {
    fn judge(self, code: u16) -> Option<Judgement> {
        let mut differences = self.differences().iter();
        let fits = |(codes, ..): &&(RangeInclusive<u16>, Judgement, _)| codes.contains(&code);
        differences.find(fits).map(|(_, then, _)| *then)
    }
}

impl FromStr for CarrierKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut kinds = Self::ALL.into_iter();
        kinds.find(|kind| kind.as_str() == text).ok_or_else(|| {
            let words = Self::ALL.map(Self::as_str).join(", ");
            format!("`{text}` is none of {words}")
        })
    }
}

impl fmt::Display for CarrierKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The policy of one trunk.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResponsePolicy {
    own: Vec<ResponseRule>,
    kind: CarrierKind,
}

impl ResponsePolicy {
    pub fn new(own: Vec<ResponseRule>, kind: CarrierKind) -> Self {
        Self { own, kind }
    }

    pub fn judge(&self, response: &TrunkResponse<'_>) -> Judgement {
        let (code, q850) = (response.code, response.q850);
        let own = self.own.iter().find(|rule| rule.fits(response));
        let own = own.map(|rule| rule.then);
        own.or_else(|| by_words(response))
            .or_else(|| cause_of_vague(code, q850))
            .or_else(|| self.kind.judge(code))
            .unwrap_or_else(|| by_code(code))
    }
}

/// A carrier that has shut our account says so by a code that is meant for callees, and by its words. They are believed beside any code but
/// those that say busy, unless it has rung. A callee can have them passed on, too: by themselves they never stop a trunk.
fn by_words(response: &TrunkResponse<'_>) -> Option<Judgement> {
    let is_precise = matches!(response.code, 0..400 | 486 | 600);
    if is_precise || response.rang {
        return None;
    }
    let mut phrases = response.phrases.iter();
    let shut = phrases.find_map(|phrase| shut_account(phrase))?;
    by_shut_account(shut, response.code)
}

/// What becomes of a call to which a trunk said that an account is shut. `None` where that changes nothing.
pub fn by_shut_account(shut: ShutAccount, code: u16) -> Option<Judgement> {
    let usual = by_code(code);
    match shut {
        ShutAccount::Ours => Some(WAIT),
        ShutAccount::Somebodys if usual.verdict == Verdict::Final => Some(Judgement {
            verdict: Verdict::NextTrunk,
            ..usual
        }),
        ShutAccount::Somebodys => None,
    }
}

/// The default table.
pub fn by_default(code: u16, q850: Option<u8>) -> Judgement {
    cause_of_vague(code, q850).unwrap_or_else(|| by_code(code))
}

/// A Q.850 cause is believed where the SIP code is vague, because gateways translate many causes into few codes; a precise code stands.
fn cause_of_vague(code: u16, q850: Option<u8>) -> Option<Judgement> {
    match (code, q850?) {
        // "Rejected" by the callee would be 603. A network that rejects says 403 (RFC 3398).
        (403, 21) => Some(NEXT),
        (400 | 403 | 404 | 408 | 410 | 480 | 487 | 500..=599 | 603, cause) => by_cause(cause),
        _ => None,
    }
}

/// RFC 3261 section 21, RFC 6665, RFC 8197 (607), RFC 8688 (608).
fn by_code(code: u16) -> Judgement {
    match code {
        486 | 600 => over(Outcome::Busy),
        603 | 607 | 608 => over(Outcome::Declined),
        480 | 487 => over(Outcome::NotAnswered),
        404 | 410 | 484 | 485 | 604 => over(Outcome::InvalidNumber),
        // A proxy got no answer from the next hop: before anything rang that says nothing about the callee.
        408 => Judgement {
            verdict: Verdict::Wait,
            outcome: Outcome::NotAnswered,
        },
        // Our name, our password or our money (401, 402, 407): but a callee's telephone can say so, too. No code alone stops a trunk.
        401 | 402 | 407 | 429 | 491 | 500 | 502..=504 => WAIT,
        606 | 300..=599 => NEXT,
        // "Nowhere else either", says the first digit.
        _ => over(Outcome::TrunkFailure),
    }
}

/// ITU-T Q.850, the causes that say more than a SIP code does.
fn by_cause(cause: u8) -> Option<Judgement> {
    Some(match cause {
        // Unallocated number, number changed, invalid number format.
        1 | 22 | 28 => over(Outcome::InvalidNumber),
        17 => over(Outcome::Busy),
        // No user responding, no answer from user, subscriber absent, destination out of order.
        18..=20 | 27 => over(Outcome::NotAnswered),
        21 => over(Outcome::Declined),
        // No route to network or destination; facility rejected, not subscribed, barred, bearer capability, incompatible destination.
        2 | 3 | 29 | 50 | 52 | 54 | 55 | 57 | 58 | 63 | 65 | 69 | 79 | 88 => NEXT,
        // No circuit, network out of order, temporary failure, congestion, channel not available, resource unavailable, timer expired.
        34 | 38 | 41..=44 | 46 | 47 | 102 => WAIT,
        _ => return None,
    })
}

/// For a document: every code from 300 to 699 with what becomes of the call by default, neighbours that share it in one row.
pub fn default_table() -> Vec<(RangeInclusive<u16>, Judgement)> {
    let mut rows: Vec<(RangeInclusive<u16>, Judgement)> = Vec::new();
    for code in 300..=699 {
        let judgement = by_default(code, None);
        match rows.last_mut() {
            Some((codes, known)) if *known == judgement => *codes = *codes.start()..=code,
            _ => rows.push((code..=code, judgement)),
        }
    }
    rows
}

/// For the same document: the causes that are believed where a code is vague.
pub fn cause_table() -> Vec<(RangeInclusive<u8>, Judgement)> {
    let mut rows: Vec<(RangeInclusive<u8>, Judgement)> = Vec::new();
    for cause in 1..=127 {
        let Some(judgement) = by_cause(cause) else {
            continue;
        };
        match rows.last_mut() {
            Some((causes, known)) if *known == judgement && *causes.end() + 1 == cause => {
                *causes = *causes.start()..=cause;
            }
            _ => rows.push((cause..=cause, judgement)),
        }
    }
    rows
}

#[cfg(test)]
mod tests;
