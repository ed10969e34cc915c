//! The integration tests of the engine: one binary, one module per capability.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

mod support;

mod cost;
mod model;
mod same_result;
mod options;
