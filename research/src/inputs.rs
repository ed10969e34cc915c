//! Keys of stores, tables and filters, and queries by name: integers, sensor events, texts, strings of one length, file paths, and keys
//! of tenants. Key sets are those of `tamis-workload` (such as `uniform`, `domains`), `books` (integers, most of them small), `events`,
//! `paths`, `tenants`, and `strings_N` and `normal_strings_N` (random strings of N bytes; the first bytes of the second are normal).
//! Of `half_integers` and `half_emails`, half of the generated keys are stored, and queries begin at any of them (Figure 3 of the SuRF paper).
//! `published_SET` is a set of integers of `tamis-workload` without integers that are left out: with the seed 42 the published input.
//!
//! Names of queries: those of `tamis-workload` (such as `uniform_r32`, `split`, `points`), and
//!
//! | name | queries |
//! |---|---|
//! | `exact_N` | empty ranges of N integers, anywhere |
//! | `next_N` | empty ranges of N integers that begin directly after a key |
//! | `close_D_N` | empty ranges of N integers, at most 2^D after a key |
//! | `upto_B` | empty ranges of up to 2^B integers, anywhere |
//! | `near_D_B` | empty ranges of up to 2^B integers, at most 2^D after a key |
//! | `real_B` | empty ranges of up to 2^B integers from integers like the keys |
//! | `halves_D_C_B` | alternating: `near_D_C`, and `upto_B` |
//! | `mixed_KIND` | alternating: points, and queries of the kind |
//! | `span_P` | spans of events, of which P percent are empty |
//! | `after_N` | from an absent text to the same text with the byte N |
//! | `padded` | from an absent text to the same text, padded with zeros to 253 bytes, plus up to 2^30 |
//! | `any_points`, `any_ranges` | Zipfian keys of a `half_` set, stored or not, and ranges from there, many of them with a key |
//! | `directories` | prefixes: directories without a file |
//! | `between` | ranges from one file path to the next one, without both |

use std::{collections::BTreeSet, str::FromStr as _};

use tamis_filter::{KeyRange, auto::QueryKind};
use tamis_workload::{
    EventQuerySet, Events, KeySet as Integers, QuerySet, ScrambledZipfian, SplitMix64, TextQuerySet, TextSet,
    absent_texts,
};

use tamis_bench::BenchError;

/// Draws for each query that is kept; with more, the keys leave no room.
const DRAWS_PER_QUERY: usize = 400;
/// The mean time between two events, in nanoseconds.
const EVENT_GAP: f64 = 1e5;
/// The longest domain name.
const PADDED_BYTES: usize = 253;
/// The number of stored integers of the SuRF paper, and the length of its ranges. With fewer integers ranges are longer, so that the share
/// of empty ranges stays the same.
const PAPER_STORED: f64 = 5e7;
const PAPER_LENGTH: f64 = (1_u64 << 37) as f64;
const TENANT_COUNT: usize = 200;
/// A month in milliseconds, and its begin.
const MONTH: u64 = 30 * 86_400_000;
const MONTH_BEGIN: u64 = 1_700_000_000_000;
/// The longest time that a query of a tenant spans, in milliseconds.
const MINUTE: u64 = 60_000;

/// A query with its bounds. A prefix has no upper bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OwnedQuery {
    pub(super) kind: QueryKind,
    pub(super) lower: Vec<u8>,
    pub(super) upper: Vec<u8>,
}

impl OwnedQuery {
    /// A closed range, or a point if both bounds are equal.
    pub(super) fn closed(lower: Vec<u8>, upper: Vec<u8>) -> Self {
        let kind = if lower == upper { QueryKind::Point } else { QueryKind::Range };
        Self { kind, lower, upper }
    }

    fn prefix(lower: Vec<u8>) -> Self {
        Self { kind: QueryKind::Prefix, lower, upper: Vec::new() }
    }

    /// The range of keys.
    pub(super) fn range(&self) -> KeyRange<'_> {
        match self.kind {
            QueryKind::Prefix => KeyRange::prefix(&self.lower),
            QueryKind::Point => KeyRange::point(&self.lower),
            _ => KeyRange::closed(&self.lower, &self.upper),
        }
    }
}

