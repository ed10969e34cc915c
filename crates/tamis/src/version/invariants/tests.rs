#![expect(clippy::unwrap_used, reason = "tests may panic")]

use tamis_workload::SplitMix64;

use super::*;
use crate::{
    options::KeyspaceOptions,
    table::properties::TableSummary,
    version::{
        catalog::{Applied, Catalog},
        edit::{Change, VersionEdit},
        level::LEVELED_RUN_AGE,
        test_support::{add, catalog_of, place, summary},
    },
};

fn version_of(changes: Vec<Change>) -> KeyspaceVersion {
    let catalog = catalog_of(changes, &Arc::default());
    (**catalog.keyspaces.get(&1).unwrap()).clone()
}

fn partition_at(id: u64, lower: &str) -> Change {
    Change::AddPartition { keyspace: 1, partition: id, lower: lower.as_bytes().to_vec(), flushed_sequence: 0 }
}

/// The result of the changes on a catalog with one partition; both checks must agree on it.
fn apply(catalog: &Catalog, changes: Vec<Change>) -> Applied {
    let applied = catalog.apply(&VersionEdit { changes: changes.clone() }, &Arc::default()).unwrap();
    let (of_edit, of_all) = (applied.check_invariants(), applied.catalog.check_invariants());
    // A version may have runs of another layout, but an edit must not add to them.
    let is_of_layout = of_edit.as_ref().is_some_and(|violation| violation.contains("leveled layout"));
    let is_alike = of_edit.is_some() == of_all.is_some() || is_of_layout;
    assert!(is_alike, "{of_edit:?} {of_all:?} after {changes:?}");
    applied
}

#[test]
fn a_valid_version_breaks_no_invariant() {
    let version = version_of(vec![
        add(place(0, 90), summary(9, ("c", "k"), 100, (81, 90))),
        add(place(0, 80), summary(8, ("a", "z"), 100, (71, 80))),
        add(place(6, LEVELED_RUN_AGE), summary(3, ("a", "h"), 100, (1, 70))),
        add(place(6, LEVELED_RUN_AGE), summary(4, ("i", "x"), 100, (1, 70))),
    ]);
    assert_eq!(check_invariants(&version), None);
    let partition = version.partitions.first().unwrap();
    let places: Vec<_> = partition.runs().map(|(level, run)| (level, run.age())).collect();
    assert_eq!(places, [(0, 90), (0, 80), (6, 0)]);
}

#[test]
fn each_violation_is_named() {
    let low =
        |number, keys: (&str, &str)| -> (_, TableSummary) { (place(3, 0), summary(number, keys, 9, (1, 2))) };
    let broken = |changes: Vec<(_, TableSummary)>| {
        let changes = changes.into_iter().map(|(place, summary)| add(place, summary)).collect();
        let applied = apply(&catalog_of(Vec::new(), &Arc::default()), changes);
        applied.check_invariants().unwrap_or_default()
    };
    assert!(broken(vec![low(1, ("a", "d")), low(2, ("d", "f"))]).contains("overlap"));
    let two_runs = vec![
        (place(3, 0), summary(1, ("a", "b"), 9, (1, 1))),
        (place(3, 1), summary(2, ("x", "y"), 9, (2, 2))),
    ];
    assert!(broken(two_runs.clone()).contains("2 runs at level 3"));
    assert!(broken(two_runs.get(1..).unwrap().to_vec()).contains("of age 1"));
    let old_entries = vec![
        (place(0, 5), summary(1, ("a", "d"), 9, (1, 1))),
        (place(0, 4), summary(2, ("b", "c"), 9, (2, 2))),
    ];
    assert!(broken(old_entries).contains("newer run"));
    let outside = version_of(vec![partition_at(2, "h"), add(place(3, 0), summary(1, ("g", "h"), 9, (1, 1)))]);
    assert!(check_invariants(&outside).unwrap().contains("outside"));
    let mut uncovered = outside;
    uncovered.partitions.list_mut().remove(0);
    assert!(check_invariants(&uncovered).unwrap().contains("cover"));
}

