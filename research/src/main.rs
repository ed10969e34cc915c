//! Experiments: reproduces the figures of the papers, and measures what the store must keep.
//!
//! Experiments are data: `experiments/*.toml` defines their points, plots, and the values of the paper (`definitions.rs`); `runs.rs` lists
//! the kinds of runs that measure a point; `tamis-bench` runs them.

mod auto;
mod automatic_parts;
mod bloom;
mod definitions;
mod end_to_end;
mod filters;
mod forms;
mod index;
mod inputs;
mod layouts;
mod limits;
mod plot;
mod proteus;
mod runs;
mod sorted_view;
mod stores;
#[cfg(test)]
mod tests;
mod words;

use std::{
    io::{Write as _, stdout},
    process::ExitCode,
    sync::atomic::{AtomicBool, Ordering},
};

use clap::{Parser, Subcommand};
use tamis_bench::{
    BenchError,
    command::{ListArgs, RUN_FILES, RunArgs},
};

const EXAMPLES: &str = "\
Examples:
  research list
  research run surf-figure-5 --size medium --out results
  research run bloom- --size full
  research run all --size small

Plots are written next to the results, as NAME-SIZE-sSEED.PLOT.svg.";

/// Reproduces the figures of the papers.
#[derive(Debug, Parser)]
#[command(name = "research", version, after_help = format!("{EXAMPLES}\n\n{RUN_FILES}"), max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(ListArgs),
    Run(RunArgs),
}

static IS_INTERRUPTED: AtomicBool = AtomicBool::new(false);

fn is_interrupted() -> bool {
    IS_INTERRUPTED.load(Ordering::SeqCst)
}

fn main() -> ExitCode {
    match execute(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(BenchError::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("research: {error}");
            let is_stopped = error.is_interrupted() || matches!(error, BenchError::Stopped { .. });
            ExitCode::from(if is_stopped { 130 } else { 1 })
        }
    }
}

fn execute(command: Command) -> Result<(), BenchError> {
    let experiments = definitions::catalog()?;
    let mut output = stdout().lock();
    match command {
        Command::List(args) => args.run(&experiments, &mut output)?,
        Command::Run(args) => {
            // The second interrupt ends the process.
            let handler = || {
                if IS_INTERRUPTED.swap(true, Ordering::SeqCst) {
                    std::process::exit(130);
                }
            };
            ctrlc::set_handler(handler).map_err(BenchError::other)?;
            args.run(&experiments, is_interrupted, &mut output)?;
        }
    }
    Ok(output.flush()?)
}
