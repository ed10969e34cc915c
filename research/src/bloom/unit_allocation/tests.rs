//! The allocation is optimal, and follows the hotness of the tables.

use tamis_filter::bloom::formula::blocked_fpr;

use super::{TableUnits, best_allocation};

const TABLE_COUNT: usize = 100;
const UNIT_BYTES: u64 = 1000;

fn false_reads(tables: &[TableUnits], loaded: &[u32]) -> f64 {
    tables.iter().zip(loaded).map(|(table, loaded)| table.false_reads(*loaded)).sum()
}

/// The rate of a blocked filter.
fn least_fpr(bits_per_key: f64) -> f64 {
    (1..=8).map(|k| blocked_fpr(512.0, 512.0 / bits_per_key, k)).fold(1.0, f64::min)
}

fn tables(hotness: &[f64], unit_bits: f64, unit_count: u32) -> Vec<TableUnits> {
    let unit_fpr = least_fpr(unit_bits);
    let table =
        |hotness: &f64| TableUnits { hotness: *hotness, unit_bytes: UNIT_BYTES, unit_fpr, unit_count };
    hotness.iter().map(table).collect()
}

#[test]
fn no_allocation_for_three_tables_is_better() {
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

#[test]
fn skewed_tables_save_false_reads_and_even_tables_get_equal_units() {
    let shares: Vec<f64> = (1..=TABLE_COUNT).map(|rank| (rank as f64).powf(-0.99)).collect();
    for (unit_bits, unit_count) in [(2.0, 6), (3.0, 4), (4.0, 4)] {
        let half = UNIT_BYTES * u64::from(unit_count) * TABLE_COUNT as u64 / 2;
        let skewed = tables(&shares, unit_bits, unit_count);
        let best = false_reads(&skewed, &best_allocation(&skewed, half));
        let plain = shares.iter().sum::<f64>() * least_fpr(unit_bits * f64::from(unit_count) / 2.0);
        assert!(best <= 0.62 * plain, "{unit_bits} bits: {best} against {plain}");
        let even = tables(&[1.0; TABLE_COUNT], unit_bits, unit_count);
        assert_eq!(best_allocation(&even, half), [unit_count / 2; TABLE_COUNT]);
    }
}

#[test]
fn tables_without_lookups_get_no_units() {
    let tables = tables(&[0.0, 0.0], 3.0, 4);
    assert_eq!(best_allocation(&tables, 100 * UNIT_BYTES), [0, 0]);
    assert!(best_allocation(&[], 0).is_empty());
}
