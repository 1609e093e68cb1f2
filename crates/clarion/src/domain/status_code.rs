//! Every status code that an application can see: the one source of codes, default messages and documentation. Applications are told them in English, operators in
//! both languages.
//!
//! A code is the vendor's if the vendor has one. Otherwise it is in the block 1900xx, which the vendor never used. Codes 172xxx are never
//! sent, because client libraries use them for local errors.

use std::fmt;

use super::wording::{Wording, wording};

macro_rules! status_codes {
    ($($name:ident = $code:literal, $meaning:literal, $chinese:literal;)+) => {
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

            /// Returns what the code means, for operators.
            pub fn wording(self) -> Wording {
                match self { $(StatusCode::$name => wording!($meaning, $chinese)),+ }
            }
        }
    };
}

status_codes! {
    Success = "000000", "success", "成功";

    // Request and account: the vendor's current codes, in the order of the checks.
    AccountMalformed = "111100", "the account in the URL must be 32 letters or digits", "URL 中的账户应为 32 位字母或数字";
    AuthorizationEmpty = "111101", "the Authorization header is missing or empty", "缺少请求头 Authorization，或其为空";
    AuthorizationNotBase64 = "111102", "the Authorization header is not valid Base64", "请求头 Authorization 不是有效的 Base64";
    AuthorizationMalformed = "111103", "the decoded Authorization must read accountSid:timestamp", "Authorization 解码后应为 accountSid:timestamp";
    AuthorizationIdEmpty = "111104", "the accountSid in Authorization is empty", "Authorization 中的 accountSid 为空";
    TimestampEmpty = "111105", "the timestamp in Authorization is empty", "Authorization 中的时间戳为空";
    TimestampMalformed = "111113", "the timestamp in Authorization must be yyyyMMddHHmmss", "Authorization 中的时间戳应为 yyyyMMddHHmmss";
    TimestampExpired = "111106", "the timestamp in Authorization must lie within 24 hours of the platform's time", "Authorization 中的时间戳与平台时间相差不得超过 24 小时";
    AuthorizationIdDiffers = "111107", "the accountSid in Authorization differs from the one in the URL", "Authorization 中的 accountSid 与 URL 中的不一致";
    SigEmpty = "111108", "the query parameter sig is missing or empty", "缺少查询参数 sig，或其为空";
    SigWrong = "111109", "the query parameter sig is wrong: it must be MD5(accountSid + authToken + timestamp)", "查询参数 sig 有误，应为 MD5(accountSid + authToken + timestamp)";
    SoftVersionWrong = "111110", "the interface version in the URL is not offered", "不支持 URL 中的接口版本";
    AddressNotAllowed = "111115", "requests from this IP address are not allowed for the account", "该账户不允许来自此 IP 地址的请求";
    AccountNotActivated = "111138", "the account is not activated", "账户未激活";
    AccountSuspended = "111139", "the account is suspended", "账户已停用";
    AccountClosed = "111140", "the account is closed", "账户已注销";
    TooManyRequests = "111111", "too many requests at once or in this second", "并发请求或本秒内的请求过多";
    BalanceInsufficient = "111142", "the balance is insufficient", "余额不足";
    UnknownError = "111000", "unknown error; nothing was accepted, please try again", "未知错误，请求未受理，请重试";

    // Application.
    AppIdEmpty = "111169", "appId is required", "缺少 appId";
    AppIdCharacters = "111170", "appId must consist of letters and digits", "appId 只能含字母和数字";
    AppIdLength = "111171", "appId must be 32 characters long", "appId 应为 32 位";
    AppDeleted = "111176", "the application is deleted", "应用已删除";
    AppDisabled = "111177", "the application is disabled", "应用已禁用";
    AppMissing = "111181", "the account has no such application", "账户下没有该应用";

    // Body and fields: the vendor's current table has few of these, so older codes of the vendor are used.
    XmlUnreadable = "112613", "the XML body cannot be read", "无法解析 XML 请求体";
    BodyFormat = "110141", "the body cannot be read", "无法解析请求体";
    DataTooLong = "110062", "the data is too long", "数据过长";
    FieldWrong = "108023", "a field's value is wrong", "字段取值有误";
    VerifyCodeLength = "108034", "verifyCode must have 4 to 8 characters", "verifyCode 应为 4 到 8 个字符";
    CalledNotAllowed = "108035", "the called number is not allowed", "不允许呼叫该被叫号码";
    PlayTimesRange = "108036", "playTimes must be a whole number from 1 to 3", "playTimes 应为 1 到 3 的整数";
    NothingToPlay = "110081", "mediaName and mediaTxt must not both be empty", "mediaName 与 mediaTxt 不能同时为空";
    PermissionMissing = "110095", "bill download is not enabled for this account", "该账户未开通话单下载";
    BillNotAvailable = "110082", "the bill is not available", "话单不存在或尚未生成";

    // Our own codes.
    VoiceFileMissing = "190001", "voice file not found", "没有该语音文件";
    VoiceFileUnplayable = "190002", "voice file not playable", "语音文件无法播放";
    RespUrlUnacceptable = "190003", "respUrl is not acceptable", "respUrl 不可用";
    TooManyCallsToNumber = "190004", "too many calls to this number", "对该号码的呼叫次数过多";
    SpendingLimit = "190005", "the spending limit is reached", "已达消费上限";
    CallUnknown = "190006", "no such call in this account", "账户下没有该呼叫";
    NoRoute = "190007", "no route to this number", "没有可到达该号码的路由";
    NotOffered = "190008", "this operation is not offered here", "不提供该操作";
    BillTokenInvalid = "190009", "the download token is not valid", "下载令牌无效";
    RequestIdUsed = "190010", "requestId was used before with other fields", "requestId 已用于内容不同的请求";
    CallOver = "190011", "the call is over already", "呼叫已结束";
    IntakeInvalid = "190012", "the intake or its token is not valid", "接入点或其令牌无效";
    AcceptUnknown = "190013", "it is not known whether the call was accepted: ask again with the same requestId, or look at CallResult later", "不确定呼叫是否已受理：请用同一 requestId 重新请求，或稍后查询 CallResult";
    NoRoom = "190014", "there is no room on the disk for new calls or files", "磁盘空间不足，无法受理新呼叫或接收文件";
    AudioQuota = "190015", "the quota of audio files or uploads is used up", "语音文件或上传次数的配额已用完";
}

/// Why a request was refused: one code, and a sentence that names the field and the rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub code: StatusCode,
    pub message: String,
    /// The rule alone, for operators; nothing where it is said in English alone.
    chinese: Option<String>,
}

impl Refusal {
    pub fn new(code: StatusCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            chinese: None,
        }
    }

    /// Refuses by a rule that operators meet too. The Chinese does not name the field: forms do.
    pub fn worded(code: StatusCode, rule: &Wording) -> Self {
        Self {
            chinese: Some(rule.chinese().to_owned()),
            ..Self::new(code, rule.english())
        }
    }

    /// With what the rule is about before it.
    #[must_use]
    pub fn about(mut self, what: &str) -> Self {
        self.message = format!("{what} {}", self.message);
        self
    }

    pub fn wording(&self) -> Wording {
        match &self.chinese {
            Some(chinese) => Wording::new(self.message.clone(), chinese.clone()),
            None => Wording::quoting(&self.message),
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
        Self::worded(code, &code.wording())
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
