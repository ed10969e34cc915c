//! `tamis backup`: its commands, reports and messages.

use serde_json::Value;

use crate::Folder;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// A store, and a target with two backups of it.
fn backups() -> Folder {
    let folder = Folder::new();
    folder.ok(&["put", "store", "apple", "red"]);
    folder.ok(&["backup", "store", "target"]);
    folder.ok(&["put", "store", "apple", "green"]);
    folder.ok(&["backup", "store", "target"]);
    folder
}

#[test]
fn a_backup_is_listed_verified_restored_and_pruned() {
    let folder = Folder::new();
    folder.ok(&["put", "store", "apple", "red"]);
    let printed = folder.ok(&["backup", "store", "target"]);
    assert!(printed.starts_with("backup 1 (whole): sequence number 1, "), "{printed}");
    folder.ok(&["put", "store", "apple", "green"]);
    std::fs::create_dir(folder.path("temporary")).unwrap();
    let words = ["backup", "store", "target", "--log", "--json", "--temporary", "temporary"];
    let report = json(&folder.ok(&words));
    assert_eq!(std::fs::read_dir(folder.path("temporary")).unwrap().count(), 0);
    assert!(report["backup"] == 2 && report["sequence"] == 2, "{report}");
    assert!(report["uploaded_bytes"].as_u64().unwrap() > 0 && report["seconds"].as_f64().unwrap() > 0.0);

    let listed = folder.ok(&["backup", "list", "target"]);
    assert!(listed.contains("sequence number") && listed.contains("whole"), "{listed}");
    let rows: Vec<Value> = folder.ok(&["backup", "list", "target", "--json"]).lines().map(json).collect();
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[1]["id"], report["id"]);

    assert!(folder.ok(&["backup", "verify", "target"]).contains("2 backups, "));
    assert_eq!(json(&folder.ok(&["backup", "verify", "target", "--json"]))["faults"], json("[]"));
    let printed = folder.ok(&["backup", "restore", "target", "restored", "--to", "1"]);
    assert!(printed.starts_with("backup 1 of 20"), "{printed}");
    assert_eq!(folder.ok(&["get", "restored", "apple"]), "red\n");
    folder.ok(&["backup", "restore", "target", "newest", "--to", "9999-01-01", "--json"]);
    assert_eq!(folder.ok(&["get", "newest", "apple"]), "green\n");

    let printed = folder.ok(&["backup", "prune", "target", "--keep", "7d"]);
    assert!(
        printed.starts_with("0 backups and 0 objects") && printed.ends_with("2 backups kept\n"),
        "{printed}"
    );
    assert_eq!(
        json(&folder.ok(&["backup", "prune", "target", "--keep", "1", "--json"]))["removed"],
        json("[1]")
    );
    assert_eq!(folder.ok(&["backup", "list", "target", "--json"]).lines().count(), 1);
}

#[test]
fn messages_say_what_to_do() {
    let folder = backups();
    folder.write("file", "text");
    std::fs::create_dir(folder.path("photos")).unwrap();
    folder.write("photos/cat.jpg", "cat");
    folder.ok(&["put", "other", "apple", "red"]);
    for (code, words, value, remedy) in [
        (2, &["backup"][..], "", "Usage: tamis backup"),
        (2, &["backup", "store"], "TARGET", "Usage: tamis backup"),
        (2, &["backup", "store", "target", "--every", "1s"], "--follow", "Usage: tamis backup"),
        (2, &["backup", "store", "target", "--follow", "--every", "soon"], "'soon'", "write 10s, 5m or 1h"),
        (2, &["backup", "store", "ftp://host/path"], "ftp", "name a folder or s3://bucket/path"),
        (2, &["backup", "prune", "target", "--keep", "0"], "'0'", "write 20, 12h, 7d or 4w"),
        (3, &["backup", "absent", "target"], "absent", "name the folder of a store"),
        (
            4,
            &["backup", "store", "photos"],
            "holds something else (\"cat.jpg\")",
            "name an empty or new target",
        ),
        (4, &["backup", "other", "target"], "backups of another store", "name another target"),
        (4, &["backup", "list", "absent"], "absent: is empty or missing", "name the target of a backup"),
        (4, &["backup", "list", "photos"], "cat.jpg", "name the target of a backup"),
        (4, &["backup", "store", "file"], "file", "name a folder"),
        (4, &["backup", "restore", "target", "photos"], "contains \"cat.jpg\"", "new or empty"),
        (4, &["backup", "restore", "target", "new", "--to", "7"], "no backup 7", "there are 1 to 2"),
        (
            4,
            &["backup", "restore", "target", "new", "--to", "1999-01-01"],
            "1999",
            "give a number, an id or a time",
        ),
    ] {
        let message = folder.fails(code, words);
        assert!(message.contains(value) && message.contains(remedy), "{words:?}: {message}");
    }
    assert!(!folder.path("absent").exists());
    assert_eq!(folder.ok(&["backup", "list", "target", "--json"]).lines().count(), 2);
}

#[test]
fn s3_needs_credentials_or_another_build() {
    let folder = backups();
    let mut command = folder.command(&["backup", "store", "s3://bucket/path"]);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("AWS_")) {
        command.env_remove(name);
    }
    let run = crate::Run::from(command.output().unwrap());
    let remedy = if run.code == 2 { "--features s3" } else { "set AWS_ACCESS_KEY_ID" };
    assert!(run.stderr.contains(remedy), "{}", run.stderr);
}

#[test]
fn damaged_objects_are_named_with_their_backups() {
    let folder = backups();
    let mut objects = Vec::new();
    for fan in std::fs::read_dir(folder.path("target/objects")).unwrap() {
        objects.extend(std::fs::read_dir(fan.unwrap().path()).unwrap().map(|entry| entry.unwrap().path()));
    }
    for object in objects {
        let whole = std::fs::read(&object).unwrap();
        std::fs::write(&object, &whole[1..]).unwrap();
        let run = folder.tamis(&["backup", "verify", "target"]);
        let name = object.file_name().unwrap().to_str().unwrap();
        assert!(run.code == 3 && run.stdout.contains(name) && run.stdout.contains("need"), "{}", run.stdout);
        assert!(run.stderr.contains("1 fault; restore a backup that is not named"), "{}", run.stderr);
        std::fs::write(&object, whole).unwrap();
    }
    folder.ok(&["backup", "verify", "target"]);
}

/// Ctrl-C ends it between two backups.
#[cfg(unix)]
#[test]
fn follow_prints_what_can_be_lost_until_it_is_interrupted() {
    use std::io::{BufRead as _, BufReader};

    let folder = backups();
    folder.ok(&["put", "store", "apple", "blue"]);
    let words = ["backup", "store", "target", "--follow", "--every", "1s", "--json"];
    let mut child = folder.command(&words).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = json(&lines.next().unwrap().unwrap());
    assert!(line["backup"] == 3 && line["loss_seconds_max"].as_f64().unwrap() < 60.0, "{line}");
    assert!(
        std::process::Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
    let run = crate::Run::from(child.wait_with_output().unwrap());
    assert!(run.code == 130 && run.stderr.contains("all backups in the list are complete"), "{}", run.stderr);
    folder.ok(&["backup", "restore", "target", "restored"]);
    assert_eq!(folder.ok(&["get", "restored", "apple"]), "blue\n");
}
