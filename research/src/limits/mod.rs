//! Promises of deletes, sorted views and layouts: measured values next to their limits, which are the expected values of the
//! definitions. A ratio is the median of rounds in which both sides alternate.

pub(crate) mod delete;
pub(crate) mod layout;
pub(crate) mod view;

use std::hint::black_box;

use tamis::{Clock as _, Db, Keyspace, KeyspaceStatistics, SystemClock};
use tamis_bench::{BenchError, driver::blocks_of, filter::median};
use tamis_workload::SplitMix64;

type Result<T> = std::result::Result<T, BenchError>;

/// Measured rounds of a ratio; there is one more before, which is not counted.
const ROUNDS: usize = 5;

/// Seconds of `count` operations by each of `threads` threads. An operation gets its number and the random numbers of its thread.
fn seconds(
    threads: u64,
    count: u64,
    operation: impl Fn(u64, &mut SplitMix64) -> Result<()> + Sync,
) -> Result<f64> {
    let clock = SystemClock::default();
    let start = clock.now();
    std::thread::scope(|scope| {
        let work = |thread: u64| {
            let operation = &operation;
            move || {
                let mut random = SplitMix64::new(thread);
                (0..count).try_for_each(|number| operation(thread * count + number, &mut random))
            }
        };
        let workers: Vec<_> = (0..threads).map(|thread| scope.spawn(work(thread))).collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, Result<()>>| match worker.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        workers.into_iter().try_for_each(join)
    })?;
    Ok((clock.now() - start).as_secs_f64())
}

/// The time of the first of two measurements divided by that of the second.
fn median_ratio(mut round: impl FnMut() -> Result<[f64; 2]>) -> Result<f64> {
    round()?;
    let ratio = |_| round().map(|[first, second]| first / second);
    Ok(median(&mut (0..ROUNDS).map(ratio).collect::<Result<Vec<f64>>>()?))
}

/// Seeks to a key with a new scan of all keys, then takes `steps` entries in its direction.
fn seek(keyspace: &Keyspace, key: [u8; 16], steps: u64, is_backward: bool) -> Result<()> {
    let mut scan = keyspace.range(..);
    if is_backward {
        scan.seek_for_prev(key)?;
    } else {
        scan.seek(key)?;
    }
    for _ in 0..=steps {
        if !(if is_backward { scan.move_prev()? } else { scan.move_next()? }) {
            break;
        }
        black_box(scan.value());
    }
    Ok(())
}

/// Reads a key that is present.
fn get_present(keyspace: &Keyspace, key: [u8; 16]) -> Result<()> {
    black_box(keyspace.get(key)?).map(drop).ok_or_else(|| BenchError::other("a key is missing"))
}

/// Blocks that reads of a store have used.
fn blocks(db: &Db) -> u64 {
    blocks_of(&db.statistics())
}

fn statistics_of(db: &Db, name: &str) -> Result<KeyspaceStatistics> {
    let found = db.statistics().keyspaces.into_iter().find(|keyspace| keyspace.name == name);
    found.ok_or_else(|| BenchError::Other(format!("no keyspace named {name}")))
}
