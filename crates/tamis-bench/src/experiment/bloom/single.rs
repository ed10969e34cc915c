//! One filter, one digest, several bits: the paper's Tables 2 and 3 and Figures 2 and 3.
//!
//! Filters of 10,000 keys at 10 bits each, absent keys. Schemes that share one digest are compared with as many digests as
//! bits; "units" are seven filters in each of which a key sets one bit, as in the paper's ElasticBF, which asks them with two digests.

use tamis_filter::{Budget, FilterSpec, KeySet};
use tamis_workload::SplitMix64;

use super::schemes::{self, BITS_PER_KEY, Scheme};
use crate::{
    Axis, BenchError, Context, Definition, Given, PaperFigure, Plot, Point, Row, Size,
    filter::{FilterInput, Plan, Ranges},
};

const KEY_COUNT: u64 = 10_000;

/// Names of the paper for what is built here.
const SCHEMES: [(&str, &str); 4] = [
    ("all k", Scheme::IndependentDigests.name()),
    ("rotation", Scheme::RotatedDigest.name()),
    ("double", "bloom:probes=7"),
    ("blocked-bloom", "blocked-bloom"),
];

/// Table 2: rates.
pub(super) const TABLE_2: Definition = Definition {
    name: "bloom-table-2",
    title: "Rates with one digest and with seven",
    source: "Hash sharing, Table 2",
    about: "10,000 keys of 512 bytes, 10 bits each, 7 bits set by a key. One digest whose bits are derived errs as rarely as seven digests; 0.819 % is the formula's rate. Beside stand the paper's seven digests and its MurmurHash64; its other hashes err at 0.79 % (XXHash) to 0.92 % (MD5).",
    points: points_2,
    measure,
    plots: &[Plot { name: "rate", title: "Rate of false positives", x: "scheme", y: "fpr", ..Plot::NEW }],
    paper: &[
        PaperFigure { parameters: &[("scheme", Given::Text("all k"))], metric: "fpr", value: 0.00899 },
        PaperFigure { parameters: &[("scheme", Given::Text("rotation"))], metric: "fpr", value: 0.00853 },
    ],
};

fn point(scheme: &str, family: &str, key_bytes: u64, size: Size) -> Point {
    Point::new()
        .with("scheme", scheme)
        .with("family", family)
        .with("key_bytes", key_bytes)
        .with("queries", size.pick(20_000_u64, 300_000, 2_000_000))
}

fn points_2(size: Size) -> Vec<Point> {
    SCHEMES.iter().map(|(scheme, family)| point(scheme, family, 512, size)).collect()
}

/// Figure 2: times by key size.
pub(super) const FIGURE_2: Definition = Definition {
    name: "bloom-figure-2",
    title: "A question's time with one digest and with seven, by key size",
    source: "Hash sharing, Figure 2",
    about: "The longer the key, the more seven digests cost; with one the time grows with that digest only. The paper prints this figure without numbers.",
    points: points_by_key_size,
    measure,
    plots: &[TIME_PLOT],
    paper: &[],
};

const TIME_PLOT: Plot = Plot {
    name: "time",
    title: "Nanoseconds of a question, digest included",
    x: "key_bytes",
    y: "query_ns",
    series: "scheme",
    x_axis: Axis::Log,
    ..Plot::NEW
};

fn points_by_key_size(size: Size) -> Vec<Point> {
    let key_sizes = size.pick(vec![8, 512], vec![8, 64, 512], vec![8, 16, 32, 64, 128, 256, 512]);
    let of_size =
        |key_bytes| SCHEMES.iter().map(move |(scheme, family)| point(scheme, family, key_bytes, size));
    key_sizes.into_iter().flat_map(of_size).collect()
}

