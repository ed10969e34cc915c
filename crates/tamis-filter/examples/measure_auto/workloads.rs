//! Keys and queries of the workloads on which the automatic choice is measured. Queries of different seeds have the same
//! distribution.

use std::sync::Arc;

use tamis_filter::KeyRange;
use tamis_filter::auto::{Query, QueryKind};
use tamis_workload::{
    EventQuerySet, Events, KeySet as Integers, QuerySet, RangeMax, SplitMix64, TextSet, absent_texts,
    empty_text_ranges,
};

const KEY_SEED: u64 = 42;

/// A query with its own bytes: a prefix has no upper bound.
#[derive(Debug, Clone)]
pub(crate) struct OwnedQuery {
    pub(crate) kind: QueryKind,
    pub(crate) lower: Vec<u8>,
    pub(crate) upper: Vec<u8>,
}

impl OwnedQuery {
    pub(crate) fn range(&self) -> KeyRange<'_> {
        match self.kind {
            QueryKind::Prefix => KeyRange::prefix(&self.lower),
            _ => KeyRange::closed(&self.lower, &self.upper),
        }
    }

    pub(crate) fn query(&self) -> Query<'_> {
        Query { kind: self.kind, range: self.range(), weight: 1.0 }
    }

    fn closed(lower: Vec<u8>, upper: Vec<u8>) -> Self {
        let kind = if lower == upper { QueryKind::Point } else { QueryKind::Range };
        Self { kind, lower, upper }
    }

    fn prefix(lower: Vec<u8>) -> Self {
        Self { kind: QueryKind::Prefix, upper: lower.clone(), lower }
    }
}

/// A workload: a name, sorted keys, and the queries of a seed.
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    pub(crate) keys: Arc<tamis_filter::KeySet>,
    generate: Box<dyn Fn(usize, u64) -> Vec<OwnedQuery>>,
}

impl Workload {
    fn new(
        name: &'static str,
        mut keys: Vec<Vec<u8>>,
        generate: impl Fn(usize, u64) -> Vec<OwnedQuery> + 'static,
    ) -> Self {
        keys.sort_unstable();
        let mut set = tamis_filter::KeySet::new();
        keys.iter().for_each(|key| set.push(key).unwrap());
        Self { name, keys: Arc::new(set), generate: Box::new(generate) }
    }

    pub(crate) fn queries(&self, count: usize, seed: u64) -> Vec<OwnedQuery> {
        (self.generate)(count, seed)
    }
}

/// All workloads with a number of keys.
pub(crate) fn all(key_count: usize) -> Vec<Workload> {
    let uniform = QuerySet::Uniform;
    let correlated = QuerySet::Correlated;
    let mut workloads = vec![
        integers("uniform, points", key_count, vec![uniform(RangeMax::Point)]),
        integers("uniform, ranges of 32", key_count, vec![uniform(RangeMax::R32)]),
        integers("uniform, ranges of 1,024", key_count, vec![uniform(RangeMax::R1024)]),
        integers("uniform, ranges of 2^20", key_count, vec![uniform(RangeMax::R1m)]),
        integers("correlated, points", key_count, vec![correlated(RangeMax::Point)]),
        integers("correlated, ranges of 32", key_count, vec![correlated(RangeMax::R32)]),
        integers("correlated, ranges of 1,024", key_count, vec![correlated(RangeMax::R1024)]),
        integers("split", key_count, vec![QuerySet::Split]),
        integers(
            "points, half of them in ranges of 32",
            key_count,
            vec![uniform(RangeMax::Point), correlated(RangeMax::R32)],
        ),
        integers(
            "points and ranges of 2^20",
            key_count,
            vec![correlated(RangeMax::Point), uniform(RangeMax::R1m)],
        ),
    ];
    workloads.push(events("sensor events, points", key_count, EventQuerySet::Points));
    workloads.push(events(
        "sensor events, spans",
        key_count,
        EventQuerySet::Spans(QuerySet::Uniform(RangeMax::R1024)),
    ));
    workloads.push(texts("domain names, points", TextSet::Domains, key_count, 1));
    workloads.push(texts("domain names, ranges", TextSet::Domains, key_count, 0));
    workloads.push(texts("addresses, points and ranges", TextSet::Emails, key_count, 2));
    workloads.push(paths(key_count));
    workloads.push(composite(key_count));
    workloads
}

fn integers(name: &'static str, key_count: usize, sets: Vec<QuerySet>) -> Workload {
    let keys = Integers::Uniform.generate(key_count, KEY_SEED);
    let bytes = keys.iter().map(|key| key.to_be_bytes().to_vec()).collect();
    Workload::new(name, bytes, move |count, seed| {
        let mut queries = Vec::new();
        for (number, set) in sets.iter().enumerate() {
            let ranges =
                set.generate(Integers::Uniform, &keys, count / sets.len(), seed + 1000 * number as u64);
            queries.extend(ranges.unwrap().into_iter().map(|(lower, upper)| {
                OwnedQuery::closed(lower.to_be_bytes().to_vec(), upper.to_be_bytes().to_vec())
            }));
        }
        queries
    })
}

