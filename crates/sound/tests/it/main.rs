//! Tests of the whole crate with real files, real processes and ears of their own. What espeak-ng says is heard by measuring it.

mod alerts;
mod archives;
mod engines;
mod intelligibility;
mod listener;
mod loudness;
mod mandarin;
mod measure;
mod natural_workers;
mod options;
mod readings;
mod refusals;
mod renderer;
mod support;
mod turns;
mod voices;
mod zoo;
