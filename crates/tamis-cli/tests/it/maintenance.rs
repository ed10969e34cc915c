//! Maintenance commands: compact, checkpoint, export, build, ingest, repair, inspect, shell, completions; and every command on
//! a damaged store.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tamis::{Db, KeyspaceOptions, Layout, Options, Views};

use crate::Folder;

/// A store with a table and a log.
fn store() -> Folder {
    let folder = Folder::new();
    let rows: String = (0..2000).map(|row| format!("key{row:06},value {row}\n")).collect();
    folder.write("rows.csv", rows);
    folder.ok(&["load", "store", "rows.csv", "--no-header"]);
    folder.ok(&["put", "store", "in the log", "only"]);
    folder
}

fn files(folder: &Folder, store: &str, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder.path(store)).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> = entries.filter(|path| path.extension().is_some_and(|e| e == extension)).collect();
    found.sort();
    found
}

fn name(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[expect(clippy::disallowed_methods, reason = "the damage that is tested")]
fn remove(path: &Path) {
    std::fs::remove_file(path).unwrap();
}

fn flip(path: &Path, place: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[place] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn compact_drops_obsolete_versions_and_tombstones() {
    let folder = store();
    for row in 0..5 {
        folder.ok(&["delete", "store", &format!("key{row:06}")]);
    }
    let message = folder.ok(&["compact", "store"]);
    assert!(message.starts_with("table size "), "{message}");
    let levels = json(&folder.ok(&["stats", "store", "--json"]))["keyspaces"][0]["levels"].clone();
    let sum =
        |field: &str| levels.as_array().unwrap().iter().map(|l| l[field].as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum("entries"), sum("tombstones")), (1996, 0));
    let report = json(&folder.ok(&["compact", "store", "--prefix", "key0000", "--json"]));
    assert!(report["bytes_after"].as_u64().unwrap() > 0);
    let message = folder.fails(3, &["compact", "nowhere"]);
    assert!(message.contains("nowhere") && !folder.path("nowhere").exists(), "{message}");
    assert!(folder.fails(3, &["compact", "store", "--keyspace", "none"]).contains("there are: default"));
    folder.fails(2, &["compact", "store", "--key-format", "u64", "--lower", "many"]);
}

#[test]
fn a_checkpoint_is_an_independent_store() {
    let folder = store();
    let message = folder.ok(&["checkpoint", "store", "copy"]);
    assert!(message.contains(" linked, "), "{message}");
    folder.ok(&["put", "store", "key000000", "changed"]);
    assert_eq!(folder.ok(&["get", "copy", "key000000"]), "value 0\n");
    assert_eq!(folder.ok(&["get", "copy", "in the log"]), "only\n");
    folder.ok(&["verify", "copy"]);
    let message = folder.fails(3, &["checkpoint", "store", "copy"]);
    assert!(message.contains("new or empty"), "{message}");
    assert!(
        json(&folder.ok(&["checkpoint", "store", "other", "--json"]))["linked_files"].as_u64().unwrap() > 0
    );
    folder.fails(3, &["checkpoint", "nowhere", "third"]);
    assert!(!folder.path("third").exists());
}

#[test]
fn export_and_load_round_trip() {
    let folder = store();
    folder.ok(&["put", "store", "--key-format", "hex", "ff00", "--value-format", "hex", "0d0a2c22"]);
    folder.ok(&["put", "store", "quote \"and, comma", "line\nbreak"]);
    let all = folder.ok(&["scan", "store", "--json"]);
    for file in ["all.csv", "all.jsonl"] {
        let message = folder.ok(&["export", "store", file]);
        assert!(message.starts_with("2,003 entries"), "{message}");
        assert!(!folder.path(&format!("{file}.part")).exists());
        folder.ok(&["load", file.split_once('.').unwrap().1, file]);
        assert_eq!(folder.ok(&["scan", file.split_once('.').unwrap().1, "--json"]), all);
        assert!(folder.fails(4, &["export", "store", file]).contains("already exists"));
    }
    let part = folder.ok(&[
        "export",
        "store",
        "-",
        "--format",
        "csv",
        "--prefix",
        "key00000",
        "--value-format",
        "hex",
    ]);
    assert_eq!(part.lines().count(), 11);
    assert!(part.starts_with("key,value\nkey000000,"), "{part}");
    assert!(folder.fails(2, &["export", "store", "all.txt"]).contains("--format csv"));
    let message = folder.fails(2, &["export", "store", "-", "--format", "csv", "--value-format", "u64"]);
    assert!(message.contains("not a 64-bit number"), "{message}");
    folder.fails(2, &["export", "store", "new.csv", "--value-format", "u64"]);
    assert!(!folder.path("new.csv.part").exists(), "the useless partial file is deleted");
    folder.fails(3, &["export", "nowhere", "new.csv"]);
    // Existing files, partial files of earlier exports, and dangling symbolic links are not overwritten.
    folder.write("new.csv.part", "mine");
    let message = folder.fails(4, &["export", "store", "new.csv"]);
    assert!(message.contains("new.csv.part") && message.contains("delete it"), "{message}");
    assert_eq!(std::fs::read(folder.path("new.csv.part")).unwrap(), b"mine");
    assert!(!folder.path("new.csv").exists());
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("elsewhere", folder.path("link.csv")).unwrap();
        assert!(folder.fails(4, &["export", "store", "link.csv"]).contains("already exists"));
        assert!(folder.path("link.csv").is_symlink() && !folder.path("elsewhere").exists());
    }
    folder.fails(4, &["export", "store", "no/such/folder.csv"]);
}

