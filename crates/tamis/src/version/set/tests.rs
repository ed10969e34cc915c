#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::io::ErrorKind as IoErrorKind;

use tamis_vfs::{FaultVfs, MemVfs, OperationKind, Rule, Vfs};

use super::*;
use crate::{
    options::KeyspaceOptions,
    version::{
        folder::{FolderKind, inspect},
        test_support::{add, place, summary},
    },
};

const FOLDER: &str = "/db";

fn folder_path() -> &'static Path {
    Path::new(FOLDER)
}

fn memory() -> MemVfs {
    let vfs = MemVfs::new();
    vfs.create_dir_all(folder_path()).unwrap();
    vfs
}

fn folder_in(vfs: &dyn Vfs) -> Result<Folder> {
    Folder::open(vfs, folder_path()).map_err(|error| Error::io("open", folder_path(), error))
}

fn write_file(vfs: &dyn Vfs, name: &str, length: usize) {
    let file = vfs.create(&folder_path().join(name)).unwrap();
    file.append(&vec![7; length]).unwrap();
    file.sync().unwrap();
    vfs.sync_dir(folder_path()).unwrap();
}

fn names(vfs: &dyn Vfs) -> Vec<String> {
    vfs.list(folder_path()).unwrap().into_iter().map(|entry| entry.name).collect()
}

fn inspected(vfs: &dyn Vfs) -> Result<FolderKind> {
    inspect(&folder::list(&folder_in(vfs)?)?, folder_path())
}

fn opened(vfs: &dyn Vfs, mode: Mode) -> Result<(VersionSet, Option<TornTail>)> {
    let folder = folder_in(vfs)?;
    VersionSet::open(&folder, &folder::list(&folder)?, mode)
}

fn sweep(set: &VersionSet) -> Result<Leftovers> {
    set.sweep_orphans(&folder::list(&set.folder)?, &[])
}

fn edit(changes: Vec<Change>) -> VersionEdit {
    VersionEdit { changes }
}

fn keyspace_edit() -> VersionEdit {
    edit(vec![
        Change::CreateKeyspace {
            keyspace: 1,
            name: "default".to_owned(),
            options: KeyspaceOptions::default(),
        },
        Change::AddPartition { keyspace: 1, partition: 1, lower: Vec::new(), flushed_sequence: 0 },
    ])
}

/// Creates a table file of 10 bytes and returns the edit that adds it to L0.
fn flush_edit(set: &VersionSet, vfs: &dyn Vfs, round: u64) -> Result<VersionEdit> {
    let number = set.new_file_number();
    let path = FileName::Table(number).path(folder_path());
    let file = vfs.create(&path).map_err(|error| Error::io("create", &path, error))?;
    file.append(&[1; 10]).map_err(|error| Error::io("append to", &path, error))?;
    file.sync().map_err(|error| Error::io("sync", &path, error))?;
    vfs.sync_dir(folder_path()).map_err(|error| Error::io("sync", &path, error))?;
    Ok(edit(vec![
        add(place(0, round), summary(number, ("a", "z"), 10, (round, round))),
        Change::SetFlushedSequence { keyspace: 1, partition: 1, sequence: round },
    ]))
}

fn flushed(set: &VersionSet) -> u64 {
    set.catalog().keyspaces.get(&1).map_or(0, |version| version.flushed_sequence())
}

fn created(vfs: &dyn Vfs) -> Result<VersionSet> {
    let folder = folder_in(vfs)?;
    let set = VersionSet::create(&folder, &folder::list(&folder)?, (77, 88))?;
    set.apply(keyspace_edit(), |_| {})?;
    Ok(set)
}

