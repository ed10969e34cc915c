//! `load`: every format, every kind of invalid input, and Ctrl-C.

use std::{io::Write as _, process::Command};

use crate::{Folder, Run};

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
    let run = Run::from(child.wait_with_output().unwrap());
    assert_eq!(run.code, 130, "{}", run.stderr);
    assert!(run.stderr.contains("interrupted; the store is intact"), "{}", run.stderr);

    let entries = folder.ok(&["scan", "store"]);
    let count = entries.lines().count() as u64;
    assert!(count >= 10_000 && count.is_multiple_of(1000), "{count} entries");
    let expected: String = (0..count).map(|number| row(number).replace(',', "\t")).collect();
    assert_eq!(entries, expected);
    folder.ok(&["verify", "store"]);
}