/// The entries before the damage are kept, and the message names the file.
#[test]
fn an_export_of_a_damaged_store_names_its_partial_file() {
    let folder = store();
    let table = files(&folder, "store", "table").remove(0);
    flip(&table, 9000);
    let message = folder.fails(3, &["export", "store", "all.csv"]);
    assert!(message.contains(name(table.file_name().unwrap().as_ref())), "{message}");
    assert!(message.contains("the entries before the damage are in all.csv.part"), "{message}");
    assert!(!folder.path("all.csv").exists());
    let part = std::fs::read_to_string(folder.path("all.csv.part")).unwrap();
    assert!(part.lines().count() > 100 && part.lines().nth(8) == Some("key000006,value 6"), "{part}");
}

#[cfg(target_os = "linux")]
#[test]
fn an_export_to_a_full_disk_exits_with_4() {
    let folder = store();
    for words in [
        ["export", "store", "/dev/full", "--format", "csv"].as_slice(),
        &["export", "store", "/dev/full", "--format", "jsonl"],
    ] {
        let message = folder.fails(4, words);
        assert!(message.contains("/dev/full") && message.contains("No space left"), "{message}");
    }
    for words in
        [["export", "store", "-", "--format", "csv"].as_slice(), &["scan", "store"], &["stats", "store"]]
    {
        let mut command = folder.command(words);
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = command.stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(4), "{words:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("No space left"), "{output:?}");
    }
}

