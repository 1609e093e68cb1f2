//! Figures in Chinese words.

use super::expression::{Expression, Half, Time};
use super::numerals::{DigitGroups, Numeral};
use super::units::{Currency, YUAN};

const FIGURES: [char; 10] = ['零', '一', '二', '三', '四', '五', '六', '七', '八', '九'];
/// Longer numbers have no words that people understand; they are said digit by digit.
const LONGEST: usize = 16;

pub(super) fn say(expression: &Expression) -> String {
    match expression {
        Expression::Number(number) => numeral(number),
        Expression::Counted(number) => counted(number),
        Expression::Ordinal(number) => format!("第{}", numeral(number)),
        Expression::Numbered(number) => format!("{}号", numeral(number)),
        Expression::Digits(groups) => digits(groups),
        Expression::Dotted(groups) => {
            let said: Vec<String> = groups.iter().map(|group| figures(group)).collect();
            said.join("点")
        }
        Expression::Internet {
            groups,
            port,
            network,
        } => {
            let said: Vec<String> = groups.iter().map(|group| figures(group)).collect();
            let port = port
                .as_ref()
                .map(|port| format!("端口{}", on_telephone(port)));
            let network = network
                .as_ref()
                .map(|bits| format!("斜杠{}", numeral(bits)));
            let behind = port.or(network).unwrap_or_default();
            format!("{}{behind}", said.join("点"))
        }
        Expression::Year(year) => figures(year),
        Expression::Date { year, month, day } => {
            let year = year.as_ref().map(|year| figures(year) + "年");
            let (month, day) = (small(*month), small(*day));
            format!("{}{month}月{day}日", year.unwrap_or_default())
        }
        Expression::Time(time) => clock(*time),
        Expression::Money(currency, number) => money(*currency, number),
        Expression::ScaledMoney(currency, number, scale) => match scale.chinese() {
            Some(word) => format!("{}{word}{}", counted(&number.shortest()), currency.chinese),
            None => money(*currency, &number.with_zeros(scale.zeros())),
        },
        Expression::Percent(number) => format!("百分之{}", numeral(number)),
        Expression::PerMille(number) => format!("千分之{}", numeral(number)),
        Expression::Measure(number, unit) => {
            format!("{}{}", counted(number), unit.chinese)
        }
        Expression::Fraction(upper, lower) | Expression::OutOf(upper, lower) => {
            format!("{}分之{}", numeral(lower), numeral(upper))
        }
        Expression::Ratio(from, to) => format!("{}比{}", numeral(from), numeral(to)),
        Expression::Several(parts) => parts.iter().map(say).collect(),
        Expression::Range(from, to) => match (&**from, &**to) {
            // 5-10% is said with both percent signs.
            (Expression::Number(number), Expression::Percent(_)) => {
                format!("百分之{}到{}", numeral(number), say(to))
            }
            (Expression::Number(number), Expression::Counted(_) | Expression::Measure(..)) => {
                format!("{}到{}", counted(number), say(to))
            }
            (from, to) => format!("{}到{}", say(from), say(to)),
        },
        Expression::Symbol(symbol) => symbol.chinese().into(),
    }
}

fn figure(digit: char) -> char {
    digit
        .to_digit(10)
        .map_or(digit, |digit| FIGURES[digit as usize])
}

fn figures(digits: &str) -> String {
    digits.chars().map(figure).collect()
}

/// On the telephone one is said yāo, so that it is not taken for seven.
fn on_telephone(digits: &str) -> String {
    figures(digits).replace('一', "幺")
}

fn digits(groups: &DigitGroups) -> String {
    let said: Vec<String> = groups.0.iter().map(|group| on_telephone(group)).collect();
    said.join("，")
}

fn numeral(number: &Numeral) -> String {
    let sign = if number.negative { "负" } else { "" };
    let whole = cardinal(&number.whole);
    let fraction = number
        .fraction
        .as_ref()
        .map(|digits| format!("点{}", figures(digits)));
    format!("{sign}{whole}{}", fraction.unwrap_or_default())
}

/// Before a measure word, two is 两.
fn counted(number: &Numeral) -> String {
    if number.is_plain() && number.whole == "2" {
        return "两".into();
    }
    numeral(number)
}

fn small(number: u32) -> String {
    cardinal(&number.to_string())
}

