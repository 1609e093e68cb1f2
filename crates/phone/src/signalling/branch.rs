//! The branches of INVITEs that repeat another one with credentials. They follow from the first, so that a leg can be cancelled by what was
//! recorded of it before anything was sent.

use rsipstack::sip::{HeadersExt, Param, Request, ToTypedHeader};

/// The branch of a request of ours.
pub fn of(request: &Request) -> Option<String> {
    let via = request.via_header().ok()?.value();
    let mut parameters = via.split(';').map(str::trim);
    let branch = parameters.find_map(|parameter| parameter.strip_prefix("branch="));
    branch.map(str::to_owned)
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
    fn the_branch_of_a_repeated_invite_follows_from_the_first() {
        let via = "SIP/2.0/UDP 192.0.2.1:5060;branch=z9hG4bKx;rport";
        assert_eq!(repeated_via(via, 0), via);
        assert_eq!(
            repeated_via(via, 2),
            "SIP/2.0/UDP 192.0.2.1:5060;branch=z9hG4bKx-2;rport"
        );
    }
}
