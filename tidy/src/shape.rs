//! Files and functions are small, begin by saying what they are for, and are ASCII.

use crate::{
    Finding, Tree,
    mask::{functions, words},
};

/// The longest file in lines. Tests are in separate files, so they do not count.
pub const FILE_LINES_MAX: usize = 1_000;
/// The longest function in lines.
pub const FUNCTION_LINES_MAX: usize = 70;
/// The longest function of a test in lines: a scenario reads better in one piece.
pub const TEST_FUNCTION_LINES_MAX: usize = 100;

/// No file of Rust has more than [`FILE_LINES_MAX`] lines.
pub fn file_length(tree: &Tree) -> Vec<Finding> {
    let too_long = tree.rust_files().filter_map(|file| {
        let count = file.text.lines().count();
        (count > FILE_LINES_MAX).then(|| {
            let advice = "split it by nouns (format, writer, reader, ...) and aim below 400";
            Finding::new(&file.path, 0, format!("{count} lines, at most {FILE_LINES_MAX}: {advice}"))
        })
    });
    too_long.collect()
}

/// No function has more than [`FUNCTION_LINES_MAX`] lines.
pub fn function_length(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust_files() {
        let limit = if file.is_test() { TEST_FUNCTION_LINES_MAX } else { FUNCTION_LINES_MAX };
        for function in functions(&file.code).iter().filter(|function| function.line_count > limit) {
            let message = format!(
                "`{}` has {} lines, at most {limit}: keep the branches here and move pure leaves into separate functions",
                function.name, function.line_count
            );
            findings.push(Finding::new(&file.path, file.line_of(function.offset), message));
        }
    }
    findings
}

/// Every Rust file begins with `//!` and a sentence, except for the unit tests of a file that does so.
pub fn head_comment(tree: &Tree) -> Vec<Finding> {
    let silent = tree.rust_files().filter(|file| file.stem() != "tests").filter(|file| {
        let first = file.text.lines().next().unwrap_or_default();
        first.strip_prefix("//! ").is_none_or(|sentence| sentence.len() < 10)
    });
    let advice = "begin the file with `//!` and a sentence about its purpose, then invariants and cost";
    silent.map(|file| Finding::new(&file.path, 1, advice)).collect()
}

/// Sources are ASCII.
pub fn ascii(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust_files() {
        for (index, line) in file.text.lines().enumerate().filter(|(_, line)| !line.is_ascii()) {
            let strange = line.chars().find(|character| !character.is_ascii()).unwrap_or_default();
            let message = format!(
                "{strange:?} is not ASCII: write `\\u{{{:x}}}` in a literal, or plain words",
                strange as u32
            );
            findings.push(Finding::new(&file.path, index + 1, message));
        }
    }
    findings
}

/// Unit tests are in `foo/tests.rs`, not in the source file.
pub fn no_inline_tests(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust_files().filter(|file| !file.is_test()) {
        for (offset, _) in words(&file.code).filter(|(_, word)| *word == "tests") {
            let before = file.code.get(..offset).unwrap_or_default().trim_end();
            let after = file.code.get(offset + 5..).unwrap_or_default().trim_start();
            if before.ends_with("mod") && after.starts_with('{') {
                let advice =
                    "move this module to `tests.rs` in the folder of this file's name and write `mod tests;`";
                findings.push(Finding::new(&file.path, file.line_of(offset), advice));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests;
