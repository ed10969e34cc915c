//! Runs experiments.
//!
//! 1. Points that an earlier, interrupted run has measured are taken from its file.
//! 2. What the others need of disk and memory is compared with what is free, before anything starts.
//! 3. Each point is measured; after each the file is written whole, so that an interruption at any moment loses one point.
//! 4. Plots are drawn from what there is.

use std::{collections::BTreeSet, path::PathBuf};

use tamis::Clock as _;

use crate::{
    BenchError, Context, Definition, Needs, Point, Report, Size, Value, machine, plot, report::MeasuredRow,
};

#[cfg(test)]
mod tests;

/// The parameter that [`RunOptions::threads`] is for.
const THREADS: &str = "threads";
/// How many values a message lists.
const LISTED_MAX: usize = 20;

/// What is run, and where.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// How much is measured.
    pub size: Size,
    /// The seed of everything drawn.
    pub seed: u64,
    /// The folder of the results.
    pub out: PathBuf,
    /// The folder of stores while they are measured.
    pub scratch: PathBuf,
    /// Whether earlier results are measured anew.
    pub again: bool,
    /// Only points whose parameters have one of the values given for them (as they are shown). Others are left for later runs.
    pub only: Vec<(String, String)>,
    /// The numbers of threads that points with such a parameter are measured at; none: those of the experiment.
    pub threads: Vec<u64>,
}

impl RunOptions {
    /// Seed 42, everything in one folder.
    pub fn new(size: Size, out: impl Into<PathBuf>) -> Self {
        let out = out.into();
        Self {
            size,
            seed: 42,
            scratch: out.clone(),
            out,
            again: false,
            only: Vec::new(),
            threads: Vec::new(),
        }
    }
}

/// Who watches a run.
pub trait Observer {
    /// Of `total` points, `done` were measured before.
    fn begin(&mut self, _total: usize, _done: usize) {}
    /// A point begins.
    fn point(&mut self, _point: &Point) {}
    /// How much of the point is done, from 0 to 1.
    fn progress(&mut self, _share: f64) {}
    /// Whether to end.
    fn is_interrupted(&self) -> bool {
        false
    }
}

/// Watches nothing and never interrupts.
#[derive(Debug, Default, Clone, Copy)]
pub struct Silent;

impl Observer for Silent {}

/// Refuses what [`run`] would refuse of an experiment before it measures: for several, before the first of them takes hours.
///
/// # Errors
/// Parameters that it does not have, a machine that is too small for what is missing, earlier results of another program.
pub fn check(definition: &Definition, options: &RunOptions) -> Result<(), BenchError> {
    let points = points(definition, options, &[])?;
    let wanted = wanted(&points, options)?;
    missing(&wanted, earlier(definition, options)?.as_ref(), options).map(drop)
}

/// The points of a run: those of the experiment, at the numbers of threads that the caller wants, and those of earlier rows that differ from
/// them in that number alone. Such rows stay.
fn points(
    definition: &Definition,
    options: &RunOptions,
    rows: &[MeasuredRow],
) -> Result<Vec<Point>, BenchError> {
    if options.threads.contains(&0) {
        return Err(BenchError::Unknown {
            kind: THREADS,
            name: "0".to_owned(),
            names: "1 and more".to_owned(),
        });
    }
    let mut points = Vec::new();
    for point in (definition.points)(options.size) {
        if options.threads.is_empty() {
            points.push(point);
            continue;
        }
        point.get(THREADS)?;
        for &threads in &options.threads {
            add_new(&mut points, point.clone().with(THREADS, threads));
        }
    }
    for row in rows {
        let Some(threads) = row.point.fields().get(THREADS) else { continue };
        let is_alike = |point: &Point| point.clone().with(THREADS, threads.clone()).is_same(&row.point);
        if points.iter().any(is_alike) {
            add_new(&mut points, row.point.clone());
        }
    }
    Ok(points)
}

fn add_new(points: &mut Vec<Point>, point: Point) {
    if !points.iter().any(|other| other.is_same(&point)) {
        points.push(point);
    }
}

