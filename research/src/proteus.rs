//! Proteus, which chooses its design from a sample: predicted and measured rates of every design (Figure 4 of the paper), and times.
//!
//! Each rate is predicted twice: from the measured queries, where only the model can be wrong, and from fresh samples of the
//! same distribution, where the sampling error adds. `bound` is the allowed error of the second: 0.003 plus three standard
//! errors of the sample.

use std::{collections::HashMap, hint::black_box, sync::Arc};

use tamis::Clock as _;
use tamis_filter::proteus::{BloomLayout, Design, Model, Prediction, Prices, ProteusBuilder, Stage};
use tamis_filter::{AlignedBytes, AnyFilter, Budget, Digester, Family, FilterBuilder as _, Samples};

use crate::filters;
use tamis_bench::filter::{Calibration, FilterInput, answers};
use tamis_bench::{BenchError, Context, Point, Row, Size, Value};

/// Bits per key, as in the paper.
const BITS: f64 = 10.0;
/// Prices that optimize the rate only.
const PRICES: Prices = Prices { probe: 0.0, read: 20_000.0, probe_cap: 16_384 };

/// The depths and prefix lengths of the designs of a family, by its name with `@`.
pub(crate) fn lengths(family: &str, size: Size) -> Vec<Value> {
    let pair = |depth: u64, prefix: u64| Value::List(vec![depth.into(), prefix.into()]);
    if family == "@1pbf" {
        return (1..=64).rev().step_by(size.pick(6, 2, 1)).map(|prefix| pair(0, prefix)).collect();
    }
    let step = size.pick(9, 4, 1);
    let first = u64::from(family == "@2pbf");
    let mut pairs = Vec::new();
    for depth in (first..64).step_by(step) {
        // Proteus designs without a Bloom filter.
        pairs.extend((first == 0 && depth > 0).then(|| pair(depth, 0)));
        pairs.extend((depth + 1..=64).rev().step_by(step).map(|prefix| pair(depth, prefix)));
    }
    pairs
}

/// Keys, queries, and the predictions for every design.
struct Known {
    input: Arc<FilterInput>,
    /// Predictions by depth and prefix length: from the measured queries, and from fresh samples.
    designs: HashMap<(u32, u32), (Design, Prediction, f64)>,
    /// The design chosen from the fresh samples, and its prediction.
    chosen: (Design, Prediction),
}

fn known(family: Family, point: &Point, context: &mut Context<'_>) -> Result<Known, BenchError> {
    let input = filters::input(point, context)?;
    let budget = Budget::bits_per_key(BITS)?;
    let (queries, samples) = (input.queries.key_ranges(), input.samples.key_ranges());
    let same = Model::new(&input.keys, Samples { queries: &queries });
    context.progress(0.2)?;
    let fresh = Model::new(&input.keys, Samples { queries: &samples });
    let mut designs = HashMap::new();
    let mut by_lengths = HashMap::new();
    for (design, prediction) in fresh.designs(family, budget, &PRICES)? {
        if is_listed(&design) {
            by_lengths.insert((design.first.depth(), design.prefix), prediction.fpr);
        }
    }
    context.progress(0.5)?;
    for (design, prediction) in same.designs(family, budget, &PRICES)? {
        let lengths = (design.first.depth(), design.prefix);
        if let (true, Some(fresh)) = (is_listed(&design), by_lengths.get(&lengths)) {
            designs.insert(lengths, (design, prediction, *fresh));
        }
    }
    let chosen = fresh.choose(family, budget, &PRICES)?;
    // Replaces the listed design with the same lengths: the chosen one may divide the budget differently.
    if let Some(prediction) = same.predict(family, &chosen.0, budget, &PRICES)? {
        designs.insert((chosen.0.first.depth(), chosen.0.prefix), (chosen.0, prediction, chosen.1.fpr));
    }
    Ok(Known { designs, chosen, input })
}

