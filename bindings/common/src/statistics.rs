//! Statistics as JSON, for programs in any language.

use serde_json::{Value, json};
use tamis::{FilterStatistics, KeyspaceStatistics, LevelStatistics, Statistics};

/// Converts the statistics of a database to a JSON object with the names of [`Statistics`].
pub fn to_json(statistics: &Statistics) -> Value {
    json!({
        "blocks_read": statistics.blocks_read,
        "bytes_read": statistics.bytes_read,
        "cache_hits": statistics.cache_hits,
        "digests": statistics.digests,
        "point_reads": statistics.point_reads,
        "scans": statistics.scans,
        "writes": statistics.writes,
        "entries_written": statistics.entries_written,
        "user_bytes_written": statistics.user_bytes_written,
        "log_bytes_written": statistics.log_bytes_written,
        "flush_bytes_written": statistics.flush_bytes_written,
        "compaction_bytes_read": statistics.compaction_bytes_read,
        "compaction_bytes_written": statistics.compaction_bytes_written,
        "write_amplification": statistics.write_amplification(),
        "flushes": statistics.flushes,
        "compactions": statistics.compactions,
        "garbage_compactions": statistics.garbage_compactions,
        "dropped_tables": statistics.dropped_tables,
        "trivial_moves": statistics.trivial_moves,
        "jobs_failed": statistics.jobs_failed,
        "throttled_writes": statistics.throttled_writes,
        "throttled_microseconds": statistics.throttled_microseconds,
        "stopped_writes": statistics.stopped_writes,
        "stopped_microseconds": statistics.stopped_microseconds,
        "log_bytes": statistics.log_bytes,
        "cache_bytes": statistics.cache_bytes,
        "cache_pinned_bytes": statistics.cache_pinned_bytes,
        "filters": statistics.filters.iter().map(filter).collect::<Vec<_>>(),
        "keyspaces": statistics.keyspaces.iter().map(keyspace).collect::<Vec<_>>(),
    })
}

/// The filters of one level.
fn filter(level: &FilterStatistics) -> Value {
    json!({
        "checked": level.checked,
        "negative": level.negative,
        "true_positive": level.true_positive,
        "range_checked": level.range_checked,
        "range_negative": level.range_negative,
        "range_true_positive": level.range_true_positive,
        "range_false_positive": level.range_false_positive,
    })
}

fn keyspace(keyspace: &KeyspaceStatistics) -> Value {
    json!({
        "name": keyspace.name,
        "layout": keyspace.layout.to_string(),
        "memtable_bytes": keyspace.memtable_bytes,
        "pending_compaction_bytes": keyspace.pending_compaction_bytes,
        "levels": keyspace.levels.iter().map(level).collect::<Vec<_>>(),
        "filter_designs": keyspace.filter_designs.iter().map(|design| json!({
            "level": design.level,
            "table": design.table_number,
            "design": design.design,
        })).collect::<Vec<_>>(),
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
