//! The branches of INVITEs that repeat another one with credentials. They follow from the first, so that a leg can be cancelled by what was
//! recorded of it before anything was sent.

use rsipstack::sip::{HeadersExt, Param, Request, ToTypedHeader, Via};

/// The branch in the Via of a request of ours, also as a response repeats it.
pub fn of(via: &Via) -> Option<&str> {
    let first = via.value().split(',').next()?;
    let mut parameters = first.split(';').filter_map(|text| text.split_once('='));
    let branch = parameters.find(|(name, _)| name.trim().eq_ignore_ascii_case("branch"));
    branch.map(|(_, branch)| branch.trim())
}

/// The branch of the INVITE that is repeated for the so many-th time.
pub fn repeated(first: &str, times: u32) -> String {
    match times {
        0 => first.to_owned(),
        _ => format!("{first}-{times}"),
    }
}

/// The Via of the INVITE that is repeated for the so many-th time.
pub fn repeated_via(first: &str, times: u32) -> String {
    let parameters = first.split(';').map(|parameter| {
        let branch = parameter.trim().strip_prefix("branch=");
        branch.map_or_else(
            || parameter.to_owned(),
            |branch| format!("branch={}", repeated(branch, times)),
        )
    });
    parameters.collect::<Vec<_>>().join(";")
}

/// Gives a request another branch.
pub fn set(request: &mut Request, branch: String) -> Result<(), rsipstack::sip::Error> {
    let mut via = request.via_header()?.typed()?;
    via.params
        .retain(|parameter| !matches!(parameter, Param::Branch(_)));
    via.params.push(Param::Branch(branch.into()));
    request.headers.unique_push(via.into());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_branch_is_found_in_our_via_as_peers_repeat_it() {
        for via in [
            "SIP/2.0/UDP 192.0.2.1:5060;branch=z9hG4bKx;rport",
            "SIP/2.0/UDP 192.0.2.1:5060;rport=5060;received=192.0.2.1; Branch = z9hG4bKx ",
            "SIP/2.0/UDP 192.0.2.1;branch=z9hG4bKx, SIP/2.0/UDP 192.0.2.9;branch=z9hG4bKy",
        ] {
            assert_eq!(of(&Via::from(via)), Some("z9hG4bKx"), "{via}");
        }
        let other = "SIP/2.0/UDP 192.0.2.1;rport, SIP/2.0/UDP 192.0.2.9;branch=z9hG4bKy";
        assert_eq!(of(&Via::from(other)), None);
    }

    #[test]
    fn the_branch_of_a_repeated_invite_follows_from_the_first() {
        let via = "SIP/2.0/UDP 192.0.2.1:5060;branch=z9hG4bKx;rport";
        assert_eq!(repeated_via(via, 0), via);
        assert_eq!(
            repeated_via(via, 2),
            "SIP/2.0/UDP 192.0.2.1:5060;branch=z9hG4bKx-2;rport"
        );
    }
}