/// The keys of a store or a table, ascending.
pub(super) enum Keys {
    Integers {
        set: Integers,
        keys: Vec<u64>,
        /// Other integers of the same distribution.
        others: Vec<u64>,
    },
    /// Timestamps and sensors of events.
    Events(Vec<(u64, u64)>),
    Texts(TextSet, Vec<Vec<u8>>),
    /// Random strings of one length.
    Strings(usize, Vec<Vec<u8>>),
    Paths {
        keys: BTreeSet<Vec<u8>>,
        directories: Vec<String>,
    },
    Tenants {
        tenants: Vec<u64>,
        keys: BTreeSet<(u64, u64)>,
    },
    /// Half of these keys are stored.
    Halves {
        all: Vec<Vec<u8>>,
        keys: Vec<Vec<u8>>,
        are_integers: bool,
    },
}

impl Keys {
    /// Keys of a kind.
    ///
    /// # Errors
    /// [`BenchError::Other`] for an unknown kind.
    pub(super) fn generate(name: &str, count: usize, seed: u64) -> Result<Self, BenchError> {
        // Others of the same distribution are drawn, too.
        let (name, spare) = name.strip_prefix("published_").map_or((name, count / 4), |name| (name, 0));
        let named = Integers::ALL.into_iter().find(|set| set.name() == name);
        // Of `books` only queries are drawn that need no set.
        if let Some(set) = named.or((name == "books").then_some(Integers::Uniform)) {
            let mut random = SplitMix64::new(seed ^ 0x6f74_6865_7273);
            let (mut keys, mut others) = (Vec::new(), Vec::new());
            let drawn = match named {
                Some(set) => set.generate(count + spare, seed),
                None => skewed(count + spare, seed),
            };
            let mut left = drawn.len();
            // Each integer is a key with the same probability; `count` of them are keys.
            for integer in drawn {
                if random.below(left as u64) < (count - keys.len()) as u64 {
                    keys.push(integer);
                } else {
                    others.push(integer);
                }
                left -= 1;
            }
            return Ok(Self::Integers { set, keys, others });
        }
        if let Some(set) = TextSet::ALL.into_iter().find(|set| set.name() == name) {
            return Ok(Self::Texts(set, set.generate(count, seed)));
        }
        if let Some((kind, length)) = name.rsplit_once('_')
            && let Ok(length) = length.parse()
        {
            return Ok(Self::Strings(length, strings(length, kind == "normal_strings", count, seed)));
        }
        match name {
            "events" => {
                let events = Events::new(seed).take(count);
                Ok(Self::Events(events.map(|event| (event.timestamp, event.sensor)).collect()))
            }
            "paths" => Ok(paths(count, seed)),
            "tenants" => Ok(tenants(count, seed)),
            "half_integers" | "half_emails" => Ok(halves(name == "half_integers", count, seed)),
            _ => Err(BenchError::other(format!("unknown keys: {name}"))),
        }
    }

    /// All keys, ascending.
    pub(super) fn encoded(&self) -> Vec<Vec<u8>> {
        match self {
            Self::Integers { keys, .. } => keys.iter().map(|key| key.to_be_bytes().to_vec()).collect(),
            Self::Events(events) => events.iter().map(|event| pair(*event)).collect(),
            Self::Texts(_, keys) | Self::Strings(_, keys) | Self::Halves { keys, .. } => keys.clone(),
            Self::Paths { keys, .. } => keys.iter().cloned().collect(),
            Self::Tenants { keys, .. } => keys.iter().map(|key| pair(*key)).collect(),
        }
    }

    /// Queries of a kind; all but those of `span_P` and `any_` are empty. Queries of different seeds have the same distribution.
    ///
    /// # Errors
    /// [`BenchError::Other`] for an unknown kind, and for keys that leave no room for such queries.
    pub(super) fn queries(&self, kind: &str, count: usize, seed: u64) -> Result<Vec<OwnedQuery>, BenchError> {
        match self {
            Self::Integers { set, keys, others } => {
                let ranges = match Special::parse(kind) {
                    Some(special) => {
                        special.draw(keys, others, (0, u64::MAX), count, seed).ok_or_else(|| no_room(kind))?
                    }
                    None => {
                        let query_set = QuerySet::from_str(kind).map_err(BenchError::other)?;
                        query_set.generate(*set, keys, count, seed).map_err(BenchError::other)?
                    }
                };
                let bytes = |number: u64| number.to_be_bytes().to_vec();
                let encode = |(lower, upper)| OwnedQuery::closed(bytes(lower), bytes(upper));
                Ok(ranges.into_iter().map(encode).collect())
            }
            Self::Events(events) => event_queries(events, kind, count, seed),
            Self::Texts(set, keys) => text_queries(*set, keys, kind, count, seed),
            Self::Strings(length, keys) => string_queries(keys, *length, kind, count, seed),
            Self::Paths { keys, directories } => path_queries(keys, directories, kind, count, seed),
            Self::Tenants { tenants, keys } => tenant_queries(tenants, keys, kind, count, seed),
            Self::Halves { all, keys, are_integers } => {
                Ok(half_queries(all, (keys.len(), *are_integers), kind == "any_points", count, seed))
            }
        }
    }
}

