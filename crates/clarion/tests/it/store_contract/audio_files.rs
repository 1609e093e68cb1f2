//! Audio files: what a name means, and to whom.

use std::collections::HashSet;
use std::sync::Arc;

use clarion::domain::audio_quota::{AudioCharge, AudioQuota};
use clarion::domain::call::NewCall;
use clarion::domain::notice::Notice;
use clarion::domain::notice::keys::NoticeKeys;
use clarion::domain::prompt::{
    AddedFile, AudioFile, AudioOwner, ContentId, FileName, FileOwner, Prompt,
};
use clarion::store::{Database, StoreError};

use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};

use super::order;
use super::{call, with_account};
use crate::support::app_id;

contract! {
    unknown_audio_files_are_none,
    an_audio_file_means_what_was_added_last_and_belongs_to_its_owner,
    what_an_application_has_on_the_disk_is_charged_until_it_is_released,
    uploads_of_an_account_at_once_never_exceed_its_quota,
}

async fn unknown_audio_files_are_none(database: Database) {
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

async fn an_audio_file_means_what_was_added_last_and_belongs_to_its_owner(database: Database) {
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
    store.accept_call(order(call(1))).await.unwrap();
    in_use.insert(ContentId::test_file());
    assert_eq!(store.audio_contents_in_use().await.unwrap(), in_use);
    // So is what asks for the key of a notice.
    let asks = NewCall {
        notice: Some(Arc::new(Notice {
            keys: Some(NoticeKeys {
                confirm: vec!['1'],
                replay: None,
                stop: None,
                wait: 10,
                question: Some(Prompt {
                    speech: None,
                    files: vec![AudioFile {
                        content: ContentId::of(b"question"),
                        name: "question.wav".parse().unwrap(),
                    }],
                    code: None,
                    plays: 1,
                }),
                voice: None,
            }),
            ..Notice::single()
        })),
        ..call(2)
    };
    store.accept_call(order(asks)).await.unwrap();
    in_use.insert(ContentId::of(b"question"));
    assert_eq!(store.audio_contents_in_use().await.unwrap(), in_use);

    store.remove_audio_file(&own, &names[1]).await.unwrap();
    let again = store.remove_audio_file(&own, &names[1]).await;
    assert!(matches!(again, Err(StoreError::Missing(_))), "{again:?}");
    assert_eq!(store.audio_files_of(&own).await.unwrap().len(), 2);
    assert_eq!(store.audio_files_of(&common).await.unwrap().len(), 1);
}

fn moment() -> Timestamp {
    "2026-11-15T02:35:09.123Z".parse().unwrap()
}

fn charge(contents: &[(&str, u64)]) -> AudioCharge {
    AudioCharge {
        app: app_id(),
        bytes: contents
            .iter()
            .map(|(content, bytes)| (ContentId::of(content.as_bytes()), *bytes))
            .collect(),
        at: moment(),
    }
}

async fn what_an_application_has_on_the_disk_is_charged_until_it_is_released(database: Database) {
    let store = with_account(&database).await;
    let quota = AudioQuota {
        app_bytes: Some(100),
        account_bytes: Some(1000),
        uploads_per_hour: Some(4),
    };
    let upload = async |contents: &[(&str, u64)]| {
        let charged = store.charge_audio(charge(contents), Some(quota)).await;
        charged.unwrap().is_ok()
    };
    assert!(upload(&[("a", 50), ("b", 40)]).await);
    assert!(!upload(&[("c", 11)]).await);
    // The same bytes again take no more room, and what was refused took none.
    assert!(upload(&[("a", 50), ("c", 10)]).await);
    assert!(!upload(&[("d", 1)]).await);
    // An operator is not refused, and what they add counts.
    let operator = store.charge_audio(charge(&[("e", 7)]), None).await;
    operator.unwrap().unwrap();

    // An application keeps what it has a name for.
    let own = AudioOwner::Application(app_id());
    let named = [added(&own, "a.wav", "a"), added(&own, "b.wav", "b")];
    store.add_audio_files(named.into()).await.unwrap();
    let common = added(&AudioOwner::Platform, "c.wav", "c");
    store.add_audio_files(vec![common]).await.unwrap();
    let later = moment() + SignedDuration::from_secs(1);
    assert!(store.dropped_audio(moment()).await.unwrap().is_empty());
    let mut dropped = store.dropped_audio(later).await.unwrap();
    dropped.sort_by_key(|charge| !charge.is_named_by_others);
    let contents: Vec<_> = dropped
        .iter()
        .map(|charge| charge.content.clone())
        .collect();
    assert_eq!(
        contents,
        ["c", "e"].map(|text| ContentId::of(text.as_bytes()))
    );
    assert!(dropped[0].is_named_by_others && !dropped[1].is_named_by_others);
    // What was charged again since then stays.
    store
        .release_audio(dropped.clone(), moment())
        .await
        .unwrap();
    assert!(!upload(&[("d", 1)]).await);
    store.release_audio(dropped, later).await.unwrap();
    assert!(upload(&[("d", 10)]).await);
    assert!(!upload(&[("f", 1)]).await);
    // The fourth upload is the last of the hour, though it takes no room.
    assert!(upload(&[("a", 50)]).await);
    assert!(!upload(&[("a", 50)]).await);

    let mut nobody = charge(&[("a", 1)]);
    nobody.app = "0".repeat(32).parse().unwrap();
    let missing = store.charge_audio(nobody, Some(quota)).await;
    assert!(
        matches!(missing, Err(StoreError::Missing(_))),
        "{missing:?}"
    );
}

async fn uploads_of_an_account_at_once_never_exceed_its_quota(database: Database) {
    let store = with_account(&database).await;
    let quota = AudioQuota {
        account_bytes: Some(55),
        ..AudioQuota::default()
    };
    let uploads = (0..20).map(|number| {
        let new = charge(&[(&format!("content {number}"), 10)]);
        store.charge_audio(new, Some(quota))
    });
    let charged = join_all(uploads).await;
    let taken = charged
        .iter()
        .filter(|charged| matches!(charged, Ok(Ok(()))));
    assert_eq!(taken.count(), 5, "{charged:?}");
    assert!(charged.iter().all(Result::is_ok), "{charged:?}");
}
