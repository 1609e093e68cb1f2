//! What every store promises: one suite, run on SQLite and on PostgreSQL.

use std::collections::HashSet;
use std::sync::Arc;

use clarion::domain::account::{AccountChange, AccountState, AppState, ApplicationChange};
use clarion::domain::call::{CallSid, NewCall};
use clarion::domain::call_state::CallState;
use clarion::domain::callback::RespUrl;
use clarion::domain::phone_number::PhoneNumber;
use clarion::domain::prompt::{
    AddedFile, AudioFile, AudioOwner, ContentId, FileName, FileOwner, Prompt, Speech,
};
use clarion::store::{Database, Store, StoreError};
use jiff::{SignedDuration, Timestamp};
use supervisor::Supervisor;

use crate::support::{APP, SID, account, app_id, application};

/// Each of these becomes two tests.
mod callbacks;

contract! {
    an_account_comes_back_as_it_was_stored,
    an_account_or_application_that_exists_or_is_missing_is_told,
    changes_made_at_once_lose_nothing,
    an_application_comes_back_as_it_was_stored,
    an_accepted_call_is_queued_and_belongs_to_its_account,
    accepting_the_same_call_again_changes_nothing,
    thousands_of_calls_at_once_are_all_there,
    what_was_accepted_survives_a_new_opening,
    two_openings_of_one_empty_database_at_once_both_succeed,
    a_store_that_is_closed_says_so,
    unknown_voice_files_are_none,
    a_voice_file_means_what_was_added_last_and_belongs_to_its_owner,
}

async fn open(database: &Database) -> Arc<dyn Store> {
    database.open(&Supervisor::new()).await.unwrap()
}

pub async fn with_account(database: &Database) -> Arc<dyn Store> {
    let store = open(database).await;
    store.add_account(account()).await.unwrap();
    store.add_application(application()).await.unwrap();
    store
}

pub fn call(number: u128) -> NewCall {
    let accepted_at: Timestamp = "2026-11-15T02:35:09.123Z".parse().unwrap();
    NewCall {
        sid: format!("{number:032x}").parse().unwrap(),
        account: SID.parse().unwrap(),
        app: APP.parse().unwrap(),
        accepted_at,
        expires_at: accepted_at + SignedDuration::from_hours(1),
        called: "+86 138".into(),
        number: PhoneNumber::from_stored("8613800000000".into(), Some("3627".into())),
        caller: Some("864001234567".into()),
        prompt: Prompt {
            speech: Some(Speech {
                text: "你好 <&>\"'".into(),
                speed: -500,
                volume: 20,
                pitch: 1,
                background: 6,
            }),
            files: vec![AudioFile {
                name: "a.wav".parse().unwrap(),
                content: ContentId::test_file(),
            }],
            plays: 3,
        },
        max_talk: Some(60),
        resp_url: Some(RespUrl::parse("http://h/cb?a=1&b=2").unwrap()),
        user_data: Some("数据\r\n\t🎉".into()),
    }
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
    };
    let changed = store.change_application(&app_id(), change).await.unwrap();
    assert_eq!(
        store.application(&app_id()).await.unwrap(),
        Some(changed.clone())
    );
    assert_eq!(
        store.applications(&SID.parse().unwrap()).await.unwrap(),
        [changed]
    );
    assert_eq!(
        store
            .applications(&"f".repeat(32).parse().unwrap())
            .await
            .unwrap(),
        []
    );
}

async fn an_accepted_call_is_queued_and_belongs_to_its_account(database: Database) {
    let store = with_account(&database).await;
    store.accept_call(call(1)).await.unwrap();
    let progress = store
        .call_progress(&SID.parse().unwrap(), &call(1).sid)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (progress.state, progress.outcome, progress.digit()),
        (CallState::Queued, None, '3')
    );
    assert_eq!(
        store
            .call_progress(&"f".repeat(32).parse().unwrap(), &call(1).sid)
            .await
            .unwrap(),
        None
    );
    assert_eq!(
        store
            .call_progress(&SID.parse().unwrap(), &call(2).sid)
            .await
            .unwrap(),
        None
    );
}

async fn accepting_the_same_call_again_changes_nothing(database: Database) {
    let store = with_account(&database).await;
    for _ in 0..2 {
        store.accept_call(call(1)).await.unwrap();
    }
    assert!(
        store
            .call_progress(&SID.parse().unwrap(), &call(1).sid)
            .await
            .unwrap()
            .is_some()
    );
}

