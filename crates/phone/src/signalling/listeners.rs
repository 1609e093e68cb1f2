//! The tasks that receive messages and run the library's timers. The supervisor knows them as `sip-listener`: without one of them the
//! endpoint is deaf, so the process cannot go on.
//!
//! The UDP socket is read here and not by the library, which would read it in a task that nobody watches: one packet that makes its
//! parser panic would end that task in silence. Connections are accepted here for the same reason (`accepting`).

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use rsipstack::transaction::endpoint::{EndpointInnerRef, TransportEventInspector};
use rsipstack::transport::SipConnection;
use supervisor::{Supervisor, TaskGuard, contain};
use tokio::sync::mpsc;

use super::response_filter::ResponseFilter;

pub(super) const NAME: &str = "sip-listener";

pub(super) async fn start(
    supervisor: &Supervisor,
    endpoint: &EndpointInnerRef,
    listener: SipConnection,
    filter: &ResponseFilter,
) -> Vec<TaskGuard> {
    let serving = endpoint.clone();
    let mut serving = Box::pin(async move { serving.serve().await });
    // The library begins to read the sockets that it knows when it is polled for the first time. It must not know ours then.
    let ended = poll_fn(|context| Poll::Ready(serving.as_mut().poll(context))).await;
    let mut listeners = vec![supervisor.require(NAME, None, move |_| async move {
        let ended = match ended {
            Poll::Ready(ended) => ended,
            Poll::Pending => serving.await,
        };
        if let Err(error) = ended {
            tracing::error!(%error, "SIP is not served any more");
        }
    })];
    endpoint.transport_layer.add_transport(listener.clone());
    if let SipConnection::Udp(udp) = listener {
        let (sender, mut received) = mpsc::unbounded_channel();
        let filter = filter.clone();
        // In this order: it would end unasked if it was let go of after the one that feeds it.
        listeners.push(supervisor.require(NAME, None, move |_| async move {
            while let Some(event) = received.recv().await {
                filter.handle(event).await;
            }
        }));
        listeners.push(supervisor.require(NAME, None, move |_| async move {
            while let Err(reason) = contain(pin!(udp.serve_loop(sender.clone()))).await {
                tracing::error!(reason, "a SIP packet made its reader panic: it is ignored");
            }
        }));
    }
    listeners
}
