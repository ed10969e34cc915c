//! Statistics in the text format of Prometheus, for an endpoint that its server reads.
//!
//! Names begin with `tamis_`. Counters end with `_total`; sizes are bytes and times seconds. Series have the labels `keyspace`, `level`,
//! `reads` (the kind of read), `answer` and `decision`. Their number grows with keyspaces and levels, not with tables.

use std::fmt::{Display, Write as _};

use super::{KeyspaceStatistics, LevelReads, LevelStatistics, ReadStatistics, Statistics};

#[cfg(test)]
mod tests;

impl Statistics {
    /// The statistics in the text format of Prometheus. `tamis stats --prometheus` prints it for a store that is not open.
    ///
    /// ```
    /// # fn main() -> tamis::Result<()> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// let db = tamis::Db::open(folder.path())?;
    /// db.put("apple", "red")?;
    /// assert!(db.statistics().to_prometheus().contains("tamis_writes_total 1\n"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn to_prometheus(&self) -> String {
        let mut page = Page(String::new());
        for (name, help, value) in self.read_counters() {
            page.one(name, help, "counter", value);
        }
        for (name, help, value) in self.write_counters().into_iter().chain(self.job_counters()) {
            page.one(name, help, "counter", value);
        }
        page.one(
            "tamis_throttled_seconds_total",
            "Total delay of throttled writes.",
            "counter",
            seconds(self.throttled_microseconds),
        );
        page.one(
            "tamis_stopped_seconds_total",
            "Total time of stopped writes.",
            "counter",
            seconds(self.stopped_microseconds),
        );
        self.partition_decisions(&mut page);
        for (name, help, value) in self.gauges() {
            page.one(name, help, "gauge", value);
        }
        let oldest = self.oldest_snapshot.as_secs_f64();
        page.one("tamis_oldest_snapshot_seconds", "Age of the oldest snapshot.", "gauge", oldest);
        let replaced = self.oldest_replaced_state.as_secs_f64();
        let help = "Time since the oldest state that a scan still reads was replaced.";
        page.one("tamis_oldest_replaced_state_seconds", help, "gauge", replaced);
        self.dropped_keyspaces(&mut page);
        self.held_by_readers(&mut page);
        levels(&self.reads, &mut page);
        keyspaces(&self.keyspaces, &mut page);
        page.0
    }

    fn read_counters(&self) -> [(&'static str, &'static str, u64); 18] {
        [
            ("tamis_blocks_read_total", "Blocks that reads loaded.", self.blocks_read),
            ("tamis_read_bytes_total", "Bytes that reads loaded.", self.bytes_read),
            ("tamis_cache_hits_total", "Blocks that reads found in memory.", self.cache_hits),
            ("tamis_digests_total", "Digests of keys that reads computed.", self.digests),
            ("tamis_point_reads_total", "Point reads.", self.point_reads),
            ("tamis_scans_total", "Scans.", self.scans),
            ("tamis_range_scans_total", "Scans with two bounds.", self.range_scans),
            ("tamis_prefix_scans_total", "Scans of prefixes.", self.prefix_scans),
            ("tamis_forward_seeks_total", "Open-ended seeks forward.", self.forward_seeks),
            ("tamis_backward_seeks_total", "Open-ended seeks backward.", self.backward_seeks),
            ("tamis_deleted_keys_passed_total", "Deleted keys that scans passed.", self.deleted_keys_passed),
            (
                "tamis_deleted_ranges_recorded_total",
                "Ranges of deleted keys that scans noted.",
                self.deleted_ranges_recorded,
            ),
            (
                "tamis_read_triggered_compactions_total",
                "Merges of all runs of a partition for which reads have paid.",
                self.read_triggered_compactions,
            ),
            ("tamis_filters_checked_total", "Tables whose filters were chosen again.", self.filters_checked),
            ("tamis_filters_replaced_total", "Tables whose filters were replaced.", self.filters_replaced),
            ("tamis_corrupt_filters_total", "Damaged filters, which are ignored.", self.corrupt_filters),
            (
                "tamis_cache_too_small_total",
                "Indexes and filters too large for the cache.",
                self.cache_too_small,
            ),
            ("tamis_jobs_failed_total", "Flushes and compactions that failed.", self.jobs_failed),
        ]
    }

    fn write_counters(&self) -> [(&'static str, &'static str, u64); 9] {
        [
            ("tamis_writes_total", "Batches written.", self.writes),
            ("tamis_entries_written_total", "Puts and deletes written.", self.entries_written),
            ("tamis_user_written_bytes_total", "Bytes of keys and values written.", self.user_bytes_written),
            ("tamis_log_written_bytes_total", "Bytes written to the log.", self.log_bytes_written),
            ("tamis_flush_written_bytes_total", "Bytes written by flushes.", self.flush_bytes_written),
            ("tamis_flush_blocks_written_total", "Blocks written by flushes.", self.flush_blocks_written),
            ("tamis_throttled_writes_total", "Writes delayed by back-pressure.", self.throttled_writes),
            (
                "tamis_stopped_writes_total",
                "Writes that waited for a flush or compaction.",
                self.stopped_writes,
            ),
            ("tamis_flushes_total", "Flushes.", self.flushes),
        ]
    }

    fn job_counters(&self) -> [(&'static str, &'static str, u64); 14] {
        let help_of_garbage = "Compactions because of deleted entries and obsolete versions.";
        [
            ("tamis_direct_flushes_total", "Flushes with direct I/O.", self.direct_flushes),
            ("tamis_compactions_total", "Compactions.", self.compactions),
            ("tamis_garbage_compactions_total", help_of_garbage, self.garbage_compactions),
            ("tamis_compaction_read_bytes_total", "Bytes read by compactions.", self.compaction_bytes_read),
            (
                "tamis_compaction_written_bytes_total",
                "Bytes written by compactions.",
                self.compaction_bytes_written,
            ),
            (
                "tamis_compaction_blocks_written_total",
                "Blocks written by compactions.",
                self.compaction_blocks_written,
            ),
            ("tamis_trivial_moves_total", "Tables moved to a deeper level.", self.trivial_moves),
            ("tamis_dropped_tables_total", "Tables dropped without a read.", self.dropped_tables),
            ("tamis_retained_entries_total", "Entries that flushes left in memory.", self.retained_entries),
            (
                "tamis_retained_bytes_total",
                "Bytes of entries that flushes left in memory.",
                self.retained_bytes,
            ),
            ("tamis_views_built_total", "Sorted views built from all entries.", self.views_built),
            ("tamis_views_rebuilt_total", "Sorted views built from previous views.", self.views_rebuilt),
            ("tamis_views_discarded_total", "Sorted views that were discarded.", self.views_discarded),
            ("tamis_view_written_bytes_total", "Bytes of sorted views written.", self.view_bytes_written),
        ]
    }

    fn gauges(&self) -> [(&'static str, &'static str, u64); 9] {
        let help_of_held = "Bytes of obsolete tables that scans and handles keep on disk.";
        [
            ("tamis_log_bytes", "Bytes of the log that are still needed.", self.log_bytes),
            ("tamis_cache_block_bytes", "Bytes of blocks in the cache.", self.cache_bytes),
            ("tamis_cache_pinned_bytes", "Bytes of filters and indexes in memory.", self.cache_pinned_bytes),
            ("tamis_cache_sample_bytes", "Bytes of sampled queries in memory.", self.cache_sample_bytes),
            ("tamis_snapshots", "Snapshots.", self.snapshots as u64),
            ("tamis_open_scans", "Scans that were not dropped.", self.open_scans),
            ("tamis_held_bytes", help_of_held, self.held_bytes),
            ("tamis_open_files", "Table and filter files with a descriptor.", self.open_files as u64),
            ("tamis_open_files_max", "Limit of these files.", self.open_files_max as u64),
        ]
    }

    fn partition_decisions(&self, page: &mut Page) {
        let decisions = self.partition_decisions.named();
        page.family("tamis_partition_decisions_total", "Decisions about partitions.", "counter");
        for (name, decision) in &decisions {
            page.sample("tamis_partition_decisions_total", &[("decision", name)], decision.count);
        }
        let name = "tamis_partition_expected_bytes_total";
        page.family(name, "Bytes that these decisions expected to write.", "counter");
        for (decision, statistics) in &decisions {
            page.sample(name, &[("decision", decision)], statistics.bytes_expected);
        }
        let name = "tamis_partition_written_bytes_total";
        page.family(name, "Bytes that these decisions wrote.", "counter");
        for (decision, statistics) in &decisions {
            page.sample(name, &[("decision", decision)], statistics.bytes_written);
        }
    }

    fn held_by_readers(&self, page: &mut Page) {
        let name = "tamis_reader_held_bytes";
        page.family(name, "Bytes of obsolete files that readers of other processes keep on disk.", "gauge");
        for reader in &self.readers {
            page.sample(name, &[("process", &reader.process_id.to_string())], reader.held_bytes);
        }
    }

    fn dropped_keyspaces(&self, page: &mut Page) {
        let name = "tamis_dropped_keyspace_bytes";
        page.family(name, "Bytes of dropped keyspaces that handles keep on disk.", "gauge");
        for dropped in &self.dropped_keyspaces {
            page.sample(name, &[("keyspace", &dropped.name)], dropped.bytes);
        }
    }
}

