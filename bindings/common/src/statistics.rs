//! Statistics as JSON, for programs in any language.

use serde_json::{Map, Value, json};
use tamis::{
    DecisionStatistics, FilterAnswers, KeyspaceStatistics, LevelReads, LevelStatistics,
    QuerySampleStatistics, ReadStatistics, Statistics, TableFilterStatistics,
};

/// Converts the statistics of a database to a JSON object with the names of [`Statistics`].
pub fn to_json(statistics: &Statistics) -> Value {
    let numbers = statistics.counters().chain(statistics.gauges());
    let mut all: Map<String, Value> =
        numbers.map(|(name, _, value)| (name.to_owned(), Value::from(value))).collect();
    let mut add = |name: &str, value: Value| all.insert(name.to_owned(), value);
    add("write_amplification", statistics.write_amplification().into());
    add("oldest_snapshot_seconds", statistics.oldest_snapshot.as_secs_f64().into());
    add("oldest_replaced_state_seconds", statistics.oldest_replaced_state.as_secs_f64().into());
    let decisions = statistics.partition_decisions.named();
    add(
        "partition_decisions",
        decisions.map(|(name, one)| (name.to_owned(), decision(&one))).into_iter().collect(),
    );
    let dropped = statistics.dropped_keyspaces.iter();
    add("dropped_keyspaces", dropped.map(|one| json!({"name": one.name, "bytes": one.bytes})).collect());
    let readers = statistics.readers.iter();
    add(
        "readers",
        readers
            .map(|one| {
                json!({
                    "process_id": one.process_id,
                    "age_seconds": one.age.as_secs_f64(),
                    "sequence": one.sequence,
                    "held_bytes": one.held_bytes,
                })
            })
            .collect(),
    );
    add("reads", statistics.reads.iter().map(level_reads).collect());
    add("keyspaces", statistics.keyspaces.iter().map(keyspace).collect());
    all.into()
}

/// The decisions of one kind about partitions.
fn decision(decisions: &DecisionStatistics) -> Value {
    json!({
        "count": decisions.count,
        "bytes_expected": decisions.bytes_expected,
        "bytes_written": decisions.bytes_written,
    })
}

/// The reads of one level.
fn level_reads(level: &LevelReads) -> Value {
    json!({
        "points": reads_of(&level.points),
        "ranges": reads_of(&level.ranges),
        "prefixes": reads_of(&level.prefixes),
        "seeks": reads_of(&level.seeks),
        "read_nanoseconds": level.read_nanoseconds,
    })
}

/// The reads of one kind of one level.
fn reads_of(kind: &ReadStatistics) -> Value {
    json!({
        "checked": kind.checked,
        "rejected": kind.rejected,
        "true_positives": kind.true_positives,
        "false_positives": kind.false_positives,
        "blocks_read": kind.blocks_read,
        "cache_hits": kind.cache_hits,
    })
}

fn keyspace(keyspace: &KeyspaceStatistics) -> Value {
    json!({
        "name": keyspace.name,
        "layout": keyspace.layout.to_string(),
        "memtable_bytes": keyspace.memtable_bytes,
        "pending_compaction_bytes": keyspace.pending_compaction_bytes,
        "expired_bytes": keyspace.expired_bytes,
        "immutable_memtable_count": keyspace.immutable_memtable_count,
        "levels": keyspace.levels.iter().map(level).collect::<Vec<_>>(),
        "partition_count": keyspace.partition_count,
        "views": {
            "count": keyspace.views.count,
            "open_count": keyspace.views.open_count,
            "run_count": keyspace.views.run_count,
            "entry_count": keyspace.views.entry_count,
            "bytes": keyspace.views.bytes,
        },
        "filters": keyspace.filters.iter().map(|of_level| json!({
            "level": of_level.level,
            "filters": of_level.filters,
            "table_count": of_level.table_count,
            "entry_count": of_level.entry_count,
            "bytes": of_level.bytes,
        })).collect::<Vec<_>>(),
        "sample": {
            "points": sample(&keyspace.sample.points),
            "ranges": sample(&keyspace.sample.ranges),
            "prefixes": sample(&keyspace.sample.prefixes),
            "forward_seeks": sample(&keyspace.sample.forward_seeks),
            "backward_seeks": sample(&keyspace.sample.backward_seeks),
            "too_long": keyspace.sample.too_long,
        },
    })
}

/// Converts the filters of the tables of a keyspace to a JSON array.
pub fn table_filters(tables: &[TableFilterStatistics]) -> Value {
    let of_table = |table: &TableFilterStatistics| {
        json!({
            "level": table.level,
            "table": table.table_number,
            "designs": table.designs,
            "points": answers(&table.points),
            "ranges": answers(&table.ranges),
            "seeks": answers(&table.seeks),
        })
    };
    tables.iter().map(of_table).collect()
}

/// The answers of filters to one kind of queries.
fn answers(kind: &FilterAnswers) -> Value {
    json!({"checked": kind.checked, "rejected": kind.rejected, "true_positives": kind.true_positives, "false_positives": kind.false_positives})
}

/// The sampled queries of one kind.
fn sample(kind: &QuerySampleStatistics) -> Value {
    json!({
        "seen": kind.seen,
        "kept": kind.kept,
        "interval": kind.interval,
        "tables_rejected": kind.tables_rejected,
        "tables_true_positive": kind.tables_true_positive,
        "tables_false_positive": kind.tables_false_positive,
    })
}

fn level(level: &LevelStatistics) -> Value {
    json!({
        "run_count": level.run_count,
        "table_count": level.table_count,
        "bytes": level.bytes,
        "entry_count": level.entry_count,
        "tombstone_count": level.tombstone_count,
        "range_tombstone_count": level.range_tombstone_count,
    })
}

#[cfg(test)]
mod tests;
