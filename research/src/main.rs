//! Experiments: reproduces the figures of the papers, and measures what the store must keep.
//!
//! An experiment is a [`Definition`] of `tamis-bench`: points, a measurement, plots, and the values of the paper. Definitions are in
//! a folder for each group; `tamis-bench` runs them.

mod auto;
mod bloom;
mod end_to_end;
mod forms;
mod inputs;
mod integers;
mod layouts;
mod limits;
mod plot;
mod proteus;
mod rosetta;
mod sorted_view;
mod store;
mod surf;
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
    BenchError, Catalog, STORE_EXPERIMENTS,
    command::{ListArgs, RUN_FILES, RunArgs},
};

const EXAMPLES: &str = "\
Examples:
  research list
  research run surf-figure-5 --size medium --out results
  research run bloom- --size full
  research run all --size small

Plots are written next to the results, as NAME-SIZE-sSEED.PLOT.svg.";

/// All experiments: those of the papers, and the workloads of stores, with plots.
const EXPERIMENTS: Catalog = Catalog {
    groups: &[
        STORE_EXPERIMENTS,
        store::EXPERIMENTS,
        limits::EXPERIMENTS,
        auto::EXPERIMENTS,
        bloom::EXPERIMENTS,
        surf::EXPERIMENTS,
        rosetta::EXPERIMENTS,
        proteus::EXPERIMENTS,
        end_to_end::EXPERIMENTS,
        sorted_view::EXPERIMENTS,
        layouts::EXPERIMENTS,
    ],
    draw: Some(plot::draw),
};

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
    let mut output = stdout().lock();
    match command {
        Command::List(args) => args.run(&EXPERIMENTS, &mut output)?,
        Command::Run(args) => {
            // The second interrupt ends the process.
            let handler = || {
                if IS_INTERRUPTED.swap(true, Ordering::SeqCst) {
                    std::process::exit(130);
                }
            };
            ctrlc::set_handler(handler).map_err(BenchError::other)?;
            args.run(&EXPERIMENTS, is_interrupted, &mut output)?;
        }
    }
    Ok(output.flush()?)
}
