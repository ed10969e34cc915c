//! Experiments: what is measured, one runner for all of them, and results that say what they were measured with.
//!
//! An experiment is a [`Definition`]: a list of points (parameters) for each [`Size`], a function that measures one point,
//! plots, and the figures of the paper that it repeats. [`run`] does the rest: it goes through the points, writes what is known after
//! each of them (so that an interrupted run goes on where it stopped), draws the plots, and compares with the paper.
//! Definitions stand in `experiment/`, one file each; adding one takes no other code.
//!
//! - [`filter`](mod@filter): the one way in which filters are measured.
//! - [`driver`]: the one way in which whole stores are measured.
//! - [`RunOptions`], [`Observer`], [`Report`]: the runner's inputs and what it gives back.
//!
//! ```
//! use tamis_bench::{RunOptions, Silent, Size, find, run};
//!
//! let folder = tempfile::tempdir()?;
//! let options = RunOptions::new(Size::Small, folder.path());
//! let report = run(find("bloom-rate-by-bits")?, &options, &mut Silent)?;
//! assert!(report.is_complete && !report.rows.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod context;
mod definition;
mod digest;
pub mod driver;
mod error;
pub mod experiment;
pub mod filter;
pub mod instructions;
mod machine;
mod needs;
mod plot;
mod report;
mod runner;
mod value;

pub use context::{Context, leftovers};
pub use definition::{Axis, Definition, Given, PaperFigure, Plot, Size};
pub use digest::OperationDigest;
pub use error::BenchError;
pub use experiment::{all, find};
pub use machine::{Configuration, Machine};
pub use needs::Needs;
pub use report::{Comparison, MeasuredRow, Report};
pub use runner::{Observer, RunOptions, Silent, check, run};
pub use value::{Fields, Point, Row, Value};
