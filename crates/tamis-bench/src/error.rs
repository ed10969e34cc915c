//! Why an experiment did not run to its end.

use std::{io, path::PathBuf};

/// What went wrong, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// Somebody asked for the end.
    #[error("interrupted")]
    Interrupted,
    /// A name that nothing has.
    #[error("no {kind} named {name:?}; there are: {names}")]
    Unknown {
        /// What was looked for: `experiment`, `parameter`, ...
        kind: &'static str,
        /// The name that was given.
        name: String,
        /// The names there are.
        names: String,
    },
    /// A file or a folder can't be used.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's own error.
        source: io::Error,
    },
    /// A folder or file is there and is something else.
    #[error("{}: {what}", path.display())]
    Place {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it and what to do.
        what: String,
    },
    /// The machine is too small for what was asked.
    #[error("this needs {need} of {what}, and {have} are free{place}: {advice}, or make room")]
    TooLittle {
        /// `disk` or `memory`.
        what: &'static str,
        /// Where, with a word before it; empty for memory.
        place: String,
        /// What is needed, for people.
        need: String,
        /// What there is, for people.
        have: String,
        /// What needs less.
        advice: &'static str,
    },
    /// A store failed.
    #[error(transparent)]
    Store(#[from] tamis::Error),
    /// A filter can't be built.
    #[error(transparent)]
    Build(#[from] tamis_filter::BuildError),
    /// A store or filter of others failed, or an answer was not what it has to be.
    #[error("{0}")]
    Other(String),
    /// One point of an experiment failed.
    #[error("{experiment} at {point}: {source}")]
    Point {
        /// The experiment.
        experiment: &'static str,
        /// The point's parameters.
        point: String,
        /// Why.
        source: Box<BenchError>,
    },
}

impl BenchError {
    /// For `map_err`: an error of the system about a path.
    pub fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }

    /// An error of another library, or of the experiment itself, in words.
    pub fn other(text: impl std::fmt::Display) -> Self {
        Self::Other(text.to_string())
    }

    /// Whether somebody asked for the end.
    pub fn is_interrupted(&self) -> bool {
        match self {
            Self::Interrupted => true,
            Self::Point { source, .. } => source.is_interrupted(),
            _ => false,
        }
    }
}
