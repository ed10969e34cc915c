//! `load`: every format, every kind of invalid input, and Ctrl-C.

use std::{
    collections::BTreeMap,
    io::Write as _,
    process::{Command, Stdio},
};

use tamis_workload::SplitMix64;

use crate::Folder;

/// A binary file of these numbers.
fn values_file(values: &[u64]) -> Vec<u8> {
    [&[values.len() as u64], values].concat().into_iter().flat_map(u64::to_le_bytes).collect()
}

#[test]
fn csv_columns_are_chosen_by_name_number_or_default() {
    let folder = Folder::new();
    folder.write(
        "prices.csv",
        "name,color,price\n\"fig, dried\",brown,3\napple,red,1\n\"say \"\"hi\"\"\",blue,2\n",
    );
    let message = folder.ok(&["load", "a", "prices.csv"]);
    assert!(message.starts_with("3 entries ("), "{message}");
    assert_eq!(folder.ok(&["scan", "a"]), "apple\tred\nfig, dried\tbrown\nsay \"hi\"\tblue\n");
    folder.ok(&[
        "load",
        "b",
        "prices.csv",
        "--key-field",
        "price",
        "--value-field",
        "1",
        "--key-format",
        "u64",
    ]);
    assert_eq!(folder.ok(&["scan", "b", "--key-format", "u64"]), "1\tapple\n2\tsay \"hi\"\n3\tfig, dried\n");
    folder.ok(&["load", "c", "prices.csv", "--no-header"]);
    assert_eq!(folder.ok(&["get", "c", "name"]), "color\n");
    let message = folder.fails(2, &["load", "d", "prices.csv", "--key-field", "weight"]);
    assert!(message.contains("name, color, price"), "{message}");
}

#[test]
fn load_accepts_the_json_lines_of_scan() {
    let folder = Folder::new();
    folder.ok(&["put", "from", "text", "gr\u{fc}n"]);
    folder.ok(&["put", "from", "--key-format", "hex", "ff00", "--value-format", "hex", "00"]);
    folder.ok(&["put", "from", "empty", ""]);
    let lines = folder.ok(&["scan", "from", "--json"]);
    folder.write("part.jsonl", &lines);
    folder.ok(&["load", "to", "part.jsonl"]);
    assert_eq!(folder.ok(&["scan", "to", "--json"]), lines);
    folder.write(
        "log.ndjson",
        "{\"id\": 7, \"text\": \"seven\", \"more\": [1]}\n\n{\"id\": 12, \"text\": \"x\"}",
    );
    let words =
        ["load", "log", "log.ndjson", "--key-field", "id", "--value-field", "text", "--key-format", "u64"];
    let report: serde_json::Value =
        serde_json::from_str(&folder.ok(&[&words[..], &["--json"]].concat())).unwrap();
    assert_eq!((report["entries"].as_u64(), report["complete"].as_bool()), (Some(2), Some(true)));
    assert_eq!(folder.ok(&["scan", "log", "--key-format", "u64"]), "7\tseven\n12\tx\n");
}

#[test]
fn binary_numbers_become_keys_in_numeric_order() {
    let folder = Folder::new();
    folder.write("some.keys", values_file(&[5, 300, u64::MAX]));
    folder.ok(&["load", "store", "some.keys"]);
    assert_eq!(
        folder.ok(&["scan", "store", "--key-format", "u64", "--keys-only"]),
        "5\n300\n18446744073709551615\n"
    );
}

#[test]
fn truncated_and_foreign_binary_files_are_rejected_before_loading() {
    let folder = Folder::new();
    let whole = values_file(&[1, 2, 3]);
    for (content, expected) in [
        (&whole[..29], "cut at offset 29"),
        (&whole[..5], "cut at offset 5"),
        (&[&whole[..], b"more"].concat()[..], "more bytes at offset 32"),
        (b"name,price\nfig,3\n".as_slice(), "cut at offset 17"),
    ] {
        folder.write("bad.u64", content);
        let message = folder.fails(4, &["load", "store", "bad.u64"]);
        assert!(message.contains("bad.u64") && message.contains(expected), "{message}");
        assert!(!folder.path("store").exists());
    }
}

