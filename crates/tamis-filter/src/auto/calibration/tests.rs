//! Measured times stay plausible with any clock.

use std::cell::Cell;

use super::*;

/// The times by a clock that advances by `step` at each look.
fn measured(step: Duration) -> ProbeTimes {
    let time = Cell::new(Duration::ZERO);
    let now = || {
        time.set(time.get() + step);
        time.get()
    };
    ProbeTimes::measure(&now, &|| ())
}

fn has_factor(times: &ProbeTimes, factor: f64) -> bool {
    Family::ALL.iter().all(|family| {
        let (measured, shipped) = (times.get(*family), ProbeTimes::default().get(*family));
        (measured.point_ns / shipped.point_ns - factor).abs() < 1e-9
            && (measured.range_ns / shipped.range_ns - factor).abs() < 1e-9
    })
}

#[test]
fn a_clock_that_does_not_advance_keeps_the_shipped_times() {
    assert_eq!(measured(Duration::ZERO), ProbeTimes::default());
}

#[test]
fn implausible_times_change_each_family_by_a_bounded_factor() {
    assert!(has_factor(&measured(Duration::from_nanos(1)), 1.0 / FACTOR_MAX));
    assert!(has_factor(&measured(Duration::from_secs(1)), FACTOR_MAX));
}

#[test]
fn the_structures_cover_each_family_once() {
    for family in Family::ALL {
        let count = STRUCTURES.iter().filter(|structure| structure.families.contains(&family)).count();
        assert_eq!(count, 1, "{family}");
    }
}

#[test]
fn other_work_runs_between_the_structures() {
    let count = Cell::new(0);
    ProbeTimes::measure(&|| Duration::ZERO, &|| count.set(count.get() + 1));
    assert_eq!(count.get(), STRUCTURES.len());
}
