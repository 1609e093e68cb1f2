//! Prompts: made once, remembered, shared, and never in the way of whoever asks.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use sound::renderer::{Counts, Piece, Requester};
use sound::speech::{Espeak, NamedVoice, Speaker, SpeakingTime, SpeechEngine, SpeechError};
use sound::spelled::SpelledCharacter;
use sound::text::Language;
use sound::wav::mono_16_bit;
use sound::{PlaylistItem, PromptError, PromptRenderer, RendererSettings, Utterance, VoiceOptions};
use supervisor::Supervisor;

use super::support::{embedded, spoken};

const ANYONE: Requester<'static> = Requester("anyone");
/// A limit for failures only.
const PATIENCE: Duration = Duration::from_secs(60);

fn file(content: &str, samples: usize) -> Piece {
    let bytes = mono_16_bit(&vec![1000; samples], 8000);
    Piece::File {
        content: content.into(),
        read: Box::new(move || Ok(bytes)),
    }
}

fn open(settings: &RendererSettings) -> PromptRenderer {
    PromptRenderer::open(&Supervisor::new(), settings, embedded()).unwrap()
}

fn on_disk(folder: &Path, bytes: u64) -> RendererSettings {
    RendererSettings {
        disk: Some((folder.to_owned(), bytes)),
        ..RendererSettings::default()
    }
}

/// An engine that speaks when it is told to, and counts how often it was asked.
#[derive(Debug)]
struct Waiting {
    asked: AtomicU32,
    go: std::sync::Mutex<Receiver<Result<(), ()>>>,
}

impl Waiting {
    fn new() -> (Arc<Self>, Sender<Result<(), ()>>) {
        let (sender, receiver) = channel();
        let engine = Self {
            asked: AtomicU32::new(0),
            go: std::sync::Mutex::new(receiver),
        };
        (Arc::new(engine), sender)
    }
}

impl SpeechEngine for Waiting {
    fn identity(&self) -> String {
        "waiting".into()
    }

    fn speak(&self, _: &Utterance, _: &mut SpeakingTime<'_>) -> Result<Vec<f32>, SpeechError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let failed = SpeechError::Failed {
            who: "it".into(),
            reason: "told to".into(),
        };
        match self.go.lock().unwrap().recv() {
            Ok(Ok(())) => Ok(vec![0.1; 1600]),
            Ok(Err(())) => Err(failed),
            Err(std::sync::mpsc::RecvError) => {
                panic!("an engine that breaks must not break the prompt renderer")
            }
        }
    }
}

