//! One connection to one place: TLS as `sslmode` wants it, then the log-in.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_postgres::config as driver;
use tokio_postgres::error::SqlState;
use tokio_postgres::{AsyncMessage, Config, Connection, Error};

use super::socket::{self, Socket};
use super::tls::Handshake;
use super::{Place, passfile};
use crate::config::{ChannelBinding, PostgresAddress, PostgresHost, SslMode, SslNegotiation};
use crate::store::DatabaseRoute;
use crate::store::postgres::session::error::describe;
use crate::store::postgres::session::{Session, ToldByOthers};

/// Why there is no session.
pub(super) enum StartupError {
    /// The server has judged us: a wrong password, no entry in pg_hba.conf.
    NotLetIn(String),
    Other(String),
}

impl StartupError {
    /// The other way did not work either.
    fn after(self, before: &str, way: Encryption) -> Self {
        let way = match way {
            Encryption::Never => "without TLS",
            Encryption::IfOffered | Encryption::Always => "with TLS",
        };
        let joined = |text| format!("{before}; {way}: {text}");
        match self {
            Self::NotLetIn(text) => Self::NotLetIn(joined(text)),
            Self::Other(text) => Self::Other(joined(text)),
        }
    }
}

/// A session with nothing set on it, and our own address on the way to it, where it has one.
pub(super) struct LoggedIn {
    pub session: Session,
    pub own: Option<SocketAddr>,
}

/// What the driver is told about TLS in one try.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Encryption {
    Never,
    IfOffered,
    Always,
}

/// `allow` tries without TLS first and `prefer` with it. Either goes the other way only where the server wants that.
pub(super) async fn log_in(
    address: &PostgresAddress,
    host: &PostgresHost,
    place: &Place,
) -> Result<LoggedIn, StartupError> {
    let (first, second) = match (place, address.tls.mode) {
        (Place::Unix(_), _) | (_, SslMode::Disable) => (Encryption::Never, None),
        (_, SslMode::Allow) => (Encryption::Never, Some(Encryption::Always)),
        (_, SslMode::Prefer) => (Encryption::IfOffered, Some(Encryption::Never)),
        (_, SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull) => {
            (Encryption::Always, None)
        }
    };
    match (try_once(address, host, place, first).await, second) {
        (Err(TryError::OtherWay(before)), Some(second)) => {
            let again = try_once(address, host, place, second).await;
            again.map_err(|error| StartupError::from(error).after(&before, second))
        }
        (tried, _) => tried.map_err(StartupError::from),
    }
}

/// Why one try failed.
enum TryError {
    /// The server has no entry in pg_hba.conf for connections of this kind. It may have one for those of the other.
    OtherWay(String),
    Ended(StartupError),
}

impl From<TryError> for StartupError {
    fn from(error: TryError) -> Self {
        match error {
            TryError::OtherWay(text) => Self::NotLetIn(text),
            TryError::Ended(error) => error,
        }
    }
}

impl TryError {
    fn of(error: &Error, may_be_other_way: bool) -> Self {
        let text = describe(error);
        match error.code() {
            Some(code) if *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
                if may_be_other_way {
                    Self::OtherWay(text)
                } else {
                    Self::Ended(StartupError::NotLetIn(text))
                }
            }
            Some(code) if code.code().starts_with("28") => {
                Self::Ended(StartupError::NotLetIn(text))
            }
            _ => Self::Ended(StartupError::Other(text)),
        }
    }
}

async fn try_once(
    address: &PostgresAddress,
    host: &PostgresHost,
    place: &Place,
    encryption: Encryption,
) -> Result<LoggedIn, TryError> {
    let ours = |text: String| TryError::Ended(StartupError::Other(text));
    let handshake = Handshake::prepare(address, host, encryption != Encryption::Never).await;
    let handshake = handshake.map_err(ours)?;
    let mut config = driver_config(address, host).map_err(ours)?;
    config.ssl_mode(match encryption {
        Encryption::Never => driver::SslMode::Disable,
        Encryption::IfOffered => driver::SslMode::Prefer,
        Encryption::Always => driver::SslMode::Require,
    });
    let opened = socket::open(address, place).await;
    let (socket, own) = opened.map_err(|error| ours(error.to_string()))?;
    let (verifies, agreed) = (handshake.verifies(), handshake.agreed());
    let started = config.connect_raw::<Socket, _>(socket, handshake).await;
    let encrypted = agreed.get().cloned();
    let (client, connection) = started.map_err(|error| {
        // Without TLS after all, the other way has been tried already.
        let may_be_other_way = encryption != Encryption::IfOffered || encrypted.is_some();
        TryError::of(&error, may_be_other_way)
    })?;
    let told = Arc::new(ToldByOthers::default());
    let task = tokio::spawn(drive(connection, Arc::clone(&told)));
    let route = DatabaseRoute {
        host: host.to_string(),
        verified: verifies && encrypted.is_some(),
        encryption: encrypted,
        on_this_machine: match place {
            Place::Tcp(peer) => peer.ip().is_loopback(),
            Place::Unix(_) => true,
        },
        hosts: Vec::new(),
    };
    Ok(LoggedIn {
        session: Session::new(client, task.abort_handle(), told, route),
        own,
    })
}

/// Does the connection's work until it ends.
async fn drive<S, T>(mut connection: Connection<S, T>, told: Arc<ToldByOthers>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
        match message {
            Ok(AsyncMessage::Notification(telling)) => told.record(telling.payload()),
            Ok(AsyncMessage::Notice(notice)) => {
                tracing::debug!(%notice, "PostgreSQL has something to say");
            }
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(error = %describe(&error), "a connection to PostgreSQL broke");
                return;
            }
        }
    }
}

fn driver_config(address: &PostgresAddress, host: &PostgresHost) -> Result<Config, String> {
    let mut config = Config::new();
    if let Some(user) = &address.user {
        config.user(user);
    }
    if let Some(name) = &address.name {
        config.dbname(name);
    }
    if let Some(options) = &address.options {
        config.options(options);
    }
    let password = match &address.password {
        Some(password) => Some(password.clone()),
        None => passfile::look_up(address, host)?,
    };
    if let Some(password) = password {
        config.password(password.as_str());
    }
    config.application_name(&address.application_name);
    config.ssl_negotiation(match address.tls.negotiation {
        SslNegotiation::Postgres => driver::SslNegotiation::Postgres,
        SslNegotiation::Direct => driver::SslNegotiation::Direct,
    });
    config.channel_binding(match address.channel_binding {
        ChannelBinding::Disable => driver::ChannelBinding::Disable,
        ChannelBinding::Prefer => driver::ChannelBinding::Prefer,
        ChannelBinding::Require => driver::ChannelBinding::Require,
    });
    Ok(config)
}
