//! A cluster on one machine: an S3 server, a writer, a remote compactor and readers, each a separate process.
//!
//! ```sh
//! cargo run --release --manifest-path crates/tamis-slatedb/Cargo.toml --example cluster
//! ```
//!
//! It loads sensor events and paths with several filters, runs the same queries with each, compares the answers, and
//! prints requests, bytes and time per query. `--url s3://bucket/path` uses another store, with credentials from the
//! environment; `--url memory://` runs all roles in one process.

mod arguments;
mod data;
mod messages;
mod plan;
mod queries;
mod report;
mod roles;
mod worker;

use std::process::ExitCode;

use clap::Parser;

use arguments::Arguments;

/// An error of any part, with its text.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match &arguments.task {
        Some(task) => worker::run_task_of_process(task).map(|()| true),
        None => plan::run(&arguments),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
