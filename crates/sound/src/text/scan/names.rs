//! Names with letters and figures: flights, number plates, orders, servers, alerts.

use super::{LONGEST_RUN, Scan, Token};
use crate::text::expression::Expression;
use crate::text::numerals::{DigitGroups, Numeral};

/// Said letter by letter.
const SPELLED: &[&str] = &[
    "ADSL", "AI", "API", "ATM", "AWS", "CEO", "CI", "CPU", "CRM", "CT", "CTO", "DB", "DBA", "DHCP",
    "DNS", "EMS", "ERP", "ETA", "ETC", "FAQ", "FTP", "GPS", "GPU", "HDD", "HR", "HTTP", "HTTPS",
    "ICU", "ID", "IO", "IP", "IT", "IVR", "JVM", "KTV", "LED", "NFS", "OA", "OOM", "OTP", "PC",
    "PDF", "PLC", "POS", "PR", "QPS", "QR", "RPC", "RTP", "SLA", "SMS", "SQL", "SSD", "SSH", "SSL",
    "TCP", "TLS", "TPS", "TV", "UDP", "UPS", "URL", "USB", "UTC", "VIP", "VM", "VPN",
];
/// Those of them that are words too, where they are not in capitals.
const ALSO_WORDS: [&str; 6] = ["ETC", "ID", "IT", "LED", "POS", "UPS"];
/// Said otherwise than they are written.
const SAID: &[(&str, &str)] = &[
    ("k8s", "kubernetes"),
    ("mysql", "my S Q L"),
    ("nginx", "engine X"),
    ("postgresql", "postgres"),
    ("iot", "I O T"),
    ("app", "app"),
    ("haproxy", "H A proxy"),
    ("rabbitmq", "rabbit M Q"),
    ("xx", "X X"),
    ("ok", "O K"),
];
/// A shorter word of several is said well as it is written.
const SHORTEST_OF_SEVERAL: usize = 9;
/// What a Chinese number plate begins with.
const PROVINCES: &str = "京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼";

impl Scan<'_> {
    /// Takes a word that is said otherwise than it is written.
    pub(super) fn known_word(&mut self) -> bool {
        let rest = self.text[self.at..].iter();
        let word: String = rest
            .take(LONGEST_RUN)
            .take_while(|c| c.is_ascii_alphanumeric())
            .collect();
        let spelled = SPELLED.contains(&word.as_str());
        let said = match said_for(&word) {
            Some(said) => said.to_owned(),
            None if spelled => letters(&word),
            None => return false,
        };
        self.at += word.len();
        self.tokens.push(Token::Latin(said));
        true
    }

    /// Letters and figures without a blank, all of it spelled: a flight, a number plate, an order. `begun` are letters that were taken.
    pub(super) fn identifier(&mut self, begun: &str) {
        let digits = self.run(self.at).len();
        // PM2.5
        if self.peek(digits) == Some('.') && self.is_digit(digits + 1) {
            return self.spell(begun);
        }
        let rest = self.take_while(LONGEST_RUN, |c| {
            c.is_ascii_uppercase() || c.is_ascii_digit()
        });
        // P1 is a number with a letter, and nothing that is dictated.
        if rest.len() == 1 {
            self.spell(begun);
            let number = Expression::Number(Numeral::of_digits(&rest));
            return self.tokens.push(Token::Said(number));
        }
        self.spell(&format!("{begun}{rest}"));
    }

    /// Takes a code that begins with a digit and has letters between digits: `3f9a2c1`, `0x80070005`.
    pub(super) fn code(&mut self) -> bool {
        let rest = self.text[self.at..].iter();
        let code: String = rest
            .take(LONGEST_RUN)
            .take_while(|c| c.is_ascii_alphanumeric())
            .collect();
        let is_digit = |c: char| c.is_ascii_digit();
        let letters = code.trim_start_matches(is_digit);
        // A number with its unit has no digits behind its letters.
        if !letters.contains(is_digit) || is_length_of_time(&code) {
            return false;
        }
        self.at += code.len();
        self.spell(&code.to_ascii_uppercase());
        true
    }

    /// `京A·12345`: what stands behind the letter belongs to it.
    pub(super) fn number_plate(&mut self) -> bool {
        let is_province = self.before().is_some_and(|c| PROVINCES.contains(c));
        let is_letter = self.peek(0).is_some_and(|c| c.is_ascii_uppercase());
        let blank = usize::from(self.peek(1) == Some(' '));
        let rest = &self.text[(self.at + 1 + blank).min(self.text.len())..];
        let belongs = |c: &&char| c.is_ascii_uppercase() || c.is_ascii_digit();
        let plate: String = rest.iter().take(8).take_while(belongs).collect();
        let has_digit = plate.contains(|c: char| c.is_ascii_digit());
        if !(is_province && is_letter && has_digit && matches!(plate.len(), 5 | 6)) {
            return false;
        }
        let letter = self.text[self.at];
        self.at += 1 + blank + plate.len();
        self.spell(&format!("{letter}{plate}"));
        true
    }

    /// Letters by their names, digits one by one.
    fn spell(&mut self, code: &str) {
        let mut rest = code;
        while let Some(first) = rest.chars().next() {
            let is_number = first.is_ascii_digit();
            let end = rest
                .find(|c: char| c.is_ascii_digit() != is_number)
                .unwrap_or(rest.len());
            let (part, others) = rest.split_at(end);
            self.tokens.push(if is_number {
                Token::Said(Expression::Digits(DigitGroups::of(part)))
            } else {
                Token::Latin(letters(part))
            });
            rest = others;
        }
    }
}

/// What is said for a word that is said otherwise than it is written.
pub(super) fn said_for(word: &str) -> Option<&'static str> {
    let said = SAID
        .iter()
        .find(|(written, _)| written.eq_ignore_ascii_case(word));
    said.map(|(_, said)| *said)
}

fn letters(word: &str) -> String {
    let letters: Vec<String> = word.chars().map(String::from).collect();
    letters.join(" ")
}

/// `1h30m`: digits and letters of times in turn.
fn is_length_of_time(code: &str) -> bool {
    let mut rest = code;
    while !rest.is_empty() {
        let behind = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        match behind.strip_prefix(['d', 'h', 'm', 's']) {
            Some(next) if behind.len() < rest.len() => rest = next,
            _ => return false,
        }
    }
    true
}

/// `HighCpuUsage` as three words: programs write names so. Shorter ones are names that voices know.
pub(super) fn words_of(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() < SHORTEST_OF_SEVERAL {
        return name.to_owned();
    }
    let mut words = String::new();
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| letters[at]);
        let next = letters.get(at + 1);
        let rises = before.is_some_and(char::is_lowercase) && letter.is_uppercase();
        let begins = before.is_some_and(char::is_uppercase)
            && letter.is_uppercase()
            && next.is_some_and(|c| c.is_lowercase());
        if rises || begins {
            words.push(' ');
        }
        words.push(*letter);
    }
    let said = |word: &str| {
        let capitals = word.to_uppercase();
        let is_spelled = SPELLED.contains(&word)
            || SPELLED.contains(&capitals.as_str()) && !ALSO_WORDS.contains(&capitals.as_str());
        if is_spelled {
            self::letters(&capitals)
        } else {
            word.to_owned()
        }
    };
    let words: Vec<_> = words.split(' ').map(said).collect();
    words.join(" ")
}
