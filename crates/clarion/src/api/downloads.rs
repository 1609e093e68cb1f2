//! Downloads of accounts. Each is sent as it is read, and keeps its place until all of it is sent or its client is gone: whoever reads slowly, or
//! not at all, keeps files open and compressors at work, but only so many.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{BoxStream, Stream};
use tokio::time::Instant;

use crate::domain::account::AccountSid;
use crate::domain::status_code::{Refusal, StatusCode};
use crate::fair_places::{FairPlace, FairPlaces, PlaceShortage};

/// So many are sent at once, of all accounts and of one.
const AT_ONCE: usize = 64;
const AT_ONCE_OF_ACCOUNT: usize = 4;

#[derive(Debug)]
pub struct Downloads {
    places: FairPlaces,
    /// How long one waits for its place.
    time: Duration,
}

impl Downloads {
    pub fn new(time: Duration) -> Self {
        Self {
            places: FairPlaces::new(AT_ONCE, AT_ONCE_OF_ACCOUNT),
            time,
        }
    }

    pub async fn place(&self, account: &AccountSid) -> Result<FairPlace, Refusal> {
        let deadline = Instant::now() + self.time;
        let place = self.places.take(account.as_str(), deadline).await;
        place.map_err(|shortage| {
            let (limit, whose) = match shortage {
                PlaceShortage::Own => (AT_ONCE_OF_ACCOUNT, " of an account"),
                PlaceShortage::All => (AT_ONCE, ""),
            };
            let rule = format!("at most {limit} downloads{whose} are in progress at once");
            Refusal::new(StatusCode::TooManyRequests, rule)
        })
    }
}

/// The bytes of a file that is sent, with their place.
struct Download {
    bytes: Chunks,
    _place: FairPlace,
}

type Chunks = BoxStream<'static, object_store::Result<Bytes>>;

/// A body that keeps the place.
pub fn body(place: FairPlace, bytes: Chunks) -> Body {
    Body::from_stream(Download {
        bytes,
        _place: place,
    })
}

impl Stream for Download {
    type Item = object_store::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.bytes.poll_next_unpin(context)
    }
}
