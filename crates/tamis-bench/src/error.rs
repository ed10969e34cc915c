//! Errors of experiments.

use std::{io, path::PathBuf};

/// The reason why an experiment failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// The run was interrupted.
    #[error("interrupted")]
    Interrupted,
    /// A command was interrupted; its results so far are kept.
    #[error(
        "interrupted after {done} of {total} points; results are in {}; run the same command again to continue",
        path.display()
    )]
    Stopped {
        /// Measured points.
        done: u64,
        /// All points.
        total: u64,
        /// The file of the results.
        path: PathBuf,
    },
    /// The output of a command cannot be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
    /// An unknown name.
    #[error("no {kind} named {name:?}; there are: {names}")]
    Unknown {
        /// The kind of the name: `experiment`, `parameter`, ...
        kind: &'static str,
        /// The unknown name.
        name: String,
        /// The known names.
        names: String,
    },
    /// An I/O error of a file or folder.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// An existing file or folder has the wrong content.
    #[error("{}: {what}", path.display())]
    WrongContent {
        /// The file or folder.
        path: PathBuf,
        /// The problem and the remedy.
        what: String,
    },
    /// The machine has too little free disk or memory.
    #[error("{need} of {what} are needed, but only {have} are free{place}; {advice}, or free some")]
    InsufficientResources {
        /// `disk` or `memory`.
        what: &'static str,
        /// The location with a preposition; empty for memory.
        place: String,
        /// The required size.
        need: String,
        /// The free size.
        have: String,
        /// Advice on how to reduce the need.
        advice: &'static str,
    },
    /// An error of a Tamis store.
    #[error(transparent)]
    Store(#[from] tamis::Error),
    /// A filter cannot be built.
    #[error(transparent)]
    Build(#[from] tamis_filter::BuildError),
    /// An error of another library, or a wrong result.
    #[error("{0}")]
    Other(String),
    /// One point of an experiment failed.
    #[error("{experiment} at {point}: {source}")]
    Point {
        /// The experiment.
        experiment: &'static str,
        /// The point's parameters.
        point: String,
        /// The error.
        source: Box<BenchError>,
    },
}

impl BenchError {
    /// For `map_err`: an I/O error of a path.
    pub fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }

    /// An error of another library, or of the experiment itself.
    pub fn other(text: impl std::fmt::Display) -> Self {
        Self::Other(text.to_string())
    }

    /// Whether the run was interrupted.
    pub fn is_interrupted(&self) -> bool {
        match self {
            Self::Interrupted => true,
            Self::Point { source, .. } => source.is_interrupted(),
            _ => false,
        }
    }
}