/// The text under construction.
struct Page(String);

impl Page {
    /// Begins a family of series.
    fn family(&mut self, name: &str, help: &str, kind: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// Adds a series to the last family.
    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        for (index, (label, text)) in labels.iter().enumerate() {
            let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.0, "{}{label}=\"{text}\"", if index == 0 { '{' } else { ',' });
        }
        let _ = writeln!(self.0, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    /// Adds a family of one series without labels.
    fn one(&mut self, name: &str, help: &str, kind: &str, value: impl Display) {
        self.family(name, help, kind);
        self.sample(name, &[], value);
    }
}

fn seconds(microseconds: u64) -> f64 {
    microseconds as f64 / 1e6
}

fn kinds(level: &LevelReads) -> [(&'static str, &ReadStatistics); 4] {
    [
        ("points", &level.points),
        ("ranges", &level.ranges),
        ("prefixes", &level.prefixes),
        ("seeks", &level.seeks),
    ]
}

/// The reads of all keyspaces by level.
fn levels(levels: &[LevelReads], page: &mut Page) {
    let name = "tamis_filter_answers_total";
    page.family(name, "Answers of filters to reads.", "counter");
    for (number, level) in levels.iter().enumerate() {
        let number = number.to_string();
        for (reads, counted) in kinds(level) {
            let answers = [
                ("rejected", counted.rejected),
                ("true_positive", counted.true_positives),
                ("false_positive", counted.false_positives),
            ];
            for (answer, count) in answers {
                page.sample(name, &[("level", &number), ("reads", reads), ("answer", answer)], count);
            }
        }
    }
    let name = "tamis_filter_checks_total";
    page.family(name, "Reads that checked the filters of a table.", "counter");
    each_kind(levels, name, page, |reads| reads.checked);
    let name = "tamis_level_blocks_read_total";
    page.family(name, "Blocks that reads loaded, by level.", "counter");
    each_kind(levels, name, page, |reads| reads.blocks_read);
    let name = "tamis_level_cache_hits_total";
    page.family(name, "Blocks that reads found in memory, by level.", "counter");
    each_kind(levels, name, page, |reads| reads.cache_hits);
    let name = "tamis_table_read_seconds";
    page.family(
        name,
        "Mean time of recent reads of a table, which is the cost of a false positive.",
        "gauge",
    );
    for (number, level) in levels.iter().enumerate() {
        let read_seconds = level.read_nanoseconds as f64 / 1e9;
        page.sample(name, &[("level", &number.to_string())], read_seconds);
    }
}

fn each_kind(levels: &[LevelReads], name: &str, page: &mut Page, count: impl Fn(&ReadStatistics) -> u64) {
    for (number, level) in levels.iter().enumerate() {
        for (reads, counted) in kinds(level) {
            page.sample(name, &[("level", &number.to_string()), ("reads", reads)], count(counted));
        }
    }
}

/// A size of a keyspace: its name, its description and its value.
type KeyspaceGauge = (&'static str, &'static str, fn(&KeyspaceStatistics) -> u64);

const KEYSPACE_GAUGES: &[KeyspaceGauge] = &[
    ("tamis_memtable_bytes", "Bytes of the memtable that takes writes.", |keyspace| keyspace.memtable_bytes),
    ("tamis_immutable_memtables", "Memtables that wait for their flush.", |keyspace| {
        keyspace.immutable_memtable_count as u64
    }),
    ("tamis_expired_bytes", "About the bytes of expired entries in tables.", |keyspace| {
        keyspace.expired_bytes
    }),
    ("tamis_pending_compaction_bytes", "Bytes that due compactions will read and write.", |keyspace| {
        keyspace.pending_compaction_bytes
    }),
    ("tamis_partitions", "Partitions.", |keyspace| keyspace.partition_count as u64),
    ("tamis_views", "Sorted views.", |keyspace| keyspace.views.count as u64),
    ("tamis_view_bytes", "Bytes of open sorted views.", |keyspace| keyspace.views.bytes),
    ("tamis_filter_bytes", "Bytes of the filters of open tables.", |keyspace| {
        keyspace.filters.iter().map(|filters| filters.bytes).sum()
    }),
];

/// A size of a level: its name, its description and its value.
type LevelGauge = (&'static str, &'static str, fn(&LevelStatistics) -> u64);

const LEVEL_GAUGES: &[LevelGauge] = &[
    ("tamis_level_runs", "Runs of a level.", |level| level.run_count as u64),
    ("tamis_level_tables", "Tables of a level.", |level| level.table_count as u64),
    ("tamis_level_bytes", "Bytes of the tables of a level.", |level| level.bytes),
    ("tamis_level_entries", "Entries of a level, with old versions and tombstones.", |level| {
        level.entry_count
    }),
    ("tamis_level_tombstones", "Tombstones of a level.", |level| level.tombstone_count),
    ("tamis_level_range_tombstones", "Range tombstones of a level.", |level| level.range_tombstone_count),
];

fn keyspaces(keyspaces: &[KeyspaceStatistics], page: &mut Page) {
    for (name, help, value) in KEYSPACE_GAUGES {
        page.family(name, help, "gauge");
        for keyspace in keyspaces {
            page.sample(name, &[("keyspace", &keyspace.name)], value(keyspace));
        }
    }
    for (name, help, value) in LEVEL_GAUGES {
        page.family(name, help, "gauge");
        for keyspace in keyspaces {
            for (number, level) in keyspace.levels.iter().enumerate() {
                let number = number.to_string();
                page.sample(name, &[("keyspace", &keyspace.name), ("level", &number)], value(level));
            }
        }
    }
}
