//! Predicted and measured rates of every design: Figure 4 of the paper.
//!
//! Each rate is predicted twice: from the measured queries, where only the model can be wrong, and from fresh samples of the
//! same distribution, where the sampling error adds. `bound` is the allowed error of the second: 0.003 plus three standard
//! errors of the sample.

use std::collections::HashMap;

use tamis_filter::proteus::{BloomLayout, Design, Model, Prediction, Prices, ProteusBuilder, SetForm, Stage};
use tamis_filter::{AlignedBytes, AnyFilter, Budget, Digester, Family, FilterBuilder as _, Samples};

use crate::integers::{Length, Place, integer_input};
use tamis_bench::filter::{FilterInput, answers};
use tamis_bench::{Axis, BenchError, Context, Definition, Plot, Point, Row, Size, published};

/// Bits per key, as in the paper.
const BITS: f64 = 10.0;
/// Number of queries in a fresh sample.
const SAMPLE_COUNT: usize = 10_000;
/// Prices that optimize the rate only.
const PRICES: Prices = Prices { probe: 0.0, read: 20_000.0, probe_cap: 16_384 };

/// 1PBF by prefix length.
pub(super) const FIGURE_4A: Definition = Definition {
    name: "proteus-figure-4a",
    title: "1PBF: predicted and measured rates of every prefix length",
    source: "Proteus, Figure 4a",
    about: "Uniform keys, 10 bits per key. First panel: uniform queries of different maximum lengths. Second panel: queries of up to 128 values at different distances from a key. Long prefixes are bad for long queries, short prefixes for queries near keys.",
    points: points_4a,
    measure: |point, context| measure(Family::OnePrefixBloom, point, context),
    plots: &[
        Plot {
            name: "measured",
            title: "Measured rate",
            x: "prefix",
            y: "fpr",
            series: "max",
            panel: "kind",
            ..Plot::NEW
        },
        Plot {
            name: "predicted",
            title: "Predicted rate from fresh samples",
            x: "prefix",
            y: "predicted_fresh",
            series: "max",
            panel: "kind",
            ..Plot::NEW
        },
        ERROR_PLOT,
    ],
    paper: &[],
};

const ERROR_PLOT: Plot = Plot {
    name: "error",
    title: "Error of the prediction from the measured queries",
    x: "prefix",
    y: "apart",
    series: "depth",
    panel: "kind",
    ..Plot::NEW
};

/// Heat maps of predicted rates, measured rates, and errors.
const HEAT_PLOTS: &[Plot] = &[
    Plot {
        name: "predicted",
        title: "Predicted rate from fresh samples, by both lengths",
        x: "prefix",
        y: "depth",
        heat: "predicted_fresh",
        ..Plot::NEW
    },
    Plot {
        name: "measured",
        title: "Measured rate, by both lengths",
        x: "prefix",
        y: "depth",
        heat: "fpr",
        ..Plot::NEW
    },
    Plot {
        name: "apart",
        title: "Error of the prediction from the measured queries",
        x: "prefix",
        y: "depth",
        heat: "apart",
        y_axis: Axis::Linear,
        ..Plot::NEW
    },
];

/// 2PBF by both prefix lengths.
pub(super) const FIGURE_4B: Definition = Definition {
    name: "proteus-figure-4b",
    title: "2PBF: predicted and measured rates of every pair of prefix lengths",
    source: "Proteus, Figure 4b",
    about: "Normal keys, 10 bits per key, half of them for each filter. Queries alternate between up to 32 values near a key and up to 2^30 values anywhere. The best pair in the paper is 26 and 57 bits.",
    points: |size| pair_points(size, "2pbf"),
    measure: |point, context| measure(Family::TwoPrefixBloom, point, context),
    plots: HEAT_PLOTS,
    paper: &[published("depth=26; prefix=57", "fpr", 0.123)],
};

