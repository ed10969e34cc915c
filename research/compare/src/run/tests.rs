//! Results of different stores.

use tamis_bench::Point;

use super::*;

fn point(state: &str, workload: &str, store: &str) -> Point {
    let point = Point::new().with("state", state).with("workload", workload);
    point.with("threads", 1_u64).with("round", 1_u64).with("store", store)
}

fn metrics(answers: &str) -> Fields {
    Row::new().with("answers", answers).fields
}

#[test]
fn different_results_are_an_error() {
    let mut answers = Answers::default();
    let mut check = |state: &str, workload: &str, store: &str, digest: &str| {
        answers.check(&point(state, workload, store), &metrics(digest))
    };
    check("settled", "seek", "tamis", "7").expect("the first");
    check("settled", "seek", "tamis-bloom", "7").expect("the same");
    check("settled", "ycsb-a", "tamis", "1").expect("a mix");
    check("settled", "ycsb-a", "tamis-bloom", "2").expect("a mix has many results");
    check("compacted", "seek", "tamis", "1").expect("compacted");
    check("compacted", "seek", "tamis-bloom", "2").expect("mixes have changed the store");
    let error = check("settled", "seek", "tamis-partitioned", "8").expect_err("it differs");
    assert!(error.to_string().contains("tamis-partitioned"), "{error}");
    assert!(answers.check(&point("settled", "seek", "tamis-bloom"), &Fields::default()).is_ok(), "none");
}
