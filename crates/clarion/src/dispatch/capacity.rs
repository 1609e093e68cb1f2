//! Whose calls may start now: what is free is shared out fairly among accounts, applications and lanes.

use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::domain::account::{AccountSid, AppId};
use crate::domain::claim::{Lane, LaneShare};
use crate::domain::route::RouteKey;

/// A lane with calls that are due, and how many of them its account's limits and its application's let start now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingLane {
    pub account: AccountSid,
    pub account_left: u32,
    pub app_left: u32,
    pub lane: Lane,
}

/// What a trunk can still carry.
#[derive(Debug, Clone, Default)]
pub struct TrunkLeft {
    pub calls: u32,
    /// At most so many of these accounts.
    pub slowed: HashMap<AccountSid, u32>,
}

impl TrunkLeft {
    /// So many, whosever they are.
    pub fn of_all(calls: u32) -> Self {
        Self {
            calls,
            slowed: HashMap::new(),
        }
    }

    fn of(&self, account: &AccountSid) -> u32 {
        let slowed = self.slowed.get(account);
        slowed.map_or(self.calls, |left| self.calls.min(*left))
    }

    fn take(&mut self, account: &AccountSid, wanted: u32) -> u32 {
        let taken = self.of(account).min(wanted);
        self.calls -= taken;
        if let Some(slowed) = self.slowed.get_mut(account) {
            *slowed -= taken;
        }
        taken
    }
}

/// What the trunks can still carry. A call takes a place on one of the trunks of its route.
#[derive(Debug, Clone, Default)]
pub struct TrunksLeft {
    left: HashMap<String, TrunkLeft>,
}

impl TrunksLeft {
    pub fn new(left: impl IntoIterator<Item = (String, TrunkLeft)>) -> Self {
        Self {
            left: left.into_iter().collect(),
        }
    }

    /// Takes up to so many places for calls of this route. A route of which no trunk is left in the configuration needs none: its calls shall end.
    fn take(&mut self, account: &AccountSid, route: &RouteKey, wanted: u32) -> u32 {
        let (mut taken, mut is_known) = (0, false);
        for trunk in route.trunks() {
            if let Some(left) = self.left.get_mut(trunk) {
                is_known = true;
                taken += left.take(account, wanted - taken);
            }
        }
        if is_known { taken } else { wanted }
    }

    /// Whether no call of any route could start.
    pub fn are_all_full(&self) -> bool {
        self.left.values().all(|left| left.calls == 0)
    }

    /// Whether no call of this route could start, whosever it is.
    pub fn is_full(&self, route: &RouteKey) -> bool {
        let mut known = route.trunks().filter_map(|trunk| self.left.get(trunk));
        known.all(|left| left.calls == 0)
    }

    /// Whether a call of this account and route could start.
    pub fn is_free(&self, account: &AccountSid, route: &RouteKey) -> bool {
        let mut known = route
            .trunks()
            .filter_map(|trunk| self.left.get(trunk))
            .peekable();
        known.peek().is_none() || known.any(|left| left.of(account) > 0)
    }
}

/// Shares `free` out among accounts, and within each among its applications: one each in turn, so that a hundred thousand calls of one do
/// not delay the single call of another. Within an account the most urgent lanes come first. Who is first in one round comes last in the
/// next (`turn`).
pub fn fair_shares(
    free: u32,
    mut trunks: TrunksLeft,
    waiting: Vec<WaitingLane>,
    turn: usize,
) -> Vec<LaneShare> {
    // Mostly there is nobody to share with.
    if let [only] = &waiting[..] {
        let wanted = free.min(only.account_left).min(only.app_left);
        let share = LaneShare {
            account: only.account.clone(),
            lane: only.lane.clone(),
            calls: trunks.take(&only.account, &only.lane.route, wanted),
        };
        return Vec::from_iter((share.calls > 0).then_some(share));
    }
    let mut accounts: BTreeMap<AccountSid, AccountShare> = BTreeMap::new();
    for lane in waiting {
        accounts.entry(lane.account.clone()).or_default().add(lane);
    }
    let mut accounts: Vec<_> = accounts.into_values().collect();
    if accounts.is_empty() {
        return Vec::new();
    }
    let start = turn % accounts.len();
    accounts.rotate_left(start);
    for account in &mut accounts {
        let start = turn % account.apps.len();
        account.apps.rotate_left(start);
    }
    let mut left = free;
    loop {
        let before = left;
        for account in &mut accounts {
            left -= u32::from(left > 0 && account.take_turn(&mut trunks));
        }
        if left == before || left == 0 {
            break;
        }
    }
    let apps = accounts.into_iter().flat_map(|account| account.apps);
    let shares = apps.flat_map(|app| app.lanes);
    shares.filter(|share| share.calls > 0).collect()
}

