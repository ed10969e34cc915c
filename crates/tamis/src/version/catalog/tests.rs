#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

use super::*;
use crate::{
    file_name::FileName,
    observe::steps::{self, Step},
    options::KeyspaceOptions,
    version::{
        level::LEVELED_RUN_AGE,
        test_support::{add, catalog_of, first_edit, place, summary},
    },
};

fn names(handles: &[Arc<FileHandle>]) -> Vec<FileName> {
    handles.iter().map(|handle| handle.name()).collect()
}

fn edit(changes: Vec<Change>) -> VersionEdit {
    VersionEdit { changes }
}

fn only_table(catalog: &Catalog) -> Arc<Table> {
    Arc::clone(catalog.keyspaces.get(&1).unwrap().tables().next().unwrap())
}

#[test]
fn a_moved_table_keeps_its_handle_and_its_file() {
    let obsolete_files = Arc::default();
    let table = summary(5, ("a", "c"), 100, (1, 9));
    let before = catalog_of(vec![add(place(0, 9), table.clone())], &obsolete_files);
    let moved = edit(vec![
        Change::RemoveTable { place: place(0, 9), number: 5 },
        add(place(6, LEVELED_RUN_AGE), table),
    ]);
    let applied = before.apply(&moved, &obsolete_files).unwrap();
    assert!(Arc::ptr_eq(&only_table(&before), &only_table(&applied.catalog)));
    assert!(applied.obsolete.is_empty());
    let partition = Arc::clone(applied.catalog.keyspaces.get(&1).unwrap().partitions.first().unwrap());
    assert!(partition.level(0).unwrap().is_empty());
    assert_eq!(partition.levels().len(), 7);
}

#[test]
fn removed_files_become_obsolete_and_the_old_catalog_is_unchanged() {
    let obsolete_files = Arc::default();
    let change = Change::AddTable {
        place: place(0, 9),
        summary: summary(5, ("a", "c"), 100, (1, 9)),
        filter_file: Some(6),
        is_ingested: true,
    };
    let before = catalog_of(vec![change], &obsolete_files);
    let removed =
        before.apply(&edit(vec![Change::RemoveTable { place: place(0, 9), number: 5 }]), &obsolete_files);
    let removed = removed.unwrap();
    assert_eq!(names(&removed.obsolete), [FileName::Table(5), FileName::Filter(6)]);
    assert_eq!(removed.changed, [1]);
    assert!(only_table(&before).is_ingested());
    assert_eq!(removed.catalog.keyspaces.get(&1).unwrap().tables().count(), 0);
    assert_eq!(only_table(&before).number(), 5);

    let other = Change::SetTableFilter { place: place(0, 9), number: 5, filter_file: Some(8) };
    let replaced = before.apply(&edit(vec![other]), &obsolete_files).unwrap();
    assert_eq!(names(&replaced.obsolete), [FileName::Filter(6)]);
    assert_eq!(only_table(&replaced.catalog).filter_file(), Some(8));
    assert!(only_table(&replaced.catalog).is_ingested());
    assert_eq!(
        only_table(&before).filter_file(),
        Some(6),
        "readers of the older version keep the older filter"
    );

    let dropped = before.apply(&edit(vec![Change::DropKeyspace { keyspace: 1 }]), &obsolete_files).unwrap();
    assert_eq!(names(&dropped.obsolete), [FileName::Table(5), FileName::Filter(6)]);
    assert!(dropped.catalog.keyspaces.is_empty());
}

