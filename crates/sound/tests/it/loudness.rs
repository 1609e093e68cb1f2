//! Every prompt is as loud as the others at the other end of the line, whoever made it and however loud it was.

use sound::renderer::{Piece, Requester};
use sound::wav::mono_16_bit;
use sound::{PromptRenderer, RendererSettings, Voice, loudness};
use supervisor::Supervisor;

use super::measure::floats;
use super::support::{embedded, sine, speech};

const TARGET: f32 = -23.0;

fn file(name: &str, samples: &[f64]) -> Piece {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "no sample is louder than 1"
    )]
    let whole: Vec<i16> = samples
        .iter()
        .map(|sample| (sample * 32_767.0) as i16)
        .collect();
    let bytes = mono_16_bit(&whole, 8000);
    Piece::File {
        content: name.to_owned(),
        read: Box::new(move || Ok(bytes)),
    }
}

/// Bursts of a tone, as loud as said.
fn bursts(strength: f64) -> Vec<f64> {
    let tone = sine(800.0, 8000, 0.3, strength);
    let pause = vec![0.0; 800];
    [tone.clone(), pause.clone(), tone.clone(), pause, tone].concat()
}

fn spoken(text: &str) -> Piece {
    Piece::Speech(speech(text, Voice::default()))
}

#[tokio::test]
async fn every_prompt_is_as_loud_as_the_others() {
    let renderer =
        PromptRenderer::open(&Supervisor::new(), &RendererSettings::default(), embedded()).unwrap();
    let pieces = [
        (
            "English",
            spoken("Your order has been shipped and will arrive tomorrow."),
        ),
        ("Chinese", spoken("您的快递已经到达，请及时领取。")),
        ("a word", spoken("Yes.")),
        ("a loud file", file("loud", &bursts(0.95))),
        ("a soft file", file("soft", &bursts(0.01))),
        ("the tune", Piece::TestTune),
    ];
    for (name, piece) in pieces {
        let sound = renderer
            .piece(Requester("anyone"), piece)
            .ready()
            .await
            .unwrap();
        let samples = floats(&sound.decode());
        let loudness = loudness::integrated(&samples).unwrap();
        assert!((loudness - TARGET).abs() < 1.0, "{name}: {loudness} LUFS");
        assert!(samples.iter().all(|sample| sample.abs() < 0.98), "{name}");
    }
}
