//! The content of the files of `tamis gen`: key sets, the query sets of each kind of keys, and operations.

use std::{fmt, io, str::FromStr};

use clap::Args;
use tamis_bench::Needs;
use tamis_workload::{
    EventQuerySet, EventRange, Events, KeyForm, KeySet, NON_EMPTY_SEED, NoEmptyRange, Operation, QUERY_SEED,
    QuerySet, Range, SAMPLE_SEED, TextQuerySet, TextRange, TextSet, Workload,
    file::{
        key_set_name, operations_name, write_keys, write_line_ranges, write_lines, write_operations,
        write_ranges,
    },
    non_empty_event_ranges, non_empty_ranges, non_empty_text_ranges,
};

use super::Interruptible;
use crate::{bytes::hex, failure::Failure, interrupt};

/// Number of ranges in the non-empty set.
const NON_EMPTY_COUNT: u64 = 100_000;
/// Approximate bytes of a text key in memory, and of its line in the file.
const TEXT_BYTES: u64 = 64;

/// Writes the content of one file.
pub(super) type Content<'a> = dyn FnMut(Interruptible<'_>) -> io::Result<()> + 'a;

/// Receives the name and the content of each file.
type Sink<'a> = dyn FnMut(String, &mut Content<'_>) -> Result<(), Failure> + 'a;

/// A key set of any kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyKind {
    Integers(KeySet),
    Text(TextSet),
    Events,
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

/// Numbers and seeds of the queries and samples.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct DrawArgs {
    /// Number of queries per query set, and number of operations
    #[arg(long, default_value_t = 1_000_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    query_count: u64,
    /// Number of sample queries per query set
    #[arg(long, default_value_t = 20_000, value_name = "N", requires = "queries", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    sample_count: u64,
    /// Seed of the queries
    #[arg(long, default_value_t = QUERY_SEED, value_name = "N", requires = "queries")]
    query_seed: u64,
    /// Seed of the samples
    #[arg(long, default_value_t = SAMPLE_SEED, value_name = "N", requires = "queries")]
    sample_seed: u64,
    /// Seed of the non-empty ranges
    #[arg(long, default_value_t = NON_EMPTY_SEED, value_name = "N", requires = "queries")]
    non_empty_seed: u64,
}

/// A query set of a kind of keys, or the set of ranges that all contain a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Queries<S> {
    Of(S),
    NonEmpty,
}

/// A file of queries.
struct Part {
    is_sample: bool,
    count: u64,
    seed: u64,
}

impl<S> Queries<S> {
    /// The files of the set: queries and samples.
    fn parts(&self, draws: &DrawArgs) -> Vec<Part> {
        let part = |is_sample, count, seed| Part { is_sample, count, seed };
        match self {
            Self::Of(_) => vec![
                part(false, draws.query_count, draws.query_seed),
                part(true, draws.sample_count, draws.sample_seed),
            ],
            Self::NonEmpty => vec![part(false, NON_EMPTY_COUNT, draws.non_empty_seed)],
        }
    }
}

impl<S: fmt::Display> fmt::Display for Queries<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Of(set) => fmt::Display::fmt(set, formatter),
            // For "false negatives": the set is used to find them.
            Self::NonEmpty => formatter.write_str("fn"),
        }
    }
}

/// Parses names of query sets; `all` means the given sets and the set of non-empty ranges.
fn query_sets<S: FromStr<Err = String>>(
    names: &[String],
    all: impl Fn() -> Vec<S>,
) -> Result<Vec<Queries<S>>, Failure> {
    let mut sets = Vec::new();
    for name in names {
        match name.as_str() {
            "all" => sets.extend(all().into_iter().map(Queries::Of).chain([Queries::NonEmpty])),
            "non_empty" => sets.push(Queries::NonEmpty),
            name => sets
                .push(Queries::Of(name.parse().map_err(|error| usage(format!("{error}, non_empty, all")))?)),
        }
    }
    Ok(sets)
}

fn usage(text: impl fmt::Display) -> Failure {
    Failure::Usage(format!("--queries: {text}"))
}

/// The content of a plan.
#[derive(Debug)]
enum PlanContent {
    Integers(KeySet, Vec<Queries<QuerySet>>),
    Text(TextSet, Vec<Queries<TextQuerySet>>),
    Events(Vec<Queries<EventQuerySet>>),
    Operations(Vec<Workload>),
}

/// All files of one command line.
#[derive(Debug)]
pub(super) struct Plan {
    content: PlanContent,
    count: u64,
    seed: u64,
    draws: DrawArgs,
}