#[test]
fn ingestion_of_built_tables_is_atomic() {
    let folder = store();
    folder.write("new.csv", "key,value\nkey000001,newer\nzebra,last\n");
    assert!(folder.ok(&["build", "new.csv", "new.table"]).starts_with("2 entries"));
    folder.ok(&["ingest", "store", "new.table", "--keep"]);
    assert_eq!(folder.ok(&["get", "store", "key000001"]), "newer\n");
    assert_eq!(folder.ok(&["get", "store", "zebra"]), "last\n");
    let report = json(&folder.ok(&["ingest", "fresh", "new.table", "--json"]));
    assert_eq!((&report["entries"], &report["kept"]), (&2.into(), &serde_json::json!([])));
    assert!(!folder.path("new.table").exists(), "it was moved into the store");
    folder.ok(&["build", "new.csv", "new.table"]);
    assert_eq!(folder.ok(&["scan", "fresh", "--keys-only"]), "key000001\nzebra\n");

    folder.write("unsorted.csv", "key,value\nb,1\na,2\n");
    let message = folder.fails(4, &["build", "unsorted.csv", "unsorted.table"]);
    let expected = "unsorted.csv: line 3: the key a is not greater than the previous key; sort the input by";
    assert!(message.contains(expected), "{message}");
    folder.write("unsorted.jsonl", "{\"key\": \"b\", \"value\": 1}\n\n{\"key\": \"a\", \"value\": 1}\n");
    let words = ["build", "unsorted.jsonl", "unsorted.table", "--value-format", "u64"];
    assert!(folder.fails(4, &words).contains("unsorted.jsonl: line 3: the key a"));
    let values = [2_u64, 7, 7].map(u64::to_le_bytes).concat();
    folder.write("unsorted.keys", values);
    let words = ["build", "unsorted.keys", "unsorted.table", "--key-format", "u64"];
    assert!(folder.fails(4, &words).contains("unsorted.keys: offset 16: the key 7 "));
    folder.write("empty.csv", "key,value\n");
    assert!(folder.fails(4, &["build", "empty.csv", "empty.table"]).contains("no entries"));
    folder.write("cut.jsonl", "{\"key\": \"a\", \"value\": \"1\"}\n{\"key\": \"b\", \"va");
    assert!(folder.fails(4, &["build", "cut.jsonl", "cut.table"]).contains("line 2"));
    assert!(
        folder.fails(4, &["build", "new.csv", "new.table"]).contains("new.table: already exists"),
        "existing tables are not overwritten"
    );
    for table in ["unsorted.table", "empty.table", "cut.table"] {
        assert!(
            !folder.path(table).exists() && !folder.path(&format!("{table}.tamis-tmp")).exists(),
            "{table}"
        );
    }

    let message = folder.fails(3, &["ingest", "store", "new.table", "new.table"]);
    assert!(message.contains("one after the other"), "{message}");
    let whole = std::fs::read(folder.path("new.table")).unwrap();
    folder.write("cut.table", &whole[..whole.len() - 100]);
    for (store, table) in [("store", "new.csv"), ("made", "new.csv"), ("store", "cut.table")] {
        let message = folder.fails(4, &["ingest", store, table]);
        assert!(message.contains(table) && message.contains("truncated or of another kind"), "{message}");
        assert!(!message.contains("tamis repair") && !message.contains("from a copy"), "{message}");
    }
    folder.fails(4, &["ingest", "made", "missing.table"]);
    assert!(!folder.path("made").exists(), "an invalid table creates no store");
    assert!(
        folder
            .fails(2, &["build", "new.csv", "other.table", "--zstd", "99"])
            .contains("give a number from 1 to 19")
    );
    let own = files(&folder, "store", "table").remove(0);
    assert!(folder.fails(4, &["ingest", "store", name(&own)]).contains("outside of a store"));
    std::fs::copy(folder.path("new.table"), folder.path("bad.table")).unwrap();
    flip(&folder.path("bad.table"), 40);
    let message = folder.fails(4, &["ingest", "store", "bad.table"]);
    assert!(message.contains("bad.table") && message.contains("offset"), "{message}");
    assert!(!message.contains("tamis repair"), "{message}");
    assert_eq!(folder.ok(&["get", "store", "zebra"]), "last\n");
}

