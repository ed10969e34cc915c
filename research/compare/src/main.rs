//! Compares Tamis with other stores: the same data, the same operations in the same order, alternating rounds.
//!
//! `run` measures, `report` writes the tables of `docs/benchmarks.md` from the results, `list` prints stores and workloads. The harness
//! is `tamis-bench`: it generates and times the operations, and runs the points. Here are the stores, their states and processes,
//! and the tables.

mod plan;
mod report;
mod run;
mod store;
mod usage;
mod worker;
mod workload;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::{
    plan::RunArgs,
    report::ReportArgs,
    store::{KINDS, Result},
    workload::WORKLOADS,
};

/// Benchmark Tamis, RocksDB, LevelDB, LMDB, fjall and redb
#[derive(Debug, Parser)]
#[command(name = "tamis-compare", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(RunArgs),
    Report(ReportArgs),
    /// List the stores with their settings, and the workloads
    List,
    /// The process that `run` starts for each store
    #[command(hide = true)]
    Worker {
        settings: String,
    },
}

fn list() {
    println!("Stores:");
    for kind in KINDS {
        println!("  {:15} {}", kind.name, kind.about);
    }
    println!("Workloads:");
    for workload in WORKLOADS {
        let states: Vec<&str> = workload.states.iter().map(|state| state.name()).collect();
        println!("  {:15} {} ({})", workload.name, workload.title, states.join(", "));
    }
}

fn execute(command: Command) -> Result<()> {
    match command {
        Command::Run(arguments) => {
            plan::check_build()?;
            run::run(arguments)
        }
        Command::Report(arguments) => arguments.run(),
        Command::List => {
            list();
            Ok(())
        }
        Command::Worker { settings } => worker::run(&settings),
    }
}

fn main() -> ExitCode {
    match execute(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tamis-compare: {error}");
            if worker::is_interrupted() { ExitCode::from(130) } else { ExitCode::FAILURE }
        }
    }
}
