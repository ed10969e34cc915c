//! Budgets: how many lines of production code a folder may have, and how many named numbers the engine. They only fall.
//!
//! A change that exceeds a budget deletes what it replaces. One that leaves much room lowers the budget in the same commit.

use crate::{Finding, Tree};

/// Lines of Rust that are no tests, by folder; of the engine as a whole and of its folders.
const LINES: &[(&str, usize)] = &[
    ("crates/tamis/src", 55_800),
    ("crates/tamis/src/admin", 3_700),
    ("crates/tamis/src/cache", 800),
    ("crates/tamis/src/changes", 650),
    ("crates/tamis/src/compaction", 8_050),
    ("crates/tamis/src/cursor", 3_650),
    ("crates/tamis/src/db", 1_550),
    ("crates/tamis/src/memtable", 2_000),
    ("crates/tamis/src/merge_operator", 650),
    ("crates/tamis/src/observe", 2_800),
    ("crates/tamis/src/options", 550),
    ("crates/tamis/src/read", 3_150),
    ("crates/tamis/src/store", 3_650),
    ("crates/tamis/src/table", 7_400),
    ("crates/tamis/src/transaction", 1_750),
    ("crates/tamis/src/version", 5_250),
    ("crates/tamis/src/view", 4_450),
    ("crates/tamis/src/wal", 1_400),
    ("crates/tamis/src/write", 1_500),
    ("crates/tamis/internals", 2_100),
    ("crates/tamis-backup/src", 2_600),
    ("crates/tamis-bench/src", 4_950),
    ("crates/tamis-cli/src", 9_250),
    ("crates/tamis-filter/internals", 500),
    ("crates/tamis-filter/src", 16_900),
    ("crates/tamis-vfs/src", 4_000),
    ("research/compare/src", 3_400),
    ("research/src", 5_650),
];
/// A budget with more room than this is lowered.
const ROOM_MAX: usize = 150;
/// Constants of numbers and durations in the engine.
const NUMBERS_MAX: usize = 200;
const ENGINE: &str = "crates/tamis/src";
/// The types of such constants.
const NUMBER_TYPES: &[&str] =
    &["u8", "u16", "u32", "u64", "u128", "usize", "i32", "i64", "f32", "f64", "Duration"];

/// No folder has more lines than its budget, or far fewer.
pub fn lines_are_within_budgets(tree: &Tree) -> Vec<Finding> {
    LINES.iter().filter_map(|&(folder, budget)| line_finding(tree, folder, budget)).collect()
}

fn line_finding(tree: &Tree, folder: &str, budget: usize) -> Option<Finding> {
    let within = format!("{folder}/");
    let files = tree.rust_files().filter(|file| file.path.starts_with(&within) && !file.is_test());
    let count: usize = files.map(|file| file.text.lines().count()).sum();
    let advice = match count {
        0 => "remove its budget".to_owned(),
        _ if count > budget => "delete what the new lines replace".to_owned(),
        _ if count + ROOM_MAX < budget => format!("lower the budget to {}", count.next_multiple_of(50)),
        _ => return None,
    };
    let message =
        format!("{count} lines of production code, the budget is {budget}: {advice} (tidy/src/budgets.rs)");
    Some(Finding::new(folder, 0, message))
}

/// The engine has at most `NUMBERS_MAX` constants of numbers.
pub fn numbers_are_within_budget(tree: &Tree) -> Vec<Finding> {
    let within = format!("{ENGINE}/");
    let files = tree.rust_files().filter(|file| file.path.starts_with(&within) && !file.is_test());
    let count: usize = files.map(|file| file.code.lines().filter(|line| is_number(line)).count()).sum();
    if count <= NUMBERS_MAX {
        return Vec::new();
    }
    let advice = "derive one from another, or do without the mechanism that needs it";
    vec![Finding::new(ENGINE, 0, format!("{count} named numbers, at most {NUMBERS_MAX}: {advice}"))]
}

/// Whether a line begins a constant of a number.
fn is_number(line: &str) -> bool {
    let declared = line.trim_start().strip_prefix("pub").map_or(line.trim_start(), |rest| {
        rest.trim_start_matches(|character: char| character != ' ').trim_start()
    });
    let named = declared.strip_prefix("const ").and_then(|rest| rest.split_once(": "));
    named.is_some_and(|(_, kind)| NUMBER_TYPES.contains(&kind.split(' ').next().unwrap_or_default()))
}

#[cfg(test)]
mod tests;
