//! Checks the ports for sound: whether there are enough, whether they are free, and whether peers are told an address that they can reach.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use super::finding::{CheckSubject, Finding};
use super::sockets;
use crate::config::Config;
use crate::domain::wording::wording;

const SUBJECT: CheckSubject = CheckSubject::SoundPorts;

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
    let (first, last) = (ports.start(), ports.end());
    let found = wording!(
        "{first}-{last} hold {pairs} calls; the trunks have {wanted} channels",
        "{first}-{last} 可承载 {pairs} 路呼叫；中继并发合计 {wanted} 路"
    );
    if pairs < wanted {
        let remedy = wording!(
            "widen media.ports, and the firewall with it",
            "扩大 media.ports，并同步放开防火墙"
        );
        Finding::problem(SUBJECT, found, remedy)
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
    let (count, port, whose) = (others.len(), first.port, first.describe());
    Some(Finding::warning(
        SUBJECT,
        wording!(
            "{count} of them are in use by others, the first ({port}) by {whose}",
            "其中 {count} 个已被占用，第一个（{port}）被{whose}占用"; whose
        ),
        wording!(
            "end what holds them, or choose other media.ports",
            "结束占用端口的进程，或更换 media.ports"
        ),
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
            wording!(
                "the kernel gives ports {first}-{last} to everybody who asks for any",
                "与内核的临时端口范围 {first}-{last} 重叠，可能被其他程序随机占用"
            ),
            wording!(
                "choose media.ports outside of that, or set net.ipv4.ip_local_port_range",
                "media.ports 应避开该范围，或调整 net.ipv4.ip_local_port_range"
            ),
        )
    })
}

/// Checks the address in our offers. `trunks` compares it with each trunk's own address.
fn address(config: &Config) -> Option<Finding> {
    let told = told(config);
    let unusable = told.is_unspecified() && !config.trunks.is_empty();
    unusable.then(|| {
        Finding::problem(
            CheckSubject::SoundAddress,
            wording!(
                "peers are told to send to {told}, where nobody is",
                "通告给对端的地址是 {told}，对端无法向它发送语音"
            ),
            wording!(
                "name the address that they can reach in media.advertised",
                "在 media.advertised 中填写对端可达的地址"
            ),
        )
    })
}

/// Returns the address to which peers are told to send their sound.
pub fn told(config: &Config) -> IpAddr {
    config.media.advertised.unwrap_or(config.media.bind)
}
