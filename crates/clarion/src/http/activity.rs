//! Notices whether anything still happens on a connection.
//!
//! The protocols have time limits of their own, but each leaves a gap: a client that never says which protocol it speaks, a client that
//! answers HTTP/2 pings and sends no request, a client that never takes its answer. Here they are all the same: nothing happens.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::BoxError;
use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::time::Instant;

/// One connection's activity.
#[derive(Debug)]
pub struct Activity(Mutex<State>);

#[derive(Debug)]
struct State {
    requests: usize,
    last: Instant,
}

impl Activity {
    pub fn begin() -> Arc<Self> {
        Arc::new(Self(Mutex::new(State {
            requests: 0,
            last: Instant::now(),
        })))
    }

    /// Notes that a request is being handled until the guard is dropped. Handling has its own time limits.
    pub fn request(self: &Arc<Self>) -> UnderWay {
        self.change(|state| state.requests += 1);
        UnderWay(Arc::clone(self))
    }

    /// Wraps an answer's body. Every piece that is fetched for sending shows that the client is taking its answer.
    pub fn answer(self: &Arc<Self>, body: Body) -> Body {
        Body::new(Answer {
            body,
            activity: Arc::clone(self),
        })
    }

    /// Returns when nothing has happened for this time.
    pub async fn silence(&self, time: Duration) {
        loop {
            let since = self.quiet_since();
            let end = since.unwrap_or_else(Instant::now) + time;
            if since.is_some() && end <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(end).await;
        }
    }

    /// Returns the time of the last activity, or `None` while a request is being handled.
    fn quiet_since(&self) -> Option<Instant> {
        let state = self.0.lock().expect("nothing panics while it notes a time");
        (state.requests == 0).then_some(state.last)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.0.lock().expect("nothing panics while it notes a time");
        state.last = Instant::now();
        change(&mut state);
    }
}

/// A request that is being handled.
#[derive(Debug)]
pub struct UnderWay(Arc<Activity>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.change(|state| state.requests -= 1);
    }
}

struct Answer {
    body: Body,
    activity: Arc<Activity>,
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        self.activity.change(|_| ());
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    const MOMENT: Duration = Duration::from_millis(20);

    async fn is_silent(activity: &Activity) -> bool {
        let silence = activity.silence(MOMENT);
        tokio::time::timeout(MOMENT * 3, silence).await.is_ok()
    }

    #[tokio::test]
    async fn a_request_under_way_is_no_silence_however_long_it_takes() {
        let activity = Activity::begin();
        let (one, other) = (activity.request(), activity.request());
        drop(one);
        assert!(!is_silent(&activity).await);
        drop(other);
        assert!(is_silent(&activity).await);
    }

    #[tokio::test]
    async fn an_answer_that_is_being_taken_is_no_silence() {
        let activity = Activity::begin();
        let began = Instant::now();
        let mut answer = activity.answer(Body::from("answer"));
        assert_eq!(answer.size_hint().exact(), Some(6));
        assert!(is_silent(&activity).await);
        answer.frame().await.unwrap().unwrap();
        assert!(activity.quiet_since().unwrap() >= began + MOMENT);
    }
}