#[test]
fn applied_edits_exist_after_reopen() {
    let vfs: Arc<dyn Vfs> = Arc::new(memory());
    assert_eq!(inspected(&*vfs).unwrap(), FolderKind::Vacant);
    let set = created(&*vfs).unwrap();
    for round in 1..=3 {
        let flush = flush_edit(&set, &*vfs, round).unwrap();
        let mut installed = 0;
        set.apply(flush, |new| installed = new.len()).unwrap();
        assert_eq!(installed, 1);
    }
    let next = set.new_file_number();
    drop(set);
    assert_eq!(inspected(&*vfs).unwrap(), FolderKind::Database);
    for _ in 0..2 {
        let (set, torn) = opened(&*vfs, Mode::ReadWrite).unwrap();
        assert_eq!(torn, None);
        assert_eq!((set.database(), flushed(&set)), ((77, 88), 3));
        assert_eq!(set.catalog().counters.last_sequence, 3);
        assert!(set.new_file_number() > next, "an allocated number is never allocated again");
        assert_eq!(set.new_keyspace_id(), 2);
        assert_eq!(set.catalog().keyspace_named("default").unwrap().tables().count(), 3);
    }
}

/// The ids of the runs of keyspace 1, newest run first.
fn run_ids(set: &VersionSet) -> Vec<u64> {
    let catalog = set.catalog();
    let partitions = &catalog.keyspaces.get(&1).unwrap().partitions;
    partitions.iter().flat_map(|partition| partition.runs()).map(|(_, run)| run.id()).collect()
}

#[test]
fn run_ids_are_kept_by_opens_and_never_used_again() {
    let vfs: Arc<dyn Vfs> = Arc::new(memory());
    let set = created(&*vfs).unwrap();
    for round in 1..=3 {
        set.apply(flush_edit(&set, &*vfs, round).unwrap(), |_| {}).unwrap();
    }
    let before = run_ids(&set);
    let newest = before.first().copied().unwrap();
    assert!(before.is_sorted_by(|left, right| left > right), "{before:?}");
    let version = Arc::clone(set.catalog().keyspaces.get(&1).unwrap());
    let table = version.tables().next().unwrap().number();
    set.apply(edit(vec![Change::RemoveTable { place: place(0, 3), number: table }]), |_| {}).unwrap();
    drop(set);
    // The second open reads a manifest without the removed run.
    for _ in 0..2 {
        let (set, _) = opened(&*vfs, Mode::ReadWrite).unwrap();
        assert_eq!(run_ids(&set), before.get(1..).unwrap());
        assert!(set.catalog().counters.next_run_id > newest);
    }
    let (set, _) = opened(&*vfs, Mode::ReadWrite).unwrap();
    set.apply(flush_edit(&set, &*vfs, 4).unwrap(), |_| {}).unwrap();
    assert!(run_ids(&set).first().is_some_and(|id| *id > newest), "{:?}", run_ids(&set));
}

#[test]
fn a_read_only_open_writes_nothing() {
    let memory = memory();
    let vfs: Arc<dyn Vfs> = Arc::new(memory.clone());
    drop(created(&*vfs).unwrap());
    let before = names(&*vfs);
    let fault = FaultVfs::new(Arc::clone(&vfs));
    let writes = [OperationKind::Create, OperationKind::Append, OperationKind::Rename, OperationKind::Remove];
    fault.add_rule(Rule::error(IoErrorKind::PermissionDenied).on(&writes).forever());
    let (set, _) = opened(&fault, Mode::ReadOnly).unwrap();
    assert!(matches!(set.apply(keyspace_edit(), |_| {}), Err(Error::ReadOnly { .. })));
    sweep(&set).unwrap();
    assert_eq!(names(&*vfs), before);
}

#[test]
fn files_are_deleted_after_their_last_reader_and_after_a_rename() {
    let vfs: Arc<dyn Vfs> = Arc::new(memory());
    let set = created(&*vfs).unwrap();
    let flush = flush_edit(&set, &*vfs, 1).unwrap();
    set.apply(flush, |_| {}).unwrap();
    let reader = set.catalog();
    let table = reader.keyspaces.get(&1).unwrap().tables().next().unwrap().number();
    let name = FileName::Table(table).name();
    set.apply(edit(vec![Change::RemoveTable { place: place(0, 1), number: table }]), |_| {}).unwrap();
    assert_eq!(set.delete_obsolete_files().unwrap(), []);
    assert!(names(&*vfs).contains(&name));
    drop(reader);
    assert_eq!(set.delete_obsolete_files().unwrap(), [FileName::Table(table)]);
    assert!(!names(&*vfs).iter().any(|other| other.starts_with(&name)));
}

