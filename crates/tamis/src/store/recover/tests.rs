//! The cost of an open, counted in operations on files and in steps.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use tamis_vfs::{MemVfs, OperationKind, RecordVfs};

use super::*;
use crate::{
    observe::steps::{self, Step},
    options::{KeyspaceOptions, Layout},
    version::{
        edit::{Change, RunPlace, VersionEdit},
        test_support::{add, summary},
    },
};

const FOLDER: &str = "/db";
const FILE_BYTES: u64 = 7;
const RUNS: u64 = 4;
const KINDS: [OperationKind; 12] = [
    OperationKind::Create,
    OperationKind::Open,
    OperationKind::Read,
    OperationKind::Append,
    OperationKind::Sync,
    OperationKind::Truncate,
    OperationKind::Rename,
    OperationKind::HardLink,
    OperationKind::Remove,
    OperationKind::List,
    OperationKind::Exists,
    OperationKind::SyncDir,
];

/// The lower bound of partition `index`; keys of its tables follow it.
fn lower(index: u64) -> String {
    if index == 0 { String::new() } else { format!("{index:06}") }
}

/// Writes a store of partitions with [`RUNS`] tables each, of which only the length is right: an open reads none.
fn create_store(vfs: &dyn Vfs, partition_count: u64) {
    let folder = Path::new(FOLDER);
    vfs.create_dir_all(folder).unwrap();
    let set = VersionSet::create(&Folder::open(vfs, folder).unwrap(), &[], (77, 88)).unwrap();
    let options = KeyspaceOptions::default().layout(Layout::partitioned());
    let mut edit = VersionEdit::default();
    edit.push(Change::CreateKeyspace { keyspace: 1, name: DEFAULT_KEYSPACE.to_owned(), options });
    for index in 0..partition_count {
        let (partition, lower) = (index + 1, lower(index).into_bytes());
        edit.push(Change::AddPartition { keyspace: 1, partition, lower, flushed_sequence: RUNS });
        for age in 1..=RUNS {
            let number = set.new_file_number();
            let file = vfs.create(&FileName::Table(number).path(folder)).unwrap();
            file.append(&[0; FILE_BYTES as usize]).unwrap();
            let place = RunPlace { keyspace: 1, partition, level: 0, run_age: age };
            let (first, last) = (format!("{index:06}a"), format!("{index:06}z"));
            edit.push(add(place, summary(number, (&first, &last), FILE_BYTES, (age, age))));
        }
    }
    set.apply(edit, |_| {}).unwrap();
}

/// The operations of an open of a store of so many partitions that was opened before, by kind; and the steps of its checks and searches.
fn cost_of_open(partition_count: u64) -> (Vec<(OperationKind, u64)>, usize) {
    let record = RecordVfs::new(Arc::new(MemVfs::new()));
    create_store(&record, partition_count);
    let runtime = Runtime::deterministic(7);
    let mut steps = 0;
    for _ in 0..2 {
        record.reset();
        let _ = (steps::take(Step::Check), steps::take(Step::FoundPartition));
        let options = Options::default();
        let (folder, _lock) = open_folder(&record, Path::new(FOLDER), &options).unwrap();
        let recovered = recover(&folder, &options, &runtime, &Arc::default()).unwrap();
        steps = steps::take(Step::Check) + steps::take(Step::FoundPartition);
        assert_eq!(
            recovered.keyspaces.values().next().unwrap().read_state.load().version.partitions.len() as u64,
            partition_count
        );
    }
    (KINDS.into_iter().map(|kind| (kind, record.tally(kind).count)).collect(), steps)
}

#[test]
fn an_open_lists_the_folder_once_and_touches_no_table_however_many_there_are() {
    let (few, few_steps) = cost_of_open(10);
    let (many, many_steps) = cost_of_open(1_000);
    assert_eq!(few, many, "the operations do not depend on the number of partitions");
    let count = |kind| many.iter().find(|(other, _)| *other == kind).map_or(0, |(_, count)| *count);
    // And it looks for readers, whose folder does not exist.
    assert_eq!(count(OperationKind::List), 2, "{many:?}");
    assert!(count(OperationKind::Sync) <= 3 && count(OperationKind::SyncDir) <= 3, "{many:?}");
    let total: u64 = many.iter().map(|(_, count)| count).sum();
    assert!(total < 40, "{many:?}");
    assert!(many_steps <= 20 * 1_000, "{few_steps} steps for 10 partitions, {many_steps} for 1,000");
}
