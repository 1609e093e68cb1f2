//! Figures in English words.

use super::expression::{Expression, Half, Time};
use super::numerals::{DigitGroups, Numeral};
use super::units::Currency;

const SMALL: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 10] = [
    "", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety",
];
pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// Longer numbers have no words that people understand; they are said digit by digit.
const LONGEST: usize = 15;

pub(super) fn say(expression: &Expression) -> String {
    match expression {
        Expression::Number(number) | Expression::Counted(number) => numeral(number),
        Expression::Ordinal(number) => ordinal(&numeral(number)),
        Expression::Numbered(number) => format!("number {}", numeral(number)),
        Expression::Digits(groups) => digits(groups),
        Expression::Dotted(groups) => {
            let said: Vec<String> = groups.iter().map(|group| figures(group)).collect();
            said.join(" point ")
        }
        Expression::Internet {
            groups,
            port,
            network,
        } => {
            let said: Vec<String> = groups.iter().map(|group| figures(group)).collect();
            let port = port.as_ref().map(|port| format!(" port {}", figures(port)));
            let network = network
                .as_ref()
                .map(|bits| format!(" slash {}", numeral(bits)));
            let behind = port.or(network).unwrap_or_default();
            format!("{}{behind}", said.join(" dot "))
        }
        Expression::Year(year) => said_year(year),
        Expression::Date { year, month, day } => {
            let month = MONTHS[(*month as usize).clamp(1, 12) - 1];
            let day = ordinal(&cardinal(&day.to_string()));
            match year {
                Some(year) => format!("{month} {day}, {}", said_year(year)),
                None => format!("{month} {day}"),
            }
        }
        Expression::Time(time) => clock(*time),
        Expression::Money(currency, number) => money(*currency, number),
        Expression::ScaledMoney(currency, number, scale) => match scale.english() {
            Some(word) => format!(
                "{} {word} {}",
                numeral(&number.shortest()),
                currency.english[1]
            ),
            None => money(*currency, &number.with_zeros(scale.zeros())),
        },
        Expression::Percent(number) => format!("{} percent", numeral(number)),
        Expression::PerMille(number) => format!("{} per thousand", numeral(number)),
        Expression::Measure(number, unit) => {
            format!(
                "{} {}",
                numeral(number),
                unit.english[usize::from(!is_one(number))]
            )
        }
        Expression::Fraction(upper, lower) => fraction(upper, lower),
        Expression::OutOf(part, whole) => format!("{} of {}", numeral(part), numeral(whole)),
        Expression::Ratio(from, to) => format!("{} to {}", numeral(from), numeral(to)),
        Expression::Several(parts) => parts.iter().map(say).collect::<Vec<_>>().join(" "),
        Expression::Range(from, to) => format!("{} to {}", say(from), say(to)),
        Expression::Symbol(symbol) => symbol.english().into(),
    }
}

fn is_one(number: &Numeral) -> bool {
    number.is_plain() && number.whole.trim_start_matches('0') == "1"
}

fn figures(digits: &str) -> String {
    let words = digits
        .chars()
        .filter_map(|digit| Some(SMALL[digit.to_digit(10)? as usize]));
    words.collect::<Vec<_>>().join(" ")
}

fn digits(groups: &DigitGroups) -> String {
    let said: Vec<String> = groups.0.iter().map(|group| figures(group)).collect();
    said.join(", ")
}

fn numeral(number: &Numeral) -> String {
    let sign = if number.negative { "minus " } else { "" };
    let whole = cardinal(&number.whole);
    let fraction = number
        .fraction
        .as_ref()
        .map(|digits| format!(" point {}", figures(digits)));
    format!("{sign}{whole}{}", fraction.unwrap_or_default())
}

/// Three quarters, one third, five over two hundred.
fn fraction(upper: &Numeral, lower: &Numeral) -> String {
    let part = match lower.small() {
        Some(2) => "half".to_owned(),
        Some(4) => "quarter".to_owned(),
        Some(3..=20 | 100 | 1000) => ordinal(&numeral(lower)),
        _ => return format!("{} over {}", numeral(upper), numeral(lower)),
    };
    let several = if is_one(upper) { "" } else { "s" };
    format!("{} {part}{several}", numeral(upper))
}

fn cardinal(digits: &str) -> String {
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return SMALL[0].into();
    }
    if digits.len() > LONGEST {
        return figures(digits);
    }
    let groups: Vec<usize> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| {
            str::from_utf8(group)
                .unwrap_or_default()
                .parse()
                .unwrap_or(0)
        })
        .collect();
    let mut words = Vec::new();
    for (place, value) in groups.iter().enumerate().filter(|(_, value)| **value > 0) {
        words.push(below_thousand(*value));
        let scale = ["", "thousand", "million", "billion", "trillion"][groups.len() - 1 - place];
        if !scale.is_empty() {
            words.push(scale.into());
        }
    }
    words.join(" ")
}

