use super::*;

const LIMITS: Limits = Limits { table_bytes: 1000, tables_max: 10, tables_after_split: 2 };

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
    let kib = |runs: Vec<(usize, u64)>| -> Decision {
        let size = |(table_count, bytes): (usize, u64)| RunSize { table_count, bytes: bytes << 10 };
        decide(&runs.into_iter().map(size).collect::<Vec<_>>(), Limits { table_bytes: 64 << 20, ..LIMITS })
    };
    assert_eq!(kib(repeated(9, (1, 3_000), &[(2, 120_000)])), Decision::Major { run_count: 9 });
    // All runs fit into one table.
    assert_eq!(kib(repeated(11, (1, 3_000), &[])), Decision::Major { run_count: 11 });
    // A run of older merges is not rewritten to free one place more.
    assert_eq!(kib(repeated(8, (1, 3_000), &[(1, 40_000), (2, 120_000)])), Decision::Major { run_count: 8 });
}

#[test]
fn all_runs_of_older_merges_are_merged_once_they_take_most_places() {
    // Merges of the two newest runs would be cheaper now, and due again after each flush.
    let middle = repeated(7, (1, 60_000), &[(2, 1_900_000)]);
    let runs: Vec<_> = repeated(2, (1, 60_000), &middle);
    let limits = Limits { table_bytes: 1 << 20, ..LIMITS };
    let sizes: Vec<RunSize> =
        runs.iter().map(|&(table_count, bytes)| RunSize { table_count, bytes }).collect();
    assert_eq!(decide(&sizes, limits), Decision::Major { run_count: 9 });
}

#[test]
fn a_partition_of_large_tables_is_split() {
    assert_eq!(of(&repeated(11, (1, 1000), &[])), Decision::Split);
    assert_eq!(of(&repeated(1, (11, 11_000), &[])), Decision::Split);
    // Ten inputs for nine outputs.
    assert_eq!(of(&repeated(2, (1, 500), &[(9, 9000)])), Decision::Split);
    // A large base run leaves few places, so that small runs would be merged again and again.
    let limits = Limits { table_bytes: 1 << 20, ..LIMITS };
    let mut sizes = vec![RunSize { table_count: 1, bytes: 60_000 }; 3];
    sizes.push(RunSize { table_count: 8, bytes: 8 << 20 });
    sizes.insert(3, RunSize { table_count: 1, bytes: 900_000 });
    assert_eq!(decide(&sizes, limits), Decision::Split);
}

/// A flush writes a table to each new partition. If it has few bytes for each, most of them are the fixed bytes of tables.
#[test]
fn a_partition_that_gets_few_bytes_from_each_flush_is_split_later() {
    let decide_with = |unit: u64| {
        let kilobytes = [(1, 8), (1, 8), (1, 40), (1, 60), (1, 60), (1, 60), (1, 60), (1, 60), (3, 190)];
        let sizes = kilobytes.map(|(table_count, bytes)| RunSize { table_count, bytes: bytes * unit });
        decide(&sizes, Limits { table_bytes: 65_536 * unit / 1_000, ..LIMITS })
    };
    assert_eq!(decide_with(1_000), Decision::Major { run_count: 3 });
    assert_eq!(decide_with(64_000), Decision::Split);
}

/// The least and the greatest numbers of tables that the options allow, and flushes of several tables.
#[test]
fn every_partition_with_too_many_tables_has_a_job() {
    for (tables_max, tables_after_split) in [(4, 1), (4, 2), (48, 2), (48, 24)] {
        let limits = Limits { table_bytes: 1000, tables_max, tables_after_split };
        for flushed in [RunSize { table_count: 1, bytes: 10 }, RunSize { table_count: 5, bytes: 5_000 }] {
            for base in [RunSize { table_count: 1, bytes: 900 }, RunSize { table_count: 40, bytes: 41_000 }] {
                let count = tables_max / flushed.table_count + 1;
                let mut runs = vec![flushed; count];
                runs.push(base);
                let decision = decide(&runs, limits);
                assert_ne!(decision, Decision::Keep, "{limits:?} {runs:?}");
                if let Decision::Major { run_count } = decision {
                    let rest: usize = runs.iter().skip(run_count).map(|run| run.table_count).sum();
                    assert!(run_count >= 2 && rest < tables_max, "{limits:?} {runs:?}");
                }
            }
        }
    }
}