#[test]
fn repair_reports_what_it_repaired() {
    let folder = store();
    assert_eq!(folder.ok(&["repair", "store"]), "no faults; the store was not changed\n");
    remove(&folder.path("store/CURRENT"));
    assert!(folder.fails(3, &["get", "store", "key000001"]).contains("CURRENT"));
    let message = folder.ok(&["repair", "store"]);
    assert!(message.contains("CURRENT: ") && message.contains("1 fault repaired"), "{message}");
    assert_eq!(folder.ok(&["get", "store", "key000001"]), "value 1\n");
    assert_eq!(folder.ok(&["get", "store", "in the log"]), "only\n");

    let table = files(&folder, "store", "table").remove(0);
    flip(&table, 5000);
    let report = json(&folder.ok(&["repair", "store", "--json"]));
    assert_eq!(report["sound"], false);
    assert_eq!(report["lost_ranges"][0]["keyspace"], "default");
    assert_eq!(report["lost_ranges"][0]["may_lose_deletes"], false);
    assert!(
        report["quarantined"]
            .as_array()
            .unwrap()
            .iter()
            .all(|left| { Path::new(&folder.path(left["file"].as_str().unwrap())).exists() })
    );
    assert!(folder.ok(&["verify", "store"]).contains("no faults"));
    for manifest in files(&folder, "store", "manifest") {
        remove(&manifest);
    }
    let message = folder.ok(&["repair", "store"]);
    assert!(
        message.contains("writes and deletes may be lost: keyspace default, from \"in the log\" to"),
        "{message}"
    );
    folder.ok(&["verify", "store"]);
    assert!(folder.fails(3, &["repair", "nowhere"]).contains("nowhere"));
}

/// Without a manifest, verify reads all tables and log segments in the folder.
#[test]
fn verify_reads_all_files_without_a_manifest() {
    let folder = store();
    // A later segment proves that the damage in this one is not a torn write.
    folder.ok(&["put", "store", "later", "too"]);
    for manifest in files(&folder, "store", "manifest") {
        remove(&manifest);
    }
    let table = files(&folder, "store", "table").remove(0);
    let holds = |log: &PathBuf| {
        let bytes = std::fs::read(log).unwrap();
        Some((log.clone(), bytes.windows(10).position(|word| word == b"in the log")?))
    };
    let (log, place) = files(&folder, "store", "log").iter().find_map(holds).unwrap();
    flip(&table, 5000);
    flip(&log, place);
    let run = folder.tamis(&["verify", "store"]);
    assert_eq!(run.code, 3, "{}", run.stderr);
    for path in [&table, &log] {
        assert!(run.stdout.contains(path.file_name().unwrap().to_str().unwrap()), "{}", run.stdout);
    }
}

