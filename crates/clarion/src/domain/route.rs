//! TrunkPool as they are configured: which numbers each carries, in which form, and in which order they are tried.

use serde::Deserialize;

/// One `[[trunk]]` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting")]
pub struct TrunkConfig {
    pub name: String,
    /// Where it is: a name or an address, with a port or without.
    pub host: String,
    /// udp, tcp or tls.
    pub transport: String,
    /// Where the packets go, if not to the host itself.
    pub proxy: String,
    /// The host in From, To and the registration, where the trunk wants another than its own name.
    pub domain: String,
    pub user: String,
    pub password: String,
    /// Seconds that a registration shall last; 0: the trunk knows us by our address.
    pub register_seconds: u32,
    /// How often the trunk is asked whether it is there; 0: never.
    pub options_seconds: u32,
    /// Our own address, and what the trunk shall see instead where that differs.
    pub bind: String,
    pub advertised: String,
    pub ca: std::path::PathBuf,
    pub certificate: std::path::PathBuf,
    pub private_key: std::path::PathBuf,
    /// PCMA, PCMU: the best first.
    pub codecs: Vec<String>,
    /// Calls at once, and calls started a second, at most.
    pub channels: u32,
    pub calls_per_second: u32,
    /// What it carries: beginnings of canonical numbers (country code first). "" is every number.
    pub prefixes: Vec<String>,
    /// The lowest is tried first; among equals one is drawn by weight.
    pub priority: u32,
    pub weight: u32,
    /// How a called and a calling number are written for this trunk.
    pub rewrite: Vec<Rewrite>,
    pub caller_rewrite: Vec<Rewrite>,
    /// The calling number where neither request nor platform has one.
    pub caller: String,
    /// What stands in From instead of the calling number.
    pub from_user: String,
    pub display_name: String,
    pub asserted_identity: bool,
    pub follow_redirects: bool,
    pub session_seconds: u32,
    /// Seconds that the trunk may leave it at "trying" before another one is tried; 0: as long as it may ring.
    pub progress_seconds: u32,
    pub symmetric_rtp: bool,
    pub srtp: bool,
    pub shared_port: bool,
    /// Seconds without any sound from the callee after which it counts as gone; 0: not noticed.
    pub vanished_seconds: u32,
    /// Leads to a telephone in the server itself, for trying things out: see docs/calls.md for its numbers.
    pub loopback: bool,
    /// Folder for recordings of what that telephone hears.
    pub record: std::path::PathBuf,
}

impl Default for TrunkConfig {
    fn default() -> Self {
        Self {
            name: String::new(),
            host: String::new(),
            transport: "udp".to_owned(),
            proxy: String::new(),
            domain: String::new(),
            user: String::new(),
            password: String::new(),
            register_seconds: 0,
            options_seconds: 30,
            bind: "0.0.0.0:0".to_owned(),
            advertised: String::new(),
            ca: "/etc/ssl/certs/ca-certificates.crt".into(),
            certificate: std::path::PathBuf::new(),
            private_key: std::path::PathBuf::new(),
            codecs: vec!["PCMA".to_owned(), "PCMU".to_owned()],
            channels: 0,
            calls_per_second: 0,
            prefixes: Vec::new(),
            priority: 10,
            weight: 1,
            rewrite: vec![Rewrite {
                from: String::new(),
                to: "+".to_owned(),
            }],
            caller_rewrite: vec![Rewrite {
                from: String::new(),
                to: "+".to_owned(),
            }],
            caller: String::new(),
            from_user: String::new(),
            display_name: String::new(),
            asserted_identity: false,
            follow_redirects: false,
            session_seconds: 0,
            progress_seconds: 0,
            symmetric_rtp: false,
            srtp: false,
            shared_port: false,
            vanished_seconds: 0,
            loopback: false,
            record: std::path::PathBuf::new(),
        }
    }
}

/// A beginning of a number and what stands in its place.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rewrite {
    pub from: String,
    pub to: String,
}

/// The rule with the longest beginning that fits is applied; without one the digits stay as they are.
pub fn rewritten(digits: &str, rules: &[Rewrite]) -> String {
    let rule = rules
        .iter()
        .filter(|rule| digits.starts_with(&rule.from))
        .max_by_key(|rule| rule.from.len());
    match rule {
        Some(rule) => format!("{}{}", rule.to, &digits[rule.from.len()..]),
        None => digits.to_owned(),
    }
}

impl TrunkConfig {
    pub fn check(&self) -> Result<(), String> {
        let word = |text: &str| {
            !text.is_empty()
                && text
                    .chars()
                    .all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter))
        };
        if !word(&self.name) {
            return Err("name must be a word of letters, digits, - _ .".to_owned());
        }
        if self.host.is_empty() != self.loopback {
            return Err("name a host, or set loopback = true".to_owned());
        }
        if self.calls_per_second == 0 && self.channels > 0 {
            return Err("calls_per_second must be at least 1".to_owned());
        }
        if self.register_seconds > 0 && (self.user.is_empty() || self.password.is_empty()) {
            return Err("a registration needs user and password".to_owned());
        }
        if self.prefixes.is_empty() {
            return Err(
                "prefixes: name what may be called, such as [\"86\"]; [\"\"] is everything"
                    .to_owned(),
            );
        }
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if let Some(wrong) = self.prefixes.iter().find(|prefix| !digits(prefix)) {
            return Err(format!(
                "prefixes: `{wrong}` must be digits, country code first"
            ));
        }
        let written = |text: &str| {
            text.bytes()
                .all(|byte| byte.is_ascii_digit() || b"+*#".contains(&byte))
        };
        let rules = self.rewrite.iter().chain(&self.caller_rewrite);
        if let Some(wrong) = rules
            .clone()
            .find(|rule| !digits(&rule.from) || !written(&rule.to))
        {
            return Err(format!(
                "rewrite: from `{}` must be digits, to `{}` digits with + * #",
                wrong.from, wrong.to
            ));
        }
        Ok(())
    }

    pub fn covers(&self, digits: &str) -> bool {
        self.prefixes
            .iter()
            .any(|prefix| digits.starts_with(prefix.as_str()))
    }
}

