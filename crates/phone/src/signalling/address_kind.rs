//! Addresses that lead to this machine or to its own network segment, and not to somebody on the way to a telephone. A Contact or a route
//! that names one is a mistake, or an attempt to make us talk to our own services.

use std::net::IpAddr;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AddressKind {
    Ordinary,
    /// This machine.
    Loopback,
    /// The network segment: also where clouds keep their metadata services.
    LinkLocal,
    /// Multicast, broadcast, or no address at all.
    NoHost,
}

impl AddressKind {
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            address if address.is_loopback() => Self::Loopback,
            address if address.is_multicast() || address.is_unspecified() => Self::NoHost,
            IpAddr::V4(address) if address.is_link_local() => Self::LinkLocal,
            // All of 240.0.0.0/4 is reserved, and 0.0.0.0/8 is this network (RFC 6890).
            IpAddr::V4(address) if matches!(address.octets()[0], 0 | 240..=255) => Self::NoHost,
            IpAddr::V6(address) if address.is_unicast_link_local() => Self::LinkLocal,
            _ => Self::Ordinary,
        }
    }
}

/// Whether a request about a call with this trunk may go there.
pub(super) fn may_lead_to(address: IpAddr, trunk: IpAddr) -> bool {
    let kind = AddressKind::of(address);
    kind == AddressKind::Ordinary || (kind != AddressKind::NoHost && kind == AddressKind::of(trunk))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_leads_to_this_machine_only_if_its_trunk_is_there() {
        let trunks = ["203.0.113.5", "127.0.0.1", "169.254.3.4", "fe80::1"];
        for (address, allowed) in [
            ("198.51.100.1", [true, true, true, true]),
            ("10.1.2.3", [true, true, true, true]),
            ("2001:db8::1", [true, true, true, true]),
            ("127.0.0.1", [false, true, false, false]),
            ("127.9.9.9", [false, true, false, false]),
            ("::1", [false, true, false, false]),
            ("::ffff:127.0.0.1", [false, true, false, false]),
            ("169.254.169.254", [false, false, true, true]),
            ("fe80::7", [false, false, true, true]),
            ("0.0.0.0", [false; 4]),
            ("::", [false; 4]),
            ("224.0.0.1", [false; 4]),
            ("ff02::1", [false; 4]),
            ("255.255.255.255", [false; 4]),
            ("0.1.2.3", [false; 4]),
        ] {
            let found =
                trunks.map(|trunk| may_lead_to(address.parse().unwrap(), trunk.parse().unwrap()));
            assert_eq!(found, allowed, "{address}");
        }
    }
}
