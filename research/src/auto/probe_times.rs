//! The constants of [`tamis_filter::auto::ProbeTime`]: times of filters of a million keys.

use tamis_bench::{
    BenchError, Context, Definition, Point, Row, Size,
    filter::{Figures, Outcome, Plan},
};
use tamis_filter::{Budget, FilterSpec};

use crate::integers::{Length, Place, integer_input};

/// A filter of each kind of structure.
const FILTERS: [&str; 7] = [
    "blocked-bloom",
    "elastic",
    "prefix-bloom:bits=44",
    "surf-real:bits=4",
    "rosetta:probe-cost=0",
    "proteus:trie=12,prefix=44",
    "grafite",
];
const BITS: f64 = 16.0;
const QUERY_COUNT: usize = 200_000;
/// Integers of a range that one prefix answers mostly, and of one that needs several.
const SHORT: u64 = 16;
const LONG: u64 = 1 << 22;

/// The experiment.
pub(super) const PROBE_TIMES: Definition = Definition {
    name: "auto-probe-times",
    title: "Times of a probe by family",
    source: "",
    about: "Uniform integers without a key, 16 bits per key. `further_ns`: of each further step of a long range.",
    points,
    measure,
    plots: &[],
    paper: &[],
};

fn points(size: Size) -> Vec<Point> {
    let keys = size.pick(10_000_u64, 1_000_000, 1_000_000);
    FILTERS.map(|filter| Point::new().with("filter", filter).with("keys", keys)).to_vec()
}

fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let spec: FilterSpec = point.text("filter")?.parse()?;
    let keys = point.integer("keys")? as usize;
    let budget = if spec.family().name().starts_with("surf") {
        Budget::BY_PARAMETERS
    } else {
        Budget::bits_per_key(BITS)?
    };
    let figures = |length: Length, context: &mut Context<'_>| -> Result<Box<Figures>, BenchError> {
        let input =
            integer_input("uniform", (Place::Uniform, length), (keys, QUERY_COUNT, 0), context.seed());
        let plan = Plan { spec: &spec, seed: context.seed(), budget, input: &input };
        match plan.measure(context.clock())? {
            Outcome::Figures(figures) => Ok(figures),
            Outcome::Refused(reason) => Err(BenchError::other(reason)),
        }
    };
    let point = figures(Length::Point, context)?;
    let row = Row::new().with("point_ns", point.query.ns);
    if !spec.family().answers_ranges() {
        return Ok(row);
    }
    let short = figures(Length::Exact(SHORT), context)?;
    let long = figures(Length::Exact(LONG), context)?;
    let steps = (long.probes_per_query() - short.probes_per_query()).max(1.0);
    Ok(row.with("range_ns", short.query.ns).with("further_ns", (long.query.ns - short.query.ns) / steps))
}
