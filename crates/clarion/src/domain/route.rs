//! Which trunks carry a number, in which order they are tried, and how numbers are written for each.

use std::cmp::Reverse;

use super::call_window::CallWindow;
use super::prefix::Prefix;

/// The calling number of a call that has none.
const ANONYMOUS: &str = "anonymous";

/// What routing knows about a trunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrunkRoute {
    pub name: String,
    /// Beginnings of the canonical numbers that the trunk carries.
    pub prefixes: Vec<Prefix>,
    /// The lowest priority is tried first. Among equal ones a trunk is drawn by weight.
    pub priority: u32,
    pub weight: u32,
    /// How called and calling numbers are written for this trunk.
    pub rewrite: Vec<Rewrite>,
    pub caller_rewrite: Vec<Rewrite>,
    /// The calling number if neither request nor platform has one, as it is written for this trunk.
    pub caller: Option<String>,
    /// Beginnings of the calling numbers that the trunk carries; none: all, and calls without one.
    pub callers: Vec<Prefix>,
    /// When it carries calls; `None`: always.
    pub hours: Option<CallWindow>,
}

impl TrunkRoute {
    /// Returns whether the trunk carries calls to this number, of whomever.
    pub fn covers(&self, digits: &str) -> bool {
        begins_with_one(digits, &self.prefixes)
    }

    /// Returns whether the trunk carries a call between these numbers.
    pub fn carries(&self, ends: CallEnds<'_>) -> bool {
        let caller = self.callers.is_empty()
            || ends
                .caller
                .is_some_and(|caller| begins_with_one(caller, &self.callers));
        caller && self.covers(ends.called)
    }

    /// Returns a called number as it is written for this trunk.
    pub fn called(&self, digits: &str) -> String {
        rewritten(digits, &self.rewrite)
    }

    /// Returns the canonical digits of a called number that one of the rules writes like this. The rule that writes the longest beginning is
    /// believed: `00` before `0`.
    pub fn canonical(&self, written: &str) -> Option<String> {
        let mut rules: Vec<_> = self.rewrite.iter().collect();
        rules.sort_by_key(|rule| Reverse((rule.to.len(), rule.from.len())));
        rules.into_iter().find_map(|rule| {
            let digits = format!("{}{}", rule.from, written.strip_prefix(&rule.to)?);
            (self.called(&digits) == written).then_some(digits)
        })
    }

    /// Returns whether every number is written with its country code and a `+` before it.
    pub fn writes_global_numbers(&self) -> bool {
        [&self.rewrite, &self.caller_rewrite].iter().all(|rules| {
            let complete = rules.iter().any(|rule| rule.from.is_empty());
            complete && rules.iter().all(|rule| rule.to.starts_with('+'))
        })
    }

    /// Returns the calling number as it is written for this trunk.
    pub fn calling(&self, digits: Option<&str>) -> String {
        match digits {
            Some(digits) => rewritten(digits, &self.caller_rewrite),
            None => self.caller.clone().unwrap_or(ANONYMOUS.to_owned()),
        }
    }
}

/// The two numbers of a call, as digits.
#[derive(Debug, Clone, Copy)]
pub struct CallEnds<'a> {
    pub called: &'a str,
    /// `None` if no number is shown.
    pub caller: Option<&'a str>,
}

fn begins_with_one(digits: &str, prefixes: &[Prefix]) -> bool {
    let mut prefixes = prefixes.iter();
    prefixes.any(|prefix| digits.starts_with(prefix.as_str()))
}

/// A beginning of a number and its replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewrite {
    from: String,
    to: String,
}

impl Rewrite {
    pub fn new(from: String, to: String) -> Result<Self, String> {
        let dialled = |byte: u8| byte.is_ascii_digit() || b"+*#".contains(&byte);
        if from.bytes().all(|byte| byte.is_ascii_digit()) && to.bytes().all(dialled) {
            return Ok(Self { from, to });
        }
        Err(format!(
            "from `{from}` must be digits, to `{to}` digits with + * #"
        ))
    }
}

/// Applies the rule with the longest beginning that matches. Without one the digits stay as they are.
fn rewritten(digits: &str, rules: &[Rewrite]) -> String {
    let rule = rules
        .iter()
        .filter(|rule| digits.starts_with(&rule.from))
        .max_by_key(|rule| rule.from.len());
    match rule {
        Some(rule) => format!("{}{}", rule.to, &digits[rule.from.len()..]),
        None => digits.to_owned(),
    }
}

/// The trunks that carry a call, by name: what is queued for the same trunks waits together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RouteKey(String);

impl RouteKey {
    const SEPARATOR: char = ' ';
    /// Stands before the name of a trunk that is the only one. No name begins so.
    const ALONE: char = '!';

    pub fn of<'a>(trunks: impl IntoIterator<Item = &'a TrunkRoute>, ends: CallEnds<'_>) -> Self {
        let carrying = trunks.into_iter().filter(|trunk| trunk.carries(ends));
        let mut names: Vec<_> = carrying.map(|trunk| trunk.name.as_str()).collect();
        names.sort_unstable();
        Self(names.join(&Self::SEPARATOR.to_string()))
    }

    /// A call that goes over this trunk and no other, whichever carry it.
    pub fn alone(trunk: &str) -> Self {
        Self(format!("{}{trunk}", Self::ALONE))
    }

    pub fn from_stored(text: String) -> Self {
        Self(text)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The trunk, where the call may go over no other.
    pub fn only_trunk(&self) -> Option<&str> {
        self.0.strip_prefix(Self::ALONE)
    }

    pub fn trunks(&self) -> impl Iterator<Item = &str> {
        self.only_trunk()
            .unwrap_or(&self.0)
            .split(Self::SEPARATOR)
            .filter(|name| !name.is_empty())
    }
}

