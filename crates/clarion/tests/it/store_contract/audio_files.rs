//! Audio files: what a name means, and to whom.

use std::collections::HashSet;

use clarion::domain::prompt::{AddedFile, AudioOwner, ContentId, FileName, FileOwner};
use clarion::store::{Database, StoreError};

use super::order;
use super::{call, with_account};
use crate::support::app_id;

contract! {
    unknown_audio_files_are_none,
    an_audio_file_means_what_was_added_last_and_belongs_to_its_owner,
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

    store.remove_audio_file(&own, &names[1]).await.unwrap();
    let again = store.remove_audio_file(&own, &names[1]).await;
    assert!(matches!(again, Err(StoreError::Missing(_))), "{again:?}");
    assert_eq!(store.audio_files_of(&own).await.unwrap().len(), 2);
    assert_eq!(store.audio_files_of(&common).await.unwrap().len(), 1);
}
