//! `tamis gen`: writes files of keys, queries and operations; the same arguments write the same bytes.

mod content;
#[cfg(test)]
mod tests;

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use clap::Args;
use serde_json::json;
use tamis_workload::{PUBLIC_KEY_SEED, Workload};

use self::content::{Content, DrawArgs, KeyKind, Plan};
use crate::{failure::Failure, interrupt, output_file::OutputFile, progress};

const EXAMPLES: &str = "\
Examples:
  tamis gen inputs                                      a million uniform keys
  tamis gen inputs --keys gaps --count 10000000
  tamis gen inputs --keys normal --queries correlated_r32 split non_empty
  tamis gen inputs --keys uniform --queries mixed_r32_e50 --query-seed 7 --sample-seed 8
  tamis gen inputs --keys emails --queries points mixed_e50 prefix_b64 non_empty
  tamis gen inputs --keys events --queries points mixed_r1m_e25
  tamis gen inputs --operations ycsb-a ycsb-e --query-count 100000

Keys that are 64-bit values: uniform, normal, gaps, zipf.
  Query sets: uniform_r0, uniform_r32, uniform_r1024, uniform_r1m, the same with correlated_, split,
  prefix_bN (N bits), mixed_r32_e50 (50 % of the queries are empty), non_empty, or all.
Keys that are text, one per line: domains, emails, composite.
  Query sets: points, ranges, prefix_bN (N a multiple of 8), mixed_e50, non_empty, or all.
Keys that are sensor events, in hexadecimal digits: events.
  Query sets: points, and the query sets of 64-bit values over the timestamps, with lengths in
  nanoseconds (one event every 100,000).

A file name contains set, count and seed: uniform_n1m_s42.keys, uniform_n1m_s42.split_s43.q
(queries), uniform_n1m_s42.split_s44.s (samples), uniform_n1m_s42.fn_s45.q (ranges that all contain
a key). Text and events: emails_n1m_s42.txt, emails_n1m_s42.points_s43.txt (queries),
emails_n1m_s42.points_s44.s.txt (samples), emails_n1m_s42.fn_s45.txt. Operations:
ycsb-a_n1m_o1m_s42.ops.

The keys of fillseq are in ascending order. readwhilewriting has two files: the reads, and in
.writer.ops the operations that a second thread repeats until the reads are done.

These files have the same bytes on every machine: the keys of uniform and gaps, their queries, and
operations with uniform distributions. The others (normal, zipf, text, events, their queries, and
the operations of ycsb-*, readzipfian and shift-hot-spot) use ln, exp, cos or powf of the C
library, so a few values may differ with another C library or processor.";

/// The examples and the list of workloads.
fn after_help() -> String {
    let mut text = format!(
        "{EXAMPLES}\n\nWorkloads for --operations (each line has the kind, the key, and a bound or limit):"
    );
    let mut length = LINE_LENGTH_MAX;
    for workload in Workload::all() {
        let name = workload.to_string();
        if length + 1 + name.len() > LINE_LENGTH_MAX {
            text.push_str("\n ");
            length = 1;
        }
        text.push(' ');
        text.push_str(&name);
        length += 1 + name.len();
    }
    text
}

/// Width of the help text.
const LINE_LENGTH_MAX: usize = 100;

/// Write files of keys, queries and operations for experiments
///
/// The same arguments write the same bytes on one machine; the end of this help lists the files that are the same on
/// every machine.
#[derive(Debug, Args)]
#[command(after_help = after_help())]
pub(crate) struct GenArgs {
    /// Folder for the files; created if missing
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Key set
    #[arg(long, default_value = "uniform", value_name = "SET")]
    keys: KeyKind,
    /// Number of keys; with --operations, the number of entries in the store before them
    #[arg(long, default_value_t = 1_000_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    count: u64,
    /// Seed of the keys and operations
    #[arg(long, default_value_t = PUBLIC_KEY_SEED, value_name = "N")]
    seed: u64,
    /// Query sets to write in addition to the keys
    #[arg(long, num_args = 1.., value_name = "SET")]
    queries: Vec<String>,
    /// Write operations of these workloads instead of keys
    #[arg(long, num_args = 1.., value_name = "WORKLOAD", conflicts_with_all = ["keys", "queries"])]
    operations: Vec<Workload>,
    #[command(flatten)]
    draws: DrawArgs,
    /// Overwrite existing files
    #[arg(long)]
    force: bool,
    /// Print the names of the files as a JSON object
    #[arg(long)]
    json: bool,
}

/// The advice in the error for too little memory or disk.
const ROOM_ADVICE: &str = "use a smaller --count or --query-count";

impl GenArgs {
    /// Returns the files to write; rejects query sets that do not exist for the key set.
    fn plan(&self) -> Result<Plan, Failure> {
        if self.operations.is_empty() {
            Plan::of_keys(self.keys, &self.queries, self.count, self.seed, self.draws)
        } else {
            Ok(Plan::of_operations(self.operations.clone(), self.count, self.seed, self.draws))
        }
    }

    pub(super) fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        let plan = self.plan()?;
        // Fails before anything is generated if memory or disk is too small.
        plan.needs().check_advising(&self.dir, ROOM_ADVICE)?;
        interrupt::install_handler()?;
        std::fs::create_dir_all(&self.dir)
            .map_err(|error| Failure::Input(format!("{}: {error}", self.dir.display())))?;
        let bar = progress::items(Some(plan.file_count()));
        bar.set_message("generating");
        let mut names = Vec::new();
        plan.write(&mut |name: String, content: &mut Content<'_>| {
            write_file(&self.dir.join(&name), self.force, content)?;
            bar.inc(1);
            names.push(name);
            Ok(())
        })?;
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
}

/// Writes a complete file, or none. A killed process leaves a file with the suffix `.part`.
fn write_file(path: &Path, force: bool, content: &mut Content<'_>) -> Result<(), Failure> {
    let fail = |error: io::Error| Failure::Input(format!("{}: {error}", path.display()));
    let target = OutputFile::create(path, force, "add --force to overwrite it")?;
    match content(Interruptible { target: &target }) {
        Ok(()) => target.finish().map_err(fail),
        Err(error) => {
            target.discard();
            if interrupt::is_interrupted() {
                let name = path.display();
                return Err(Failure::Interrupted(format!("interrupted; {name} was not written")));
            }
            Err(fail(error))
        }
    }
}

/// A writer that fails after Ctrl-C.
struct Interruptible<'a> {
    target: &'a OutputFile,
}

impl Write for Interruptible<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if interrupt::is_interrupted() {
            // Not `ErrorKind::Interrupted`: writers retry after it.
            return Err(io::Error::other("interrupted"));
        }
        self.target.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.target.flush()
    }
}
