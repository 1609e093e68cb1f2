//! Requesters take turns: however much one of them asks for, another waits for the work that is under way and no more.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sound::renderer::{Counts, Pending, Piece, Requester};
use sound::speech::{Espeak, NamedVoice, Speaker, SpeakingTime, SpeechEngine, SpeechError};
use sound::{PromptError, PromptRenderer, RendererSettings, Utterance, VoiceChoice, VoiceOptions};
use supervisor::Supervisor;

use super::support::{speech, spoken};

/// A limit for failures only.
const PATIENCE: Duration = Duration::from_secs(60);

/// An engine that says what it begins with, and goes on when it is told to.
#[derive(Debug)]
struct Costly {
    begun: Mutex<Sender<String>>,
    go: Mutex<Receiver<()>>,
}

impl Costly {
    /// With what hears of each text that it begins, and what makes it go on.
    fn new() -> (Self, Receiver<String>, Sender<()>) {
        let ((begin, begun), (go, gone)) = (channel(), channel());
        let engine = Self {
            begun: Mutex::new(begin),
            go: Mutex::new(gone),
        };
        (engine, begun, go)
    }
}

impl SpeechEngine for Costly {
    fn identity(&self) -> String {
        "costly".into()
    }

    fn speak(
        &self,
        speech: &Utterance,
        time: &mut SpeakingTime<'_>,
    ) -> Result<Vec<f32>, SpeechError> {
        self.begun
            .lock()
            .unwrap()
            .send(speech.text.clone())
            .unwrap();
        for _ in 1..parts(&speech.text) {
            self.go.lock().unwrap().recv_timeout(PATIENCE).unwrap();
            time.let_others();
        }
        self.go.lock().unwrap().recv_timeout(PATIENCE).unwrap();
        Ok(vec![0.1; 160])
    }
}

/// A text has as many parts as it has semicolons, and one.
fn parts(text: &str) -> usize {
    text.matches(';').count() + 1
}

struct Workshop {
    renderer: PromptRenderer,
    begun: Receiver<String>,
    go: Sender<()>,
    pending: HashMap<String, Vec<Pending>>,
}

impl Workshop {
    fn new(workers: usize, waiting: usize) -> Self {
        let (engine, begun, go) = Costly::new();
        let settings = RendererSettings {
            workers,
            waiting,
            ..RendererSettings::default()
        };
        let speaker = Speaker::new(Vec::new(), Arc::new(engine), PATIENCE);
        Self {
            renderer: PromptRenderer::open(&Supervisor::new(), &settings, speaker).unwrap(),
            begun,
            go,
            pending: HashMap::new(),
        }
    }

    fn ask(&mut self, requester: &str, text: &str) {
        let piece = spoken(text, VoiceOptions::default());
        let pending = self.renderer.piece(Requester(requester), piece);
        self.pending
            .entry(text.to_owned())
            .or_default()
            .push(pending);
    }

    fn next_begun(&self) -> String {
        self.begun.recv_timeout(PATIENCE).unwrap()
    }

    fn finish_one(&self) {
        self.go.send(()).unwrap();
    }

    fn result(&mut self, text: &str) -> Vec<Result<(), PromptError>> {
        let pending = self.pending.remove(text).unwrap();
        pending
            .into_iter()
            .map(|pending| pending.wait().map(|_| ()))
            .collect()
    }
}

/// Eight costly texts of one requester; as many as there are workers are under way.
fn with_eight_costly_texts(workers: usize) -> Workshop {
    let mut shop = Workshop::new(workers, 100);
    for number in 0..8 {
        shop.ask("greedy", &format!("costly {number}"));
    }
    for _ in 0..workers {
        shop.next_begun();
    }
    shop
}

#[test]
fn eight_costly_texts_delay_the_text_of_another_by_one_piece_of_work() {
    for workers in [1, 2, 4] {
        let mut shop = with_eight_costly_texts(workers);
        shop.ask("modest", "hello");
        shop.finish_one();
        assert_eq!(shop.next_begun(), "hello", "{workers} workers");
    }
}