#[test]
fn an_edit_that_does_not_fit_is_refused() {
    let obsolete_files = Arc::default();
    let table = summary(5, ("a", "c"), 100, (1, 9));
    let catalog = catalog_of(vec![add(place(0, 9), table)], &obsolete_files);
    let name = "default".to_owned();
    let options = KeyspaceOptions::default();
    let refused = [
        Change::RemoveTable { place: place(0, 9), number: 6 },
        Change::RemoveTable { place: place(1, 9), number: 5 },
        Change::DropKeyspace { keyspace: 2 },
        Change::CreateKeyspace { keyspace: 2, name, options },
        Change::AddPartition { keyspace: 1, partition: 1, lower: b"x".to_vec(), flushed_sequence: 0 },
        Change::AddPartition { keyspace: 1, partition: 2, lower: Vec::new(), flushed_sequence: 0 },
        Change::SetDatabase { id: 1, seed: 2 },
        Change::SetTableFilter { place: place(0, 9), number: 9, filter_file: None },
        add(place(16, 0), summary(9, ("a", "b"), 1, (1, 1))),
    ];
    for change in refused {
        assert!(catalog.apply(&edit(vec![change.clone()]), &obsolete_files).is_err(), "{change:?}");
    }
    let up = Change::SetFlushedSequence { keyspace: 1, partition: 1, sequence: 9 };
    let down = Change::SetFlushedSequence { keyspace: 1, partition: 1, sequence: 8 };
    assert!(catalog.apply(&edit(vec![up, down]), &obsolete_files).unwrap_err().contains("fell"));
}

#[test]
fn the_id_of_a_run_changes_with_its_tables_and_with_nothing_else() {
    let obsolete_files = Arc::default();
    let table = |number, keys| summary(number, keys, 100, (1, 9));
    let deepest = place(6, LEVELED_RUN_AGE);
    let before = catalog_of(
        vec![
            add(place(0, 9), table(5, ("a", "c"))),
            add(place(0, 8), table(6, ("d", "f"))),
            add(deepest, table(7, ("x", "z"))),
        ],
        &obsolete_files,
    );
    let ids = |catalog: &Catalog| -> Vec<u64> {
        let partition = catalog.keyspaces.get(&1).unwrap().partitions.first().unwrap();
        partition.runs().map(|(_, run)| run.id()).collect()
    };
    let [newer, older, bottom] = ids(&before)[..] else { panic!("three runs: {:?}", ids(&before)) };
    let apply = |changes| before.apply(&edit(changes), &obsolete_files).unwrap();

    let filter = Change::SetTableFilter { place: place(0, 9), number: 5, filter_file: Some(8) };
    let filtered = apply(vec![filter]);
    assert_eq!(ids(&filtered.catalog), [newer, older, bottom]);
    assert_eq!(filtered.run_ids, []);

    // A move empties one run and adds to another.
    let moved = apply(vec![
        Change::RemoveTable { place: place(0, 8), number: 6 },
        add(deepest, table(6, ("d", "f"))),
    ]);
    let [same, changed] = ids(&moved.catalog)[..] else { panic!("two runs") };
    assert_eq!(same, newer);
    assert!(changed > before.counters.next_run_id - 1, "{changed} was used before");
    assert_eq!(moved.run_ids, [Change::SetRunId { place: deepest, id: changed }]);
    assert_eq!(moved.check_invariants(), None);

    // An id that another run had before is refused.
    let reused =
        apply(vec![add(deepest, table(9, ("g", "h"))), Change::SetRunId { place: deepest, id: older }]);
    assert!(reused.check_invariants().unwrap().contains("run id"));
    assert!(reused.catalog.check_invariants().unwrap().contains("two runs"));
}

#[test]
fn counters_only_grow() {
    let obsolete_files = Arc::default();
    let raise = |next_file_number, last_sequence| {
        Change::AdvanceCounters(Counters { next_file_number, last_sequence, ..Counters::default() })
    };
    let catalog = catalog_of(vec![raise(9, 3), raise(4, 7)], &obsolete_files);
    assert_eq!((catalog.counters.next_file_number, catalog.counters.last_sequence), (9, 7));
    assert_eq!(catalog.counters.next_keyspace_id, 2);
}

