//! `put`, `get`, `delete`, `scan`.

use tamis::{Db, KeyspaceOptions, Options};

use crate::Folder;

/// A store with five fruits.
fn fruits() -> Folder {
    let folder = Folder::new();
    for (key, value) in
        [("pear", "green"), ("apple", "red"), ("fig", "blue"), ("apricot", "orange"), ("lime", "")]
    {
        assert_eq!(folder.ok(&["put", "store", key, value]), "");
    }
    folder
}

#[test]
fn get_returns_put_values_and_not_deleted_ones() {
    let folder = fruits();
    assert_eq!(folder.ok(&["get", "store", "apple"]), "red\n");
    assert_eq!(folder.ok(&["get", "store", "lime"]), "\n");
    assert_eq!(folder.ok(&["get", "store", "fig", "pear"]), "fig\tblue\npear\tgreen\n");
    folder.ok(&["put", "store", "apple", "yellow"]);
    assert_eq!(folder.ok(&["get", "store", "apple"]), "yellow\n");
    folder.ok(&["delete", "store", "apple", "fig", "never there"]);
    assert_eq!(folder.fails(1, &["get", "store", "apple"]), "");
    folder.ok(&["put", "store", "below", "-5"]);
    assert_eq!(folder.ok(&["get", "store", "below"]), "-5\n");
    folder.ok(&["put", "store", "--", "-dash", "-5"]);
    assert_eq!(folder.ok(&["get", "store", "--", "-dash"]), "-5\n");
    let run = folder.tamis(&["get", "store", "fig", "pear"]);
    assert_eq!((run.code, run.stdout.as_str()), (1, "pear\tgreen\n"));
}

/// Programs may store the name of an encoding that this program does not know.
#[test]
fn keys_of_any_codec_are_bytes() {
    let folder = Folder::new();
    let keyspace = KeyspaceOptions::default().key_codec("codec of some program".to_owned());
    let db = Db::open_with(folder.path("store"), Options::default().default_keyspace(keyspace)).unwrap();
    db.put("apple", "red").unwrap();
    db.close().unwrap();
    folder.ok(&["put", "store", "pear", "green"]);
    assert_eq!(folder.ok(&["scan", "store"]), "apple\tred\npear\tgreen\n");
    let text = folder.ok(&["inspect", "store/CURRENT"]);
    assert!(text.contains("key_codec codec of some program"), "{text}");
}

#[test]
fn delete_takes_keys_or_a_range_or_all() {
    let folder = fruits();
    let keys =
        || folder.ok(&["scan", "store", "--keys-only"]).split_whitespace().collect::<Vec<_>>().join(" ");
    folder.ok(&["delete", "store", "--prefix", "ap"]);
    assert_eq!(keys(), "fig lime pear");
    folder.ok(&["delete", "store", "--lower-exclusive", "fig", "--upper", "lime"]);
    assert_eq!(keys(), "fig pear");
    for words in [
        &["delete", "store"][..],
        &["delete", "store", "fig", "--all"],
        &["delete", "store", "fig", "--prefix", "p"],
    ] {
        let message = folder.fails(2, words);
        assert!(message.contains("give only one of these: keys, a range"), "{message}");
    }
    let run = folder.tamis_with(&["shell", "store"], b"delete --prefix f\ndelete\n");
    assert!(run.stderr.contains("delete: give one key or a range"), "{}", run.stderr);
    assert_eq!(keys(), "pear");
    folder.ok(&["delete", "store", "--all"]);
    assert_eq!(keys(), "");
}

