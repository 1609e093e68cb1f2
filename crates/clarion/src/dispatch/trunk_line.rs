//! What dispatch needs of a trunk. `sip_line` is the real one; a simulation brings its own.

use std::fmt;
use std::net::SocketAddr;

use async_trait::async_trait;
use phone::call::{CallEvent, CallRequest, PlacedCall};
use phone::signalling::{DialogSnapshot, SignallingError};
use phone::trunk::Health;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

#[async_trait]
pub trait TrunkLine: fmt::Debug + Send + Sync {
    /// Makes the call and comes back when it is over. Each INVITE asks for leave first. Cancelling `hang_up` ends the call early, whatever
    /// its state; so does dropping the future.
    async fn call(
        &self,
        request: &CallRequest,
        events: &mpsc::UnboundedSender<CallEvent>,
        hang_up: &CancellationToken,
    ) -> PlacedCall;
    /// Ends a leg of an earlier process. False if the peer did not answer.
    async fn end_orphan(&self, dialog: &DialogSnapshot) -> Result<bool, SignallingError>;
    fn health(&self) -> Health;
    /// It has answered when it was last asked whether it is there.
    fn answers_options(&self) -> bool {
        false
    }
    /// The addresses that it was last known to have.
    fn addresses(&self) -> Vec<SocketAddr> {
        Vec::new()
    }
    /// Of a trunk that wants a registration: whether this node has to register. Nobody has to until it is said.
    fn registration_duty(&self) -> Option<&watch::Sender<bool>> {
        None
    }
    /// Takes a registration back, and asks the peer no more.
    fn stop(&self);
}