/// Keys were printed as debug output of the program, and options took hundreds of characters.
#[test]
fn inspect_prints_a_manifest_as_readable_lines() {
    let folder = Folder::new();
    let layout = Layout::Partitioned { tables_per_partition: 4 };
    let keyspace = KeyspaceOptions::default()
        .memtable_bytes(64 << 10)
        .table_bytes(64 << 10)
        .layout(layout)
        .views(Views::On);
    let options = Options::default().default_keyspace(keyspace);
    let db = Db::open_with(folder.path("store"), options).unwrap();
    for number in 0..20_000_u64 {
        // All bytes are escaped.
        let key = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes().map(|byte| byte | 0x80);
        db.put(key, [b'"'; 20]).unwrap();
    }
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    db.close().unwrap();
    let report = json(&folder.ok(&["inspect", "store/CURRENT", "--json"]));
    let lines: Vec<String> = report["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| format!("{}: {}", row["change"].as_str().unwrap(), row["what"].as_str().unwrap()))
        .collect();
    for begin in [
        "create keyspace: 1 named default: memtable_bytes 65536, table_bytes 65536, views on, layout partitioned:",
        "add partition: 1 of keyspace 1 from the first key on, flushed up to 0",
        "advance counters: next file ",
        "set view: ",
    ] {
        assert!(lines.iter().any(|line| line.starts_with(begin)), "{begin}: {lines:#?}");
    }
    let from_key = |line: &&String| line.starts_with("add partition: ") && line.contains(" from key \\x");
    assert!(lines.iter().find(from_key).is_some(), "{lines:#?}");
    for line in &lines {
        assert!(line.len() < 300 && !line.contains("{ ") && !line.contains(" }"), "{line}");
        assert!(!line.contains("EscapeAscii") && !line.contains("Some("), "{line}");
    }
}

/// `inspect` called it a fault where `verify` found none.
#[test]
fn a_torn_tail_is_no_fault_and_both_commands_say_so() {
    let folder = store();
    let log = files(&folder, "store", "log").pop().unwrap();
    let bytes = std::fs::read(&log).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let torn = [&bytes[..end], b"P1234567890123456789"].concat();
    std::fs::write(&log, &torn).unwrap();
    let report = json(&folder.ok(&["verify", "store", "--json"]));
    let number = |name: &str| report["torn_tails"][0][name].as_u64().unwrap();
    let (offset, dropped) = (number("offset"), number("bytes"));
    // A mark after the last record is dropped, too.
    assert!(offset + dropped == torn.len() as u64 && (20..40).contains(&dropped), "{report}");
    let (inspected, verified) = (folder.ok(&["inspect", "log", name(&log)]), folder.ok(&["verify", "store"]));
    let line = format!("offset {offset}: torn tail, {dropped} bytes, dropped at the next open");
    for shown in [&inspected, &verified] {
        assert!(shown.contains(&line), "{line}: {shown}");
    }
    assert!(verified.contains("no faults"), "{verified}");
    let report = json(&folder.ok(&["inspect", "log", name(&log), "--json"]));
    assert_eq!(
        (&report["torn_tail"]["bytes"], &report["faults"]),
        (&Value::from(dropped), &Value::Array(vec![]))
    );
    // Alone, under any name.
    std::fs::write(folder.path("copy of the log"), &torn).unwrap();
    assert!(folder.ok(&["inspect", "log", "copy of the log"]).contains(&line));
}

/// The kind was that of the name.
#[test]
fn inspect_knows_every_kind_of_file_by_its_bytes() {
    let folder = store();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tamis/tests/golden/view");
    let first = |extension| files(&folder, "store", extension).remove(0);
    for (number, (file, fact)) in [
        (first("table"), "entries: 2000"),
        (first("log"), "continues segment: "),
        (first("manifest"), "edits: "),
        (golden, "keys that are not deleted: "),
    ]
    .into_iter()
    .enumerate()
    {
        // Names of other kinds, and of none.
        for name in
            [format!("{:06}.log", 900 + number), format!("{:06}.table", 900 + number), "copy".to_owned()]
        {
            std::fs::copy(&file, folder.path(&name)).unwrap();
            let shown = folder.ok(&["inspect", &name]);
            assert!(shown.contains(fact), "{}: {name}: {shown}", file.display());
        }
    }
    std::fs::copy(folder.path("store/CURRENT"), folder.path("store/name of the manifest")).unwrap();
    assert!(folder.ok(&["inspect", "store/name of the manifest"]).contains("create keyspace"));
}

#[test]
fn inspect_prints_every_kind_of_file() {
    let folder = store();
    let table = files(&folder, "store", "table").remove(0);
    let shown = folder.ok(&["inspect", "table", name(&table), "--limit", "3"]);
    assert!(shown.contains("entries: 2000") && shown.contains("keyspace: default (1)"), "{shown}");
    let report = json(&folder.ok(&["inspect", "table", name(&table), "--json"]));
    let blocks = report["rows"].as_array().unwrap();
    assert_eq!(blocks.iter().map(|block| block["entries"].as_u64().unwrap()).sum::<u64>(), 2000);
    let report = json(&folder.ok(&["inspect", "block", name(&table), "0", "--json"]));
    assert_eq!(report["rows"][0]["key"], "key000000");
    assert_eq!(report["rows"][0]["value"], "value 0");
    assert!(folder.fails(2, &["inspect", "block", name(&table), "9999"]).contains("has blocks 0 to"));
    let shown = folder.ok(&["inspect", "filter", name(&table)]);
    assert!(shown.contains("filters: ") && shown.contains("chosen for 0 empty sampled queries"), "{shown}");
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tamis/tests/golden/view");
    let view = folder.path("000007.view");
    std::fs::copy(golden, &view).unwrap();
    let shown = folder.ok(&["inspect", "view", name(&view)]);
    assert!(shown.contains("entries: 650") && shown.contains("selectors: "), "{shown}");
    let report = json(&folder.ok(&["inspect", "view", name(&view), "--json"]));
    assert_eq!(report["facts"]["runs"].as_str().unwrap().matches("entries").count(), 3);
    flip(&view, 40);
    assert!(folder.fails(3, &["inspect", "view", name(&view)]).contains("1 fault; run `tamis verify`"));
    let logs = files(&folder, "store", "log");
    let shown: String = logs.iter().map(|log| folder.ok(&["inspect", "log", name(log), "--json"])).collect();
    assert!(shown.contains("in the log"), "{shown}");
    let shown = folder.ok(&["inspect", "manifest", "store/CURRENT"]);
    assert!(shown.contains("add table") && shown.contains("create keyspace"), "{shown}");
    let manifest = files(&folder, "store", "manifest").remove(0);
    folder.ok(&["inspect", "manifest", name(&manifest), "--json"]);

    flip(&table, 5000);
    let message = folder.fails(3, &["inspect", "table", name(&table)]);
    assert!(message.contains("1 fault; run `tamis verify`"), "{message}");
    assert!(folder.fails(3, &["inspect", "block", name(&table), "1"]).contains("offset 4096"));
    folder.write("text", "nothing of ours");
    let bytes = std::fs::read(&table).unwrap();
    folder.write("000001.manifest", "nothing of ours");
    folder.write("000001.table", &bytes[..bytes.len() / 2]);
    for what in ["table", "block", "filter", "view", "log", "manifest"] {
        for (file, text) in [
            ("text", "text"),
            ("000001.manifest", "000001.manifest"),
            ("000001.table", "000001.table"),
            ("missing", "missing: No such file"),
            ("000099.manifest", "000099.manifest: No such file"),
            ("store", "a folder"),
        ] {
            let words = ["inspect", what, file, "0"];
            let message = folder.fails(4, &words[..if what == "block" { 4 } else { 3 }]);
            assert!(message.contains(text), "{what} {file}: {message}");
            assert!(!message.contains("tamis repair") && !message.contains("CURRENT names"), "{message}");
        }
    }
    // Damage inside the store is reported as damage.
    remove(&manifest);
    assert!(folder.fails(3, &["inspect", "manifest", "store/CURRENT"]).contains("CURRENT names it"));
    folder.fails(2, &["inspect", "page", "text"]);
}

#[test]
fn the_shell_runs_lines_from_a_pipe() {
    let folder = Folder::new();
    let script = "# fruit\nput apple red\nput 'the pear' \"green and round\"\n\nget apple\nscan\ncount --prefix the\n\
        delete apple\nscan --reverse --limit 1\nkeyspace events --create\nput e 1\nkeyspace\nkeyspace default\n\
        flush\ncompact\nsync\nstats\nquit\nget never\n";
    let run = folder.tamis_with(&["shell", "store"], script.as_bytes());
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{}", run.stdout);
    let expected =
        "red\napple\tred\nthe pear\tgreen and round\n1\nthe pear\tgreen and round\ndefault\nevents\n";
    assert!(run.stdout.starts_with(expected), "{}", run.stdout);
    assert!(run.stdout.contains("L0") || run.stdout.contains("memory"), "{}", run.stdout);
    assert_eq!(folder.ok(&["scan", "store", "--keyspace", "events"]), "e\t1\n");

    for (script, code, text) in [
        ("put a\n", 2, "line 1"),
        ("put a 1\nfrobnicate\n", 2, "line 2"),
        ("put 'a 1\n", 2, "not closed"),
        ("get 'the pear'\nget nothing\n", 1, "line 2: not found"),
        ("keyspace none\n", 3, "/store; there are: default, events"),
        ("put '' 1\n", 3, "the key is empty"),
    ] {
        let run = folder.tamis_with(&["shell", "store"], script.as_bytes());
        assert_eq!(run.code, code, "{script}: {}", run.stderr);
        assert!(run.stderr.contains(text), "{script}: {}", run.stderr);
    }
    assert_eq!(folder.ok(&["get", "store", "a"]), "1\n", "lines before a failed one take effect");
    let run = folder.tamis_with(&["shell", "store"], b"help\n");
    assert!(run.code == 0 && run.stdout.contains("Count the entries"), "{}{}", run.stdout, run.stderr);
}

#[test]
fn the_shell_runs_transactions() {
    let folder = Folder::new();
    let script = "put a 1\nput b 2\nbegin\nput c 3\ndelete a\nget c\nscan\ncount\nkeyspace other --create\nput x 9\n\
        keyspace default\nrollback\nscan\nbegin exclusive\ndelete --prefix b\nput d 4\ncommit\nbegin snapshot\nput e 5\ncommit\n\
        scan --reverse\nquit\n";
    let run = folder.tamis_with(&["shell", "store"], script.as_bytes());
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{}", run.stdout);
    assert_eq!(run.stdout, "3\nb\t2\nc\t3\n2\na\t1\nb\t2\ne\t5\nd\t4\na\t1\n");
    assert_eq!(folder.ok(&["scan", "store", "--keyspace", "other"]), "");

    // The end of the lines rolls back, and says so.
    for (script, code) in
        [("begin\nput f 6\n", 0), ("begin exclusive\nput f 6\nquit\n", 0), ("begin\nput f 6\nget f g\n", 2)]
    {
        let run = folder.tamis_with(&["shell", "store"], script.as_bytes());
        assert_eq!(run.code, code, "{}", run.stderr);
        assert!(run.stderr.contains("the open transaction was rolled back"), "{}", run.stderr);
    }
    folder.fails(1, &["get", "store", "f"]);
    for (script, text) in [
        ("commit\n", "line 1: no transaction is open"),
        ("begin\nrollback\nrollback\n", "line 3: no transaction is open"),
        ("begin\nbegin\n", "line 2: a transaction is open"),
        ("begin serial\n", "snapshot, exclusive"),
    ] {
        let run = folder.tamis_with(&["shell", "store"], script.as_bytes());
        assert_eq!(run.code, 2, "{script}: {}", run.stderr);
        assert!(run.stderr.contains(text), "{script}: {}", run.stderr);
    }
}

/// A table of a few keys has no filters.
#[test]
fn the_shell_shows_the_answers_of_filters_by_table() {
    let folder = Folder::new();
    let puts: String = (0..3_000).map(|number| format!("put key{} 1\n", number * 7_919 % 100_003)).collect();
    let script = format!("{puts}flush\nstats\nget key7919\nstats\n");
    let run = folder.tamis_with(&["shell", "store"], script.as_bytes());
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    assert_eq!(run.stdout.matches("queries about").count(), 1, "none before the first read: {}", run.stdout);
}

#[test]
fn the_shell_shows_the_decisions_of_the_partitioned_layout() {
    let folder = Folder::new();
    let stats = |folder: &Folder, script: &str| {
        let run = folder.tamis_with(&["shell", "store"], script.as_bytes());
        assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
        run.stdout
    };
    assert!(!stats(&folder, "put a 1\nflush\nstats\n").contains("decision"), "the layout is leveled");
    let db = Db::open(folder.path("store")).unwrap();
    let keyspace = db.default_keyspace();
    keyspace.set_options(keyspace.options().layout(Layout::partitioned())).unwrap();
    drop(keyspace);
    db.close().unwrap();
    let text = stats(&folder, "put b 2\nflush\nstats\n");
    let row = |name: &str| text.lines().find(|line| line.contains(name)).unwrap_or_default().to_owned();
    assert!(row("decision").contains("expected") && row("decision").contains("written"), "{text}");
    for name in ["abort", "major", "split", "divide", "unite"] {
        assert!(row(name).contains("0 B"), "{text}");
    }
    assert!(row("minor").contains("1 ") && row("minor").contains("KiB"), "{text}");
}

#[test]
fn completions_exist_for_every_shell() {
    let folder = Folder::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = folder.ok(&["completions", shell]);
        assert!(script.contains("checkpoint") && script.contains("inspect"), "{shell}");
    }
    folder.fails(2, &["completions", "tcl"]);
}