/// Scattered bits only, and equal shares, as in the figure of the paper.
fn is_listed(design: &Design) -> bool {
    let has_equal_shares = !matches!(design.first, Stage::Bloom { share, .. } if (share - 0.5).abs() > 1e-9);
    design.layout == BloomLayout::Spread && has_equal_shares
}

pub(crate) fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let family = Family::from_name(point.text("family")?)?;
    let (kind, key_count) = (point.text("kind")?, point.integer("keys")?);
    let name = format!("{family} {kind} {key_count} {}", point.integer("queries")?);
    let known = context.input(&name, |context| known(family, point, context))?;
    let lengths = (point.integer("depth")? as u32, point.integer("prefix")? as u32);
    let Some((design, prediction, fresh)) = known.designs.get(&lengths) else {
        return Ok(Row::new().with("refused", "the prefix set is larger than the budget"));
    };
    let mut builder = ProteusBuilder::new(family, PRICES, context.seed()).with_design(design);
    builder.add_all(&known.input.keys)?;
    let bytes = builder.finish(Budget::bits_per_key(BITS)?, Samples::NONE)?;
    let filter = AnyFilter::open(AlignedBytes::from(bytes.as_slice())).map_err(BenchError::other)?;
    context.progress(0.7)?;
    let digester = Digester::new(context.seed());
    let answers = answers(&filter, &digester, &known.input.keys, &known.input.queries);
    if answers.false_negatives > 0 {
        return Err(BenchError::other(format!("{design}: false negative, a range with a key was rejected")));
    }
    let fpr = answers.fpr();
    let error = (fresh * (1.0 - fresh) / point.number("samples")?).sqrt();
    Ok(Row::new()
        .with("fpr", fpr)
        .with("predicted_same", prediction.fpr)
        .with("predicted_fresh", *fresh)
        .with("apart", (fpr - prediction.fpr).abs())
        .with("apart_fresh", (fpr - fresh).abs())
        .with("bound", 0.003 + 3.0 * error)
        .with(
            "is_within",
            (fpr - prediction.fpr).abs() <= 0.003 && (fpr - fresh).abs() <= 0.003 + 3.0 * error,
        )
        .with("is_chosen", *design == known.chosen.0)
        .with("design", design.to_string())
        .with("probes", answers.probe_count as f64 / answers.query_count.max(1) as f64)
        .with("predicted_probes", prediction.probes)
        .with_digest(answers.digest))
}

/// The time of modelling and building by step: Table 2 of the paper.
pub(crate) fn measure_steps(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let family = Family::from_name(point.text("family")?)?;
    let input = filters::input(point, context)?;
    let queries = input.samples.key_ranges();
    let samples = Samples { queries: &queries };
    let budget = Budget::bits_per_key(BITS)?;
    let clock = context.clock();
    let ms = |start: std::time::Duration| (clock.now() - start).as_secs_f64() * 1e3;

    let start = clock.now();
    let mut builder = ProteusBuilder::new(family, PRICES, context.seed());
    builder.add_all(&input.keys)?;
    let copy_ms = ms(start);
    // A separate model copies the keys; the model of a builder does not.
    let start = clock.now();
    let chosen = builder.choose(budget, samples)?;
    let model_ms = ms(start);
    let model = Model::new(&input.keys, samples);
    let start = clock.now();
    black_box(model.choose(family, budget, &PRICES)?);
    let choose_ms = ms(start);
    let start = clock.now();
    let mut fixed = ProteusBuilder::new(family, PRICES, context.seed()).with_design(&chosen.0);
    fixed.add_all(&input.keys)?;
    black_box(fixed.finish(budget, Samples::NONE)?);
    let build_ms = ms(start);
    Ok(Row::new()
        .with("count_ms", (model_ms - choose_ms).max(0.0))
        .with("choose_ms", choose_ms)
        .with("model_ms", model_ms)
        .with("copy_ms", copy_ms)
        .with("build_ms", build_ms)
        .with("calibration_ns", Calibration::new(input.keys.len()).unit_ns(clock))
        .with("design", chosen.0.to_string()))
}
