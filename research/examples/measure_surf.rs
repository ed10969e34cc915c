//! Measures SuRFs on the published integer sets and on a list of words: sizes, false positives, times.
//!
//! `cargo run --release --manifest-path research/Cargo.toml --example measure_surf -- [KEY_COUNT [WORDS_FILE [KEY_SET]]]` measures all key
//! sets (`words` is one), or the named one.
//!
//! Times are nanoseconds per query (the minimum of seven passes through 300,000 queries, digest included) and
//! multiples of the calibration unit: a binary search in as many integers. The even lines of the words are keys, the
//! odd ones queries; a range extends from a word to the word with its last byte incremented.
//!
//! `measure_surf count KEY_COUNT WORDS_FILE KEY_SET SPEC QUERY_SET PASSES` runs PASSES passes of 100,000 queries
//! without a clock, for tools that count instructions and cache misses. The cost of a query is the difference between
//! one pass and two.

#![expect(clippy::disallowed_methods, reason = "a measurement reads the clock and a file of words")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use tamis_filter::{
    AlignedBytes, AnyFilter, Budget, Digester, Filter, FilterSpec, KeyRange, KeySet as FilterKeys, Probe,
    RangeProbe, Samples,
};
use tamis_workload::{
    Calibration, KeySet, NON_EMPTY_SEED, PUBLIC_KEY_SEED, QUERY_SEED, QuerySet, non_empty_ranges,
};

const SPECS: [&str; 6] = [
    "surf-base",
    "surf-hash:bits=4",
    "surf-hash:bits=8",
    "surf-real:bits=4",
    "surf-real:bits=8",
    "surf-mixed:hash=4,real=4",
];
const TIMED_COUNT: usize = 300_000;
/// Queries of a pass without a clock.
const COUNTED: usize = 100_000;
/// Number of passes, of which the fastest counts.
const PASSES: usize = 7;

type Bounds = (Vec<u8>, Vec<u8>);

/// The minimum of seven passes in nanoseconds per item: other processes can only add time.
fn time(item_count: usize, pass: impl FnMut()) -> f64 {
    least_of(PASSES, item_count, pass)
}

fn least_of(passes: usize, item_count: usize, mut pass: impl FnMut()) -> f64 {
    let mut timed = || {
        let start = Instant::now();
        pass();
        start.elapsed().as_secs_f64() * 1e9 / item_count as f64
    };
    (0..passes).map(|_| timed()).fold(f64::INFINITY, f64::min)
}

struct Subject {
    filter: AnyFilter<AlignedBytes>,
    digester: Digester,
}

impl Subject {
    fn build(spec: &str, keys: &[Vec<u8>], passes: usize) -> (Self, f64) {
        let mut key_set = FilterKeys::new();
        keys.iter().for_each(|key| key_set.push(key).expect("sorted keys"));
        let key_set = Arc::new(key_set);
        let build = || {
            let mut builder = spec.parse::<FilterSpec>().expect("a spec").builder(42).expect("parameters");
            builder.add_all(&key_set).expect("sorted keys");
            builder.finish(Budget::BY_PARAMETERS, Samples::NONE).expect("a filter")
        };
        let build_ns = least_of(passes, keys.len(), || drop(black_box(build())));
        let filter = AnyFilter::open(AlignedBytes::from(build().as_slice())).expect("what was built opens");
        (Self { filter, digester: Digester::new(42) }, build_ns)
    }

    fn ask(&self, bounds: &Bounds) -> bool {
        if bounds.0 == bounds.1 { self.ask_point(bounds) } else { self.ask_range(bounds) }
    }

    fn ask_point(&self, (key, _): &Bounds) -> bool {
        self.filter.may_contain(&Probe::new(key, &self.digester))
    }

    fn ask_range(&self, (lower, upper): &Bounds) -> bool {
        self.filter.may_contain_range(&RangeProbe::new(KeyRange::closed(lower, upper), &self.digester))
    }

    /// The number of positive queries. Either all of them are points or none is: the decision is not part of the time.
    fn positives(&self, queries: &[Bounds]) -> usize {
        if queries.iter().next().is_some_and(|(lower, upper)| lower == upper) {
            queries.iter().filter(|query| self.ask_point(query)).count()
        } else {
            queries.iter().filter(|query| self.ask_range(query)).count()
        }
    }

    fn report(&self, name: &str, queries: &[Bounds], unit: f64) {
        let positives = self.positives(queries);
        let timed = queries.get(..TIMED_COUNT).unwrap_or(queries);
        let single = time(timed.len(), || {
            black_box(self.positives(timed));
        });
        println!(
            "    {name:16} positives {positives:7} of {:7} ({:.6})   {single:6.1} ns = {:.2} units",
            queries.len(),
            positives as f64 / queries.len() as f64,
            single / unit
        );
    }
}

