//! One word, one meaning: names that the code declares use the field's own words.
//!
//! Only names in declarations are read (after `let`, `fn`, `struct`, `enum`, `trait`, `mod`, `const`, `static`,
//! `type`, and before a `:`), so that names of the standard library and of other crates never alarm.

use crate::{Finding, SourceFile, Tree, mask::words};

/// Where a word is refused.
enum Scope {
    /// In all code of the workspace.
    Everywhere,
    /// In the files of the engine below these folders (all of them when empty).
    Engine(&'static [&'static str]),
}

/// Refused words (parts of a name) with what to write instead.
const REFUSED: &[(&str, Scope, &str)] = &[
    ("memstore", Scope::Everywhere, "`memtable`"),
    ("journal", Scope::Everywhere, "`wal`, or `log`"),
    ("sst", Scope::Everywhere, "`table`"),
    ("ssts", Scope::Everywhere, "`tables`"),
    ("sstable", Scope::Everywhere, "`table`"),
    ("sstables", Scope::Everywhere, "`tables`"),
    ("superversion", Scope::Everywhere, "`version`, or `view` of a read"),
    ("seqno", Scope::Everywhere, "`sequence`"),
    ("seq", Scope::Everywhere, "`sequence`"),
    ("lsn", Scope::Everywhere, "`sequence`"),
    ("idx", Scope::Everywhere, "`index`"),
    ("cnt", Scope::Everywhere, "`count`"),
    ("ctx", Scope::Everywhere, "the noun it is"),
    ("mgr", Scope::Everywhere, "the noun it is"),
    ("buf", Scope::Everywhere, "`buffer`, or the noun of what is in it"),
    ("blk", Scope::Everywhere, "`block`"),
    ("tbl", Scope::Everywhere, "`table`"),
    ("hdr", Scope::Everywhere, "`header`"),
    ("memt", Scope::Everywhere, "`memtable`"),
    ("imm", Scope::Everywhere, "`immutable`"),
    ("cksum", Scope::Everywhere, "`checksum`"),
    ("overlay", Scope::Everywhere, "`view`"),
    ("remix", Scope::Engine(&[]), "`view`"),
    ("timestamp", Scope::Engine(&[]), "`sequence` (users' times are parts of their keys)"),
    ("backup", Scope::Engine(&[]), "`checkpoint`"),
    ("tier", Scope::Engine(&[]), "`level`, or `run`"),
    ("layer", Scope::Engine(&[]), "`level`"),
    (
        "segment",
        Scope::Engine(&["table/", "version/", "memtable/", "cursor/", "cache/"]),
        "`block`, `section` or `run`",
    ),
];

/// Qualifiers that stand last in the names of values: `block_count`, not `num_blocks`.
const LAST: &[(&str, &str)] = &[("max", "_max"), ("min", "_min"), ("num", "_count"), ("nr", "_count")];

/// Declared names hold no refused word.
pub fn refused_words(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust_files() {
        for name in declared_names(file) {
            for part in parts(name.text) {
                let refused =
                    REFUSED.iter().find(|(word, scope, _)| *word == part && scope.holds(&file.path));
                if let Some((word, _, instead)) = refused {
                    let message = format!("`{}`: write {instead} for `{word}`", name.text);
                    findings.push(Finding::new(&file.path, file.line_of(name.offset), message));
                }
            }
        }
    }
    findings
}

/// Qualifiers stand last in the names of values.
pub fn qualifiers_last(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust_files() {
        for name in declared_names(file).into_iter().filter(|name| name.is_value) {
            let lower = name.text.to_ascii_lowercase();
            let Some((first, rest)) = lower.split_once('_') else { continue };
            if let Some((_, last)) = LAST.iter().find(|(qualifier, _)| *qualifier == first) {
                let message = format!("`{}`: qualifiers stand last: `{rest}{last}`", name.text);
                findings.push(Finding::new(&file.path, file.line_of(name.offset), message));
            }
        }
    }
    findings
}

impl Scope {
    fn holds(&self, path: &str) -> bool {
        match self {
            Self::Everywhere => true,
            Self::Engine(folders) => path.strip_prefix("crates/tamis/src/").is_some_and(|inner| {
                folders.is_empty() || folders.iter().any(|folder| inner.starts_with(folder))
            }),
        }
    }
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

/// The words of a name, in lower case: of `read_seqNo` they are `read`, `seq`, `no`.
fn parts(name: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut was_lower = false;
    for piece in name.split('_') {
        parts.push(String::new());
        for character in piece.chars() {
            if character.is_uppercase() && was_lower {
                parts.push(String::new());
            }
            was_lower = character.is_lowercase() || character.is_ascii_digit();
            if let Some(part) = parts.last_mut() {
                part.extend(character.to_lowercase());
            }
        }
        was_lower = false;
    }
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests;
