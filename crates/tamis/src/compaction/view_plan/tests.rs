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

fn pick_in(partition: &Partition, views: Views) -> Option<Vec<u64>> {
    let plan = pick(partition, views, &InProgress::default(), &JobTimes::default())?;
    Some(plan.runs.iter().map(|run| run.id()).collect())
}

#[test]
fn an_automatic_view_is_due_when_seeks_have_lost_the_time_of_its_build() {
    let (_, partition) = partition_of(&[100_000; 5]);
    assert_eq!(pick_in(&partition, Views::Auto), None);
    let price = JobTimes::default().of_view((500_000, 0));
    partition.losses.view.add(1_000, price - 1);
    assert_eq!(pick_in(&partition, Views::Auto), None);
    partition.losses.view.add(1, 1);
    assert_eq!(pick_in(&partition, Views::Auto).map(|runs| runs.len()), Some(5));
    assert_eq!(pick_in(&partition, Views::Off), None);
}

#[test]
fn two_runs_get_no_automatic_view() {
    let (_, partition) = partition_of(&[1_000; 2]);
    partition.losses.view.add(1, u64::MAX);
    assert_eq!(pick_in(&partition, Views::Auto), None);
    assert_eq!(pick_in(&partition, Views::On).map(|runs| runs.len()), Some(2));
    let (_, partition) = partition_of(&[1_000; 3]);
    partition.losses.view.add(1, u64::MAX);
    assert_eq!(pick_in(&partition, Views::Auto).map(|runs| runs.len()), Some(3));
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

/// A plan that ignored the view would build a second one.
#[test]
fn nothing_is_built_while_the_view_of_a_partition_is_not_open() {
    let (_catalog, partition) = partition_with_view();
    assert!(partition.view.is_some());
    assert_eq!(pick_in(&partition, Views::On), None);
}

const VIEW_NUMBER: u64 = 9;

/// Two runs with a view, which is not open.
fn partition_with_view() -> (Catalog, Arc<Partition>) {
    let (catalog, partition) = partition_of(&[1_000, 1_000]);
    let ids = runs(&partition).iter().map(|run| run.id()).collect();
    let set = Change::SetView { keyspace: 1, partition: 1, view: Some((VIEW_NUMBER, ids)) };
    let edit = VersionEdit { changes: vec![set] };
    let catalog = catalog.apply(&edit, &Arc::default()).unwrap().catalog;
    let partition = Arc::clone(&catalog.keyspaces[&1].partitions[0]);
    (catalog, partition)
}