#[test]
fn orphans_are_deleted_at_open_and_foreign_files_stay() {
    let vfs: Arc<dyn Vfs> = Arc::new(memory());
    let set = created(&*vfs).unwrap();
    let flush = flush_edit(&set, &*vfs, 1).unwrap();
    set.apply(flush, |_| {}).unwrap();
    let raise = Change::AdvanceCounters(Counters { oldest_log: 50, ..Counters::default() });
    set.apply(edit(vec![raise]), |_| {}).unwrap();
    drop(set);
    for name in ["000060.table", "000061.filter", "000062.tmp", "000010.table.obsolete", "000049.log"] {
        write_file(&*vfs, name, 3);
    }
    for name in ["000050.log", "notes.txt", "000060.tables", "60.table"] {
        write_file(&*vfs, name, 3);
    }
    let (set, _) = opened(&*vfs, Mode::ReadWrite).unwrap();
    assert!(set.new_file_number() > 62, "numbers of orphans are not reused");
    let found = sweep(&set).unwrap();
    assert_eq!(found.foreign, ["000060.tables", "60.table", "notes.txt"]);
    assert_eq!(found.obsolete, ["000010.table.obsolete"]);
    assert_eq!(found.orphans.len(), 5, "three files, the old log, the old manifest: {found:?}");
    let left = names(&*vfs);
    assert_eq!(left.len(), 7, "{left:?}");
    assert_eq!(sweep(&set).unwrap().orphans, []);
}

#[test]
fn a_missing_or_truncated_table_is_reported_at_open() {
    for length in [None, Some(9)] {
        let vfs: Arc<dyn Vfs> = Arc::new(memory());
        let set = created(&*vfs).unwrap();
        let flush = flush_edit(&set, &*vfs, 1).unwrap();
        set.apply(flush, |_| {}).unwrap();
        let number = set.catalog().keyspaces.get(&1).unwrap().tables().next().unwrap().number();
        drop(set);
        let name = FileName::Table(number).name();
        vfs.remove(&folder_path().join(&name)).unwrap();
        if let Some(length) = length {
            write_file(&*vfs, &name, length);
        }
        let error = opened(&*vfs, Mode::ReadWrite).unwrap_err();
        assert!(error.to_string().contains(&name), "{error}");
    }
}

#[test]
fn foreign_folders_and_databases_without_current_are_refused() {
    let vfs: Arc<dyn Vfs> = Arc::new(memory());
    drop(created(&*vfs).unwrap());
    vfs.remove(&FileName::Current.path(folder_path())).unwrap();
    assert_eq!(inspected(&*vfs).unwrap(), FolderKind::Vacant, "as after an interrupted creation");
    write_file(&*vfs, "000009.log", 3);
    assert!(matches!(inspected(&*vfs), Err(Error::MissingFile { .. })));
    let other = memory();
    write_file(&other, "photo.jpg", 3);
    assert!(matches!(inspected(&other), Err(Error::NotADatabase { .. })));
}

#[test]
fn an_edit_of_a_dropped_keyspace_is_refused() {
    let vfs: Arc<dyn Vfs> = Arc::new(memory());
    let set = created(&*vfs).unwrap();
    set.apply(edit(vec![Change::DropKeyspace { keyspace: 1 }]), |_| {}).unwrap();
    let late = flush_edit(&set, &*vfs, 1).unwrap();
    assert!(matches!(set.apply(late, |_| {}), Err(Error::KeyspaceDropped)));
    let broken = edit(vec![Change::DropKeyspace { keyspace: 1 }]);
    assert!(matches!(set.apply(broken, |_| {}), Err(Error::KeyspaceDropped)));
    assert!(set.background_error().is_none());
}