#[test]
fn a_new_partition_must_not_cut_off_tables_of_the_previous_one() {
    let before = catalog_of(vec![add(place(3, 0), summary(1, ("b", "k"), 9, (1, 1)))], &Arc::default());
    assert_eq!(apply(&before, vec![partition_at(2, "l")]).check_invariants(), None);
    let cut = apply(&before, vec![partition_at(2, "k")]).check_invariants().unwrap();
    assert!(cut.contains("outside"), "{cut}");
    let all_gone = apply(&before, vec![Change::RemovePartition { keyspace: 1, partition: 1 }]);
    assert!(all_gone.check_invariants().unwrap().contains("cover"));
    // Removed again by the same edit.
    let twice = vec![partition_at(2, "c"), Change::RemovePartition { keyspace: 1, partition: 2 }];
    assert_eq!(apply(&before, twice).check_invariants(), None);
}

/// A table that is added before the tables that it replaces are removed.
#[test]
fn an_edit_may_overlap_itself_in_between() {
    let before = catalog_of(
        vec![
            add(place(3, 0), summary(1, ("a", "c"), 9, (1, 1))),
            add(place(3, 0), summary(2, ("d", "f"), 9, (1, 1))),
            add(place(3, 0), summary(3, ("x", "z"), 9, (1, 1))),
        ],
        &Arc::default(),
    );
    let replaced = vec![
        add(place(3, 0), summary(4, ("b", "e"), 9, (1, 1))),
        Change::RemoveTable { place: place(3, 0), number: 1 },
        Change::RemoveTable { place: place(3, 0), number: 2 },
    ];
    assert_eq!(apply(&before, replaced.clone()).check_invariants(), None);
    let kept = replaced.get(..2).unwrap().to_vec();
    assert!(apply(&before, kept).check_invariants().is_some());
    let added_twice = vec![add(place(3, 0), summary(9, ("p", "q"), 9, (1, 1))); 2];
    assert!(before.apply(&VersionEdit { changes: added_twice }, &Arc::default()).is_err());
}

/// Keys `00` to `15` of small tables in two levels and several L0 runs: few enough that edits often break something.
fn random_changes(random: &mut SplitMix64, catalog: &Catalog, next: &mut u64) -> Vec<Change> {
    let mut changes = Vec::new();
    let version = catalog.keyspaces.get(&1).unwrap();
    let mut tables: Vec<_> = version
        .partitions
        .iter()
        .flat_map(|partition| partition.runs())
        .flat_map(|(level, run)| {
            run.tables().iter().map(move |table| (place(level as u8, run.age()), Arc::clone(table)))
        })
        .collect();
    for _ in 0..=random.below(3) {
        if random.below(3) == 0 && !tables.is_empty() {
            let (place, table) = tables.swap_remove(random.below(tables.len() as u64) as usize);
            changes.push(Change::RemoveTable { place, number: table.number() });
            continue;
        }
        *next += 1;
        let lower = random.below(16);
        let upper = lower + random.below(4);
        let first = random.below(20) + 1;
        let keys = (format!("{lower:02}"), format!("{upper:02}"));
        let summary = summary(*next, (&keys.0, &keys.1), 9, (first, first + random.below(3)));
        let (level, age) = match random.below(4) {
            0 => (2, 0),
            1 => (3, random.below(8) / 5),
            _ => (0, random.below(4)),
        };
        changes.push(add(place(level, age), summary));
    }
    // Removals first half of the time, so that order within the edit does not matter to the result.
    if random.below(2) == 0 {
        changes.reverse();
    }
    changes
}

