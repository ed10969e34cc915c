//! What `tamis gen` puts into its files: kinds of keys, the queries that each of them has, and operations.

use std::{io, str::FromStr};

use tamis_bench::Needs;
use tamis_workload::{
    Events, KeySet, NON_EMPTY_SEED, QUERY_SEED, QuerySet, Range, SAMPLE_SEED, TextSet, Workload,
    absent_texts, empty_prefixes, empty_text_ranges,
    file::{
        key_set_name, operations_name, write_keys, write_line_ranges, write_lines, write_operations,
        write_ranges,
    },
    non_empty_ranges,
};

use super::Interruptible;
use crate::{failure::Failure, interrupt};

/// Samples in each `.s` file.
const SAMPLE_COUNT: usize = 20_000;
/// Ranges in the non-empty set.
const NON_EMPTY_COUNT: usize = 100_000;
/// Bytes of a text key with its place in memory, and of a line, about.
const TEXT_BYTES: u64 = 64;

/// Writes the content of one file.
pub(super) type Content<'a> = dyn FnMut(Interruptible<'_>) -> io::Result<()> + 'a;

/// Ranges of text keys, both bounds included.
type TextRanges = Vec<(Vec<u8>, Vec<u8>)>;

/// Takes each file: its name and its content.
type Sink<'a> = dyn FnMut(String, &mut Content<'_>) -> Result<(), Failure> + 'a;

/// Keys of any kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyKind {
    Integers(KeySet),
    Text(TextSet),
    Events,
}

/// Queries beside the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Queries {
    Empty(QuerySet),
    NonEmpty,
    TextPoints,
    TextRanges,
    /// Of so many bytes.
    TextPrefix(usize),
}

impl FromStr for KeyKind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        if name == "events" {
            return Ok(Self::Events);
        }
        let text = name.parse().map(Self::Text);
        text.or_else(|_| name.parse().map(Self::Integers)).map_err(|error: String| {
            let texts = TextSet::ALL.map(TextSet::name).join(", ");
            format!("{error}, {texts}, events")
        })
    }
}

impl KeyKind {
    /// The query sets of these names.
    pub(super) fn query_sets(self, names: &[String]) -> Result<Vec<Queries>, Failure> {
        let mut sets = Vec::new();
        for name in names {
            let fail = |text: String| Failure::Usage(format!("--queries: {text}"));
            match self {
                Self::Integers(keys) => sets.extend(integer_sets(keys, name).map_err(fail)?),
                Self::Text(_) => sets.extend(text_sets(name).map_err(fail)?),
                Self::Events => return Err(fail("events have no query sets".to_owned())),
            }
        }
        Ok(sets)
    }
}

fn integer_sets(keys: KeySet, name: &str) -> Result<Vec<Queries>, String> {
    // Gaps are shorter than the longest ranges: hardly any such range is empty.
    let fits = |set: QuerySet| keys != KeySet::Gaps || !set.to_string().contains("_r1m");
    match name {
        "all" => {
            let empty = QuerySet::published(keys).map(Queries::Empty);
            Ok(empty.chain([Queries::NonEmpty]).collect())
        }
        "non_empty" => Ok(vec![Queries::NonEmpty]),
        name => match name.parse() {
            Ok(set) if fits(set) => Ok(vec![Queries::Empty(set)]),
            Ok(set) => Err(format!("no range of {set} is empty among gaps; take shorter ones")),
            Err(error) => Err(format!("{error}, non_empty, all")),
        },
    }
}

fn text_sets(name: &str) -> Result<Vec<Queries>, String> {
    let prefix = name.strip_prefix("prefix_b").and_then(|bits| bits.parse::<usize>().ok());
    match (name, prefix) {
        ("points", _) => Ok(vec![Queries::TextPoints]),
        ("ranges", _) => Ok(vec![Queries::TextRanges]),
        ("all", _) => Ok(vec![Queries::TextPoints, Queries::TextRanges]),
        (_, Some(bits)) if bits > 0 && bits % 8 == 0 => Ok(vec![Queries::TextPrefix(bits / 8)]),
        _ => Err(format!(
            "no query set of text named {name:?}; there are points, ranges, prefix_bN (N a multiple of 8), all"
        )),
    }
}

/// All files of one command.
pub(super) struct Plan {
    pub(super) kind: KeyKind,
    pub(super) count: u64,
    pub(super) seed: u64,
    pub(super) queries: Vec<Queries>,
    pub(super) query_count: u64,
    pub(super) workloads: Vec<Workload>,
}

impl Plan {
    /// Files that are written, about: some query sets have two.
    pub(super) fn step_count(&self) -> u64 {
        1 + self.queries.len() as u64 * 2
    }

