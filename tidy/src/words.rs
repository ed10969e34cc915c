//! The words of the tree: names and prose use the field's terms, and qualifiers are the last part of a name.
//!
//! The table of words is `words.txt` ([`crate::vocabulary`]). Names are checked in declarations only (after `let`, `fn`,
//! `struct`, `enum`, `trait`, `mod`, `const`, `static`, `type`, and before a `:`), so that names of the standard library
//! and of other crates never alarm.

use crate::{
    Finding, SourceFile, Tree,
    mask::words,
    vocabulary::{Vocabulary, parts},
};

/// Files that hold such words on purpose.
const EXEMPT: &[(&str, &str)] = &[
    ("tidy/words.txt", "the table itself"),
    ("research/compare/src/store/fjall.rs", "names of fjall's interface"),
    ("research/compare/src/store/leveldb.rs", "names of LevelDB's interface"),
    ("research/compare/src/store/rocksdb.rs", "names of RocksDB's interface"),
];

/// Qualifiers that are the last part of the names of values: `block_count`, not `num_blocks`.
const LAST: &[(&str, &str)] = &[("max", "_max"), ("min", "_min"), ("num", "_count"), ("nr", "_count")];

/// Names and prose contain no word of the table.
pub fn unused_words(tree: &Tree) -> Vec<Finding> {
    findings_where(tree, |_| true)
}

/// The findings of files and folders: of all files without `paths`.
pub fn findings_below(tree: &Tree, paths: &[String]) -> Vec<Finding> {
    let is_below = |path: &str, folder: &str| {
        path.strip_prefix(folder.trim_end_matches('/'))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    findings_where(tree, |path| paths.is_empty() || paths.iter().any(|folder| is_below(path, folder)))
}

fn findings_where(tree: &Tree, is_selected: impl Fn(&str) -> bool) -> Vec<Finding> {
    let vocabulary = match Vocabulary::standard() {
        Ok(vocabulary) => vocabulary,
        Err(message) => return vec![Finding::new("tidy/words.txt", 0, message)],
    };
    let is_exempt = |path: &str| EXEMPT.iter().any(|(exempt, _)| *exempt == path);
    let files = tree.files().filter(|file| is_selected(&file.path) && !is_exempt(&file.path));
    files.flat_map(|file| findings_in(&vocabulary, file)).collect()
}

/// The findings of one file: phrases and names of the table, and declared names with a part that is not used.
fn findings_in(vocabulary: &Vocabulary, file: &SourceFile) -> Vec<Finding> {
    let mut findings = vocabulary.findings(file);
    for name in declared_names(file) {
        for part in parts(name.text) {
            if let Some(replacement) = vocabulary.replacement_of_part(&part, &file.path) {
                let message = format!("`{}`: write {replacement} for `{part}`", name.text);
                findings.push(Finding::new(&file.path, file.line_of(name.offset), message));
            }
        }
    }
    findings.sort();
    findings
}

/// Qualifiers are the last part of the names of values.
pub fn qualifiers_last(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust_files() {
        for name in declared_names(file).into_iter().filter(|name| name.is_value) {
            let lower = name.text.to_ascii_lowercase();
            let Some((first, rest)) = lower.split_once('_') else { continue };
            if let Some((_, last)) = LAST.iter().find(|(qualifier, _)| *qualifier == first) {
                let message = format!("`{}`: qualifiers come last: `{rest}{last}`", name.text);
                findings.push(Finding::new(&file.path, file.line_of(name.offset), message));
            }
        }
    }
    findings
}

struct Name<'a> {
    text: &'a str,
    offset: usize,
    /// A constant, variable, field or parameter.
    is_value: bool,
}

/// The names that a file declares.
fn declared_names(file: &SourceFile) -> Vec<Name<'_>> {
    let code = file.code.as_str();
    let all: Vec<(usize, &str)> = words(code).collect();
    let mut names = Vec::new();
    let mut previous = "";
    for &(offset, text) in &all {
        let after = code.get(offset + text.len()..).unwrap_or_default().trim_start();
        let before = code.get(..offset).unwrap_or_default().trim_end();
        let is_bound = matches!(previous, "let" | "const" | "static" | "mut") && !before.ends_with('*');
        let is_item = matches!(previous, "fn" | "struct" | "enum" | "trait" | "mod" | "type");
        let is_annotated = after.starts_with(':') && !after.starts_with("::") && !before.ends_with("::");
        let is_label = before.ends_with('\'');
        if (is_bound || is_item || is_annotated) && !is_label && text != "mut" && text != "fn" {
            names.push(Name { text, offset, is_value: !is_item });
        }
        previous = text;
    }
    names
}

#[cfg(test)]
mod tests;
