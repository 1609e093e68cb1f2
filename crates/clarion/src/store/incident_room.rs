//! How many alerts of each intake may open an incident before those that are open are counted again. Counting takes as long as there are, so not every
//! alert does it. With several nodes there may be more than the limit: each node takes a tenth of what was left when it counted, a thousand at most.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};

use super::SeenIncident;
use crate::domain::intake::{IntakeName, MAX_INCIDENTS};

/// An intake that has all incidents that it may have is counted again after this.
const FULL: SignedDuration = SignedDuration::from_secs(1);
/// The part of what is left that is taken without counting.
const PART: u32 = 10;

#[derive(Debug, Default)]
pub(super) struct IncidentRoom(Mutex<HashMap<IntakeName, Room>>);

#[derive(Debug, Clone, Copy)]
enum Room {
    For(u32),
    FullSince(Timestamp),
}

impl IncidentRoom {
    /// Whether an incident may be opened that is not open. `None`: they must be counted first.
    pub fn take(&self, seen: &SeenIncident) -> Option<bool> {
        let mut rooms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match rooms.get_mut(&seen.intake)? {
            Room::For(0) => None,
            Room::For(left) => {
                *left -= 1;
                Some(true)
            }
            Room::FullSince(since) => {
                let lately = seen.now.duration_since(*since) < FULL && seen.now >= *since;
                lately.then_some(false)
            }
        }
    }

    /// So many are open, and one of them may be opened now if that is fewer than there may be.
    pub fn counted(&self, seen: &SeenIncident, open: u64) -> bool {
        let left = u64::from(MAX_INCIDENTS).saturating_sub(open);
        let left = u32::try_from(left).unwrap_or(MAX_INCIDENTS);
        let room = match left {
            0 => Room::FullSince(seen.now),
            left => Room::For((left / PART).max(1) - 1),
        };
        let mut rooms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rooms.insert(seen.intake.clone(), room);
        left > 0
    }

    /// One of them is over: there is room again.
    pub fn freed(&self, intake: &IntakeName) {
        let mut rooms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Room::FullSince(_)) = rooms.get(intake) {
            rooms.remove(intake);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::intake::incident::IncidentKey;

    fn seen(second: i64) -> SeenIncident {
        let now = Timestamp::from_second(second).unwrap();
        SeenIncident {
            intake: "shop".parse().unwrap(),
            key: IncidentKey::new("oven"),
            id: String::new(),
            now,
            closed_before: now,
        }
    }

    #[test]
    fn they_are_counted_when_a_tenth_of_the_room_is_taken_and_each_second_when_there_is_none() {
        let room = IncidentRoom::default();
        assert_eq!(room.take(&seen(0)), None);
        assert!(room.counted(&seen(0), u64::from(MAX_INCIDENTS) - 30));
        assert_eq!(
            [(); 3].map(|()| room.take(&seen(0))),
            [Some(true), Some(true), None]
        );
        assert!(
            room.counted(&seen(0), u64::from(MAX_INCIDENTS) - 1),
            "the last one"
        );
        assert_eq!(room.take(&seen(0)), None);
        assert!(!room.counted(&seen(5), u64::from(MAX_INCIDENTS) + 3));
        assert_eq!(room.take(&seen(5)), Some(false));
        // However the clock was set.
        assert_eq!([room.take(&seen(6)), room.take(&seen(4))], [None, None]);
        assert!(!room.counted(&seen(5), u64::from(MAX_INCIDENTS)));
        room.freed(&seen(5).intake);
        assert_eq!(room.take(&seen(5)), None);
    }
}
