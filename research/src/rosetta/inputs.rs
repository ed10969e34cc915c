//! Keys and empty ranges of one size, as in the paper.

use tamis_filter::{Budget, KeySet};
use tamis_workload::{KeySet as IntegerSet, SplitMix64};

use tamis_bench::{
    BenchError, Context, Point, Row,
    filter::{FilterInput, Plan, Ranges},
};

/// Maximum distance of a correlated range after a key.
const DISTANCE_MAX: u64 = 1024;

/// Maximum number of consecutive draws without an empty range.
const REJECTED_MAX: u32 = 100_000;

/// Maximum number of sample queries.
const SAMPLE_MAX: usize = 20_000;

/// The distribution of the lower bounds of ranges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Anywhere.
    Uniform,
    /// Shortly after a key.
    Correlated,
}

/// Draws empty ranges of `size` integers.
fn ranges(
    keys: &[u64],
    place: Place,
    size: u64,
    count: usize,
    seed: u64,
) -> Result<Vec<(u64, u64)>, BenchError> {
    let mut random = SplitMix64::new(seed);
    let mut ranges = Vec::with_capacity(count);
    let mut rejected = 0;
    while ranges.len() < count {
        let lower = match place {
            Place::Uniform => random.next_u64(),
            Place::Correlated => {
                let key = keys.get(random.below(keys.len() as u64) as usize).copied().unwrap_or(0);
                key.wrapping_add(1 + random.below(DISTANCE_MAX))
            }
        };
        let upper = lower.checked_add(size - 1);
        let first = keys.partition_point(|key| *key < lower);
        let is_empty = upper.is_some_and(|upper| keys.get(first).is_none_or(|key| *key > upper));
        match upper.filter(|_| is_empty) {
            Some(upper) => {
                ranges.push((lower, upper));
                rejected = 0;
            }
            None if rejected == REJECTED_MAX => {
                return Err(BenchError::other(
                    "the keys leave no empty ranges of this size; use fewer keys or shorter ranges",
                ));
            }
            None => rejected += 1,
        }
    }
    Ok(ranges)
}

/// Parameters of integer keys and queries.
#[derive(Debug, Clone, Copy)]
pub(super) struct Integers {
    pub(super) set: IntegerSet,
    pub(super) key_count: usize,
    pub(super) place: Place,
    pub(super) range_size: u64,
}

impl Integers {
    fn build(&self, seed: u64) -> Result<FilterInput, BenchError> {
        let keys = self.set.generate(self.key_count, seed);
        let mut set = KeySet::new();
        for key in &keys {
            set.push(&key.to_be_bytes())?;
        }
        let count = self.key_count.min(1_000_000);
        let queries = ranges(&keys, self.place, self.range_size, count, seed + 1)?;
        let samples = ranges(&keys, self.place, self.range_size, (count / 10).min(SAMPLE_MAX), seed + 2)?;
        let (queries, samples) = (Ranges::from_integers(&queries), Ranges::from_integers(&samples));
        Ok(FilterInput { keys: set.into(), queries, samples, ..FilterInput::default() })
    }

    /// Measures the family and the bits of the point.
    pub(super) fn measure(&self, point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
        let input = context.input(&format!("{self:?}"), |context| self.build(context.seed()))?;
        measure(point, &input, context)
    }
}

/// Measures the `family` of a point with its `bits`.
pub(super) fn measure(point: &Point, input: &FilterInput, context: &Context<'_>) -> Result<Row, BenchError> {
    let spec = point.text("family")?.parse()?;
    let budget = Budget::bits_per_key(point.number("bits")?)?;
    let plan = Plan { spec: &spec, seed: context.seed(), budget, input };
    plan.measure(context.clock())?.into_row()
}