#[test]
fn the_check_of_an_edit_agrees_with_the_check_of_everything() {
    let (mut valid_count, mut broken_count) = (0, 0);
    for seed in 0..300 {
        let mut random = SplitMix64::new(seed);
        let mut catalog = catalog_of(Vec::new(), &Arc::default());
        if seed % 2 == 0 {
            let options = KeyspaceOptions::default().layout(Layout::tiered());
            catalog = apply(&catalog, vec![Change::SetOptions { keyspace: 1, options }]).catalog;
        }
        let mut next = 0;
        for _ in 0..40 {
            let changes = random_changes(&mut random, &catalog, &mut next);
            let applied = apply(&catalog, changes);
            if applied.check_invariants().is_some() {
                broken_count += 1;
            } else {
                valid_count += 1;
                catalog = applied.catalog;
            }
        }
    }
    assert!(valid_count > 2_000 && broken_count > 2_000, "{valid_count} {broken_count}");
}

/// A catalog of `count` tables at level 3 and ten runs of `count / 10` tables each at L0.
fn large_catalog(count: u64) -> Catalog {
    let mut changes = Vec::new();
    for number in 0..count {
        let keys = (format!("user{number:06}a"), format!("user{number:06}m"));
        changes.push(add(place(3, 0), summary(1 + number, (&keys.0, &keys.1), 9, (1, 1))));
    }
    for run in 1..=10 {
        for number in 0..count / 10 {
            let keys = (format!("user{:06}b", number * 10), format!("user{:06}c", number * 10 + 9));
            let number = count * 2 * run + number;
            changes.push(add(
                place(0, run * 10),
                summary(number, (&keys.0, &keys.1), 9, (run * 10, run * 10 + 5)),
            ));
        }
    }
    catalog_of(changes, &Arc::default())
}

/// Each edit checked all tables of the keyspace, and all L0 runs against each other, under the lock.
#[test]
fn an_edit_is_checked_in_proportion_to_what_it_changes() {
    let steps_of = |catalog: &Catalog, changes: &[Change]| {
        let edit = VersionEdit { changes: changes.to_vec() };
        let applied = catalog.apply(&edit, &Arc::default()).unwrap();
        steps::take(Step::Check);
        assert_eq!(applied.check_invariants(), None);
        steps::take(Step::Check)
    };
    let flush = [add(place(0, 1_000), summary(90_001, ("a", "z"), 9, (1_000, 1_010)))];
    let compaction = [
        Change::RemoveTable { place: place(3, 0), number: 41 },
        Change::RemoveTable { place: place(3, 0), number: 42 },
        add(place(3, 0), summary(90_001, ("user000040a", "user000040f"), 9, (1, 1))),
        add(place(3, 0), summary(90_002, ("user000041a", "user000041z"), 9, (1, 1))),
    ];
    let (small, large) = (large_catalog(100), large_catalog(5_000));
    assert_eq!(large.keyspaces.get(&1).unwrap().tables().count(), 10_000);
    for changes in [&flush[..], &compaction] {
        let (few, many) = (steps_of(&small, changes), steps_of(&large, changes));
        assert!(many <= 32, "{many} steps for {changes:?}");
        // Each of at most two binary searches takes six steps more in 50 times as many tables.
        assert!(many <= few + 12, "{many} steps instead of {few}");
    }
}

#[test]
fn the_whole_check_is_linear_even_for_thousands_of_runs() {
    let steps_of = |catalog: &Catalog| {
        steps::take(Step::Check);
        assert_eq!(catalog.check_invariants(), None);
        steps::take(Step::Check)
    };
    let runs = |count: u64| {
        let changes = (1..=count).map(|run| {
            let keys = (format!("{:06}", run * 7 % 1_000), format!("{:06}", run * 7 % 1_000 + 500));
            add(place(0, run), summary(run, (&keys.0, &keys.1), 9, (run * 10, run * 10 + 9)))
        });
        catalog_of(changes.collect(), &Arc::default())
    };
    assert!(steps_of(&runs(5_000)) <= 4 * 5_000);
    assert!(steps_of(&large_catalog(5_000)) <= 4 * 10_000);
}
