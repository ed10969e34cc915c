//! The word list: the figures of the authors' Proteus program, which are parameters of the points, and those of this one.

use tamis_filter::Budget;

use crate::words::{self, UNIT_KEY_COUNT, reference_unit_ns};
use tamis_bench::filter::{Calibration, Outcome, Plan};
use tamis_bench::{BenchError, Context, Point, Row};

const FAMILY: &str = "proteus:probe-cost=0,probe-cap=16384";
/// Number of words that are keys.
const WORD_COUNT: u64 = 331_737;

pub(crate) fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let (query_set, bits) = (point.text("queries")?, point.integer("bits")?);
    let key_count = point.integer("keys")?;
    if !words::are_installed() {
        return Ok(Row::new().with("refused", words::MISSING));
    }
    let input = words::sampled_input(key_count as usize, query_set)?;
    let spec = FAMILY.parse()?;
    let budget = Budget::bits_per_key(bits as f64)?;
    let plan = Plan { spec: &spec, seed: context.seed(), budget, input: &input };
    let ours = match plan.measure_with(context.clock(), &Calibration::new(UNIT_KEY_COUNT))? {
        Outcome::Figures(figures) => figures,
        Outcome::Refused(reason) => return Err(BenchError::other(reason)),
    };
    let (fpr, build, query, model_ms) =
        (ours.answers.fpr(), ours.build.units, ours.query.units, ours.model_ms);
    let mut row = Outcome::Figures(ours).into_row()?;
    if key_count == WORD_COUNT {
        let ratio = |units: f64, name: &str| -> Result<f64, BenchError> {
            Ok(units / (point.number(name)? / reference_unit_ns(WORD_COUNT)))
        };
        let rate = point.number("reference_false_positives")? / point.number("reference_queries")?;
        row.fields.set("reference_fpr", rate);
        row.fields.set("fpr_ratio", fpr / rate);
        row.fields.set("query_ratio", ratio(query, "reference_query_ns")?);
        row.fields.set("build_ratio", ratio(build, "reference_build_ns")?);
        row.fields.set("model_ms", model_ms);
    }
    row.fields.set("fpr", fpr);
    Ok(row)
}
