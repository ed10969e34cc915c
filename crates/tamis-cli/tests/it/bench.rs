//! `bench`: lists and runs experiments, continues an earlier run, rejects unknown names with the valid ones.

use serde_json::Value;

use crate::Folder;

const NAME: &str = "store-harness";

#[test]
fn list_contains_every_experiment() {
    let folder = Folder::new();
    assert!(folder.ok(&["bench", "list"]).contains(NAME));
    let list: Value = serde_json::from_str(&folder.ok(&["bench", "list", "--json"])).unwrap();
    let names: Vec<&str> = list.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert!(names.contains(&NAME));
    assert!(folder.is_empty());
}

#[test]
fn a_second_run_keeps_the_results_of_the_first() {
    let folder = Folder::new();
    let words = ["bench", "run", NAME, "--out", "out", "--only", "workload=ycsb-a", "--seed", "7"];
    let shown = folder.ok(&words);
    assert!(shown.contains("PARTIAL: 4 of 16 points, size small, seed 7, commit "), "{shown}");
    let file = || std::fs::read_to_string(folder.path("out/store-harness-small-s7.json")).unwrap();
    let first = file();
    let results: Value = serde_json::from_str(&first).unwrap();
    assert_eq!((&results["is_complete"], results["rows"].as_array().unwrap().len()), (&false.into(), 4));
    assert!(results["machine"]["core_count"].as_u64().unwrap() > 0);
    folder.ok(&words);
    assert_eq!(file(), first, "nothing was measured again, not even the times");
    let json: Value = serde_json::from_str(&folder.ok(&[&words[..], &["--json"]].concat())).unwrap();
    assert_eq!(json, results);
}

#[test]
fn threads_option_sets_the_number_of_client_threads() {
    let folder = Folder::new();
    let words = ["bench", "run", "store-harness", "--out", "out", "--only", "workload=overwrite"];
    let shown = folder.ok(&[&words[..], &["--threads", "3"]].concat());
    assert!(shown.contains("PARTIAL: 2 of 8 points"), "{shown}");
    let text = std::fs::read_to_string(folder.path("out/store-harness-small-s42.json")).unwrap();
    let results: Value = serde_json::from_str(&text).unwrap();
    for row in results["rows"].as_array().unwrap() {
        assert_eq!(row["point"]["threads"], 3);
        let by_second = row["metrics"]["operations_by_second"].as_array().unwrap();
        let sum: u64 = by_second.iter().map(|count| count.as_u64().unwrap()).sum();
        assert_eq!(sum, row["metrics"]["operations"].as_u64().unwrap());
    }
}

/// Folders of dead processes are reported; folders of live processes and other folders are not.
#[test]
fn leftover_stores_of_killed_runs_are_reported() {
    let folder = Folder::new();
    // Its output fits into a pipe that is not read.
    let mut child = folder.command(&["--version"]).spawn().unwrap();
    child.wait().unwrap();
    let (gone, living) = (
        format!("out/tamis-bench-{}-abc", child.id()),
        format!("out/tamis-bench-{}-abc", std::process::id()),
    );
    for name in [&gone, &living, "out/tamis-bench-notes"] {
        std::fs::create_dir_all(folder.path(name)).unwrap();
    }
    let run = folder.tamis(&[
        "bench",
        "run",
        NAME,
        "--out",
        "out",
        "--only",
        "workload=ycsb-a",
        "--only",
        "threads=1",
    ]);
    assert_eq!((run.code, run.stderr), (0, format!("{gone}: left over from a killed run; delete it\n")));
    assert!(folder.path(&gone).exists(), "nothing is deleted automatically");
}

#[test]
fn unknown_names_are_rejected_with_the_valid_names() {
    let folder = Folder::new();
    for (words, expected) in [
        (["bench", "run", "store-harnesses"].as_slice(), NAME),
        (&["bench", "run", "nothing-"], NAME),
        (&["bench", "run", NAME, "--size", "huge"], "small, medium, full"),
        (&["bench", "run", NAME, "--only", "colour=red"], "there are: workload, latencies, threads"),
        (&["bench", "run", NAME, "--only", "workload=red"], "there are: readrandom, overwrite"),
        (&["bench", "run", NAME, "--only", "workload"], "PARAMETER=VALUE"),
        (&["bench", "run", "store-ycsb", "--only", "threads=8"], "named \"8\"; there are: 1, 2\n"),
        (&["bench", "run", "store-ycsb", "--threads", "2,0"], "a number from 1 to 1024"),
        (&["bench", "run", "store-ycsb", "--layout", "flat"], "`partitioned`"),
        (&["bench", "run", NAME, "--layout", "tiered"], "no parameter named \"layout\"; there are: workload"),
        // All experiments are checked before the first one runs.
        (&["bench", "run", NAME, "store-ycsb", "--only", "latencies=every"], "there are: workload"),
        (&["bench", "run"], "NAME"),
    ] {
        let message = folder.fails(2, words);
        assert!(message.contains(expected), "{words:?}: {message}");
    }
    assert!(folder.is_empty(), "nothing was created");
    folder.write("file", "");
    folder.write("out.json", "");
    assert!(folder.fails(4, &["bench", "run", NAME, "--out", "file"]).contains("not a folder"));
    std::fs::create_dir(folder.path("out")).unwrap();
    folder.write("out/store-harness-small-s42.json", "my own file");
    let message = folder.fails(4, &["bench", "run", NAME, "--out", "out"]);
    assert!(
        message.contains("contains no results of an experiment") && message.contains("--again"),
        "{message}"
    );
}
