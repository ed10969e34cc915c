//! `tamis bench`: runs experiments, shows their progress, and prints their results.

use std::{io::Write, path::PathBuf};

use clap::{Args, Subcommand};
use indicatif::ProgressBar;
use serde_json::json;
use tamis_bench::{BenchError, Definition, Observer, Point, Report, RunOptions, Size, all, find, run};

use crate::{failure::Failure, interrupt, progress, terminal};

#[cfg(test)]
mod tests;

const EXAMPLES: &str = "\
Examples:
  tamis bench list
  tamis bench run bloom-rate-by-bits --out results
  tamis bench run store-ycsb --size medium --only workload=ycsb-a --only workload=ycsb-b
  tamis bench run store-ycsb --layout leveled --layout partitioned
  tamis bench run all --size small --out results

A run updates NAME-SIZE-sSEED.json after every point, and writes the .svg plots when it ends. Ctrl-C
stops a run; the results so far are kept, and the same command continues it. Stores are created in
--scratch and deleted after they are measured; if a run was killed, the next run lists the stores
that it left (tamis-bench-*). Use a release build on an idle machine.";

/// Maximum number of client threads.
const THREADS_MAX: u64 = 1024;
/// Steps of the progress bar per point, so that the bar also moves during a long point.
const POINT_STEPS: u64 = 1000;

/// Run experiments: measure stores and filters, and reproduce the figures of the papers
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Debug, Subcommand)]
enum BenchCommand {
    List(ListArgs),
    Run(RunArgs),
}

/// List the experiments
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tamis bench list\n  tamis bench list --json")]
struct ListArgs {
    /// Print a JSON array
    #[arg(long)]
    json: bool,
}

/// Run experiments
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
struct RunArgs {
    /// Names of experiments, prefixes that end with a dash (`surf-`), or `all`
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Size of the experiments: small (seconds), medium (minutes) or full (up to two hours)
    #[arg(long, default_value = "small", value_name = "SIZE")]
    size: Size,
    /// Folder for the results; created if missing
    #[arg(long, default_value = "results", value_name = "DIR")]
    out: PathBuf,
    /// Folder for the stores while they are measured [default: the folder of the results]
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
    /// Seed of the random numbers
    #[arg(long, default_value_t = 42, value_name = "N")]
    seed: u64,
    /// Measure only the points where this parameter has this value; repeat the option for more values
    #[arg(long, value_name = "PARAMETER=VALUE", value_parser = parse_pair)]
    only: Vec<(String, String)>,
    /// Numbers of threads, for experiments with the parameter `threads`, instead of their defaults
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..=THREADS_MAX))]
    threads: Vec<u64>,
    /// Layout of the stores, for experiments with the parameter `layout`, instead of their default: leveled, tiered, partitioned,
    /// or one with its parameters; repeat the option for more layouts
    #[arg(long, value_name = "LAYOUT", value_parser = parse_layout)]
    layout: Vec<String>,
    /// Discard earlier results and measure all points again
    #[arg(long)]
    again: bool,
    /// Print the results as JSON, one object per line
    #[arg(long)]
    json: bool,
}

fn parse_pair(text: &str) -> Result<(String, String), String> {
    let (name, value) =
        text.split_once('=').ok_or_else(|| format!("{text:?} is not of the form PARAMETER=VALUE"))?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Keeps the text: it is the value of the parameter.
fn parse_layout(text: &str) -> Result<String, String> {
    text.parse::<tamis::Layout>().map(|_| text.to_owned()).map_err(|error| error.to_string())
}

impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Self {
        if let BenchError::Unknown { .. } = error {
            return Self::Usage(error.to_string());
        }
        // The exit code depends on the innermost error; the message also names the point.
        let mut cause = &error;
        while let BenchError::Point { source, .. } = cause {
            cause = source;
        }
        match cause {
            BenchError::Io { .. }
            | BenchError::WrongContent { .. }
            | BenchError::InsufficientResources { .. } => Self::Input(error.to_string()),
            // The stores of experiments are outputs: an I/O error there is not corruption.
            BenchError::Store(tamis::Error::Io { .. } | tamis::Error::DiskFull { .. }) => {
                Self::Input(error.to_string())
            }
            _ => Self::Damage(error.to_string()),
        }
    }
}

impl BenchArgs {
    pub(super) fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        match self.command {
            BenchCommand::List(args) => args.run(output),
            BenchCommand::Run(args) => args.run(output),
        }
    }
}

impl ListArgs {
    fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        let points = |definition: &Definition| Size::ALL.map(|size| (definition.points)(size).len() as u64);
        if self.json {
            let object = |definition: &'static Definition| {
                json!({
                    "name": definition.name, "title": definition.title, "source": definition.source,
                    "about": definition.about, "points": points(definition),
                })
            };
            return Ok(writeln!(output, "{}", all().map(object).collect::<serde_json::Value>())?);
        }
        let rows = all().map(|definition| {
            let [small, medium, full] = points(definition).map(terminal::count);
            let source = if definition.source.is_empty() { "-" } else { definition.source };
            [definition.name, definition.title, source]
                .map(str::to_owned)
                .into_iter()
                .chain([small, medium, full])
                .collect()
        });
        let header = ["name", "what it measures", "reproduces", "small", "medium", "full"];
        writeln!(output, "{}", terminal::table(3, &header, rows))?;
        Ok(writeln!(
            output,
            "The last three columns are the number of points per size; `tamis bench run NAME --size small` takes seconds."
        )?)
    }
}

