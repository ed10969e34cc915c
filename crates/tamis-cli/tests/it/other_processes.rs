//! Commands on a store that a program has open.

use tamis::{Db, KeepChanges, KeyspaceOptions, Options};

use crate::Folder;

#[test]
fn a_store_that_a_program_has_open_is_read_verified_copied_and_shown() {
    let folder = Folder::new();
    let db = Db::open(folder.path("store")).unwrap();
    for name in ["apple", "pear", "quince"] {
        db.put(name, "green").unwrap();
    }
    db.flush().unwrap();
    db.put("apple", "red").unwrap();
    assert_eq!(folder.ok(&["get", "store", "apple"]), "red\n");
    assert_eq!(folder.ok(&["scan", "store", "--keys-only"]), "apple\npear\nquince\n");
    assert!(
        folder.ok(&["verify", "store"]).contains("no faults")
            || folder.ok(&["verify", "store"]).contains('0')
    );
    folder.ok(&["checkpoint", "store", "copy"]);
    assert_eq!(folder.ok(&["get", "copy", "apple"]), "red\n");
    folder.ok(&["backup", "store", "backups"]);
    folder.ok(&["backup", "restore", "backups", "restored"]);
    assert_eq!(folder.ok(&["get", "restored", "apple"]), "red\n");
    folder.ok(&["page", "store", "-o", "page.html"]);
    let reader = Db::open_reader(folder.path("store")).unwrap();
    let text = folder.ok(&["stats", "store"]);
    let process = format!("A reader in process {}", std::process::id());
    assert!(text.contains(&process), "{text}");
    drop(reader);
    let message = folder.fails(3, &["put", "store", "apple", "blue"]);
    assert!(message.contains("open for writing by process"), "{message}");
    assert_eq!(db.get("apple").unwrap().as_deref(), Some(b"red".as_slice()));
    assert_eq!(db.statistics().readers, []);
}

#[test]
fn changes_prints_each_write_once() {
    let folder = Folder::new();
    let options = Options::default().keep_changes(KeepChanges::bytes(1 << 20));
    let db = Db::open_with(folder.path("store"), options).unwrap();
    db.put("apple", "red").unwrap();
    let fruits = db.create_keyspace("fruits", KeyspaceOptions::default()).unwrap();
    fruits.put("pear", "green").unwrap();
    fruits.delete_range("a".."c").unwrap();
    db.flush().unwrap();
    let text = folder.ok(&["changes", "store"]);
    let expected = "1\tdefault\tput\tapple\tred\n2\tfruits\tcreate\n3\tfruits\tput\tpear\tgreen\n\
                    4\tfruits\tdelete_range\ta\tc\nposition 4\n";
    assert_eq!(text, expected);
    let json = folder.ok(&["changes", "store", "--from", "2", "--json"]);
    let lines: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!((lines[0]["key"].as_str(), lines[1]["kind"].as_str()), (Some("pear"), Some("delete_range")));
    drop((db, fruits));
    // An open without the option deletes the log that only the feed needed.
    drop(Db::open(folder.path("store")).unwrap());
    let message = folder.fails(3, &["changes", "store", "--from", "1"]);
    assert!(message.contains("the first available position is 4"), "{message}");
    assert_eq!(folder.ok(&["changes", "store"]), "position 4\n");
}
