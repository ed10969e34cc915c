//! Memory goes where lookups are useless; a store that learns gets close to the best allocation.
#![expect(clippy::indexing_slicing, reason = "tests may panic")]

use super::{Ancestor, TableUnits, best_allocation, inherited_hotness, next_move};
use crate::bloom::formula::blocked_fpr;

const TABLE_COUNT: usize = 100;
const UNIT_BYTES: u64 = 1000;
const HYSTERESIS: f64 = 1.5;

fn false_reads(tables: &[TableUnits], loaded: &[u32]) -> f64 {
    tables.iter().zip(loaded).map(|(table, loaded)| table.false_reads(*loaded)).sum()
}

/// The rate of a cache-local filter.
fn least_fpr(bits_per_key: f64) -> f64 {
    (1..=8).map(|k| blocked_fpr(512.0, 512.0 / bits_per_key, k)).fold(1.0, f64::min)
}

fn tables(hotness: &[f64], unit_bits: f64, unit_count: u32) -> Vec<TableUnits> {
    let unit_fpr = least_fpr(unit_bits);
    let table = |hotness: &f64| TableUnits {
        hotness: *hotness,
        unit_bytes: UNIT_BYTES,
        unit_fpr,
        unit_count,
        loaded_count: 0,
    };
    hotness.iter().map(table).collect()
}

/// Every allocation of three tables, tried.
#[test]
fn the_best_allocation_is_the_best() {
    let tables = tables(&[1.0, 5.0, 40.0], 3.0, 4);
    for budget_units in 0..=12 {
        let best = best_allocation(&tables, budget_units * UNIT_BYTES);
        assert!(best.iter().map(|count| u64::from(*count)).sum::<u64>() <= budget_units);
        let mut least = f64::INFINITY;
        for first in 0..=4 {
            for second in 0..=4 {
                for third in 0..=4 {
                    if u64::from(first + second + third) <= budget_units {
                        least = least.min(false_reads(&tables, &[first, second, third]));
                    }
                }
            }
        }
        assert!((false_reads(&tables, &best) / least - 1.0).abs() < 1e-9, "{budget_units}");
    }
}

struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        (crate::remix(self.0, 0) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Lookups of absent keys go to tables by their shares; the store counts them, forgets slowly and makes one move per 500.
/// Gives the loaded units after the last one.
fn learn(shares: &[f64], tables: &mut [TableUnits], budget_bytes: u64, lookup_count: u32) -> (Vec<u32>, u32) {
    let mut random = Random(1);
    let mut move_count = 0;
    let cumulative: Vec<f64> = shares
        .iter()
        .scan(0.0, |sum, share| {
            *sum += share;
            Some(*sum)
        })
        .collect();
    for lookup in 0..lookup_count {
        let draw = random.unit() * cumulative[cumulative.len() - 1];
        let table = cumulative.partition_point(|sum| *sum <= draw);
        tables[table].hotness += 1.0;
        if lookup % 500 == 0 {
            tables.iter_mut().for_each(|table| table.hotness *= 0.998);
            if let Some(step) = next_move(tables, budget_bytes, HYSTERESIS) {
                move_count += 1;
                step.unload.iter().for_each(|table| tables[*table].loaded_count -= 1);
                step.load.iter().for_each(|table| tables[*table].loaded_count += 1);
                let loaded: u64 = tables.iter().map(|table| u64::from(table.loaded_count) * UNIT_BYTES).sum();
                assert!(loaded <= budget_bytes);
            }
        }
    }
    (tables.iter().map(|table| table.loaded_count).collect(), move_count)
}

#[test]
fn skewed_tables_save_four_in_ten_false_reads_and_come_close_to_the_optimum() {
    let shares: Vec<f64> = (1..=TABLE_COUNT).map(|rank| (rank as f64).powf(-0.99)).collect();
    for (unit_bits, unit_count) in [(2.0, 6), (3.0, 4), (4.0, 4)] {
        let truth = tables(&shares, unit_bits, unit_count);
        let half = UNIT_BYTES * u64::from(unit_count) * TABLE_COUNT as u64 / 2;
        let optimum = false_reads(&truth, &best_allocation(&truth, half));
        let (loaded, _) =
            learn(&shares, &mut tables(&[0.0; TABLE_COUNT], unit_bits, unit_count), half, 400_000);
        let learned = false_reads(&truth, &loaded);
        let plain_bits = unit_bits * f64::from(unit_count) / 2.0;
        let plain: f64 = shares.iter().sum::<f64>() * least_fpr(plain_bits);
        assert!(learned <= 1.05 * optimum, "{unit_bits} bits: {learned} against {optimum}");
        assert!(learned <= 0.62 * plain, "{unit_bits} bits: {learned} against {plain}");
    }
}

#[test]
fn even_tables_lose_nothing_and_the_store_comes_to_rest() {
    let shares = [1.0; TABLE_COUNT];
    let truth = tables(&shares, 3.0, 4);
    let half = UNIT_BYTES * 2 * TABLE_COUNT as u64;
    let mut learning = tables(&[0.0; TABLE_COUNT], 3.0, 4);
    let (loaded, _) = learn(&shares, &mut learning, half, 400_000);
    let plain = TABLE_COUNT as f64 * least_fpr(6.0);
    assert!(false_reads(&truth, &loaded) <= 1.03 * plain, "{} {plain}", false_reads(&truth, &loaded));
    let (_, move_count) = learn(&shares, &mut learning, half, 100_000);
    assert_eq!(move_count, 0, "noise moves nothing");
}

#[test]
fn a_smaller_budget_drops_the_least_useful_units_first() {
    let mut tables = tables(&[1.0, 100.0], 3.0, 4);
    tables.iter_mut().for_each(|table| table.loaded_count = 2);
    let step = next_move(&tables, 3 * UNIT_BYTES, HYSTERESIS).expect("over the budget");
    assert_eq!((step.unload, step.load), (vec![0], None));
}

#[test]
fn tables_that_nobody_asks_get_nothing() {
    let tables = tables(&[0.0, 0.0], 3.0, 4);
    assert_eq!(next_move(&tables, 100 * UNIT_BYTES, HYSTERESIS), None);
    assert_eq!(best_allocation(&tables, 100 * UNIT_BYTES), [0, 0]);
    assert_eq!(next_move(&[], 0, HYSTERESIS), None);
}

#[test]
fn hotness_goes_with_the_keys() {
    let hot = Ancestor { hotness: 900.0, key_count: 100, shared_count: 50 };
    let cold = Ancestor { hotness: 0.0, key_count: 100, shared_count: 50 };
    assert!((inherited_hotness(100, &[hot, cold]) - 450.0).abs() < 1e-9);
    assert!((inherited_hotness(50, &[hot]) - 450.0).abs() < 1e-9);
    assert_eq!(inherited_hotness(50, &[]), 0.0);
}