/// Returns whether any trunk carries this call.
pub fn is_carried<'a>(
    trunks: impl IntoIterator<Item = &'a TrunkRoute>,
    ends: CallEnds<'_>,
) -> bool {
    trunks.into_iter().any(|trunk| trunk.carries(ends))
}

/// Returns the trunks that carry a call, as places in the list, in the order in which they are tried. `draw` returns a number below its
/// argument.
pub fn order<'a>(
    trunks: impl IntoIterator<Item = &'a TrunkRoute>,
    ends: CallEnds<'_>,
    mut draw: impl FnMut(u32) -> u32,
) -> Vec<usize> {
    let trunks: Vec<_> = trunks.into_iter().collect();
    let mut left: Vec<usize> = (0..trunks.len())
        .filter(|place| trunks[*place].carries(ends))
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

    fn trunk(name: &str, prefixes: &[&str], priority: u32, weight: u32) -> TrunkRoute {
        TrunkRoute {
            name: name.to_owned(),
            prefixes: prefixes.iter().map(|text| text.parse().unwrap()).collect(),
            priority,
            weight,
            rewrite: Vec::new(),
            caller_rewrite: Vec::new(),
            caller: None,
            callers: Vec::new(),
            hours: None,
        }
    }

    fn to(called: &str) -> CallEnds<'_> {
        CallEnds {
            called,
            caller: None,
        }
    }

    #[test]
    fn a_trunk_may_be_for_some_callers_only() {
        let mut of_one = trunk("tenant", &["86"], 1, 1);
        of_one.callers = vec!["861052".parse().unwrap()];
        let trunks = [of_one, trunk("all", &["86"], 2, 1)];
        let from = |caller| CallEnds {
            called: "8613800138000",
            caller,
        };
        assert_eq!(order(&trunks, from(Some("861052823298")), |_| 0), [0, 1]);
        assert_eq!(order(&trunks, from(Some("862152823298")), |_| 0), [1]);
        assert_eq!(order(&trunks, from(None), |_| 0), [1]);
        assert!(!is_carried(&trunks[..1], from(None)));
        let key = RouteKey::of(&trunks, from(Some("861052823298")));
        assert_eq!(key.as_str(), "all tenant");
    }

    #[test]
    fn numbers_are_written_as_each_trunk_wants_them() {
        let rules = |rules: &[(&str, &str)]| -> Vec<Rewrite> {
            rules
                .iter()
                .map(|(from, to)| Rewrite::new((*from).to_owned(), (*to).to_owned()).unwrap())
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
    fn a_number_that_a_trunk_writes_is_read_again() {
        let mut route = trunk("a", &[""], 1, 1);
        let rule = |from: &str, to: &str| Rewrite::new(from.to_owned(), to.to_owned()).unwrap();
        route.rewrite = vec![rule("86", "0"), rule("", "00")];
        for digits in ["8613800138000", "442071234567"] {
            let read = route.canonical(&route.called(digits));
            assert_eq!(read.as_deref(), Some(digits));
        }
        assert_eq!(route.canonical("13800138000"), None);
    }

    #[test]
    fn priority_comes_before_weight_and_coverage_before_both() {
        let trunks = [
            trunk("backup", &[""], 20, 1),
            trunk("light", &["86"], 10, 1),
            trunk("heavy", &["86"], 10, 9),
            trunk("foreign", &["44"], 1, 1),
        ];
        assert_eq!(order(&trunks, to("8613800138000"), |_| 0), [1, 2, 0]);
        assert_eq!(
            order(&trunks, to("8613800138000"), |all| if all > 1 {
                5
            } else {
                0
            }),
            [2, 1, 0]
        );
        assert_eq!(order(&trunks, to("442071234567"), |_| 0), [3, 0]);
        let mut first = [0; 4];
        for drawn in 0..10 {
            first[order(&trunks, to("86138"), |all| drawn % all)[0]] += 1;
        }
        assert_eq!(first, [0, 1, 9, 0]);
        assert!(!is_carried(&trunks[1..], to("1212")));
    }

    #[test]
    fn a_route_is_named_by_the_trunks_that_carry_it() {
        let trunks = [
            trunk("north", &["86"], 20, 1),
            trunk("east", &["86", "44"], 10, 1),
        ];
        let key = |digits| RouteKey::of(&trunks, to(digits));
        assert_eq!(key("8613800138000").as_str(), "east north");
        assert_eq!(key("442071234567").as_str(), "east");
        assert_eq!(
            key("8613800138000").trunks().collect::<Vec<_>>(),
            ["east", "north"]
        );
        assert_eq!(key("1212").trunks().count(), 0);
    }

    #[test]
    fn a_rewrite_is_made_of_what_can_be_dialled() {
        let rewrite = |from: &str, to: &str| Rewrite::new(from.to_owned(), to.to_owned());
        assert!(rewrite("86", "+*#0").is_ok());
        assert!(rewrite("+86", "").unwrap_err().contains("`+86`"));
        assert!(rewrite("", "x@y").unwrap_err().contains("`x@y`"));
    }

    #[test]
    fn a_call_without_a_calling_number_shows_the_trunks_own() {
        let mut route = trunk("a", &[""], 1, 1);
        route.caller_rewrite = vec![Rewrite::new("86".to_owned(), "0".to_owned()).unwrap()];
        assert_eq!(route.calling(Some("864008888888")), "04008888888");
        assert_eq!(route.calling(None), "anonymous");
        route.caller = Some("12345".to_owned());
        assert_eq!(route.calling(None), "12345");
    }
}
