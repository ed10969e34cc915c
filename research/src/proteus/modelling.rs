//! The time of modelling and building by step: Table 2 of the paper.

use std::hint::black_box;

use tamis::Clock as _;
use tamis_filter::proteus::{Model, Prices, ProteusBuilder};
use tamis_filter::{Budget, Family, FilterBuilder as _, Samples};

use crate::integers::{Length, Place, integer_input};
use tamis_bench::filter::Calibration;
use tamis_bench::{BenchError, Context, Definition, Plot, Point, Row, Size, published};

const BITS: f64 = 10.0;
const SAMPLE_COUNT: usize = 20_000;

/// Table 2.
pub(super) const TABLE_2: Definition = Definition {
    name: "proteus-table-2",
    title: "Modelling and building by step",
    source: "Proteus, Table 2",
    about: "Normal keys, 10 bits per key, 20,000 queries of up to 2^20 values near keys. `count_ms`: one pass through keys and sample; `choose_ms`: cost of every design; `build_ms`: building the chosen filter.",
    points,
    measure,
    plots: &[Plot {
        name: "model",
        title: "Milliseconds of modelling",
        x: "family",
        y: "model_ms",
        series: "keys",
        ..Plot::NEW
    }],
    paper: &[
        published("family=1pbf", "count_ms", 41.0),
        published("family=1pbf", "choose_ms", 1.0),
        published("family=1pbf", "build_ms", 3139.0),
        published("family=2pbf", "count_ms", 113.0),
        published("family=2pbf", "choose_ms", 884.0),
        published("family=2pbf", "build_ms", 3239.0),
        published("family=proteus", "count_ms", 103.0),
        published("family=proteus", "choose_ms", 2.0),
        published("family=proteus", "build_ms", 3130.0),
    ],
};

fn points(size: Size) -> Vec<Point> {
    let key_count = size.pick(20_000_u64, 1_000_000, 10_000_000);
    let point = |family: &str| Point::new().with("keys", key_count).with("family", family);
    ["1pbf", "2pbf", "proteus"].map(point).to_vec()
}

fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let key_count = point.integer("keys")? as usize;
    let family = Family::from_name(point.text("family")?)?;
    let input = context.input(&format!("normal {key_count}"), |context| {
        let counts = (key_count, 0, SAMPLE_COUNT);
        let kind = (Place::Correlated(1024), Length::UpTo(1 << 20));
        Ok(integer_input("normal", kind, counts, context.seed()))
    })?;
    let queries = input.samples.key_ranges();
    let samples = Samples { queries: &queries };
    let budget = Budget::bits_per_key(BITS)?;
    let prices = Prices { probe: 0.0, probe_cap: 16_384, ..Prices::DEFAULT };
    let clock = context.clock();
    let ms = |start: std::time::Duration| (clock.now() - start).as_secs_f64() * 1e3;

    let start = clock.now();
    let mut builder = ProteusBuilder::new(family, prices, context.seed());
    builder.add_all(&input.keys)?;
    let copy_ms = ms(start);
    // A separate model copies the keys; the model of a builder does not.
    let start = clock.now();
    let chosen = builder.choose(budget, samples)?;
    let model_ms = ms(start);
    let model = Model::new(&input.keys, samples);
    let start = clock.now();
    black_box(model.choose(family, budget, &prices)?);
    let choose_ms = ms(start);
    let start = clock.now();
    let mut fixed = ProteusBuilder::new(family, prices, context.seed()).with_design(&chosen.0);
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