#[test]
fn a_snapshot_creates_the_same_catalog_however_it_is_split() {
    let obsolete_files = Arc::default();
    let changes = super::super::edit::tests::every_change();
    let kept: Vec<_> =
        changes.into_iter().filter(|change| !matches!(change, Change::DropKeyspace { .. })).collect();
    let mut catalog = Catalog::default().apply(&edit(kept), &obsolete_files).unwrap().catalog;
    let more = vec![
        add(place(0, 20), summary(20, ("a", "c"), 100, (11, 20))),
        add(place(0, 10), summary(10, ("a", "c"), 100, (1, 10))),
        add(place(15, 0), summary(3, ("a", "c"), 100, (1, 1))),
        add(place(15, 0), summary(4, ("d", "f"), 100, (1, 1))),
        Change::SetView { keyspace: 1, partition: 1, view: Some((30, vec![9])) },
    ];
    catalog = catalog.apply(&edit(more), &obsolete_files).unwrap().catalog;
    let whole = catalog.snapshot(usize::MAX);
    assert_eq!(whole.len(), 1);
    for changes_max in [1, 2, 3, 100] {
        let edits = catalog.snapshot(changes_max);
        let mut again = Catalog::default();
        for edit in &edits {
            again = again.apply(edit, &obsolete_files).unwrap().catalog;
        }
        assert_eq!(again.snapshot(usize::MAX), whole);
        assert_eq!(again.check_invariants(), None);
    }
    assert!(first_edit(KeyspaceOptions::default()).changes.len() > 1);
}

/// A manifest of 10,000 partitions is read, and an edit of all of them is applied, in steps that grow with the partitions.
#[test]
fn many_partitions_are_found_in_linear_steps() {
    const COUNT: u64 = 10_000;
    let mut changes = Vec::new();
    for index in 0..COUNT {
        // Ids are not in the order of keys.
        let (partition, lower) = (index * 7919 % COUNT + 2, format!("{index:08}"));
        let lower_bound = if index == 0 { Vec::new() } else { lower.clone().into_bytes() };
        changes.push(Change::AddPartition {
            keyspace: 1,
            partition,
            lower: lower_bound,
            flushed_sequence: 0,
        });
        for age in 1..=3 {
            let place = RunPlace { keyspace: 1, partition, level: 0, run_age: age };
            changes.push(add(place, summary(index * 3 + age, (&lower, &lower), 1000, (age, age))));
        }
    }
    let obsolete_files = Arc::default();
    let mut first = first_edit(KeyspaceOptions::default());
    first.changes.retain(|change| !matches!(change, Change::AddPartition { .. }));
    first.changes.extend(changes);
    let catalog = Catalog::default().apply(&first, &obsolete_files).unwrap().catalog;
    let edits = catalog.snapshot(1000);
    steps::take(Step::FoundPartition);
    let mut replay = Replay::new(&obsolete_files);
    edits.iter().for_each(|edit| replay.apply(edit).unwrap());
    let read = replay.finish();
    assert_eq!(read.check_invariants(), None);
    let steps = steps::take(Step::FoundPartition);
    assert!(steps <= 8 * COUNT as usize, "{steps} steps to read the manifest");
    // As a flush into every partition.
    let partitions = &read.keyspaces.get(&1).unwrap().partitions;
    let flush = (0..).zip(partitions).map(|(index, partition)| {
        let place = RunPlace { keyspace: 1, partition: partition.id, level: 0, run_age: 9 };
        let key = format!("{index:08}");
        add(place, summary(3 * COUNT + 1 + index, (&key, &key), 1000, (9, 9)))
    });
    let applied = read.apply(&VersionEdit { changes: flush.collect() }, &obsolete_files).unwrap();
    assert_eq!(applied.check_invariants(), None);
    let steps = steps::take(Step::FoundPartition);
    assert!(steps <= 16 * COUNT as usize, "{steps} steps to apply a flush");
}

