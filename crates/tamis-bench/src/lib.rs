//! Experiments, the runner, and their results.
//!
//! An experiment is a [`Definition`]: a list of points (parameters) for each [`Size`], a function that measures one point,
//! plots, and the published figures that it reproduces. [`run`] measures the points, saves the results after each point (so
//! that an interrupted run can continue), draws the plots, and compares with the paper. Definitions are in `experiment/`, one
//! per file; a new one needs no other code.
//!
//! - [`filter`](mod@filter): measures filters.
//! - [`driver`]: measures whole stores.
//! - [`RunOptions`], [`Observer`], [`Report`]: input and output of the runner.
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
pub mod limits;
mod machine;
mod needs;
mod observer;
mod plot;
mod report;
mod run_options;
mod runner;
mod size;
mod value;

pub use context::{Context, leftover_stores};
pub use definition::{Axis, Definition, Given, PaperFigure, Plot};
pub use digest::OperationDigest;
pub use error::BenchError;
pub use experiment::{all, find};
pub use machine::{Configuration, Machine};
pub use needs::Needs;
pub use observer::{Observer, Silent};
pub use report::{Comparison, MeasuredRow, Report};
pub use run_options::RunOptions;
pub use runner::{check, run};
pub use size::Size;
pub use value::{Fields, Point, Row, Value};
