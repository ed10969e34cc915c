//! `tamis gen`: writes files of keys and queries, byte for byte as published.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use clap::Args;
use serde_json::json;
use tamis_workload::{
    KeySet, NON_EMPTY_SEED, PUBLIC_KEY_SEED, QUERY_SEED, QuerySet, Range, SAMPLE_SEED,
    file::{key_set_name, write_keys, write_ranges},
    non_empty_ranges,
};

use crate::{failure::Failure, interrupt, progress};

const EXAMPLES: &str = "\
Examples:
  tamis gen inputs                                      a million uniform keys
  tamis gen inputs --keys gaps --count 10000000
  tamis gen inputs --keys normal --queries correlated_r32 split non_empty
  tamis gen inputs --queries all

Key sets: uniform, normal, gaps. Query sets: uniform_r0, uniform_r32, uniform_r1024, uniform_r1m,
the same with correlated_, split, non_empty, or all. Names of files tell set, count and seed:
uniform_n1m_s42.keys, uniform_n1m_s42.split_s43.q (queries), uniform_n1m_s42.split_s44.s (samples).";

/// Write files of keys and queries for experiments
///
/// The same arguments give the same bytes on every machine.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GenArgs {
    /// The folder for the files; it is made if it is not there
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// The key set
    #[arg(long, default_value = "uniform", value_name = "SET")]
    keys: KeySet,
    /// How many keys
    #[arg(long, default_value_t = 1_000_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    count: u64,
    /// The seed of the keys
    #[arg(long, default_value_t = PUBLIC_KEY_SEED, value_name = "N")]
    seed: u64,
    /// Query sets to write beside the keys
    #[arg(long, num_args = 1.., value_name = "SET")]
    queries: Vec<String>,
    /// How many queries in each set
    #[arg(long, default_value_t = 1_000_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    query_count: u64,
    /// Replace files that are there
    #[arg(long)]
    force: bool,
    /// The names of the files as a JSON object
    #[arg(long)]
    json: bool,
}

/// Samples in each `.s` file.
const SAMPLE_COUNT: usize = 20_000;
/// Ranges in the non-empty set.
const NON_EMPTY_COUNT: usize = 100_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Queries {
    Empty(QuerySet),
    NonEmpty,
}

impl GenArgs {
    pub(super) fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        let sets = self.query_sets()?;
        interrupt::watch()?;
        std::fs::create_dir_all(&self.dir)
            .map_err(|error| Failure::Input(format!("{}: {error}", self.dir.display())))?;
        let bar = progress::items(Some(1 + sets.len() as u64));
        bar.set_message("generating");
        let stem = key_set_name(self.keys, self.count, self.seed);
        let keys = self.keys.generate(self.count as usize, self.seed);
        let mut names = Vec::new();
        let mut write = |name: String, content: &dyn Fn(File) -> io::Result<()>| {
            if interrupt::is_interrupted() {
                return Err(Failure::Interrupted(format!("interrupted before {name} was begun")));
            }
            write_file(&self.dir.join(&name), self.force, content)?;
            names.push(name);
            Ok(())
        };
        write(format!("{stem}.keys"), &|file| write_keys(file, &keys))?;
        for set in sets {
            bar.inc(1);
            for (name, ranges) in self.ranges(set, &stem, &keys)? {
                write(name, &|file| write_ranges(file, &ranges))?;
            }
        }
        bar.finish_and_clear();
        if self.json {
            writeln!(output, "{}", json!({ "folder": self.dir.display().to_string(), "files": names }))?;
        } else {
            for name in names {
                writeln!(output, "{}", self.dir.join(name).display())?;
            }
        }
        Ok(())
    }

    fn query_sets(&self) -> Result<Vec<Queries>, Failure> {
        // Gaps are shorter than the longest ranges: hardly any such range is empty.
        let fits = |set: QuerySet| self.keys != KeySet::Gaps || !set.to_string().ends_with("_r1m");
        let mut sets = Vec::new();
        for name in &self.queries {
            match name.as_str() {
                "all" => {
                    let empty = QuerySet::all().filter(|&set| fits(set)).map(Queries::Empty);
                    sets.extend(empty.chain([Queries::NonEmpty]));
                }
                "non_empty" => sets.push(Queries::NonEmpty),
                name => match name.parse() {
                    Ok(set) if fits(set) => sets.push(Queries::Empty(set)),
                    Ok(set) => {
                        let text =
                            format!("--queries: no range of {set} is empty among gaps; take shorter ones");
                        return Err(Failure::Usage(text));
                    }
                    Err(error) => return Err(Failure::Usage(format!("--queries: {error}, non_empty, all"))),
                },
            }
        }
        Ok(sets)
    }

    /// The files of a query set: names and ranges.
    fn ranges(&self, set: Queries, stem: &str, keys: &[u64]) -> Result<Vec<(String, Vec<Range>)>, Failure> {
        let Queries::Empty(set) = set else {
            let ranges = non_empty_ranges(keys, NON_EMPTY_COUNT, NON_EMPTY_SEED);
            return Ok(vec![(format!("{stem}.fn_s{NON_EMPTY_SEED}.q"), ranges)]);
        };
        let files = [("q", QUERY_SEED, self.query_count as usize), ("s", SAMPLE_SEED, SAMPLE_COUNT)];
        let ranges = files.into_iter().map(|(suffix, seed, count)| {
            let ranges = set
                .generate(self.keys, keys, count, seed)
                .map_err(|error| Failure::Usage(format!("--queries: {error}")))?;
            Ok((format!("{stem}.{set}_s{seed}.{suffix}"), ranges))
        });
        ranges.collect()
    }
}

/// Writes a whole file, or leaves none.
fn write_file(path: &Path, force: bool, content: &dyn Fn(File) -> io::Result<()>) -> Result<(), Failure> {
    let fail = |error: io::Error| {
        let advice =
            if error.kind() == io::ErrorKind::AlreadyExists { "; add --force to replace it" } else { "" };
        Failure::Input(format!("{}: {error}{advice}", path.display()))
    };
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    if !force {
        options.create_new(true);
    }
    let file = options.open(path).map_err(fail)?;
    content(file).map_err(|error| {
        #[expect(clippy::disallowed_methods, reason = "the user's own output, no file of a store")]
        let _ = std::fs::remove_file(path);
        fail(error)
    })
}
