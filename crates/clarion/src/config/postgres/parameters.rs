//! What the parts of an address mean. Every parameter is honoured or refused by its name.

use std::path::PathBuf;
use std::time::Duration;

use super::address::{
    ChannelBinding, DatabasePassword, HostOrder, Keepalive, PostgresAddress, PostgresTls,
    RootCertificates, SessionTarget, SslMode, SslNegotiation, UserFile,
};
use super::given::Given;
use super::hosts;
use super::url::AddressParts;
use crate::config::PemFiles;

/// Until a session can be used. With several hosts, the next one is asked earlier.
const CONNECT: Duration = Duration::from_secs(5);
const CONNECT_TO_ONE_OF_MANY: Duration = Duration::from_secs(2);
const KEEPALIVE: Keepalive = Keepalive {
    idle: Duration::from_secs(5),
    interval: Duration::from_secs(2),
    count: 3,
};
const UNACKNOWLEDGED: Duration = Duration::from_secs(10);

/// Where libpq looks for files that nobody has named.
pub(super) struct UserFiles {
    pub home: Option<PathBuf>,
    /// The variable PGPASSFILE.
    pub passfile: Option<PathBuf>,
}

impl UserFiles {
    fn of_this_process() -> Self {
        let path = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        Self {
            home: path("HOME").map(PathBuf::from),
            passfile: path("PGPASSFILE").map(PathBuf::from),
        }
    }

    fn usual(&self, below_home: &str) -> UserFile {
        match &self.home {
            Some(home) => UserFile::Usual(home.join(below_home)),
            None => UserFile::None,
        }
    }
}

impl PostgresAddress {
    pub fn parse(text: &str) -> Result<Self, String> {
        Self::parse_for(text, &UserFiles::of_this_process())
    }

    pub(super) fn parse_for(text: &str, files: &UserFiles) -> Result<Self, String> {
        let example = "is not an address such as postgres://user:password@host/name";
        let parts = AddressParts::read(text).map_err(|rule| format!("{example}: {rule}"))?;
        read(text, parts, files)
    }
}

fn read(written: &str, parts: AddressParts, files: &UserFiles) -> Result<PostgresAddress, String> {
    let mut given = Given::new(parts.parameters);
    let hosts = hosts::read(parts.hosts, &mut given)?;
    let several = hosts.len() > 1;
    let address = PostgresAddress {
        written: written.to_owned(),
        user: given.or_part("user", parts.user)?,
        password: given
            .or_part("password", parts.password)?
            .map(DatabasePassword::new),
        passfile: given
            .file("passfile")
            .or_else(|| files.passfile.clone())
            .map_or_else(|| files.usual(".pgpass"), UserFile::Named),
        name: given.or_part("dbname", parts.name)?,
        application_name: given
            .take("application_name")
            .unwrap_or_else(|| "clarion".to_owned()),
        options: given.take("options"),
        tls: tls(&mut given, files)?,
        channel_binding: given
            .one_of("channel_binding", CHANNEL_BINDINGS)?
            .unwrap_or(ChannelBinding::Prefer),
        target: given
            .one_of("target_session_attrs", TARGETS)?
            // The store must be written to: of several servers it is the one that can be.
            .unwrap_or(if several {
                SessionTarget::ReadWrite
            } else {
                SessionTarget::Any
            }),
        order: given
            .one_of("load_balance_hosts", ORDERS)?
            .unwrap_or(HostOrder::AsWritten),
        connect_timeout: given.number("connect_timeout", 1, 600)?.map_or(
            if several {
                CONNECT_TO_ONE_OF_MANY
            } else {
                CONNECT
            },
            |seconds| Duration::from_secs(seconds.into()),
        ),
        keepalive: keepalive(&mut given)?,
        unacknowledged: given
            .number("tcp_user_timeout", 1, 3_600_000)?
            .map_or(UNACKNOWLEDGED, |milliseconds| {
                Duration::from_millis(milliseconds.into())
            }),
        hosts,
    };
    given.refuse_the_rest()?;
    Ok(address)
}

