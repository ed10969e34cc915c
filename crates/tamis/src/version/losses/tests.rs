//! Losses that reach their price, jobs that do not help, and counters at their limits.

use super::*;

const PRICE: u64 = 1_000;

/// Adds so many reads that lose so much each.
fn lose(loss: &Loss, reads: u64, each: u64) {
    (0..reads).for_each(|_| loss.add(1, each));
}

#[test]
fn a_loss_is_due_when_it_reaches_the_price() {
    let loss = Loss::default();
    assert_eq!(loss.due(PRICE), None);
    lose(&loss, 99, 10);
    assert_eq!(loss.due(PRICE), None);
    lose(&loss, 1, 10);
    assert_eq!(loss.due(PRICE), Some(DueLoss { lost_ns: 1_000, price_ns: 1_000 }));
    loss.begin_job();
    assert_eq!(loss.due(PRICE), None);
}

#[test]
fn reads_that_lose_nothing_make_no_job_due_even_if_it_costs_nothing() {
    let loss = Loss::default();
    lose(&loss, 1_000, 0);
    assert_eq!((loss.nanoseconds(), loss.due(0)), (0, None));
}

#[test]
fn the_price_doubles_after_each_job_that_does_not_help_and_halves_after_one_that_does() {
    let loss = Loss::default();
    let jobs_until_due = |each: u64| {
        let mut reads = 0;
        while loss.due(PRICE).is_none() {
            lose(&loss, 1, each);
            reads += 1;
        }
        loss.begin_job();
        reads
    };
    let needed: Vec<u64> = (0..9).map(|_| jobs_until_due(10)).collect();
    assert_eq!(needed, [100, 200, 400, 800, 1_600, 3_200, 6_400, 6_400, 6_400]);
    // Each read loses a tenth: the last job has helped.
    assert_eq!(jobs_until_due(1), 64_000);
    assert_eq!(loss.price(PRICE), 32 * PRICE);
}

#[test]
fn a_job_costs_at_most_what_reads_have_lost() {
    let loss = Loss::default();
    let (mut lost, mut paid, mut state) = (0_u64, 0_u64, 7_u64);
    for step in 0..200_000_u64 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step);
        let each = (state >> 40) % if step % 20_000 < 10_000 { 50 } else { 2 };
        loss.add(1, each);
        lost += each;
        if let Some(due) = loss.due(PRICE) {
            assert!(due.lost_ns >= due.price_ns);
            loss.begin_job();
            paid += PRICE;
        }
    }
    assert!(paid > 0 && paid <= lost, "{paid} of {lost}");
}

#[test]
fn counters_stay_at_their_greatest_value() {
    let losses = Losses::default();
    for _ in 0..3 {
        losses.add_searched(u64::MAX, (usize::MAX / 4, 1), 1e300);
    }
    assert_eq!(losses.merge.nanoseconds(), u64::MAX);
    assert_eq!(losses.merge.due(u64::MAX).map(|due| due.lost_ns), Some(u64::MAX));
    losses.restart();
    assert_eq!((losses.merge.nanoseconds(), losses.view.nanoseconds()), (0, 0));
}

#[test]
fn one_run_loses_nothing_and_two_runs_lose_nothing_that_a_view_would_save() {
    let losses = Losses::default();
    losses.add_searched(10, (1, 0), 100.0);
    assert_eq!((losses.merge.nanoseconds(), losses.view.nanoseconds()), (0, 0));
    losses.add_searched(10, (2, 0), 100.0);
    assert_eq!((losses.merge.nanoseconds(), losses.view.nanoseconds()), (1_000, 0));
    losses.add_searched(10, (4, 0), 100.0);
    assert_eq!((losses.merge.nanoseconds(), losses.view.nanoseconds()), (4_000, 2_000));
    losses.add_searched(10, (0, 1), 100.0);
    assert_eq!((losses.merge.nanoseconds(), losses.view.nanoseconds()), (5_000, 2_000));
}

/// A view does not help gets.
#[test]
fn gets_that_read_several_runs_pay_for_a_merge_only() {
    let losses = Losses::default();
    losses.add_gets(8, 1, 100.0);
    assert_eq!(losses.merge.nanoseconds(), 0);
    losses.add_gets(8, 4, 100.0);
    assert_eq!((losses.merge.nanoseconds(), losses.view.nanoseconds()), (2_400, 0));
}
