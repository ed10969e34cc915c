//! Ctrl-C during long commands: the exit code is 130, and the files that remain are complete or end with `.part`.
//! `load.rs` tests it for `load`.

use std::{
    io::Write as _,
    process::{Child, Command},
};

use serde_json::Value;

use crate::{Folder, Run};

/// Ctrl-C is signal 2.
const MASK: u64 = 1 << 1;

/// Sends Ctrl-C after the program has installed its handler.
fn interrupt(child: &mut Child) {
    let status = format!("/proc/{}/status", child.id());
    while child.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let caught =
            text.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigCgt:")?.trim(), 16).ok());
        if caught.is_some_and(|caught| caught & MASK != 0) {
            break;
        }
        std::thread::yield_now();
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
}

/// Ends a command with Ctrl-C; returns its message.
fn interrupted(mut child: Child) -> String {
    interrupt(&mut child);
    drop(child.stdin.take());
    let run = Run::from(child.wait_with_output().unwrap());
    assert_eq!(run.code, 130, "{}{}", run.stdout, run.stderr);
    run.stderr
}

/// Waits until a running command has created something.
fn wait_for(child: &mut Child, is_there: impl Fn() -> bool) {
    while !is_there() {
        assert_eq!(child.try_wait().unwrap(), None, "it ended before");
        std::thread::yield_now();
    }
}

fn names(folder: &Folder, path: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder.path(path)).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// A store that is large enough for an export to take a while.
fn numbers() -> Folder {
    let folder = Folder::new();
    folder.ok(&["gen", ".", "--count", "500000"]);
    folder.ok(&["load", "store", "uniform_n500000_s42.keys"]);
    folder
}

/// An interrupted export names its partial file; it contains complete rows only, and the next export keeps it.
#[test]
fn an_interrupted_export_leaves_a_partial_file() {
    let folder = numbers();
    let words = ["export", "store", "all.csv", "--key-format", "u64"];
    let message = interrupted(folder.command(&words).spawn().unwrap());
    assert!(message.contains("interrupted after") && message.contains("all.csv.part"), "{message}");
    assert!(!folder.path("all.csv").exists());
    let part = std::fs::read_to_string(folder.path("all.csv.part")).unwrap();
    let shown = folder.ok(&["scan", "store", "--key-format", "u64", "--keys-only"]);
    assert!(part.lines().count() > 1000 && part.ends_with(",\n"));
    assert!(part.lines().skip(1).zip(shown.lines()).all(|(row, key)| row.strip_suffix(',') == Some(key)));

    let message = folder.fails(4, &words);
    assert!(message.contains("all.csv.part") && message.contains("delete it"), "{message}");
    assert_eq!(std::fs::read_to_string(folder.path("all.csv.part")).unwrap(), part);
    assert!(!folder.path("all.csv").exists());
    assert!(folder.ok(&["verify", "store"]).contains("no faults"));
}

#[test]
fn an_interrupted_build_leaves_no_table() {
    let folder = Folder::new();
    let words = ["build", "-", "new.table", "--format", "csv", "--no-header"];
    let mut child = folder.command(&words).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let row = |number: u64| format!("{number:012},{number}\n");
    // More than the pipe and the buffers of the reader hold, so the build is running when this returns.
    for number in 0..50_000 {
        stdin.write_all(row(number).as_bytes()).unwrap();
    }
    interrupt(&mut child);
    let ended = (50_000..5_000_000).find(|&number| stdin.write_all(row(number).as_bytes()).is_err());
    assert!(ended.is_some());
    let run = Run::from(child.wait_with_output().unwrap());
    assert_eq!(run.code, 130, "{}", run.stderr);
    assert!(run.stderr.contains("no table was created"), "{}", run.stderr);
    assert!(folder.is_empty(), "{:?}", names(&folder, "."));
}

/// Also while keys are generated, which cannot check for an interrupt.
#[test]
fn an_interrupted_gen_leaves_no_partial_file() {
    let folder = Folder::new();
    let words = ["gen", "out", "--count", "20000000"];
    let message = interrupted(folder.command(&words).spawn().unwrap());
    assert!(message.contains("interrupted"), "{message}");
    assert!(names(&folder, "out").is_empty(), "{:?}", names(&folder, "out"));

    // While a file is being written: writing it takes longer than generating it.
    let words = ["gen", "ops", "--count", "1000", "--query-count", "20000000", "--operations", "readrandom"];
    let mut child = folder.command(&words).spawn().unwrap();
    wait_for(&mut child, || folder.path("ops").exists() && !names(&folder, "ops").is_empty());
    let message = interrupted(child);
    assert!(message.contains("readrandom_n1000_o20m_s42.ops was not written"), "{message}");
    assert!(names(&folder, "ops").is_empty(), "{:?}", names(&folder, "ops"));
}

#[test]
fn an_interrupted_bench_keeps_its_results_and_continues() {
    let folder = Folder::new();
    let words = ["bench", "run", "store-ycsb", "--out", "out"];
    let results = folder.path("out/store-ycsb-small-s42.json");
    let mut child = folder.command(&words).spawn().unwrap();
    wait_for(&mut child, || results.exists());
    let message = interrupted(child);
    assert!(message.contains("of 12 points; results are in") && message.contains("to continue"), "{message}");
    let read = || serde_json::from_slice::<Value>(&std::fs::read(&results).unwrap()).unwrap();
    let part = read();
    let rows = part["rows"].as_array().unwrap();
    assert!(part["is_complete"] == false && (1..12).contains(&rows.len()), "{} rows", rows.len());
    assert!(names(&folder, "out").iter().all(|name| name.starts_with("store-ycsb-small-s42.")));

    assert!(folder.ok(&words).contains("all 12 of 12 points"));
    let whole = read();
    assert_eq!(whole["is_complete"], true);
    // No point is measured twice: the times are equal up to the rounding of printed numbers.
    for row in rows {
        let again =
            whole["rows"].as_array().unwrap().iter().find(|again| again["point"] == row["point"]).unwrap();
        let [one, two] = [row, again].map(|row| row["seconds"].as_f64().unwrap());
        assert!(again["digest"] == row["digest"] && (one - two).abs() < 1e-9, "{row} {again}");
    }
}