#[derive(Default)]
struct AccountShare {
    left: u32,
    apps: VecDeque<AppShare>,
}

/// Its lanes with what they have taken, the most urgent first.
struct AppShare {
    app: AppId,
    left: u32,
    lanes: Vec<LaneShare>,
}

impl AccountShare {
    fn add(&mut self, waiting: WaitingLane) {
        self.left = waiting.account_left;
        let app = self
            .apps
            .iter_mut()
            .position(|app| app.app == waiting.lane.app);
        let place = app.unwrap_or_else(|| {
            self.apps.push_back(AppShare {
                app: waiting.lane.app.clone(),
                left: waiting.app_left,
                lanes: Vec::new(),
            });
            self.apps.len() - 1
        });
        let lanes = &mut self.apps[place].lanes;
        let before = lanes.partition_point(|share| share.lane.priority <= waiting.lane.priority);
        let share = LaneShare {
            account: waiting.account,
            lane: waiting.lane,
            calls: 0,
        };
        lanes.insert(before, share);
    }

    /// One call for the application whose most urgent lane is the most urgent of all, or that waits for the longest among equals; it goes to
    /// the end of the row. False if none can start one.
    fn take_turn(&mut self, trunks: &mut TrunksLeft) -> bool {
        if self.left == 0 {
            return false;
        }
        let urgency = |app: &AppShare| app.first_free(trunks).map(|share| share.lane.priority);
        let most_urgent = self.apps.iter().filter_map(urgency).min();
        let Some(next) = self
            .apps
            .iter()
            .position(|app| most_urgent.is_some() && urgency(app) == most_urgent)
        else {
            return false;
        };
        self.apps.rotate_left(next);
        self.apps[0].take(trunks);
        self.apps.rotate_left(1);
        self.left -= 1;
        true
    }
}

impl AppShare {
    fn first_free(&self, trunks: &TrunksLeft) -> Option<&LaneShare> {
        let mut lanes = self.lanes.iter().filter(|_| self.left > 0);
        lanes.find(|share| trunks.is_free(&share.account, &share.lane.route))
    }

