//! Pings on connections (RFC 5626 section 4.4.1): firewalls and address translators on the way forget a connection on which nothing is said.

use std::net::SocketAddr;

use rsipstack::transport::SipConnection;
use rsipstack::transport::stream::StreamConnection;

use super::{Signalling, SignallingError};

const PING: &[u8] = b"\r\n\r\n";

impl Signalling {
    /// Pings a peer on the connection to it, which is opened if there is none. The peer answers with an empty line, or not at all.
    pub async fn keep_alive(&self, destination: SocketAddr) -> Result<(), SignallingError> {
        match self.connector.connection(destination).await? {
            Some(SipConnection::Tcp(connection)) => connection.send_raw(PING).await?,
            Some(SipConnection::Tls(connection)) => connection.send_raw(PING).await?,
            _ => {}
        }
        Ok(())
    }
}
