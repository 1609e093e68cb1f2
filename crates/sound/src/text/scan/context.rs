//! What stands before and behind figures decides how they are read: `验证码1234` digit by digit, `1234元` as an amount.

use super::Scan;

/// Behind these, figures are a name and not a number.
const NAMED: [&str; 45] = [
    "验证码",
    "校验码",
    "密码",
    "取件码",
    "提货码",
    "取货码",
    "提取码",
    "核销码",
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
    "车牌",
    "电话",
    "手机",
    "热线",
    "拨打",
    "致电",
    "客服",
    "分机",
    "转",
    "订单",
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
];
/// Between such a word and the figures.
const BETWEEN: &[char] = &[
    ' ', ':', '：', '是', '为', '号', '码', '(', '"', '\'', '#', '.', '-',
];
/// Chinese measure words before which two is 两.
const MEASURES: &str = "个位名件条天周年小分张份单只台辆斤倍块本家岁次间元笔场句遍种套";
/// Numbers of services that everybody says digit by digit.
const SERVICES: [&str; 8] = [
    "10086", "10010", "10011", "12306", "12315", "12333", "12345", "12366",
];

impl Scan<'_> {
    pub(super) fn is_measure(&self) -> bool {
        self.peek(0).is_some_and(|c| MEASURES.contains(c))
    }

    /// Whether a run of digits at `start`, ending where the scan stands, is said digit by digit.
    pub(super) fn is_name(&self, start: usize, digits: &str) -> bool {
        let counts = self.is_measure() || self.peek(0).is_some_and(|c| "万亿千百人".contains(c));
        let is_masked = self.peek(0) == Some('*') || start > 0 && self.text[start - 1] == '*';
        let leads_with_zero = digits.len() > 1 && digits.starts_with('0');
        let is_service =
            SERVICES.contains(&digits) || digits.len() == 5 && digits.starts_with("955");
        let is_room = digits.len() >= 3 && self.peek(0) == Some('室');
        let is_named = is_room || digits.len() >= 3 && self.is_named(start);
        leads_with_zero || is_masked || !counts && (digits.len() >= 7 || is_service || is_named)
    }

    pub(super) fn is_named(&self, start: usize) -> bool {
        let near: String = self.text[start.saturating_sub(16)..start].iter().collect();
        let near = near.to_lowercase();
        // The words end in characters that may also stand between, so each is tried with and without.
        let mut near = near.as_str();
        loop {
            if NAMED.iter().any(|word| near.ends_with(word)) {
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
