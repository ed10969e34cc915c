//! `gen`: its files match the published checksums, can be loaded, and are not overwritten.

use std::collections::BTreeSet;

use sha2::{Digest as _, Sha256};

use crate::Folder;

/// Seeds and names of key and query sets match the published list.
#[test]
fn files_match_the_published_checksums() {
    let sums = include_str!("../../../tamis-workload/tests/it/SHA256SUMS");
    let folder = Folder::new();
    let sets = ["correlated_r32", "split", "non_empty"];
    let words = [["gen", "out", "--keys", "gaps", "--queries"].as_slice(), &sets].concat();
    let mut count = 0;
    for path in folder.ok(&words).lines() {
        let name = path.strip_prefix("out/").unwrap();
        let Some(sum) = sums.lines().find_map(|line| line.strip_suffix(name)?.split_whitespace().next())
        else {
            continue;
        };
        let got = Sha256::digest(std::fs::read(folder.path(path)).unwrap());
        assert_eq!(got.iter().map(|byte| format!("{byte:02x}")).collect::<String>(), sum, "{name}");
        count += 1;
    }
    assert_eq!(count, 6, "keys, two query sets with their samples, and the non-empty ranges");
}

#[test]
fn files_have_the_published_names_and_can_be_loaded() {
    let folder = Folder::new();
    let words =
        ["gen", "out", "--keys", "gaps", "--count", "1000", "--query-count", "50", "--queries", "all"];
    let names = folder.ok(&words);
    assert!(names.starts_with("out/gaps_n1000_s42.keys\nout/gaps_n1000_s42.uniform_r0_s43.q\n"), "{names}");
    assert!(
        names.contains("out/gaps_n1000_s42.split_s44.s\n")
            && names.ends_with("out/gaps_n1000_s42.fn_s45.q\n")
    );
    assert_eq!(std::fs::metadata(folder.path("out/gaps_n1000_s42.split_s43.q")).unwrap().len(), 8 + 50 * 16);
    folder.ok(&["load", "store", "out/gaps_n1000_s42.keys"]);
    let keys = folder.ok(&["scan", "store", "--key-format", "u64", "--keys-only", "--limit", "2"]);
    assert_eq!(keys, "1000000000000\n1000000001686\n");
}

#[test]
fn existing_files_are_not_overwritten() {
    let folder = Folder::new();
    folder.ok(&["gen", ".", "--count", "10"]);
    folder.write("uniform_n10_s42.keys", "mine");
    let message = folder.fails(4, &["gen", ".", "--count", "10"]);
    assert!(message.contains("--force"), "{message}");
    assert_eq!(std::fs::read(folder.path("uniform_n10_s42.keys")).unwrap(), b"mine");
    folder.ok(&["gen", ".", "--count", "10", "--force", "--json"]);
    assert_eq!(std::fs::metadata(folder.path("uniform_n10_s42.keys")).unwrap().len(), 88);
    folder.write("uniform_n11_s42.keys.part", "mine");
    let message = folder.fails(4, &["gen", ".", "--count", "11"]);
    assert!(message.contains("uniform_n11_s42.keys.part"), "{message}");
    assert_eq!(std::fs::read(folder.path("uniform_n11_s42.keys.part")).unwrap(), b"mine");
    assert!(!folder.path("uniform_n11_s42.keys").exists());
    // A dangling symbolic link is an existing file.
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("elsewhere", folder.path("uniform_n12_s42.keys")).unwrap();
        folder.fails(4, &["gen", ".", "--count", "12"]);
        assert!(folder.path("uniform_n12_s42.keys").is_symlink() && !folder.path("elsewhere").exists());
    }
}

#[test]
fn impossible_query_sets_are_rejected() {
    let folder = Folder::new();
    let words = ["gen", ".", "--keys", "gaps", "--count", "10000", "--queries", "uniform_r1m"];
    let message = folder.fails(2, &words);
    assert!(message.contains("use shorter ranges"), "{message}");
    assert!(folder.is_empty());
}

