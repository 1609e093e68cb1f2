//! Live parts of pages: a stream of server-sent events, each the HTML of a part as it is now, or that it cannot be looked at. It ends with the server, with the sign-in, and when there is nothing
//! more to see. Without script nothing asks for it.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use tokio::time::Instant;

use super::Console;
use super::refusal::Refused;
use super::visit::Visit;
use crate::domain::operator::OperatorName;

/// From one look to the next.
const LOOK: Duration = Duration::from_secs(1);
/// So often a stream says that it is there, and asks whether its operator still is.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// Streams of one operator, and of all of them.
const OF_OPERATOR: usize = 8;
const OF_ALL: usize = 64;

/// The event of a stream whose operator is not signed in any more.
const SIGNED_OUT: &str = "signed-out";

/// What a part of a page is now.
#[derive(Debug)]
pub struct Fragment {
    pub html: String,
    /// It will not change any more.
    pub is_last: bool,
}

/// How many streams each operator has open.
#[derive(Debug, Default)]
pub struct OpenStreams(Arc<Mutex<HashMap<OperatorName, usize>>>);

/// One stream's place, given back on drop.
#[derive(Debug)]
struct StreamPlace {
    open: Arc<Mutex<HashMap<OperatorName, usize>>>,
    operator: OperatorName,
}

impl OpenStreams {
    fn take(&self, operator: &OperatorName) -> Option<StreamPlace> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = open.values().sum();
        let own = open.get(operator).copied().unwrap_or(0);
        if all >= OF_ALL || own >= OF_OPERATOR {
            return None;
        }
        open.insert(operator.clone(), own + 1);
        Some(StreamPlace {
            open: Arc::clone(&self.0),
            operator: operator.clone(),
        })
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = open.get_mut(&self.operator) {
            *own -= 1;
            if *own == 0 {
                open.remove(&self.operator);
            }
        }
    }
}

/// Looks again and again, and sends what has changed.
struct Watching<L> {
    console: Arc<Console>,
    visit: Arc<Visit>,
    look: L,
    /// Empty when nothing that was sent is still true for certain.
    sent: String,
    is_stale: bool,
    look_due: Instant,
    heartbeat_due: Instant,
    is_over: bool,
    _place: StreamPlace,
}

/// Answers somebody who looks at a live page and is not signed in any more: a browser tells its page nothing of a stream that is refused.
pub fn signed_out() -> Response {
    let media_type = HeaderValue::from_static("text/event-stream");
    ([(CONTENT_TYPE, media_type)], written(SIGNED_OUT, "yes")).into_response()
}

/// Answers with a stream of what `look` sees.
pub fn stream<L, F>(console: Arc<Console>, visit: Arc<Visit>, look: L) -> Result<Response, Refused>
where
    L: Fn(Arc<Console>, Arc<Visit>) -> F + Send + Sync + 'static,
    F: Future<Output = Result<Fragment, Refused>> + Send,
{
    let operator = visit.operator.as_ref().ok_or(Refused::NotSignedIn)?;
    let place = console.streams.take(&operator.name);
    let watching = Watching {
        _place: place.ok_or(Refused::Busy)?,
        console,
        visit,
        look,
        sent: String::new(),
        is_stale: false,
        look_due: Instant::now(),
        heartbeat_due: Instant::now() + HEARTBEAT,
        is_over: false,
    };
    let events = stream::unfold(watching, |mut watching| async move {
        let event = watching.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(event)), watching))
    });
    let media_type = HeaderValue::from_static("text/event-stream");
    Ok(([(CONTENT_TYPE, media_type)], Body::from_stream(events)).into_response())
}

impl<L, F> Watching<L>
where
    L: Fn(Arc<Console>, Arc<Visit>) -> F,
    F: Future<Output = Result<Fragment, Refused>>,
{
    /// The next event, or `None` at the end. However fast something changes, there is one look at a time, and a pause before each.
    async fn next(&mut self) -> Option<String> {
        let mut stopped = self.console.stopped.clone();
        while !self.is_over {
            tokio::select! {
                _ = stopped.wait_for(|stopped| *stopped) => return None,
                () = tokio::time::sleep_until(self.look_due) => {}
            }
            self.look_due = Instant::now() + LOOK;
            let is_heartbeat_due = Instant::now() >= self.heartbeat_due;
            if is_heartbeat_due {
                self.heartbeat_due = Instant::now() + HEARTBEAT;
                if !self.is_signed_in().await {
                    self.is_over = true;
                    return Some(written(SIGNED_OUT, "yes"));
                }
            }
            let changed = self.changed().await;
            if changed.is_some() || is_heartbeat_due {
                return Some(changed.unwrap_or_else(|| written("heartbeat", "yes")));
            }
        }
        None
    }

    /// An event, if the part is another one than before, or cannot be seen any more.
    async fn changed(&mut self) -> Option<String> {
        let (console, visit) = (Arc::clone(&self.console), Arc::clone(&self.visit));
        // A database may be away for a moment: what is shown stays, with a note that it may be old, and the next look may succeed.
        let Ok(fragment) = (self.look)(console, visit).await else {
            self.sent.clear();
            let was_stale = std::mem::replace(&mut self.is_stale, true);
            return (!was_stale).then(|| written("stale", "yes"));
        };
        self.is_stale = false;
        self.is_over = fragment.is_last;
        if fragment.html == self.sent && !fragment.is_last {
            return None;
        }
        self.sent = fragment.html;
        let name = if fragment.is_last { "last" } else { "message" };
        Some(written(name, &self.sent))
    }

    async fn is_signed_in(&self) -> bool {
        let Some(operator) = &self.visit.operator else {
            return false;
        };
        let now = self.console.clock.now();
        let found = self
            .console
            .management
            .sign_in(&operator.id_hash, now)
            .await;
        // A database that does not answer says nothing about the operator.
        found.is_err() || found.is_ok_and(|found| found.is_some())
    }
}

fn written(event: &str, html: &str) -> String {
    let mut text = format!("event: {event}\n");
    for line in html.lines().filter(|line| !line.trim().is_empty()) {
        text.push_str("data: ");
        text.push_str(line);
        text.push('\n');
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_has_so_many_streams_and_leaves_room_for_others() {
        let (open, li) = (OpenStreams::default(), "li".parse().unwrap());
        let mut places: Vec<_> = (0..OF_OPERATOR).map(|_| open.take(&li).unwrap()).collect();
        assert!(open.take(&li).is_none());
        assert!(open.take(&"wang".parse().unwrap()).is_some());
        places.pop();
        assert!(open.take(&li).is_some());
        drop(places);
        assert!(open.0.lock().unwrap().is_empty());
    }

    #[test]
    fn an_event_is_written_line_by_line() {
        let event = written("message", "<p>\n  a</p>\n\n<p>b</p>");
        assert_eq!(
            event,
            "event: message\ndata: <p>\ndata:   a</p>\ndata: <p>b</p>\n\n"
        );
    }
}
