//! The address of a PostgreSQL, read once into values that cannot be wrong.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::config::PemFiles;

/// One server that may be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PostgresHost {
    Tcp {
        /// For certificates and messages; where no address is given, it is looked up. `None`: only the address was named.
        name: Option<String>,
        address: Option<IpAddr>,
        port: u16,
    },
    /// The folder of a Unix socket.
    Unix { folder: PathBuf, port: u16 },
}

impl fmt::Display for PostgresHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp {
                name,
                address,
                port,
            } => match (name, address) {
                (Some(name), _) if name.contains(':') => write!(f, "[{name}]:{port}"),
                (Some(name), _) => write!(f, "{name}:{port}"),
                (None, Some(IpAddr::V6(address))) => write!(f, "[{address}]:{port}"),
                (None, Some(address)) => write!(f, "{address}:{port}"),
                (None, None) => write!(f, ":{port}"),
            },
            Self::Unix { folder, port } => write!(f, "{}:{port}", folder.display()),
        }
    }
}

/// Does not print itself.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabasePassword(String);

impl DatabasePassword {
    pub fn new(text: String) -> Self {
        Self(text)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for DatabasePassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DatabasePassword(…)")
    }
}

/// The parameter `sslmode`, as libpq has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SslMode {
    Disable,
    Allow,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

impl SslMode {
    /// Never without TLS.
    pub fn insists(self) -> bool {
        matches!(self, Self::Require | Self::VerifyCa | Self::VerifyFull)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SslNegotiation {
    Postgres,
    Direct,
}

/// A file that libpq looks for where nobody has named one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserFile {
    /// It must be there.
    Named(PathBuf),
    /// It is used if it is there.
    Usual(PathBuf),
    /// None was named, and there is no home folder to look in.
    None,
}

/// What certificates of servers are verified against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RootCertificates {
    File(UserFile),
    System,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresTls {
    pub mode: SslMode,
    pub negotiation: SslNegotiation,
    pub roots: RootCertificates,
    /// Our own certificate, for servers that ask for one.
    pub certificate: Option<PemFiles>,
    /// Where it is looked for if none is named.
    pub usual_certificate: Option<PemFiles>,
    /// Whether the server is told in clear text which name is meant.
    pub sends_name: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChannelBinding {
    Disable,
    Prefer,
    Require,
}

/// The parameter `target_session_attrs`: which of the servers is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionTarget {
    Any,
    ReadWrite,
    ReadOnly,
    Primary,
    Standby,
    PreferStandby,
}

/// The parameter `load_balance_hosts`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostOrder {
    AsWritten,
    Random,
}

/// How a peer that has gone away without a word is found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keepalive {
    pub idle: Duration,
    pub interval: Duration,
    pub count: u32,
}

#[derive(Clone, PartialEq, Eq)]
pub struct PostgresAddress {
    pub(super) written: String,
    /// At least one.
    pub hosts: Vec<PostgresHost>,
    /// `None`: the user that runs this program, as the driver finds it out.
    pub user: Option<String>,
    pub password: Option<DatabasePassword>,
    pub passfile: UserFile,
    pub name: Option<String>,
    pub application_name: String,
    pub options: Option<String>,
    pub tls: PostgresTls,
    pub channel_binding: ChannelBinding,
    pub target: SessionTarget,
    pub order: HostOrder,
    /// For one address of one host, until its session can be used.
    pub connect_timeout: Duration,
    pub keepalive: Option<Keepalive>,
    /// How long what was sent may remain unacknowledged.
    pub unacknowledged: Duration,
}

impl PostgresAddress {
    /// As it was written, with its password.
    pub fn url(&self) -> &str {
        &self.written
    }
}

/// For messages: who, where and what, without the password.
impl fmt::Display for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("postgres://")?;
        if let Some(user) = &self.user {
            let password = self.password.as_ref().map_or("", |_| ":…");
            write!(f, "{user}{password}@")?;
        }
        for (place, host) in self.hosts.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            write!(f, "{comma}{host}")?;
        }
        write!(f, "/{}", self.name.as_deref().unwrap_or_default())
    }
}

impl fmt::Debug for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgresAddress({self})")
    }
}
