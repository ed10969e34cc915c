//! The options of a run.

use std::path::PathBuf;

use crate::Size;

/// Options of a run.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// The size of the run.
    pub size: Size,
    /// The seed of the random numbers.
    pub seed: u64,
    /// The folder of the results.
    pub out: PathBuf,
    /// The file of the results, for a program with one experiment, instead of a file in the folder.
    pub file: Option<PathBuf>,
    /// The folder of stores while they are measured.
    pub scratch: PathBuf,
    /// Whether to discard earlier results.
    pub again: bool,
    /// Restricts the run to points whose parameters have one of the given values (as printed).
    pub only: Vec<(String, String)>,
    /// Numbers of threads instead of those of the experiment; empty for its default.
    pub threads: Vec<u64>,
    /// Layouts ([`tamis::Layout`] as text) instead of those of the experiment; empty for its default.
    pub layouts: Vec<String>,
}

impl RunOptions {
    /// Options with seed 42 and all files in one folder.
    pub fn new(size: Size, out: impl Into<PathBuf>) -> Self {
        let out = out.into();
        Self {
            size,
            seed: 42,
            scratch: out.clone(),
            out,
            file: None,
            again: false,
            only: Vec::new(),
            threads: Vec::new(),
            layouts: Vec::new(),
        }
    }
}
