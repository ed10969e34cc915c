//! `tamis filter eval`: builds a filter, runs queries on it, and prints false positive rate, size and times.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};
use tamis::SystemClock;
use tamis_bench::{
    BenchError,
    filter::{FilterInput, Plan, Ranges},
};
use tamis_filter::{Budget, BuildError, Family, FilterSpec, KeyRange, KeySet};

use super::{
    input::{self, Kind},
    report::Report,
};
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  tamis gen inputs --queries uniform_r0 non_empty
  tamis filter eval --family blocked-bloom --bits-per-key 10 \\
    --keys inputs/uniform_n1m_s42.keys --queries inputs/uniform_n1m_s42.uniform_r0_s43.q
  tamis filter eval --family blocked-bloom:probes=6 --bits-per-key 12 --keys words --queries ranges
  tamis filter eval --family surf-real:bits=8 --keys words --queries ranges --format json";

const FILES: &str = "\
Files are binary 64-bit values (a count, then the values; each query is a pair), or text. A text
file of keys has one key per line, sorted by bytes; a query is lower<TAB>upper, both inclusive.

Times depend on the machine. To compare machines, use times in calibration units: one unit is the
time of a binary search over as many random integers as there are keys, where each search depends
on the result of the previous one. Use a release build on an idle machine.";

/// Examples, the filter families, and the formats of the files.
fn after_help() -> String {
    let mut text = format!("{EXAMPLES}\n\nFilter families and their parameters:\n");
    for family in Family::ALL {
        text.push_str(&format!("  {:<13} {}\n", family.name(), family.help()));
    }
    format!("{text}\n{FILES}")
}

/// The output format.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    /// A table
    Table,
    /// One JSON object
    Json,
}

/// Build a filter over keys, run queries on it, and print false positive rate, size and times
#[derive(Debug, Args)]
#[command(after_help = after_help())]
pub(crate) struct EvalArgs {
    /// Filter family: NAME or NAME:param=value,param=value
    #[arg(long, value_name = "FAMILY")]
    family: String,
    /// Size budget of the filter, in bits per key
    #[arg(long, value_name = "BITS")]
    bits_per_key: Option<f64>,
    /// File of keys
    #[arg(long, value_name = "FILE")]
    keys: PathBuf,
    /// File of queries; queries that contain a key are counted separately
    #[arg(long, value_name = "FILE")]
    queries: PathBuf,
    /// File of sample queries, for families that choose their design from a sample
    #[arg(long, value_name = "FILE")]
    sample: Option<PathBuf>,
    /// File of ranges that all contain a key; the filter must accept each of them
    #[arg(long, value_name = "FILE")]
    present: Option<PathBuf>,
    /// Seed of the key hashes
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Output format
    #[arg(long, default_value = "table", value_name = "FORMAT")]
    format: Format,
}

fn usage(error: &BuildError) -> Failure {
    let advice = match error {
        BuildError::BudgetMissing { .. } => " with --bits-per-key",
        BuildError::UnknownFamily { name, .. } if name.contains('@') => {
            "; give the bits per key with --bits-per-key"
        }
        _ => "",
    };
    Failure::Usage(format!("{error}{advice}"))
}

impl EvalArgs {
    pub(super) fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        let spec: FilterSpec = self.family.parse().map_err(|error| usage(&error))?;
        // Reports wrong parameters before reading large files.
        spec.builder(self.seed).map_err(|error| usage(&error))?;
        let budget = self.bits_per_key.map_or(Ok(Budget::BY_PARAMETERS), Budget::bits_per_key);
        let budget = budget.map_err(|error| usage(&error))?;

        let (keys, kind) = input::read_keys(&self.keys)?;
        let queries = input::read_queries(&self.queries, kind)?;
        let samples = read_optional(self.sample.as_deref(), kind)?;
        let present = read_optional(self.present.as_deref(), kind)?;
        if let Some(path) = &self.present {
            check_present(path, &keys, &present)?;
        }

        let input = FilterInput { keys: keys.into(), queries, samples, present };
        let plan = Plan { spec: &spec, seed: self.seed, budget, input: &input };
        let outcome = plan.measure(&SystemClock::default()).map_err(|error| match error {
            BenchError::Build(error) => usage(&error),
            other => Failure::Damage(other.to_string()),
        })?;
        let report = Report {
            lacks_sample: self.sample.is_none() && designs_itself(spec.family()),
            family: self.family.clone(),
            key_count: input.keys.len() as u64,
            query_count: input.queries.len() as u64,
            outcome,
        };
        match self.format {
            Format::Json => Ok(writeln!(output, "{}", report.to_json())?),
            Format::Table => report.write_table(output),
        }
    }
}

/// Whether a family chooses its design from a sample of the queries.
const fn designs_itself(family: Family) -> bool {
    matches!(
        family,
        Family::Surf | Family::Rosetta | Family::Proteus | Family::OnePrefixBloom | Family::TwoPrefixBloom
    )
}

fn read_optional(path: Option<&Path>, kind: Kind) -> Result<Ranges, Failure> {
    path.map_or_else(|| Ok(Ranges::default()), |path| input::read_queries(path, kind))
}

fn check_present(path: &Path, keys: &KeySet, present: &Ranges) -> Result<(), Failure> {
    let empty = present.iter().position(|(lower, upper)| !keys.has_key_in(&KeyRange::closed(lower, upper)));
    empty.map_or(Ok(()), |number| {
        let path = path.display();
        Err(Failure::Input(format!("{path}: range number {number} (from 0) contains no key; every range of --present must contain one")))
    })
}
