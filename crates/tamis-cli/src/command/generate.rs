//! `tamis gen`: writes files of keys, queries and operations, byte for byte as published.

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

Key sets of 64-bit values: uniform, normal, gaps, zipf. Their query sets: uniform_r0, uniform_r32,
uniform_r1024, uniform_r1m, the same with correlated_, split, prefix_bN (N bits), mixed_r32_e50
(50 in a hundred are empty), non_empty, or all.
Key sets of text, one key a line: domains, emails, composite. Their query sets: points, ranges,
prefix_bN (N a multiple of 8), mixed_e50, non_empty, or all.
Sensor events, in hexadecimal digits: events. Their query sets: points, and those of 64-bit values
over the timestamps, with lengths in nanoseconds (an event comes every 100,000).

Names of files tell set, count and seed: uniform_n1m_s42.keys, uniform_n1m_s42.split_s43.q
(queries), uniform_n1m_s42.split_s44.s (samples), uniform_n1m_s42.fn_s45.q (ranges that all hold
a key). Of text and events: emails_n1m_s42.txt, emails_n1m_s42.points_s43.txt (queries),
emails_n1m_s42.points_s44.s.txt (samples), emails_n1m_s42.fn_s45.txt. Of operations:
ycsb-a_n1m_o1m_s42.ops.

The keys of fillseq ascend. readwhilewriting has two files: its reads, and with .writer.ops what one
more thread writes beside them, again and again until they are done.

Which bytes are the same on every machine: keys of uniform and gaps with all their queries, and
operations whose choices are uniform. All others go through ln, exp, cos or powf of the system's C
library, and another library or processor may draw a few others: normal, zipf, text, events, their
queries, and operations of ycsb-.., readzipfian and shift-hot-spot.";

/// The examples, and the workloads that there are.
fn after_help() -> String {
    let mut text = format!("{EXAMPLES}\n\nOperations (a line holds kind, key, and bound or limit) of:");
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

/// Columns of a line of help.
const LINE_LENGTH_MAX: usize = 100;

/// Write files of keys, queries and operations for experiments
///
/// The same arguments give the same bytes each time; which sets do so on every machine is said below.
#[derive(Debug, Args)]
#[command(after_help = after_help())]
pub(crate) struct GenArgs {
    /// The folder for the files; it is made if it is not there
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// The key set
    #[arg(long, default_value = "uniform", value_name = "SET")]
    keys: KeyKind,
    /// How many keys; for operations, how many items the store holds before
    #[arg(long, default_value_t = 1_000_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    count: u64,
    /// The seed of the keys and of the operations
    #[arg(long, default_value_t = PUBLIC_KEY_SEED, value_name = "N")]
    seed: u64,
    /// Query sets to write beside the keys
    #[arg(long, num_args = 1.., value_name = "SET")]
    queries: Vec<String>,
    /// Write operations of these workloads instead of keys
    #[arg(long, num_args = 1.., value_name = "WORKLOAD", conflicts_with_all = ["keys", "queries"])]
    operations: Vec<Workload>,
    #[command(flatten)]
    draws: DrawArgs,
    /// Replace files that are there
    #[arg(long)]
    force: bool,
    /// The names of the files as a JSON object
    #[arg(long)]
    json: bool,
}

/// What helps where room is missing.
const ROOM_ADVICE: &str = "take a smaller --count or --query-count";

impl GenArgs {
    /// What is to be written; refuses query sets that the keys do not have.
    fn plan(&self) -> Result<Plan, Failure> {
        if self.operations.is_empty() {
            Plan::of_keys(self.keys, &self.queries, self.count, self.seed, self.draws)
        } else {
            Ok(Plan::of_operations(self.operations.clone(), self.count, self.seed, self.draws))
        }
    }

    pub(super) fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        let plan = self.plan()?;
        // Too little room is told before anything is drawn.
        plan.needs().check_advising(&self.dir, ROOM_ADVICE)?;
        interrupt::watch()?;
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

/// Writes a whole file, or leaves none. What the system ends in the middle leaves a file with `.part` behind its name.
fn write_file(path: &Path, force: bool, content: &mut Content<'_>) -> Result<(), Failure> {
    let fail = |error: io::Error| Failure::Input(format!("{}: {error}", path.display()));
    let target = OutputFile::create(path, force, "add --force to replace it")?;
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

/// A file whose writing ends when the program is interrupted.
struct Interruptible<'a> {
    target: &'a OutputFile,
}

impl Write for Interruptible<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if interrupt::is_interrupted() {
            // Not of the kind `Interrupted`: that is tried again.
            return Err(io::Error::other("interrupted"));
        }
        self.target.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.target.flush()
    }
}