fn below_thousand(value: usize) -> String {
    let mut words = Vec::new();
    if value >= 100 {
        words.push(format!("{} hundred", SMALL[value / 100 % 10]));
    }
    match value % 100 {
        0 => {}
        rest @ 1..=19 => words.push(SMALL[rest].into()),
        rest if rest % 10 == 0 => words.push(TENS[rest / 10].into()),
        rest => words.push(format!("{} {}", TENS[rest / 10], SMALL[rest % 10])),
    }
    words.join(" ")
}

/// The last word becomes an ordinal.
fn ordinal(cardinal: &str) -> String {
    let (before, last) = cardinal.rsplit_once(' ').unwrap_or(("", cardinal));
    let last = match last {
        "one" => "first".into(),
        "two" => "second".into(),
        "three" => "third".into(),
        "five" => "fifth".into(),
        "eight" => "eighth".into(),
        "nine" => "ninth".into(),
        "twelve" => "twelfth".into(),
        tens if tens.ends_with('y') => format!("{}ieth", &tens[..tens.len() - 1]),
        other => format!("{other}th"),
    };
    format!("{before} {last}").trim_start().into()
}

/// 2026 is twenty twenty six, 2005 two thousand five, 1900 nineteen hundred.
fn said_year(year: &str) -> String {
    let Ok(number) = year.parse::<usize>() else {
        return figures(year);
    };
    if !(1100..=2999).contains(&number) || (2000..2010).contains(&number) {
        return cardinal(year);
    }
    let century = below_thousand(number / 100);
    match number % 100 {
        0 if number.is_multiple_of(1000) => cardinal(year),
        0 => format!("{century} hundred"),
        rest @ 1..=9 => format!("{century} oh {}", SMALL[rest]),
        rest => format!("{century} {}", below_thousand(rest)),
    }
}

/// On the twelve-hour clock, as people say it.
fn clock(time: Time) -> String {
    match (time.hour, time.minute, time.second, time.half) {
        (12, 0, None, None) => return "twelve noon".into(),
        (0 | 24, 0, None, None) => return "twelve midnight".into(),
        _ => {}
    }
    let is_afternoon = match time.half {
        Some(half) => half == Half::Afternoon,
        None => (12..24).contains(&time.hour),
    };
    let hour = match time.hour % 12 {
        0 => SMALL[12],
        hour => SMALL[hour as usize],
    };
    let minute = match time.minute as usize {
        0 => String::new(),
        minute @ 1..=9 => format!(" oh {}", SMALL[minute]),
        minute => format!(" {}", below_thousand(minute)),
    };
    let second = match time.second {
        Some(second) => format!(" and {} seconds", below_thousand_or_zero(second as usize)),
        None => String::new(),
    };
    let half = if is_afternoon { "P M" } else { "A M" };
    format!("{hour}{minute}{second} {half}")
}

fn below_thousand_or_zero(value: usize) -> String {
    if value == 0 {
        SMALL[0].into()
    } else {
        below_thousand(value)
    }
}

fn money(currency: Currency, number: &Numeral) -> String {
    let several = usize::from(!is_one(number));
    let fraction = number.fraction.as_deref().unwrap_or("");
    let cents: Option<usize> = match fraction.len() {
        1 => fraction.parse().ok().map(|tenths: usize| tenths * 10),
        2 => fraction.parse().ok(),
        _ => None,
    };
    let whole = Numeral {
        fraction: None,
        ..number.clone()
    };
    match (currency.english_small, cents) {
        (_, Some(0)) => {
            let several = usize::from(!is_one(&whole));
            format!("{} {}", numeral(&whole), currency.english[several])
        }
        (Some(small), Some(cents)) => {
            let several = usize::from(!is_one(&whole));
            let small = small[usize::from(cents != 1)];
            let (whole, cents) = (numeral(&whole), below_thousand(cents));
            format!("{whole} {} and {cents} {small}", currency.english[several])
        }
        _ => {
            format!(
                "{} {}",
                numeral(&number.shortest()),
                currency.english[several]
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_years_are_said_as_in_english() {
        assert_eq!(cardinal("0"), "zero");
        assert_eq!(cardinal("128"), "one hundred twenty eight");
        assert_eq!(cardinal("1000001"), "one million one");
        assert_eq!(cardinal("20015"), "twenty thousand fifteen");
        assert_eq!(said_year("2026"), "twenty twenty six");
        assert_eq!(said_year("2005"), "two thousand five");
        assert_eq!(said_year("1906"), "nineteen oh six");
        assert_eq!(said_year("1900"), "nineteen hundred");
        assert_eq!(ordinal("twenty"), "twentieth");
        assert_eq!(ordinal("thirty one"), "thirty first");
        assert_eq!(ordinal("twelve"), "twelfth");
    }
}