impl Plan {
    /// Keys and queries over them.
    pub(super) fn of_keys(
        kind: KeyKind,
        queries: &[String],
        count: u64,
        seed: u64,
        draws: DrawArgs,
    ) -> Result<Self, Failure> {
        let content = match kind {
            KeyKind::Integers(keys) => {
                let sets = query_sets(queries, || QuerySet::published(keys).collect())?;
                check_room(keys, &sets)?;
                PlanContent::Integers(keys, sets)
            }
            KeyKind::Text(keys) => {
                PlanContent::Text(keys, query_sets(queries, || TextQuerySet::ALL.to_vec())?)
            }
            KeyKind::Events => PlanContent::Events(query_sets(queries, || EventQuerySet::all().collect())?),
        };
        Ok(Self { content, count, seed, draws })
    }

    /// Operations on a store with `count` entries.
    pub(super) fn of_operations(workloads: Vec<Workload>, count: u64, seed: u64, draws: DrawArgs) -> Self {
        Self { content: PlanContent::Operations(workloads), count, seed, draws }
    }

    /// The files of queries.
    fn parts(&self) -> Vec<Part> {
        fn of<S>(sets: &[Queries<S>], draws: &DrawArgs) -> Vec<Part> {
            sets.iter().flat_map(|set| set.parts(draws)).collect()
        }
        match &self.content {
            PlanContent::Integers(_, sets) => of(sets, &self.draws),
            PlanContent::Text(_, sets) => of(sets, &self.draws),
            PlanContent::Events(sets) => of(sets, &self.draws),
            PlanContent::Operations(_) => Vec::new(),
        }
    }

    /// Number of files that [`Self::write`] writes.
    pub(super) fn file_count(&self) -> u64 {
        match &self.content {
            PlanContent::Operations(workloads) => {
                workloads.iter().map(|workload| 1 + u64::from(workload.has_writer)).sum()
            }
            _ => 1 + self.parts().len() as u64,
        }
    }

    /// Memory and disk for keys and queries.
    pub(super) fn needs(&self) -> Needs {
        let parts = self.parts();
        // Bytes of a key and of a query, on disk and in memory.
        let (key, query) = match &self.content {
            PlanContent::Integers(..) => ((8, 8), (16, 16)),
            PlanContent::Text(..) => ((TEXT_BYTES, TEXT_BYTES), (2 * TEXT_BYTES, 3 * TEXT_BYTES)),
            // Only queries need the timestamps in memory.
            PlanContent::Events(_) => ((33, if parts.is_empty() { 0 } else { 8 }), (66, 64)),
            PlanContent::Operations(workloads) => {
                let is_kept = workloads.iter().any(|workload| workload.is_sorted);
                let kept_bytes = if is_kept { size_of::<Operation>() as u64 } else { 0 };
                return Needs {
                    disk_bytes: self.file_count() * self.draws.query_count * TEXT_BYTES,
                    memory_bytes: self.draws.query_count * kept_bytes,
                };
            }
        };
        let all: u64 = parts.iter().map(|part| part.count).sum();
        let most = parts.iter().map(|part| part.count).max().unwrap_or(0);
        Needs {
            disk_bytes: self.count * key.0 + all * query.0,
            memory_bytes: self.count * key.1 + most * query.1,
        }
    }

    /// Generates and writes one file after the other.
    pub(super) fn write(&self, sink: &mut Sink<'_>) -> Result<(), Failure> {
        match &self.content {
            PlanContent::Integers(set, queries) => self.write_integers(*set, queries, sink),
            PlanContent::Text(set, queries) => self.write_text(*set, queries, sink),
            PlanContent::Events(queries) => self.write_events(queries, sink),
            PlanContent::Operations(workloads) => {
                workloads.iter().try_for_each(|workload| self.write_workload(workload, sink))
            }
        }
    }

    fn write_workload(&self, workload: &Workload, sink: &mut Sink<'_>) -> Result<(), Failure> {
        let (count, seed) = (self.draws.query_count, self.seed);
        let name = operations_name(workload, self.count, count, seed);
        // Some workloads first compute the weights of all items.
        let operations = interrupt::run_killable(|| workload.operations(self.count, count, seed))?;
        if workload.is_sorted {
            // `write_operations` writes keys in this form.
            let sorted = interrupt::run_killable(|| operations.sorted(KeyForm::Hex))?;
            sink(format!("{name}.ops"), &mut |file| write_operations(file, sorted.iter().copied()))?;
        } else {
            sink(format!("{name}.ops"), &mut |file| write_operations(file, operations.clone()))?;
        }
        if workload.has_writer {
            let writer = workload.writer(self.count, count, seed);
            sink(format!("{name}.writer.ops"), &mut |file| write_operations(file, writer.clone()))?;
        }
        Ok(())
    }