/// Proteus by depth and prefix length.
pub(super) const FIGURE_4C: Definition = Definition {
    name: "proteus-figure-4c",
    title: "Proteus: predicted and measured rates of every design",
    source: "Proteus, Figure 4c",
    about: "The workload of Figure 4b. Depths whose prefix set exceeds the budget have no rate. The best design in the paper is a trie of depth 24 with prefixes of 58 bits.",
    points: |size| pair_points(size, "proteus"),
    measure: |point, context| measure(Family::Proteus, point, context),
    plots: HEAT_PLOTS,
    paper: &[published("depth=24; prefix=58", "fpr", 0.0491)],
};

fn point(size: Size, kind: &str, max: u64) -> Point {
    Point::new()
        .with("keys", size.pick(5_000_u64, 100_000, 1_000_000))
        .with("queries", size.pick(4_000_u64, 50_000, 200_000))
        .with("kind", kind)
        .with("max", max)
}

fn points_4a(size: Size) -> Vec<Point> {
    let step = size.pick(6, 2, 1);
    let kinds = [
        ("range", [1_u64 << 2, 1 << 8, 1 << 14, 1 << 20]),
        ("distance", [1 << 4, 1 << 10, 1 << 16, 1 << 22]),
    ];
    let mut points = Vec::new();
    for (kind, maxima) in kinds {
        for max in maxima {
            let lengths = (1..=64_u64).rev().step_by(step);
            points.extend(
                lengths.map(|prefix| point(size, kind, max).with("depth", 0_u64).with("prefix", prefix)),
            );
        }
    }
    points
}

fn pair_points(size: Size, family: &str) -> Vec<Point> {
    let step = size.pick(9, 4, 1);
    let first = u64::from(family == "2pbf");
    let mut points = Vec::new();
    for depth in (first..64).step_by(step) {
        // Proteus designs without a Bloom filter.
        if first == 0 && depth > 0 {
            points.push(point(size, "split", 32).with("depth", depth).with("prefix", 0_u64));
        }
        let prefixes = (depth + 1..=64).rev().step_by(step);
        points.extend(
            prefixes.map(|prefix| point(size, "split", 32).with("depth", depth).with("prefix", prefix)),
        );
    }
    points
}

/// Keys, queries, and the predictions for every design.
struct Known {
    input: FilterInput,
    /// Predictions by depth and prefix length: from the measured queries, and from fresh samples.
    designs: HashMap<(u32, u32), (Design, Prediction, f64)>,
    /// The design chosen from the fresh samples, and its prediction.
    chosen: (Design, Prediction),
}

fn known(family: Family, point: &Point, context: &mut Context<'_>) -> Result<Known, BenchError> {
    let (key_count, query_count) = (point.integer("keys")? as usize, point.integer("queries")? as usize);
    let max = point.integer("max")?;
    let (set, place, length) = match point.text("kind")? {
        "range" => ("uniform", Place::Uniform, Length::UpTo(max)),
        "distance" => ("uniform", Place::Correlated(max), Length::UpTo(1 << 7)),
        _ => ("normal", Place::Split(1 << 30), Length::UpTo(max)),
    };
    let counts = (key_count, query_count, SAMPLE_COUNT);
    let input = integer_input(set, (place, length), counts, context.seed());
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

fn measure(family: Family, point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let name = format!(
        "{family} {} {} {} {}",
        point.text("kind")?,
        point.integer("max")?,
        point.integer("keys")?,
        point.integer("queries")?
    );
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
    let error = (fresh * (1.0 - fresh) / SAMPLE_COUNT as f64).sqrt();
    let form = match design.first {
        Stage::Set { form: SetForm::Trie, .. } => "trie",
        Stage::Set { form: SetForm::EliasFano | SetForm::MarkedEliasFano, .. } => "elias-fano",
        Stage::Set { form: SetForm::Bitmap, .. } => "bitmap",
        Stage::Bloom { .. } => "bloom",
        Stage::None => "none",
    };
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
        .with("form", form)
        .with("probes", answers.probe_count as f64 / answers.query_count.max(1) as f64)
        .with("predicted_probes", prediction.probes)
        .with_digest(answers.digest))
}
