//! Files and pages that nothing names are found, and names without a file too.

use super::{dead_pages, dead_sources};
use crate::Tree;

#[test]
fn a_file_that_no_mod_names_is_dead() {
    let tree = Tree::of_samples(&[
        (
            "crates/a/src/lib.rs",
            "mod b;\npub mod c;\nmod d { }\n// mod e;\n#[path = \"../inner/h.rs\"]\nmod h;",
        ),
        ("crates/a/inner/h.rs", ""),
        ("crates/a/inner/i.rs", ""),
        ("crates/a/src/b.rs", "#[cfg(test)]\nmod tests;"),
        ("crates/a/src/b/tests.rs", ""),
        ("crates/a/src/c/mod.rs", "mod f;"),
        ("crates/a/src/c/f.rs", ""),
        ("crates/a/src/e.rs", ""),
        ("crates/a/build.rs", ""),
        ("crates/a/src/b/build.rs", "mod missing;"),
        ("crates/a/tests/it/main.rs", "mod g;"),
        ("crates/a/tests/it/g.rs", ""),
        ("crates/a/tests/alone.rs", "mod missing;"),
        ("fuzz/fuzz_targets/table.rs", ""),
    ]);
    let found: Vec<_> = dead_sources(&tree).into_iter().map(|finding| finding.path).collect();
    let dead =
        ["crates/a/tests/alone.rs", "crates/a/inner/i.rs", "crates/a/src/b/build.rs", "crates/a/src/e.rs"];
    assert_eq!(found, dead);
}

#[test]
fn a_page_is_linked_and_links_lead_somewhere() {
    let tree = Tree::of_samples(&[
        ("README.md", "[design](ARCHITECTURE.md), [web](https://example.org), [no](missing.md#part)."),
        ("ARCHITECTURE.md", "See docs/format/table.md."),
        ("docs/format/table.md", "[log](wal.md)"),
        ("docs/format/wal.md", "[up](../../README.md) docs/format/lonely.md.old"),
        ("docs/format/lonely.md", ""),
        ("crates/a/src/lib.rs", "//! Bytes: `docs/format/gone.md`."),
    ]);
    let found: Vec<_> = dead_pages(&tree).into_iter().map(|f| (f.path, f.line)).collect();
    let expected = [("README.md", 1), ("crates/a/src/lib.rs", 1), ("docs/format/lonely.md", 0)];
    assert_eq!(found, expected.map(|(path, line)| (path.to_owned(), line)));
}