/// Files of full tables are a little larger than the limit.
#[test]
fn full_tables_are_expected_to_stay_as_many() {
    assert_eq!(output_count(1000, LIMITS), 1);
    assert_eq!(output_count(3 * 1020, LIMITS), 3);
    assert_eq!(output_count(3 * 1020 + 500, LIMITS), 4);
    assert_eq!(output_count(0, LIMITS), 1);
}

/// The cost of a job falls with the places that it leaves and grows with the bytes that it rewrites.
#[test]
fn jobs_that_leave_more_places_cost_less_per_flush() {
    let flushed = RunSize { table_count: 1, bytes: 1 << 20 };
    let costs: Vec<f64> = (0..10).map(|free| bytes_per_flush(100 << 20, free, flushed, 1)).collect();
    assert!(costs.windows(2).all(|pair| pair.first() > pair.last()), "{costs:?}");
    assert!(bytes_per_flush(200 << 20, 5, flushed, 1) > bytes_per_flush(100 << 20, 5, flushed, 1));
    // Ten places for flushes of five tables are worth two places for flushes of one table.
    let large = RunSize { table_count: 5, bytes: 1 << 20 };
    let (of_large, of_small) =
        (bytes_per_flush(100 << 20, 10, large, 1), bytes_per_flush(100 << 20, 2, flushed, 1));
    assert!((of_large - of_small).abs() < 1e-6, "{of_large} {of_small}");
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

/// Updates of a full partition: the bytes that compactions write per flushed byte. A merge of all runs has the bytes of distinct keys.
/// Merging the runs that free most tables per byte wrote about ten bytes.
#[test]
fn long_updates_of_a_full_partition_write_few_bytes_per_flushed_byte() {
    const DISTINCT: u64 = 290 << 20;
    const PARTITION_COUNT: u64 = 20;
    const FLUSH_COUNT: u64 = 400;
    let limits = Limits { table_bytes: 64 << 20, ..LIMITS };
    let run = |bytes: u64| RunSize { table_count: output_count(bytes, limits), bytes };
    // One of as many equal partitions.
    let mut partition_count = PARTITION_COUNT;
    let mut runs: Vec<RunSize> = [10, 40, 40, 40, 40, 160].iter().map(|mib| run(mib << 20)).collect();
    let (mut flushed, mut compacted) = (0, 0);
    for _ in 0..FLUSH_COUNT {
        let bytes = (27 << 20) / partition_count;
        flushed += bytes * partition_count;
        runs.insert(0, run(bytes));
        loop {
            let merged_bytes = |count: usize| {
                let bytes: u64 = runs.iter().take(count).map(|run| run.bytes).sum();
                bytes.min(DISTINCT * PARTITION_COUNT / partition_count)
            };
            match decide(&runs, limits) {
                Decision::Keep => break,
                Decision::Major { run_count } => {
                    let bytes = merged_bytes(run_count);
                    compacted += bytes * partition_count;
                    runs.splice(..run_count, [run(bytes)]);
                }
                Decision::Split => {
                    let bytes = merged_bytes(runs.len());
                    compacted += bytes * partition_count;
                    let parts = (output_count(bytes, limits) / limits.tables_after_split).max(1) as u64;
                    partition_count *= parts;
                    runs = vec![run(bytes / parts)];
                }
            }
        }
    }
    let ratio = compacted as f64 / flushed as f64;
    assert!(ratio < 4.5, "{ratio:.2} bytes per flushed byte");
}
