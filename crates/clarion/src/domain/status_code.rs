//! Every status code that an application can see: the one source of codes, default messages and documentation.
//!
//! A code is the vendor's if the vendor has one. Otherwise it is in the block 1900xx, which the vendor never used. Codes 172xxx are never
//! sent, because client libraries use them for local errors.

use std::fmt;

macro_rules! status_codes {
    ($($name:ident = $code:literal, $meaning:literal;)+) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum StatusCode { $($name),+ }

        impl StatusCode {
            pub const ALL: &'static [StatusCode] = &[$(StatusCode::$name),+];

            /// Returns the six digits that are sent.
            pub fn code(self) -> &'static str {
                match self { $(StatusCode::$name => $code),+ }
            }

            /// Returns what the code means. It is also the message if nothing more precise is known.
            pub fn meaning(self) -> &'static str {
                match self { $(StatusCode::$name => $meaning),+ }
            }
        }
    };
}

status_codes! {
    Success = "000000", "success";

    // Request and account: the vendor's current codes, in the order of the checks.
    AccountMalformed = "111100", "the account in the URL must be 32 letters or digits";
    AuthorizationEmpty = "111101", "the Authorization header is missing or empty";
    AuthorizationNotBase64 = "111102", "the Authorization header is not valid Base64";
    AuthorizationMalformed = "111103", "the decoded Authorization must read accountSid:timestamp";
    AuthorizationIdEmpty = "111104", "the accountSid in Authorization is empty";
    TimestampEmpty = "111105", "the timestamp in Authorization is empty";
    TimestampMalformed = "111113", "the timestamp in Authorization must be yyyyMMddHHmmss";
    TimestampExpired = "111106", "the timestamp in Authorization must lie within 24 hours of the platform's time";
    AuthorizationIdDiffers = "111107", "the accountSid in Authorization differs from the one in the URL";
    SigEmpty = "111108", "the query parameter sig is missing or empty";
    SigWrong = "111109", "the query parameter sig is wrong: it must be MD5(accountSid + authToken + timestamp)";
    SoftVersionWrong = "111110", "the interface version in the URL is not offered";
    AddressNotAllowed = "111115", "requests from this IP address are not allowed for the account";
    AccountNotActivated = "111138", "the account is not activated";
    AccountSuspended = "111139", "the account is suspended";
    AccountClosed = "111140", "the account is closed";
    TooManyRequests = "111111", "too many requests at once or in this second";
    BalanceInsufficient = "111142", "the balance is insufficient";
    UnknownError = "111000", "unknown error; nothing was accepted, please try again";

    // Application.
    AppIdEmpty = "111169", "appId is required";
    AppIdCharacters = "111170", "appId must consist of letters and digits";
    AppIdLength = "111171", "appId must be 32 characters long";
    AppDeleted = "111176", "the application is deleted";
    AppDisabled = "111177", "the application is disabled";
    AppMissing = "111181", "the account has no such application";

    // Body and fields: the vendor's current table has few of these, so older codes of the vendor are used.
    XmlUnreadable = "112613", "the XML body cannot be read";
    BodyFormat = "110141", "the body cannot be read";
    DataTooLong = "110062", "the data is too long";
    FieldWrong = "108023", "a field's value is wrong";
    VerifyCodeLength = "108034", "verifyCode must have 4 to 8 characters";
    CalledNotAllowed = "108035", "the called number is not allowed";
    PlayTimesRange = "108036", "playTimes must be a whole number from 1 to 3";
    NothingToPlay = "110081", "mediaName and mediaTxt must not both be empty";
    PermissionMissing = "110095", "bill download is not enabled for this account";
    BillNotAvailable = "110082", "the bill is not available";

    // Our own codes.
    VoiceFileMissing = "190001", "voice file not found";
    VoiceFileUnplayable = "190002", "voice file not playable";
    RespUrlUnacceptable = "190003", "respUrl is not acceptable";
    TooManyCallsToNumber = "190004", "too many calls to this number";
    SpendingLimit = "190005", "the spending limit is reached";
    CallUnknown = "190006", "no such call in this account";
    NoRoute = "190007", "no route to this number";
    NotOffered = "190008", "this operation is not offered here";
    BillTokenInvalid = "190009", "the download token is not valid";
    RequestIdUsed = "190010", "requestId was used before with other fields";
    CallOver = "190011", "the call is over already";
    IntakeInvalid = "190012", "the intake or its token is not valid";
    AcceptUnknown = "190013", "it is not known whether the call was accepted: ask again with the same requestId, or look at CallResult later";
    NoRoom = "190014", "there is no room on the disk for new calls or files";
    AudioQuota = "190015", "the quota of audio files or uploads is used up";
}

/// Why a request was refused: one code, and a sentence that names the field and the rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub code: StatusCode,
    pub message: String,
}

impl Refusal {
    pub fn new(code: StatusCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// Refuses a field whose value breaks its rule.
    pub fn field(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FieldWrong, message)
    }

    /// The same of another field, where the rule is one that both have.
    #[must_use]
    pub fn in_field(mut self, of: &str, field: &str) -> Self {
        if let Some(rule) = self.message.strip_prefix(of) {
            self.message = format!("{field}{rule}");
        }
        self
    }
}

impl From<StatusCode> for Refusal {
    fn from(code: StatusCode) -> Self {
        Self::new(code, code.meaning())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.code.code(), self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn codes_are_six_digits_and_unique_and_never_those_that_clients_invent() {
        let codes: HashSet<_> = StatusCode::ALL.iter().map(|c| c.code()).collect();
        assert_eq!(codes.len(), StatusCode::ALL.len());
        for code in codes {
            assert!(
                code.len() == 6 && code.bytes().all(|b| b.is_ascii_digit()),
                "{code}"
            );
            assert!(!code.starts_with("172"), "{code}");
        }
    }
}
