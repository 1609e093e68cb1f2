//! Finds who holds which port on this machine, from the kernel's own lists. It binds no port to find out, because a server that starts at
//! that moment could not bind the same port.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use crate::domain::wording::{Wording, wording};

/// A port that is in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub port: u16,
    /// `None` if this user may not look at the process.
    pub process: Option<Process>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub id: u32,
    pub name: String,
    /// The process is `clarion … serve`.
    pub serves: bool,
}

impl Holder {
    pub fn is(&self, id: Option<u32>) -> bool {
        id.is_some() && self.process.as_ref().map(|process| process.id) == id
    }

    pub fn describe(&self) -> Wording {
        let Some(Process { id, name, .. }) = &self.process else {
            return wording!(
                "a process that this user may not look at",
                "当前用户无权查看的进程"
            );
        };
        wording!("{name} (process {id})", " {name}（进程 {id}）")
    }
}

/// Returns the holders of UDP sockets with one of these ports.
pub fn udp(ports: impl Fn(u16) -> bool) -> Vec<Holder> {
    holders(&["/proc/net/udp", "/proc/net/udp6"], None, ports)
}

/// Returns the holders of TCP sockets that listen on one of these ports.
pub fn listening(ports: impl Fn(u16) -> bool) -> Vec<Holder> {
    holders(&["/proc/net/tcp", "/proc/net/tcp6"], Some("0A"), ports)
}

fn holders(lists: &[&str], state: Option<&str>, ports: impl Fn(u16) -> bool) -> Vec<Holder> {
    let mut found: Vec<(u16, u64)> = lists
        .iter()
        .filter_map(|list| fs::read_to_string(list).ok())
        .flat_map(|text| sockets(&text, state))
        .filter(|(port, _)| ports(*port))
        .collect();
    if found.is_empty() {
        return Vec::new();
    }
    found.sort_unstable();
    found.dedup_by_key(|(port, _)| *port);
    let owners = owners();
    let holder = |(port, inode)| Holder {
        port,
        process: owners.get(&inode).and_then(|id| process(*id)),
    };
    found.into_iter().map(holder).collect()
}

/// Returns port and inode of each socket in one of the kernel's lists.
fn sockets(list: &str, state: Option<&str>) -> Vec<(u16, u64)> {
    let socket = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        if state.is_some_and(|state| words.get(3) != Some(&state)) {
            return None;
        }
        let (_, port) = words.get(1)?.rsplit_once(':')?;
        let port = u16::from_str_radix(port, 16).ok()?;
        Some((port, words.get(9)?.parse().ok()?))
    };
    list.lines().skip(1).filter_map(socket).collect()
}

/// Returns the process of each socket, as far as this user may look at it.
fn owners() -> HashMap<u64, u32> {
    let mut owners = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(id) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        for file in fs::read_dir(entry.path().join("fd"))
            .into_iter()
            .flatten()
            .flatten()
        {
            if let Some(inode) = fs::read_link(file.path())
                .ok()
                .and_then(|path| socket_inode(&path))
            {
                owners.insert(inode, id);
            }
        }
    }
    owners
}

fn socket_inode(link: &Path) -> Option<u64> {
    let inner = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
    inner.parse().ok()
}

fn process(id: u32) -> Option<Process> {
    let name = fs::read_to_string(format!("/proc/{id}/comm")).ok()?;
    let arguments = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
    let name = name.trim().to_owned();
    let serves = arguments
        .split(|byte| *byte == 0)
        .any(|word| word == b"serve");
    Some(Process {
        id,
        serves: serves && name == "clarion",
        name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_list_is_read() {
        let list = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:4E20 00000000:0000 07 00000000:00000000 00:00000000 00000000  0 0 4711 2 0 0\n\
            1: 00000000000000000000000000000000:22B3 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0 0 4712 2 0 0\n";
        assert_eq!(sockets(list, None), [(20_000, 4711), (8883, 4712)]);
        assert_eq!(sockets(list, Some("0A")), [(8883, 4712)]);
    }

    #[test]
    fn a_port_of_this_process_is_found_with_its_holder() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let wanted = socket.local_addr().unwrap().port();
        let found = udp(|port| port == wanted);
        assert_eq!(found.len(), 1);
        assert!(found[0].is(Some(std::process::id())), "{found:?}");
    }
}
