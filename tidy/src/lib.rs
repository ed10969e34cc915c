//! The rules of the tree as functions: each takes a [`Tree`] and gives [`Finding`]s that say what to do instead.
//!
//! `tests/tidy.rs` runs every rule over the workspace; the tests beside each rule run it over sample texts, one that
//! keeps the rule and one that breaks it. Rules read text, not types: a scanner blanks comments and literals first
//! ([`mask`]), so that braces and words inside them count for nothing. All of it is linear in the size of the
//! sources, but for the circles of imports, which are quadratic in the number of files of one crate.
//!
//! Tables that people change (ranks, words, places where `unsafe` may stand) are constants at the head of their rule.

pub mod dead_files;
pub mod formats;
pub mod imports;
pub mod mask;
pub mod ranks;
pub mod shape;
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
    /// What is wrong and what to do instead.
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