#[test]
fn errors_in_text_files_name_the_line_and_keep_earlier_entries() {
    let cases: [(&str, &[u8], &str); 9] = [
        ("a.csv", b"k,v\nfig,1\nlime\n", "line 3: 1 fields, but the first row has 2"),
        ("b.csv", b"k,v\nfig,1\nlime,\"cut", "line 3"),
        ("c.csv", b"k\nfig\n", "line 2: the row has 1 fields, but field 2 is needed"),
        ("d.csv", b"k,v\nfig,1\n,2\n", "line 3: the key is empty"),
        (
            "a.jsonl",
            b"{\"key\":\"fig\",\"value\":\"1\"}\n{\"key\":\"lime\",\"va",
            "the file seems to be truncated",
        ),
        (
            "b.jsonl",
            b"{\"key\":\"fig\",\"value\":\"1\"}\n\n{\"key\":\"lime\"}\n",
            "line 3: no field \"value\"",
        ),
        ("c.jsonl", b"{\"key\":\"fig\",\"value\":\"1\"}\nkey,value\n", "line 2: column 1: not valid JSON"),
        (
            "d.jsonl",
            b"{\"key\":\"fig\",\"value\":\"1\"}\n{\"key\":[],\"value\":\"1\"}\n",
            "line 2: field \"key\"",
        ),
        ("e.jsonl", b"\x7fELF\x02\x01\x01\0\0\0", "line 1: column 1: not valid JSON"),
    ];
    for (name, content, expected) in cases {
        let folder = Folder::new();
        folder.write(name, content);
        let message = folder.fails(4, &["load", "store", name]);
        assert!(message.contains(name) && message.contains(expected), "{name}: {message}");
        assert!(message.contains("the store is intact"), "{name}: {message}");
        let is_first_good = content.starts_with(b"k,v") || content.starts_with(b"{");
        assert_eq!(folder.ok(&["scan", "store"]), if is_first_good { "fig\t1\n" } else { "" }, "{name}");
    }
}

#[test]
fn a_quote_inside_an_unquoted_field_is_kept() {
    let folder = Folder::new();
    folder.write("disks.csv", "name,size\nfloppy,3.5\" disk\n\"a \"\"b\"\"\nc\",5\"\n");
    folder.ok(&["load", "store", "disks.csv"]);
    assert_eq!(folder.ok(&["scan", "store"]), "a \"b\"\\x0ac\t5\"\nfloppy\t3.5\" disk\n");
}

#[test]
fn missing_files_and_folders_create_no_store() {
    let folder = Folder::new();
    assert!(folder.fails(4, &["load", "store", "absent.csv"]).contains("absent.csv"));
    assert!(folder.fails(4, &["load", "store", ".", "--format", "csv"]).contains("a folder"));
    let message = folder.fails(2, &["load", "store", "data.bin"]);
    assert!(message.contains("--format csv"), "{message}");
    assert!(folder.is_empty());
}