fn no_room(kind: &str) -> BenchError {
    BenchError::other(format!("the keys leave no room for queries {kind}"))
}

/// Two numbers in 16 bytes.
fn pair((first, second): (u64, u64)) -> Vec<u8> {
    [first.to_be_bytes(), second.to_be_bytes()].concat()
}

/// Calls `draw` until it has returned `count` queries; `None` if most draws return none.
fn drawn<T>(count: usize, mut draw: impl FnMut(usize) -> Option<T>) -> Option<Vec<T>> {
    let mut queries = Vec::with_capacity(count);
    let mut left = count.saturating_mul(DRAWS_PER_QUERY);
    while queries.len() < count {
        left = left.checked_sub(1)?;
        queries.extend(draw(queries.len()));
    }
    Some(queries)
}

/// Integers whose logarithm is uniform over the upper half of the bits.
fn skewed(count: usize, seed: u64) -> Vec<u64> {
    let mut random = SplitMix64::new(seed);
    let mut integers = BTreeSet::new();
    while integers.len() < count {
        let bits = 20 + random.below(44);
        integers.insert((1 << bits) + random.below(1 << bits));
    }
    integers.into_iter().collect()
}

/// Kinds of queries that only experiments use; see the head of this file.
#[derive(Debug, Clone, Copy)]
struct Special {
    place: Place,
    length: Length,
    /// Every second query is a point.
    is_mixed: bool,
}

/// Where a query begins.
#[derive(Debug, Clone, Copy)]
enum Place {
    Anywhere,
    /// At most 2^D after a key.
    Near(u32),
    /// At an integer like the keys.
    Real,
    /// Alternating: at most 2^D after a key with up to 2^C integers, and anywhere.
    Halves(u32, u32),
}

/// How many integers a query has.
#[derive(Debug, Clone, Copy)]
enum Length {
    Exact(u64),
    /// Up to 2^B.
    UpTo(u32),
}

impl Length {
    /// The distance of the bounds.
    fn draw(self, random: &mut SplitMix64) -> u64 {
        match self {
            Self::Exact(count) => count.max(1) - 1,
            Self::UpTo(0) => 0,
            Self::UpTo(bits) => 2 + random.below((1_u64 << bits.min(63)) - 1),
        }
    }
}

impl Special {
    fn parse(kind: &str) -> Option<Self> {
        if let Some(kind) = kind.strip_prefix("mixed_") {
            return Some(Self { is_mixed: true, ..Self::parse(kind)? });
        }
        let mut words = kind.split('_');
        let name = words.next()?;
        let numbers: Vec<u32> = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
        let (place, length) = match (name, numbers.as_slice()) {
            ("exact", &[count]) => (Place::Anywhere, Length::Exact(count.into())),
            ("next", &[count]) => (Place::Near(0), Length::Exact(count.into())),
            ("close", &[degree, count]) => (Place::Near(degree), Length::Exact(count.into())),
            ("upto", &[bits]) => (Place::Anywhere, Length::UpTo(bits)),
            ("near", &[degree, bits]) => (Place::Near(degree), Length::UpTo(bits)),
            ("real", &[bits]) => (Place::Real, Length::UpTo(bits)),
            ("halves", &[degree, near, bits]) => (Place::Halves(degree, near), Length::UpTo(bits)),
            _ => return None,
        };
        Some(Self { place, length, is_mixed: false })
    }

    /// The place and the length of a query with this number.
    fn of(self, index: usize) -> (Place, Length) {
        let is_even = index.is_multiple_of(2);
        match self.place {
            Place::Halves(degree, near) if is_even => (Place::Near(degree), Length::UpTo(near)),
            Place::Halves(..) => (Place::Anywhere, self.length),
            place if self.is_mixed && is_even => (place, Length::Exact(1)),
            place => (place, self.length),
        }
    }

