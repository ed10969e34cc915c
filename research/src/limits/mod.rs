//! Promises of deletes, sorted views and layouts: measured values next to their limits, which are the expected values of the
//! definitions. A ratio is the median of rounds in which both sides alternate.

pub(crate) mod delete;
pub(crate) mod layout;
pub(crate) mod view;

use tamis::{Db, KeyspaceStatistics};
use tamis_bench::{BenchError, driver::blocks_of, filter::median};

type Result<T> = std::result::Result<T, BenchError>;

/// Measured rounds of a ratio; there is one more before, which is not counted.
const ROUNDS: usize = 5;

/// The time of the first of two measurements divided by that of the second.
fn median_ratio(mut round: impl FnMut() -> Result<[f64; 2]>) -> Result<f64> {
    round()?;
    let ratio = |_| round().map(|[first, second]| first / second);
    Ok(median(&mut (0..ROUNDS).map(ratio).collect::<Result<Vec<f64>>>()?))
}

/// Blocks that reads of a store have used.
fn blocks(db: &Db) -> u64 {
    blocks_of(&db.statistics())
}

fn statistics_of(db: &Db, name: &str) -> Result<KeyspaceStatistics> {
    let found = db.statistics().keyspaces.into_iter().find(|keyspace| keyspace.name == name);
    found.ok_or_else(|| BenchError::Other(format!("no keyspace named {name}")))
}
