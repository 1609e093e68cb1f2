//! What stands before and behind figures decides how they are read: `验证码1234` digit by digit, `1234元` as an amount.

use super::Scan;
use crate::text::characters::is_latin;

/// Behind these, figures are a name and not a number.
const NAMED: &[&str] = &[
    "验证码",
    "校验码",
    "密码",
    "取件码",
    "提货码",
    "取货码",
    "提取码",
    "核销码",
    "错误码",
    "状态码",
    "口令",
    "代码",
    "编码",
    "编号",
    "单号",
    "号码",
    "尾号",
    "卡号",
    "账号",
    "帐号",
    "工号",
    "房号",
    "学号",
    "票号",
    "流水号",
    "车牌",
    "电话",
    "手机",
    "热线",
    "拨",
    "拨打",
    "致电",
    "客服",
    "分机",
    "转",
    "订单",
    "工单",
    "端口",
    "返回",
    "房间",
    "航班",
    "车次",
    "邮编",
    "code",
    "pin",
    "number",
    "phone",
    "tel",
    "call",
    "dial",
    "hotline",
    "account",
    "password",
    "ending in",
    "ending",
    "order",
    "extension",
    "ext",
    "port",
    "http",
    "status",
    "error",
    "ticket",
    "room",
    "flight",
    "invoice",
    "reference",
    "case",
    "incident",
    "tracking",
    "card",
    "build",
    "pr",
];
/// Between such a word and the figures.
const BETWEEN: &[char] = &[
    ' ', ':', '：', '是', '为', '号', '码', '(', '"', '\'', '#', '.', '-',
];
/// Chinese measure words before which two is 两.
const MEASURES: &str = "个位名件条天周年分张份单只台辆斤倍块本家岁次间元笔场句遍种套点人吨米瓶杯盒箱把项批组趟封秒户袋桶轮票万亿千百";
/// Longer ones.
const LONG_MEASURES: [&str; 4] = ["小时", "公里", "公斤", "公分"];
/// Words that begin like a measure word.
const NO_MEASURES: [&str; 17] = [
    "年级", "单元", "单号", "分之", "分行", "分店", "分局", "分机", "分公", "点击", "点位", "人民",
    "人工", "本次", "本人", "本行", "次日",
];
/// Behind these characters figures of three and more digits are a name: `1201室`, `103路`.
const NAMED_BY: &str = "室房路";
/// A dash behind these stands between the two ends of a range.
const ENDS_OF_RANGES: &str = "日号月年点时分秒元天周岁一二三四五六七个次人层楼室页";
/// Numbers of services that everybody says digit by digit.
const SERVICES: [&str; 8] = [
    "10086", "10010", "10011", "12306", "12315", "12333", "12345", "12366",
];
/// A length of time follows these words: `for 5m`.
const BEFORE_TIMES: [&str; 18] = [
    "for",
    "for about",
    "for at least",
    "for more than",
    "for over",
    "last",
    "longer than",
    "past",
    "in",
    "every",
    "since",
    "within",
    "after",
    "过去",
    "最近",
    "持续",
    "超过",
    "每",
];
/// Behind these, three digits and nothing more are a status: `failed with 503`.
const BEFORE_STATUS: [&str; 6] = [
    "failed with",
    "answered with",
    "responded with",
    "returned",
    "returning",
    "returns",
];

impl Scan<'_> {
    pub(super) fn is_measure(&self) -> bool {
        let next: String = self.text[self.at..].iter().take(2).collect();
        let begins = self.peek(0).is_some_and(|c| MEASURES.contains(c));
        begins && !NO_MEASURES.contains(&next.as_str()) || LONG_MEASURES.contains(&next.as_str())
    }

    /// Whether what begins at `start` is said to be a length of time.
    pub(super) fn is_about_time(&self, start: usize) -> bool {
        self.is_behind(start, &BEFORE_TIMES)
    }

    /// Whether one of these words stands before `start`.
    fn is_behind(&self, start: usize, words: &[&str]) -> bool {
        let near: String = self.text[start.saturating_sub(16)..start].iter().collect();
        let near = near.to_lowercase();
        words
            .iter()
            .any(|word| ends_with_word(near.trim_end(), word))
    }

    /// Whether a blank and a word for several things follow: `replicas`.
    pub(super) fn is_before_things(&self) -> bool {
        let word = self.text[self.at..].iter().skip(1);
        let word: Vec<_> = word.take_while(|c| is_latin(**c)).collect();
        self.peek(0) == Some(' ') && word.len() > 2 && *word[word.len() - 1] == 's'
    }

    /// Whether the three digits at `start` are what a server has answered.
    fn is_status(&self, start: usize, digits: &str) -> bool {
        let next = self.text[self.at..].iter().find(|c| **c != ' ');
        let counts_something = next.is_some_and(|c| is_latin(*c));
        digits.len() == 3 && !counts_something && self.is_behind(start, &BEFORE_STATUS)
    }

    /// Whether a run of digits at `start`, ending where the scan stands, is said digit by digit.
    pub(super) fn is_name(&self, start: usize, digits: &str) -> bool {
        let counts = self.is_measure();
        let is_masked = self.peek(0) == Some('*') || start > 0 && self.text[start - 1] == '*';
        let leads_with_zero = digits.len() > 1 && digits.starts_with('0');
        let is_service =
            SERVICES.contains(&digits) || digits.len() == 5 && digits.starts_with("955");
        let is_long = digits.len() >= 3;
        let is_port = self.peek(0) == Some('端') && self.peek(1) == Some('口');
        let by_what_follows = is_port || self.peek(0).is_some_and(|c| NAMED_BY.contains(c));
        // OPS-1234, abc1234
        let before = &self.text[..start];
        let before = before.strip_suffix(&['-']).unwrap_or(before);
        let is_of_word = before.last().is_some_and(|c| is_latin(*c));
        let is_named = by_what_follows || is_of_word || self.is_named(start);
        let is_named = is_long && (is_named || self.is_status(start, digits));
        leads_with_zero || is_masked || !counts && (digits.len() >= 7 || is_service || is_named)
    }

    pub(super) fn is_named(&self, start: usize) -> bool {
        let near: String = self.text[start.saturating_sub(16)..start].iter().collect();
        let near = near.to_lowercase();
        // The words end in characters that may also stand between, so each is tried with and without.
        let mut near = near.as_str();
        loop {
            if NAMED.iter().any(|word| ends_with_word(near, word)) {
                return true;
            }
            let Some(shorter) = near
                .strip_suffix(BETWEEN)
                .or_else(|| near.strip_suffix(" is"))
            else {
                return false;
            };
            near = shorter;
        }
    }
}

/// Whether a dash behind this character stands for "to" rather than for a minus.
pub(super) fn ends_a_range(before: char) -> bool {
    ENDS_OF_RANGES.contains(before)
}

/// English words only as a whole: `port`, not `report`.
fn ends_with_word(text: &str, word: &str) -> bool {
    let Some(before) = text.strip_suffix(word) else {
        return false;
    };
    !word.is_ascii() || !before.ends_with(is_latin)
}
