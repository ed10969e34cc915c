//! The table of docs/guide/c.md names the counterpart of every public method of the engine's main types in C and Python, or the
//! reason why it is left out.

use std::collections::{BTreeMap, BTreeSet};

const SOURCES: &[&str] = &[
    include_str!("../../../../crates/tamis/src/db/mod.rs"),
    include_str!("../../../../crates/tamis/src/db/keyspace.rs"),
    include_str!("../../../../crates/tamis/src/db/snapshot.rs"),
    include_str!("../../../../crates/tamis/src/batch.rs"),
    include_str!("../../../../crates/tamis/src/read/scan.rs"),
    include_str!("../../../../crates/tamis/src/transaction/handle.rs"),
    include_str!("../../../../crates/tamis/src/changes/mod.rs"),
];
const TYPES: &[&str] = &[
    "Db",
    "Keyspace",
    "Snapshot",
    "Scan",
    "WriteBatch",
    "Transaction",
    "Changes",
    "CommittedBatch",
    "IngestedTables",
];

/// The public methods of the types, as `Type::method`.
fn methods() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for source in SOURCES {
        let mut current = None;
        for line in source.lines() {
            if let Some(rest) = line.strip_prefix("impl ") {
                current = rest.strip_suffix(" {").filter(|name| TYPES.contains(name));
            } else if line == "}" {
                current = None;
            }
            let declared =
                line.strip_prefix("    pub ").map(|rest| rest.strip_prefix("const ").unwrap_or(rest));
            let name = declared
                .and_then(|rest| rest.strip_prefix("fn "))
                .and_then(|rest| rest.split(['(', '<']).next());
            if let (Some(of), Some(name)) = (current, name) {
                found.insert(format!("{of}::{name}"));
            }
        }
    }
    found
}

/// The rows of the table: the cells for C and Python by the Rust method.
fn rows() -> BTreeMap<String, Vec<String>> {
    let guide = include_str!("../../../../docs/guide/c.md");
    let section = guide.split("\n## Rust, C and Python\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let mut rows = BTreeMap::new();
    for line in section.lines().filter(|line| line.starts_with("| `")) {
        let mut cells = line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned());
        let rust = cells.next().unwrap();
        let others: Vec<String> = cells.collect();
        assert_eq!(others.len(), 2, "{line}");
        for method in names(&rust) {
            assert!(rows.insert(method.to_owned(), others.clone()).is_none(), "{method} is in two rows");
        }
    }
    rows
}

/// The names in backticks.
fn names(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

fn is_reason(cell: &str) -> bool {
    cell.strip_prefix("left out: ").is_some_and(|reason| reason.len() > 10)
}

#[test]
fn every_method_has_a_counterpart_or_a_reason() {
    let (methods, rows) = (methods(), rows());
    assert!(methods.len() > 60 && methods.contains("Scan::move_next"), "{methods:?}");
    let named: BTreeSet<String> = rows.keys().cloned().collect();
    let missing: Vec<_> = methods.difference(&named).collect();
    assert!(missing.is_empty(), "docs/guide/c.md: the table of languages has no row for {missing:?}");
    let gone: Vec<_> = named.difference(&methods).collect();
    assert!(gone.is_empty(), "docs/guide/c.md: no such methods: {gone:?}");
}

#[test]
fn the_counterparts_exist() {
    let header = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/include/tamis.h")).unwrap();
    let stubs = include_str!("../../../python/python/tamis/_tamis.pyi");
    for (method, cells) in rows() {
        let [c, python] = cells.as_slice() else { unreachable!() };
        for name in names(c).filter(|_| !is_reason(c)) {
            assert!(header.contains(&format!(" {name}(")), "{method}: {name} is not in tamis.h");
        }
        for name in names(python).filter(|_| !is_reason(python)) {
            let last = name.rsplit('.').next().unwrap();
            assert!(stubs.contains(&format!("def {last}(")), "{method}: {name} is not in _tamis.pyi");
        }
        for cell in [c, python] {
            assert!(is_reason(cell) || names(cell).next().is_some(), "{method}: {cell:?}");
        }
    }
}
