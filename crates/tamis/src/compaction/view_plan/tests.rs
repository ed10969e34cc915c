#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

use super::*;
use crate::version::{
    catalog::Catalog,
    edit::{Change, VersionEdit},
    test_support::{add, catalog_of, place, summary},
};

/// Runs of L0 with these numbers of entries, the newest first, which overlap.
fn partition_of(entry_counts: &[u64]) -> (Catalog, Arc<Partition>) {
    let count = entry_counts.len() as u64;
    let table = |(index, entries): (usize, &u64)| {
        let age = count - index as u64;
        add(place(0, age), summary(age, ("a", "z"), entries * 100, (age, age)))
    };
    let catalog = catalog_of(entry_counts.iter().enumerate().map(table).collect(), &Arc::default());
    let partition = Arc::clone(&catalog.keyspaces[&1].partitions[0]);
    (catalog, partition)
}

fn runs(partition: &Partition) -> Vec<Arc<Run>> {
    partition.runs().map(|(_, run)| Arc::clone(run)).collect()
}

fn options(views: Views) -> KeyspaceOptions {
    KeyspaceOptions { views, ..KeyspaceOptions::default() }
}

/// Without samples of keys.
fn sizes(bytes_max: u64) -> ViewSizes<'static> {
    ViewSizes { bytes_max, sample: &|_| None }
}

/// Picks with runs that each cost a seek this time.
fn pick_with(partition: &Partition, views: Views, bytes_max: u64, nanoseconds: f64) -> Option<ViewPlan> {
    pick(partition, &options(views), &InProgress::default(), sizes(bytes_max), &|_| nanoseconds)
}

fn pick_in(partition: &Partition, views: Views) -> Option<Vec<u64>> {
    let plan = pick_with(partition, views, u64::MAX, SEEK_NANOSECONDS)?;
    Some(plan.runs.iter().map(|run| run.id()).collect())
}

#[test]
fn an_automatic_view_is_due_when_seeks_have_cost_as_much_as_building_it() {
    let (_, partition) = partition_of(&[100_000; 5]);
    assert_eq!(pick_in(&partition, Views::Auto), None);
    // A seek in the view costs as much as some of the five runs.
    let saved = (5.0 - RUNS_OF_A_VIEW) * SEEK_NANOSECONDS;
    let due = (FILE_NANOSECONDS + 500_000.0 * BUILD_NANOSECONDS) / saved;
    runs(&partition).iter().for_each(|run| run.add_merged_seeks(due as u64 - 1));
    assert_eq!(pick_in(&partition, Views::Auto), None);
    runs(&partition).iter().for_each(|run| run.add_merged_seeks(2));
    assert_eq!(pick_in(&partition, Views::Auto).map(|runs| runs.len()), Some(5));
    assert_eq!(pick_in(&partition, Views::Off), None);
}

/// In a store that is larger than the processor's caches a run costs a seek a microsecond and more.
#[test]
fn views_of_runs_that_are_slow_to_read_are_due_earlier() {
    let (_, partition) = partition_of(&[100_000; 5]);
    runs(&partition).iter().for_each(|run| run.add_merged_seeks(40_000));
    let picked = |nanoseconds| pick_with(&partition, Views::Auto, u64::MAX, nanoseconds).is_some();
    assert!(!picked(SEEK_NANOSECONDS) && picked(5.0 * SEEK_NANOSECONDS));
}

#[test]
fn large_new_runs_are_built_into_a_view_from_scratch() {
    assert!(is_cheaper_from_scratch(500_000, 800_000));
    assert!(!is_cheaper_from_scratch(500_000, 500_000));
    assert!(!is_cheaper_from_scratch(700_000, 100_000));
    assert!(!is_cheaper_from_scratch(0, 0));
}

#[test]
fn two_runs_get_no_automatic_view() {
    let (_, partition) = partition_of(&[1_000; 2]);
    runs(&partition).iter().for_each(|run| run.add_merged_seeks(100_000_000));
    assert_eq!(pick_in(&partition, Views::Auto), None);
    assert_eq!(pick_in(&partition, Views::On).map(|runs| runs.len()), Some(2));
    let (_, partition) = partition_of(&[1_000; 3]);
    runs(&partition).iter().for_each(|run| run.add_merged_seeks(100_000_000));
    assert_eq!(pick_in(&partition, Views::Auto).map(|runs| runs.len()), Some(3));
}

#[test]
fn an_automatic_view_excludes_runs_with_low_costs() {
    let (_, partition) = partition_of(&[100_000, 1_000, 1_000, 1_000, 1_000, 90_000_000]);
    let runs = runs(&partition);
    // The newest run is new; the oldest one is large.
    runs[1..].iter().for_each(|run| run.add_merged_seeks(200_000));
    let chosen = pick_in(&partition, Views::Auto).unwrap();
    assert_eq!(chosen, [1, 2, 3, 4].map(|index: usize| runs[index].id()));
    assert_eq!(pick_in(&partition, Views::On).map(|runs| runs.len()), Some(6));
}

#[test]
fn runs_that_overlap_no_other_get_no_view() {
    let apart = |age: u64, keys| add(place(0, age), summary(age, keys, 10_000, (age, age)));
    let catalog = catalog_of(vec![apart(2, ("a", "c")), apart(1, ("d", "f"))], &Arc::default());
    let partition = &catalog.keyspaces[&1].partitions[0];
    assert_eq!(pick_in(partition, Views::On), None);
    let (_, one) = partition_of(&[100]);
    assert_eq!(pick_in(&one, Views::On), None);
}

#[test]
fn a_view_that_is_larger_than_its_memory_is_not_built() {
    let (_, partition) = partition_of(&[100_000, 100_000]);
    let pick = |bytes_max| pick_with(&partition, Views::On, bytes_max, SEEK_NANOSECONDS);
    let bytes = pick(u64::MAX).unwrap().bytes(None);
    assert!((400_000..800_000).contains(&bytes), "{bytes} bytes");
    assert!(pick(bytes).is_some() && pick(bytes - 1).is_none());
}

/// A plan that ignored the view would build a second one.
#[test]
fn nothing_is_built_while_the_view_of_a_partition_is_not_open() {
    let (catalog, partition) = partition_of(&[1_000, 1_000]);
    let ids = runs(&partition).iter().map(|run| run.id()).collect();
    let set = Change::SetView { keyspace: 1, partition: 1, view: Some((9, ids)) };
    let edit = VersionEdit { changes: vec![set] };
    let catalog = catalog.apply(&edit, &Arc::default()).unwrap().catalog;
    let partition = &catalog.keyspaces[&1].partitions[0];
    assert!(partition.view.is_some());
    assert_eq!(pick_in(partition, Views::On), None);
}