#[cfg(unix)]
#[test]
fn an_interrupted_load_leaves_an_intact_store() {
    let folder = Folder::new();
    let mut child =
        folder.command(&["load", "store", "-", "--format", "csv", "--no-header"]).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let row = |number: u64| format!("{number:012},{number}\n");
    // More than the pipe and the buffers of the reader hold, so the load is running when this returns.
    for number in 0..50_000 {
        stdin.write_all(row(number).as_bytes()).unwrap();
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    // The load ends and closes the pipe.
    let ended = (50_000..5_000_000).find(|&number| stdin.write_all(row(number).as_bytes()).is_err());
    assert!(ended.is_some());
    let run = crate::Run::from(child.wait_with_output().unwrap());
    assert_eq!(run.code, 130, "{}", run.stderr);
    assert!(run.stderr.contains("interrupted; the store is intact"), "{}", run.stderr);

    let entries = folder.ok(&["scan", "store"]);
    let count = entries.lines().count() as u64;
    assert!(count >= 10_000 && count.is_multiple_of(1000), "{count} entries");
    let expected: String = (0..count).map(|number| row(number).replace(',', "\t")).collect();
    assert_eq!(entries, expected);
    folder.ok(&["verify", "store"]);
}

/// The files were written by the tools of LMDB 0.9.24, RocksDB 7.8.3 and LevelDB 1.23; that of LevelDB contains older versions,
/// deletes and a log.
#[test]
fn dumps_of_other_stores_are_loaded() {
    let folder = Folder::new();
    let expected = "6170\t0a0d\n625c78\t\n666967\t33\nff00\t7e\n";
    for (file, format) in [
        ("lmdb.dump", "mdb-dump"),
        ("lmdb-print.dump", "mdb-dump"),
        ("rocksdb.dump", "ldb-dump"),
        ("leveldb.dump", "leveldbutil-dump"),
    ] {
        let data = format!("{}/tests/testdata/{file}", env!("CARGO_MANIFEST_DIR"));
        let report = folder.ok(&["load", file, &data, "--format", format]);
        assert!(report.starts_with("4 entries"), "{file}: {report}");
        let hex = ["scan", file, "--key-format", "hex", "--value-format", "hex"];
        assert_eq!(folder.ok(&hex), expected, "{file}");
    }
}

/// Runs a tool of another store; `None` if it is not installed.
fn tool(folder: &Folder, program: &str, words: &[&str], input: &str) -> Option<String> {
    let mut command = Command::new(program);
    command.args(words).current_dir(folder.path("")).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = match command.spawn() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("skipped: {program} is not installed");
            return None;
        }
        child => child.unwrap(),
    };
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{program}");
    Some(String::from_utf8(output.stdout).unwrap())
}

/// Entries with bytes of all kinds, sorted, as lines `KEY\tVALUE` of hexadecimal digits.
fn hex_entries() -> Vec<(String, String)> {
    let mut random = SplitMix64::new(42);
    let mut bytes = |length_max: u64, least: u64| -> String {
        let length = least + random.below(length_max);
        (0..length).map(|_| format!("{:02x}", random.below(256))).collect()
    };
    let entries: BTreeMap<String, String> = (0..2000).map(|_| (bytes(40, 3), bytes(60, 0))).collect();
    entries.into_iter().collect()
}

fn scanned_hex(folder: &Folder, store: &str) -> Vec<(String, String)> {
    let lines = folder.ok(&["scan", store, "--key-format", "hex", "--value-format", "hex"]);
    let pair =
        |line: &str| line.split_once('\t').map(|(key, value)| (key.to_owned(), value.to_owned())).unwrap();
    lines.lines().map(pair).collect()
}

#[test]
fn stores_of_lmdb_are_loaded_with_its_tools() {
    let folder = Folder::new();
    let entries = hex_entries();
    let lines: String = entries.iter().map(|(key, value)| format!(" {key}\n {value}\n")).collect();
    let header = "VERSION=3\nformat=bytevalue\ntype=btree\nmapsize=16777216\nHEADER=END\n";
    std::fs::create_dir(folder.path("lmdb")).unwrap();
    if tool(&folder, "mdb_load", &["lmdb"], &format!("{header}{lines}DATA=END\n")).is_none() {
        return;
    }
    let dump = tool(&folder, "mdb_dump", &["lmdb"], "").unwrap();
    let words = ["load", "store", "-", "--format", "mdb-dump"];
    let run = folder.tamis_with(&words, dump.as_bytes());
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert_eq!(scanned_hex(&folder, "store"), entries);

    // Without backslashes the printed format has one meaning in all versions of the tool.
    let plain: Vec<_> =
        entries.iter().filter(|(key, value)| !has_backslash(key) && !has_backslash(value)).cloned().collect();
    let lines: String = plain.iter().map(|(key, value)| format!(" {key}\n {value}\n")).collect();
    std::fs::create_dir(folder.path("plain")).unwrap();
    tool(&folder, "mdb_load", &["plain"], &format!("{header}{lines}DATA=END\n")).unwrap();
    let dump = tool(&folder, "mdb_dump", &["-p", "plain"], "").unwrap();
    let run = folder.tamis_with(&["load", "printed", "-", "--format", "mdb-dump"], dump.as_bytes());
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert_eq!(scanned_hex(&folder, "printed"), plain);
}

fn has_backslash(digits: &str) -> bool {
    digits.as_bytes().chunks(2).any(|pair| pair == b"5c")
}

