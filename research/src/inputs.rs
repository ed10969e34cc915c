//! Keys of stores and tables, and queries by name: integers, sensor events, texts, file paths, and keys of tenants.
//!
//! Names of queries: those of `tamis-workload` (such as `uniform_r32`, `split`, `points`), and
//!
//! | name | queries |
//! |---|---|
//! | `exact_N` | empty ranges of N integers, anywhere |
//! | `next_N` | empty ranges of N integers that begin directly after a key |
//! | `upto_B` | empty ranges of up to 2^B integers, anywhere |
//! | `near_D_B` | empty ranges of up to 2^B integers, at most 2^D after a key |
//! | `real_B` | empty ranges of up to 2^B integers from integers like the keys |
//! | `halves_B` | alternating: `near_10_5`, and `upto_B` |
//! | `span_P` | spans of events, of which P percent are empty |
//! | `padded` | from an absent text to the same text, padded with zeros to 253 bytes, plus up to 2^30 |
//! | `directories` | prefixes: directories without a file |
//! | `between` | ranges from one file path to the next one, without both |

use std::{collections::BTreeSet, str::FromStr as _};

use tamis_filter::{KeyRange, auto::QueryKind};
use tamis_workload::{
    EventQuerySet, Events, KeySet as Integers, QuerySet, SplitMix64, TextQuerySet, TextSet, absent_texts,
};

use tamis_bench::BenchError;

/// Draws for each query that is kept; with more, the keys leave no room.
const DRAWS_PER_QUERY: usize = 400;
/// The mean time between two events, in nanoseconds.
const EVENT_GAP: f64 = 1e5;
/// The longest domain name.
const PADDED_BYTES: usize = 253;
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
    Paths {
        keys: BTreeSet<Vec<u8>>,
        directories: Vec<String>,
    },
    Tenants {
        tenants: Vec<u64>,
        keys: BTreeSet<(u64, u64)>,
    },
}

impl Keys {
    /// Keys of a kind.
    ///
    /// # Errors
    /// [`BenchError::Other`] for an unknown kind.
    pub(super) fn generate(name: &str, count: usize, seed: u64) -> Result<Self, BenchError> {
        if let Some(set) = Integers::ALL.into_iter().find(|set| set.name() == name) {
            let mut random = SplitMix64::new(seed ^ 0x6f74_6865_7273);
            let (mut keys, mut others) = (Vec::new(), Vec::new());
            let drawn = set.generate(count + count / 4, seed);
            let mut left = drawn.len();
            // Each integer is a key with probability 4/5; `count` of them are keys.
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
        match name {
            "events" => {
                let events = Events::new(seed).take(count);
                Ok(Self::Events(events.map(|event| (event.timestamp, event.sensor)).collect()))
            }
            "paths" => Ok(paths(count, seed)),
            "tenants" => Ok(tenants(count, seed)),
            _ => Err(BenchError::other(format!("unknown keys: {name}"))),
        }
    }

    /// All keys, ascending.
    pub(super) fn encoded(&self) -> Vec<Vec<u8>> {
        match self {
            Self::Integers { keys, .. } => keys.iter().map(|key| key.to_be_bytes().to_vec()).collect(),
            Self::Events(events) => events.iter().map(|event| pair(*event)).collect(),
            Self::Texts(_, keys) => keys.clone(),
            Self::Paths { keys, .. } => keys.iter().cloned().collect(),
            Self::Tenants { keys, .. } => keys.iter().map(|key| pair(*key)).collect(),
        }
    }

    /// Queries of a kind; all but those of `span_P` are empty. Queries of different seeds have the same distribution.
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
            Self::Paths { keys, directories } => path_queries(keys, directories, kind, count, seed),
            Self::Tenants { tenants, keys } => tenant_queries(tenants, keys, kind, count, seed),
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

/// Kinds of queries that only experiments use; see the head of this file.
#[derive(Debug, Clone, Copy)]
enum Special {
    Exact(u64),
    Next(u64),
    UpTo(u32),
    Near(u32, u32),
    Real(u32),
    Halves(u32),
}

impl Special {
    fn parse(kind: &str) -> Option<Self> {
        let mut words = kind.split('_');
        let name = words.next()?;
        let mut number = || words.next()?.parse::<u32>().ok();
        match name {
            "exact" => Some(Self::Exact(number()?.into())),
            "next" => Some(Self::Next(number()?.into())),
            "upto" => Some(Self::UpTo(number()?)),
            "near" => Some(Self::Near(number()?, number()?)),
            "real" => Some(Self::Real(number()?)),
            "halves" => Some(Self::Halves(number()?)),
            _ => None,
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
        let below = |random: &mut SplitMix64, count: usize| random.below(count.max(1) as u64) as usize;
        drawn(count, |index| {
            let near = |random: &mut SplitMix64, distance: u64| {
                let key = keys.get(below(random, keys.len())).copied()?;
                key.checked_add(1 + random.below(distance))
            };
            let anywhere = |random: &mut SplitMix64| Some(least + random.below((greatest - least).max(1)));
            let length = |random: &mut SplitMix64, bits: u32| 2 + random.below((1_u64 << bits.min(63)) - 1);
            let (lower, distance) = match self {
                Self::Exact(length) => (anywhere(&mut random)?, length.max(1) - 1),
                Self::Next(length) => (near(&mut random, 1)?, length.max(1) - 1),
                Self::Near(degree, bits) => {
                    (near(&mut random, 1 << degree.min(63))?, length(&mut random, bits))
                }
                Self::Halves(_) if index.is_multiple_of(2) => {
                    (near(&mut random, 1 << 10)?, length(&mut random, 5))
                }
                Self::UpTo(bits) | Self::Halves(bits) => (anywhere(&mut random)?, length(&mut random, bits)),
                Self::Real(bits) => {
                    (others.get(below(&mut random, others.len())).copied()?, length(&mut random, bits))
                }
            };
            let upper = lower.checked_add(distance)?;
            let next = keys.get(keys.partition_point(|key| *key < lower));
            next.is_none_or(|next| *next > upper).then_some((lower, upper))
        })
    }
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
    if kind == "padded" {
        let mut random = SplitMix64::new(seed ^ 1);
        let padded = |word: Vec<u8>| {
            let upper = add_distance(&word, PADDED_BYTES, 2 + random.below((1 << 30) - 1))?;
            let next = keys.get(keys.partition_point(|key| *key < word));
            next.is_none_or(|next| *next > upper).then(|| OwnedQuery::closed(word, upper))
        };
        return Ok(absent_texts(set, keys, count, seed).into_iter().filter_map(padded).collect());
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
pub(super) fn add_distance(key: &[u8], length: usize, distance: u64) -> Option<Vec<u8>> {
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
