//! Connections to trunks: opened when they are needed, one at a time, and shared by all calls.

use std::net::SocketAddr;

use rsipstack::transaction::endpoint::EndpointInnerRef;
use rsipstack::transport::SipConnection;
use std::sync::Arc;

use super::SignallingError;
use super::trace::MessageTap;
use super::transport::{self, Transport};

pub(super) struct TrunkConnector {
    pub endpoint: EndpointInnerRef,
    pub transport: Transport,
    pub tap: Arc<MessageTap>,
    /// One connection at a time is opened, so that a burst of calls shares it.
    pub connecting: tokio::sync::Mutex<()>,
}

impl TrunkConnector {
    /// The connection to a peer, opened if there is none; `None` where the transport has no connections. The library would go on trying in
    /// silence and report a closed port or a bad certificate like a peer that says nothing.
    pub async fn connection(
        &self,
        destination: SocketAddr,
    ) -> Result<Option<SipConnection>, SignallingError> {
        if self.transport == Transport::Udp {
            return Ok(None);
        }
        let address = transport::sip_address(self.transport, destination);
        let unreachable = |reason: String| SignallingError::Unreachable(destination, reason);
        let _alone = self.connecting.lock().await;
        let lookup = self.endpoint.transport_layer.lookup(&address, None);
        match tokio::time::timeout(transport::CONNECT_TIME, lookup).await {
            Ok(Ok((connection, _))) => {
                self.tap.connected(&connection, destination);
                Ok(Some(connection))
            }
            Ok(Err(error)) => Err(unreachable(error.to_string())),
            Err(_) => Err(unreachable(format!(
                "no connection within {} s",
                transport::CONNECT_TIME.as_secs()
            ))),
        }
    }
}
