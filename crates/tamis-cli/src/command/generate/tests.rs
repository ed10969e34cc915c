//! The examples name sets that there are, and plans tell how many files they write.

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
fn the_examples_name_sets_that_there_are() {
    let examples: Vec<String> =
        examples().iter().map(|words| words.join(" ")).filter(|words| words.starts_with("gen ")).collect();
    assert!(examples.len() >= 7, "{examples:?}");
    examples.iter().for_each(|words| drop(plan(words)));
}

/// The bar counted keys and query sets only: "3 of 1" with three workloads.
#[test]
fn a_plan_tells_as_many_files_as_it_writes() {
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
fn what_is_held_in_memory_is_told_before() {
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