    /// Empty ranges that begin in `space`.
    fn draw(
        self,
        keys: &[u64],
        others: &[u64],
        (least, greatest): (u64, u64),
        count: usize,
        seed: u64,
    ) -> Option<Vec<(u64, u64)>> {
        let mut random = SplitMix64::new(seed);
        drawn(count, |index| {
            let (place, length) = self.of(index);
            let lower = match place {
                Place::Near(degree) => {
                    chosen(keys, &mut random)?.checked_add(1 + random.below(1 << degree.min(63)))?
                }
                Place::Real => *chosen(others, &mut random)?,
                Place::Anywhere | Place::Halves(..) => least + random.below((greatest - least).max(1)),
            };
            let upper = lower.checked_add(length.draw(&mut random))?;
            let next = keys.get(keys.partition_point(|key| *key < lower));
            next.is_none_or(|next| *next > upper).then_some((lower, upper))
        })
    }
}

fn chosen<'a, T>(list: &'a [T], random: &mut SplitMix64) -> Option<&'a T> {
    list.get(random.below(list.len().max(1) as u64) as usize)
}

fn string(length: usize, random: &mut SplitMix64) -> Vec<u8> {
    let words = std::iter::repeat_with(|| random.next_u64().to_be_bytes());
    words.flatten().take(length).collect()
}

/// Random strings, ascending.
fn strings(length: usize, is_normal: bool, count: usize, seed: u64) -> Vec<Vec<u8>> {
    let mut random = SplitMix64::new(seed);
    let heads = if is_normal { Integers::Normal.generate(count, seed) } else { Vec::new() };
    let mut strings: Vec<Vec<u8>> = (0..count).map(|_| string(length, &mut random)).collect();
    for (string, head) in strings.iter_mut().zip(heads) {
        string.splice(..8.min(length), head.to_be_bytes());
    }
    strings.sort_unstable();
    strings.dedup();
    strings
}

fn string_queries(
    keys: &[Vec<u8>],
    length: usize,
    kind: &str,
    count: usize,
    seed: u64,
) -> Result<Vec<OwnedQuery>, BenchError> {
    let special =
        Special::parse(kind).ok_or_else(|| BenchError::other(format!("unknown queries: {kind}")))?;
    let mut random = SplitMix64::new(seed);
    let queries = drawn(count, |index| {
        let (place, distance) = special.of(index);
        let lower = match place {
            Place::Near(degree) => {
                add_distance(chosen(keys, &mut random)?, length, 1 + random.below(1 << degree.min(63)))?
            }
            _ => string(length, &mut random),
        };
        let upper = add_distance(&lower, length, distance.draw(&mut random))?;
        let next = keys.get(keys.partition_point(|key| *key < lower));
        next.is_none_or(|next| *next > upper).then(|| OwnedQuery::closed(lower, upper))
    });
    queries.ok_or_else(|| no_room(kind))
}

fn event_queries(
    events: &[(u64, u64)],
    kind: &str,
    count: usize,
    seed: u64,
) -> Result<Vec<OwnedQuery>, BenchError> {
    let (Some((least, _)), Some((greatest, _))) = (events.first(), events.last()) else {
        return Err(no_room(kind));
    };
    let span = |(lower, upper): (u64, u64)| OwnedQuery::closed(pair((lower, 0)), pair((upper, u64::MAX)));
    if let Some(percent) = kind.strip_prefix("span_") {
        let share: f64 =
            percent.parse().map_err(|_| BenchError::other(format!("unknown queries: {kind}")))?;
        // The events of all sensors together are a Poisson process.
        let length = (EVENT_GAP * (100.0 / share).ln()) as u64;
        let mut random = SplitMix64::new(seed);
        let mut moment = || least + random.below((greatest - least).max(1));
        return Ok((0..count).map(|_| moment()).map(|moment| span((moment, moment + length))).collect());
    }
    let timestamps: Vec<u64> = events.iter().map(|(timestamp, _)| *timestamp).collect();
    if let Some(special) = Special::parse(kind) {
        let ranges = special.draw(&timestamps, &[], (*least, *greatest), count, seed);
        return Ok(ranges.ok_or_else(|| no_room(kind))?.into_iter().map(span).collect());
    }
    let set = EventQuerySet::from_str(kind).map_err(BenchError::other)?;
    let ranges = set.generate(&timestamps, count, seed).map_err(BenchError::other)?;
    let closed = |(lower, upper): tamis_workload::EventRange| {
        OwnedQuery::closed(lower.key().to_vec(), upper.key().to_vec())
    };
    Ok(ranges.into_iter().map(closed).collect())
}

