//! What elastic units save: false reads with half of the memory that all units would take.
//!
//! A hundred tables, absent keys whose table is drawn by rank (Zipf, 0.99) or evenly. A store that counts lookups in vain
//! and makes one move at a time learns which units to load; counted false reads of real filters stand beside a plain filter
//! of the same memory and beside the best choice computed from the drawing's own law.

use tamis_filter::{
    AnyFilter, Budget, Digester, Filter as _, FilterSpec, Probe, Samples,
    bloom::elastic::{
        ElasticFilter,
        allocate::{TableUnits, best_allocation, next_move},
    },
};
use tamis_workload::SplitMix64;

use crate::{BenchError, Context, Definition, Given, OperationDigest, PaperFigure, Plot, Point, Row, Size};

const TABLE_COUNT: usize = 100;
const HYSTERESIS: f64 = 1.5;
/// Lookups between two moves.
const MOVE_INTERVAL: u64 = 500;
/// What a count is worth one interval later.
const DECAY: f64 = 0.998;

/// The experiment.
pub(super) const ELASTIC: Definition = Definition {
    name: "bloom-elastic",
    title: "False reads of elastic filters with half of the memory",
    source: "",
    about: "Absent keys over 100 tables. Where a few tables are asked most, loading their units first saves four in ten of a plain filter's false reads; where all are asked alike, nothing is lost.",
    points,
    measure,
    plots: &[Plot {
        name: "reads",
        title: "False reads, a plain filter's being 1",
        x: "unit_bits",
        y: "of_plain",
        series: "asked",
        ..Plot::NEW
    }],
    paper: &[
        PaperFigure { parameters: &[("asked", Given::Text("zipf"))], metric: "of_plain", value: 0.62 },
        PaperFigure { parameters: &[("asked", Given::Text("evenly"))], metric: "of_plain", value: 1.03 },
    ],
};

fn points(size: Size) -> Vec<Point> {
    let mut points = Vec::new();
    for asked in ["zipf", "evenly"] {
        for (unit_bits, units) in [(2_u64, 6_u64), (3, 4), (4, 4)] {
            points.push(
                Point::new()
                    .with("asked", asked)
                    .with("unit_bits", unit_bits)
                    .with("units", units)
                    .with("keys_per_table", size.pick(1_000_u64, 10_000, 20_000))
                    .with("lookups", size.pick(400_000_u64, 2_000_000, 10_000_000)),
            );
        }
    }
    points
}

/// The tables' filters and what is loaded of them.
struct Tables {
    elastic: Vec<ElasticFilter<Vec<u8>>>,
    plain: Vec<AnyFilter<Vec<u8>>>,
    state: Vec<TableUnits>,
    budget_bytes: u64,
}

fn key(table: usize, number: u64) -> [u8; 16] {
    let word = SplitMix64::new(number << 8 | table as u64).next_u64();
    let mut key = [0; 16];
    let (front, back) = key.split_at_mut(8);
    front.copy_from_slice(&(table as u64).to_be_bytes());
    back.copy_from_slice(&word.to_be_bytes());
    key
}

impl Tables {
    fn build(point: &Point, seed: u64) -> Result<Self, BenchError> {
        let (unit_bits, units) = (point.number("unit_bits")?, point.number("units")?);
        let key_count = point.integer("keys_per_table")?;
        let [elastic_spec, plain_spec]: &[FilterSpec; 2] =
            &[format!("elastic:units={units}").parse()?, "cache-local".parse()?];
        let (mut elastic, mut plain, mut state) = (Vec::new(), Vec::new(), Vec::new());
        for table in 0..TABLE_COUNT {
            let mut keys: Vec<_> = (0..key_count).map(|number| key(table, number)).collect();
            keys.sort_unstable();
            let build = |spec: &FilterSpec, bits: f64| {
                let mut builder = spec.builder(seed)?;
                keys.iter().try_for_each(|key| builder.add(key))?;
                let bytes = builder.finish(Budget::bits_per_key(bits)?, Samples::NONE)?;
                AnyFilter::open(bytes).map_err(|error| BenchError::other(error.to_string()))
            };
            if let AnyFilter::Elastic(filter) = build(elastic_spec, unit_bits * units)? {
                // Units are whole lines: the plain filter has as many as half of the units.
                let bytes = filter.header().unit_bytes() * u64::from(filter.header().unit_count()) / 2;
                plain.push(build(plain_spec, bytes as f64 * 8.0 / key_count as f64)?);
                elastic.push(filter);
            }
        }
        for filter in &elastic {
            let header = filter.header();
            state.push(TableUnits {
                hotness: 0.0,
                unit_bytes: header.unit_bytes(),
                unit_fpr: header.unit_fpr(),
                unit_count: header.unit_count(),
                loaded_count: 0,
            });
        }
        let all: u64 = state.iter().map(|table| table.unit_bytes * u64::from(table.unit_count)).sum();
        Ok(Self { elastic, plain, state, budget_bytes: all / 2 })
    }

