use super::*;

fn pressure(sealed_count: usize, level0_run_count: usize) -> Pressure {
    Pressure { sealed_count, level0_run_count, level0_runs_trigger: 4 }
}

#[test]
fn writers_are_free_while_the_background_keeps_up() {
    assert_eq!(rate(pressure(0, 0), 100 << 20), None);
    assert_eq!(rate(pressure(1, 15), 100 << 20), None);
}

#[test]
fn the_further_behind_the_slower_and_never_a_full_stop() {
    let mut last = u64::MAX;
    for runs in 16..80 {
        let now =
            rate(pressure(0, runs), 100 << 20).expect("writers are slowed from four times the trigger on");
        assert!(now <= last, "{runs} runs: {now} bytes/s after {last}");
        assert!(now >= 25 << 20, "{runs} runs: {now} bytes/s is less than a quarter of the drain rate");
        last = now;
    }
    assert!(rate(pressure(0, 1_000), 0).is_some_and(|rate| rate >= RATE_MIN));
}

#[test]
fn small_delays_are_collected_and_waits_are_bounded() {
    let back_pressure = BackPressure::default();
    assert_eq!(
        back_pressure.charge(pressure(3, 0), 100),
        Duration::ZERO,
        "a hundred bytes are not worth a wait"
    );
    assert_eq!(back_pressure.charge(pressure(3, 0), 1 << 30), WAIT_MAX);
    assert_eq!(back_pressure.charge(pressure(0, 0), 1 << 30), Duration::ZERO);
}

#[test]
fn the_measured_drain_rate_moves_the_limit() {
    let back_pressure = BackPressure::default();
    let before = back_pressure.charge(pressure(3, 0), 1 << 20);
    for _ in 0..16 {
        back_pressure.note_drained(4 << 20, Duration::from_secs(1));
    }
    assert!(back_pressure.charge(pressure(3, 0), 1 << 20) > before, "a slow disk slows writers more");
}
