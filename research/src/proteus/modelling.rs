//! The time of modelling and building by step: Table 2 of the paper.

use std::hint::black_box;

use tamis::Clock as _;
use tamis_filter::proteus::{Model, Prices, ProteusBuilder};
use tamis_filter::{Budget, Family, FilterBuilder as _, Samples};

use crate::filters;
use tamis_bench::filter::Calibration;
use tamis_bench::{BenchError, Context, Point, Row};

const BITS: f64 = 10.0;

pub(crate) fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let family = Family::from_name(point.text("family")?)?;
    let input = filters::input(point, context)?;
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
