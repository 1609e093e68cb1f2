//! `[media]`: where sound is sent from and received at, in the types of `phone`.

use std::net::{IpAddr, Ipv4Addr};

use phone::call::MediaConfig;
use phone::signalling::own_address;

use super::section::{Mistake, Section};
use super::values::{parse_address, parse_ports};

/// The DSCP mark has six bits (RFC 2474).
const LARGEST_MARK: u8 = 63;

pub(super) fn read(section: &mut Section) -> Result<MediaConfig, Mistake> {
    let bind = section.parsed_or_none("bind", parse_address)?;
    let bind = bind.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    let advertised = section.parsed_or_none("advertised", parse_address)?;
    let mark = section.number("dscp", 0..=LARGEST_MARK)?;
    Ok(MediaConfig {
        // No peer can send to "every address of this machine".
        advertised: advertised.or_else(|| bind.is_unspecified().then(|| own_address(bind))),
        dscp: Some(mark).filter(|mark| *mark > 0),
        ..MediaConfig::new(bind, section.parsed_by("ports", parse_ports)?)
    })
}
