//! Patterns that no text of the tree contains: unfinished work, back doors, and traces of the author's machine.
//!
//! The patterns are written in two parts, so that this file does not contain them.

use crate::{Finding, Tree};

/// Refused in Rust, with what to do instead.
const UNFINISHED: &[(&str, &str)] = &[
    (concat!("todo", "!("), "finish it, or remove it and document the limit"),
    (concat!("unimplemented", "!("), "finish it, or return a typed error"),
    (concat!("TO", "DO"), "finish it, or document the limit"),
    (concat!("FIX", "ME"), "fix it, or document the limit"),
    (concat!("XX", "X"), "fix it, or document the limit"),
    (concat!("#[", "ignore"), "make the test quick enough to run, or delete it"),
    (concat!("doc(", "hidden)"), "make it `pub(crate)`, or document it"),
    (concat!("dbg", "!("), "delete it, or count it in the statistics"),
    (concat!("allow(", "dead_code)"), "delete what is dead"),
];

/// Refused in every text, with what to do instead.
const TRACES: &[(&str, &str)] = &[
    (concat!("/wo", "rk/"), "name files from the root of the tree"),
    (concat!("/ro", "ot/"), "name files from the root of the tree"),
    (concat!("/ho", "me/"), "name files from the root of the tree"),
    (concat!("../", "shared"), "say it here, or link a page of this tree"),
    (concat!("BRI", "EF"), "say what a reader of this tree needs to know"),
    (concat!("the bri", "ef"), "say what a reader of this tree needs to know"),
    (concat!("this ses", "sion"), "say what a reader of this tree needs to know"),
    (concat!("sub", "agent"), "say what a reader of this tree needs to know"),
    (concat!("issues", " show"), "say what a reader of this tree needs to know"),
];

/// Sources hold nothing unfinished.
pub fn nothing_unfinished(tree: &Tree) -> Vec<Finding> {
    tree.rust_files().flat_map(|file| find(&file.path, &file.text, UNFINISHED)).collect()
}

/// No text contains traces of the machine or the circumstances of its author.
pub fn no_traces(tree: &Tree) -> Vec<Finding> {
    tree.files().flat_map(|file| find(&file.path, &file.text, TRACES)).collect()
}

fn find(path: &str, text: &str, patterns: &[(&str, &str)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for (pattern, instead) in patterns.iter().filter(|(pattern, _)| contains_word(line, pattern)) {
            findings.push(Finding::new(path, index + 1, format!("`{pattern}`: {instead}")));
        }
    }
    findings
}

/// Whether a line contains a pattern as a word: a pattern that begins or ends with a letter or digit does not match
/// inside a longer word.
fn contains_word(line: &str, pattern: &str) -> bool {
    line.match_indices(pattern).any(|(offset, _)| {
        let is_word = |character: Option<char>| character.is_some_and(char::is_alphanumeric);
        let before = line.get(..offset).and_then(|text| text.chars().next_back());
        let after = line.get(offset + pattern.len()..).and_then(|text| text.chars().next());
        let begins_inside = is_word(before) && is_word(pattern.chars().next());
        let ends_inside = is_word(after) && is_word(pattern.chars().next_back());
        !begins_inside && !ends_inside
    })
}

/// Files, time, threads and randomness enter the engine through interfaces: the forbidden pattern, the files that may
/// contain it, and what to use instead.
const SEAMS: &[(&str, &[&str], &str)] = &[
    ("std::fs", &[], "use a `tamis_vfs::Vfs`"),
    ("File::open", &[], "use a `tamis_vfs::Vfs`"),
    ("std::thread", &["crates/tamis/src/store/runtime.rs"], "start threads through `runtime::Spawner`"),
    ("std::time::Instant", &["crates/tamis/src/store/runtime.rs"], "take time from `runtime::Clock`"),
    ("Instant::now", &["crates/tamis/src/store/runtime.rs"], "take time from `runtime::Clock`"),
    ("SystemTime::now", &["crates/tamis/src/store/runtime.rs"], "take time from `runtime::Clock`"),
    ("RandomState", &["crates/tamis/src/store/runtime.rs"], "take a seed from `runtime::Runtime`"),
    ("println!", &[], "report it to an `events::EventListener`, or count it in the statistics"),
    ("eprintln!", &[], "report it to an `events::EventListener`, or count it in the statistics"),
];

/// The crates that get files, time, threads and randomness as parameters.
const SEALED_CRATES: &[&str] = &["tamis", "tamis-filter", "tamis-bits"];

/// The engine and the filters use files, time, threads and randomness only through interfaces.
pub fn world_enters_through_seams(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in SEALED_CRATES.iter().flat_map(|name| tree.sources_of(name)) {
        for (pattern, places, instead) in SEAMS {
            if places.contains(&file.path.as_str()) {
                continue;
            }
            let offsets = file.code.match_indices(pattern).map(|(offset, _)| offset);
            findings.extend(offsets.map(|offset| {
                Finding::new(&file.path, file.line_of(offset), format!("`{pattern}`: {instead}"))
            }));
        }
    }
    findings
}

/// Casts that cut a length without notice.
const LENGTH_CASTS: [&str; 3] = [".len() as u8", ".len() as u16", ".len() as u32"];

/// The engine never cuts a length to a shorter integer.
pub fn lengths_are_whole(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in ["tamis", "tamis-vfs"].iter().flat_map(|name| tree.sources_of(name)) {
        for pattern in LENGTH_CASTS {
            let offsets = file.code.match_indices(pattern).map(|(offset, _)| offset);
            findings.extend(offsets.map(|offset| {
                let message = format!(
                    "`{pattern}`: use `try_from` and a typed error, or `coding::length_u32` and its siblings"
                );
                Finding::new(&file.path, file.line_of(offset), message)
            }));
        }
    }
    findings
}

#[cfg(test)]
mod tests;
