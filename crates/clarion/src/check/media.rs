//! Checks the ports for sound: whether there are enough, whether they are free, and whether peers are told an address that they can reach.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use super::finding::Finding;
use super::sockets;
use crate::config::Config;

const SUBJECT: &str = "sound ports";

pub fn check(config: &Config, serving: Option<u32>) -> Vec<Finding> {
    let ports = &config.media.ports;
    let mut findings = vec![enough(config, ports)];
    findings.extend(taken(ports, serving));
    findings.extend(handed_out_by_the_kernel(ports));
    findings.extend(address(config));
    findings
}

fn enough(config: &Config, ports: &RangeInclusive<u16>) -> Finding {
    let wanted: u64 = config
        .trunks
        .iter()
        .filter(|trunk| !trunk.shared_port)
        .map(|trunk| u64::from(trunk.channels))
        .sum();
    let pairs = u64::try_from(ports.len() / 2).unwrap_or(u64::MAX);
    let found = format!(
        "{}-{} hold {pairs} calls; the trunks have {wanted} channels",
        ports.start(),
        ports.end()
    );
    if pairs < wanted {
        Finding::problem(
            SUBJECT,
            found,
            "widen media.ports, and the firewall with it",
        )
    } else {
        Finding::ok(SUBJECT, found)
    }
}

/// Finds ports that other processes hold. Ports of our own running server are fine. A call skips a port that is taken.
fn taken(ports: &RangeInclusive<u16>, serving: Option<u32>) -> Option<Finding> {
    let others: Vec<_> = sockets::udp(|port| ports.contains(&port))
        .into_iter()
        .filter(|holder| !holder.is(serving))
        .collect();
    let first = others.first()?;
    Some(Finding::warning(
        SUBJECT,
        format!(
            "{} of them are in use by others, the first ({}) by {}",
            others.len(),
            first.port,
            first.describe()
        ),
        "end what holds them, or choose other media.ports",
    ))
}

/// Finds ports of ours that the kernel may give to sockets that ask for any port.
fn handed_out_by_the_kernel(ports: &RangeInclusive<u16>) -> Option<Finding> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut bounds = text.split_whitespace().map(str::parse::<u16>);
    let (first, last) = (bounds.next()?.ok()?, bounds.next()?.ok()?);
    let overlap = *ports.start() <= last && first <= *ports.end();
    overlap.then(|| {
        Finding::warning(
            SUBJECT,
            format!("the kernel gives ports {first}-{last} to everybody who asks for any"),
            "choose media.ports outside of that, or set net.ipv4.ip_local_port_range",
        )
    })
}

/// Checks the address in our offers. `trunks` compares it with each trunk's own address.
fn address(config: &Config) -> Option<Finding> {
    let told = told(config);
    let unusable = told.is_unspecified() && !config.trunks.is_empty();
    unusable.then(|| {
        Finding::problem(
            "sound address",
            format!("peers are told to send to {told}, where nobody is"),
            "name the address that they can reach in media.advertised",
        )
    })
}

/// Returns the address to which peers are told to send their sound.
pub fn told(config: &Config) -> IpAddr {
    config.media.advertised.unwrap_or(config.media.bind)
}
