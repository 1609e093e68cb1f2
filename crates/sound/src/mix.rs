//! A voice as the telephone needs it, over a background sound. The background begins before the voice, makes room while it speaks, and fades out behind it.

use crate::{RATE, background, level, telephone};

/// The background against the voice, in dB: in the pauses, and while somebody speaks.
pub const OPEN_DB: f32 = -14.0;
pub const DUCKED_DB: f32 = -22.0;

/// The background is heard alone for this long before and behind the voice.
pub const LEAD: usize = RATE as usize * 6 / 10;
pub const TAIL: usize = RATE as usize;
const FADE_IN: usize = RATE as usize / 2;
const FADE_OUT: usize = RATE as usize * 9 / 10;

/// The voice is looked at in steps of 10 ms.
const STEP: usize = RATE as usize / 100;
/// The background gives way this long before a word and comes back this long behind it.
const STEPS_BEFORE: usize = 10;
const STEPS_BEHIND: usize = 35;

/// Makes a voice ready for the line at this loudness, and mixes the numbered background under it. Zero, or a number nobody knows, is none.
pub fn under(voice: Vec<f32>, number: u8, loudness: f32) -> Vec<f32> {
    let voice = telephone::mastered(voice, level::to_db(loudness));
    let Some(background) = background::sound(number) else {
        return voice;
    };
    let length = LEAD + voice.len() + TAIL;
    let (open, ducked) = (
        loudness * level::from_db(OPEN_DB),
        loudness * level::from_db(DUCKED_DB),
    );
    let mut mixed = vec![0.0; length];
    mixed[LEAD..LEAD + voice.len()].copy_from_slice(&voice);
    let speaks = activity(&mixed, loudness);
    let looped = background.iter().cycle();
    for ((at, sample), under) in mixed.iter_mut().enumerate().zip(looped) {
        let presence = presence(&speaks, at);
        let gain = open + (ducked - open) * presence;
        *sample += under * gain * fade(at, length);
    }
    mixed
}

fn fade(at: usize, length: usize) -> f32 {
    let rise = (at as f32 / FADE_IN as f32).min(1.0);
    let fall = ((length - at) as f32 / FADE_OUT as f32).min(1.0);
    // A raised cosine has no corners.
    let soft = |x: f32| 0.5 - 0.5 * (x * std::f32::consts::PI).cos();
    soft(rise.min(fall))
}

/// For each step: 1 where somebody speaks, with soft edges.
fn activity(voice: &[f32], loudness: f32) -> Vec<f32> {
    let threshold = loudness * level::from_db(-25.0);
    let speaks: Vec<bool> = voice
        .chunks(STEP)
        .map(|step| level::rms(step) > threshold)
        .collect();
    let is_near = |at: usize| {
        let from = at.saturating_sub(STEPS_BEHIND);
        let to = (at + STEPS_BEFORE).min(speaks.len().saturating_sub(1));
        speaks
            .get(from..=to)
            .is_some_and(|near| near.contains(&true))
    };
    let held: Vec<f32> = (0..speaks.len())
        .map(|at| f32::from(u8::from(is_near(at))))
        .collect();
    // The mean over the time before a word turns the edges into ramps.
    (0..held.len())
        .map(|at| {
            let near =
                &held[at.saturating_sub(STEPS_BEFORE)..=(at + STEPS_BEFORE).min(held.len() - 1)];
            near.iter().sum::<f32>() / near.len() as f32
        })
        .collect()
}

/// How much of the voice there is at a sample of the whole, between the steps in a straight line.
fn presence(speaks: &[f32], at: usize) -> f32 {
    let (step, within) = (at / STEP, (at % STEP) as f32 / STEP as f32);
    let value = |step: usize| speaks.get(step).copied().unwrap_or(0.0);
    value(step) * (1.0 - within) + value(step + 1) * within
}