/// Exit code of every command on a store with a table that cannot be opened: commands that read no table succeed.
const ON_A_DAMAGED_STORE: [(&[&str], i32); 12] = [
    (&["get", "store", "key000001"], 3),
    (&["put", "store", "key", "value"], 0),
    (&["delete", "store", "key"], 0),
    (&["scan", "store"], 3),
    (&["load", "store", "rows.csv", "--no-header"], 0),
    (&["export", "store", "-", "--format", "csv"], 3),
    (&["ingest", "store", "new.table"], 0),
    (&["stats", "store"], 0),
    // Trivial moves do not read the table; see the test below.
    (&["compact", "store"], 0),
    (&["checkpoint", "store", "copy"], 0),
    (&["shell", "store"], 0),
    (&["verify", "store"], 3),
];

/// Damages a file of a store; returns its name.
fn damage(folder: &Folder, kind: &str) -> String {
    let path = match kind {
        "CURRENT" => folder.path("store/CURRENT"),
        "log" => files(folder, "store", kind).pop().unwrap(),
        kind => files(folder, "store", kind).remove(0),
    };
    // Damages the footer of a table, so that it cannot be opened.
    let place = if kind == "table" { std::fs::metadata(&path).unwrap().len() as usize - 60 } else { 20 };
    flip(&path, place);
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

/// For every kind of damage, every command reports the file and the remedy, and none panics.
#[test]
fn every_command_reports_a_damaged_store() {
    for kind in ["CURRENT", "manifest", "log", "table"] {
        for (command, code) in ON_A_DAMAGED_STORE {
            let folder = store();
            folder.write("new.csv", "key,value\na,1\n");
            folder.ok(&["build", "new.csv", "new.table"]);
            let file = damage(&folder, kind);
            let expected = if kind == "table" { code } else { 3 };
            let run = folder.tamis(command);
            assert_eq!(run.code, expected, "{kind} {command:?}: {}{}", run.stdout, run.stderr);
            let shown = format!("{}{}", run.stdout, run.stderr);
            assert!(!shown.contains("panicked"), "{kind} {command:?}: {shown}");
            if expected == 3 {
                assert!(shown.contains(&file), "{kind} {command:?}: {shown}");
                assert!(shown.contains("tamis repair"), "{kind} {command:?}: {shown}");
            } else {
                let message = folder.tamis(&["verify", "store"]);
                assert!(
                    message.code == 3 && message.stdout.contains(&file),
                    "{command:?}: {}",
                    message.stdout
                );
            }
        }
    }
}

#[test]
fn a_compaction_that_reads_a_damaged_table_fails() {
    let folder = store();
    folder.ok(&["put", "store", "key000001", "newer"]);
    let file = damage(&folder, "table");
    let message = folder.fails(3, &["compact", "store"]);
    assert!(message.contains(&file) && message.contains("tamis repair"), "{message}");
    assert_eq!(
        folder.ok(&["get", "store", "key000001"]),
        "newer\n",
        "reads that need no damaged table succeed"
    );
}

/// Repair restores the readable entries and reports the ranges that may be lost.
#[test]
fn a_damaged_store_is_repaired() {
    for kind in ["CURRENT", "manifest", "log", "table"] {
        let folder = store();
        let file = damage(&folder, kind);
        let shown = folder.ok(&["repair", "store"]);
        assert!(shown.contains(&file), "{kind}: {shown}");
        assert!(!shown.contains("run `tamis"), "a repair was just done: {shown}");
        assert!(folder.ok(&["verify", "store"]).contains("no faults"), "{kind}");
        let rows = folder.ok(&["scan", "store"]).lines().count();
        match kind {
            "table" => assert!(shown.contains("may be lost") && rows >= 1, "{rows}: {shown}"),
            "log" => {
                assert!(rows == 2001 || rows == 2000 && shown.contains("may be lost"), "{rows}: {shown}")
            }
            _ => assert_eq!(rows, 2001, "{kind}: {shown}"),
        }
        assert!(folder.ok(&["repair", "store"]).contains("was not changed"), "{kind}");
    }
}
