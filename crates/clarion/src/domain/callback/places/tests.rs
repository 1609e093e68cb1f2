use super::account::REMEMBERED;
use super::*;

const LIMITS: PlaceLimits = PlaceLimits {
    per_account: 8,
    per_receiver: 4,
    per_address: 6,
};

fn account(name: char) -> AccountSid {
    name.to_string().repeat(32).parse().unwrap()
}

fn due(name: char, receiver: &str, overdue: i64) -> DueReceiver {
    DueReceiver {
        account: account(name),
        app: name.to_string().repeat(32).parse().unwrap(),
        receiver: receiver.to_owned(),
        overdue: SignedDuration::from_secs(overdue),
    }
}

fn ports(name: char, count: u16) -> Vec<DueReceiver> {
    let ports = (1..=count).map(|port| due(name, &format!("192.0.2.1:{port}"), 100));
    ports.collect()
}

fn names(count: u16) -> Vec<DueReceiver> {
    let names = (1..=count).map(|number| due('a', &format!("n{number}.example:80"), 100));
    names.collect()
}

struct Tried {
    places: DeliveryPlaces,
    now: Instant,
}

impl Tried {
    fn new() -> Self {
        Self {
            places: DeliveryPlaces::new(LIMITS),
            now: Instant::now(),
        }
    }

    fn take(&mut self, due: Vec<DueReceiver>, free: usize) -> Vec<(PlaceId, DueReceiver)> {
        self.places.take(due, free, self.now)
    }

    /// How many places each of these receivers gets.
    fn counts(&mut self, due: &[DueReceiver], free: usize) -> Vec<(String, usize)> {
        let taken = self.take(due.to_vec(), free);
        let count = |one: &DueReceiver| {
            let same = taken.iter().filter(|(_, taken)| taken == one);
            (one.receiver.clone(), same.count())
        };
        due.iter().map(count).collect()
    }

    fn all_end(&mut self, taken: &[(PlaceId, DueReceiver)], answered: bool) {
        for (id, _) in taken {
            self.places.end(*id, answered);
        }
    }
}

#[test]
fn accounts_take_turns_whoever_has_more_that_is_due() {
    let mut tried = Tried::new();
    let mut due_now = ports('a', 1500);
    due_now.push(due('b', "b.example:80", 1));
    let taken = tried.take(due_now, 4);
    let of_b = taken.iter().filter(|(_, due)| due.account == account('b'));
    assert_eq!((taken.len(), of_b.count()), (4, 2));
    // Later, whoever has fewer comes first.
    let taken = tried.take(
        vec![due('a', "x.example:80", 9), due('c', "c.example:80", 1)],
        1,
    );
    assert_eq!(taken[0].1.account, account('c'));
}

#[test]
fn an_account_has_no_more_places_than_it_may_have() {
    let mut tried = Tried::new();
    let spread = (1..=20).map(|number| due('a', &format!("192.0.2.{number}:80"), 1));
    let taken = tried.take(spread.collect(), 100);
    assert_eq!(taken.len(), 8);
    assert_eq!(tried.places.full_accounts(), [account('a')]);
    assert!(
        tried
            .take(vec![due('a', "z.example:80", 1)], 100)
            .is_empty()
    );
    tried.all_end(&taken, true);
    assert!(tried.places.full_accounts().is_empty());
}

#[test]
fn the_receivers_of_an_account_take_turns_and_the_least_busy_come_first() {
    let mut tried = Tried::new();
    let (busy, idle) = (due('a', "busy:80", 9), due('a', "idle:80", 1));
    assert_eq!(tried.take(vec![busy.clone()], 3).len(), 3);
    let counts = tried.counts(&[busy, idle], 3);
    assert_eq!(
        counts,
        [("busy:80".to_owned(), 1), ("idle:80".to_owned(), 2)]
    );
}

#[test]
fn all_silent_ports_of_an_address_have_one_place_together() {
    let mut tried = Tried::new();
    let taken = tried.take(ports('a', 1500), 100);
    assert_eq!(taken.len(), 6, "as many as an address may have");
    tried.all_end(&taken, false);
    let taken = tried.take(ports('a', 1500), 100);
    assert_eq!(taken.len(), 1, "new ports of it are doubtful too");
    tried.all_end(&taken, false);
    // Somebody else's callbacks to that address, and other addresses of this account, are not concerned.
    assert_eq!(tried.take(ports('b', 3), 100).len(), 6);
    assert_eq!(tried.take(vec![due('a', "192.0.2.2:80", 1)], 100).len(), 4);
}

