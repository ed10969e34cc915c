use super::*;

const LIMITS: Limits = Limits { table_bytes: 1000, tables_max: 10 };

/// Decides for runs `(tables, bytes)`, newest first.
fn of(runs: &[(usize, u64)]) -> Decision {
    let runs: Vec<RunSize> =
        runs.iter().map(|&(table_count, bytes)| RunSize { table_count, bytes }).collect();
    decide(&runs, LIMITS)
}

fn repeated(count: usize, run: (usize, u64), older: &[(usize, u64)]) -> Vec<(usize, u64)> {
    std::iter::repeat_n(run, count).chain(older.iter().copied()).collect()
}

#[test]
fn a_partition_of_few_tables_is_not_compacted() {
    assert_eq!(of(&[]), Decision::Keep);
    assert_eq!(of(&repeated(10, (1, 1000), &[])), Decision::Keep);
    assert_eq!(of(&repeated(1, (10, 10_000), &[])), Decision::Keep);
}

#[test]
fn small_new_runs_are_merged_and_large_old_ones_stay() {
    let of_small = of(&repeated(9, (1, 60), &[(2, 2000)]));
    assert_eq!(of_small, Decision::Major { run_count: 9, ratio: 9.0 });
    // All runs fit into one table.
    assert_eq!(of(&repeated(11, (1, 60), &[])), Decision::Major { run_count: 11, ratio: 11.0 });
    // A half-filled table is not rewritten to free one table more.
    let limits = Limits { table_bytes: 100_000, tables_max: 10 };
    let with_half: Vec<RunSize> = repeated(8, (1, 6_000), &[(1, 50_000), (2, 200_000)])
        .into_iter()
        .map(|(table_count, bytes)| RunSize { table_count, bytes })
        .collect();
    assert_eq!(decide(&with_half, limits), Decision::Major { run_count: 8, ratio: 8.0 });
}

#[test]
fn a_partition_of_large_tables_is_split() {
    assert_eq!(of(&repeated(11, (1, 1000), &[])), Decision::Split);
    assert_eq!(of(&repeated(1, (11, 11_000), &[])), Decision::Split);
    // Ten inputs for nine outputs.
    assert_eq!(of(&repeated(2, (1, 500), &[(9, 9000)])), Decision::Split);
}

/// However wrong the estimates are, jobs end: a major leaves fewer runs.
#[test]
fn major_compactions_that_reclaim_nothing_end_in_a_split() {
    let mut runs = repeated(30, (1, 60), &[(2, 2000)]);
    let mut count = 0;
    while let Decision::Major { run_count, .. } = of(&runs) {
        // Ten times as many tables as expected.
        let merged: Vec<_> = runs.drain(..run_count).collect();
        let tables = merged.iter().map(|(tables, _)| tables).sum();
        runs.insert(0, (tables, merged.iter().map(|(_, bytes)| bytes).sum()));
        count += 1;
        assert!(count < 40);
    }
    assert_eq!(of(&runs), Decision::Split);
}
