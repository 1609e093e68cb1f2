//! Tests of the whole crate with real files, real processes and ears of their own. What espeak-ng says is heard by measuring it.

mod alerts;
mod archives;
mod engines;
mod intelligibility;
mod listener;
mod loudness;
mod mandarin;
mod measure;
mod options;
mod refusals;
mod renderer;
mod support;
mod turns;
mod zoo;