#[test]
fn scans_respect_bounds_in_both_directions() {
    let folder = fruits();
    let keys = |words: &[&str]| {
        folder
            .ok(&[&["scan", "store", "--keys-only"], words].concat())
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(keys(&[]), "apple apricot fig lime pear");
    assert_eq!(keys(&["--reverse"]), "pear lime fig apricot apple");
    assert_eq!(keys(&["--prefix", "ap"]), "apple apricot");
    assert_eq!(keys(&["--prefix", "ap", "--reverse", "--limit", "1"]), "apricot");
    assert_eq!(keys(&["--lower", "apricot", "--upper", "lime"]), "apricot fig lime");
    assert_eq!(keys(&["--lower-exclusive", "apricot", "--upper-exclusive", "lime"]), "fig");
    assert_eq!(keys(&["--lower", "apricot", "--upper", "lime", "--reverse"]), "lime fig apricot");
    assert_eq!(keys(&["--lower", "b", "--upper", "c"]), "");
    // Bounds in the wrong order are probably a mistake, so there is a warning.
    let run = folder.tamis(&["scan", "store", "--lower", "z", "--upper-exclusive", "a"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""));
    assert!(run.stderr.contains("the lower bound is greater than the upper bound"), "{}", run.stderr);
    assert_eq!(keys(&["--lower", "b", "--upper-exclusive", "b"]), "");
    assert_eq!(keys(&["--limit", "0"]), "");
    assert_eq!(folder.ok(&["scan", "store", "--limit", "2"]), "apple\tred\napricot\torange\n");
}

#[test]
fn u64_keys_sort_numerically() {
    let folder = Folder::new();
    for number in ["1000", "9", "18446744073709551615", "256"] {
        folder.ok(&["put", "store", "--key-format", "u64", number, "--value-format", "hex", "0x00ff"]);
    }
    assert_eq!(
        folder.ok(&["scan", "store", "--key-format", "u64", "--value-format", "hex"]),
        "9\t00ff\n256\t00ff\n1000\t00ff\n18446744073709551615\t00ff\n"
    );
    assert_eq!(
        folder.ok(&[
            "scan",
            "store",
            "--key-format",
            "u64",
            "--keys-only",
            "--lower",
            "10",
            "--upper",
            "1000"
        ]),
        "256\n1000\n"
    );
    assert_eq!(
        folder.ok(&["get", "store", "--key-format", "hex", "0000000000000009", "--value-format", "hex"]),
        "00ff\n"
    );
}

#[test]
fn json_output_is_exact_for_all_bytes() {
    let folder = fruits();
    assert_eq!(
        folder.ok(&["get", "store", "fig", "--json"]),
        "{\"found\":true,\"key\":\"fig\",\"value\":\"blue\"}\n"
    );
    let run = folder.tamis(&["get", "store", "plum", "--json"]);
    assert_eq!((run.code, run.stdout.as_str()), (1, "{\"found\":false,\"key\":\"plum\",\"value\":null}\n"));
    folder.ok(&["put", "store", "bytes", "--value-format", "hex", "fffe00"]);
    assert_eq!(
        folder.ok(&["scan", "store", "--json", "--prefix", "b"]),
        "{\"key\":\"bytes\",\"value\":{\"hex\":\"fffe00\"}}\n"
    );
    assert_eq!(
        folder.ok(&["scan", "store", "--json", "--keys-only", "--limit", "1"]),
        "{\"key\":\"apple\"}\n"
    );
}

#[cfg(unix)]
#[test]
fn non_utf8_keys_and_values_round_trip() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _};

    let folder = Folder::new();
    let key = OsStr::from_bytes(b"k\xFF\xFE");
    let words = [OsStr::new("put"), OsStr::new("store"), key, OsStr::new("--file"), OsStr::new("-")];
    assert_eq!(folder.tamis_with(&words, b"a\nb\x1B\n").code, 0);
    assert_eq!(folder.ok(&["scan", "store"]), "k\\xff\\xfe\ta\\x0ab\\x1b\\x0a\n");
    let words = [OsStr::new("get"), OsStr::new("store"), key, OsStr::new("--raw")];
    assert_eq!(folder.tamis_with(&words, b"").stdout, "a\nb\x1B\n");
}

#[test]
fn keyspaces_are_separate_maps() {
    let folder = fruits();
    folder.ok(&["put", "store", "--keyspace", "colors", "apple", "#f00"]);
    assert_eq!(folder.ok(&["get", "store", "--keyspace", "colors", "apple"]), "#f00\n");
    assert_eq!(folder.ok(&["get", "store", "apple"]), "red\n");
    assert_eq!(folder.ok(&["scan", "store", "--keyspace", "colors"]), "apple\t#f00\n");
    let message = folder.fails(3, &["scan", "store", "--keyspace", "sizes"]);
    assert!(message.contains("no keyspace named \"sizes\"") && message.contains("colors"), "{message}");
    folder.fails(3, &["delete", "store", "--keyspace", "sizes", "apple"]);
}

#[test]
fn reading_creates_no_store() {
    let folder = Folder::new();
    for words in [
        ["get", "store", "key"].as_slice(),
        &["scan", "store"],
        &["delete", "store", "key"],
        &["verify", "store"],
        &["stats", "store"],
    ] {
        let message = folder.fails(3, words);
        assert!(message.contains("store"), "{message}");
    }
    assert!(folder.is_empty());
}

#[test]
fn foreign_folders_and_invalid_keys_are_rejected() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("music")).unwrap();
    folder.write("music/song.txt", "la la la");
    let message = folder.fails(3, &["put", "music", "key", "value"]);
    assert!(message.contains("not a Tamis store"), "{message}");
    assert!(folder.fails(3, &["put", "store", "", "value"]).contains("1 to 65,535 bytes"));
    let long = "k".repeat(65_536);
    assert!(folder.fails(3, &["put", "store", &long, "value"]).contains("1 to 65,535 bytes"));
    folder.ok(&["put", "store", &long[1..], "value"]);
    assert_eq!(folder.ok(&["get", "store", &long[1..]]), "value\n");
    assert!(folder.fails(4, &["put", "store", "key", "--file", "absent"]).contains("absent"));
}

#[test]
fn a_closed_output_pipe_is_not_a_failure() {
    let folder = Folder::new();
    let rows: String = (0..50_000).map(|row| format!("{row:08},value\n")).collect();
    assert_eq!(
        folder.tamis_with(&["load", "store", "-", "--format", "csv", "--no-header"], rows.as_bytes()).code,
        0
    );
    let mut child = folder.command(&["scan", "store"]).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), b"".as_slice()));
}
