//! Panics: kept to the one who panics, and put into words.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;
use std::thread;

use tokio::task::JoinError;

pub(crate) fn describe<R>(ended: Result<R, JoinError>) -> String {
    match ended {
        Ok(_) => "ended unasked".to_owned(),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => format!("panicked: {}", panic_message(&*panic)),
            Err(error) => format!("ended: {error}"),
        },
    }
}

pub(crate) fn describe_thread(ended: thread::Result<()>) -> String {
    match ended {
        Ok(()) => "ended unasked".to_owned(),
        Err(panic) => format!("panicked: {}", panic_message(&*panic)),
    }
}

/// Runs a future to its end, or to its panic, whose message is the error. The panic ends the future and nobody else: for one request
/// or one packet in a loop that serves many. A large future is better given pinned: one that is given whole takes its place twice.
pub async fn contain<T>(future: impl Future<Output = T>) -> Result<T, String> {
    let mut future = pin!(future);
    poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context)));
        match polled {
            Ok(polled) => polled.map(Ok),
            Err(panic) => Poll::Ready(Err(panic_message(&*panic).to_owned())),
        }
    })
    .await
}

/// What a panic said, as far as it said it in words.
pub fn panic_message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message")
}
