//! `tamis bench`: runs experiments, shows where they stand, and prints what they found.

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
  tamis bench run all --size small --out results

A run writes NAME-SIZE-sSEED.json after every point, and at its end, also by Ctrl-C, a plot as .svg
for each drawing: an interrupted run keeps what it has, and the same command goes on. Stores lie in
--scratch while they are measured and are deleted before the next one is loaded; what a killed run
leaves (tamis-bench-*) is named by the next. Use a release build on an idle machine.";

/// The most threads that drive a store.
const THREADS_MAX: u64 = 1024;
/// Steps of the bar for each point, so that long points move it.
const POINT_STEPS: u64 = 1000;

/// Run experiments: measurements of stores and filters, and the figures of the papers
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
    /// As a JSON array
    #[arg(long)]
    json: bool,
}

/// Run experiments
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
struct RunArgs {
    /// Names of experiments, beginnings of names that end with a dash (`surf-`), or `all`
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// How much is measured: small (seconds), medium (minutes) or full (up to two hours)
    #[arg(long, default_value = "small", value_name = "SIZE")]
    size: Size,
    /// The folder of the results; it is made if it is not there
    #[arg(long, default_value = "results", value_name = "DIR")]
    out: PathBuf,
    /// The folder of stores while they are measured [default: that of the results]
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
    /// The seed of everything drawn
    #[arg(long, default_value_t = 42, value_name = "N")]
    seed: u64,
    /// Measure only points where a parameter has this value; several values of one parameter are all measured
    #[arg(long, value_name = "PARAMETER=VALUE", value_parser = parse_pair)]
    only: Vec<(String, String)>,
    /// Measure experiments with a parameter `threads` at these numbers of threads instead of their own
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..=THREADS_MAX))]
    threads: Vec<u64>,
    /// Measure anew what was measured before
    #[arg(long)]
    again: bool,
    /// The results as JSON, one object a line
    #[arg(long)]
    json: bool,
}

fn parse_pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("{text:?} is not PARAMETER=VALUE"))?;
    Ok((name.to_owned(), value.to_owned()))
}

impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Self {
        if let BenchError::Unknown { .. } = error {
            return Self::Usage(error.to_string());
        }
        // What a point met is the cause; the message tells the point, too.
        let mut cause = &error;
        while let BenchError::Point { source, .. } = cause {
            cause = source;
        }
        match cause {
            BenchError::Io { .. } | BenchError::Place { .. } | BenchError::TooLittle { .. } => {
                Self::Input(error.to_string())
            }
            // Stores of experiments are outputs: what the system refuses them is no damage.
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
        let header = ["name", "what it measures", "repeats", "small", "medium", "full"];
        writeln!(output, "{}", terminal::table(3, &header, rows))?;
        Ok(writeln!(output, "The numbers are points; `tamis bench run NAME --size small` ends in seconds.")?)
    }
}

impl RunArgs {
    /// What is run, and how.
    fn plan(&self) -> Result<(Vec<&'static Definition>, RunOptions), Failure> {
        let definitions = self.definitions()?;
        if self.out.exists() && !self.out.is_dir() {
            return Err(Failure::Input(format!("{}: no folder; name one with --out", self.out.display())));
        }
        let options = RunOptions {
            seed: self.seed,
            scratch: self.scratch.clone().unwrap_or_else(|| self.out.clone()),
            again: self.again,
            only: self.only.clone(),
            threads: self.threads.clone(),
            ..RunOptions::new(self.size, &self.out)
        };
        Ok((definitions, options))
    }

    fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        let (definitions, options) = self.plan()?;
        interrupt::watch()?;
        if cfg!(debug_assertions) && self.size != Size::Small {
            eprintln!("tamis: this is a debug build: its times mean nothing; build with --release");
        }
        for left in tamis_bench::leftovers(&options.scratch) {
            eprintln!("tamis: {}: a store that a killed run left; remove it", left.display());
        }
        for definition in &definitions {
            tamis_bench::check(definition, &options)?;
        }
        for definition in definitions {
            let bar = progress::points(definition.name);
            let mut shown = Shown { bar, total: 0, done: 0, is_begun: false };
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
                    "interrupted after {} of {} points; they are kept in {}, and the same command goes on",
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
                // The message lists the names there are.
                find(name)?;
            }
            definitions.extend(chosen);
        }
        Ok(definitions)
    }
}

/// A bar over all points.
struct Shown {
    bar: ProgressBar,
    total: u64,
    done: u64,
    is_begun: bool,
}

impl Observer for Shown {
    fn begin(&mut self, total: usize, done: usize) {
        (self.total, self.done) = (total as u64, done as u64);
        self.bar.set_length(self.total * POINT_STEPS);
        // What was measured before says nothing of the time that is left.
        self.bar.set_position(self.done * POINT_STEPS);
        self.bar.reset_eta();
    }

    fn point(&mut self, point: &Point) {
        self.done += u64::from(self.is_begun);
        self.is_begun = true;
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
/// Columns that a terminal still shows.
const COLUMN_COUNT_MAX: usize = 12;

/// The results for people: a table, the paper's figures, and where everything lies.
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
        let header = ["the paper's figures", "metric", "paper", "ours", "ratio"];
        writeln!(output, "{}", terminal::table(2, &header, rows))?;
    }
    let state = if report.is_complete { "all" } else { "PARTIAL:" };
    writeln!(
        output,
        "{state} {} of {} points, size {}, seed {}, commit {}, digest of the operations {}",
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
