//! `demo` checks its own results; these tests check the exit code, the report, and that it leaves nothing behind.

use crate::Folder;

const SMALL: [&str; 7] = ["demo", "--paths", "tree", "--events", "3000", "--reads", "100"];

fn tree() -> Folder {
    let folder = Folder::new();
    for name in ["tree/bin", "tree/lib/deep"] {
        std::fs::create_dir_all(folder.path(name)).unwrap();
    }
    for number in 0..300 {
        folder.write(&format!("tree/lib/deep/file{number}"), "content");
    }
    folder
}

#[test]
fn demo_reports_all_steps_and_deletes_its_store() {
    let folder = tree();
    let text = folder.ok(&SMALL);
    for expected in ["load paths", "paths: get, absent", "empty range", "reverse", "snapshot", "*.log"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    for keyspace in ["paths", "events"] {
        let is_named = |line: &str| {
            line.starts_with("Filters of ")
                && line.contains(&format!(" of {keyspace} in L"))
                && !line.contains(": none")
        };
        assert!(text.lines().any(is_named), "{text}");
    }
    // No rate of the chosen filters is 0: up to 2 of 100 ranges without a key are false positives.
    for name in
        ["paths: prefix of an absent folder", "paths: empty range of names", "events: empty range, reverse"]
    {
        let row = text.lines().find(|line| line.contains(&format!("{name} "))).unwrap();
        let cells: Vec<&str> =
            row.split(['\u{2506}', '\u{2502}']).map(str::trim).filter(|cell| !cell.is_empty()).collect();
        let blocks: Vec<f64> = cells[cells.len() - 2..].iter().map(|cell| cell.parse().unwrap()).collect();
        assert!(blocks.iter().all(|blocks| *blocks <= 0.02), "blocks per operation: {row}");
    }
    assert_eq!(std::fs::read_dir(folder.0.path()).unwrap().count(), 1, "only the tree is left");
}

#[test]
fn demo_succeeds_with_every_access_mode() {
    let folder = tree();
    for access in ["buffered", "direct"] {
        // The demo checks every answer itself.
        let text = folder.ok(&[&SMALL[..], &["--access", access]].concat());
        assert!(text.contains("paths: get, present"), "{text}");
    }
    assert!(folder.fails(2, &["demo", "--access", "telepathic"]).contains("buffered"));
}

#[test]
fn keep_leaves_a_valid_store() {
    let folder = tree();
    let report: serde_json::Value =
        serde_json::from_str(&folder.ok(&[&SMALL[..], &["--keep", "--json"]].concat())).unwrap();
    let step = |name: &str| {
        let steps = report["steps"].as_array().unwrap();
        steps.iter().find(|step| step["step"] == name).unwrap().clone()
    };
    // 300 files and the folders bin, lib and deep.
    assert_eq!(step("load paths")["entries"], 303);
    assert_eq!(step("events: full scan, reverse")["entries"], 3000);
    assert_eq!(step("events: empty range")["entries"], 0);
    let store = report["folder"].as_str().unwrap();
    for name in [
        "paths: prefix of an absent folder",
        "paths: empty range of names",
        "events: empty range",
        "events: empty range, reverse",
    ] {
        let step = step(name);
        let blocks = step["blocks_read"].as_u64().unwrap() + step["blocks_from_memory"].as_u64().unwrap();
        // Without filters each reads a block. The first range comes right after the choice of filters.
        let share_max = if name == "events: empty range" { 0.05 } else { 0.02 };
        assert!(blocks as f64 <= share_max * step["operations"].as_f64().unwrap(), "{step}");
    }
    for name in ["paths", "events"] {
        let all = report["filters"].as_array().unwrap();
        let of_keyspace = all.iter().find(|keyspace| keyspace["keyspace"] == name).unwrap();
        let filters = of_keyspace["filters"].as_array().unwrap();
        let is_named = |filters: &serde_json::Value| filters["filters"] != "" && filters["tables"] != 0;
        assert!(!filters.is_empty() && filters.iter().all(is_named), "{all:?}");
    }
    let last = folder.ok(&["scan", store, "--keyspace", "paths", "--reverse", "--limit", "1"]);
    assert!(last.starts_with("tree/lib/deep/file99\tsize=7 mtime="), "{last}");
    assert!(folder.ok(&["verify", store]).contains("no faults"));
}

#[test]
fn a_missing_folder_is_named() {
    let folder = Folder::new();
    assert!(folder.fails(4, &["demo", "--paths", "absent"]).contains("absent"));
    assert!(folder.is_empty());
}

#[test]
fn too_little_disk_is_reported_before_loading() {
    let folder = tree();
    let message =
        folder.fails(4, &[&SMALL[..3], &["--events", "1000000000", "--value-bytes", "1048576"]].concat());
    assert!(message.contains("disk") && message.contains("MiB"), "{message}");
    assert_eq!(std::fs::read_dir(folder.0.path()).unwrap().count(), 1, "only the tree is there");
}
