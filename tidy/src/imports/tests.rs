//! Imports are found in every way in which they are written, and lead to the module that a name comes from.

use super::ModuleMap;
use crate::Tree;

fn imports(samples: &[(&str, &str)], module: &[&str]) -> Vec<(String, usize)> {
    let tree = Tree::of_samples(samples);
    let map = ModuleMap::of_crate(&tree, "x");
    let module = module.iter().map(|name| (*name).to_owned()).collect();
    map.imports_of(&module).into_iter().map(|import| (import.target.join("/"), import.line)).collect()
}

const SAMPLES: &[(&str, &str)] = &[
    ("crates/x/src/lib.rs", "mod key;\nmod table;\npub use key::{Key, compare as order};"),
    ("crates/x/src/key.rs", "use std::cmp;"),
    (
        "crates/x/src/table/mod.rs",
        "mod block;\nmod reader;\npub(crate) use block::Block;\nuse reader::Reader;",
    ),
    (
        "crates/x/src/table/block.rs",
        "use crate::{\n  key::{self, Key},\n  table::reader::{a::B, C},\n};\n// use crate::db::Db;",
    ),
    ("crates/x/src/table/reader.rs", "use super::Block;\nfn f() -> crate::Key { super::super::key::f() }"),
];

#[test]
fn trees_groups_and_plain_paths_are_read() {
    let found = imports(SAMPLES, &["table", "block"]);
    assert_eq!(found, [("key".to_owned(), 1), ("table/reader".to_owned(), 1)]);
}

#[test]
fn reexports_lead_to_where_a_name_comes_from() {
    let found = imports(SAMPLES, &["table", "reader"]);
    assert_eq!(found, [("key".to_owned(), 2), ("table/block".to_owned(), 1)]);
}

#[test]
fn children_are_imports_and_other_crates_are_not() {
    let found = imports(SAMPLES, &["table"]);
    assert_eq!(found, [("table/block".to_owned(), 3), ("table/reader".to_owned(), 4)]);
    assert_eq!(imports(SAMPLES, &["key"]), []);
}
