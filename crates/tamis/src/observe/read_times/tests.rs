//! The price of a read, after reads of known times.

use super::*;
use crate::store::runtime::ManualClock;

const EXPECTED: f64 = 60_000.0;

struct Measured {
    clock: Arc<ManualClock>,
    times: ReadTimes<3>,
}

impl Measured {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::default());
        Self { times: ReadTimes::by(Arc::<ManualClock>::clone(&clock)), clock }
    }

    fn read(&self, level: usize, microseconds: u64) {
        let began = self.times.begin().expect("there is a clock");
        self.clock.advance(Duration::from_micros(microseconds));
        self.times.end(level, began);
    }
}

#[test]
fn a_price_is_expected_until_enough_reads_are_measured() {
    let measured = Measured::new();
    for _ in 0..COUNT_MIN - 1 {
        measured.read(1, 10);
    }
    assert_eq!((measured.times.price(1, EXPECTED), measured.times.nanoseconds(1)), (EXPECTED, 0));
    measured.read(1, 10);
    assert_eq!((measured.times.price(1, EXPECTED), measured.times.nanoseconds(1)), (10_000.0, 10_000));
    assert_eq!(
        measured.times.price(2, EXPECTED),
        10_000.0,
        "a level without reads costs as much as the others"
    );
    assert_eq!(measured.times.price(99, EXPECTED), 10_000.0);
}

#[test]
fn each_level_has_its_own_price_which_follows_a_change() {
    let measured = Measured::new();
    for _ in 0..1_000 {
        measured.read(0, 5);
        measured.read(2, 100);
    }
    let price = |level| measured.times.price(level, EXPECTED).round();
    assert_eq!((price(0), price(2)), (5_000.0, 100_000.0));
    for _ in 0..2_000 {
        measured.read(2, 20);
    }
    assert!((20_000.0..20_100.0).contains(&price(2)), "{}", price(2));
    assert_eq!(price(0), 5_000.0);
}

#[test]
fn reads_from_a_cache_and_from_a_device_cost_their_mean() {
    let measured = Measured::new();
    for number in 0..10_000 {
        measured.read(0, if number % 10 == 9 { 100 } else { 4 });
    }
    let price = measured.times.price(0, EXPECTED);
    assert!((12_000.0..16_000.0).contains(&price), "{price}");
}

#[test]
fn a_single_read_that_takes_a_second_hardly_moves_a_price_and_prices_have_bounds() {
    let measured = Measured::new();
    (0..1_000).for_each(|_| measured.read(0, 10));
    measured.read(0, 1_000_000);
    let price = measured.times.price(0, EXPECTED);
    assert!(price < 11_300.0, "{price}");
    (0..1_000).for_each(|_| measured.read(1, 1));
    assert_eq!(measured.times.price(1, EXPECTED), PRICE_MIN);
    (0..1_000).for_each(|_| measured.read(2, 60_000_000));
    assert_eq!(measured.times.price(2, EXPECTED), PRICE_MAX);
}

#[test]
fn a_stopped_clock_and_no_clock_measure_nothing() {
    let measured = Measured::new();
    (0..1_000).for_each(|_| measured.read(0, 0));
    assert_eq!(measured.times.price(0, EXPECTED), EXPECTED);
    let without: ReadTimes<3> = ReadTimes::default();
    assert!(without.begin().is_none());
    without.end(0, Duration::ZERO);
    assert_eq!(without.price(0, EXPECTED), EXPECTED);
}