    /// Room for keys and queries, in memory and on disk.
    pub(super) fn needs(&self) -> Needs {
        let sets = self.queries.len() as u64;
        if !self.workloads.is_empty() {
            let disk_bytes = self.query_count * TEXT_BYTES * self.workloads.len() as u64;
            return Needs { disk_bytes, memory_bytes: 0 };
        }
        let (key_bytes, query_bytes) = match self.kind {
            KeyKind::Integers(_) => (8, 16),
            KeyKind::Text(_) => (TEXT_BYTES, 2 * TEXT_BYTES),
            KeyKind::Events => (33, 0),
        };
        let keys = if self.kind == KeyKind::Events { 0 } else { self.count * key_bytes };
        Needs {
            disk_bytes: self.count * key_bytes + sets * self.query_count * query_bytes,
            memory_bytes: keys + self.query_count * query_bytes * sets.min(1),
        }
    }

    /// Draws and writes one file after the other.
    pub(super) fn write(&self, sink: &mut Sink<'_>) -> Result<(), Failure> {
        for workload in &self.workloads {
            let name = operations_name(workload, self.count, self.query_count, self.seed);
            // Some need the weights of all items first.
            let operations =
                interrupt::at_once(|| workload.operations(self.count, self.query_count, self.seed))?;
            sink(format!("{name}.ops"), &mut |file| write_operations(file, operations.clone()))?;
        }
        if !self.workloads.is_empty() {
            return Ok(());
        }
        match self.kind {
            KeyKind::Integers(set) => self.write_integers(set, sink),
            KeyKind::Text(set) => self.write_text(set, sink),
            KeyKind::Events => {
                let stem = key_set_name("events", self.count, self.seed);
                let events = || Events::new(self.seed).take(self.count as usize);
                sink(format!("{stem}.txt"), &mut |file| {
                    write_lines(file, events().map(|event| crate::bytes::hex(&event.key())))
                })
            }
        }
    }

    fn write_integers(&self, set: KeySet, sink: &mut Sink<'_>) -> Result<(), Failure> {
        let stem = key_set_name(set, self.count, self.seed);
        let keys = interrupt::at_once(|| set.generate(self.count as usize, self.seed))?;
        sink(format!("{stem}.keys"), &mut |file| write_keys(file, &keys))?;
        for queries in &self.queries {
            for (name, ranges) in self.ranges(set, *queries, &stem, &keys)? {
                sink(name, &mut |file| write_ranges(file, &ranges))?;
            }
        }
        Ok(())
    }

    /// The files of a query set: names and ranges.
    fn ranges(
        &self,
        key_set: KeySet,
        queries: Queries,
        stem: &str,
        keys: &[u64],
    ) -> Result<Vec<(String, Vec<Range>)>, Failure> {
        let Queries::Empty(set) = queries else {
            let ranges = interrupt::at_once(|| non_empty_ranges(keys, NON_EMPTY_COUNT, NON_EMPTY_SEED))?;
            return Ok(vec![(format!("{stem}.fn_s{NON_EMPTY_SEED}.q"), ranges)]);
        };
        let files = [("q", QUERY_SEED, self.query_count as usize), ("s", SAMPLE_SEED, SAMPLE_COUNT)];
        let ranges = files.into_iter().map(|(suffix, seed, count)| {
            let ranges = interrupt::at_once(|| set.generate(key_set, keys, count, seed))?
                .map_err(|error| Failure::Usage(format!("--queries: {error}")))?;
            Ok((format!("{stem}.{set}_s{seed}.{suffix}"), ranges))
        });
        ranges.collect()
    }

    fn write_text(&self, set: TextSet, sink: &mut Sink<'_>) -> Result<(), Failure> {
        let stem = key_set_name(set, self.count, self.seed);
        let keys = interrupt::at_once(|| set.generate(self.count as usize, self.seed))?;
        sink(format!("{stem}.txt"), &mut |file| write_lines(file, &keys))?;
        for queries in &self.queries {
            let (name, ranges) = interrupt::at_once(|| self.text_ranges(set, *queries, &keys))?;
            let file = format!("{stem}.{name}_s{QUERY_SEED}.txt");
            match ranges.len() as u64 {
                0 => {
                    return Err(Failure::Usage(format!(
                        "--queries: no range of {name} is empty among these keys; take a longer prefix"
                    )));
                }
                count if count < self.query_count => eprintln!(
                    "tamis: {file}: {count} queries, not {}: among these keys there are no more",
                    self.query_count
                ),
                _ => {}
            }
            sink(file, &mut |file| write_line_ranges(file, &ranges))?;
        }
        Ok(())
    }

    /// A query set: its name, and its ranges of which none holds a key.
    fn text_ranges(&self, set: TextSet, queries: Queries, keys: &[Vec<u8>]) -> (String, TextRanges) {
        let words = absent_texts(set, keys, self.query_count as usize, QUERY_SEED);
        match queries {
            Queries::TextPrefix(length) => {
                let prefixes = empty_prefixes(keys, &words, length).into_iter();
                // No key holds a byte of 255: nothing with the prefix lies above.
                let whole = |prefix: Vec<u8>| (prefix.clone(), [prefix.as_slice(), &[u8::MAX]].concat());
                (format!("prefix_b{}", length * 8), prefixes.map(whole).collect())
            }
            Queries::TextRanges => ("ranges".to_owned(), empty_text_ranges(keys, &words)),
            _ => ("points".to_owned(), words.into_iter().map(|word| (word.clone(), word)).collect()),
        }
    }
}