#[test]
fn a_text_that_two_want_is_made_once_at_the_first_turn_of_either() {
    let mut shop = with_eight_costly_texts(1);
    shop.ask("modest", "costly 7");
    shop.finish_one();
    assert_eq!(shop.next_begun(), "costly 7");
    for _ in 0..7 {
        shop.finish_one();
    }
    for number in 0..8 {
        let wanted = if number == 7 { 2 } else { 1 };
        assert_eq!(
            shop.result(&format!("costly {number}")),
            vec![Ok(()); wanted]
        );
    }
    let counts = shop.renderer.counts();
    assert_eq!((counts.made, counts.joined), (8, 1));
    assert_eq!(
        Counts { bytes: 0, ..counts },
        Counts {
            made: 8,
            joined: 1,
            ..Counts::default()
        }
    );
}

#[test]
fn a_full_queue_of_one_requester_refuses_its_own_texts_and_not_those_of_another() {
    let mut shop = Workshop::new(1, 4);
    shop.ask("greedy", "under way");
    shop.next_begun();
    for number in 0..5 {
        shop.ask("greedy", &format!("costly {number}"));
    }
    assert_eq!(shop.result("costly 4"), [Err(PromptError::Busy)]);
    shop.ask("modest", "hello");
    assert_eq!(
        shop.result("costly 3"),
        [Err(PromptError::Busy)],
        "its place was needed"
    );
    shop.finish_one();
    assert_eq!(shop.next_begun(), "hello");
    for _ in 0..4 {
        shop.finish_one();
    }
    for text in ["hello", "costly 0", "costly 1", "costly 2"] {
        assert_eq!(shop.result(text), [Ok(())]);
    }
}

/// Every thread is at a long text of one requester: another waits for a part of it, not for its end. What was interrupted goes on afterwards.
#[test]
fn a_long_text_is_interrupted_for_a_requester_who_has_no_thread() {
    let mut shop = Workshop::new(1, 100);
    shop.ask("greedy", "one; two; three");
    assert_eq!(shop.next_begun(), "one; two; three");
    shop.ask("greedy", "more");
    shop.ask("modest", "a long one; too");
    shop.finish_one();
    assert_eq!(shop.next_begun(), "a long one; too");
    // It is interrupted in its turn, for a third.
    shop.ask("third", "hello");
    shop.finish_one();
    assert_eq!(shop.next_begun(), "hello");
    shop.finish_one();
    assert_eq!(shop.result("hello"), [Ok(())]);
    shop.finish_one();
    assert_eq!(shop.result("a long one; too"), [Ok(())]);
    shop.ask("fourth", "another");
    shop.finish_one();
    assert_eq!(shop.next_begun(), "another");
    shop.finish_one();
    shop.finish_one();
    assert_eq!(shop.result("one; two; three"), [Ok(())]);
    assert_eq!(shop.next_begun(), "more");
    shop.finish_one();
    assert_eq!(shop.result("more"), [Ok(())]);
}

/// A voice that hangs holds no more threads than those that want it may have.
#[test]
fn a_voice_that_hangs_delays_only_those_who_want_it() {
    for workers in [1, 3] {
        let (engine, begun, go) = Costly::new();
        let settings = RendererSettings {
            workers,
            ..RendererSettings::default()
        };
        let slow = NamedVoice::new("slow", Arc::new(engine));
        let speaker = Speaker::new(vec![slow], Arc::new(Espeak::default()), PATIENCE);
        let renderer = PromptRenderer::open(&Supervisor::new(), &settings, speaker).unwrap();
        let ask = |requester, text: &str, voice| {
            let piece = Piece::Speech {
                speech: speech(text, VoiceOptions::default()),
                choice: VoiceChoice {
                    name: Some(String::from(voice)),
                    is_private: false,
                },
            };
            renderer.piece(Requester(requester), piece)
        };
        let texts: Vec<_> = (0..8).map(|number| format!("costly {number}")).collect();
        let asked = texts.iter().map(|text| ask("greedy", text, "slow"));
        let pending: Vec<_> = asked.collect();
        for _ in 0..workers {
            begun.recv_timeout(PATIENCE).unwrap();
        }
        let quick = ask("greedy", "hello", "espeak").wait().unwrap();
        assert_eq!(quick.voice.as_deref(), Some("espeak"), "{workers} workers");
        assert!(begun.try_recv().is_err(), "no more of them are under way");
        for _ in &texts {
            go.send(()).unwrap();
        }
        for pending in pending {
            let piece = pending.wait().unwrap();
            assert_eq!(piece.voice.as_deref(), Some("slow"));
        }
    }
}
