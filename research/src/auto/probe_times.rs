//! The constants of [`tamis_filter::auto::ProbeTime`]: times of filters of a million keys.

use tamis_bench::{
    BenchError, Context, Point, Row,
    filter::{Figures, Outcome, Plan},
};
use tamis_filter::{Budget, FilterSpec};

use crate::filters;

const BITS: f64 = 16.0;
/// Integers of a range that one prefix answers mostly, and of one that needs several.
const SHORT: u64 = 16;
const LONG: u64 = 1 << 22;

pub(crate) fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let spec: FilterSpec = point.text("filter")?.parse()?;
    let budget = if spec.family().name().starts_with("surf") {
        Budget::BY_PARAMETERS
    } else {
        Budget::bits_per_key(BITS)?
    };
    let figures = |count: u64, context: &mut Context<'_>| -> Result<Box<Figures>, BenchError> {
        let point = point.clone().with("kind", format!("exact_{count}"));
        let input = filters::input(&point, context)?;
        let plan = Plan { spec: &spec, seed: context.seed(), budget, input: &input };
        match plan.measure(context.clock())? {
            Outcome::Figures(figures) => Ok(figures),
            Outcome::Refused(reason) => Err(BenchError::other(reason)),
        }
    };
    let row = Row::new().with("point_ns", figures(1, context)?.query.ns);
    if !spec.family().answers_ranges() {
        return Ok(row);
    }
    let short = figures(SHORT, context)?;
    let long = figures(LONG, context)?;
    let steps = (long.probes_per_query() - short.probes_per_query()).max(1.0);
    Ok(row.with("range_ns", short.query.ns).with("further_ns", (long.query.ns - short.query.ns) / steps))
}
