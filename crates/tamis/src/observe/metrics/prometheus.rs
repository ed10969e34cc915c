//! Statistics in the text format of Prometheus, for an endpoint that its server reads.
//!
//! Names begin with `tamis_` and the name of the number in [`Statistics`]. Counters end with `_total`; sizes are bytes and times seconds. Series have the labels `keyspace`, `level`,
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
        for (name, help, value) in self.counters() {
            match name.strip_suffix("_microseconds") {
                Some(name) => {
                    let name = format!("tamis_{name}_seconds_total");
                    page.one(&name, help, "counter", value as f64 / 1e6);
                }
                None => page.one(&format!("{}_total", name_of(name)), help, "counter", value),
            }
        }
        self.partition_decisions(&mut page);
        for (name, help, value) in self.gauges() {
            page.one(&name_of(name), help, "gauge", value);
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

/// The name of a number of [`Statistics`]: the unit is its end.
fn name_of(field: &str) -> String {
    match field.split_once("bytes_") {
        Some((before, after)) if !after.is_empty() => format!("tamis_{before}{after}_bytes"),
        _ => format!("tamis_{field}"),
    }
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