#[test]
fn a_failed_sync_is_fatal_and_a_failed_append_is_not() {
    let memory = memory();
    let fault = Arc::new(FaultVfs::new(Arc::new(memory.clone())));
    let vfs: Arc<dyn Vfs> = fault.clone();
    let set = created(&*vfs).unwrap();
    let rule = fault.add_rule(Rule::short_append(5).on(&[OperationKind::Append]).path(".manifest"));
    let flush = flush_edit(&set, &*vfs, 1).unwrap();
    assert!(set.apply(flush.clone(), |_| panic!("nothing was installed")).is_err());
    fault.remove_rule(rule);
    assert_eq!(flushed(&set), 0);
    assert!(set.background_error().is_none());
    set.apply(flush, |_| {}).unwrap();
    assert_eq!(flushed(&set), 1);
    let (again, torn) = opened(&memory, Mode::ReadOnly).unwrap();
    assert_eq!((flushed(&again), torn), (1, None), "the edit went to another manifest");

    fault.add_rule(Rule::error(IoErrorKind::StorageFull).on(&[OperationKind::Sync]).path(".manifest"));
    let flush = flush_edit(&set, &*vfs, 2).unwrap();
    assert!(matches!(set.apply(flush.clone(), |_| {}), Err(Error::DiskFull { .. })));
    assert!(matches!(set.apply(flush, |_| {}), Err(Error::WritesRefused { .. })));
    assert!(set.background_error().is_some());
    assert_eq!(flushed(&set), 1, "reads continue with the last version");
}

/// After a failed sync it is unknown whether the edit is on disk, so the tables that it names must not be deleted. A failed
/// append may have written its whole record, but that is truncated: no reader finds it, and its tables are deleted with the
/// next manifest.
#[test]
fn tables_of_a_failed_edit_stay_while_the_manifest_may_name_them() {
    for kind in [OperationKind::Append, OperationKind::Sync] {
        let memory = memory();
        let fault = Arc::new(FaultVfs::new(Arc::new(memory.clone())));
        let vfs: Arc<dyn Vfs> = fault.clone();
        let set = created(&*vfs).unwrap();
        let flush = flush_edit(&set, &*vfs, 1).unwrap();
        let Some(Change::AddTable { summary, .. }) = flush.changes.first().cloned() else {
            panic!("a table")
        };
        fault.add_rule(Rule::error_after(IoErrorKind::StorageFull).on(&[kind]).path(".manifest"));
        fault.add_rule(Rule::error(IoErrorKind::StorageFull).on(&[OperationKind::Create]).forever());
        assert!(set.apply(flush, |_| {}).is_err());
        set.obsolete_files().extend([FileName::Table(summary.number)]);
        let is_certain = kind == OperationKind::Append;
        // Another manifest can't be created yet.
        assert_eq!(set.delete_obsolete_files().ok(), (!is_certain).then(Vec::new));
        assert!(vfs.exists(&FileName::Table(summary.number).path(folder_path())).unwrap());
        let (other, _) = opened(&memory, Mode::ReadOnly).unwrap();
        assert_eq!(flushed(&other), u64::from(!is_certain), "as another process finds it");
        fault.clear_rules();
        let swept = set.delete_obsolete_files().unwrap();
        assert_eq!(swept.contains(&FileName::Table(summary.number)), is_certain);
        drop(set);
        let (set, _) = opened(&memory, Mode::ReadWrite).unwrap();
        assert_eq!(flushed(&set), u64::from(!is_certain));
    }
}