#[test]
fn a_view_is_removed_with_the_first_of_its_runs() {
    let obsolete_files = Arc::default();
    let table = |number: u64| add(place(0, number), summary(number, ("a", "c"), 100, (number, number)));
    let catalog = catalog_of((1..=3).map(table).collect(), &obsolete_files);
    let ids: Vec<u64> = catalog.keyspaces[&1].partitions[0].runs().map(|(_, run)| run.id()).collect();
    let view = Some((9, ids[1..].to_vec()));
    let set = Change::SetView { keyspace: 1, partition: 1, view };
    let catalog = catalog.apply(&edit(vec![set]), &obsolete_files).unwrap().catalog;
    let remove = |number| Change::RemoveTable { place: place(0, number), number };
    let view_after = |number| {
        let applied = catalog.apply(&edit(vec![remove(number)]), &obsolete_files).unwrap();
        let names: Vec<_> = applied.obsolete.iter().map(|file| file.name().name()).collect();
        (applied.catalog.keyspaces[&1].partitions[0].view.is_some(), names)
    };
    assert_eq!(view_after(3), (true, vec!["000003.table".to_owned()]), "the view does not cover this run");
    assert_eq!(view_after(2), (false, vec!["000009.view".to_owned(), "000002.table".to_owned()]));
}

/// Each edit compared the views of all partitions with their runs, and searched all partitions for its own.
#[test]
fn a_replay_reads_only_the_partitions_that_its_edits_change() {
    const COUNT: u64 = 500;
    const RUNS: u64 = 7;
    const EDITS: u64 = 4_000;
    let obsolete_files = Arc::default();
    let mut replay = Replay::new(&obsolete_files);
    let lower = |index: u64| if index == 0 { String::new() } else { format!("{index:08}") };
    let key = |index: u64| format!("{index:08}");
    let add_partition = |partition, index| Change::AddPartition {
        keyspace: 1,
        partition,
        lower: lower(index).into_bytes(),
        flushed_sequence: 0,
    };
    let add_run = |partition, index, number: u64| {
        let place = RunPlace { keyspace: 1, partition, level: 0, run_age: number };
        add(place, summary(number, (&key(index), &key(index)), 1000, (number, number)))
    };
    // Ids are not in the order of keys.
    let mut ids: Vec<u64> = (0..COUNT).map(|index| index * 7919 % COUNT + 1).collect();
    let mut first = first_edit(KeyspaceOptions::default());
    first.changes.retain(|change| !matches!(change, Change::AddPartition { .. }));
    for (index, &id) in (0..).zip(&ids) {
        first.changes.push(add_partition(id, index));
        first.changes.extend((1..=RUNS).map(|run| add_run(id, index, index * RUNS + run)));
    }
    replay.apply(&first).unwrap();
    let set_view = |(number, partition): (u64, &Arc<Partition>)| {
        let runs = partition.runs().map(|(_, run)| run.id()).collect();
        Change::SetView { keyspace: 1, partition: partition.id, view: Some((number, runs)) }
    };
    let views = (COUNT * RUNS + 1..).zip(&replay.catalog.keyspaces[&1].partitions).map(set_view).collect();
    replay.apply(&edit(views)).unwrap();
    let numbers = COUNT * (RUNS + 1) + 1;
    let edits: Vec<_> = (0..EDITS)
        .map(|number| {
            let index = number * 7919 % COUNT;
            let id = &mut ids[index as usize];
            if number % 20 < 19 {
                return edit(vec![add_run(*id, index, numbers + number)]);
            }
            let old = std::mem::replace(id, COUNT + number);
            edit(vec![Change::RemovePartition { keyspace: 1, partition: old }, add_partition(*id, index)])
        })
        .collect();
    steps::take(Step::FoundPartition);
    steps::take(Step::SearchedRun);
    edits.iter().for_each(|edit| replay.apply(edit).unwrap());
    let (found, searched) = (steps::take(Step::FoundPartition), steps::take(Step::SearchedRun));
    assert!(found as u64 <= 8 * COUNT + 4 * EDITS, "{found} partitions read to find those of {EDITS} edits");
    let runs_max = RUNS + EDITS / COUNT;
    assert!(searched as u64 <= EDITS * RUNS * runs_max, "{searched} runs read in {EDITS} edits");
    let catalog = replay.finish();
    assert_eq!(catalog.check_invariants(), None);
    let partitions = &catalog.keyspaces[&1].partitions;
    assert!(partitions.iter().map(|partition| partition.id).eq(ids));
    let with_view = partitions.iter().filter(|partition| partition.view.is_some()).count();
    assert!(with_view > 0 && with_view < partitions.len());
}