fn text_queries(
    set: TextSet,
    keys: &[Vec<u8>],
    kind: &str,
    count: usize,
    seed: u64,
) -> Result<Vec<OwnedQuery>, BenchError> {
    let end = kind.strip_prefix("after_").map(str::parse::<u8>).transpose().map_err(BenchError::other)?;
    if kind == "padded" || end.is_some() {
        let mut random = SplitMix64::new(seed ^ 1);
        let query = |word: Vec<u8>| {
            let upper = match end {
                Some(end) => [word.as_slice(), &[end]].concat(),
                None => add_distance(&word, PADDED_BYTES, 2 + random.below((1 << 30) - 1))?,
            };
            let next = keys.get(keys.partition_point(|key| *key < word));
            next.is_none_or(|next| *next > upper).then(|| OwnedQuery::closed(word, upper))
        };
        return Ok(absent_texts(set, keys, count, seed).into_iter().filter_map(query).collect());
    }
    let queries = TextQuerySet::from_str(kind).map_err(BenchError::other)?;
    let ranges = queries.generate(set, keys, count, seed).map_err(BenchError::other)?;
    let query = |(lower, upper): (Vec<u8>, Vec<u8>)| match queries {
        TextQuerySet::Prefix(_) => OwnedQuery::prefix(lower),
        _ => OwnedQuery::closed(lower, upper),
    };
    Ok(ranges.into_iter().map(query).collect())
}

/// Adds `distance` to a string, padded with zeros to `length` bytes, as a big-endian number; `None` on overflow.
fn add_distance(key: &[u8], length: usize, distance: u64) -> Option<Vec<u8>> {
    let mut bytes: Vec<u8> = key.iter().copied().chain(std::iter::repeat(0)).take(length).collect();
    let mut carry = u128::from(distance);
    for byte in bytes.iter_mut().rev() {
        carry += u128::from(*byte);
        *byte = carry as u8;
        carry >>= 8;
    }
    (carry == 0).then_some(bytes)
}

const NAMES: [&str; 24] = [
    "src", "lib", "test", "docs", "build", "assets", "image", "data", "log", "cache", "config", "main",
    "util", "core", "net", "io", "db", "web", "api", "model", "view", "index", "table", "filter",
];

/// A name in a folder, with a number or without.
fn name(random: &mut SplitMix64, range: u64) -> String {
    let name = NAMES.get(random.below(NAMES.len() as u64) as usize).copied().unwrap_or_default();
    let number = random.below(range);
    if number < range / 3 { name.to_owned() } else { format!("{name}{number}") }
}

/// Files in directories of a few levels.
fn paths(count: usize, seed: u64) -> Keys {
    let mut random = SplitMix64::new(seed);
    let (mut keys, mut directories) = (BTreeSet::new(), BTreeSet::new());
    while keys.len() < count {
        let mut directory = format!("/srv/user{:02}", random.below(40));
        for _ in 0..1 + random.below(4) {
            directory = format!("{directory}/{}", name(&mut random, 20));
        }
        directory.push('/');
        for _ in 0..1 + random.below(12) {
            keys.insert(format!("{directory}{}.rs", name(&mut random, 60)).into_bytes());
        }
        directories.insert(directory);
    }
    Keys::Paths { keys, directories: directories.into_iter().collect() }
}

