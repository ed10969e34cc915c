use super::*;

const GIB: u64 = 1 << 30;

fn best(workload: Workload) -> Layout {
    let estimates = advise_layout(&workload, &KeyspaceOptions::default());
    assert_eq!(estimates.len(), 3);
    assert!(estimates.is_sorted_by(|left, right| left.relative_cost <= right.relative_cost), "{estimates:?}");
    estimates.first().map_or(Layout::Leveled, |first| first.layout)
}

#[test]
fn scans_need_few_runs_and_writes_few_merges() {
    let data_bytes = 100 * GIB;
    let of = |user_bytes_written, point_reads, scans| {
        best(Workload { user_bytes_written, point_reads, scans, data_bytes })
    };
    assert_eq!(of(100 * GIB, 0, 0), Layout::partitioned());
    assert_eq!(of(GIB, 0, 10_000_000), Layout::Leveled);
    assert_eq!(of(0, 0, 0), Layout::Leveled, "the default without a workload");
}

/// A flush into hundreds of partitions writes a file of a few entries for each of them.
#[test]
fn a_small_memtable_for_many_partitions_needs_another_layout() {
    let workload =
        Workload { user_bytes_written: GIB, point_reads: 1_000_000, scans: 0, data_bytes: 64 << 20 };
    let small = KeyspaceOptions::default().memtable_bytes(1 << 20).table_bytes(64 << 10);
    let estimates = advise_layout(&workload, &small);
    assert_eq!(estimates.first().map(|first| first.layout), Some(Layout::tiered()), "{estimates:?}");
    assert_eq!(estimates.last().map(|last| last.layout), Some(Layout::partitioned()), "{estimates:?}");
    let large = small.memtable_bytes(16 << 20).table_bytes(4 << 20);
    let estimates = advise_layout(&workload, &large);
    assert!(estimates.iter().all(|estimate| estimate.relative_cost < 1.1), "{estimates:?}");
}

#[test]
fn estimates_are_finite_for_any_counts() {
    for data_bytes in [0, 1, u64::MAX] {
        for count in [0, 1, u64::MAX] {
            let workload =
                Workload { user_bytes_written: count, point_reads: count, scans: count, data_bytes };
            for estimate in advise_layout(&workload, &KeyspaceOptions::default()) {
                let LayoutEstimate { write_amplification, runs_per_read, relative_cost, .. } = estimate;
                assert!(write_amplification >= 2.0 && write_amplification.is_finite(), "{estimate:?}");
                assert!(
                    runs_per_read >= 1.0 && relative_cost >= 1.0 && relative_cost.is_finite(),
                    "{estimate:?}"
                );
            }
        }
    }
}
