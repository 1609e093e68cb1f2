//! The first words with a server: what it is, how it sees us, and what we set on the session.

use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio_postgres::SimpleQueryMessage;

use super::startup::LoggedIn;
use crate::config::{PostgresAddress, SessionTarget};
use crate::domain::wording::{Wording, wording};
use crate::store::postgres::session::{Effect, Session, StatementError};

const GREETING: &str = "SELECT pg_is_in_recovery(), current_setting('transaction_read_only') = 'on', \
     host(inet_client_addr()), inet_client_port(), pg_backend_pid()";
/// "Accepted" is a promise about the disk, whatever the server's default is. A commit that the server cancels by itself may report a success
/// that no standby has. A plan is kept for long, and one that was made while a table was nearly empty would read all of it when it is not:
/// every statement that is used often has its index. Compiling a statement costs more than any of ours takes, and so does planning it anew for
/// other values: left to itself, PostgreSQL does that with a third of our statements every time, and spends as long on it as on all the rest.
const PROMISES: &str = "SET synchronous_commit = on; SET statement_timeout = 0; SET enable_seqscan = off; SET jit = off; SET plan_cache_mode = force_generic_plan";
/// How soon the server notices that we have closed a connection on which it still works or waits.
const CHECK_CLIENT: Duration = Duration::from_secs(1);

/// What a server says of itself and of us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Greeting {
    in_recovery: bool,
    read_only: bool,
    /// The address from which the server sees us.
    seen_from: Option<SocketAddr>,
    /// The process that serves us.
    pub backend: i32,
}

impl Greeting {
    /// In a word, for operators.
    pub fn kind(&self) -> Wording {
        match (self.in_recovery, self.read_only) {
            (true, _) => wording!("a standby", "备库"),
            (false, true) => wording!("read-only", "只读"),
            (false, false) => wording!("can be written to", "可写"),
        }
    }

    /// Why this is not the server that is wanted.
    pub fn suits(&self, wanted: SessionTarget) -> Result<(), String> {
        let (suits, problem) = match wanted {
            SessionTarget::Any | SessionTarget::PreferStandby => (true, ""),
            SessionTarget::ReadWrite => (!self.read_only, "is read-only"),
            SessionTarget::ReadOnly => (self.read_only, "is not read-only"),
            SessionTarget::Primary => (!self.in_recovery, "is a standby"),
            SessionTarget::Standby => (self.in_recovery, "is not a standby"),
        };
        if suits {
            Ok(())
        } else {
            Err(problem.to_owned())
        }
    }
}

impl LoggedIn {
    /// The server sees our own address: nothing stands between.
    pub fn is_direct(&self, greeting: &Greeting) -> bool {
        self.own.is_some() && self.own == greeting.seen_from
    }
}

impl Session {
    pub(super) async fn greet(&self) -> Result<Greeting, StatementError> {
        let answer = self.client.simple_query(GREETING);
        let messages = self
            .answered(self.deadline(), Effect::Nothing, answer)
            .await?;
        let row = messages.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        let row = row.ok_or_else(|| StatementError::NotDone("no greeting came".into()))?;
        let text = |column| row.try_get(column).ok().flatten();
        let address: Option<IpAddr> = text(2).and_then(|address| address.parse().ok());
        let port = text(3).and_then(|port| port.parse().ok());
        let backend = text(4).and_then(|backend| backend.parse().ok());
        Ok(Greeting {
            in_recovery: text(0) == Some("t"),
            read_only: text(1) == Some("t"),
            seen_from: address.zip(port).map(SocketAddr::from),
            backend: backend.ok_or_else(|| StatementError::NotDone("no greeting came".into()))?,
        })
    }

    /// What the session promises, and how soon the server lets go of what a lost peer holds there.
    pub(super) async fn settle(
        &self,
        address: &PostgresAddress,
        statement: Duration,
    ) -> Result<(), StatementError> {
        let promises = self.client.batch_execute(PROMISES);
        self.answered(self.deadline(), Effect::Nothing, promises)
            .await?;
        // Some servers have fewer of these settings, and none of them is worth a session.
        let watch = watch(address, statement);
        let watch = self.client.batch_execute(&watch);
        match self.answered(self.deadline(), Effect::Nothing, watch).await {
            Err(StatementError::Refused { text, .. }) => {
                tracing::debug!(%text, "PostgreSQL does not take all settings of a session");
                Ok(())
            }
            settled => settled,
        }
    }
}

/// One statement that sets what of this the server knows.
fn watch(address: &PostgresAddress, statement: Duration) -> String {
    let mut wanted = vec![
        // A transaction of ours never rests for long; one that does has lost its node, and its locks with it. Whoever takes the calls of that
        // node over may wait for them.
        ("idle_in_transaction_session_timeout", statement.as_millis()),
        ("client_connection_check_interval", CHECK_CLIENT.as_millis()),
        ("tcp_user_timeout", address.unacknowledged.as_millis()),
    ];
    if let Some(keepalive) = address.keepalive {
        wanted.extend([
            ("tcp_keepalives_idle", u128::from(keepalive.idle.as_secs())),
            (
                "tcp_keepalives_interval",
                u128::from(keepalive.interval.as_secs()),
            ),
            ("tcp_keepalives_count", u128::from(keepalive.count)),
        ]);
    }
    let mut values = String::new();
    for (name, value) in wanted {
        let comma = if values.is_empty() { "" } else { ", " };
        let _ = write!(values, "{comma}('{name}', '{value}')");
    }
    format!(
        "SELECT set_config(name, wanted.value, false) FROM (VALUES {values}) AS wanted (name, value) JOIN pg_settings USING (name)"
    )
}
