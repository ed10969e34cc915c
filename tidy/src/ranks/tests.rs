//! Imports upwards and sideways are found, circles are named with their files, and the table has no holes.

use super::{ROWS, crate_imports, module_ranks, no_circles, root_is_a_list};
use crate::{Finding, Tree};

fn places(findings: &[Finding]) -> Vec<(&str, usize)> {
    findings.iter().map(|finding| (finding.path.as_str(), finding.line)).collect()
}

#[test]
fn a_module_imports_lower_ranks_only() {
    let tree = Tree::of_samples(&[
        ("crates/tamis/src/lib.rs", "mod key;\npub use db::Db;"),
        ("crates/tamis/src/key.rs", "use crate::error::Error;"),
        ("crates/tamis/src/error.rs", ""),
        ("crates/tamis/src/db.rs", "use crate::{table::Table, wal};"),
        ("crates/tamis/src/wal/mod.rs", "use crate::memtable::Memtable;"),
        ("crates/tamis/src/memtable/mod.rs", "use crate::{key, cursor::Cursor, Db};"),
        ("crates/tamis/src/cursor/mod.rs", "mod merge;\npub(crate) use merge::Merge;"),
        ("crates/tamis/src/cursor/merge.rs", "use super::Cursor; use crate::table;"),
        ("crates/tamis/src/table/mod.rs", "\nfn f() { crate::cursor::Merge::new() }"),
        ("crates/tamis/src/table/tests.rs", "use crate::db::Db;"),
        ("crates/tamis/src/attic.rs", ""),
    ]);
    let found = module_ranks(&tree);
    let expected = [
        ("crates/tamis/src/attic.rs", 0),
        ("crates/tamis/src/memtable/mod.rs", 1),
        ("crates/tamis/src/table/mod.rs", 2),
        ("crates/tamis/src/wal/mod.rs", 1),
    ];
    assert_eq!(places(&found), expected, "{found:#?}");
}

#[test]
fn a_circle_of_imports_is_reported_with_both_files() {
    let tree = Tree::of_samples(&[
        ("crates/tamis/src/table/mod.rs", "mod block;\nmod index;\nuse block::Block;"),
        ("crates/tamis/src/table/block.rs", "use super::Table;\nuse super::index::Index;"),
        ("crates/tamis/src/table/index.rs", "use crate::table::reader::Reader;"),
        ("crates/tamis/src/table/reader.rs", "use super::block::Block;"),
    ]);
    let found = no_circles(&tree);
    assert_eq!(places(&found), [("crates/tamis/src/table/block.rs", 2)], "{found:#?}");
    let message = found.first().map(|finding| finding.message.clone()).unwrap_or_default();
    for file in ["table/block.rs", "table/index.rs", "table/reader.rs"] {
        assert!(message.contains(file), "{message}");
    }
}

#[test]
fn each_import_is_in_one_circle_only() {
    let tree = Tree::of_samples(&[
        ("crates/tamis-vfs/src/a.rs", "use crate::b::B;\nuse crate::c::C;"),
        ("crates/tamis-vfs/src/b.rs", "use crate::a::A;\nuse crate::c::C;"),
        ("crates/tamis-vfs/src/c.rs", "\nuse crate::a::A;"),
        ("crates/tamis-vfs/src/lib.rs", "mod a; mod b; mod c; pub use a::A;"),
    ]);
    let found = no_circles(&tree);
    assert_eq!(
        places(&found),
        [("crates/tamis-vfs/src/a.rs", 1), ("crates/tamis-vfs/src/a.rs", 2)],
        "{found:#?}"
    );
}

#[test]
fn crates_import_lower_crates_only() {
    let tree = Tree::of_samples(&[
        (
            "crates/tamis-bits/Cargo.toml",
            "[dependencies]\nlibc = \"1\"\n[dev-dependencies]\ntamis-filter.workspace = true",
        ),
        (
            "crates/tamis/Cargo.toml",
            "[dependencies]\ntamis-bits.workspace = true\ntamis-workload.workspace = true",
        ),
        ("crates/tamis-cli/Cargo.toml", "[dependencies]\ntamis = { path = \"../tamis\" }"),
    ]);
    let found = crate_imports(&tree);
    assert_eq!(places(&found), [("crates/tamis-bits/Cargo.toml", 4), ("crates/tamis/Cargo.toml", 3)]);
}

#[test]
fn the_crate_root_has_no_items() {
    let tree =
        Tree::of_samples(&[("crates/tamis/src/lib.rs", "//! Docs of fn.\nmod a;\npub use a::B;\nfn f() {}")]);
    assert_eq!(places(&root_is_a_list(&tree)), [("crates/tamis/src/lib.rs", 4)]);
}

#[test]
fn every_module_has_one_rank() {
    let all: Vec<&str> = ROWS.iter().flat_map(|row| row.split(' ')).collect();
    let mut once = all.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(all.len(), once.len());
}