#[test]
fn filter_eval_accepts_generated_text_files() {
    let folder = Folder::new();
    for (set, prefix) in [("domains", "prefix_b64"), ("emails", "prefix_b64"), ("composite", "prefix_b128")] {
        let words = [
            "gen",
            ".",
            "--keys",
            set,
            "--count",
            "2000",
            "--query-count",
            "300",
            "--sample-count",
            "300",
            "--queries",
        ];
        let run = folder.tamis(&[words.as_slice(), &["points", "ranges", prefix]].concat());
        assert_eq!((run.code, run.stdout.lines().count()), (0, 7), "{}{}", run.stdout, run.stderr);
        for line in run.stderr.lines() {
            assert!(line.contains("queries instead of 300"), "{line}");
        }
        let keys = format!("{set}_n2000_s42.txt");
        assert_eq!(std::fs::read_to_string(folder.path(&keys)).unwrap().lines().count(), 2000);
        for queries in ["points", "ranges", prefix] {
            let queries = format!("{set}_n2000_s42.{queries}_s43.txt");
            let words = [
                "filter",
                "eval",
                "--family",
                "surf-real:bits=8",
                "--format",
                "json",
                "--keys",
                &keys,
                "--queries",
            ];
            let report: serde_json::Value =
                serde_json::from_str(&folder.ok(&[words.as_slice(), &[&queries]].concat())).unwrap();
            assert_eq!(report["present"], 0, "{queries}: {report}");
        }
    }
    folder.ok(&["gen", ".", "--keys", "events", "--count", "500"]);
    let events = std::fs::read_to_string(folder.path("events_n500_s42.txt")).unwrap();
    let lines: Vec<&str> = events.lines().collect();
    assert!(lines.len() == 500 && lines.is_sorted() && lines.iter().all(|line| line.len() == 32));
}

/// For keys that are not 64-bit values: `gen` writes queries with the given share of empty ones, samples, and non-empty
/// ranges, and `filter eval` confirms them.
#[test]
fn every_kind_of_keys_has_mixed_queries_samples_and_non_empty_ranges() {
    let folder = Folder::new();
    for (set, mixed) in [
        ("domains", "mixed_e25"),
        ("emails", "mixed_e25"),
        ("composite", "mixed_e25"),
        ("events", "mixed_r1m_e25"),
    ] {
        let words = ["gen", ".", "--keys", set, "--count", "2000", "--query-count", "400"];
        let seeds =
            ["--query-seed", "7", "--sample-seed", "8", "--sample-count", "300", "--non-empty-seed", "9"];
        let stem = format!("{set}_n2000_s42");
        let (queries, samples) = (format!("{stem}.{mixed}_s7.txt"), format!("{stem}.{mixed}_s8.s.txt"));
        let (keys, present) = (format!("{stem}.txt"), format!("{stem}.fn_s9.txt"));
        let shown = folder.ok(&[&words[..], &seeds, &["--queries", mixed, "non_empty"]].concat());
        assert_eq!(shown, format!("./{keys}\n./{queries}\n./{samples}\n./{present}\n"));
        let line_count = |name: &str| {
            std::fs::read(folder.path(name)).unwrap().iter().filter(|byte| **byte == b'\n').count()
        };
        assert_eq!([&queries, &samples, &present].map(|name| line_count(name)), [400, 300, 100_000]);
        let words = ["filter", "eval", "--family", "surf", "--bits-per-key", "30", "--format", "json"];
        let files = ["--keys", &keys, "--queries", &queries, "--sample", &samples, "--present", &present];
        let report: serde_json::Value =
            serde_json::from_str(&folder.ok(&[&words[..], &files].concat())).unwrap();
        assert_eq!(report["queries"], 400, "{report}");
        assert_eq!(
            report["present"],
            300 + 100_000,
            "three in four queries contain a key, and all ranges of the non-empty set: {report}"
        );
        assert_eq!(report["false_negatives"], 0, "{report}");
    }
}

/// File names contain the seeds of the command line.
#[test]
fn other_seeds_write_other_queries_for_the_same_keys() {
    let folder = Folder::new();
    let words = ["gen", ".", "--count", "1000", "--query-count", "50", "--queries", "split", "non_empty"];
    folder.ok(&words);
    let seeds = ["--query-seed", "7", "--sample-seed", "7", "--non-empty-seed", "8", "--sample-count", "60"];
    folder.ok(&[&words[..], &["--force"], &seeds].concat());
    let read = |name: &str| std::fs::read(folder.path(&format!("uniform_n1000_s42.{name}"))).unwrap();
    assert_eq!([read("split_s7.q").len(), read("split_s7.s").len()], [8 + 16 * 50, 8 + 16 * 60]);
    assert_eq!([read("split_s43.q").len(), read("split_s44.s").len()], [8 + 16 * 50, 8 + 16 * 20_000]);
    assert_ne!(read("split_s43.q"), read("split_s7.q"));
    assert_ne!(read("fn_s45.q"), read("fn_s8.q"));
    let message = folder.fails(2, &["gen", "other", "--query-seed", "7"]);
    assert!(message.contains("--queries"), "a seed of queries needs query sets: {message}");
    assert!(!folder.path("other").exists());
}

