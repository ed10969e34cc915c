use super::*;

const RATES: Rates = Rates { flush: 100 << 20, merge: 20 << 20 };

fn pressure(immutable_count: usize, level0_run_count: usize) -> Pressure {
    Pressure { immutable_count, level0_run_count, level0_runs_trigger: 4 }
}

#[test]
fn writers_are_not_delayed_while_the_background_keeps_up() {
    assert_eq!(rate(pressure(0, 0), RATES), None);
    assert_eq!(rate(pressure(1, 15), RATES), None);
}

#[test]
fn delays_grow_with_the_backlog_and_stay_finite() {
    let mut last = u64::MAX;
    for runs in 16..80 {
        let now = rate(pressure(0, runs), RATES).expect("writers are slowed from four times the trigger on");
        assert!(now <= last, "{runs} runs: {now} bytes/s after {last}");
        assert!(now >= 5 << 20, "{runs} runs: {now} bytes/s is less than a quarter of what merges drain");
        last = now;
    }
    assert!(rate(pressure(0, 1_000), Rates { flush: 0, merge: 0 }).is_some_and(|rate| rate >= RATE_MIN));
}

#[test]
fn each_lag_is_measured_by_the_rate_of_the_job_that_drains_it() {
    let flushes_lag = rate(pressure(2, 0), RATES);
    let merges_lag = rate(pressure(0, 16), RATES);
    assert!(flushes_lag > merges_lag);
    assert_eq!(rate(pressure(2, 16), RATES), merges_lag, "the slower one counts");
}

#[test]
fn small_delays_add_up_and_waits_are_bounded() {
    let back_pressure = BackPressure::default();
    let now = Duration::from_secs(5);
    assert_eq!(back_pressure.charge(1 << 20, 100, now), None, "a hundred bytes are not worth a wait");
    let waits = (0..100).filter(|_| back_pressure.charge(1 << 20, 100, now).is_some()).count();
    assert!(waits > 80, "together they are");
    assert_eq!(back_pressure.charge(1 << 20, 1 << 30, now), Some(now + WAIT_MAX));
}

/// Otherwise large batches are written faster than the rate.
#[test]
fn the_next_writes_wait_for_the_rest_of_a_debt() {
    let back_pressure = BackPressure::default();
    let mut now = Duration::from_secs(5);
    // A second of bytes, then almost none.
    let mut until = back_pressure.charge(1 << 20, 1 << 20, now);
    for _ in 0..4 {
        assert_eq!(until, Some(now + WAIT_MAX));
        now += WAIT_MAX;
        until = back_pressure.charge(1 << 20, 1, now);
    }
    assert_eq!(until, None, "the debt is paid");
    // However many bytes are written, the debt stays below the limit.
    (0..100).for_each(|_| _ = back_pressure.charge(RATE_MIN, 1 << 20, now));
    assert!(back_pressure.charge(RATE_MIN, 1, now + DEBT_MAX - WAIT_MAX).is_some());
    assert_eq!(back_pressure.charge(RATE_MIN, 1, now + DEBT_MAX), None);
}

#[test]
fn a_debt_ends_with_the_delays() {
    let back_pressure = BackPressure::default();
    let now = Duration::from_secs(5);
    back_pressure.changed_delay(Some(1 << 20));
    assert!(back_pressure.charge(1 << 20, 10 << 20, now).is_some());
    back_pressure.changed_delay(None);
    back_pressure.changed_delay(Some(1 << 20));
    assert_eq!(back_pressure.charge(1 << 20, 1, now), None);
}

#[test]
fn writers_share_the_rate() {
    let back_pressure = BackPressure::default();
    let now = Duration::from_secs(5);
    let milliseconds = |number| Some(now + Duration::from_millis(number));
    // Four writers with bytes for 10 ms each start at the same time: each continues 10 ms after the previous one.
    for writer in 1..=4 {
        assert_eq!(back_pressure.charge(1_000_000, 10_000, now), milliseconds(10 * writer));
    }
    // A writer that starts when nothing is owed waits for its own bytes only.
    let later = now + Duration::from_secs(1);
    assert_eq!(back_pressure.charge(1_000_000, 10_000, later), Some(later + Duration::from_millis(10)));
}

/// Otherwise writers would fill all memtables, and stop for as long as a flush takes.
#[test]
fn writers_are_not_faster_than_slow_flushes() {
    let back_pressure = BackPressure::default();
    back_pressure.note_flush(1 << 20, Duration::from_secs(2));
    assert!(back_pressure.rate(pressure(3, 0)).is_some_and(|rate| rate < 512 << 10));
}

#[test]
fn the_measured_rate_moves_the_limit() {
    let back_pressure = BackPressure::default();
    let before = back_pressure.rate(pressure(3, 0));
    back_pressure.note_flush(4 << 20, Duration::from_secs(1));
    assert!(back_pressure.rate(pressure(3, 0)) < before, "the first measurement counts at once");
    let slow = back_pressure.rate(pressure(3, 0));
    for _ in 0..16 {
        back_pressure.note_flush(400 << 20, Duration::from_secs(1));
        back_pressure.note_merge(1 << 20, Duration::from_secs(1));
    }
    assert!(back_pressure.rate(pressure(3, 0)) > slow);
}

#[test]
fn the_beginning_and_the_end_of_throttling_are_reported_once() {
    let back_pressure = BackPressure::default();
    assert_eq!(back_pressure.changed_delay(None), None);
    assert_eq!(back_pressure.changed_delay(Some(1 << 20)), Some(1_000_000));
    assert_eq!(back_pressure.changed_delay(Some(1 << 21)), None);
    assert_eq!(back_pressure.changed_delay(None), Some(0));
    assert_eq!(back_pressure.changed_delay(None), None);
}
