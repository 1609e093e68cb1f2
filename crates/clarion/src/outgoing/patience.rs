//! A stream from which only so much is read until the answer is there: a receiver may send any number of provisional answers (1xx) before it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How many more bytes may be read.
#[derive(Debug, Clone)]
pub struct Allowance(Arc<AtomicUsize>);

impl Allowance {
    pub fn of(bytes: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(bytes)))
    }

    /// The answer is there. Whoever reads its body has a limit of its own.
    pub fn lift(&self) {
        self.0.store(usize::MAX, Ordering::Relaxed);
    }

    /// False if there was not so much left.
    fn spend(&self, bytes: usize) -> bool {
        let spent = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| match left {
                usize::MAX => Some(left),
                left => left.checked_sub(bytes),
            });
        spent.is_ok()
    }
}

#[derive(Debug)]
pub struct Patient<S> {
    stream: S,
    allowance: Allowance,
}

impl<S> Patient<S> {
    pub fn new(stream: S, allowance: Allowance) -> Self {
        Self { stream, allowance }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let read = buffer.filled().len() - before;
        if self.allowance.spend(read) {
            return Poll::Ready(Ok(()));
        }
        let rule = "the receiver goes on sending before it answers";
        Poll::Ready(Err(io::Error::other(rule)))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
