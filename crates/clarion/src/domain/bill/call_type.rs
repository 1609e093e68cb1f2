//! The sixteen kinds of records that a bill can hold: one row each, with the rule on the calling party.

use std::str::FromStr;

macro_rules! call_types {
    ($($name:ident = $code:literal, $rule:ident, $meaning:literal;)+) => {
        /// Stored and written as its code.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(i16)]
        pub enum CallType { $($name = $code),+ }

        impl CallType {
            pub const ALL: &'static [CallType] = &[$(CallType::$name),+];

            pub fn meaning(self) -> &'static str {
                match self { $(CallType::$name => $meaning),+ }
            }

            fn rule(self) -> CallerRule {
                match self { $(CallType::$name => CallerRule::$rule),+ }
            }
        }
    };
}

call_types! {
    TemplateSms = 2, TemplateId, "Template SMS";
    IvrInbound = 3, Party, "IVR inbound call (via bound access number)";
    Recording = 4, ServerId, "Recording (for call classes)";
    IvrOutbound = 5, Party, "IVR outbound call";
    IvrToNetwork = 6, Party, "IVR outbound call transferred to the network side";
    PointToPointAudio = 7, Party, "Point-to-point audio";
    IvrVideoInbound = 8, Party, "IVR video inbound call";
    Conference = 9, Conference, "Conference";
    SubAccountAuthorization = 10, Party, "Sub-account authorization";
    PointToPointVideo = 11, Party, "Point-to-point video";
    InstantMessage = 12, Party, "Instant message";
    VoiceVerificationCode = 13, Party, "Voice verification code";
    OutboundNotification = 14, Party, "Outbound notification";
    VideoConference = 15, Party, "Video conference";
    AgentByCarrier = 16, Party, "Transfer to agent, agent side is a carrier";
    AgentByNetwork = 17, Party, "Transfer to agent, agent side is the network side";
}

/// What the calling party of a record must be.
#[derive(Debug, Clone, Copy)]
enum CallerRule {
    /// A number or an account.
    Party,
    /// The SMS template's id.
    TemplateId,
    /// The application's fixed server id. Such a record belongs to no call.
    ServerId,
    /// The party that called in and the conference's id, or the conference's number and the party that was invited.
    Conference,
}

/// A field and the rule that it breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub field: &'static str,
    pub rule: String,
}

impl Fault {
    pub fn new(field: &'static str, rule: impl Into<String>) -> Self {
        Self {
            field,
            rule: rule.into(),
        }
    }
}

impl CallType {
    pub fn code(self) -> i16 {
        self as i16
    }

    pub fn from_code(code: i16) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.code() == code)
    }

    /// Checks that a record of this type may have these parties.
    pub fn check(self, caller: &str, called: &str, call_sid: Option<&str>) -> Result<(), Fault> {
        match self.rule() {
            CallerRule::Party if caller.is_empty() => Err(Fault::new("caller", "is required")),
            CallerRule::TemplateId if !is_id(caller) => Err(Fault::new(
                "caller",
                "of type 2 must be the SMS template id: letters, digits, - and _",
            )),
            CallerRule::ServerId if !is_id(caller) => Err(Fault::new(
                "caller",
                "of type 4 must be the application's server id: letters, digits, - and _",
            )),
            CallerRule::ServerId if call_sid.is_some() => {
                Err(Fault::new("callSid", "of type 4 must be empty"))
            }
            CallerRule::Conference => check_conference(caller, called),
            CallerRule::Party | CallerRule::TemplateId | CallerRule::ServerId => Ok(()),
        }
    }
}

/// Checks both forms of a conference record. If the called party is a telephone number, it was invited; otherwise it is the conference's
/// id.
fn check_conference(caller: &str, called: &str) -> Result<(), Fault> {
    if is_telephone_number(called) {
        return if is_id(caller) {
            Ok(())
        } else {
            Err(Fault::new(
                "caller",
                "of type 9 by invitation must be the conference number: letters, digits, - and _",
            ))
        };
    }
    if !is_id(called) {
        return Err(Fault::new(
            "called",
            "of type 9 must be the voipconfid, or the number that was invited",
        ));
    }
    if is_account(caller) {
        Ok(())
    } else {
        Err(Fault::new(
            "caller",
            "of type 9 by calling in must be the communication account or a custom account",
        ))
    }
}

fn is_id(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}

/// People choose custom accounts: any readable text without blanks.
fn is_account(text: &str) -> bool {
    (1..=128).contains(&text.len()) && text.chars().all(|c| !c.is_whitespace() && !c.is_control())
}

fn is_telephone_number(text: &str) -> bool {
    let (number, extension) = text.split_once('-').unwrap_or((text, "0"));
    let number = number.strip_prefix('+').unwrap_or(number);
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    (3..=24).contains(&number.len()) && digits(number) && digits(extension)
}

impl FromStr for CallType {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse()
            .ok()
            .and_then(Self::from_code)
            .ok_or_else(|| "must be one of the codes 2 to 17".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_sixteen_types_and_their_codes_are_2_to_17() {
        let codes: Vec<_> = CallType::ALL.iter().map(|kind| kind.code()).collect();
        assert_eq!(codes, (2..=17).collect::<Vec<i16>>());
        for text in ["1", "18", "0", "", "type=14", "2.0"] {
            assert!(text.parse::<CallType>().is_err(), "{text}");
        }
    }

    #[test]
    fn each_rule_on_the_calling_party_has_a_right_and_a_wrong_record() {
        let check = |code, caller, called, call| {
            CallType::from_code(code)
                .unwrap()
                .check(caller, called, call)
                .map_err(|fault| fault.field)
        };
        assert_eq!(check(2, "10086", "13800000000", None), Ok(()));
        assert_eq!(check(2, "hello world", "13800000000", None), Err("caller"));
        assert_eq!(check(4, "server-1", "x", None), Ok(()));
        assert_eq!(check(4, "server-1", "x", Some("c")), Err("callSid"));
        assert_eq!(check(4, "", "x", None), Err("caller"));
        assert_eq!(check(9, "张三@example", "conf4006", Some("c")), Ok(()));
        assert_eq!(check(9, "8001 8002", "conf4006", None), Err("caller"));
        assert_eq!(check(9, "conf4006", "13800000000", None), Ok(()));
        assert_eq!(check(9, "张三@example", "13800000000", None), Err("caller"));
        assert_eq!(check(9, "8001", "the room", None), Err("called"));
        assert_eq!(check(14, "", "13800000000", None), Err("caller"));
    }
}