fn measure(keys: &[Vec<u8>], sets: &[(String, Vec<Bounds>)], present: &[Bounds], unit: f64) {
    for spec in SPECS {
        let (subject, build_ns) = Subject::build(spec, keys, PASSES);
        let missed = present.iter().filter(|query| !subject.ask(query)).count();
        let mut design = String::new();
        subject.filter.design(&mut design).expect("a string takes everything");
        let bits = subject.filter.encoded_bytes() as f64 * 8.0 / keys.len() as f64;
        println!(
            "  {spec:26} {bits:.4} bits/key, {missed} false negatives of {}, build {build_ns:.1} ns/key",
            present.len()
        );
        println!("    {design}");
        sets.iter().for_each(|(name, queries)| subject.report(name, queries, unit));
    }
}

fn bounds(ranges: &[(u64, u64)]) -> Vec<Bounds> {
    ranges.iter().map(|(lower, upper)| (lower.to_be_bytes().to_vec(), upper.to_be_bytes().to_vec())).collect()
}

fn calibrate(key_count: usize) -> f64 {
    let calibration = Calibration::new(key_count);
    time(calibration.wanted_count() as usize, || calibration.search())
}

/// Keys, points and empty ranges of the words, and queries that are present.
struct Words {
    keys: Vec<Vec<u8>>,
    points: Vec<Bounds>,
    empty: Vec<Bounds>,
    present: Vec<Bounds>,
}

fn words(path: &str) -> Words {
    let text = std::fs::read(path).expect("the words can be read");
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    let keys: Vec<Vec<u8>> = lines.iter().step_by(2).map(|line| line.to_vec()).collect();
    let mut raised: Vec<Bounds> =
        lines.iter().skip(1).step_by(2).map(|line| (line.to_vec(), line.to_vec())).collect();
    let points = raised.clone();
    raised
        .iter_mut()
        .for_each(|(_, upper)| upper.iter_mut().next_back().into_iter().for_each(|last| *last += 1));
    let holds = |range: &Bounds| {
        keys.get(keys.partition_point(|key| key < &range.0)).is_some_and(|key| key <= &range.1)
    };
    let (full, empty): (Vec<Bounds>, Vec<Bounds>) = raised.into_iter().partition(holds);
    let present: Vec<Bounds> = keys.iter().map(|key| (key.clone(), key.clone())).chain(full).collect();
    Words { keys, points, empty, present }
}

fn integers(key_set: KeySet, key_count: usize, name: &str, query_count: usize) -> (Vec<u64>, Vec<Bounds>) {
    let keys = key_set.generate(key_count, PUBLIC_KEY_SEED);
    let set: QuerySet = name.parse().expect("a query set");
    let queries = set.generate(key_set, &keys, query_count, QUERY_SEED).expect("room between the keys");
    (keys, bounds(&queries))
}

/// Queries without a clock, for counting tools.
fn count(mut arguments: impl Iterator<Item = String>) {
    let mut next = || arguments.next().expect("KEY_COUNT WORDS_FILE KEY_SET SPEC QUERY_SET PASSES");
    let (key_count, path, key_set, spec, queries, passes) = (next(), next(), next(), next(), next(), next());
    let (keys, mut queries) = if key_set == "words" {
        let words = words(&path);
        (words.keys, if queries == "points" { words.points } else { words.empty })
    } else {
        let key_set = key_set.parse().expect("a key set");
        let (keys, queries) = integers(key_set, key_count.parse().expect("a number"), &queries, COUNTED);
        (keys.iter().map(|key| key.to_be_bytes().to_vec()).collect(), queries)
    };
    queries.truncate(COUNTED);
    let subject = Subject::build(&spec, &keys, 1).0;
    for _ in 0..passes.parse().expect("a number") {
        black_box(subject.positives(&queries));
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1).peekable();
    if arguments.next_if(|argument| argument == "count").is_some() {
        return count(arguments);
    }
    let key_count = arguments.next().and_then(|count| count.parse().ok()).unwrap_or(1_000_000);
    let unit = calibrate(key_count);
    println!("calibration unit: {unit:.0} ns");
    let words_path = arguments.next();
    let only = arguments.next();
    let is_wanted = |name: &str| only.as_ref().is_none_or(|only| only == name);
    for key_set in KeySet::ALL.into_iter().filter(|key_set| is_wanted(&key_set.to_string())) {
        let sets = ["uniform_r0", "uniform_r32", "correlated_r0", "correlated_r32"]
            .map(|name| (name.to_owned(), integers(key_set, key_count, name, 1_000_000).1));
        let keys = key_set.generate(key_count, PUBLIC_KEY_SEED);
        let present = bounds(&non_empty_ranges(&keys, 100_000, NON_EMPTY_SEED));
        let keys: Vec<Vec<u8>> = keys.iter().map(|key| key.to_be_bytes().to_vec()).collect();
        println!("{key_set}, {key_count} keys");
        measure(&keys, &sets, &present, unit);
    }
    if let Some(path) = words_path.filter(|_| is_wanted("words")) {
        let Words { keys, points, empty, present } = words(&path);
        println!("{} words", keys.len());
        measure(&keys, &[("points".to_owned(), points), ("ranges".to_owned(), empty)], &present, unit);
    }
}