fn path_queries(
    keys: &BTreeSet<Vec<u8>>,
    directories: &[String],
    kind: &str,
    count: usize,
    seed: u64,
) -> Result<Vec<OwnedQuery>, BenchError> {
    if !["points", "ranges", "between", "directories"].contains(&kind) {
        return Err(BenchError::other(format!("unknown queries: {kind}")));
    }
    let mut random = SplitMix64::new(seed);
    let queries = drawn(count, |_| {
        let directory = directories.get(random.below(directories.len().max(1) as u64) as usize)?;
        if kind == "directories" {
            // A directory that does not exist, next to one that does.
            let parent = directory.get(..=directory.trim_end_matches('/').rfind('/')?)?;
            let prefix = format!("{parent}{}/", name(&mut random, 40)).into_bytes();
            let next = keys.range(prefix.clone()..).next();
            return next.is_none_or(|next| !next.starts_with(&prefix)).then(|| OwnedQuery::prefix(prefix));
        }
        let mut lower = format!("{directory}{}.rs", name(&mut random, 60)).into_bytes();
        let mut upper = lower.clone();
        if kind == "between" {
            let mut next = keys.range(lower.clone()..);
            (lower, upper) = (next.next()?.clone(), next.next()?.clone());
            // The first text after the one, and one before the other.
            lower.push(0);
            let last = upper.pop()?;
            upper.extend([last.checked_sub(1)?, u8::MAX]);
        }
        if kind == "ranges" {
            // To the same name with a further character.
            upper.push(b'~');
        }
        keys.range(lower.clone()..=upper.clone()).next().is_none().then(|| OwnedQuery::closed(lower, upper))
    });
    queries.ok_or_else(|| no_room(kind))
}

/// Entries of tenants, some of which have many, in a month.
fn tenants(count: usize, seed: u64) -> Keys {
    let mut random = SplitMix64::new(seed);
    let tenants: Vec<u64> = (0..TENANT_COUNT).map(|_| random.next_u64()).collect();
    let mut keys = BTreeSet::new();
    while keys.len() < count {
        let index = (random.unit() * random.unit() * TENANT_COUNT as f64) as usize;
        keys.extend(tenants.get(index).map(|tenant| (*tenant, MONTH_BEGIN + random.below(MONTH))));
    }
    Keys::Tenants { tenants, keys }
}

fn tenant_queries(
    tenants: &[u64],
    keys: &BTreeSet<(u64, u64)>,
    kind: &str,
    count: usize,
    seed: u64,
) -> Result<Vec<OwnedQuery>, BenchError> {
    if !["points", "ranges"].contains(&kind) {
        return Err(BenchError::other(format!("unknown queries: {kind}")));
    }
    let mut random = SplitMix64::new(seed);
    let queries = drawn(count, |_| {
        let tenant = *tenants.get(random.below(tenants.len().max(1) as u64) as usize)?;
        let first = MONTH_BEGIN + random.below(MONTH);
        let last = if kind == "ranges" { first + 1 + random.below(MINUTE) } else { first };
        let is_empty = keys.range((tenant, first)..=(tenant, last)).next().is_none();
        is_empty.then(|| OwnedQuery::closed(pair((tenant, first)), pair((tenant, last))))
    });
    queries.ok_or_else(|| no_room(kind))
}

/// Integers or addresses, of which half are stored.
fn halves(are_integers: bool, count: usize, seed: u64) -> Keys {
    let mut random = SplitMix64::new(seed);
    let all = if are_integers {
        let integers: BTreeSet<u64> = (0..count).map(|_| random.next_u64()).collect();
        integers.into_iter().map(|key| key.to_be_bytes().to_vec()).collect()
    } else {
        TextSet::Emails.generate(count, seed)
    };
    let keys = all.iter().filter(|_| random.below(2) == 0).cloned().collect();
    Keys::Halves { all, keys, are_integers }
}

/// Points, ranges of integers from `K + L` to `K + 2 L`, or ranges of addresses to the address with its last byte incremented; keys are
/// chosen as in YCSB workload C.
fn half_queries(
    all: &[Vec<u8>],
    (stored_count, are_integers): (usize, bool),
    are_points: bool,
    count: usize,
    seed: u64,
) -> Vec<OwnedQuery> {
    let (zipf, mut random) = (ScrambledZipfian::new(all.len() as u64), SplitMix64::new(seed));
    let length = (PAPER_LENGTH * PAPER_STORED / stored_count.max(1) as f64) as u64;
    let query = |_| {
        let key = all.get(zipf.draw(&mut random) as usize)?.clone();
        let bounds = |start: u64| [1, 2].map(|times: u64| start.saturating_add(length.saturating_mul(times)));
        let mut upper = key.clone();
        if !are_points && are_integers {
            let [lower, upper] = bounds(u64::from_be_bytes(*key.first_chunk()?)).map(u64::to_be_bytes);
            return Some(OwnedQuery::closed(lower.to_vec(), upper.to_vec()));
        }
        if !are_points && let Some(last) = upper.last_mut() {
            *last = last.saturating_add(1);
        }
        Some(OwnedQuery::closed(key, upper))
    };
    (0..count).filter_map(query).collect()
}
