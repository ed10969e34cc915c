//! How a command ends when it does not succeed: a message and an exit code.

use std::{
    io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use tamis::Error;

/// The codes as `tamis --help` shows them.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    the key is not there (get)
  2    the command line is wrong
  3    the store refused, is damaged, or can't be opened
  4    an input file can't be read, or an output can't be written
  130  interrupted (Ctrl-C); the store is whole";

/// Why a command did not succeed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A key is not there.
    NotFound,
    /// The command line asks for something impossible.
    Usage(String),
    /// The store failed.
    Store(Error),
    /// The store is not what it has to be; the text says how.
    Damage(String),
    /// An input file failed; the text names file and line or offset.
    Input(String),
    /// Standard output or an output file failed.
    Output(io::Error),
    /// Ctrl-C; the text says what was done until then.
    Interrupted(String),
}

impl Failure {
    /// An error of a command that was given files: faults of those files are the input's, and what helps a damaged store does not
    /// help there.
    pub(crate) fn of_inputs(error: Error, inputs: &[PathBuf]) -> Self {
        let is_input = |file: &Path| inputs.iter().any(|input| plain(input) == plain(file));
        match &error {
            Error::Corruption(found) if is_input(&found.file) => Self::Input(format!(
                "{}: {} at offset {}: expected {}, got {}; is the file cut, or of another kind?",
                found.file.display(),
                found.what,
                found.offset,
                found.expected,
                found.got
            )),
            Error::UnknownFormat { file, .. } | Error::UnknownEntryKind { file, .. } if is_input(file) => {
                Self::Input(error.to_string())
            }
            Error::Io { path, .. } | Error::MissingFile { path, .. } if is_input(path) => {
                Self::Input(error.to_string())
            }
            _ => Self::Store(error),
        }
    }

    /// What to tell the user, if anything.
    pub(crate) fn message(&self) -> Option<String> {
        match self {
            Self::NotFound => None,
            // `tamis scan DIR | head`: the reader has what it wanted.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => None,
            Self::Output(error) => Some(format!("writing the output: {error}")),
            Self::Store(error) => Some(error.to_string()),
            Self::Usage(text) | Self::Damage(text) | Self::Input(text) | Self::Interrupted(text) => {
                Some(text.clone())
            }
        }
    }

    /// See [`EXIT_CODES`].
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
            Self::NotFound => 1,
            Self::Usage(_) => 2,
            Self::Store(_) | Self::Damage(_) => 3,
            Self::Input(_) | Self::Output(_) => 4,
            Self::Interrupted(_) => 130,
        })
    }
}

/// A path without the dot that a folder of no name has.
fn plain(path: &Path) -> &Path {
    path.strip_prefix(".").unwrap_or(path)
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}