async fn thousands_of_calls_at_once_are_all_there(database: Database) {
    let store = with_account(&database).await;
    let mut accepting = tokio::task::JoinSet::new();
    for number in 0..3000 {
        let store = Arc::clone(&store);
        accepting.spawn(async move { store.accept_call(call(number)).await });
    }
    while let Some(result) = accepting.join_next().await {
        result.unwrap().unwrap();
    }
    for number in 0..3000 {
        assert!(is_there(&*store, &call(number).sid).await, "{number}");
    }
}

async fn what_was_accepted_survives_a_new_opening(database: Database) {
    let store = with_account(&database).await;
    store.accept_call(call(1)).await.unwrap();
    store.close().await;
    let store = open(&database).await;
    assert!(is_there(&*store, &call(1).sid).await);
    assert_eq!(store.accounts().await.unwrap().len(), 1);
}

async fn two_openings_of_one_empty_database_at_once_both_succeed(database: Database) {
    let supervisor = Supervisor::new();
    let (first, second) = tokio::join!(database.open(&supervisor), database.open(&supervisor));
    first.unwrap().ready().await.unwrap();
    second.unwrap().ready().await.unwrap();
}

async fn a_store_that_is_closed_says_so(database: Database) {
    let store = with_account(&database).await;
    store.close().await;
    assert!(matches!(
        store.accept_call(call(1)).await,
        Err(StoreError::Failed(_))
    ));
}

async fn unknown_voice_files_are_none(database: Database) {
    let store = with_account(&database).await;
    let names = ["a.wav".parse().unwrap(), "b.wav".parse().unwrap()];
    for owner in [FileOwner::Application, FileOwner::Platform] {
        assert_eq!(
            store.audio_files(&app_id(), owner, &names).await.unwrap(),
            [None, None]
        );
    }
}

fn added(owner: &AudioOwner, name: &str, content: &str) -> AddedFile {
    AddedFile {
        owner: owner.clone(),
        name: name.parse().unwrap(),
        content: ContentId::of(content.as_bytes()),
        bytes: 20_000_000,
        duration: 1_234,
        added_at: "2026-11-15T02:35:09.123Z".parse().unwrap(),
    }
}

async fn a_voice_file_means_what_was_added_last_and_belongs_to_its_owner(database: Database) {
    let store = with_account(&database).await;
    let (own, common) = (AudioOwner::Application(app_id()), AudioOwner::Platform);
    let names: Vec<_> = ["欢迎.wav", "a.wav", "B.wav"]
        .map(|name| name.parse().unwrap())
        .into();
    let files = names
        .iter()
        .map(|name: &FileName| added(&own, name.as_str(), "old"));
    store.add_audio_files(files.collect()).await.unwrap();
    store
        .add_audio_files(vec![added(&own, "a.wav", "new")])
        .await
        .unwrap();
    store
        .add_audio_files(vec![added(&common, "a.wav", "common")])
        .await
        .unwrap();

    let found = store.audio_files_of(&own).await.unwrap();
    let wanted = [
        added(&own, "B.wav", "old"),
        added(&own, "a.wav", "new"),
        added(&own, "欢迎.wav", "old"),
    ];
    assert_eq!(found, wanted);
    let contents = |files: &[AddedFile]| {
        files
            .iter()
            .map(|file| Some(file.content.clone()))
            .collect::<Vec<_>>()
    };
    let [capital, small, han] = &wanted;
    assert_eq!(
        store
            .audio_files(&app_id(), FileOwner::Application, &names)
            .await
            .unwrap(),
        contents(&[han.clone(), small.clone(), capital.clone()])
    );
    assert_eq!(
        store
            .audio_files(&app_id(), FileOwner::Platform, &names[1..2])
            .await
            .unwrap(),
        contents(&[added(&common, "a.wav", "common")])
    );

    // Named, or wanted by a call that waits: the test's call wants the test file.
    let mut in_use: HashSet<_> = ["old", "new", "common"]
        .map(|text| ContentId::of(text.as_bytes()))
        .into();
    assert_eq!(store.audio_contents_in_use().await.unwrap(), in_use);
    store.accept_call(call(1)).await.unwrap();
    in_use.insert(ContentId::test_file());
    assert_eq!(store.audio_contents_in_use().await.unwrap(), in_use);

    store.remove_audio_file(&own, &names[1]).await.unwrap();
    let again = store.remove_audio_file(&own, &names[1]).await;
    assert!(matches!(again, Err(StoreError::Missing(_))), "{again:?}");
    assert_eq!(store.audio_files_of(&own).await.unwrap().len(), 2);
    assert_eq!(store.audio_files_of(&common).await.unwrap().len(), 1);
}

async fn is_there(store: &dyn Store, sid: &CallSid) -> bool {
    store
        .call_progress(&SID.parse().unwrap(), sid)
        .await
        .unwrap()
        .is_some()
}
