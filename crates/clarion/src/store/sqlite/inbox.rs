//! Receiving from async tasks in a thread, with a time limit: tokio's own `blocking_recv` has none, and a thread that waits for ever cannot
//! show that it is alive.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

pub enum Received<T> {
    Message(T),
    /// The time was over first.
    Nothing,
    /// Whoever could have sent is gone.
    Closed,
}

/// Belongs to the thread that made it.
pub struct Inbox<T> {
    messages: mpsc::Receiver<T>,
    waker: Waker,
}

impl<T> Inbox<T> {
    pub fn new(messages: mpsc::Receiver<T>) -> Self {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        Self { messages, waker }
    }

    pub fn receive(&mut self, limit: Duration) -> Received<T> {
        let deadline = Instant::now() + limit;
        loop {
            let polled = self
                .messages
                .poll_recv(&mut Context::from_waker(&self.waker));
            match polled {
                Poll::Ready(Some(message)) => return Received::Message(message),
                Poll::Ready(None) => return Received::Closed,
                Poll::Pending => {}
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Received::Nothing;
            }
            thread::park_timeout(left);
        }
    }

    /// What has arrived already.
    pub fn receive_now(&mut self) -> Option<T> {
        self.messages.try_recv().ok()
    }

    /// Nothing more can be sent from now on.
    pub fn close(&mut self) {
        self.messages.close();
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}
