//! What the fields of a request mean, in Chinese. In English the table of the API says it (`api::LANDING_CALL`); a test holds both together.

use super::language::PageLanguage;
use crate::api::wire::Field;

/// What a field means, in the language of the page.
pub fn meaning(field: &Field, language: PageLanguage) -> &'static str {
    if language == PageLanguage::English {
        return field.rule;
    }
    chinese(field.name).unwrap_or(field.rule)
}

fn chinese(name: &str) -> Option<&'static str> {
    Some(match name {
        "appId" => "应用 id，32 位字母或数字。",
        "to" => {
            "被叫号码：手机号，或带区号的固话；国家码前加 + 或 00；分机号写在 - 之后。每次请求一个号码。"
        }
        "mediaName" => {
            "语音文件名，以 .wav 结尾，多个用 ; 分隔。mediaName 与 mediaTxt 不能同时为空。"
        }
        "mediaNameType" => "0 为应用的文件，1 为平台公共文件。",
        "mediaTxt" => "要播报的文本。mediaName 为空，或 playMode 为 1 时有效。",
        "displayNum" => "显示给被叫的号码。未获准使用时不报错，改显平台号码。",
        "playTimes" => "播放次数，1 到 3。",
        "respUrl" => "接收状态通知的 http 或 https 地址，不得带用户名或密码。",
        "userData" => "在状态通知中原样返回。",
        "txtSpeed" => "语速，-500 到 500。仅在 mediaTxt 有效时检查。",
        "txtVolume" => "音量，-20 到 20。仅在 mediaTxt 有效时检查。",
        "txtPitch" => "音调，-500 到 500。仅在 mediaTxt 有效时检查。",
        "txtBgsound" => "背景音，0 为无，1 到 6 为各背景音。仅在 mediaTxt 有效时检查。",
        "voice" => "朗读 mediaTxt 的发音人，须为平台已有的名称。仅在 mediaTxt 有效时检查。",
        "playMode" => "0 为播文本或文件，1 为先文本后文件。",
        "maxCallTime" => "最长通话秒数，0 表示按平台设置。",
        "requestId" => {
            "自定的请求名，最多 64 个字符，也可用请求头 Idempotency-Key。同一应用内重复使用同一名称会得到同样的应答，不会再次呼叫；其他字段不同则被拒绝。"
        }
        "confirmDtmf" => {
            "确认键，多个用 ; 分隔，如 1 或 1;2。被叫按下任意一个即为确认，不再继续呼叫。从播放第一刻起按键有效。"
        }
        "waitDtmfTime" => "播放结束后等待按键的秒数，1 到 60。其他值按默认处理。",
        "replayDtmf" => "重听键，最多重听 5 次。其他值按默认处理。",
        "inputDtmfPrompt" => "播放内容之后用来提示按键的语音文件或文本。文件不存在则按默认处理。",
        "stopDtmf" => "退订键。被叫连按两次后，该账户不再呼叫此号码，转到下一个号码。",
        "redialTimes" => "首次之后再拨同一号码的次数，0 到 10。",
        "redialInterval" => {
            "同一号码两次呼叫之间的秒数，至少 10；可用 ; 写多个值，最后一个重复使用。"
        }
        "redialOn" => {
            "哪些结果需要重拨，用 ; 分隔：busy、noanswer、declined、unconfirmed、machine、failed。其他结果不再拨该号码，转到下一个号码。"
        }
        "backupTo" => {
            "备用号码，最多 20 个，用 ; 分隔，依次呼叫。@名称 表示账户名单中的号码，以轮到时的内容为准。"
        }
        "backupAfter" => "一个号码呼叫几次后轮到下一个号码；最后一个之后若还有次数，从头开始。",
        "startTime" => "yyyyMMddHHmmss（平台时区），最多提前 30 天，此前不会呼叫。",
        "callWindow" => {
            "允许呼叫的星期（1 为周一）和时段（平台时区），如 1-5 0800-2100;6-7 1000-1800。2200-0600 算作开始那天。"
        }
        "validTime" => "超过这么多秒后不再发起新的尝试，只计算允许时段内的时间。",
        "priority" => "优先级 1 到 9，同一账户内 1 最先呼叫。",
        "ringTime" => "每次尝试的振铃秒数，10 到 120。",
        "machineDetect" => {
            "0 为不区分真人和答录机；1 为在 answeredby 中报告接听者；2 为同 1，答录机接听则挂机；3 为同 1，答录机提示音之后播放，最多等待 45 秒。取 2 或 3 时，确定接听者后才开始播放，最多 4 秒。"
        }
        "callStateUrl" => {
            "接收过程事件的 http 或 https 地址：queued、dialling、ringing、answered、key、hangup、waiting、escalated、ended。地址不可用则不推送。"
        }
        "callStatePush" => "0 为推送每个事件，1 为只推送最后一个。其他值按默认处理。",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::LANDING_CALL;

    #[test]
    fn every_field_that_is_offered_is_explained_in_chinese() {
        for field in LANDING_CALL.fields {
            let is_older = field.rule.starts_with("Older name");
            assert_eq!(chinese(field.name).is_some(), !is_older, "{}", field.name);
        }
    }
}
