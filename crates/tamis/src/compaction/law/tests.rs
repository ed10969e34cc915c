//! Prices of jobs, and the order of those that are due.

use super::*;

fn due(lost_ns: u64, price_ns: u64) -> DueLoss {
    DueLoss { lost_ns, price_ns }
}

#[test]
fn the_greatest_ratio_of_loss_to_price_is_first_and_then_the_smaller_price() {
    let picked = |due: Vec<DueLoss>| first(due.into_iter().enumerate()).map(|(position, _)| position);
    assert_eq!(picked(vec![]), None);
    assert_eq!(picked(vec![due(100, 100), due(30, 10), due(200, 100)]), Some(1));
    assert_eq!(picked(vec![due(400, 200), due(200, 100), due(600, 300)]), Some(1));
    assert_eq!(picked(vec![due(u64::MAX, u64::MAX), due(5, 0)]), Some(1));
}

#[test]
fn measured_jobs_change_the_price_of_later_ones() {
    let times = JobTimes::default();
    let before = times.of_view((1_000_000, 0));
    for _ in 0..50 {
        times.note_view((1_000_000, 0), Duration::from_secs(1));
    }
    let after = times.of_view((1_000_000, 0)) as f64;
    assert!((before as f64) < after && (after / 1e9 - 1.0).abs() < 0.05, "{before} {after}");
    assert!(times.of_view((0, 32_000_000)) as f64 > 0.9 * after);
}

#[test]
fn a_clock_that_does_not_advance_or_jumps_breaks_no_price() {
    let times = JobTimes::default();
    let before = times.of_view((1_000, 0));
    times.note_view((1_000, 0), Duration::ZERO);
    times.note_view((0, 0), Duration::from_secs(1));
    assert_eq!(times.of_view((1_000, 0)), before);
    times.note_view((1, 0), Duration::MAX);
    assert_eq!(times.of_view((u64::MAX, u64::MAX)), u64::MAX);
}
