//! Measures stores and filters: experiments, the runner, and their results.
//!
//! An experiment is a [`Definition`]: a list of points (parameters) for each [`Size`], a function that measures one point,
//! plots, and the published figures that it reproduces. [`run`] measures the points, saves the results after each point (so
//! that an interrupted run can continue), and compares with the paper. The workloads of stores are here ([`WORKLOADS`]); the
//! experiments of the papers are a separate program, in `research/`, on the same runner.
//!
//! - [`filter`](mod@filter): measures filters.
//! - [`driver`]: measures whole stores.
//! - [`RunOptions`], [`Observer`], [`Report`]: input and output of the runner.
//!
//! ```
//! use tamis_bench::{RunOptions, Silent, Size, WORKLOADS, run};
//!
//! let folder = tempfile::tempdir()?;
//! let only = vec![("workload".to_owned(), "ycsb-a".to_owned())];
//! let options = RunOptions { only, ..RunOptions::new(Size::Small, folder.path()) };
//! let report = run(WORKLOADS.find("store-harness")?, &options, &mut Silent)?;
//! assert!(!report.rows.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod catalog;
pub mod command;
mod context;
mod definition;
mod digest;
pub mod driver;
mod error;
mod experiment;
pub mod filter;
pub mod instructions;
mod machine;
mod needs;
mod observer;
mod report;
mod run_options;
mod runner;
mod size;
pub mod terminal;
mod value;

pub use catalog::{Catalog, Draw, WORKLOADS};
pub use context::{Context, leftover_stores};
pub use definition::{Axis, Definition, Measure, Plot, Points, Published, published};
pub use digest::OperationDigest;
pub use error::BenchError;
pub use experiment::{STORE_EXPERIMENTS, VALUE_BYTES};
pub use machine::{Configuration, Machine, date};
pub use needs::Needs;
pub use observer::{Observer, Silent};
pub use report::{Comparison, Report};
pub use run_options::RunOptions;
pub use runner::{check, run};
pub use size::Size;
pub use value::{Fields, MeasuredRow, Point, Row, Value};