fn only(engine: Arc<Waiting>) -> Speaker {
    Speaker::new(Vec::new(), engine, PATIENCE)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prompt_is_made_once_however_many_wait_for_it_and_all_share_it() {
    let (engine, go) = Waiting::new();
    let renderer = PromptRenderer::open(
        &Supervisor::new(),
        &RendererSettings::default(),
        only(engine.clone()),
    )
    .unwrap();
    let ask = || renderer.piece(ANYONE, spoken("hello", VoiceOptions::default()));
    let waiting: Vec<_> = (0..10_000).map(|_| ask()).collect();
    go.send(Ok(())).unwrap();
    let mut sounds = Vec::new();
    for pending in waiting {
        sounds.push(pending.ready().await.unwrap());
    }
    assert_eq!(engine.asked.load(Ordering::Relaxed), 1);
    assert!(sounds.iter().all(|sound| Arc::ptr_eq(
        sound.sound.bytes(g711::Codec::Pcma),
        sounds[0].sound.bytes(g711::Codec::Pcma)
    )));
    assert!(Arc::ptr_eq(
        ask().ready().await.unwrap().sound.bytes(g711::Codec::Pcmu),
        sounds[0].sound.bytes(g711::Codec::Pcmu)
    ));
    assert_eq!(
        renderer.counts(),
        Counts {
            from_memory: 1,
            joined: 9_999,
            made: 1,
            bytes: 3_200,
            ..Counts::default()
        }
    );
}

#[tokio::test]
async fn everything_that_changes_the_sound_makes_another_prompt() {
    let (engine, go) = Waiting::new();
    let renderer = PromptRenderer::open(
        &Supervisor::new(),
        &RendererSettings::default(),
        only(engine.clone()),
    )
    .unwrap();
    let natural = VoiceOptions::default();
    let voices = [
        natural,
        VoiceOptions {
            speed: 1,
            ..natural
        },
        VoiceOptions {
            volume: 1,
            ..natural
        },
        VoiceOptions {
            pitch: 1,
            ..natural
        },
        VoiceOptions {
            background: 1,
            ..natural
        },
    ];
    for voice in voices {
        for text in ["a", "b"] {
            go.send(Ok(())).unwrap();
            renderer
                .piece(ANYONE, spoken(text, voice))
                .ready()
                .await
                .unwrap();
        }
    }
    assert_eq!(engine.asked.load(Ordering::Relaxed), 10);
}

#[tokio::test]
async fn a_failure_is_told_to_all_who_wait_and_remembered_only_briefly() {
    let (engine, go) = Waiting::new();
    let settings = RendererSettings {
        failure_ttl: Duration::from_millis(50),
        ..RendererSettings::default()
    };
    let renderer =
        PromptRenderer::open(&Supervisor::new(), &settings, only(engine.clone())).unwrap();
    let ask = || renderer.piece(ANYONE, spoken("hello", VoiceOptions::default()));
    let (first, second) = (ask(), ask());
    go.send(Err(())).unwrap();
    assert!(matches!(first.ready().await, Err(PromptError::Speech(_))));
    assert!(matches!(second.ready().await, Err(PromptError::Speech(_))));
    let until = tokio::time::Instant::now() + Duration::from_secs(60);
    go.send(Ok(())).unwrap();
    while ask().ready().await.is_err() {
        assert!(tokio::time::Instant::now() < until);
        tokio::task::yield_now().await;
    }
    assert_eq!(engine.asked.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn an_engine_that_panics_fails_one_prompt_and_not_the_renderer() {
    let (engine, go) = Waiting::new();
    drop(go);
    let renderer = PromptRenderer::open(
        &Supervisor::new(),
        &RendererSettings::default(),
        only(engine),
    )
    .unwrap();
    let broken = renderer
        .piece(ANYONE, spoken("hello", VoiceOptions::default()))
        .ready()
        .await;
    assert_eq!(broken.unwrap_err(), PromptError::Broken);
    assert_eq!(
        renderer
            .piece(ANYONE, file("a", 160))
            .ready()
            .await
            .unwrap()
            .sound
            .frames(),
        1
    );
}

#[tokio::test]
async fn more_prompts_than_may_wait_are_refused_at_once() {
    let (engine, go) = Waiting::new();
    let settings = RendererSettings {
        workers: 1,
        waiting: 2,
        ..RendererSettings::default()
    };
    let renderer =
        PromptRenderer::open(&Supervisor::new(), &settings, only(engine.clone())).unwrap();
    let ask = |text: &str| renderer.piece(ANYONE, spoken(text, VoiceOptions::default()));
    let first = ask("0");
    while engine.asked.load(Ordering::Relaxed) == 0 {
        tokio::task::yield_now().await;
    }
    let waiting = [ask("1"), ask("2")];
    assert_eq!(ask("3").ready().await.unwrap_err(), PromptError::Busy);
    for _ in 0..4 {
        go.send(Ok(())).unwrap();
    }
    for pending in [first].into_iter().chain(waiting) {
        pending.ready().await.unwrap();
    }
    // The refusal was not remembered.
    ask("3").ready().await.unwrap();
}

#[tokio::test]
async fn what_was_made_before_a_restart_comes_from_disk_and_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let text = || spoken("hello", VoiceOptions::default());
    let before = open(&on_disk(folder.path(), 1 << 20))
        .piece(ANYONE, text())
        .ready()
        .await
        .unwrap();
    let renderer = open(&on_disk(folder.path(), 1 << 20));
    let after = renderer.piece(ANYONE, text()).ready().await.unwrap();
    assert_eq!(before, after);
    assert_eq!(renderer.counts().from_disk, 1);
    assert_eq!(renderer.counts().made, 0);
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for shard in std::fs::read_dir(folder).unwrap() {
        for file in std::fs::read_dir(shard.unwrap().path()).unwrap() {
            found.push(file.unwrap().path());
        }
    }
    found
}

/// Which characters were spoken of late says something about codes.
#[tokio::test]
async fn a_character_of_a_code_is_remembered_in_memory_and_never_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let character = || Piece::Character(SpelledCharacter::new('7', Language::English).unwrap());
    let renderer = open(&on_disk(folder.path(), 1 << 20));
    for piece in [
        character(),
        spoken("hello", VoiceOptions::default()),
        character(),
    ] {
        renderer.piece(ANYONE, piece).ready().await.unwrap();
    }
    assert_eq!(
        (renderer.counts().made, renderer.counts().from_disk),
        (2, 0)
    );
    assert_eq!(files(folder.path()).len(), 1, "the sentence alone");
    drop(renderer);
    let renderer = open(&on_disk(folder.path(), 1 << 20));
    renderer.piece(ANYONE, character()).ready().await.unwrap();
    assert_eq!(
        (renderer.counts().made, renderer.counts().from_disk),
        (1, 0)
    );
}

#[tokio::test]
async fn a_damaged_file_on_disk_is_made_again_and_leftovers_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let right = open(&on_disk(folder.path(), 1 << 20))
        .piece(ANYONE, file("a", 1600))
        .ready()
        .await
        .unwrap();
    let kept = files(folder.path());
    let mut bytes = std::fs::read(&kept[0]).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&kept[0], bytes).unwrap();
    std::fs::write(kept[0].with_extension("1-1.unfinished"), b"half").unwrap();
    let renderer = open(&on_disk(folder.path(), 1 << 20));
    assert_eq!(files(folder.path()).len(), 1);
    assert_eq!(
        renderer
            .piece(ANYONE, file("a", 1600))
            .ready()
            .await
            .unwrap(),
        right
    );
    assert_eq!(renderer.counts().made, 1);
}

