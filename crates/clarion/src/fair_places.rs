//! Places that all accounts share, of which each may have only some: what is slow for one leaves places for the others.
//!
//! Only accounts that exist get this far, so the table is bounded by their number.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

#[derive(Debug)]
pub struct FairPlaces {
    all: Arc<Semaphore>,
    each: usize,
    own: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// It is given back on drop.
#[derive(Debug)]
pub struct FairPlace {
    _own: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

/// Which places were all taken until the deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceShortage {
    Own,
    All,
}

impl FairPlaces {
    pub fn new(all: usize, each: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(all)),
            each,
            own: Mutex::default(),
        }
    }

    /// Waits for a place of its own, and only then for one of those that all share.
    pub async fn take(&self, who: &str, deadline: Instant) -> Result<FairPlace, PlaceShortage> {
        let (own, all) = (self.of(who), Arc::clone(&self.all));
        let Ok(Ok(own)) = timeout_at(deadline, own.acquire_owned()).await else {
            return Err(PlaceShortage::Own);
        };
        let Ok(Ok(of_all)) = timeout_at(deadline, all.acquire_owned()).await else {
            return Err(PlaceShortage::All);
        };
        Ok(FairPlace {
            _own: own,
            _of_all: of_all,
        })
    }

    fn of(&self, who: &str) -> Arc<Semaphore> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(places) = own.get(who) {
            return Arc::clone(places);
        }
        let places = Arc::new(Semaphore::new(self.each));
        own.insert(who.to_owned(), Arc::clone(&places));
        places
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_who_has_all_its_places_leaves_the_others_theirs() {
        let places = FairPlaces::new(3, 2);
        let soon = || Instant::now() + Duration::from_secs(1);
        let first = places.take("a", soon()).await.unwrap();
        let _second = places.take("a", soon()).await.unwrap();
        let refused = places.take("a", soon()).await;
        assert_eq!(refused.unwrap_err(), PlaceShortage::Own);
        let _other = places.take("b", soon()).await.unwrap();
        let refused = places.take("b", soon()).await;
        assert_eq!(refused.unwrap_err(), PlaceShortage::All);
        drop(first);
        assert!(places.take("b", soon()).await.is_ok());
    }
}
