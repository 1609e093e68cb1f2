//! Writes a bill to its place. The file is written aside, synced and then renamed, so that it is either whole or missing.

use std::sync::Arc;

use anyhow::ensure;
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStoreExt, UploadPart};

use super::Billing;
use super::stream::{BillFormat, BillStream, WrittenBill};
use crate::domain::bill::keywords::Keywords;
use crate::domain::bill::{BillFile, BillOf};

/// Object stores require parts of at least this size, except the last one.
const PART: usize = 5 << 20;

/// Writes a bill. If it was written before (`known`), the new bytes must be the same, or the file is not replaced.
pub async fn write(
    billing: &Billing,
    of: &BillOf,
    keywords: Option<Keywords>,
    place: &Path,
    known: Option<&BillFile>,
) -> anyhow::Result<WrittenBill> {
    let zone = billing.clock.zone().clone();
    let store = Arc::clone(&billing.store);
    let format = match known {
        Some(known) => billing.recounted(known).await?.1,
        None => BillFormat::Csv,
    };
    let stream = BillStream::new(store, of.clone(), zone, format, keywords);
    let mut upload = billing.objects.put_multipart(place).await?;
    match send(stream, &mut *upload, known).await {
        Ok(written) => Ok(written),
        Err(error) => {
            // If this fails, the file left aside is swept up later.
            let _ = upload.abort().await;
            Err(error)
        }
    }
}

/// Sends a bill in parts. One part is being sent while the next is made.
async fn send(
    mut stream: BillStream,
    upload: &mut dyn MultipartUpload,
    known: Option<&BillFile>,
) -> anyhow::Result<WrittenBill> {
    let mut under_way: Option<UploadPart> = None;
    let mut part = Vec::with_capacity(PART + (1 << 20));
    while let Some(bytes) = stream.next().await? {
        part.extend_from_slice(&bytes);
        if part.len() >= PART {
            if let Some(sent) = under_way.take() {
                sent.await?;
            }
            let full = std::mem::replace(&mut part, Vec::with_capacity(PART + (1 << 20)));
            under_way = Some(upload.put_part(full.into()));
        }
    }
    if let Some(sent) = under_way {
        sent.await?;
    }
    if !part.is_empty() {
        upload.put_part(part.into()).await?;
    }
    let written = stream.finish()?;
    if let Some(known) = known {
        ensure!(
            known.sha256 == written.sha256,
            "the bill {} was gone, and what its lines say now is not what it was",
            known.object
        );
    }
    upload.complete().await?;
    Ok(written)
}