fn events(name: &'static str, key_count: usize, set: EventQuerySet) -> Workload {
    let events: Vec<_> = Events::new(KEY_SEED).take(key_count).collect();
    let keys = events.iter().map(|event| event.key().to_vec()).collect();
    let timestamps: Vec<u64> = events.iter().map(|event| event.timestamp).collect();
    Workload::new(name, keys, move |count, seed| {
        let ranges = set.generate(&timestamps, count, seed).unwrap();
        ranges
            .into_iter()
            .map(|(first, last)| OwnedQuery::closed(first.key().to_vec(), last.key().to_vec()))
            .collect()
    })
}

/// `every`: 0 for ranges, 1 for points, 2 for both.
fn texts(name: &'static str, set: TextSet, key_count: usize, every: usize) -> Workload {
    let keys = set.generate(key_count, KEY_SEED);
    Workload::new(name, keys.clone(), move |count, seed| {
        let points = count.checked_div(every).unwrap_or(0);
        let mut queries: Vec<OwnedQuery> = absent_texts(set, &keys, points, seed)
            .into_iter()
            .map(|word| OwnedQuery::closed(word.clone(), word))
            .collect();
        if every != 1 {
            let words = absent_texts(set, &keys, count - points, seed + 1);
            let ranges = empty_text_ranges(&keys, &words);
            queries.extend(ranges.into_iter().map(|(lower, upper)| OwnedQuery::closed(lower, upper)));
        }
        queries
    })
}

/// File paths: directories of a few levels, with files. Queries: directories that do not exist next to such that do.
fn paths(key_count: usize) -> Workload {
    const NAMES: [&str; 24] = [
        "src", "lib", "test", "docs", "build", "assets", "image", "data", "log", "cache", "config", "main",
        "util", "core", "net", "io", "db", "web", "api", "model", "view", "index", "table", "filter",
    ];
    fn name(random: &mut SplitMix64, range: u64) -> String {
        let name = NAMES[random.below(NAMES.len() as u64) as usize];
        let number = random.below(range);
        if number < range / 3 { name.to_owned() } else { format!("{name}{number}") }
    }
    let mut random = SplitMix64::new(KEY_SEED);
    let mut keys = std::collections::BTreeSet::new();
    let mut directories = std::collections::BTreeSet::new();
    while keys.len() < key_count {
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
    let directories: Vec<String> = directories.into_iter().collect();
    let set = keys.clone();
    Workload::new("paths, prefixes", keys.into_iter().collect(), move |count, seed| {
        let mut random = SplitMix64::new(seed);
        let mut queries = Vec::new();
        while queries.len() < count {
            let directory = &directories[random.below(directories.len() as u64) as usize];
            let parent = &directory[..=directory[..directory.len() - 1].rfind('/').unwrap()];
            let prefix = format!("{parent}{}/", name(&mut random, 40)).into_bytes();
            let next = set.range(prefix.clone()..).next();
            if next.is_none_or(|next| !next.starts_with(&prefix)) {
                queries.push(OwnedQuery::prefix(prefix));
            }
        }
        queries
    })
}

/// Composite keys: a tenant and a time, both of 8 bytes. Queries: some minutes of a tenant that has no entry then.
fn composite(key_count: usize) -> Workload {
    let mut random = SplitMix64::new(KEY_SEED);
    let tenants: Vec<u64> = (0..200).map(|_| random.next_u64()).collect();
    let mut keys = std::collections::BTreeSet::new();
    while keys.len() < key_count {
        let tenant = tenants[(random.unit() * random.unit() * 200.0) as usize];
        keys.insert((tenant, 1_700_000_000_000 + random.below(30 * 86_400_000)));
    }
    let bytes = |(tenant, time): (u64, u64)| [tenant.to_be_bytes(), time.to_be_bytes()].concat();
    let set = keys.clone();
    Workload::new("tenant and time, ranges", keys.into_iter().map(bytes).collect(), move |count, seed| {
        let mut random = SplitMix64::new(seed);
        let mut queries = Vec::new();
        while queries.len() < count {
            let tenant = tenants[random.below(200) as usize];
            let first = 1_700_000_000_000 + random.below(30 * 86_400_000);
            let last = first + 1 + random.below(60_000);
            if set.range((tenant, first)..=(tenant, last)).next().is_none() {
                queries.push(OwnedQuery::closed(bytes((tenant, first)), bytes((tenant, last))));
            }
        }
        queries
    })
}
