//! The word list: all figures of the authors' Proteus program and of this one.

use tamis_filter::Budget;

use crate::words::{MISSING, UNIT_KEY_COUNT, reference_unit_ns, words, words_input};
use tamis_bench::filter::{Calibration, FilterInput, Outcome, Plan, Ranges};
use tamis_bench::{Axis, BenchError, Context, Definition, Plot, Point, Row, Size};

const FAMILY: &str = "proteus:probe-cost=0,probe-cap=16384";
/// One query in this many is in the sample; the others are measured. (The sample of the reference is unknown.)
const QUERIES_PER_SAMPLE: usize = 16;
/// Number of words that are keys.
pub(super) const WORD_COUNT: u64 = 331_737;

/// The experiment.
pub(super) const REFERENCE: Definition = Definition {
    name: "proteus-reference-words",
    title: "Proteus compared with the program of its authors: words",
    source: "",
    about: "331,737 words as keys; other words as points, or as ranges to the word with its last byte incremented. A ratio below 1 means fewer false positives or less time than the reference. Times are compared in calibration units; build times exclude the model.",
    points,
    measure,
    plots: &[Plot {
        name: "rates",
        title: "False positive rate by bits per key",
        x: "bits",
        y: "fpr",
        series: "queries",
        y_axis: Axis::Log,
        ..Plot::NEW
    }],
    paper: &[],
};

/// The figures of the reference program for a budget: false positives, number of queries, nanoseconds of building per key and
/// of a query, milliseconds of its model.
struct Reference {
    queries: &'static str,
    bits: u64,
    false_positives: f64,
    asked: f64,
    build_ns: f64,
    query_ns: f64,
    model_ms: f64,
}

const fn points_row(bits: u64, found: f64, build_ns: f64, model_ms: f64, query_ns: f64) -> Reference {
    let queries = "words_points";
    Reference { queries, bits, false_positives: found, asked: 331_736.0, build_ns, query_ns, model_ms }
}

const fn ranges_row(bits: u64, found: f64, build_ns: f64, model_ms: f64, query_ns: f64) -> Reference {
    let queries = "words_ranges";
    Reference { queries, bits, false_positives: found, asked: 226_301.0, build_ns, query_ns, model_ms }
}

const REFERENCES: [Reference; 8] = [
    points_row(12, 1_053.0, 266.70, 154.9, 93.5),
    points_row(16, 151.0, 328.11, 160.4, 96.1),
    points_row(20, 35.0, 406.09, 166.7, 97.4),
    points_row(24, 4.0, 500.78, 172.2, 99.6),
    ranges_row(12, 129_579.0, 245.11, 79.8, 10_708.3),
    ranges_row(16, 110_165.0, 183.53, 82.6, 466.3),
    ranges_row(20, 101_032.0, 174.11, 81.7, 344.5),
    ranges_row(24, 78_483.0, 240.85, 82.7, 727.6),
];

fn points(size: Size) -> Vec<Point> {
    let keys = size.pick(10_000, WORD_COUNT, WORD_COUNT);
    let is_chosen = |reference: &&Reference| size != Size::Small || reference.bits == 12;
    let of = |reference: &Reference| {
        Point::new().with("keys", keys).with("queries", reference.queries).with("bits", reference.bits)
    };
    REFERENCES.iter().filter(is_chosen).map(of).collect()
}

/// Returns the first words, their queries, and a separate sample of queries.
pub(super) fn input(key_count: u64, query_set: &str) -> Result<Option<FilterInput>, BenchError> {
    let Some((mut keys, mut queries)) = words()? else { return Ok(None) };
    keys.truncate(key_count as usize);
    queries.truncate(key_count as usize);
    let whole = words_input(&keys, &queries, query_set)?;
    let (mut queries, mut samples) = (Ranges::default(), Ranges::default());
    for (number, (lower, upper)) in whole.queries.iter().enumerate() {
        let target = if number % QUERIES_PER_SAMPLE == 0 { &mut samples } else { &mut queries };
        target.push(lower, upper);
    }
    Ok(Some(FilterInput { queries, samples, ..whole }))
}

fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let (query_set, bits) = (point.text("queries")?, point.integer("bits")?);
    let key_count = point.integer("keys")?;
    let Some(input) = input(key_count, query_set)? else {
        return Ok(Row::new().with("refused", MISSING));
    };
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
    let is_same = |reference: &&Reference| {
        (reference.queries, reference.bits, WORD_COUNT) == (query_set, bits, key_count)
    };
    let found = REFERENCES.iter().find(is_same);
    if let Some(reference) = found {
        let in_units = |nanoseconds: f64| nanoseconds / reference_unit_ns(WORD_COUNT);
        let rate = reference.false_positives / reference.asked;
        row.fields.set("reference_fpr", rate);
        row.fields.set("fpr_ratio", fpr / rate);
        row.fields.set("query_ratio", query / in_units(reference.query_ns));
        row.fields.set("build_ratio", build / in_units(reference.build_ns));
        row.fields.set("reference_model_ms", reference.model_ms);
        row.fields.set("model_ms", model_ms);
    }
    row.fields.set("fpr", fpr);
    Ok(row)
}
