//! The commands `list` and `run` of a program with experiments: runs them, shows their progress, and prints their results.

use std::{io::Write, path::PathBuf, time::Duration};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::{
    BenchError, Catalog, Definition, MeasuredRow, Observer, Point, Report, RunOptions, Size, Value, check,
    leftover_stores, run, terminal,
};

/// The files of a run, for `--help`.
pub const RUN_FILES: &str = "\
A run updates NAME-SIZE-sSEED.json after every point. Ctrl-C stops a run; the results so far are kept,
and the same command continues it. Stores are created in --scratch and deleted after they are measured;
if a run was killed, the next run lists the stores that it left (tamis-bench-*). Use a release build on
an idle machine.";

/// Maximum number of client threads.
const THREADS_MAX: u64 = 1024;
/// Steps of the progress bar per point, so that the bar also moves during a long point.
const POINT_STEPS: u64 = 1000;

/// Interval between two redraws of the progress bar without progress.
const TICK: Duration = Duration::from_millis(200);

/// List the experiments
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Print a JSON array
    #[arg(long)]
    json: bool,
}

/// Run experiments
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Names of experiments, prefixes that end with a dash (`store-`), or `all`
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

impl ListArgs {
    /// Prints the experiments of a catalog.
    ///
    /// # Errors
    /// If `output` cannot be written.
    pub fn run(self, catalog: &Catalog, output: &mut dyn Write) -> Result<(), BenchError> {
        let points = |definition: &Definition| Size::ALL.map(|size| (definition.points)(size).len() as u64);
        if self.json {
            let object = |definition: &'static Definition| {
                json!({
                    "name": definition.name, "title": definition.title, "source": definition.source,
                    "about": definition.about, "points": points(definition),
                })
            };
            return Ok(writeln!(output, "{}", catalog.all().map(object).collect::<serde_json::Value>())?);
        }
        let rows = catalog.all().map(|definition| {
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
            "The last three columns are the number of points per size; `run NAME --size small` takes seconds."
        )?)
    }
}

impl RunArgs {
    /// Returns the experiments to run and their options.
    ///
    /// # Errors
    /// Unknown names, and a folder of results that is a file.
    pub fn plan(&self, catalog: &Catalog) -> Result<(Vec<&'static Definition>, RunOptions), BenchError> {
        let definitions = catalog.select(&self.names)?;
        if self.out.exists() && !self.out.is_dir() {
            let what = "not a folder; give a folder with --out".to_owned();
            return Err(BenchError::WrongContent { path: self.out.clone(), what });
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

    /// Runs experiments of a catalog and prints their results. All are checked before the first one runs.
    ///
    /// # Errors
    /// Those of [`Self::plan`], [`check`] and [`run`]; [`BenchError::Stopped`] after an interruption.
    pub fn run(
        self,
        catalog: &Catalog,
        is_interrupted: fn() -> bool,
        output: &mut dyn Write,
    ) -> Result<(), BenchError> {
        let (definitions, options) = self.plan(catalog)?;
        if cfg!(debug_assertions) && self.size != Size::Small {
            eprintln!("the times of a debug build are not meaningful; build with --release");
        }
        for left in leftover_stores(&options.scratch) {
            eprintln!("{}: left over from a killed run; delete it", left.display());
        }
        for definition in &definitions {
            check(definition, &options)?;
        }
        for definition in definitions {
            let mut report = run_shown(definition, &options, is_interrupted)?;
            if let Some(draw) = catalog.draw {
                report.plots = draw(definition, &report)?;
            }
            if self.json {
                writeln!(output, "{}", serde_json::to_string(&report).map_err(BenchError::other)?)?;
            } else {
                show(&report, output)?;
            }
            output.flush()?;
            if is_interrupted() && !report.is_complete {
                let (done, total) = (report.rows.len() as u64, report.point_count);
                return Err(BenchError::Stopped { done, total, path: report.path });
            }
        }
        Ok(())
    }
}

/// Runs an experiment, and shows its progress.
///
/// # Errors
/// As [`run`].
pub fn run_shown(
    definition: &Definition,
    options: &RunOptions,
    is_interrupted: fn() -> bool,
) -> Result<Report, BenchError> {
    let bar = progress_bar(definition.name);
    let mut shown = BarObserver { bar, total: 0, done: 0, has_started: false, is_interrupted };
    let report = run(definition, options, &mut shown)?;
    shown.bar.finish_and_clear();
    Ok(report)
}

/// A bar for the points of an experiment. Nothing is drawn if standard error is not a terminal.
fn progress_bar(name: &str) -> ProgressBar {
    let mut bar = ProgressBar::new(1).with_prefix(name.to_owned());
    // The default style of the library if the template is invalid.
    if let Ok(style) = ProgressStyle::with_template("{prefix} {wide_bar} {percent} %, {eta} left\n{wide_msg}")
    {
        bar = bar.with_style(style);
    }
    if !bar.is_hidden() {
        bar.enable_steady_tick(TICK);
    }
    bar
}

/// Shows a progress bar over all points.
struct BarObserver {
    bar: ProgressBar,
    total: u64,
    done: u64,
    has_started: bool,
    is_interrupted: fn() -> bool,
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
        (self.is_interrupted)()
    }
}

/// Metrics that are too long for a column.
const WIDE: &[&str] = &["design"];
/// Maximum number of columns of the printed table.
const COLUMN_COUNT_MAX: usize = 12;

/// Prints the results: a table, the comparison with the paper, and the paths of the output files.
fn show(report: &Report, output: &mut dyn Write) -> Result<(), BenchError> {
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
    let cell = |row: &MeasuredRow, name: &str| row.get(name).map_or_else(String::new, ToString::to_string);
    let rows = report.rows.iter().map(|row| names.iter().map(|name| cell(row, name)).collect());
    writeln!(output, "{}", terminal::table(text_columns, &names, rows))?;
    if !report.comparisons.is_empty() {
        let rows = report.comparisons.iter().map(|comparison| {
            let value = |number: f64| Value::from(number).to_string();
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
