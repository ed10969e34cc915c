//! `tamis advise`: recommends a layout for a workload.

use std::{io::Write, path::PathBuf};

use clap::Args;
use serde_json::json;
use tamis::{KeyspaceOptions, LayoutEstimate, Workload, advise_layout};

use crate::{failure::Failure, store, terminal};

const EXAMPLES: &str = "\
Examples:
  tamis advise store --written 100000000000 --points 2000000 --scans 50000
  tamis advise store --keyspace events --written 5000000000 --json

The counts are those of the program that uses the store: `user_bytes_written`, `point_reads`, and
the sum of scans and seeks in its statistics. The size of the data is read from the store.";

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
    #[arg(long, value_name = "BYTES")]
    written: u64,
    /// Reads of one key in the same period
    #[arg(long, default_value_t = 0, value_name = "COUNT")]
    points: u64,
    /// Scans and seeks in the same period
    #[arg(long, default_value_t = 0, value_name = "COUNT")]
    scans: u64,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

impl AdviseArgs {
    pub(super) fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        let db = store::open_to_read(&self.dir)?;
        let options = store::keyspace(&db, &self.keyspace)?.options().clone();
        let statistics = db.statistics();
        let keyspace = statistics.keyspaces.iter().find(|keyspace| keyspace.name == self.keyspace);
        let mut workload = keyspace.map(|keyspace| Workload::of(&statistics, keyspace)).unwrap_or_default();
        workload.user_bytes_written = self.written;
        (workload.point_reads, workload.scans) = (self.points, self.scans);
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
