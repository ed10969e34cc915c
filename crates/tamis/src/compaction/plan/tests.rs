#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::ops::Bound;

use super::*;
use crate::version::{
    catalog::Catalog,
    level::LEVELED_RUN_AGE,
    test_support::{add, catalog_of, place, summary},
};

fn state() -> (Catalog, Arc<crate::version::handle::ObsoleteFiles>) {
    let obsolete_files = Arc::default();
    let changes = vec![
        add(place(0, 9), summary(4, ("c", "e"), 100, (9, 9))),
        add(place(0, 8), summary(3, ("d", "h"), 100, (8, 8))),
        add(place(14, LEVELED_RUN_AGE), summary(2, ("p", "q"), 100, (2, 2))),
        add(place(15, LEVELED_RUN_AGE), summary(1, ("a", "z"), 100, (1, 1))),
    ];
    (catalog_of(changes, &obsolete_files), obsolete_files)
}

fn plan_of(state: &Catalog, action: Action) -> Plan {
    let partition = state.keyspaces.get(&1).unwrap().partitions.first().unwrap();
    let run = |age| partition.level(0).unwrap().run(age).unwrap();
    let input = |age| PlanInput { level: 0, run_age: age, tables: run(age).tables().to_vec() };
    let inputs = if action == Action::Move { vec![input(8)] } else { vec![input(9), input(8)] };
    let trivial_moves = Vec::new();
    let spec = PlanSpec {
        action,
        reason: Reason::Level0,
        inputs,
        trivial_moves,
        output_level: 14,
        output_run_age: LEVELED_RUN_AGE,
        depth: 1,
        score: 1.0,
    };
    Plan::new(1, partition, spec).unwrap()
}

#[test]
fn a_running_job_keeps_others_from_its_tables_and_its_range() {
    let (state, _) = state();
    let plan = plan_of(&state, Action::Merge);
    let mut in_progress = InProgress::default();
    in_progress.begin(&plan);
    assert!(plan.tables().all(|table| in_progress.holds(table)));
    let writes = |in_progress: &InProgress, partition, level, lower: &str, upper: &str| {
        in_progress.writes_within(
            partition,
            level,
            (Bound::Included(lower.as_bytes()), Bound::Included(upper.as_bytes())),
        )
    };
    assert!(writes(&in_progress, 1, 14, "h", "k"));
    assert!(writes(&in_progress, 1, 14, "a", "z"));
    assert!(!writes(&in_progress, 1, 14, "a", "b"));
    assert!(!writes(&in_progress, 1, 14, "ha", "k"));
    assert!(!writes(&in_progress, 1, 15, "h", "k"));
    assert!(!writes(&in_progress, 2, 14, "h", "k"));
    in_progress.end(&plan);
    assert!(in_progress.is_empty() && !plan.tables().any(|table| in_progress.holds(table)));
}

#[test]
fn a_plan_has_its_range_its_grandparents_and_the_possibly_older_tables() {
    let (state, _) = state();
    let plan = plan_of(&state, Action::Merge);
    assert_eq!(plan.span.bounds(), (Bound::Included(b"c".as_slice()), Bound::Included(b"h".as_slice())));
    assert_eq!(plan.grandparents.iter().map(|table| table.number()).collect::<Vec<_>>(), [1]);
    assert_eq!(plan.older.iter().flatten().map(|table| table.number()).collect::<Vec<_>>(), [1]);
    assert_eq!((plan.bytes_read, plan.level()), (200, 0));
}

#[test]
fn a_trivial_move_keeps_the_handle_and_leaves_no_obsolete_file() {
    let (state, obsolete_files) = state();
    let plan = plan_of(&state, Action::Move);
    let applied = state.apply(&plan.move_edit(), &obsolete_files).unwrap();
    assert!(applied.obsolete.is_empty());
    let partition = applied.catalog.keyspaces.get(&1).unwrap().partitions.first().unwrap();
    let moved = partition.level(14).unwrap().tables().find(|table| table.number() == 3).unwrap();
    assert!(plan.tables().any(|table| Arc::ptr_eq(table, moved)));
    assert_eq!(partition.level(0).unwrap().runs().len(), 1);
}

/// Spans may overlap: some were retained before their partition was united with others.
#[test]
fn retained_keys_are_found_in_any_order_of_their_spans() {
    let span = |first: &str, last: &str| (first.as_bytes().to_vec(), last.as_bytes().to_vec());
    let spans = [span("p", "q"), span("b", "k"), span("d", "e"), span("s", "s")];
    let retained = InProgress::default().with_retained(spans.to_vec());
    for lower in b'a'..=b'z' {
        for upper in (lower + 1..=b'z').map(Some).chain([None]) {
            let expected = spans.iter().any(|(first, last)| {
                last.first() >= Some(&lower) && upper.is_none_or(|upper| first.first() < Some(&upper))
            });
            let upper_key = upper.map(|upper| [upper]);
            let found = retained.has_retained(&[lower], upper_key.as_ref().map(|upper| &upper[..]));
            assert_eq!(found, expected, "{} {upper:?}", char::from(lower));
        }
    }
    assert!(!InProgress::default().has_retained(b"", None));
}