impl RunArgs {
    /// Returns the experiments to run and their options.
    fn plan(&self) -> Result<(Vec<&'static Definition>, RunOptions), Failure> {
        let definitions = self.definitions()?;
        if self.out.exists() && !self.out.is_dir() {
            return Err(Failure::Input(format!(
                "{}: not a folder; give a folder with --out",
                self.out.display()
            )));
        }
        let options = RunOptions {
            seed: self.seed,
            scratch: self.scratch.clone().unwrap_or_else(|| self.out.clone()),
            again: self.again,
            only: self.only.clone(),
            threads: self.threads.clone(),
            layouts: self.layout.clone(),
            ..RunOptions::new(self.size, &self.out)
        };
        Ok((definitions, options))
    }

    fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        let (definitions, options) = self.plan()?;
        interrupt::install_handler()?;
        if cfg!(debug_assertions) && self.size != Size::Small {
            eprintln!("tamis: the times of a debug build are not meaningful; build with --release");
        }
        for left in tamis_bench::leftover_stores(&options.scratch) {
            eprintln!("tamis: {}: left over from a killed run; delete it", left.display());
        }
        for definition in &definitions {
            tamis_bench::check(definition, &options)?;
        }
        for definition in definitions {
            let bar = progress::points(definition.name);
            let mut shown = BarObserver { bar, total: 0, done: 0, has_started: false };
            let report = run(definition, &options, &mut shown)?;
            shown.bar.finish_and_clear();
            if self.json {
                let line = serde_json::to_string(&report).map_err(|error| Failure::Output(error.into()))?;
                writeln!(output, "{line}")?;
            } else {
                show(&report, output)?;
            }
            output.flush()?;
            if interrupt::is_interrupted() && !report.is_complete {
                return Err(Failure::Interrupted(format!(
                    "interrupted after {} of {} points; results are in {}; run the same command again to continue",
                    report.rows.len(),
                    report.point_count,
                    report.path.display()
                )));
            }
        }
        Ok(())
    }

    fn definitions(&self) -> Result<Vec<&'static Definition>, Failure> {
        let mut definitions = Vec::new();
        for name in &self.names {
            let chosen: Vec<_> = match name.as_str() {
                "all" => all().collect(),
                front if front.ends_with('-') => {
                    all().filter(|definition| definition.name.starts_with(front)).collect()
                }
                name => vec![find(name)?],
            };
            if chosen.is_empty() {
                // The error lists the known names.
                find(name)?;
            }
            definitions.extend(chosen);
        }
        Ok(definitions)
    }
}

/// Shows a progress bar over all points.
struct BarObserver {
    bar: ProgressBar,
    total: u64,
    done: u64,
    has_started: bool,
}

impl Observer for BarObserver {
    fn begin(&mut self, total: usize, done: usize) {
        (self.total, self.done) = (total as u64, done as u64);
        self.bar.set_length(self.total * POINT_STEPS);
        // Points of an earlier run do not count for the estimate of the remaining time.
        self.bar.set_position(self.done * POINT_STEPS);
        self.bar.reset_eta();
    }

    fn point(&mut self, point: &Point) {
        self.done += u64::from(self.has_started);
        self.has_started = true;
        self.bar.set_position(self.done * POINT_STEPS);
        self.bar.set_message(format!("point {} of {}: {point}", self.done + 1, self.total));
    }

    fn progress(&mut self, share: f64) {
        self.bar.set_position(self.done * POINT_STEPS + (share * POINT_STEPS as f64) as u64);
    }

    fn is_interrupted(&self) -> bool {
        interrupt::is_interrupted()
    }
}

/// Metrics that are too long for a column.
const WIDE: &[&str] = &["design"];
/// Maximum number of columns of the printed table.
const COLUMN_COUNT_MAX: usize = 12;

/// Prints the results: a table, the comparison with the paper, and the paths of the output files.
fn show(report: &Report, output: &mut dyn Write) -> Result<(), Failure> {
    let source = if report.source.is_empty() { String::new() } else { format!(" ({})", report.source) };
    writeln!(output, "{}: {}{source}", report.experiment, report.title)?;
    writeln!(output, "{}", report.about)?;
    let mut names: Vec<&str> = Vec::new();
    let mut text_columns = 0;
    for row in &report.rows {
        let all = row.point.fields().iter().chain(row.metrics.iter());
        for (name, _) in all.filter(|(name, _)| !WIDE.contains(name)) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        text_columns = text_columns.max(row.point.fields().iter().len());
    }
    names.truncate(COLUMN_COUNT_MAX);
    let cell = |row: &tamis_bench::MeasuredRow, name: &str| {
        row.get(name).map_or_else(String::new, ToString::to_string)
    };
    let rows = report.rows.iter().map(|row| names.iter().map(|name| cell(row, name)).collect());
    writeln!(output, "{}", terminal::table(text_columns, &names, rows))?;
    if !report.comparisons.is_empty() {
        let rows = report.comparisons.iter().map(|comparison| {
            let value = |number: f64| tamis_bench::Value::from(number).to_string();
            let (paper, ours) = (value(comparison.paper), value(comparison.ours));
            vec![
                comparison.point.to_string(),
                comparison.metric.clone(),
                paper,
                ours,
                comparison.ratio.to_string(),
            ]
        });
        let header = ["point", "metric", "paper", "measured", "ratio"];
        writeln!(output, "{}", terminal::table(2, &header, rows))?;
    }
    let state = if report.is_complete { "all" } else { "PARTIAL:" };
    writeln!(
        output,
        "{state} {} of {} points, size {}, seed {}, commit {}, digest of the inputs {}",
        report.rows.len(),
        report.point_count,
        report.size,
        report.seed,
        report.configuration.commit,
        report.digest
    )?;
    writeln!(output, "Results: {}", report.path.display())?;
    for plot in &report.plots {
        writeln!(output, "Plot:    {}", plot.display())?;
    }
    Ok(())
}