/// What earlier runs kept.
fn earlier(definition: &Definition, options: &RunOptions) -> Result<Option<Report>, BenchError> {
    if options.again {
        return Ok(None);
    }
    Report::earlier(definition, options, &Report::path_of(definition, options))
}

/// The points without results; refused where the machine is too small for them.
fn missing<'a>(
    wanted: &[&'a Point],
    report: Option<&Report>,
    options: &RunOptions,
) -> Result<Vec<&'a Point>, BenchError> {
    let is_missing = |point: &&Point| !report.is_some_and(|report| report.has(point));
    let missing: Vec<&Point> = wanted.iter().copied().filter(is_missing).collect();
    let needs = missing.iter().fold(Needs::default(), |needs, point| needs.max(point.needs()));
    needs.check(&options.scratch)?;
    Ok(missing)
}

/// Measures what is missing of an experiment. After an interruption the report is partial and says so.
///
/// # Errors
/// What a point met (points before it are kept), files that can't be written, a machine that is too small, earlier results of another
/// program.
pub fn run(
    definition: &Definition,
    options: &RunOptions,
    observer: &mut dyn Observer,
) -> Result<Report, BenchError> {
    let new = || Report::new(definition, options, Report::path_of(definition, options));
    let mut report = earlier(definition, options)?.unwrap_or_else(new);
    let points = points(definition, options, &report.rows)?;
    let wanted = wanted(&points, options)?;
    report.settle(definition, &points);

    let missing = missing(&wanted, Some(&report), options)?;
    for folder in [&options.out, &options.scratch] {
        std::fs::create_dir_all(folder).map_err(BenchError::io(folder))?;
    }

    observer.begin(wanted.len(), wanted.len() - missing.len());
    let outcome = measure(definition, options, &points, &missing, &mut report, observer);
    match outcome {
        Err(error) if !error.is_interrupted() => return Err(error),
        _ => report.write()?,
    }
    report.plots = plot::draw(definition, &report)?;
    Ok(report)
}

fn measure(
    definition: &Definition,
    options: &RunOptions,
    points: &[Point],
    missing: &[&Point],
    report: &mut Report,
    observer: &mut dyn Observer,
) -> Result<(), BenchError> {
    let mut context = Context::new(options.size, options.seed, &options.scratch, observer);
    for point in missing {
        context.begin(point)?;
        let start = context.clock().now();
        let measured = (definition.measure)(point, &mut context);
        let row = measured.map_err(|source| BenchError::Point {
            experiment: definition.name,
            point: point.to_string(),
            source: Box::new(source),
        })?;
        report.rows.push(MeasuredRow {
            point: (*point).clone(),
            metrics: row.fields,
            digest: format!("{:016x}", row.digest),
            seconds: (context.clock().now() - start).as_secs_f64(),
        });
        report.date = machine::date();
        report.settle(definition, points);
        report.write()?;
    }
    Ok(())
}

/// The points that the caller wants.
fn wanted<'a>(points: &'a [Point], options: &RunOptions) -> Result<Vec<&'a Point>, BenchError> {
    for (name, value) in &options.only {
        for point in points {
            point.get(name)?;
        }
        let values = points.iter().filter_map(|point| point.fields().get(name)).map(Value::to_string);
        if !values.clone().any(|other| other == *value) {
            let (kind, names) = ("value of this parameter", listed(values));
            return Err(BenchError::Unknown { kind, name: value.clone(), names });
        }
    }
    let fits = |point: &&Point| {
        point.fields().iter().all(|(name, value)| {
            let text = value.to_string();
            let mut given = options.only.iter().filter(|(own, _)| own == name).peekable();
            given.peek().is_none() || given.any(|(_, wanted)| *wanted == text)
        })
    };
    Ok(points.iter().filter(fits).collect())
}

/// Values for a message: each once, in order, and of many the first.
fn listed(values: impl Iterator<Item = String>) -> String {
    let mut seen = BTreeSet::new();
    let mut values: Vec<String> = values.filter(|value| seen.insert(value.clone())).collect();
    let more = values.len().saturating_sub(LISTED_MAX);
    values.truncate(LISTED_MAX);
    let names = values.join(", ");
    if more > 0 { format!("{names}, and {more} more") } else { names }
}
