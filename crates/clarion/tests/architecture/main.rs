//! The invariants of ARCHITECTURE.md that can be read from the source. `make lint` runs these tests, so they start nothing and link little.

mod cycles;
mod imports;
mod management;
mod type_names;
mod workspace;
