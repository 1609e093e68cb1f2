//! Every operation below an account, one row each: what clients are told they may use, and what the documents say about it.

use super::wire::{Field, Form};
use super::{
    bill_records, call_cancel, call_result, landing_calls, query_call_state, voice_verify,
};
use crate::domain::status_code::StatusCode;

/// An operation as its clients see it.
#[derive(Debug)]
pub struct Operation {
    /// Below `/{SoftVersion}/Accounts/{accountSid}/`.
    pub path: &'static str,
    pub methods: &'static [&'static str],
    pub about: &'static str,
    pub query: &'static [Field],
    pub form: Option<&'static Form>,
    /// The group of the answer and its values.
    pub answer: (&'static str, &'static [&'static str]),
    /// What it may be refused with, beside what every request may be.
    codes: &'static [&'static [StatusCode]],
}

impl Operation {
    pub fn codes(&self) -> impl Iterator<Item = StatusCode> {
        self.codes.iter().copied().flatten().copied()
    }
}

const FILE: &[Field] = &[
    Field::required("appid", "Application id, in any case."),
    Field::required(
        "filename",
        "Name of the file, ending in .wav or .zip, percent-encoded as UTF-8 or GBK.",
    ),
];
/// Of every operation that places a call.
const PLACED: &[&str] = &["callSid", "dateCreated", "orderid"];
const NOT_PLACED: &[StatusCode] = &[
    StatusCode::FieldWrong,
    StatusCode::DataTooLong,
    StatusCode::CalledNotAllowed,
    StatusCode::PlayTimesRange,
    StatusCode::BalanceInsufficient,
    StatusCode::VoiceFileMissing,
    StatusCode::RespUrlUnacceptable,
    StatusCode::TooManyCallsToNumber,
    StatusCode::SpendingLimit,
    StatusCode::NoRoute,
    StatusCode::RequestIdUsed,
    StatusCode::AcceptUnknown,
    StatusCode::NoRoom,
];

pub const OPERATIONS: &[Operation] = &[
    Operation {
        path: "Calls/LandingCalls",
        methods: &["POST"],
        about: "calls a number and plays voice files or a spoken text",
        query: &[],
        form: Some(&landing_calls::FORM),
        answer: ("LandingCall", PLACED),
        codes: &[NOT_PLACED, &[StatusCode::NothingToPlay]],
    },
    Operation {
        path: "Calls/VoiceVerify",
        methods: &["POST"],
        about: "calls a number and says a code, character by character",
        query: &[],
        form: Some(&voice_verify::FORM),
        answer: ("VoiceVerify", PLACED),
        codes: &[
            NOT_PLACED,
            &[StatusCode::VerifyCodeLength, StatusCode::NotOffered],
        ],
    },
    Operation {
        path: call_cancel::PATH,
        methods: &["POST"],
        about: "ends a call, or takes it out of the queue",
        query: &[],
        form: Some(&call_cancel::FORM),
        answer: ("CallCancel", &["callSid", "state"]),
        codes: &[&[
            StatusCode::FieldWrong,
            StatusCode::CallUnknown,
            StatusCode::CallOver,
        ]],
    },
    Operation {
        path: "CallResult",
        methods: &["GET", "POST"],
        about: "tells how far a call has come, or how it ended",
        query: &[Field::optional(
            "callsid",
            "",
            "The call. Required by GET; by POST it may be in the body.",
        )],
        form: Some(&call_result::FORM),
        answer: ("CallResult", &["state", "callTime", "duration"]),
        codes: &[&[StatusCode::FieldWrong, StatusCode::CallUnknown]],
    },
    Operation {
        path: "ivr/call",
        methods: &["POST"],
        about: "tells whether a call is still going on (QueryCallState)",
        query: &[Field::optional(
            "callid",
            "",
            "The call, where the body does not name it.",
        )],
        form: Some(&query_call_state::FORM),
        answer: ("QueryCallState", &["callid", "state"]),
        codes: &[&[
            StatusCode::FieldWrong,
            StatusCode::RespUrlUnacceptable,
            StatusCode::CallUnknown,
        ]],
    },
    Operation {
        path: "Calls/MediaFileUpload",
        methods: &["POST", "GET"],
        about: "adds a voice file, or a zip of them, to an application; by GET, returns a file",
        query: FILE,
        form: None,
        answer: ("", &["downloadUrl"]),
        codes: &[&[
            StatusCode::FieldWrong,
            StatusCode::DataTooLong,
            StatusCode::VoiceFileMissing,
            StatusCode::VoiceFileUnplayable,
            StatusCode::NoRoom,
            StatusCode::AudioQuota,
        ]],
    },
    Operation {
        path: "BillRecords",
        methods: &["POST"],
        about: "offers yesterday's bill for download",
        query: &[],
        form: Some(&bill_records::FORM),
        answer: ("", &["downUrl", "token"]),
        codes: &[&[
            StatusCode::FieldWrong,
            StatusCode::DataTooLong,
            StatusCode::PermissionMissing,
            StatusCode::BillNotAvailable,
        ]],
    },
    Operation {
        path: "AccountInfo",
        methods: &["GET", "POST"],
        about: "shows the account",
        query: &[],
        form: None,
        answer: (
            "Account",
            &[
                "friendlyName",
                "status",
                "type",
                "balance",
                "dateCreated",
                "dateUpdated",
            ],
        ),
        codes: &[],
    },
];

/// The operation at this path below an account.
pub fn at(path: &str) -> Option<&'static Operation> {
    OPERATIONS
        .iter()
        .find(|operation| operation.path.eq_ignore_ascii_case(path))
}

/// What may be used instead of an operation that does not exist.
pub fn offered() -> String {
    let paths = OPERATIONS.iter().map(|operation| operation.path);
    paths.collect::<Vec<_>>().join(", ")
}