/// Does any trunk carry this number?
pub fn is_covered(trunks: &[TrunkConfig], digits: &str) -> bool {
    trunks.iter().any(|trunk| trunk.covers(digits))
}

/// The trunks that carry a number, in the order in which they are to be tried: places in the list. `draw` gives a number below its
/// argument.
pub fn order(trunks: &[TrunkConfig], digits: &str, mut draw: impl FnMut(u32) -> u32) -> Vec<usize> {
    let mut left: Vec<usize> = (0..trunks.len())
        .filter(|place| trunks[*place].covers(digits))
        .collect();
    left.sort_by_key(|place| trunks[*place].priority);
    let mut ordered = Vec::with_capacity(left.len());
    while let Some(first) = left.first() {
        let priority = trunks[*first].priority;
        let equals = left
            .iter()
            .take_while(|place| trunks[**place].priority == priority)
            .count();
        let weight = |place: &usize| trunks[*place].weight.max(1);
        let all: u32 = left[..equals].iter().map(weight).sum();
        let mut drawn = draw(all);
        let chosen = left[..equals]
            .iter()
            .position(|place| {
                let fits = drawn < weight(place);
                drawn = drawn.saturating_sub(weight(place));
                fits
            })
            .unwrap_or(0);
        ordered.push(left.remove(chosen));
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trunk(name: &str, prefixes: &[&str], priority: u32, weight: u32) -> TrunkConfig {
        TrunkConfig {
            name: name.to_owned(),
            host: "192.0.2.1".to_owned(),
            channels: 1,
            calls_per_second: 1,
            prefixes: prefixes.iter().map(|prefix| (*prefix).to_owned()).collect(),
            priority,
            weight,
            ..TrunkConfig::default()
        }
    }

    #[test]
    fn numbers_are_written_as_each_trunk_wants_them() {
        let rules = |rules: &[(&str, &str)]| -> Vec<Rewrite> {
            rules
                .iter()
                .map(|(from, to)| Rewrite {
                    from: (*from).to_owned(),
                    to: (*to).to_owned(),
                })
                .collect()
        };
        let national = rules(&[("86", ""), ("8610", "010"), ("", "00")]);
        assert_eq!(rewritten("8613800138000", &national), "13800138000");
        assert_eq!(rewritten("861052823298", &national), "01052823298");
        assert_eq!(rewritten("442071234567", &national), "00442071234567");
        assert_eq!(
            rewritten("8613800138000", &rules(&[("", "+")])),
            "+8613800138000"
        );
        assert_eq!(
            rewritten("8613800138000", &rules(&[("86", "0086")])),
            "008613800138000"
        );
        assert_eq!(
            rewritten("442071234567", &rules(&[("86", "")])),
            "442071234567"
        );
    }

    #[test]
    fn priority_comes_before_weight_and_coverage_before_both() {
        let trunks = [
            trunk("backup", &[""], 20, 1),
            trunk("light", &["86"], 10, 1),
            trunk("heavy", &["86"], 10, 9),
            trunk("foreign", &["44"], 1, 1),
        ];
        assert_eq!(order(&trunks, "8613800138000", |_| 0), [1, 2, 0]);
        assert_eq!(
            order(&trunks, "8613800138000", |all| if all > 1 { 5 } else { 0 }),
            [2, 1, 0]
        );
        assert_eq!(order(&trunks, "442071234567", |_| 0), [3, 0]);
        let mut first = [0; 4];
        for drawn in 0..10 {
            first[order(&trunks, "86138", |all| drawn % all)[0]] += 1;
        }
        assert_eq!(first, [0, 1, 9, 0]);
        assert!(!is_covered(&trunks[1..], "1212"));
    }

    #[test]
    fn mistakes_are_named() {
        let good = trunk("a", &["86"], 1, 1);
        assert_eq!(good.check(), Ok(()));
        let wrong = |change: fn(&mut TrunkConfig)| {
            let mut trunk = good.clone();
            change(&mut trunk);
            trunk.check().unwrap_err()
        };
        assert!(wrong(|trunk| trunk.name = "a b".to_owned()).contains("name"));
        assert!(wrong(|trunk| trunk.host.clear()).contains("host"));
        assert!(wrong(|trunk| trunk.loopback = true).contains("loopback"));
        assert!(wrong(|trunk| trunk.prefixes.clear()).contains("prefixes"));
        assert!(wrong(|trunk| trunk.prefixes = vec!["+86".to_owned()]).contains("+86"));
        assert!(wrong(|trunk| trunk.register_seconds = 60).contains("password"));
        assert!(wrong(|trunk| trunk.calls_per_second = 0).contains("calls_per_second"));
        assert!(wrong(|trunk| trunk.rewrite[0].to = "x@y".to_owned()).contains("rewrite"));
    }
}