#[test]
fn a_long_manifest_is_replaced_by_a_short_one() {
    let vfs: Arc<dyn Vfs> = Arc::new(memory());
    let set = created(&*vfs).unwrap();
    let options = KeyspaceOptions::default().filters(crate::Filters::per_level(vec![
        vec![
            crate::TableFilter::bits(9.5)
        ];
        20_000
    ]));
    let mut manifests = std::collections::BTreeSet::new();
    for _ in 0..80 {
        set.apply(edit(vec![Change::SetOptions { keyspace: 1, options: options.clone() }]), |_| {}).unwrap();
        set.delete_obsolete_files().unwrap();
        let present: Vec<_> = names(&*vfs).into_iter().filter(|name| name.ends_with(".manifest")).collect();
        assert_eq!(present.len(), 1);
        manifests.extend(present);
    }
    assert!(manifests.len() > 1);
    drop(set);
    let (set, _) = opened(&*vfs, Mode::ReadWrite).unwrap();
    assert_eq!(set.catalog().keyspaces.get(&1).unwrap().options.filters, options.filters);
}

/// Rounds of flush edits and reopening. Sets the last acknowledged round, 0 if not even the creation was acknowledged.
fn scenario(vfs: &dyn Vfs, acknowledged: &mut u64) -> Result<()> {
    let mut set = created(vfs)?;
    for round in 1..=4 {
        let flush = flush_edit(&set, vfs, round)?;
        set.apply(flush, |_| {})?;
        *acknowledged = round;
        if round == 2 {
            drop(set);
            set = opened(vfs, Mode::ReadWrite)?.0;
            sweep(&set)?;
        }
        if round == 3 {
            let number = set.catalog().keyspaces.get(&1).unwrap().tables().last().unwrap().number();
            set.apply(edit(vec![Change::RemoveTable { place: place(0, 1), number }]), |_| {})?;
            set.delete_obsolete_files()?;
        }
    }
    Ok(())
}

#[test]
fn a_crash_at_any_operation_loses_no_acknowledged_edit() {
    let count = {
        let fault = FaultVfs::new(Arc::new(memory()));
        scenario(&fault, &mut 0).unwrap();
        fault.operation_count()
    };
    assert!(count > 50);
    for nth in 1..=count {
        for seed in 0..6 {
            let memory = memory();
            let fault = FaultVfs::new(Arc::new(memory.clone()));
            fault.add_rule(Rule::error(IoErrorKind::Other).nth(nth).forever());
            let mut acknowledged = 0;
            let _ = scenario(&fault, &mut acknowledged);
            let after = memory.crash_clone(seed);
            if inspected(&after).unwrap() == FolderKind::Vacant {
                assert_eq!(acknowledged, 0, "operation {nth}, seed {seed}");
                created(&after).unwrap();
                continue;
            }
            let (set, _) = opened(&after, Mode::ReadWrite)
                .unwrap_or_else(|error| panic!("operation {nth}, seed {seed}: {error}"));
            let found = flushed(&set);
            assert!(
                (acknowledged..=acknowledged + 1).contains(&found),
                "operation {nth}, seed {seed}: {acknowledged} was acknowledged, {found} is there"
            );
            sweep(&set).unwrap();
            drop(set);
            opened(&after, Mode::ReadOnly).unwrap();
        }
    }
}

#[test]
fn a_single_fault_at_any_operation_leaves_a_database_that_opens() {
    let mut nth = 0;
    loop {
        nth += 1;
        let memory = memory();
        let fault = Arc::new(FaultVfs::new(Arc::new(memory.clone())));
        fault.add_rule(Rule::error_after(IoErrorKind::Other).nth(nth));
        let mut acknowledged = 0;
        let result = scenario(&*fault, &mut acknowledged);
        if result.is_ok() && fault.fault_count() == 0 {
            break;
        }
        let vfs: Arc<dyn Vfs> = Arc::new(memory);
        if inspected(&*vfs).unwrap() == FolderKind::Database {
            let (set, _) = opened(&*vfs, Mode::ReadWrite).unwrap();
            assert!(flushed(&set) >= acknowledged, "operation {nth}");
        } else {
            assert_eq!(acknowledged, 0, "operation {nth}");
        }
    }
    assert!(nth > 50);
}
