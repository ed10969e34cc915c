//! The five answers for states that a fresh process does not have.

use super::*;

fn found<'a>(statistics: &'a Statistics, files: &'a [FileKind]) -> Found<'a> {
    Found { statistics, files, unreadable_count: 0 }
}

/// A keyspace with runs in L0, sampled queries and an odd name.
fn keyspace() -> KeyspaceStatistics {
    let mut level = LevelStatistics::default();
    (level.run_count, level.table_count, level.bytes, level.entry_count) = (6, 6, 3 << 40, 123_456_789_012);
    level.tombstone_count = 1_000_000_000;
    let mut keyspace = KeyspaceStatistics::default();
    keyspace.name =
        "gr\u{fc}n \u{1b}[31m and a very long name, longer than a line of eighty columns is".to_owned();
    keyspace.levels = vec![level];
    keyspace.sample.ranges.kept = 100;
    (keyspace.sample.ranges.tables_rejected, keyspace.sample.ranges.tables_true_positive) = (590, 100);
    keyspace.sample.ranges.tables_false_positive = 2;
    keyspace.pending_compaction_bytes = 5 << 30;
    keyspace.immutable_memtable_count = 2;
    keyspace
}

#[test]
fn every_answer_fits_and_names_the_reason() {
    let mut statistics = Statistics::default();
    statistics.keyspaces = vec![keyspace(), KeyspaceStatistics::default()];
    (statistics.snapshots, statistics.open_scans, statistics.held_bytes) = (3, 1, 7 << 20);
    statistics.oldest_snapshot = std::time::Duration::from_secs(7_200);
    statistics.log_bytes = 64 << 20;
    let files = [FileKind { name: "*.obsolete".to_owned(), count: 2, bytes: 9 << 20 }];
    let text = answers(&found(&statistics, &files));
    assert!(text.lines().all(|line| line.chars().count() <= WIDTH && !line.contains('\u{1b}')), "{text}");
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "L0 3.0 TiB 100 % 6 runs, 123,456,789,012 entries, 1,000,000,000 of them deletes",
        "closed ranges 1.02 blocks: 1.00 with a key, 0.02 false positives",
        "closed ranges 5.90 of 6.92 blocks per query",
        "compactions of about 5.0 GiB: L0 has 6 runs",
        "2 memtables for a flush: they are full",
        "The next open, for 64.0 MiB of log",
        "2 obsolete files of 9.0 MiB will be deleted by the next open.",
        "3 snapshots (oldest 7200 s) and 1 scan keep 7.0 MiB of obsolete tables.",
    ] {
        assert!(joined.contains(part), "{part}: {text}");
    }
}

#[test]
fn an_idle_store_says_so() {
    let mut statistics = Statistics::default();
    statistics.keyspaces = vec![KeyspaceStatistics::default()];
    let text = answers(&found(&statistics, &[]));
    assert!(
        text.contains("\n  Nothing.\n") && text.contains("no queries of this store are sampled yet"),
        "{text}"
    );
    assert!(text.contains("No snapshot and no scan keeps others"), "{text}");
}
