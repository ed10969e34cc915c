//! File paths with queries next to keys: the chosen filters and each family with 14 bits per key.
//!
//! Directories without a file share most of their bytes with keys, and so do ranges between two neighbouring keys: filters that see only
//! the first bytes of a key let most of them pass.

use tamis_filter::auto::{Effort, Prices, choose};

use super::{
    accuracy::Case,
    measured::{measure as measure_filters, parts, request, sampled, text_of},
};
use tamis_bench::{BenchError, Context, Point, Row};

/// Maximum bits per key.
const BITS: f64 = 14.0;
/// The name of the filters that are chosen.
const AUTO: &str = "auto";
const KEYS: &str = "paths";
pub(crate) fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let filters = point.text("filters")?;
    let Case { input, sample, queries } = Case::of(point, KEYS, context)?;
    let chosen = if filters == AUTO {
        let sampled = sampled(&sample);
        choose(&input.set, &request(&sampled, Prices::default(), BITS, Effort::Background)).chosen.parts
    } else {
        parts(&format!("{filters}@{BITS}"))?
    };
    let measured = measure_filters(&input.set, &chosen, &sample, &queries)?;
    Ok(Row::new()
        .with("false_positive_rate", measured.rate)
        .with("bits_per_key", measured.bits_per_key)
        .with("built", text_of(&chosen)))
}
