//! The text files of the workspace, read once, with the queries that most rules need.

use std::{collections::BTreeMap, fs, io, path::Path};

use crate::mask::{mask, words};

/// Folders with generated files only.
const SKIPPED_FOLDERS: &[&str] = &["target", ".git", ".venv", "node_modules", "corpus", "artifacts"];

/// Kinds of files that the rules read.
const TEXT_SUFFIXES: &[&str] = &["rs", "md", "toml", "sh", "txt"];

/// A text file.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// The path from the root of the workspace, with forward slashes.
    pub path: String,
    /// All of its text.
    pub text: String,
    /// For Rust: the text with comments and literals blanked, byte for byte as long. Otherwise empty.
    pub code: String,
}

impl SourceFile {
    fn new(path: String, text: String) -> Self {
        let code = if path.ends_with(".rs") { mask(&text) } else { String::new() };
        Self { path, text, code }
    }

    /// Whether it is Rust.
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether it only holds tests (or what only tests and benches use).
    pub fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs")
            || ["/tests/", "/benches/"].iter().any(|folder| self.path.contains(folder))
    }

    /// The line of a byte offset, from 1.
    pub fn line_of(&self, offset: usize) -> usize {
        1 + self.text.bytes().take(offset).filter(|&byte| byte == b'\n').count()
    }

    /// The last part of the path without its suffix.
    pub fn stem(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        name.split('.').next().unwrap_or_default()
    }

    /// Whether its code (not a comment or literal) contains `word`.
    pub fn names(&self, word: &str) -> bool {
        words(&self.code).any(|(_, candidate)| candidate == word)
    }
}

/// The folder of a crate.
pub fn folder_of(crate_name: &str) -> String {
    match crate_name {
        "tidy" => "tidy".to_owned(),
        "tamis-research" => "research".to_owned(),
        "tamis-compare" => "research/compare".to_owned(),
        name => format!("crates/{name}"),
    }
}

/// Every text file of the workspace, and the names of all others.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    files: BTreeMap<String, SourceFile>,
    others: Vec<String>,
}

impl Tree {
    /// Reads the workspace at `root`.
    ///
    /// # Errors
    /// The operating system's, when a folder or file can't be read.
    pub fn load(root: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        tree.load_folder(root, "")?;
        Ok(tree)
    }

    fn load_folder(&mut self, folder: &Path, prefix: &str) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{prefix}{name}");
            if entry.file_type()?.is_dir() {
                if !SKIPPED_FOLDERS.contains(&name.as_str()) {
                    self.load_folder(&entry.path(), &format!("{path}/"))?;
                }
            } else if is_text(&path) {
                let text = String::from_utf8_lossy(&fs::read(entry.path())?).into_owned();
                self.insert(path, text);
            } else {
                self.others.push(path);
            }
        }
        Ok(())
    }

    fn insert(&mut self, path: String, text: String) {
        self.files.insert(path.clone(), SourceFile::new(path, text));
    }

    /// A tree of sample texts, for the tests of the rules.
    pub fn of_samples(samples: &[(&str, &str)]) -> Self {
        let mut tree = Self::default();
        for (path, text) in samples {
            tree.insert((*path).to_owned(), (*text).to_owned());
        }
        tree
    }

    /// All text files in the order of their paths.
    pub fn files(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.values()
    }

    /// All Rust files in the order of their paths.
    pub fn rust_files(&self) -> impl Iterator<Item = &SourceFile> {
        self.files().filter(|file| file.is_rust())
    }

    /// The Rust files of one crate's `src` that are no tests.
    pub fn sources_of<'a>(&'a self, crate_name: &str) -> impl Iterator<Item = &'a SourceFile> {
        let prefix = format!("{}/src/", folder_of(crate_name));
        self.rust_files().filter(move |file| file.path.starts_with(&prefix) && !file.is_test())
    }

    /// The file at a path.
    pub fn get(&self, path: &str) -> Option<&SourceFile> {
        self.files.get(path)
    }

    /// Whether any file, or a folder with files in it, has this path.
    pub fn contains(&self, path: &str) -> bool {
        let folder = format!("{}/", path.trim_end_matches('/'));
        self.paths().any(|candidate| candidate == path || candidate.starts_with(&folder))
    }

    /// The paths of all files, text or not.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().chain(&self.others).map(String::as_str)
    }
}

fn is_text(path: &str) -> bool {
    path.starts_with(".ci/")
        || path.rsplit_once('.').is_some_and(|(_, suffix)| TEXT_SUFFIXES.contains(&suffix))
}
