//! Compares Tamis with other stores: the same data, the same operations in the same order, alternating rounds.
//!
//! `run` measures, `report` writes the tables of `docs/benchmarks.md` from the results, `list` prints stores and workloads.

mod clock;
mod data;
mod failure;
mod operations;
mod pass;
mod peer;
mod plan;
mod report;
mod results;
mod run;
mod sink;
mod state;
mod store;
mod usage;
mod worker;
mod workload;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::{failure::Result, plan::RunArgs, report::ReportArgs, store::KINDS, workload::WORKLOADS};

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
    Worker,
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

fn execute(command: &Command) -> Result<()> {
    match command {
        Command::Run(arguments) => {
            let plan = arguments.plan()?;
            plan::check_build()?;
            run::run(&plan)
        }
        Command::Report(arguments) => arguments.run(),
        Command::List => {
            list();
            Ok(())
        }
        Command::Worker => worker::run(),
    }
}

fn main() -> ExitCode {
    match execute(&Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("tamis-compare: {failure}");
            if peer::is_interrupted() { ExitCode::from(130) } else { ExitCode::FAILURE }
        }
    }
}
