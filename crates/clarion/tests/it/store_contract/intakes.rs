//! Intakes are found by name and by token; an incident is one row, whoever opens it, until it is closed.

use clarion::domain::intake::incident::{Incident, IncidentKey};
use clarion::domain::intake::{Intake, IntakeFormat, IntakeSettings, IntakeToken, MAX_INCIDENTS};
use clarion::store::{Database, SeenIncident, StoreError};
use jiff::{SignedDuration, Timestamp};

use super::{call, open, order, with_account};
use crate::support::{APP, execute};

contract! {
    an_intake_is_kept_changed_and_removed,
    an_incident_opens_once_and_closes_once,
    an_incident_of_which_nothing_was_heard_begins_anew,
    an_intake_has_ten_thousand_open_incidents_and_no_more,
    a_call_whose_incident_is_over_is_taken_as_resolved,
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn intake(name: &str, token: u8) -> Intake {
    Intake {
        name: name.parse().unwrap(),
        app: APP.parse().unwrap(),
        format: IntakeFormat::Alertmanager,
        token: IntakeToken::new([token; 32]).hash(),
        settings: IntakeSettings {
            text: Some("{{ text }} '\"🔥".to_owned()),
            to: vec!["@night".parse().unwrap()],
            ..IntakeSettings::default()
        },
        created_at: at(0),
        updated_at: at(0),
    }
}

async fn an_intake_is_kept_changed_and_removed(database: Database) {
    let nobody = open(&database).await.add_intake(intake("shop", 1)).await;
    assert!(
        matches!(nobody, Err(StoreError::Missing(_))),
        "no application"
    );
    let store = with_account(&database).await;
    store.add_intake(intake("shop", 1)).await.unwrap();
    for again in [intake("shop", 2), intake("other", 1)] {
        let again = store.add_intake(again).await;
        assert!(matches!(again, Err(StoreError::Exists(_))), "name or token");
    }
    store.add_intake(intake("Bakery", 3)).await.unwrap();
    let names = async || {
        let intakes = store.intakes().await.unwrap().into_iter();
        intakes
            .map(|intake| intake.name.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(names().await, ["Bakery", "shop"]);
    let found = store
        .intake(&"shop".parse().unwrap())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(found.settings, intake("shop", 1).settings);
    assert_eq!(
        (found.format, found.created_at),
        (IntakeFormat::Alertmanager, at(0))
    );
    let of_token = async |token| {
        let found = store.intake_of_token(&IntakeToken::new([token; 32])).await;
        found.unwrap().map(|intake| intake.name.to_string())
    };
    assert_eq!(of_token(1).await.as_deref(), Some("shop"));
    let name = "shop".parse().unwrap();
    let token = |byte| IntakeToken::new([byte; 32]).hash();
    // Settings and token do not undo each other, and of two who read the same, one reads again.
    let mut changed = intake("shop", 1);
    changed.settings.close_after = 7;
    changed.updated_at = at(9);
    store
        .set_intake_token(&name, token(7), at(0))
        .await
        .unwrap();
    assert!(!store.set_intake(changed.clone(), at(0)).await.unwrap());
    let read_at = store.intake(&name).await.unwrap().unwrap().updated_at;
    assert!(store.set_intake(changed.clone(), read_at).await.unwrap());
    assert!(!store.set_intake(changed.clone(), read_at).await.unwrap());
    let found = store.intake(&name).await.unwrap().unwrap();
    assert_eq!(found.settings, changed.settings);
    assert_eq!(
        (of_token(1).await, of_token(7).await.as_deref()),
        (None, Some("shop"))
    );
    assert!(!store.set_intake(intake("nobody", 8), at(0)).await.unwrap());
    let nobody = "nobody".parse().unwrap();
    let unknown = store.set_intake_token(&nobody, token(8), at(0)).await;
    assert!(matches!(unknown, Err(StoreError::Missing(_))));
    store.open_incident(seen("oven", "a", 1)).await.unwrap();
    store.remove_intake(&name).await.unwrap();
    assert!(store.open_incidents(&name, 9).await.unwrap().is_empty());
    let gone = store.remove_intake(&name).await;
    assert!(matches!(gone, Err(StoreError::Missing(_))));
    assert_eq!(names().await, ["Bakery"]);
}

fn seen(key: &str, id: &str, second: i64) -> SeenIncident {
    SeenIncident {
        intake: "shop".parse().unwrap(),
        key: IncidentKey::new(key),
        id: id.repeat(32),
        now: at(second),
        closed_before: at(second) - SignedDuration::from_secs(100),
    }
}

async fn an_incident_opens_once_and_closes_once(database: Database) {
    let (one, other) = (with_account(&database).await, open(&database).await);
    let opened = futures_util::future::join_all((0..20).map(|number| {
        let store = if number % 2 == 0 { &one } else { &other };
        store.open_incident(seen("oven", ["a", "b"][number % 2], 1))
    }));
    let opened = opened
        .await
        .into_iter()
        .map(|opened| opened.unwrap().unwrap());
    let opened: Vec<_> = opened.collect();
    assert!(opened.iter().all(|incident| incident.id == opened[0].id));
    let noted = Incident {
        notices: 1,
        call: Some(call(1).sid),
        fingerprints: vec!["f\"1".to_owned()],
        ..opened[0].clone()
    };
    // Whoever has only found it does not know what it tells of, and does not overwrite it either.
    let found = Incident {
        fingerprints: Vec::new(),
        ..noted.clone()
    };
    assert!(other.note_notice(found.clone(), false).await.unwrap());
    assert!(one.note_notice(noted.clone(), true).await.unwrap());
    assert!(!other.note_notice(found, false).await.unwrap());
    assert!(
        other.note_notice(noted.clone(), true).await.unwrap(),
        "again"
    );
    let late = Incident {
        notices: 0,
        ..noted.clone()
    };
    assert!(
        !one.note_notice(late, true).await.unwrap(),
        "an earlier one"
    );
    let again = other
        .open_incident(seen("oven", "c", 5))
        .await
        .unwrap()
        .unwrap();
    let wanted = Incident {
        seen_at: at(5),
        ..noted.clone()
    };
    assert_eq!(again, wanted);
    let name = "shop".parse().unwrap();
    one.open_incident(seen("fridge", "d", 9)).await.unwrap();
    let keys = async || {
        let open = one.open_incidents(&name, 9).await.unwrap().into_iter();
        open.map(|incident| incident.key.as_str().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(keys().await, ["fridge", "oven"], "the newest first");
    let key = IncidentKey::new("oven");
    let found = one.incident(&name, &key).await.unwrap();
    assert_eq!(found.as_ref(), Some(&wanted));
    let meanwhile = Incident {
        notices: 2,
        ..wanted.clone()
    };
    assert!(
        !one.close_incident(&meanwhile).await.unwrap(),
        "not as read"
    );
    assert!(one.close_incident(&wanted).await.unwrap());
    assert!(!other.close_incident(&wanted).await.unwrap());
    assert_eq!(other.incident(&name, &key).await.unwrap(), None);
    assert!(!one.note_notice(noted, true).await.unwrap(), "it is closed");
    assert_eq!(one.forget_incidents(at(9), 10).await.unwrap(), 0);
    assert_eq!(one.forget_incidents(at(10), 10).await.unwrap(), 1);
    assert!(keys().await.is_empty());
}

async fn an_intake_has_ten_thousand_open_incidents_and_no_more(database: Database) {
    let store = with_account(&database).await;
    let fill = format!(
        "INSERT INTO incidents (intake, incident_key, id, notices, fingerprints, opened_at, seen_at) \
         WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {MAX_INCIDENTS}) \
         SELECT 'shop', 'k' || n, 'i' || n, 0, '[]', {0}, {0} FROM numbers",
        at(500).as_millisecond()
    );
    execute(&database, &fill).await;
    let refused = store.open_incident(seen("oven", "a", 500)).await;
    assert_eq!(refused.unwrap(), None);
    // One that is open is found all the same, and another intake has its own.
    let known = store.open_incident(seen("k7", "b", 500)).await.unwrap();
    assert_eq!(known.unwrap().id, "i7");
    let other = SeenIncident {
        intake: "other".parse().unwrap(),
        ..seen("oven", "c", 500)
    };
    assert!(store.open_incident(other).await.unwrap().is_some());
    // One that is over makes room for one.
    let known = store.open_incident(seen("k7", "b", 500)).await.unwrap();
    assert!(store.close_incident(&known.unwrap()).await.unwrap());
    let opened = store.open_incident(seen("oven", "d", 500)).await.unwrap();
    assert_eq!(opened.unwrap().id, "d".repeat(32));
    let refused = store.open_incident(seen("fridge", "e", 500)).await;
    assert_eq!(refused.unwrap(), None);
    // Those of which nothing was heard are closed, and make room too.
    let opened = store.open_incident(seen("fridge", "e", 700)).await.unwrap();
    assert_eq!(opened.unwrap().id, "e".repeat(32));
}

async fn an_incident_of_which_nothing_was_heard_begins_anew(database: Database) {
    let store = with_account(&database).await;
    let first = store
        .open_incident(seen("oven", "a", 0))
        .await
        .unwrap()
        .unwrap();
    let noted = Incident {
        notices: 3,
        call: Some(call(1).sid),
        ..first
    };
    assert!(store.note_notice(noted.clone(), true).await.unwrap());
    let known = store
        .open_incident(seen("oven", "b", 100))
        .await
        .unwrap()
        .unwrap();
    assert_eq!((known.notices, known.opened_at), (3, at(0)));
    // While its notice is under way, it is open.
    store.accept_call(order(call(1))).await.unwrap();
    let running = store
        .open_incident(seen("oven", "b", 301))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (running.notices, running.call.as_ref()),
        (3, noted.call.as_ref())
    );
    let over = "DELETE FROM call_queue";
    execute(&database, over).await;
    let anew = store
        .open_incident(seen("oven", "c", 502))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (anew.id.as_str(), anew.notices, anew.call, anew.opened_at),
        ("c".repeat(32).as_str(), 0, None, at(502))
    );
}

async fn a_call_whose_incident_is_over_is_taken_as_resolved(database: Database) {
    use clarion::domain::claim::{NodeId, Overdue};
    let store = with_account(&database).await;
    let (over, cancelled) = (call(1), call(2));
    for call in [&over, &cancelled] {
        store.accept_call(order(call.clone())).await.unwrap();
    }
    assert!(store.cancel_call(&cancelled.sid).await.unwrap().is_some());
    // What somebody has cancelled stays cancelled.
    for call in [&over, &cancelled] {
        assert!(store.resolve_call(&call.sid).await.unwrap().is_some());
    }
    let nobody = "f".repeat(32).parse().unwrap();
    assert_eq!(store.resolve_call(&nobody).await.unwrap(), None);
    let node = NodeId::new([1; 8]);
    let taken = store.claim_overdue(&node, 10).await.unwrap();
    let mut taken: Vec<_> = taken
        .into_iter()
        .map(|(claimed, why)| (claimed.call.sid, why))
        .collect();
    taken.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(
        taken,
        [
            (over.sid, Overdue::Resolved),
            (cancelled.sid, Overdue::Cancelled)
        ]
    );
}
