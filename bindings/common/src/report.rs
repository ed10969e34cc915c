//! Reports of maintenance calls as JSON.

use std::path::PathBuf;

use serde_json::{Value, json};
use tamis::{
    CheckpointReport, Fault, IngestReport, OpenReport, RepairReport, TableFile, VerifyReport, WalTruncation,
};

/// The report of an open.
pub fn open(report: &OpenReport) -> Value {
    json!({
        "is_new": report.is_new,
        "log_bytes": report.log_bytes,
        "replayed_records": report.replayed_records,
        "replayed_entries": report.replayed_entries,
        "manifest_truncated_bytes": report.manifest_truncated_bytes,
        "wal_truncations": report.wal_truncations.iter().map(torn_tail).collect::<Vec<_>>(),
        "quarantined_files": report.quarantined_files,
        "foreign_files": report.foreign_files,
    })
}

/// The report of a checkpoint.
pub fn checkpoint(report: &CheckpointReport) -> Value {
    json!({
        "sequence": report.sequence,
        "linked_file_count": report.linked_file_count,
        "copied_file_count": report.copied_file_count,
        "copied_bytes": report.copied_bytes,
    })
}

/// The report of an ingestion.
pub fn ingest(report: &IngestReport) -> Value {
    let shown = |paths: &[PathBuf]| paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>();
    json!({
        "table_count": report.table_count,
        "entry_count": report.entry_count,
        "bytes": report.bytes,
        "sequence": report.sequence,
        "kept": shown(&report.kept),
        "linked": shown(&report.linked),
    })
}

/// The report of a finished table.
pub fn table(file: &TableFile) -> Value {
    json!({
        "path": file.path.display().to_string(),
        "bytes": file.bytes,
        "entry_count": file.entry_count,
        "tombstone_count": file.tombstone_count,
        "range_tombstone_count": file.range_tombstone_count,
        "failed_filters": file.failed_filters,
    })
}

/// The report of a verification.
pub fn verify(report: &VerifyReport) -> Value {
    json!({
        "is_sound": report.is_sound(),
        "file_count": report.file_count,
        "bytes": report.bytes,
        "entry_count": report.entry_count,
        "faults": report.faults.iter().map(fault).collect::<Vec<_>>(),
        "torn_tails": report.torn_tails.iter().map(torn_tail).collect::<Vec<_>>(),
    })
}

fn torn_tail(torn: &WalTruncation) -> Value {
    json!({ "file": torn.file.display().to_string(), "offset": torn.offset, "bytes": torn.bytes })
}

fn fault(fault: &Fault) -> Value {
    json!({ "file": fault.file.display().to_string(), "offset": fault.offset, "what": fault.what })
}

/// The report of a repair, with the key ranges that may have lost writes.
pub fn repair(report: &RepairReport) -> Value {
    json!({
        "was_sound": report.was_sound(),
        "faults": report.faults.iter().map(fault).collect::<Vec<_>>(),
        "default_options": report.default_options,
        "table_count": report.table_count,
        "lost_ranges": report.lost_ranges.iter().map(|range| json!({
            "keyspace": range.keyspace,
            "lower": range.lower.escape_ascii().to_string(),
            "upper": range.upper.as_ref().map(|upper| upper.escape_ascii().to_string()),
            "may_lose_deletes": range.may_lose_deletes,
            "why": range.why,
        })).collect::<Vec<_>>(),
        "quarantined": report.quarantined.iter().map(|found| json!({
            "file": found.file.display().to_string(),
            "why": found.why,
        })).collect::<Vec<_>>(),
    })
}
