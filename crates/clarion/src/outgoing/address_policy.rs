//! Decides which addresses a request may go to. A URL of a customer must not reach into our network: it may reach only public addresses,
//! and those that the operator names. The policy judges the resolved address, never the text of the URL.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// All addresses that are not public unicast (IANA's special-purpose registry), and a metadata service at an address that looks public.
const NOT_PUBLIC_V4: &[(Ipv4Addr, u8)] = &[
    (Ipv4Addr::UNSPECIFIED, 8),            // this network
    (Ipv4Addr::new(10, 0, 0, 0), 8),       // private
    (Ipv4Addr::new(100, 64, 0, 0), 10), // carrier-grade NAT, and a cloud's metadata at 100.100.100.200
    (Ipv4Addr::new(127, 0, 0, 0), 8),   // loopback
    (Ipv4Addr::new(168, 63, 129, 16), 32), // a cloud's metadata
    (Ipv4Addr::new(169, 254, 0, 0), 16), // link-local, and metadata at 169.254.169.254
    (Ipv4Addr::new(172, 16, 0, 0), 12), // private
    (Ipv4Addr::new(192, 0, 0, 0), 24),  // protocol assignments
    (Ipv4Addr::new(192, 0, 2, 0), 24),  // documentation
    (Ipv4Addr::new(192, 88, 99, 0), 24), // 6to4 relays
    (Ipv4Addr::new(192, 168, 0, 0), 16), // private
    (Ipv4Addr::new(198, 18, 0, 0), 15), // benchmarking
    (Ipv4Addr::new(198, 51, 100, 0), 24), // documentation
    (Ipv4Addr::new(203, 0, 113, 0), 24), // documentation
    (Ipv4Addr::new(224, 0, 0, 0), 4),   // multicast
    (Ipv4Addr::new(240, 0, 0, 0), 4),   // reserved, broadcast
];

/// The only part of IPv6 that is allocated to the public. Outside it are loopback, IPv4-mapped and -compatible addresses, NAT64
/// (64:ff9b::/96 and 64:ff9b:1::/48), unique-local, link-local, site-local and multicast addresses.
const PUBLIC_V6: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
const NOT_PUBLIC_V6: &[(Ipv6Addr, u8)] = &[
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23), // protocol assignments: Teredo, benchmarking, ORCHID
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32), // documentation
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16), // 6to4
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20), // documentation
];

/// The addresses that requests may go to.
#[derive(Debug, Clone)]
pub enum AddressPolicy {
    /// The operator has chosen the URL.
    Any,
    /// A customer has chosen the URL: public addresses, and these networks.
    PublicAnd(Vec<IpNet>),
}

impl AddressPolicy {
    pub fn admits(&self, address: IpAddr) -> bool {
        match self {
            Self::Any => true,
            Self::PublicAnd(allowed) => {
                is_public(address) || allowed.iter().any(|network| network.contains(&address))
            }
        }
    }
}

pub fn is_public(address: IpAddr) -> bool {
    let in_v4 = |(network, bits): &(Ipv4Addr, u8), address: &Ipv4Addr| {
        Ipv4Net::new_assert(*network, *bits).contains(address)
    };
    let in_v6 = |(network, bits): &(Ipv6Addr, u8), address: &Ipv6Addr| {
        Ipv6Net::new_assert(*network, *bits).contains(address)
    };
    match address {
        IpAddr::V4(address) => !NOT_PUBLIC_V4.iter().any(|network| in_v4(network, &address)),
        IpAddr::V6(address) => {
            in_v6(&PUBLIC_V6, &address)
                && !NOT_PUBLIC_V6.iter().any(|network| in_v6(network, &address))
        }
    }
}

#[cfg(test)]
mod tests {
    use url::{Host, Url};

    use super::*;

    /// Returns the address of a URL's host, in whatever form it is written.
    fn address(host: &str) -> IpAddr {
        match Url::parse(&format!("http://{host}/")).unwrap().host() {
            Some(Host::Ipv4(address)) => address.into(),
            Some(Host::Ipv6(address)) => address.into(),
            other => panic!("{host}: {other:?}"),
        }
    }

    #[test]
    fn what_is_not_public_is_not_admitted_in_any_spelling() {
        for host in [
            "127.0.0.1",
            "127.255.255.254",
            "127.1",
            "2130706433",
            "0x7f000001",
            "0x7f.0.0.1",
            "017700000001",
            "0177.0.0.1",
            "0",
            "0.0.0.0",
            "１２７.0.0.1",
            "127.0.0.1.",
            "10.0.0.1",
            "10.255.255.255",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.0.1",
            "0xc0a80001",
            "169.254.169.254",
            "2852039166",
            "0xa9fea9fe",
            "0251.0376.0251.0376",
            "169.254.0.1",
            "100.64.0.1",
            "100.100.100.200",
            "100.127.255.255",
            "168.63.129.16",
            "192.0.0.192",
            "192.0.2.1",
            "198.51.100.1",
            "203.0.113.1",
            "198.18.0.1",
            "198.19.255.255",
            "192.88.99.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "[::]",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[::ffff:8.8.8.8]",
            "[::ffff:a9fe:a9fe]",
            "[::127.0.0.1]",
            "[::8.8.8.8]",
            "[64:ff9b::7f00:1]",
            "[64:ff9b::8.8.8.8]",
            "[64:ff9b:1::a00:1]",
            "[100::1]",
            "[2001::1]",
            "[2001:0:4136:e378:8000:63bf:3fff:fdd2]",
            "[2001:2::1]",
            "[2001:10::1]",
            "[2001:db8::1]",
            "[2002:7f00:1::]",
            "[2002:a00:1::1]",
            "[3fff::1]",
            "[5f00::1]",
            "[fc00::1]",
            "[fd00:ec2::254]",
            "[fe80::1]",
            "[febf::1]",
            "[fec0::1]",
            "[ff02::1]",
            "[ff0e::1]",
            "[4000::1]",
        ] {
            assert!(
                !AddressPolicy::PublicAnd(vec![]).admits(address(host)),
                "{host}"
            );
        }
    }

    #[test]
    fn public_addresses_are_admitted() {
        for host in [
            "8.8.8.8",
            "1.1.1.1",
            "134744072",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.255.255",
            "172.32.0.1",
            "192.0.1.1",
            "198.17.255.255",
            "198.20.0.1",
            "223.255.255.255",
            "[2001:4860:4860::8888]",
            "[2606:4700::1111]",
            "[2a00:1450::1]",
            "[2400:3200::1]",
        ] {
            assert!(
                AddressPolicy::PublicAnd(vec![]).admits(address(host)),
                "{host}"
            );
        }
    }

    #[test]
    fn the_operator_may_name_networks_and_only_those_are_opened() {
        let policy = AddressPolicy::PublicAnd(vec![
            "10.1.0.0/16".parse().unwrap(),
            "fd00::/8".parse().unwrap(),
        ]);
        for host in ["10.1.2.3", "[fd12::1]", "8.8.8.8"] {
            assert!(policy.admits(address(host)), "{host}");
        }
        for host in [
            "10.2.0.1",
            "127.0.0.1",
            "[::ffff:10.1.2.3]",
            "[64:ff9b::a01:203]",
            "[fc00::1]",
        ] {
            assert!(!policy.admits(address(host)), "{host}");
        }
    }
}
