//! Shared by tests of versions and compactions: tables without files, and short ways to build catalogs.

use std::sync::Arc;

use super::{
    catalog::Catalog,
    counters::Counters,
    edit::{Change, RunPlace, VersionEdit},
    handle::{ObsoleteFiles, Table},
};
use crate::{options::KeyspaceOptions, table::properties::TableSummary};

/// A summary of a table with the keys `smallest..=largest`, `file_bytes` bytes and these sequence numbers.
pub(crate) fn summary(
    number: u64,
    keys: (&str, &str),
    file_bytes: u64,
    (smallest_sequence, largest_sequence): (u64, u64),
) -> TableSummary {
    TableSummary {
        number,
        file_bytes,
        checksum: number << 40 | file_bytes,
        entry_count: (file_bytes / 100).max(2),
        block_count: file_bytes.div_ceil(4096).min((file_bytes / 100).max(2)),
        key_bytes: 16,
        value_bytes: 64,
        smallest_sequence,
        largest_sequence,
        smallest_key: keys.0.as_bytes().to_vec(),
        largest_key: keys.1.as_bytes().to_vec(),
        ..TableSummary::default()
    }
}

pub(crate) fn table(number: u64, keys: (&str, &str), file_bytes: u64, sequences: (u64, u64)) -> Arc<Table> {
    Table::new(summary(number, keys, file_bytes, sequences), None, &Arc::default())
}

/// The place of a run in keyspace 1, partition 1.
pub(crate) fn place(level: u8, run_age: u64) -> RunPlace {
    RunPlace { keyspace: 1, partition: 1, level, run_age }
}

pub(crate) fn add(place: RunPlace, summary: TableSummary) -> Change {
    Change::AddTable { place, summary, filter_file: None, is_ingested: false }
}

/// The edit that creates a database with keyspace 1 ("default") and partition 1.
pub(crate) fn first_edit(options: KeyspaceOptions) -> VersionEdit {
    VersionEdit {
        changes: vec![
            Change::SetDatabase { id: 77, seed: 88 },
            Change::CreateKeyspace { keyspace: 1, name: "default".to_owned(), options },
            Change::AddPartition { keyspace: 1, partition: 1, lower: Vec::new(), flushed_sequence: 0 },
            Change::AdvanceCounters(Counters {
                next_file_number: 1,
                next_keyspace_id: 2,
                next_partition_id: 2,
                ..Counters::default()
            }),
        ],
    }
}

/// The catalog after the first edit and then `changes`; panics if they do not fit.
pub(crate) fn catalog_of(changes: Vec<Change>, obsolete_files: &Arc<ObsoleteFiles>) -> Catalog {
    let edit = first_edit(KeyspaceOptions::default());
    let catalog = Catalog::default().apply(&edit, obsolete_files).expect("the first edit fits").catalog;
    catalog.apply(&VersionEdit { changes }, obsolete_files).expect("the changes fit").catalog
}
