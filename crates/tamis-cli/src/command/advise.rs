//! `tamis advise`: recommends a layout for a workload.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use clap::Args;
use serde_json::json;
use tamis::{KeyspaceOptions, LayoutEstimate, Workload, advise_layout};

use crate::{failure::Failure, store, terminal};

const EXAMPLES: &str = "\
Examples:
  tamis advise store --written 100000000000 --points 2000000 --scans 50000
  tamis advise store --keyspace events --statistics statistics.json --json

The counts are those of the program that uses the store: `user_bytes_written`, `point_reads`, and
the sum of scans and seeks in its statistics. The bindings return these as a JSON object, which
`--statistics` takes. The size of the data is read from the store.";

/// Recommend a layout for the workload of a store
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AdviseArgs {
    /// Folder of the store
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Keyspace
    #[arg(long, default_value = "default", value_name = "NAME")]
    keyspace: String,
    /// Bytes of keys and values that the program writes in a period of your choice
    #[arg(long, value_name = "BYTES", required_unless_present = "statistics")]
    written: Option<u64>,
    /// Reads of one key in the same period
    #[arg(long, default_value_t = 0, value_name = "COUNT")]
    points: u64,
    /// Scans and seeks in the same period
    #[arg(long, default_value_t = 0, value_name = "COUNT")]
    scans: u64,
    /// Take the three counts from a file with the statistics of the program, a JSON object
    #[arg(long, value_name = "FILE", conflicts_with_all = ["written", "points", "scans"])]
    statistics: Option<PathBuf>,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

impl AdviseArgs {
    pub(super) fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        let db = store::open_to_read(&self.dir)?;
        let options = store::keyspace(&db, &self.keyspace)?.options();
        let statistics = db.statistics();
        let keyspace = statistics.keyspaces.iter().find(|keyspace| keyspace.name == self.keyspace);
        let mut workload = keyspace.map(|keyspace| Workload::of(&statistics, keyspace)).unwrap_or_default();
        (workload.user_bytes_written, workload.point_reads, workload.scans) = match &self.statistics {
            Some(path) => counts_of(path)?,
            None => (self.written.unwrap_or_default(), self.points, self.scans),
        };
        let estimates = advise_layout(&workload, &options);
        if self.json {
            return Ok(writeln!(output, "{}", as_json(&estimates, &options))?);
        }
        writeln!(output, "{}", as_table(&estimates))?;
        let Some(best) = estimates.first() else { return Ok(()) };
        let recommended = name_of(best);
        let current = options.layout.to_string();
        Ok(writeln!(
            output,
            "Recommended: {recommended}. Now: {current}. Data: {}.",
            terminal::bytes(workload.data_bytes)
        )?)
    }
}

/// Bytes written, point reads, and scans and seeks, from the statistics of a program.
fn counts_of(path: &Path) -> Result<(u64, u64, u64), Failure> {
    let refuse = |reason: String| Failure::Input(format!("{}: {reason}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?;
    let statistics: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| refuse(format!("not a JSON object: {error}")))?;
    let count = |name: &str| {
        let value = statistics.get(name).and_then(serde_json::Value::as_u64);
        value.ok_or_else(|| refuse(format!("no count `{name}`; give the statistics of a Tamis store")))
    };
    let kinds = ["range_scans", "prefix_scans", "forward_seeks", "backward_seeks"];
    let scans =
        kinds.into_iter().try_fold(0_u64, |sum, kind| Ok::<_, Failure>(sum.saturating_add(count(kind)?)))?;
    Ok((count("user_bytes_written")?, count("point_reads")?, scans))
}

/// The name of the layout without its parameters.
fn name_of(estimate: &LayoutEstimate) -> String {
    estimate.layout.to_string().split(':').next().unwrap_or_default().to_owned()
}

fn as_table(estimates: &[LayoutEstimate]) -> comfy_table::Table {
    let rows = estimates.iter().map(|estimate| {
        vec![
            name_of(estimate),
            format!("{:.1}", estimate.write_amplification),
            format!("{:.1}", estimate.runs_per_read),
            format!("{:.2}", estimate.relative_cost),
        ]
    });
    terminal::table(1, &["layout", "bytes written per byte", "runs per read", "cost"], rows)
}

fn as_json(estimates: &[LayoutEstimate], options: &KeyspaceOptions) -> serde_json::Value {
    let estimate = |estimate: &LayoutEstimate| {
        json!({
            "layout": estimate.layout.to_string(), "write_amplification": estimate.write_amplification,
            "runs_per_read": estimate.runs_per_read, "relative_cost": estimate.relative_cost,
        })
    };
    let list: Vec<_> = estimates.iter().map(estimate).collect();
    json!({ "recommended": estimates.first().map(name_of), "current": options.layout.to_string(), "layouts": list })
}
