//! `tamis`: the command-line program.
//!
//! Each command is a module of `command`. The other modules are shared: formats of keys and values, failures and exit
//! codes, progress bars, tables, pages. Results go to standard output, progress and errors to standard error.

mod bytes;
mod command;
mod failure;
mod html;
mod input;
mod interrupt;
mod output_file;
mod progress;
mod range;
mod store;
mod terminal;

use std::{
    io::{self, BufWriter, Write},
    process::ExitCode,
};

use clap::error::ErrorKind;

use crate::{
    command::Cli,
    failure::{Failure, usage_text},
};

fn main() -> ExitCode {
    let cli = match Cli::from_command_line() {
        Ok(cli) => cli,
        Err(error) => return report_usage(&error),
    };
    let mut output = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let result = cli.run(&mut output).and_then(|()| Ok(output.flush()?));
    // Prints the results before a failure; ignores a second write error.
    let _ = output.flush();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(message) = failure.message() {
                // Standard error may be closed.
                let _ = writeln!(io::stderr(), "tamis: {message}");
            }
            failure.exit_code()
        }
    }
}

/// Prints a help text, or what is wrong with the command line.
fn report_usage(error: &clap::Error) -> ExitCode {
    if error.kind() == ErrorKind::ValueValidation {
        let _ = write!(io::stderr(), "{}", usage_text(error));
    } else {
        let _ = error.print();
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}