/// Whole numbers, in the groups of four that Chinese counts by.
fn cardinal(digits: &str) -> String {
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return "零".into();
    }
    if digits.len() > LONGEST {
        return figures(digits);
    }
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(4)
        .rev()
        .map(|group| str::from_utf8(group).unwrap_or_default())
        .collect();
    let mut words = String::new();
    let mut owes_zero = false;
    for (place, group) in groups.iter().enumerate() {
        let value: u32 = group.parse().unwrap_or(0);
        if value == 0 {
            owes_zero = !words.is_empty();
            continue;
        }
        if !words.is_empty() && (owes_zero || value < 1000) {
            words.push('零');
        }
        owes_zero = false;
        let scale = ["", "万", "亿", "万亿"][groups.len() - 1 - place];
        words.push_str(&group_of_four(value, words.is_empty(), !scale.is_empty()));
        words.push_str(scale);
    }
    words
}

/// Up to 9999. Ten at the very beginning is 十, elsewhere 一十; two thousand and two before a scale are 两.
fn group_of_four(value: u32, leads: bool, is_scaled: bool) -> String {
    if value == 2 && leads && is_scaled {
        return "两".into();
    }
    let mut words = String::new();
    let mut owes_zero = false;
    for (power, unit) in [(1000, "千"), (100, "百"), (10, "十"), (1, "")] {
        let digit = value / power % 10;
        if digit == 0 {
            owes_zero = !words.is_empty();
            continue;
        }
        if owes_zero {
            words.push('零');
            owes_zero = false;
        }
        match (digit, power) {
            (1, 10) if words.is_empty() && leads => {}
            (2, 1000) => words.push('两'),
            _ => words.push(FIGURES[digit as usize]),
        }
        words.push_str(unit);
    }
    words
}

fn clock(time: Time) -> String {
    let half = match time.half {
        Some(Half::Morning) => "上午",
        Some(Half::Afternoon) => "下午",
        None => "",
    };
    let hour = if time.hour == 2 {
        "两".into()
    } else {
        small(time.hour)
    };
    let minute = match (time.minute, time.second) {
        (0, None) => "整".into(),
        (minute @ 1..=9, _) => format!("零{}分", small(minute)),
        (minute, _) => format!("{}分", small(minute)),
    };
    let second = time.second.map(|second| small(second) + "秒");
    format!("{half}{hour}点{minute}{}", second.unwrap_or_default())
}

/// Yuan are said with jiao and fen, other currencies with a point.
fn money(currency: Currency, number: &Numeral) -> String {
    let fraction = number.fraction.as_deref().unwrap_or("");
    if currency != YUAN || fraction.len() > 2 {
        return counted(&number.shortest()) + currency.chinese;
    }
    let mut parts = fraction.chars().map(figure);
    let (jiao, fen) = (parts.next().unwrap_or('零'), parts.next().unwrap_or('零'));
    let whole = Numeral {
        fraction: None,
        ..number.clone()
    };
    let yuan = counted(&whole) + "元";
    match (jiao, fen) {
        ('零', '零') => yuan,
        ('零', fen) => format!("{yuan}零{fen}分"),
        (jiao, '零') => format!("{yuan}{jiao}角"),
        (jiao, fen) => format!("{yuan}{jiao}角{fen}分"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_counted_as_in_chinese() {
        for (digits, words) in [
            ("0", "零"),
            ("10", "十"),
            ("12", "十二"),
            ("20", "二十"),
            ("101", "一百零一"),
            ("110", "一百一十"),
            ("1000", "一千"),
            ("1010", "一千零一十"),
            ("2026", "两千零二十六"),
            ("10000", "一万"),
            ("20000", "两万"),
            ("10086", "一万零八十六"),
            ("100000", "十万"),
            ("120034", "十二万零三十四"),
            ("100000000", "一亿"),
            ("1000010000", "十亿零一万"),
            ("1234567890", "十二亿三千四百五十六万七千八百九十"),
            (
                "9999999999999999",
                "九千九百九十九万亿九千九百九十九亿九千九百九十九万九千九百九十九",
            ),
        ] {
            assert_eq!(cardinal(digits), words, "{digits}");
        }
        assert_eq!(cardinal("12345678901234567").chars().count(), 17);
    }
}
