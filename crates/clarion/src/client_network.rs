//! One client, as far as its address tells: all that limits strangers counts by this.

use std::net::{IpAddr, Ipv6Addr};

/// Whoever has one address of IPv6 has all of its network.
pub fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = address.to_bits() & !u128::from(u64::MAX);
            Ipv6Addr::from_bits(network).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_of_ipv6_is_one_client_and_an_address_of_ipv4_another() {
        for (address, wanted) in [
            ("192.0.2.1", "192.0.2.1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("2001:db8:0:1:2:3:4:5", "2001:db8:0:1::"),
            ("2001:db8:0:2::5", "2001:db8:0:2::"),
        ] {
            let network = network_of(address.parse().unwrap());
            assert_eq!(network.to_string(), wanted, "{address}");
        }
    }
}