const SSL_MODES: &[(&str, SslMode)] = &[
    ("disable", SslMode::Disable),
    ("allow", SslMode::Allow),
    ("prefer", SslMode::Prefer),
    ("require", SslMode::Require),
    ("verify-ca", SslMode::VerifyCa),
    ("verify-full", SslMode::VerifyFull),
];
const NEGOTIATIONS: &[(&str, SslNegotiation)] = &[
    ("postgres", SslNegotiation::Postgres),
    ("direct", SslNegotiation::Direct),
];
const CHANNEL_BINDINGS: &[(&str, ChannelBinding)] = &[
    ("disable", ChannelBinding::Disable),
    ("prefer", ChannelBinding::Prefer),
    ("require", ChannelBinding::Require),
];
const TARGETS: &[(&str, SessionTarget)] = &[
    ("any", SessionTarget::Any),
    ("read-write", SessionTarget::ReadWrite),
    ("read-only", SessionTarget::ReadOnly),
    ("primary", SessionTarget::Primary),
    ("standby", SessionTarget::Standby),
    ("prefer-standby", SessionTarget::PreferStandby),
];
const ORDERS: &[(&str, HostOrder)] = &[
    ("disable", HostOrder::AsWritten),
    ("random", HostOrder::Random),
];
const SWITCH: &[(&str, bool)] = &[("0", false), ("1", true)];

fn tls(given: &mut Given, files: &UserFiles) -> Result<PostgresTls, String> {
    let mode = given.one_of("sslmode", SSL_MODES)?;
    let roots = match given.file("sslrootcert") {
        Some(path) if path.as_os_str() == "system" => RootCertificates::System,
        Some(path) => RootCertificates::File(UserFile::Named(path)),
        None => RootCertificates::File(files.usual(".postgresql/root.crt")),
    };
    let mode = match (mode, &roots) {
        (None | Some(SslMode::VerifyFull), RootCertificates::System) => SslMode::VerifyFull,
        (None, RootCertificates::File(_)) => SslMode::Prefer,
        (Some(_), RootCertificates::System) => {
            return Err(
                "the parameter `sslrootcert`: `system` needs sslmode=verify-full".to_owned(),
            );
        }
        (Some(mode), RootCertificates::File(_)) => mode,
    };
    let negotiation = given.one_of("sslnegotiation", NEGOTIATIONS)?;
    let negotiation = negotiation.unwrap_or(SslNegotiation::Postgres);
    if negotiation == SslNegotiation::Direct && !mode.insists() {
        return Err(
            "the parameter `sslnegotiation`: `direct` needs sslmode=require, verify-ca or verify-full"
                .to_owned(),
        );
    }
    let usual = |name: &str| {
        let home = files.home.as_ref()?;
        Some(home.join(".postgresql").join(name))
    };
    let usual_certificate = usual("postgresql.crt").zip(usual("postgresql.key"));
    Ok(PostgresTls {
        mode,
        negotiation,
        roots,
        certificate: certificate(given)?,
        usual_certificate: usual_certificate.map(|(certificate, private_key)| PemFiles {
            certificate,
            private_key,
        }),
        sends_name: given.one_of("sslsni", SWITCH)?.unwrap_or(true),
    })
}

fn certificate(given: &mut Given) -> Result<Option<PemFiles>, String> {
    match (given.file("sslcert"), given.file("sslkey")) {
        (Some(certificate), Some(private_key)) => Ok(Some(PemFiles {
            certificate,
            private_key,
        })),
        (None, None) => Ok(None),
        _ => Err("the parameter `sslcert`: name it together with `sslkey`".to_owned()),
    }
}

fn keepalive(given: &mut Given) -> Result<Option<Keepalive>, String> {
    let on = given.one_of("keepalives", SWITCH)?.unwrap_or(true);
    let seconds = |number: Option<u32>, usual| {
        number.map_or(usual, |seconds| Duration::from_secs(seconds.into()))
    };
    let keepalive = Keepalive {
        idle: seconds(given.number("keepalives_idle", 1, 32_767)?, KEEPALIVE.idle),
        interval: seconds(
            given.number("keepalives_interval", 1, 32_767)?,
            KEEPALIVE.interval,
        ),
        count: given
            .number("keepalives_count", 1, 127)?
            .unwrap_or(KEEPALIVE.count),
    };
    Ok(on.then_some(keepalive))
}
