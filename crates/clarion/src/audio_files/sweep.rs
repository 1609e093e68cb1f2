//! Removes bytes that no name means any more: files that were replaced or removed, once no waiting call needs them.

use std::collections::HashSet;
use std::time::Duration;

use futures_util::TryStreamExt;
use jiff::{SignedDuration, Timestamp};
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};

use super::{AudioFiles, place};
use crate::domain::prompt::ContentId;
use crate::store::Store;

/// Time between two looks for unused bytes.
pub const PAUSE: Duration = Duration::from_secs(600);
/// Younger bytes may belong to an upload whose name is not stored yet.
const YOUNG: SignedDuration = SignedDuration::from_hours(1);

/// The contents that were unused at the last look. A call may be about to be accepted with a file that has just been replaced, so only
/// contents that are unused at two looks in a row are removed.
#[derive(Debug, Default)]
pub struct Sweep {
    unused: HashSet<ContentId>,
}

impl Sweep {
    /// Looks once and returns how many files it removed.
    pub async fn step(
        &mut self,
        files: &AudioFiles,
        store: &dyn Store,
        now: Timestamp,
    ) -> anyhow::Result<usize> {
        let objects: Vec<_> = files.objects.list(None).try_collect().await?;
        release(&objects, store, now).await?;
        let old = contents(objects.iter().filter(|object| is_old(object, now)));
        let used = store.audio_contents_in_use().await?;
        let unused: HashSet<_> = old.difference(&used).cloned().collect();
        let mut removed = 0;
        for content in unused.intersection(&self.unused) {
            // An upload of the same bytes may have made them young again.
            let place = place(content);
            if is_old(&files.objects.head(&place).await?, now) {
                files.objects.delete(&place).await?;
                removed += 1;
            }
        }
        self.unused = unused;
        Ok(removed)
    }
}

/// Takes the charges back for bytes that are gone, and for those that others have a name for.
async fn release(objects: &[ObjectMeta], store: &dyn Store, now: Timestamp) -> anyhow::Result<()> {
    let before = now - YOUNG;
    let mut dropped = store.dropped_audio(before).await?;
    let there = contents(objects.iter());
    dropped.retain(|charge| charge.is_named_by_others || !there.contains(&charge.content));
    if !dropped.is_empty() {
        store.release_audio(dropped, before).await?;
    }
    Ok(())
}

fn contents<'a>(objects: impl Iterator<Item = &'a ObjectMeta>) -> HashSet<ContentId> {
    objects
        .filter_map(|object| object.location.filename())
        .map(|name| ContentId::from_stored(name.to_owned()))
        .collect()
}

fn is_old(object: &ObjectMeta, now: Timestamp) -> bool {
    object.last_modified.timestamp() < (now - YOUNG).as_second()
}
