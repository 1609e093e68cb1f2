//! Every operation below an account, one row each: what clients are told they may use, and what the documents say about it.

use super::wire::{AnswerForm, Field, Form};
use super::{
    account_info, bill_records, call_cancel, call_result, landing_calls, media_upload, placing,
    query_call_state, voice_verify,
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
    pub answer: AnswerForm,
    /// Beside what every request may be refused with.
    refusals: &'static [&'static [(StatusCode, &'static str)]],
}

impl Operation {
    /// What it may be refused with, and when.
    pub fn refusals(&self) -> impl Iterator<Item = (StatusCode, &'static str)> {
        self.refusals.iter().copied().flatten().copied()
    }
}

/// Of every operation that places a call.
const NOT_PLACED: &[(StatusCode, &str)] = &[
    (
        StatusCode::CalledNotAllowed,
        "`to` is an emergency number, a premium-rate one or one that the operator or the account does not call",
    ),
    (StatusCode::PlayTimesRange, "playTimes is not 1, 2 or 3"),
    (
        StatusCode::VoiceFileMissing,
        "there is no voice file of that name",
    ),
    (
        StatusCode::RespUrlUnacceptable,
        "respUrl is not an http or https address, or has a user name or password",
    ),
    (
        StatusCode::TooManyCallsToNumber,
        "the number has had its calls of the day",
    ),
    (
        StatusCode::NoRoute,
        "no trunk of the operator carries the number",
    ),
    (
        StatusCode::BalanceInsufficient,
        "the account cannot pay for the call",
    ),
    (
        StatusCode::SpendingLimit,
        "the account has spent what it may spend",
    ),
    (
        StatusCode::RequestIdUsed,
        "the application has used this requestId with other fields",
    ),
    (
        StatusCode::AcceptUnknown,
        "the database did not say whether it has the call: ask again with the same requestId; statusMsg has the callSid",
    ),
    (StatusCode::NoRoom, "the disk of the server is nearly full"),
];

pub const OPERATIONS: &[Operation] = &[
    Operation {
        path: "Calls/LandingCalls",
        methods: &["POST"],
        about: "calls a number and plays voice files or a spoken text",
        query: &[],
        form: Some(&landing_calls::FORM),
        answer: AnswerForm {
            group: Some(landing_calls::FORM.root),
            fields: placing::PLACED,
        },
        refusals: &[
            &[
                (StatusCode::FieldWrong, "a field breaks its rule"),
                (
                    StatusCode::DataTooLong,
                    "mediaTxt, userData or respUrl is too long, or mediaName has too many files",
                ),
                (
                    StatusCode::NothingToPlay,
                    "mediaName and mediaTxt are both empty",
                ),
            ],
            NOT_PLACED,
            &[(
                StatusCode::NotOffered,
                "it asks for a notice while a server of an earlier version is running beside this one",
            )],
        ],
    },
    Operation {
        path: "Calls/VoiceVerify",
        methods: &["POST"],
        about: "calls a number and says a code, character by character",
        query: &[],
        form: Some(&voice_verify::FORM),
        answer: AnswerForm {
            group: Some(voice_verify::FORM.root),
            fields: placing::PLACED,
        },
        refusals: &[
            &[
                (
                    StatusCode::FieldWrong,
                    "a field breaks its rule, or the call hours of the account stay closed for longer than a code is valid",
                ),
                (
                    StatusCode::VerifyCodeLength,
                    "verifyCode does not have 4 to 8 characters",
                ),
                (
                    StatusCode::DataTooLong,
                    "userData or respUrl is too long, or a field has too many files",
                ),
            ],
            NOT_PLACED,
            &[(
                StatusCode::NotOffered,
                "a server of an earlier version is running beside this one",
            )],
        ],
    },
    Operation {
        path: call_cancel::PATH,
        methods: &["POST"],
        about: "ends a call, or takes it out of the queue",
        query: &[],
        form: Some(&call_cancel::FORM),
        answer: call_cancel::ANSWER,
        refusals: &[&[
            (
                StatusCode::FieldWrong,
                "callSid is missing, or type is not 0, 1 or 2",
            ),
            (StatusCode::CallUnknown, "the account has no such call"),
            (
                StatusCode::CallOver,
                "the call is over; with type 1 or 2 also: it was answered",
            ),
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
        answer: call_result::ANSWER,
        refusals: &[&[
            (StatusCode::FieldWrong, "callsid is missing"),
            (StatusCode::CallUnknown, "the account has no such call"),
        ]],
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
        answer: query_call_state::ANSWER,
        refusals: &[&[
            (StatusCode::FieldWrong, "callid is missing"),
            (StatusCode::CallUnknown, "the account has no such call"),
            (
                StatusCode::RespUrlUnacceptable,
                "action is not an http or https address, or has a user name or password",
            ),
            (StatusCode::DataTooLong, "action is too long"),
            (
                StatusCode::TooManyRequests,
                "so many callbacks about this call have been asked for by action that there will be no more",
            ),
        ]],
    },
    Operation {
        path: "Calls/MediaFileUpload",
        methods: &["POST", "GET"],
        about: "adds a voice file, or a zip of them, to an application; by GET, returns a file",
        query: media_upload::FIELDS,
        form: None,
        answer: media_upload::ANSWER,
        refusals: &[&[
            (
                StatusCode::FieldWrong,
                "filename is missing, is a path, is neither UTF-8 nor GBK, or ends neither in .wav nor in .zip",
            ),
            (
                StatusCode::DataTooLong,
                "the upload or a file in the zip is too large, or there are too many files",
            ),
            (
                StatusCode::VoiceFileUnplayable,
                "a file cannot be played, or the zip cannot be read or contains paths; statusMsg has the reason",
            ),
            (
                StatusCode::VoiceFileMissing,
                "by GET: the application has no such file",
            ),
            (
                StatusCode::AudioQuota,
                "the application or the account has as many bytes of files as it may have, or has uploaded too often in an hour",
            ),
            (StatusCode::NoRoom, "the disk of the server is nearly full"),
        ]],
    },
    Operation {
        path: "BillRecords",
        methods: &["POST"],
        about: "offers yesterday's bill for download",
        query: &[],
        form: Some(&bill_records::FORM),
        answer: bill_records::ANSWER,
        refusals: &[&[
            (StatusCode::FieldWrong, "date is not `day`"),
            (
                StatusCode::DataTooLong,
                "keywords has more than 256 bytes or 16 terms",
            ),
            (
                StatusCode::PermissionMissing,
                "the operator has not enabled bill download for the account",
            ),
            (
                StatusCode::BillNotAvailable,
                "the day is not closed yet, a few minutes after midnight: ask again later",
            ),
            (
                StatusCode::TooManyRequests,
                "too many different keywords have been asked for with one bill, or their files are too long together",
            ),
            (
                StatusCode::NoRoom,
                "there is no room on the disk for a file of these keywords: ask again later",
            ),
        ]],
    },
    Operation {
        path: "AccountInfo",
        methods: &["GET", "POST"],
        about: "shows the account",
        query: &[],
        form: None,
        answer: account_info::ANSWER,
        refusals: &[],
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
