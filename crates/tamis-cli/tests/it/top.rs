//! `top`: once for scripts, and on a terminal.

use tamis::{Db, Options};

use crate::{Folder, terminal::Terminal};

/// A store with deleted entries that a snapshot kept until its close.
fn with_waiting_work(folder: &Folder) {
    let db = Db::open_with(folder.path("store"), Options::default().workers(0)).unwrap();
    (0..2_000_u64).for_each(|number| db.put(number.to_be_bytes(), [7; 60]).unwrap());
    db.flush().unwrap();
    let snapshot = db.snapshot();
    (0..1_900_u64).for_each(|number| db.delete(number.to_be_bytes()).unwrap());
    db.flush().unwrap();
    drop(snapshot);
    db.close().unwrap();
}

#[test]
fn once_waits_until_no_work_is_due() {
    let folder = Folder::new();
    with_waiting_work(&folder);
    let text = folder.ok(&["top", "store", "--once"]);
    assert!(text.contains("Nothing: no flush and no compaction is due."), "{text}");
    assert!(text.contains("which had deleted data: ") && text.contains(" 100 entries"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    for question in
        ["How much does the background work?", "Does anything wait, and why?", "Where is the data?"]
    {
        assert!(text.lines().any(|line| line == question), "{question}: {text}");
    }
}

#[test]
fn a_store_that_is_open_elsewhere_is_watched_and_a_missing_terminal_is_named() {
    let folder = Folder::new();
    folder.ok(&["put", "store", "apple", "red"]);
    let message = folder.fails(2, &["top", "store"]);
    assert!(message.contains("no terminal: add --once"), "{message}");
    assert!(folder.fails(2, &["top", "store", "--interval", "0"]).contains("--interval 0: give a number"));
    assert!(folder.fails(3, &["top", "absent", "--once"]).contains("name the folder of a store"));
    let db = Db::open(folder.path("store")).unwrap();
    // The process that has the store open does the work: this one watches.
    let text = folder.ok(&["top", "store", "--once"]);
    assert!(text.contains("Where is the data?"), "{text}");
    db.close().unwrap();
}

#[test]
fn on_a_terminal_the_screen_is_refreshed_until_q() {
    let folder = Folder::new();
    folder.ok(&["put", "store", "apple", "red"]);
    let mut terminal = Terminal::open(&folder, &["top", "store", "--interval", "0.1"], "history");
    // Its screen, then the state, again and again.
    terminal
        .types("", "\u{1b}[?1049h")
        .types("", "Refreshed every 0.1 s; q ends.")
        .types("", "Where is the data?");
    terminal.types("", "Refreshed every").types("x", "Refreshed every");
    // The screen is given back, and the last state stays.
    terminal.types("q", "\u{1b}[?1049l").types("", "How much does the background work?");
    assert_eq!(terminal.ends(""), 0);
    // So does Ctrl-C.
    let mut terminal = Terminal::open(&folder, &["top", "store"], "history");
    terminal.types("", "Where is the data?").interrupt().types("", "\u{1b}[?1049l");
    assert_eq!(terminal.ends(""), 0);
    assert_eq!(folder.ok(&["get", "store", "apple"]), "red\n");
}
