//! The model, on one thread.

use std::collections::HashMap;

use anyhow::{Context, anyhow, ensure};
use ort::environment::Environment;
use ort::session::Session;
use ort::value::Tensor;

use crate::tokens::MAX_TOKENS;
use crate::{Installation, MODEL, RUNTIME};

/// Numbers that describe how a speaker speaks a text of some length.
const STYLE: usize = 256;
/// Bytes of a number.
const WIDTH: usize = 4;

pub struct Model {
    session: Session,
    /// The session needs it for as long as it lives.
    _environment: Environment,
    /// Of each speaker, all styles one after the other.
    speakers: HashMap<String, Vec<f32>>,
}

impl Model {
    pub fn open(installation: &Installation) -> anyhow::Result<Self> {
        let library = installation.folder().join(RUNTIME);
        let environment = ort::init_from(&library)
            .map_err(|error| anyhow!("{}: {error}", library.display()))?
            .with_telemetry(false)
            .build()?;
        let plain = |error: ort::Error<ort::session::builder::SessionBuilder>| anyhow!("{error}");
        let mut builder = Session::builder(&environment)?
            .with_intra_threads(1)
            .map_err(plain)?
            .with_inter_threads(1)
            .map_err(plain)?;
        let session = builder
            .commit_from_file(installation.folder().join(MODEL))
            .context("the model")?;
        Ok(Self {
            session,
            _environment: environment,
            speakers: HashMap::new(),
        })
    }

    /// The samples of one chunk.
    pub fn speak(
        &mut self,
        installation: &Installation,
        tokens: &[i64],
        speaker: &str,
        tempo: f32,
    ) -> anyhow::Result<Vec<f32>> {
        ensure!(tokens.len() <= MAX_TOKENS, "too many tokens");
        let style = self.style(installation, speaker, tokens.len())?;
        // A token that means nothing stands before and behind them.
        let padded: Vec<i64> = [&[0], tokens, &[0]].concat();
        let length = i64::try_from(padded.len())?;
        let style_length = i64::try_from(STYLE)?;
        let names: Vec<String> = self
            .session
            .inputs()
            .iter()
            .map(|input| input.name().to_owned())
            .collect();
        let [ids, styles, speeds] = names.as_slice() else {
            return Err(anyhow!("the model has other inputs: {}", names.join(", ")));
        };
        let inputs = ort::inputs![
            ids.clone() => Tensor::from_array(([1, length], padded))?,
            styles.clone() => Tensor::from_array(([1, style_length], style))?,
            speeds.clone() => Tensor::from_array(([1], vec![tempo]))?,
        ];
        let outputs = self.session.run(inputs)?;
        let (_, samples) = outputs[0].try_extract_tensor::<f32>()?;
        Ok(samples.to_vec())
    }

    /// How a speaker speaks a text of so many tokens.
    fn style(
        &mut self,
        installation: &Installation,
        speaker: &str,
        tokens: usize,
    ) -> anyhow::Result<Vec<f32>> {
        if !self.speakers.contains_key(speaker) {
            let bytes = std::fs::read(installation.speaker(speaker)?)?;
            let numbers = bytes.chunks_exact(WIDTH).map(|number| {
                let number: [u8; WIDTH] = number.try_into().unwrap_or_default();
                f32::from_le_bytes(number)
            });
            self.speakers.insert(speaker.to_owned(), numbers.collect());
        }
        let styles = &self.speakers[speaker];
        let count = styles.len() / STYLE;
        ensure!(count > 0, "the file of speaker {speaker} is empty");
        let place = tokens.min(count - 1) * STYLE;
        Ok(styles[place..place + STYLE].to_vec())
    }
}
