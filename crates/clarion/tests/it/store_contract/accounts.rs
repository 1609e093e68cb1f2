//! Accounts and applications.

use clarion::domain::account::{AccountChange, AccountState, AppState, ApplicationChange};
use clarion::domain::lexicon::{LexiconChange, Reading};
use clarion::store::{Database, StoreError};

use super::{open, with_account};
use crate::support::{SID, account, app_id, application};

contract! {
    an_account_comes_back_as_it_was_stored,
    an_account_or_application_that_exists_or_is_missing_is_told,
    changes_made_at_once_lose_nothing,
    an_application_comes_back_as_it_was_stored,
}

async fn an_account_comes_back_as_it_was_stored(database: Database) {
    let store = open(&database).await;
    let mut wanted = account();
    wanted.permissions.bill_download = true;
    wanted.limits.calls_at_once = Some(7);
    wanted.balance = Some("-12.345678".parse().unwrap());
    wanted.spending_limit = Some("99".parse().unwrap());
    wanted.display_numbers = vec!["+86400*".parse().unwrap(), "+861052823298".parse().unwrap()];
    wanted.allowed_networks = vec![
        "192.0.2.0/24".parse().unwrap(),
        "2001:db8::/32".parse().unwrap(),
    ];
    store.add_account(wanted.clone()).await.unwrap();
    let mut found = store.account(&wanted.sid).await.unwrap().unwrap();
    found.display_numbers.sort_by_key(ToString::to_string);
    wanted.display_numbers.sort_by_key(ToString::to_string);
    assert_eq!(found, wanted);
    assert_eq!(store.accounts().await.unwrap().len(), 1);
    assert_eq!(
        store
            .account(&"f".repeat(32).parse().unwrap())
            .await
            .unwrap(),
        None
    );
}

async fn an_account_or_application_that_exists_or_is_missing_is_told(database: Database) {
    let store = with_account(&database).await;
    let nobody = "f".repeat(32);
    assert!(matches!(
        store.add_account(account()).await,
        Err(StoreError::Exists(_))
    ));
    assert!(matches!(
        store.add_application(application()).await,
        Err(StoreError::Exists(_))
    ));
    let change = store
        .change_account(&nobody.parse().unwrap(), AccountChange::default())
        .await;
    assert!(matches!(change, Err(StoreError::Missing(_))));
    let change = store
        .change_application(&nobody.parse().unwrap(), ApplicationChange::default())
        .await;
    assert!(matches!(change, Err(StoreError::Missing(_))));
    let mut orphan = application();
    orphan.id = nobody.parse().unwrap();
    orphan.account = nobody.parse().unwrap();
    assert!(matches!(
        store.add_application(orphan).await,
        Err(StoreError::Missing(_))
    ));
}

async fn changes_made_at_once_lose_nothing(database: Database) {
    let store = with_account(&database).await;
    // Two operators at two terminals.
    let other = open(&database).await;
    let sid = SID.parse().unwrap();
    let first = AccountChange {
        name: Some("New name".into()),
        ..AccountChange::default()
    };
    let second = AccountChange {
        state: Some(AccountState::Suspended),
        ..AccountChange::default()
    };
    let (first, second) = tokio::join!(
        store.change_account(&sid, first),
        other.change_account(&sid, second)
    );
    first.unwrap();
    second.unwrap();
    let account = store.account(&sid).await.unwrap().unwrap();
    assert_eq!(
        (account.name.as_str(), account.state),
        ("New name", AccountState::Suspended)
    );
}

async fn an_application_comes_back_as_it_was_stored(database: Database) {
    let store = with_account(&database).await;
    let change = ApplicationChange {
        name: Some("名字".into()),
        state: Some(AppState::Disabled),
        callback_secret: Some(Some(clarion::domain::account::CallbackSecret::from_key(
            &[7; 32],
        ))),
        calls_per_second: Some(Some(7)),
        calls_at_once: Some(Some(3)),
        bill_json_key: Some(Some(clarion::domain::account::BillJsonKey::AsInXml)),
        voice: Some(Some("anna".parse().unwrap())),
        lexicon: LexiconChange::Add(Reading::parse("k8s", "kubernetes").unwrap()),
    };
    let changed = store.change_application(&app_id(), change).await.unwrap();
    assert_eq!(changed.lexicon.readings().len(), 1);
    assert_eq!(
        store.application(&app_id()).await.unwrap(),
        Some(changed.clone())
    );
    assert_eq!(
        store
            .applications(Some(&SID.parse().unwrap()))
            .await
            .unwrap(),
        [changed]
    );
    assert_eq!(
        store
            .applications(Some(&"f".repeat(32).parse().unwrap()))
            .await
            .unwrap(),
        []
    );
}
