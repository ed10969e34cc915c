//! The help examples are valid, and plans compute the number of files and the resources that they need.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

use super::*;
use crate::command::{
    Command,
    tests::{examples, parsed},
};

fn plan(words: &str) -> Plan {
    let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    let Command::Gen(args) = parsed(&words).command else { panic!("{words:?}") };
    args.plan().unwrap_or_else(|failure| panic!("{words:?}: {failure:?}"))
}

#[test]
fn the_help_examples_are_valid() {
    let examples: Vec<String> =
        examples().iter().map(|words| words.join(" ")).filter(|words| words.starts_with("gen ")).collect();
    assert!(examples.len() >= 7, "{examples:?}");
    examples.iter().for_each(|words| drop(plan(words)));
}

/// Regression: the progress bar counted keys and query sets only, and showed "3 of 1" for three workloads.
#[test]
fn file_count_equals_the_number_of_written_files() {
    for (words, count) in [
        ("gen out --count 50", 1),
        ("gen out --count 50 --queries split non_empty", 4),
        ("gen out --count 50 --keys emails --queries all", 6),
        ("gen out --count 50 --keys events --queries points non_empty", 4),
        ("gen out --count 50 --operations ycsb-a fillseq readwhilewriting", 4),
    ] {
        let plan = plan(&format!("{words} --query-count 20"));
        let mut written = 0;
        plan.write(&mut |_, _| {
            written += 1;
            Ok(())
        })
        .unwrap();
        assert_eq!((plan.file_count(), written), (count, count), "{words}");
    }
}

#[test]
fn needs_include_the_data_in_memory() {
    let needs = |words: &str| plan(words).needs();
    let (integers, events) =
        (needs("gen out --count 1000000"), needs("gen out --keys events --count 1000000"));
    assert_eq!((integers.memory_bytes, events.memory_bytes), (8_000_000, 0));
    let with_queries = needs("gen out --keys events --count 1000000 --queries split");
    assert!(with_queries.memory_bytes > 8_000_000 && with_queries.disk_bytes > events.disk_bytes);
    let [drawn, sorted] =
        ["fillrandom", "fillseq"].map(|name| needs(&format!("gen out --operations {name}")));
    assert!(drawn.memory_bytes == 0 && sorted.memory_bytes >= 32_000_000);
}