#[test]
fn a_receiver_that_answers_does_not_suffer_from_silent_ones_at_its_address() {
    let mut tried = Tried::new();
    let (alive, dead) = (due('a', "192.0.2.1:80", 1), due('a', "192.0.2.1:81", 100));
    let taken = tried.take(vec![alive.clone(), dead.clone()], 2);
    for (id, due) in taken {
        tried.places.end(id, due == alive);
    }
    let counts = tried.counts(&[alive, dead], 100);
    assert_eq!(
        counts,
        [
            ("192.0.2.1:80".to_owned(), 4),
            ("192.0.2.1:81".to_owned(), 1)
        ]
    );
}

#[test]
fn the_newest_receiver_is_tried_first_where_others_are_silent() {
    let mut tried = Tried::new();
    let taken = tried.take(ports('a', 1), 1);
    tried.all_end(&taken, false);
    let mut due_now = ports('a', 1500);
    due_now.push(due('a', "192.0.2.1:8080", 1));
    let taken = tried.take(due_now, 100);
    let receivers: Vec<_> = taken.iter().map(|(_, due)| due.receiver.as_str()).collect();
    assert_eq!(receivers, ["192.0.2.1:8080"]);
}

#[test]
fn a_silent_receiver_has_one_place_until_it_answers() {
    let mut tried = Tried::new();
    let one = || vec![due('a', "h:80", 1)];
    let taken = tried.take(one(), 100);
    assert_eq!(taken.len(), 4);
    tried.all_end(&taken, false);
    let taken = tried.take(one(), 100);
    assert_eq!(taken.len(), 1);
    tried.all_end(&taken, true);
    assert_eq!(tried.take(one(), 100).len(), 4);
}

#[test]
fn names_that_lead_to_one_address_count_as_that_address() {
    let mut tried = Tried::new();
    let address: IpAddr = "2001:db9::1".parse().unwrap();
    let same: IpAddr = "2001:db9::ffff:2".parse().unwrap();
    let taken = tried.take(names(8), 100);
    assert_eq!(taken.len(), 8);
    let now = tried.now;
    let mut arrived = Vec::new();
    for ((id, due), address) in taken.into_iter().zip([address, same].repeat(4)) {
        if tried.places.arrive(id, address, now) {
            arrived.push((id, due));
        } else {
            tried.places.give_back(id);
        }
    }
    assert_eq!(arrived.len(), 6, "the others are put back");
    tried.all_end(&arrived, false);
    assert_eq!(tried.take(names(8), 100).len(), 1);
    // One that was put back is left alone for a moment.
    let mut later = Tried {
        now: now + PUT_BACK_PAUSE,
        ..tried
    };
    assert!(later.take(names(8), 100).is_empty(), "the place is taken");
    // A name that leads elsewhere now is free of it.
    let (id, due) = (PlaceId(later.places.next), names(8)[0].clone());
    assert!(later.places.arrive(id, "192.0.2.9".parse().unwrap(), now));
    assert_ne!(later.take(names(8), 100), [], "{due:?}");
}

#[test]
fn places_that_are_given_back_leave_nothing_behind() {
    let mut tried = Tried::new();
    for (id, due) in tried.take(ports('a', 5), 100) {
        assert!(
            tried
                .places
                .arrive(id, "192.0.2.1".parse().unwrap(), tried.now),
            "{due:?}"
        );
        tried.places.give_back(id);
    }
    let places = &tried.places.accounts[&account('a')];
    assert_eq!((places.under_way, places.addresses.len()), (0, 0));
    assert!(tried.places.taken.is_empty());
}

#[test]
fn events_have_places_of_their_own_at_an_address() {
    let mut tried = Tried::new();
    let (last, event) = (
        due('a', "192.0.2.1:80", 1),
        due('a', "events@192.0.2.1:80", 1),
    );
    let taken = tried.take(vec![event.clone()], 1);
    tried.all_end(&taken, false);
    let counts = tried.counts(&[event, last], 100);
    let named = |name: &str, count| (name.to_owned(), count);
    assert_eq!(
        counts,
        [named("events@192.0.2.1:80", 1), named("192.0.2.1:80", 4)]
    );
}

#[test]
fn memory_is_bounded() {
    let mut tried = Tried::new();
    for number in 0..=u16::try_from(REMEMBERED).unwrap() {
        let taken = tried.take(vec![due('a', &format!("192.0.2.1:{number}"), 1)], 1);
        tried.all_end(&taken, false);
    }
    let places = &tried.places.accounts[&account('a')];
    assert!(places.receivers.len() <= REMEMBERED);
    assert!(places.addresses.len() <= 1);
}

#[test]
fn shares_count_what_was_taken_for_each_receiver() {
    let mut tried = Tried::new();
    let taken = tried.take(vec![due('a', "x:80", 1), due('a', "y:80", 1)], 3);
    let mut shares = shares(&taken);
    shares.sort_by(|a, b| a.receiver.cmp(&b.receiver));
    let limits: Vec<_> = shares
        .iter()
        .map(|share| (share.receiver.as_str(), share.limit))
        .collect();
    assert_eq!(limits, [("x:80", 2), ("y:80", 1)]);
}