/// Table 3: rates of filters in units.
pub(super) const TABLE_3: Definition = Definition {
    name: "bloom-table-3",
    title: "Rates of a filter in seven units",
    source: "Hash sharing, Table 3",
    about: "Seven units, each with a seventh of the bits and one bit set by a key, asked with one digest that is mixed for each, and with two (double hashing); beside a filter in one piece.",
    points: points_3,
    measure,
    plots: &[Plot { name: "rate", title: "Rate of false positives", x: "scheme", y: "fpr", ..Plot::NEW }],
    paper: &[
        PaperFigure {
            parameters: &[("scheme", Given::Text("units, one digest"))],
            metric: "fpr",
            value: 0.00829,
        },
        PaperFigure {
            parameters: &[("scheme", Given::Text("units, two digests"))],
            metric: "fpr",
            value: 0.00842,
        },
    ],
};

fn points_3(size: Size) -> Vec<Point> {
    UNIT_SCHEMES.iter().map(|(scheme, family)| point(scheme, family, 512, size)).collect()
}

/// Filters in units, and one in one piece.
const UNIT_SCHEMES: [(&str, &str); 3] = [
    ("units, one digest", "elastic:units=7,probes=1"),
    ("units, two digests", Scheme::UnitsOfTwoDigests.name()),
    ("double", "bloom:probes=7"),
];

/// Figure 3: units and double hashing by key size.
pub(super) const FIGURE_3: Definition = Definition {
    name: "bloom-figure-3",
    title: "A question's time in units, with one digest and with two, by key size",
    source: "Hash sharing, Figure 3",
    about: "Units asked with one digest, with two (double hashing), and a filter in one piece. In the paper double hashing takes up to three times as long for long keys, with a cheap first hash and a dearer second one (MurmurHash64A, and XXH64 or CRC); here both are the store's.",
    points: points_figure_3,
    measure,
    plots: &[TIME_PLOT],
    paper: &[],
};

fn points_figure_3(size: Size) -> Vec<Point> {
    let key_sizes = size.pick(vec![512], vec![8, 64, 512], vec![8, 16, 32, 64, 128, 256, 512]);
    let of_size =
        |key_bytes| UNIT_SCHEMES.iter().map(move |(scheme, family)| point(scheme, family, key_bytes, size));
    key_sizes.into_iter().flat_map(of_size).collect()
}

/// Keys below the count are there, those behind it are asked for.
fn input(key_bytes: usize, query_count: u64, seed: u64) -> Result<FilterInput, BenchError> {
    let key = |number: u64| {
        let mut random = SplitMix64::new(number ^ seed << 32);
        let mut key: Vec<u8> = Vec::with_capacity(key_bytes + 8);
        while key.len() < key_bytes {
            key.extend_from_slice(&random.next_u64().to_be_bytes());
        }
        key.truncate(key_bytes);
        key
    };
    let mut sorted: Vec<Vec<u8>> = (0..KEY_COUNT).map(key).collect();
    sorted.sort();
    let mut keys = KeySet::new();
    sorted.iter().try_for_each(|key| keys.push(key))?;
    let mut queries = Ranges::default();
    for number in 0..query_count {
        let key = key(KEY_COUNT + number);
        queries.push(&key, &key);
    }
    Ok(FilterInput { keys: keys.into(), queries, ..FilterInput::default() })
}

fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let (key_bytes, query_count) = (point.integer("key_bytes")?, point.integer("queries")?);
    // Keys of 512 bytes would fill a gigabyte: fewer long ones say as much about time.
    let query_count = query_count.min((1 << 29) / key_bytes.max(1));
    let input = context.input(&format!("single {key_bytes} {query_count}"), |context| {
        input(key_bytes as usize, query_count, context.seed())
    })?;
    if let Some(scheme) = Scheme::from_name(point.text("family")?) {
        return schemes::measure(scheme, &input, context);
    }
    let spec: FilterSpec = point.text("family")?.parse()?;
    let budget = Budget::bits_per_key(BITS_PER_KEY)?;
    Plan { spec: &spec, seed: context.seed(), budget, input: &input }.measure(context.clock())?.into_row()
}