    fn write_integers(
        &self,
        set: KeySet,
        queries: &[Queries<QuerySet>],
        sink: &mut Sink<'_>,
    ) -> Result<(), Failure> {
        let stem = key_set_name(set, self.count, self.seed);
        let keys = interrupt::run_killable(|| set.generate(self.count as usize, self.seed))?;
        sink(format!("{stem}.keys"), &mut |file| write_keys(file, &keys))?;
        let draw = |queries: Queries<QuerySet>, count, seed| match queries {
            Queries::Of(queries) => queries.generate(set, &keys, count, seed),
            Queries::NonEmpty => Ok(non_empty_ranges(&keys, count, seed)),
        };
        let write = |file: Interruptible<'_>, ranges: &[Range]| write_ranges(file, ranges);
        self.write_queries(queries, &stem, ["q", "s"], draw, write, sink)
    }

    fn write_text(
        &self,
        set: TextSet,
        queries: &[Queries<TextQuerySet>],
        sink: &mut Sink<'_>,
    ) -> Result<(), Failure> {
        let stem = key_set_name(set, self.count, self.seed);
        let keys = interrupt::run_killable(|| set.generate(self.count as usize, self.seed))?;
        sink(format!("{stem}.txt"), &mut |file| write_lines(file, &keys))?;
        let draw = |queries: Queries<TextQuerySet>, count, seed| match queries {
            Queries::Of(queries) => queries.generate(set, &keys, count, seed),
            Queries::NonEmpty => Ok(non_empty_text_ranges(&keys, count, seed)),
        };
        let write = |file: Interruptible<'_>, ranges: &[TextRange]| write_line_ranges(file, ranges);
        self.write_queries(queries, &stem, ["txt", "s.txt"], draw, write, sink)
    }

    fn write_events(&self, queries: &[Queries<EventQuerySet>], sink: &mut Sink<'_>) -> Result<(), Failure> {
        let stem = key_set_name("events", self.count, self.seed);
        let events = || Events::new(self.seed).take(self.count as usize);
        sink(format!("{stem}.txt"), &mut |file| write_lines(file, events().map(|event| hex(&event.key()))))?;
        if queries.is_empty() {
            return Ok(());
        }
        let timestamps: Vec<u64> =
            interrupt::run_killable(|| events().map(|event| event.timestamp).collect())?;
        let draw = |queries: Queries<EventQuerySet>, count, seed| match queries {
            Queries::Of(queries) => queries.generate(&timestamps, count, seed),
            Queries::NonEmpty => Ok(non_empty_event_ranges(&timestamps, count, seed)),
        };
        let write = |file: Interruptible<'_>, ranges: &[EventRange]| {
            let lines =
                ranges.iter().map(|(lower, upper)| [lower, upper].map(|bound| hex(&bound.key())).join("\t"));
            write_lines(file, lines)
        };
        self.write_queries(queries, &stem, ["txt", "s.txt"], draw, write, sink)
    }

    /// Writes the files of all query sets; `endings` are the file extensions of queries and samples.
    fn write_queries<S: fmt::Display + Copy, R>(
        &self,
        queries: &[Queries<S>],
        stem: &str,
        endings: [&str; 2],
        draw: impl Fn(Queries<S>, usize, u64) -> Result<Vec<R>, NoEmptyRange>,
        write: impl Fn(Interruptible<'_>, &[R]) -> io::Result<()>,
        sink: &mut Sink<'_>,
    ) -> Result<(), Failure> {
        let [of_queries, of_samples] = endings;
        for queries in queries {
            for Part { is_sample, count, seed } in queries.parts(&self.draws) {
                let ending = if is_sample { of_samples } else { of_queries };
                let name = format!("{stem}.{queries}_s{seed}.{ending}");
                let ranges =
                    interrupt::run_killable(|| draw(*queries, count as usize, seed))?.map_err(usage)?;
                if (ranges.len() as u64) < count {
                    let got = ranges.len();
                    eprintln!(
                        "tamis: {name}: wrote {got} queries instead of {count}; these keys do not have more"
                    );
                }
                sink(name, &mut |file| write(file, &ranges))?;
            }
        }
        Ok(())
    }
}

/// Rejects the longest ranges for the key set `gaps`: its gaps are shorter, so almost no such range is empty.
fn check_room(keys: KeySet, sets: &[Queries<QuerySet>]) -> Result<(), Failure> {
    let is_long = |set: &&Queries<QuerySet>| set.to_string().contains("_r1m");
    match sets.iter().find(is_long) {
        Some(set) if keys == KeySet::Gaps => {
            Err(usage(format!("the key set gaps has no empty range of {set}; use shorter ranges")))
        }
        _ => Ok(()),
    }
}
