//! File paths with queries next to keys: the chosen filters and each family with 14 bits per key.
//!
//! Directories without a file share most of their bytes with keys, and so do ranges between two neighbouring keys: filters that see only
//! the first bytes of a key let most of them pass.

use std::sync::Arc;

use tamis_filter::auto::{Effort, Pause, Prices, Request, Workload, choose};

use super::{
    accuracy::Input,
    measured::{measure as measure_filters, parts, sampled, text_of},
};
use tamis_bench::{Axis, BenchError, Context, Definition, Needs, Plot, Point, Row, Size};

/// Maximum bits per key.
const BITS: f64 = 14.0;
/// The name of the filters that are chosen.
const AUTO: &str = "auto";
const KEYS: &str = "paths";
const FILTERS: [&str; 7] = [
    AUTO,
    "rosetta",
    "proteus",
    "surf:truncate=yes",
    "grafite",
    "prefix-bloom:separator=/",
    "prefix-bloom:bytes=12",
];
const KEY_BYTES: u64 = 400;

/// The experiment.
pub(super) const STRINGS: Definition = Definition {
    name: "auto-strings",
    title: "File paths: rates of the chosen filters and of each family",
    source: "",
    about: "False-positive rates of prefixes without a key (directories) and of closed ranges between neighbouring file paths, with 14 bits per key and a sample of such queries.",
    points,
    measure,
    plots: &[Plot {
        name: "rate",
        title: "False-positive rate",
        x: "filters",
        y: "false_positive_rate",
        series: "queries",
        y_axis: Axis::Linear,
        ..Plot::NEW
    }],
    paper: &[],
};

fn points(size: Size) -> Vec<Point> {
    let entries: u64 = size.pick(1_000, 100_000, 1_000_000);
    let queries: u64 = size.pick(200, 20_000, 100_000);
    let mut points = Vec::new();
    for kind in ["directories", "between"] {
        for filters in FILTERS {
            let point = Point::new().with("queries", kind).with("filters", filters);
            let needs = Needs { disk_bytes: 0, memory_bytes: entries * KEY_BYTES };
            points.push(point.with("entries", entries).with("count", queries).needing(needs));
        }
    }
    points
}

fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let (kind, filters) = (point.text("queries")?, point.text("filters")?);
    let (entries, count) = (point.integer("entries")? as usize, point.integer("count")? as usize);
    let sample_count = context.size().pick(400, 4_000, 4_000);
    let input: Arc<Input> = context
        .input(&format!("{entries} paths"), |context| Input::generate(KEYS, entries, context.seed()))?;
    let sample = input.queries((KEYS, kind), sample_count, context.seed() + 1)?;
    let queries = input.queries((KEYS, kind), count, context.seed() + 2)?;
    let prices = Prices::default();
    let chosen = if filters == AUTO {
        let sampled = sampled(&sample);
        let request = Request {
            workload: Workload { queries: &sampled },
            prices,
            bits_per_key_max: BITS,
            current: None,
            overlapping_tables: 1,
            effort: Effort::Background,
            seed: 5,
            pause: Pause::default(),
        };
        choose(&input.set, &request).chosen.parts
    } else {
        parts(&format!("{filters}@{BITS}"))?
    };
    let measured = measure_filters(&input.set, &chosen, &sample, &queries)?;
    Ok(Row::new()
        .with("false_positive_rate", measured.rate)
        .with("bits_per_key", measured.bits_per_key)
        .with("built", text_of(&chosen)))
}
