//! Operators are known by name and password; a new password ends their sign-ins, and so does their end.

use clarion::domain::operator::{Operator, OperatorChange, OperatorRole, PasswordDigest, SignIn};
use clarion::store::{Database, StoreError};
use jiff::Timestamp;

use super::open;

contract! {
    an_operator_is_kept_changed_and_removed,
    a_sign_in_lasts_as_long_as_its_time_and_its_password,
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn digest(text: &str) -> PasswordDigest {
    PasswordDigest::new(text.to_owned())
}

fn operator(name: &str, second: i64) -> Operator {
    let name = name.parse().unwrap();
    Operator::new(name, OperatorRole::Viewer, digest("one"), at(second))
}

fn change(role: Option<OperatorRole>, password: Option<&str>, second: i64) -> OperatorChange {
    OperatorChange {
        role,
        password: password.map(digest),
        at: at(second),
    }
}

fn sign_in(of: &Operator, id: &str, from: i64, until: i64) -> SignIn {
    SignIn {
        id_hash: id.to_owned(),
        operator: of.name.clone(),
        generation: of.generation,
        form_token: format!("token of {id}"),
        address: "192.0.2.7".to_owned(),
        created_at: at(from),
        seen_at: at(from),
        expires_at: at(until),
    }
}

async fn an_operator_is_kept_changed_and_removed(database: Database) {
    let store = open(&database).await;
    assert!(store.operators().await.unwrap().is_empty());
    let (wang, li) = (operator("wang", 1), operator("Li", 2));
    for one in [&wang, &li] {
        store.add_operator(one.clone()).await.unwrap();
    }
    let again = store.add_operator(operator("wang", 3)).await;
    assert!(matches!(again, Err(StoreError::Exists(_))));
    assert_eq!(
        store.operators().await.unwrap(),
        [li.clone(), wang.clone()],
        "in the order of their names"
    );
    let promoted = change(Some(OperatorRole::Admin), None, 4);
    let promoted = store.change_operator(&wang.name, promoted).await.unwrap();
    let wanted = Operator {
        role: OperatorRole::Admin,
        changed_at: at(4),
        ..wang.clone()
    };
    assert_eq!(promoted, wanted);
    let renewed = change(None, Some("two"), 5);
    let renewed = store.change_operator(&wang.name, renewed).await.unwrap();
    assert_eq!(renewed.password, digest("two"));
    assert!(renewed.role == OperatorRole::Admin && renewed.generation > promoted.generation);
    let found = store.operator(&wang.name).await.unwrap();
    assert_eq!(found, Some(renewed));
    store.remove_operator(&wang.name).await.unwrap();
    assert_eq!(store.operator(&wang.name).await.unwrap(), None);
    let gone = store.remove_operator(&wang.name).await;
    assert!(matches!(gone, Err(StoreError::Missing(_))));
    let unknown = store.change_operator(&wang.name, change(None, None, 6));
    assert!(matches!(unknown.await, Err(StoreError::Missing(_))));
    assert_eq!(store.operators().await.unwrap(), [li]);
}

async fn a_sign_in_lasts_as_long_as_its_time_and_its_password(database: Database) {
    let store = open(&database).await;
    let li = operator("li", 1);
    store.add_operator(li.clone()).await.unwrap();
    let (first, second) = (sign_in(&li, "a", 10, 20), sign_in(&li, "b", 12, 50));
    for one in [&first, &second] {
        store.add_sign_in(one.clone()).await.unwrap();
    }
    let find = async |id: &str, second| store.sign_in(id, at(second)).await.unwrap();
    let viewer = OperatorRole::Viewer;
    assert_eq!(find("a", 19).await, Some((first, viewer)));
    assert_eq!(find("a", 20).await, None, "it has expired");
    assert_eq!(find("c", 13).await, None);
    store.renew_sign_in("a", at(19), at(29)).await.unwrap();
    let renewed = find("a", 28).await.unwrap().0;
    assert_eq!((renewed.seen_at, renewed.expires_at), (at(19), at(29)));
    // What an operator may do is what it may do now.
    let promoted = change(Some(OperatorRole::Admin), None, 21);
    store.change_operator(&li.name, promoted).await.unwrap();
    assert_eq!(find("b", 22).await.unwrap().1, OperatorRole::Admin);
    store.end_sign_in("b").await.unwrap();
    assert_eq!(find("b", 22).await, None, "signed out");
    store.end_sign_in("b").await.unwrap();
    let renewed = change(None, Some("two"), 23);
    let li = store.change_operator(&li.name, renewed).await.unwrap();
    assert_eq!(find("a", 24).await, None, "of the password before");
    store.add_sign_in(sign_in(&li, "d", 30, 40)).await.unwrap();
    assert!(find("d", 31).await.is_some());
    // A new operator of the same name is another one.
    store.remove_operator(&li.name).await.unwrap();
    assert_eq!(find("d", 31).await, None);
    store.add_operator(operator("li", 32)).await.unwrap();
    assert_eq!(find("d", 33).await, None);
    let last = sign_in(&operator("li", 32), "e", 41, 60);
    store.add_sign_in(last).await.unwrap();
    let kept = crate::support::text_of(&database, "SELECT CAST(count(*) AS TEXT) FROM sign_ins");
    assert_eq!(kept.await, "1", "those that have expired are forgotten");
}