#[test]
fn stores_of_rocksdb_are_loaded_with_its_tool() {
    let folder = Folder::new();
    let entries = hex_entries();
    let lines: String = entries.iter().map(|(key, value)| format!("0x{key} ==> 0x{value}\n")).collect();
    let load = ["--db=rocksdb", "--create_if_missing", "--hex", "load"];
    if tool(&folder, "ldb", &load, &lines).is_none() {
        return;
    }
    tool(&folder, "ldb", &["--db=rocksdb", "--hex", "delete", &format!("0x{}", entries[7].0)], "").unwrap();
    let dump = tool(&folder, "ldb", &["--db=rocksdb", "dump", "--hex"], "").unwrap();
    let run = folder.tamis_with(&["load", "store", "-", "--format", "ldb-dump"], dump.as_bytes());
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let mut expected = entries;
    expected.remove(7);
    assert_eq!(scanned_hex(&folder, "store"), expected);
}

#[test]
fn incomplete_and_unsuitable_dumps_are_rejected() {
    let header = "VERSION=3\nformat=bytevalue\ntype=btree\nHEADER=END\n";
    let printed = "VERSION=3\nformat=print\ntype=btree\nHEADER=END\n";
    for (format, dump, place, text, loaded) in [
        ("mdb-dump", format!("{header} 61\n 62\n"), "line 7: ", "truncated", 1),
        ("mdb-dump", format!("{header} 61\nDATA=END\n"), "line 6: ", "has no value", 0),
        ("mdb-dump", format!("{header} 6\n 62\nDATA=END\n"), "line 5: ", "not whole bytes", 0),
        ("mdb-dump", format!("{header} 61\n 6g\nDATA=END\n"), "line 6: ", "\"6g\" is not a byte", 0),
        ("mdb-dump", format!("{header}61\n 62\nDATA=END\n"), "line 5: ", "begins with a space", 0),
        ("mdb-dump", format!("{header} \n 62\nDATA=END\n"), "line 6: ", "the key is empty", 0),
        ("mdb-dump", format!("{header} 61\n 62\nDATA=END\n{header}"), "line 8: ", "several databases", 1),
        ("mdb-dump", format!("{header} 61\n 62\n 61\n 62\nDATA=END\n"), "", "more than once", 2),
        ("mdb-dump", format!("{printed} a\\b\n 62\nDATA=END\n"), "line 5: ", "without -p", 0),
        ("mdb-dump", "VERSION=3\ndupsort=1\n".to_owned(), "line 2: ", "several values", 0),
        ("mdb-dump", "VERSION=3\n".to_owned(), "line 2: ", "in its header", 0),
        ("mdb-dump", "a,b\n".to_owned(), "line 1: ", "not a line of the header", 0),
        ("ldb-dump", "0x61 ==> 0x62\n".to_owned(), "line 2: ", "truncated", 1),
        ("ldb-dump", "0x61 ==> 0x62\nKeys in range: 2\n".to_owned(), "line 2: ", "1 entries, and not", 1),
        ("ldb-dump", "Keys in range: 0\n0x61 ==> 0x62\n".to_owned(), "line 2: ", "after the count", 0),
        ("ldb-dump", "0x61 ==> 0x62\n0x62 ==> 0x6\n".to_owned(), "line 2: ", "not whole bytes", 1),
        ("ldb-dump", "a ==> b\n".to_owned(), "line 1: ", "--hex", 0),
        // Nothing is loaded before the whole dump was read.
        ("leveldbutil-dump", "'a' @ 1 : val => 'b'\nbadkey 'c'\n".to_owned(), "line 2: ", "badkey", 0),
        (
            "leveldbutil-dump",
            "'a' @ 1 : val => 'b'\n'c' @ 2 : val => 'd'".to_owned(),
            "line 2: ",
            "no end",
            0,
        ),
    ] {
        let folder = Folder::new();
        folder.write("dump", &dump);
        let message = folder.fails(4, &["load", "store", "dump", "--format", format]);
        assert!(message.contains(place) && message.contains(text), "{dump}: {message}");
        let amount = format!("the store is intact, {loaded} entr");
        assert!(message.contains(&amount), "{dump}: {message}");
    }
}
