//! Events of a database as JSON.

use serde_json::{Value, json};
use tamis::{CompactionReason, Event, PartitionChange};

/// An event: its `kind`, and the fields of [`Event`].
pub fn to_json(event: &Event) -> Value {
    match event {
        Event::BackPressure { microseconds_per_mib } => {
            json!({ "kind": "back_pressure", "microseconds_per_mib": microseconds_per_mib })
        }
        Event::WalTruncated { file, offset, bytes } => {
            json!({ "kind": "wal_truncated", "file": path(file), "offset": offset, "bytes": bytes })
        }
        Event::FilterCorrupt { file, reason } => failed("filter_corrupt", file, reason),
        Event::FilterBuildFailed { file, reason } => failed("filter_build_failed", file, reason),
        Event::ViewFailed { file, reason } => failed("view_failed", file, reason),
        Event::SampleIgnored { file, reason } => failed("sample_ignored", file, reason),
        Event::FiltersReplaced { keyspace, table, before, after, lost_microseconds, price_microseconds } => {
            json!({
                "kind": "filters_replaced",
                "keyspace": keyspace,
                "table": table,
                "before": before,
                "after": after,
                "lost_microseconds": lost_microseconds,
                "price_microseconds": price_microseconds,
            })
        }
        Event::CacheTooSmall { file, bytes } => {
            json!({ "kind": "cache_too_small", "file": path(file), "bytes": bytes })
        }
        Event::ReadsPaidForMerge { keyspace, lost_microseconds, price_microseconds } => json!({
            "kind": "reads_paid_for_merge",
            "keyspace": keyspace,
            "lost_microseconds": lost_microseconds,
            "price_microseconds": price_microseconds,
        }),
        Event::JobFailed { job, error } => json!({ "kind": "job_failed", "job": job, "error": error }),
        other => job_to_json(other),
    }
}

/// The events of flushes and compactions.
fn job_to_json(event: &Event) -> Value {
    match event {
        Event::Flushed { keyspace, bytes_expected, bytes } => json!({
            "kind": "flushed",
            "keyspace": keyspace,
            "bytes_expected": bytes_expected,
            "bytes": bytes,
        }),
        Event::EntriesRetained { keyspace, partition_count, entry_count, bytes, bytes_saved_expected } => {
            json!({
                "kind": "entries_retained",
                "keyspace": keyspace,
                "partition_count": partition_count,
                "entry_count": entry_count,
                "bytes": bytes,
                "bytes_saved_expected": bytes_saved_expected,
            })
        }
        Event::Compacted {
            keyspace,
            reason,
            level,
            output_level,
            bytes_expected,
            bytes_read,
            bytes_written,
        } => json!({
            "kind": "compacted",
            "keyspace": keyspace,
            "reason": reason_name(*reason),
            "level": level,
            "output_level": output_level,
            "bytes_expected": bytes_expected,
            "bytes_read": bytes_read,
            "bytes_written": bytes_written,
        }),
        Event::PartitionsChanged {
            keyspace,
            change,
            before,
            after,
            bytes_expected,
            bytes_read,
            bytes_written,
        } => json!({
            "kind": "partitions_changed",
            "keyspace": keyspace,
            "change": change_name(*change),
            "before": before,
            "after": after,
            "bytes_expected": bytes_expected,
            "bytes_read": bytes_read,
            "bytes_written": bytes_written,
        }),
        other => view_to_json(other),
    }
}

/// The event of a build of a sorted view.
fn view_to_json(event: &Event) -> Value {
    match event {
        Event::ViewBuilt {
            keyspace,
            file,
            run_count,
            entry_count,
            bytes,
            microseconds,
            is_rebuilt,
            lost_microseconds,
            price_microseconds,
        } => json!({
            "kind": "view_built",
            "keyspace": keyspace,
            "file": path(file),
            "run_count": run_count,
            "entry_count": entry_count,
            "bytes": bytes,
            "microseconds": microseconds,
            "is_rebuilt": is_rebuilt,
            "lost_microseconds": lost_microseconds,
            "price_microseconds": price_microseconds,
        }),
        other => json!({ "kind": "other", "text": format!("{other:?}") }),
    }
}

const fn reason_name(reason: CompactionReason) -> &'static str {
    match reason {
        CompactionReason::Size => "size",
        CompactionReason::Garbage => "garbage",
        CompactionReason::Request => "request",
        CompactionReason::Reads => "reads",
        _ => "other",
    }
}

const fn change_name(change: PartitionChange) -> &'static str {
    match change {
        PartitionChange::Split => "split",
        PartitionChange::Divide => "divide",
        PartitionChange::Unite => "unite",
        _ => "other",
    }
}

fn path(file: &std::path::Path) -> String {
    file.display().to_string()
}

fn failed(kind: &str, file: &std::path::Path, reason: &str) -> Value {
    json!({ "kind": kind, "file": path(file), "reason": reason })
}
