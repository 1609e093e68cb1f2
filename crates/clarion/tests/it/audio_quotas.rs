//! Quotas of audio files: what one customer uploads never takes the disk from others.

use clarion::audio_files::AudioFiles;
use clarion::audio_files::sweep::Sweep;
use clarion::config::Config;
use clarion::domain::prompt::{AudioOwner, ContentId};
use jiff::SignedDuration;
use sound::wav::mono_16_bit;

use crate::audio_files::{upload, written_at, zip};
use crate::support::{TestServer, app_id, status_code};

/// About 300 KB; the strength tells one from another.
fn long_wav(strength: i16) -> Vec<u8> {
    mono_16_bit(&vec![strength; 150_000], 8000)
}

async fn code_of_upload(server: &TestServer, name: &str, bytes: &[u8]) -> String {
    status_code(&upload(server, name, bytes).await).to_owned()
}

/// Each upload replaces the one before: by its names the application has one file, and on the disk are all of them.
#[tokio::test]
async fn replaced_files_count_until_they_are_swept() {
    let settings = "[audio_files]\nmax_account_mb = 1\n";
    let server = TestServer::start_with(settings).await;
    for strength in [1, 2, 3] {
        let code = code_of_upload(&server, "a.wav", &long_wav(strength)).await;
        assert_eq!(code, "000000");
    }
    let refused = upload(&server, "a.wav", &long_wav(4)).await;
    assert_eq!(status_code(&refused), "190015", "{refused}");
    assert!(refused.contains("1 MB are allowed"), "{refused}");
    // What is there already takes no more room, and the file that was there is still played.
    assert_eq!(
        code_of_upload(&server, "b.wav", &long_wav(3)).await,
        "000000"
    );
    let owner = AudioOwner::Application(app_id());
    assert_eq!(server.store.audio_files_of(&owner).await.unwrap().len(), 2);

    let data = server.folder.path().join("data");
    let config = Config::from_parts(&format!("data_dir = {data:?}\n"), &[]).unwrap();
    let files = AudioFiles::open(&config).unwrap();
    let written = written_at(&config, &ContentId::of(&long_wav(3)));
    // Later than the clock of the files and that of the server.
    let later = written.max(server.clock.now()) + SignedDuration::from_hours(2);
    let mut sweep = Sweep::default();
    for removed in [0, 2, 0] {
        let step = sweep.step(&files, &*server.store, later).await;
        assert_eq!(step.unwrap(), removed);
    }
    assert_eq!(
        code_of_upload(&server, "a.wav", &long_wav(4)).await,
        "000000"
    );
    assert_eq!(
        code_of_upload(&server, "a.wav", &long_wav(5)).await,
        "000000"
    );
    assert_eq!(
        code_of_upload(&server, "a.wav", &long_wav(6)).await,
        "190015"
    );
}

/// A zip of a few kilobytes becomes megabytes on the disk: those count.
#[tokio::test]
async fn a_zip_file_is_refused_whole_if_its_files_exceed_the_quota() {
    let settings = "[audio_files]\nmax_app_mb = 1\n";
    let server = TestServer::start_with(settings).await;
    let wavs: Vec<_> = (1..=4)
        .map(|strength| (format!("{strength}.wav"), long_wav(strength)))
        .collect();
    let files: Vec<_> = wavs
        .iter()
        .map(|(name, wav)| (name.as_str(), wav.as_slice()))
        .collect();
    assert_eq!(
        code_of_upload(&server, "all.zip", &zip(&files)).await,
        "190015"
    );
    let owner = AudioOwner::Application(app_id());
    assert!(
        server
            .store
            .audio_files_of(&owner)
            .await
            .unwrap()
            .is_empty()
    );
    assert!(
        !server
            .folder
            .path()
            .join("data/voices")
            .read_dir()
            .unwrap()
            .any(|_| true),
        "nothing was written"
    );
    assert_eq!(
        code_of_upload(&server, "some.zip", &zip(&files[..3])).await,
        "000000"
    );
}

#[tokio::test]
async fn uploads_in_an_hour_are_counted() {
    let server = TestServer::start_with("[audio_files]\nuploads_per_hour = 2\n").await;
    for (name, code) in [
        ("a.wav", "000000"),
        ("b.wav", "000000"),
        ("c.wav", "190015"),
    ] {
        assert_eq!(code_of_upload(&server, name, &long_wav(1)).await, code);
    }
}
