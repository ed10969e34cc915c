//! One filter, one digest, several bits: Tables 2 and 3 and Figures 2 and 3 of the paper.
//!
//! Filters of 10,000 keys at 10 bits per key, absent keys. Schemes with one digest are compared with one digest per bit.
//! "Units" are seven filters in which each key sets one bit, as in ElasticBF, which the paper probes with two digests.

use tamis_filter::KeySet;
use tamis_workload::SplitMix64;

use crate::forms::{self, Scheme};
use tamis_bench::{
    Axis, BenchError, Context, Definition, Plot, Point, Row, Size,
    filter::{FilterInput, Ranges},
    published,
};

const KEY_COUNT: u64 = 10_000;
/// The size of all compared filters.
const BITS_PER_KEY: f64 = 10.0;

/// The names of the paper and the schemes here.
const SCHEMES: [(&str, &str); 4] = [
    ("all k", Scheme::IndependentDigests.name()),
    ("rotation", Scheme::RotatedDigest.name()),
    ("double", Scheme::SevenOfDoubleHashing.name()),
    ("blocked-bloom", "blocked-bloom"),
];

/// Table 2: rates.
pub(super) const TABLE_2: Definition = Definition {
    name: "bloom-table-2",
    title: "Rates with one digest and with seven",
    source: "Hash sharing, Table 2",
    about: "10,000 keys of 512 bytes, 10 bits per key, 7 probes. One digest with derived bits has the same rate as seven digests; the formula gives 0.819 %. The published values are those of seven digests and of MurmurHash64; the other hashes of the paper have 0.79 % (XXHash) to 0.92 % (MD5).",
    points: points_2,
    measure,
    plots: &[Plot { name: "rate", title: "False positive rate", x: "scheme", y: "fpr", ..Plot::NEW }],
    paper: &[published("scheme=all k", "fpr", 0.00899), published("scheme=rotation", "fpr", 0.00853)],
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
    title: "Query time with one digest and with seven, by key size",
    source: "Hash sharing, Figure 2",
    about: "The cost of seven digests grows with the length of the key; with one digest the time grows by that digest only. The paper gives no numbers for this figure.",
    points: points_by_key_size,
    measure,
    plots: &[TIME_PLOT],
    paper: &[],
};

const TIME_PLOT: Plot = Plot {
    name: "time",
    title: "Nanoseconds per query, including the digest",
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
    about: "Seven units, each with a seventh of the bits and one probe, with one digest that is mixed per unit, and with two digests (double hashing), compared with one filter.",
    points: points_3,
    measure,
    plots: &[Plot { name: "rate", title: "False positive rate", x: "scheme", y: "fpr", ..Plot::NEW }],
    paper: &[
        published("scheme=units, one digest", "fpr", 0.00829),
        published("scheme=units, two digests", "fpr", 0.00842),
    ],
};

fn points_3(size: Size) -> Vec<Point> {
    UNIT_SCHEMES.iter().map(|(scheme, family)| point(scheme, family, 512, size)).collect()
}

/// Filters in units, and one without units.
const UNIT_SCHEMES: [(&str, &str); 3] = [
    ("units, one digest", "elastic:units=7,probes=1"),
    ("units, two digests", Scheme::UnitsOfTwoDigests.name()),
    ("double", Scheme::SevenOfDoubleHashing.name()),
];

/// Figure 3: units and double hashing by key size.
pub(super) const FIGURE_3: Definition = Definition {
    name: "bloom-figure-3",
    title: "Query time of a filter in units, with one digest and with two, by key size",
    source: "Hash sharing, Figure 3",
    about: "Units with one digest, with two digests (double hashing), and one filter without units. In the paper double hashing takes up to three times as long for long keys, because its second hash (XXH64 or CRC) is slower than the first (MurmurHash64A); here both digests use the hash of the store.",
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

/// Builds the input: numbers below the count are keys, the following numbers are queries.
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
    // Limits the memory for long keys; fewer queries suffice for their times.
    let query_count = query_count.min((1 << 29) / key_bytes.max(1));
    let input = context.input(&format!("single {key_bytes} {query_count}"), |context| {
        input(key_bytes as usize, query_count, context.seed())
    })?;
    forms::measure(point.text("family")?, Some(BITS_PER_KEY), &input, context)
}