    /// Whether so many units of a table admit a key.
    fn admits(&self, table: usize, loaded_count: u32, probe: &Probe<'_>) -> bool {
        self.elastic.get(table).is_none_or(|filter| filter.may_contain_loaded(probe, loaded_count))
    }

    fn make_move(&mut self) {
        self.state.iter_mut().for_each(|table| table.hotness *= DECAY);
        let Some(step) = next_move(&self.state, self.budget_bytes, HYSTERESIS) else { return };
        for table in step.unload {
            if let Some(table) = self.state.get_mut(table) {
                table.loaded_count -= 1;
            }
        }
        if let Some(table) = step.load.and_then(|table| self.state.get_mut(table)) {
            table.loaded_count += 1;
        }
    }
}

/// Lookups draw their table by its share.
fn draw(cumulative: &[f64], random: &mut SplitMix64) -> usize {
    let place = random.unit() * cumulative.last().copied().unwrap_or(0.0);
    cumulative.partition_point(|sum| *sum <= place).min(TABLE_COUNT - 1)
}

fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let seed = context.seed();
    let mut tables = Tables::build(point, seed)?;
    let is_zipf = point.text("asked")? == "zipf";
    let shares: Vec<f64> =
        (1..=TABLE_COUNT).map(|rank| if is_zipf { (rank as f64).powf(-0.99) } else { 1.0 }).collect();
    let cumulative: Vec<f64> = shares
        .iter()
        .scan(0.0, |sum, share| {
            *sum += share;
            Some(*sum)
        })
        .collect();
    let best = {
        let known: Vec<_> = tables
            .state
            .iter()
            .zip(&shares)
            .map(|(table, share)| TableUnits { hotness: *share, ..*table })
            .collect();
        best_allocation(&known, tables.budget_bytes)
    };
    let (lookup_count, key_count) = (point.integer("lookups")?, point.integer("keys_per_table")?);
    let digester = Digester::new(seed);
    let mut random = SplitMix64::new(seed + 1);
    let (mut learned, mut plain, mut optimum) = (0_u64, 0_u64, 0_u64);
    let mut digest = OperationDigest::default();
    // The first half teaches, the second counts; moves go on.
    for lookup in 0..lookup_count {
        let table = draw(&cumulative, &mut random);
        let key = key(table, key_count + random.below(1 << 40));
        let probe = Probe::new(&key, &digester);
        let loaded_count = tables.state.get(table).map_or(0, |table| table.loaded_count);
        if lookup >= lookup_count / 2 {
            learned += u64::from(tables.admits(table, loaded_count, &probe));
            optimum += u64::from(tables.admits(table, best.get(table).copied().unwrap_or(0), &probe));
            plain += u64::from(tables.plain.get(table).is_none_or(|filter| filter.may_contain(&probe)));
            digest.add_bytes(&key);
        }
        if let Some(table) = tables.state.get_mut(table) {
            table.hotness += 1.0;
        }
        if lookup % MOVE_INTERVAL == 0 {
            tables.make_move();
        }
        if lookup % (1 << 18) == 0 {
            context.progress(lookup as f64 / lookup_count as f64)?;
        }
    }
    Ok(Row::new()
        .with("false_reads", learned)
        .with("false_reads_plain", plain)
        .with("false_reads_optimum", optimum)
        .with("of_plain", learned as f64 / (plain as f64).max(1.0))
        .with("of_optimum", learned as f64 / (optimum as f64).max(1.0))
        .with_digest(digest.finish()))
}
