//! Whether a number to which a trunk redirects a call may be called: the rules are those for any number.

use super::numbering_plan::NumberingPlan;
use super::phone_number::PhoneNumber;
use super::route::TrunkRoute;

/// The number that the trunk has written.
pub fn redirected_number(
    written: &str,
    route: &TrunkRoute,
    plan: &NumberingPlan,
) -> Result<PhoneNumber, String> {
    let digits = route.canonical(written).map(|digits| format!("+{digits}"));
    let text = digits.as_deref().unwrap_or(written);
    PhoneNumber::parse(text, plan).map_err(|_| "it leads to no telephone number".to_owned())
}

/// Checks a number as the trunk writes it. The error says why it is not called.
pub fn check_redirect(
    written: &str,
    route: &TrunkRoute,
    plan: &NumberingPlan,
    is_barred: impl Fn(&str) -> bool,
) -> Result<(), String> {
    let number = redirected_number(written, route, plan)?;
    let allowed = number.check_allowed(plan);
    allowed.map_err(|_| "it leads to a number that is not called".to_owned())?;
    if is_barred(number.digits()) {
        return Err("it leads to a number that does not want to be called".to_owned());
    }
    if !route.covers(number.digits()) {
        return Err("it leads to a number that this trunk does not carry".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::route::Rewrite;

    #[test]
    fn a_redirect_leads_where_the_platform_would_call_too() {
        let plan = NumberingPlan {
            forbidden: vec!["+8616*".parse().unwrap()],
            ..NumberingPlan::china()
        };
        let route = TrunkRoute {
            name: "a".to_owned(),
            prefixes: vec!["86".parse().unwrap()],
            priority: 1,
            weight: 1,
            rewrite: vec![Rewrite::new("86".to_owned(), "9".to_owned()).unwrap()],
            caller_rewrite: Vec::new(),
            caller: None,
            callers: Vec::new(),
            hours: None,
        };
        let barred = |digits: &str| digits == "8613800000002";
        for (written, said) in [
            ("913800000001", None),
            ("+8613800000001", None),
            ("13800000001", None),
            ("913800000002", Some("does not want to be called")),
            ("916812345", Some("is not called")),
            ("9110", Some("is not called")),
            ("+442071234567", Some("does not carry")),
            ("alice", Some("no telephone number")),
            ("", Some("no telephone number")),
        ] {
            let checked = check_redirect(written, &route, &plan, barred);
            let fits = match (&checked, said) {
                (Ok(()), None) => true,
                (Err(reason), Some(said)) => reason.contains(said),
                _ => false,
            };
            assert!(fits, "{written}: {checked:?}");
        }
    }
}
