//! The rules of the tree as functions: each takes a [`Tree`] and returns [`Finding`]s that say what to do instead.
//!
//! `tests/tidy.rs` runs every rule over the workspace. The unit tests run each rule over sample texts that keep it and
//! that break it. Rules read text, not types: a scanner blanks comments and literals first ([`mask`]), so that rules
//! about code ignore braces and words inside them. The cost is linear in the size of the sources, except for circles
//! of imports, which are quadratic in the number of files of one crate.
//!
//! Tables that people edit (ranks, places of `unsafe`) are constants at the top of their rule; the words are in
//! `words.txt`.

pub mod budgets;
pub mod dead_files;
pub mod formats;
pub mod imports;
pub mod mask;
pub mod ranks;
pub mod shape;
pub mod subjects;
pub mod text;
pub mod tree;
pub mod unsafe_code;
pub mod vocabulary;
pub mod words;

pub use tree::{SourceFile, Tree};

use std::fmt;

/// A place that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file, from the root of the workspace, with forward slashes.
    pub path: String,
    /// The line, from 1; 0 for the file as a whole.
    pub line: usize,
    /// The fault, and what to do instead.
    pub message: String,
}

impl Finding {
    /// A finding at a line of a file.
    pub fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.path, self.line, self.message)
    }
}