    fn take(&mut self, trunks: &mut TrunksLeft) {
        let mut lanes = self.lanes.iter_mut();
        if let Some(share) =
            lanes.find(|share| trunks.take(&share.account, &share.lane.route, 1) > 0)
        {
            share.calls += 1;
            self.left -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::call::Priority;

    fn id<T: std::str::FromStr<Err: std::fmt::Debug>>(number: u8) -> T {
        format!("{number:032}").parse().unwrap()
    }

    fn lane(app: u8, route: &str, priority: u8) -> Lane {
        Lane {
            app: id(app),
            route: RouteKey::from_stored(route.to_owned()),
            priority: Priority::new(priority).unwrap(),
        }
    }

    /// A lane of an application of an account, with what is left of both.
    fn waiting(account: u8, account_left: u32, app: u8, app_left: u32) -> WaitingLane {
        WaitingLane {
            account: id(account),
            account_left,
            app_left,
            lane: lane(app, "trunk", 5),
        }
    }

    fn shares(free: u32, waiting: Vec<WaitingLane>, turn: usize) -> Vec<(Lane, u32)> {
        let trunks = TrunksLeft::new([
            ("trunk".to_owned(), TrunkLeft::of_all(u32::MAX)),
            ("other".to_owned(), TrunkLeft::of_all(2)),
        ]);
        let shares = fair_shares(free, trunks, waiting, turn).into_iter();
        let mut shares: Vec<_> = shares.map(|share| (share.lane, share.calls)).collect();
        shares.sort();
        shares
    }

    fn usual(app: u8, taken: u32) -> (Lane, u32) {
        (lane(app, "trunk", 5), taken)
    }

    #[test]
    fn nobody_waits_behind_somebody_elses_thousands() {
        let many = u32::MAX;
        let three = vec![
            waiting(1, 100_000, 1, many),
            waiting(2, 1, 2, many),
            waiting(3, 3, 3, many),
        ];
        assert_eq!(
            shares(10, three, 0),
            [usual(1, 6), usual(2, 1), usual(3, 3)]
        );
        let two = vec![waiting(1, 9, 1, many), waiting(2, 9, 2, many)];
        assert_eq!(shares(1, two, 1), [usual(2, 1)], "the turn goes round");
        assert!(shares(5, vec![], 3).is_empty());
        assert!(shares(5, vec![waiting(1, 0, 1, many)], 0).is_empty());
    }

    #[test]
    fn whoever_waits_alone_gets_what_it_would_get_beside_somebody_who_may_start_nothing() {
        for (account_left, app_left, route, expected) in [
            (9, 9, "trunk", 5),
            (3, 9, "trunk", 3),
            (9, 4, "trunk", 4),
            (9, 9, "other", 2),
            (9, 9, "other trunk", 5),
            (9, 3, "gone", 3),
            (0, 9, "trunk", 0),
        ] {
            let alone = WaitingLane {
                lane: lane(1, route, 5),
                ..waiting(1, account_left, 1, app_left)
            };
            let both = vec![alone.clone(), waiting(2, 0, 2, 9)];
            let share = shares(5, vec![alone], 0);
            assert_eq!(share, shares(5, both, 0), "{route}");
            let calls: u32 = share.iter().map(|(_, calls)| calls).sum();
            assert_eq!(calls, expected, "{route} {account_left} {app_left}");
        }
    }

    #[test]
    fn applications_share_what_their_account_has() {
        let apps = vec![
            waiting(1, 8, 1, 100),
            waiting(1, 8, 2, 1),
            waiting(1, 8, 3, 100),
            waiting(2, 100, 4, 2),
        ];
        let taken = [usual(1, 4), usual(2, 1), usual(3, 3), usual(4, 2)];
        assert_eq!(shares(20, apps, 0), taken);
    }

    #[test]
    fn a_full_route_keeps_nobody_else_waiting() {
        let many = u32::MAX;
        let on = |route: &str, app| WaitingLane {
            lane: lane(app, route, 5),
            ..waiting(1, many, app, many)
        };
        let lanes = vec![on("other", 1), on("trunk", 1), on("other trunk", 2)];
        let taken = shares(9, lanes, 0);
        let count = |route: &str| -> u32 {
            let on_route = taken
                .iter()
                .filter(|(lane, _)| lane.route.as_str() == route);
            on_route.map(|(_, taken)| taken).sum()
        };
        assert_eq!(count("other") + count("trunk") + count("other trunk"), 9);
        assert!(count("other") <= 2 && count("trunk") >= 2);
        let gone = shares(3, vec![on("gone", 1)], 0);
        assert_eq!(gone[0].1, 3, "they shall end");
    }

    #[test]
    fn an_account_whose_calls_go_one_by_one_leaves_the_rest_to_others() {
        for (may_send, on_both) in [(0, 4), (1, 5)] {
            let slow = TrunkLeft {
                calls: 10,
                slowed: HashMap::from([(id(1), may_send)]),
            };
            let left = |name: &str, left: TrunkLeft| (name.to_owned(), left);
            let trunks =
                TrunksLeft::new([left("trunk", slow), left("other", TrunkLeft::of_all(4))]);
            let many = u32::MAX;
            let lanes = vec![waiting(1, many, 1, many), waiting(2, many, 2, many)];
            let taken = fair_shares(100, trunks.clone(), lanes.clone(), 0);
            let taken: Vec<_> = taken
                .iter()
                .map(|share| (share.lane.app.clone(), share.calls))
                .collect();
            let expected = [(id(1), may_send), (id(2), 10 - may_send)];
            assert_eq!(taken, expected[usize::from(may_send == 0)..]);
            let alone = fair_shares(100, trunks.clone(), lanes[..1].to_vec(), 0);
            assert_eq!(alone.iter().map(|share| share.calls).sum::<u32>(), may_send);
            let route = lane(1, "trunk other", 5).route;
            assert!(trunks.is_free(&id(1), &route));
            let only = lane(1, "trunk", 5).route;
            assert_eq!(trunks.is_free(&id(1), &only), may_send > 0);
            assert!(!trunks.is_full(&only), "others may start there");
            let both = vec![WaitingLane {
                lane: lane(1, "trunk other", 5),
                ..waiting(1, many, 1, many)
            }];
            assert_eq!(fair_shares(100, trunks, both, 0)[0].calls, on_both);
        }
    }

    #[test]
    fn the_most_urgent_of_an_account_come_first_and_overtake_no_other_account() {
        let many = u32::MAX;
        let urgent = |account, app, priority| WaitingLane {
            lane: lane(app, "trunk", priority),
            ..waiting(account, many, app, many)
        };
        let lanes = vec![
            urgent(1, 1, 5),
            urgent(1, 1, 1),
            urgent(1, 2, 5),
            urgent(2, 3, 9),
        ];
        let taken = shares(4, lanes, 0);
        assert_eq!(taken, [(lane(1, "trunk", 1), 2), (lane(3, "trunk", 9), 2)]);
    }
}
