//! Runs experiments.
//!
//! 1. Reads the points that an earlier run has measured from its file.
//! 2. Checks that disk and memory suffice for the other points, before it measures any.
//! 3. Measures each point and writes the file after it, so that an interruption loses at most one point.

use std::collections::BTreeSet;

use tamis::Clock as _;

use crate::{
    BenchError, Context, Definition, MeasuredRow, Needs, Observer, Point, Report, RunOptions, Value, machine,
};

#[cfg(test)]
mod tests;

/// The parameters that [`RunOptions::threads`] and [`RunOptions::layouts`] set.
const THREADS: &str = "threads";
const LAYOUT: &str = "layout";
/// Maximum number of values that a message lists.
const LISTED_MAX: usize = 20;

/// Makes the checks of [`run`] without measuring. A caller with several experiments checks all before the first one takes hours.
///
/// # Errors
/// Unknown parameters, too little disk or memory, earlier results of another program.
pub fn check(definition: &Definition, options: &RunOptions) -> Result<(), BenchError> {
    let points = points(definition, options, &[])?;
    let wanted = requested(&points, options)?;
    missing(&wanted, load_earlier(definition, options)?.as_ref(), options).map(drop)
}

/// The points of a run: those of the experiment with the requested numbers of threads and layouts, and those of earlier rows with
/// others, which are kept.
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
    for layout in &options.layouts {
        layout.parse::<tamis::Layout>()?;
    }
    let threads = options.threads.iter().map(|&threads| Value::from(threads)).collect::<Vec<_>>();
    let layouts = options.layouts.iter().map(|layout| Value::from(layout.as_str())).collect::<Vec<_>>();
    let mut points = (definition.points)(options.size);
    for (name, values) in [(THREADS, threads), (LAYOUT, layouts)] {
        if values.is_empty() {
            continue;
        }
        let mut replaced = Vec::new();
        for point in points {
            point.get(name)?;
            for value in &values {
                add_new(&mut replaced, point.clone().with(name, value.clone()));
            }
        }
        points = replaced;
    }
    for row in rows {
        let is_alike = |point: &Point| {
            let changed = [THREADS, LAYOUT].into_iter().fold(point.clone(), |point, name| {
                match row.point.fields().get(name) {
                    Some(value) => point.with(name, value.clone()),
                    None => point,
                }
            });
            changed.is_same(&row.point)
        };
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

/// Loads the results of an earlier run.
fn load_earlier(definition: &Definition, options: &RunOptions) -> Result<Option<Report>, BenchError> {
    if options.again {
        return Ok(None);
    }
    Report::load_earlier(definition, options, &Report::path_of(definition, options))
}

/// Returns the points without results; fails if the machine has too little disk or memory for them.
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

/// Measures the missing points of an experiment. After an interruption the report is partial.
///
/// # Errors
/// Errors of a point (the results of earlier points are kept), I/O errors, too little disk or memory, earlier results of
/// another program.
pub fn run(
    definition: &Definition,
    options: &RunOptions,
    observer: &mut dyn Observer,
) -> Result<Report, BenchError> {
    let new = || Report::new(definition, options, Report::path_of(definition, options));
    let mut report = load_earlier(definition, options)?.unwrap_or_else(new);
    let points = points(definition, options, &report.rows)?;
    let wanted = requested(&points, options)?;
    report.finish(definition, &points);

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
        report.finish(definition, points);
        report.write()?;
    }
    Ok(())
}

/// Returns the requested points.
fn requested<'a>(points: &'a [Point], options: &RunOptions) -> Result<Vec<&'a Point>, BenchError> {
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

/// Lists distinct values for a message, at most [`LISTED_MAX`].
fn listed(values: impl Iterator<Item = String>) -> String {
    let mut seen = BTreeSet::new();
    let mut values: Vec<String> = values.filter(|value| seen.insert(value.clone())).collect();
    let more = values.len().saturating_sub(LISTED_MAX);
    values.truncate(LISTED_MAX);
    let names = values.join(", ");
    if more > 0 { format!("{names}, and {more} more") } else { names }
}
