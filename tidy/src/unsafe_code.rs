//! `unsafe` is rare, local and justified.

use crate::{Finding, SourceFile, Tree, mask::words};

/// Places that may contain `unsafe`, and why.
const PLACES: &[(&str, &str)] = &[
    ("bindings/c/src/", "the boundary to C"),
    ("bindings/python/src/buffer.rs", "memory that numpy and Arrow read in place"),
    ("crates/tamis-bits/src/", "succinct structures and vector code"),
    ("crates/tamis/src/memtable/", "nodes of the skip list"),
    ("crates/tamis/tests/allocations.rs", "an allocator that counts"),
    ("crates/tamis/tests/it/fork.rs", "a forked child"),
    ("crates/tamis-filter/tests/it/allocations.rs", "an allocator that counts"),
    ("crates/tamis-vfs/src/fork", "the handler of fork"),
    ("crates/tamis-vfs/src/os.rs", "mapping of files"),
    ("crates/tamis-vfs/src/os/", "mapping of files"),
    ("research/compare/src/store/", "stores with a C interface"),
];

/// How many lines above an `unsafe` its reason may begin.
const REASON_LINES_MAX: usize = 8;

/// Only the places of the table contain `unsafe`, each with `SAFETY:` (or `# Safety` for a function) just above.
pub fn unsafe_is_local_and_justified(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust_files() {
        for (offset, _) in words(&file.code).filter(|(_, word)| *word == "unsafe") {
            let line = file.line_of(offset);
            // An attribute, such as that of a symbol's name, executes nothing.
            let is_attribute = file.code.get(..offset).is_some_and(|before| before.ends_with("#["));
            if is_attribute && file.path.starts_with("bindings/") {
                continue;
            }
            if !PLACES.iter().any(|(place, _)| file.path.starts_with(place)) {
                let places: Vec<_> = PLACES.iter().map(|(place, why)| format!("{place} ({why})")).collect();
                let message = format!("no `unsafe` here: use safe code, or move it to {}", places.join(", "));
                findings.push(Finding::new(&file.path, line, message));
            } else if !is_justified(file, line) {
                let advice =
                    "say why it is sound: `// SAFETY:` above a block, `# Safety` in the docs of a function";
                findings.push(Finding::new(&file.path, line, advice));
            }
        }
    }
    findings
}

fn is_justified(file: &SourceFile, line: usize) -> bool {
    let first = line.saturating_sub(REASON_LINES_MAX + 1);
    let near: Vec<&str> = file.text.lines().skip(first).take(line - first).collect();
    let here = near.last().copied().unwrap_or_default();
    if here.contains("unsafe fn") || here.contains("unsafe trait") {
        return documented(file, line);
    }
    near.iter().any(|text| text.contains("SAFETY:")) || file.is_test()
}

/// Whether the doc comment that ends above `line` has a section on safety.
fn documented(file: &SourceFile, line: usize) -> bool {
    let above: Vec<&str> = file.text.lines().take(line - 1).collect();
    let docs = above.iter().rev().map(|text| text.trim_start());
    let mut docs =
        docs.take_while(|text| text.starts_with("///") || text.starts_with('#') || text.starts_with("//"));
    docs.any(|text| text.contains("# Safety") || text.contains("SAFETY:"))
}

#[cfg(test)]
mod tests;
