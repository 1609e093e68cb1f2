//! The hosts of an address. Names, addresses and ports are lists of their own in libpq's parameters, and belong together by their places.

use std::net::IpAddr;
use std::path::PathBuf;

use super::address::PostgresHost;
use super::given::Given;
use super::url::parse_port;

const PORT: u16 = 5432;

pub(super) fn read(
    written: Vec<(String, Option<u16>)>,
    given: &mut Given,
) -> Result<Vec<PostgresHost>, String> {
    let list = |text: String| text.split(',').map(str::to_owned).collect::<Vec<_>>();
    let names = given.take("host").map(list);
    let ports = given.take("port").map(list);
    let addresses = given.take("hostaddr").map(list).unwrap_or_default();
    let twice = |name: &str| format!("the parameter `{name}` is given twice");
    let named: Vec<(String, Option<u16>)> = match names {
        Some(_) if !written.is_empty() => return Err(twice("host")),
        Some(names) => names.into_iter().map(|name| (name, None)).collect(),
        None if written.is_empty() => vec![(String::new(), None); addresses.len()],
        None => written,
    };
    if named.is_empty() {
        return Err("name a host: postgres://user:password@host/name".to_owned());
    }
    if !addresses.is_empty() && addresses.len() != named.len() {
        return Err("the parameter `hostaddr` must have as many addresses as hosts".to_owned());
    }
    let ports = match ports {
        Some(_) if named.iter().any(|(_, port)| port.is_some()) => return Err(twice("port")),
        Some(ports) if ports.len() != 1 && ports.len() != named.len() => {
            return Err("the parameter `port` must have one port, or as many as hosts".to_owned());
        }
        Some(ports) => ports,
        None => Vec::new(),
    };
    let port_at = |place: usize| match ports.get(place).or(ports.first()).map(String::as_str) {
        None | Some("") => Ok(PORT),
        Some(port) => parse_port(port),
    };
    let mut hosts = Vec::with_capacity(named.len());
    for (place, (name, port)) in named.into_iter().enumerate() {
        let port = port.map_or_else(|| port_at(place), Ok)?;
        let address = addresses.get(place).map_or("", String::as_str);
        hosts.push(host(name, address, port)?);
    }
    Ok(hosts)
}

fn host(name: String, address: &str, port: u16) -> Result<PostgresHost, String> {
    if name.starts_with('/') && address.is_empty() {
        let folder = PathBuf::from(name);
        return Ok(PostgresHost::Unix { folder, port });
    }
    let address: Option<IpAddr> = match address {
        "" => None,
        text => Some(text.parse().map_err(|_| {
            "the parameter `hostaddr` must hold addresses such as 192.0.2.7".to_owned()
        })?),
    };
    if name.is_empty() && address.is_none() {
        return Err("name a host: one of them is empty".to_owned());
    }
    Ok(PostgresHost::Tcp {
        name: Some(name).filter(|name| !name.is_empty()),
        address,
        port,
    })
}