#[tokio::test]
async fn memory_and_disk_stay_within_their_bounds() {
    let folder = tempfile::tempdir().unwrap();
    let settings = RendererSettings {
        memory_bytes: 10_000,
        ..on_disk(folder.path(), 20_000)
    };
    let renderer = open(&settings);
    for number in 0..20 {
        renderer
            .piece(ANYONE, file(&number.to_string(), 1600))
            .ready()
            .await
            .unwrap();
        assert!(renderer.counts().bytes <= 10_000);
    }
    let size = || {
        files(folder.path())
            .iter()
            .map(|file| file.metadata().unwrap().len())
            .sum::<u64>()
    };
    assert!((15_000..=20_000).contains(&size()), "{}", size());
    drop(renderer);
    // A smaller bound holds from the next start on.
    let _renderer = open(&on_disk(folder.path(), 7_000));
    assert!(size() <= 7_000, "{}", size());
}

#[tokio::test]
async fn a_prompt_is_its_pieces_in_order_and_its_repetitions_share_them() {
    let renderer = open(&RendererSettings {
        gap: Duration::from_millis(800),
        ..RendererSettings::default()
    });
    let pieces = vec![
        spoken("hello", VoiceOptions::default()),
        file("a", 1600),
        Piece::TestTune,
    ];
    let list = renderer.prompt(ANYONE, pieces, 2).await.unwrap();
    let steps: Vec<_> = list.steps().collect();
    assert_eq!(steps.len(), 7);
    assert_eq!(steps[3], PlaylistItem::Silence(Duration::from_millis(800)));
    assert_eq!(steps[1], steps[5]);
    assert!(matches!(steps[2], PlaylistItem::Sound(tune) if tune.seconds() > 6.0));
    let failed = renderer
        .prompt(
            ANYONE,
            vec![Piece::File {
                content: "b".into(),
                read: Box::new(|| Err(PromptError::Missing("gone".into()))),
            }],
            1,
        )
        .await;
    assert_eq!(failed.unwrap_err(), PromptError::Missing("gone".into()));
    let failed = renderer
        .prompt(
            ANYONE,
            vec![Piece::File {
                content: "c".into(),
                read: Box::new(|| Ok(b"ID3".to_vec())),
            }],
            1,
        )
        .await;
    assert_eq!(
        failed.unwrap_err().to_string(),
        "the audio file is not playable: this is an MP3 file; a voice file must be WAV"
    );
}

#[tokio::test]
async fn a_voice_that_stood_in_is_not_remembered_for_long_nor_kept_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, go) = Waiting::new();
    let better = NamedVoice::new("better", engine.clone());
    let speaker = Speaker::new(vec![better], Arc::new(Espeak::default()), PATIENCE);
    let settings = RendererSettings {
        failure_ttl: Duration::from_millis(50),
        ..on_disk(folder.path(), 1 << 20)
    };
    let renderer = PromptRenderer::open(&Supervisor::new(), &settings, speaker).unwrap();
    let ask = || renderer.piece(ANYONE, spoken("hello", VoiceOptions::default()));
    go.send(Err(())).unwrap();
    let fallback = ask().ready().await.unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    go.send(Ok(())).unwrap();
    let until = tokio::time::Instant::now() + Duration::from_secs(60);
    while ask().ready().await.unwrap() == fallback {
        assert!(tokio::time::Instant::now() < until);
        tokio::task::yield_now().await;
    }
    assert_eq!(engine.asked.load(Ordering::Relaxed), 2);
}
