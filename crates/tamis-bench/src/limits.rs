//! Figures with a limit each: what the programs in `bin/` that measure them have in common.

use std::process::ExitCode;

use tamis::{Clock as _, Keyspace, SystemClock};
use tamis_workload::SplitMix64;

/// The result of a measurement.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Measured rounds of a ratio.
const ROUNDS: usize = 5;

/// Prints figures next to their limits, and counts the missed ones.
#[derive(Debug)]
pub struct Limits {
    missed_count: usize,
}

impl Limits {
    /// Prints the head of the table.
    #[expect(clippy::new_without_default, reason = "it prints")]
    pub fn new() -> Self {
        println!("{:<80} {:>10} {:>10}", "figure", "limit", "measured");
        Self { missed_count: 0 }
    }

    /// Prints a figure.
    pub fn add(&mut self, name: &str, limit: &str, value: &str, is_met: bool) {
        println!("{name:<80} {limit:>10} {value:>10} {}", if is_met { "met" } else { "MISSED" });
        self.missed_count += usize::from(!is_met);
    }

    /// Prints a figure that must be at least `limit`.
    pub fn at_least(&mut self, name: &str, limit: f64, value: f64) {
        self.add(name, &format!(">= {limit}"), &format!("{value:.2}"), value >= limit);
    }

    /// Prints a figure that must be at most `limit`.
    pub fn at_most(&mut self, name: &str, limit: f64, value: f64) {
        self.add(name, &format!("<= {limit}"), &format!("{value:.3}"), value <= limit);
    }

    /// The exit code of a program after its measurement: 0 all limits are met; 1 a limit is missed; 2 the measurement failed, with its
    /// error on standard error.
    pub fn exit_code(&self, result: &Result<()>) -> ExitCode {
        match result {
            Ok(()) if self.missed_count == 0 => ExitCode::SUCCESS,
            Ok(()) => ExitCode::FAILURE,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::from(2)
            }
        }
    }
}

/// Seconds of `count` operations by each of `threads` threads. An operation gets its number and the random numbers of its thread.
///
/// # Errors
/// If an operation failed.
pub fn seconds(
    clock: &SystemClock,
    threads: u64,
    count: u64,
    operation: impl Fn(u64, &mut SplitMix64) -> Result<()> + Sync,
) -> Result<f64> {
    let start = clock.now();
    let is_done = std::thread::scope(|scope| {
        let work = |thread: u64| {
            let operation = &operation;
            move || {
                let mut random = SplitMix64::new(thread);
                (0..count).all(|number| operation(thread * count + number, &mut random).is_ok())
            }
        };
        let workers: Vec<_> = (0..threads).map(|thread| scope.spawn(work(thread))).collect();
        workers.into_iter().all(|worker| worker.join().unwrap_or(false))
    });
    if is_done { Ok((clock.now() - start).as_secs_f64()) } else { Err("an operation failed".into()) }
}

/// The time of the first of two measurements divided by that of the second: the median of several rounds, after one that is not
/// counted.
///
/// # Errors
/// Those of the measurements.
pub fn median_ratio(mut round: impl FnMut() -> Result<[f64; 2]>) -> Result<f64> {
    round()?;
    let ratio = |_| round().map(|[first, second]| first / second);
    Ok(median((0..ROUNDS).map(ratio).collect::<Result<_>>()?))
}

/// The median; 0 of no values.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Seeks to a key with a new scan of all keys, then takes `steps` entries in its direction.
///
/// # Errors
/// Those of Tamis.
pub fn seek(keyspace: &Keyspace, key: [u8; 16], steps: usize, is_backward: bool) -> Result<()> {
    let mut scan = keyspace.range::<&[u8]>(..);
    if is_backward {
        scan.seek_for_prev(key)?;
    } else {
        scan.seek(key)?;
    }
    let mut sum = 0;
    for _ in 0..=steps {
        if !(if is_backward { scan.move_prev()? } else { scan.move_next()? }) {
            break;
        }
        sum += usize::from(scan.value().first().copied().unwrap_or_default());
    }
    std::hint::black_box(sum);
    Ok(())
}

/// Reads a key that is present.
///
/// # Errors
/// Those of Tamis, and if the key is missing.
pub fn get_present(keyspace: &Keyspace, key: [u8; 16]) -> Result<()> {
    match keyspace.get(key)? {
        Some(value) => {
            std::hint::black_box(value);
            Ok(())
        }
        None => Err("a key is missing".into()),
    }
}
