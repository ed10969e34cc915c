//! The command line: plays one seed, many seeds, or seeds for hours.

mod command;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    tamis_sim::schedule::keep_panics();
    match command::run(&command::Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("tamis-sim: {message}");
            ExitCode::from(2)
        }
    }
}