/// A query set with fewer queries than requested gives a warning; one without queries gives an error.
#[test]
fn small_query_sets_give_a_warning() {
    let folder = Folder::new();
    let words = ["gen", ".", "--keys", "emails", "--count", "5000", "--query-count", "1000", "--queries"];
    let run = folder.tamis(&[words.as_slice(), &["prefix_b64"]].concat());
    let file = "emails_n5000_s42.prefix_b64_s43.txt";
    let queries = std::fs::read(folder.path(file)).unwrap();
    let count = queries.iter().filter(|byte| **byte == b'\n').count();
    assert!(run.code == 0 && (1..1000).contains(&count), "{count}: {}", run.stderr);
    assert!(run.stderr.contains(&format!("{file}: wrote {count} queries instead of 1000")), "{}", run.stderr);
    let message = folder.fails(2, &[words.as_slice(), &["prefix_b8", "--force"]].concat());
    assert!(message.contains("prefix_b8") && message.contains("longer prefix"), "{message}");
    assert!(!folder.path("emails_n5000_s42.prefix_b8_s43.txt").exists());
}

#[test]
fn operations_are_written_and_unknown_workloads_are_rejected() {
    let folder = Folder::new();
    let words =
        ["gen", ".", "--count", "1000", "--query-count", "200", "--operations", "ycsb-a", "empty-near"];
    assert_eq!(folder.ok(&words), "./ycsb-a_n1000_o200_s42.ops\n./empty-near_n1000_o200_s42.ops\n");
    let text = std::fs::read_to_string(folder.path("ycsb-a_n1000_o200_s42.ops")).unwrap();
    assert!(text.lines().count() == 200 && text.contains("read\t") && text.contains("update\t"));

    let folder = Folder::new();
    for (words, expected) in [
        (["--operations", "ycsb-g"].as_slice(), "ycsb-a, ycsb-b"),
        (&["--keys", "zeta"], "uniform, normal, gaps, zipf, domains, emails, composite, events"),
        (&["--keys", "emails", "--queries", "split"], "points, ranges, prefix_bN"),
        (&["--keys", "events", "--queries", "ranges"], "points, non_empty, all"),
        (&["--keys", "emails", "--queries", "mixed_r32_e50"], "mixed_eN"),
        (&["--queries", "uniform_r5"], "mixed_R_eN"),
        (&["--operations", "ycsb-a", "--queries", "split"], "cannot be used with"),
    ] {
        let message = folder.fails(2, &[["gen", "."].as_slice(), words].concat());
        assert!(message.contains(expected), "{words:?}: {message}");
    }
    assert!(folder.is_empty());
}

/// Regression: fillseq wrote the file of fillrandom, and readwhilewriting the file of readrandom.
#[test]
fn ordered_and_concurrent_workloads_have_separate_files() {
    let folder = Folder::new();
    let names = ["fillseq", "fillrandom", "readwhilewriting", "readrandom"];
    let words = ["gen", ".", "--count", "500", "--query-count", "300", "--operations"];
    let shown = folder.ok(&[&words[..], &names].concat());
    let files: Vec<&str> = shown.lines().map(|line| line.strip_prefix("./").unwrap()).collect();
    assert_eq!(files.len(), 5, "{shown}");
    let read = |name: &str| std::fs::read_to_string(folder.path(&format!("{name}_n500_o300_s42.ops")));
    let [sorted, random, reads, alone] = names.map(|name| read(name).unwrap());
    let keys = |text: &str| text.lines().map(|line| line.split_once('\t').unwrap().1.to_owned()).collect();
    let (sorted_keys, random_keys): (Vec<String>, Vec<String>) = (keys(&sorted), keys(&random));
    assert!(sorted_keys.len() == 300 && sorted_keys.is_sorted_by(|one, two| one < two));
    assert!(!random_keys.is_sorted());
    assert_eq!(sorted_keys.iter().collect::<BTreeSet<_>>(), random_keys.iter().collect());
    // Its reads equal those of readrandom; the writes are in a second file.
    assert_eq!(reads, alone);
    let name = "readwhilewriting_n500_o300_s42.writer.ops";
    assert!(files.contains(&name), "{shown}");
    let written = std::fs::read_to_string(folder.path(name)).unwrap();
    assert!(written.lines().count() == 300 && written.lines().all(|line| line.starts_with("update\t")));
    let message = folder.ok(&["gen", "--help"]);
    assert!(
        message.contains("The keys of fillseq are in ascending order") && message.contains(".writer.ops"),
        "{message}"
    );
}

/// The advice names options of `gen`: it has counts, not sizes.
#[cfg(target_os = "linux")]
#[test]
fn too_little_disk_is_reported_with_options_of_gen() {
    let folder = Folder::new();
    for words in [["gen", "/proc/x"].as_slice(), &["gen", "/proc/x", "--operations", "ycsb-c"]] {
        let message = folder.fails(4, words);
        assert!(message.contains("use a smaller --count or --query-count, or free some"), "{message}");
        assert!(!message.contains("--size"), "{message}");
    }
}
