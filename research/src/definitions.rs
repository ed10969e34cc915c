//! The table of definitions: `experiments/*.toml`, one file for each paper, and one for the promises of the store.
//!
//! | key | contents |
//! |---|---|
//! | `name`, `title`, `source`, `about` | those of a [`Definition`] |
//! | `run` | the kind of run: a name in `runs.rs` |
//! | `settings` | parameters that all points share and that no table of results shows |
//! | `points` | lists of points: each is the product of its parameters, the outermost first |
//! | `needs` | bytes of `disk` and `memory` for each of `of` (a parameter, by default `entries`), and `memory_mib` |
//! | `plots`, `paper` | plots, and published values as parameters, metric and value |
//! | `published` | more of them, as text: a line with names of parameters, a colon and names of metrics, then lines of their values |
//! | `like` | an experiment above: its keys are taken where this one has none |
//!
//! A parameter has one value or a list of values. The name `"a,b"` means two parameters, and each of its values is a list of two.
//! `{ small = S, medium = M, full = F }` is a value that depends on the size; a size without a value has that of the size before. A text may name earlier parameters in braces. `"@NAME"`
//! is a list of values that the run computes.

use std::slice;

use serde::Deserialize;
use tamis_bench::{
    Axis, BenchError, Catalog, Definition, Fields, Needs, Plot, Point, Published, STORE_EXPERIMENTS, Size,
    Value, published,
};

use crate::{
    plot,
    runs::{self, Run},
};

const FILES: [&str; 6] = [
    include_str!("../experiments/store.toml"),
    include_str!("../experiments/bloom.toml"),
    include_str!("../experiments/surf.toml"),
    include_str!("../experiments/rosetta.toml"),
    include_str!("../experiments/proteus.toml"),
    include_str!("../experiments/remix.toml"),
];

#[derive(Deserialize)]
struct File {
    experiment: Vec<Entry>,
}

/// An experiment as the files have it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    title: String,
    source: Option<String>,
    about: String,
    run: Option<String>,
    settings: Option<Fields>,
    points: Option<Vec<Fields>>,
    needs: Option<NeedsEntry>,
    plots: Option<Vec<PlotEntry>>,
    paper: Option<Vec<(String, String, f64)>>,
    published: Option<String>,
    like: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct NeedsEntry {
    of: Option<String>,
    disk: u64,
    memory: u64,
    memory_mib: u64,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlotEntry {
    name: String,
    title: String,
    x: String,
    y: String,
    #[serde(default)]
    series: String,
    #[serde(default)]
    panel: String,
    #[serde(default)]
    heat: String,
    x_axis: Option<String>,
    y_axis: Option<String>,
}

/// Reads the table. Definitions live as long as the program.
///
/// # Errors
/// If a definition is wrong.
pub(crate) fn catalog() -> Result<Catalog, BenchError> {
    let mut entries: Vec<Entry> = Vec::new();
    for file in FILES {
        let File { experiment } = toml::from_str(file).map_err(BenchError::other)?;
        for entry in experiment {
            let entry = inherited(entry, &entries)?;
            entries.push(entry);
        }
    }
    let definitions = entries.into_iter().map(definition).collect::<Result<Vec<_>, _>>()?;
    let groups: [&'static [&'static Definition]; 2] = [STORE_EXPERIMENTS, definitions.leak()];
    Ok(Catalog { groups: groups.to_vec().leak(), draw: Some(plot::draw) })
}

fn inherited(entry: Entry, above: &[Entry]) -> Result<Entry, BenchError> {
    let Some(like) = &entry.like else { return Ok(entry) };
    let Some(other) = above.iter().find(|other| other.name == *like).cloned() else {
        return Err(BenchError::Other(format!("{}: no experiment {like} above", entry.name)));
    };
    Ok(Entry {
        source: entry.source.or(other.source),
        run: entry.run.or(other.run),
        settings: entry.settings.or(other.settings),
        points: entry.points.or(other.points),
        needs: entry.needs.or(other.needs),
        plots: entry.plots.or(other.plots),
        paper: entry.paper.or(other.paper),
        published: entry.published.or(other.published),
        ..entry
    })
}

fn definition(entry: Entry) -> Result<&'static Definition, BenchError> {
    let run = runs::find(entry.run.as_deref().unwrap_or_default())?;
    let (settings, needs) = (entry.settings.unwrap_or_default(), entry.needs.unwrap_or_default());
    let sets = entry.points.unwrap_or_default();
    let mut points = Vec::new();
    for size in Size::ALL {
        points
            .push(all_points(&sets, run, &needs, size).map_err(|error| in_experiment(&entry.name, &error))?);
    }
    let [small, medium, full] = <[Vec<Point>; 3]>::try_from(points).unwrap_or_default();
    let plots = entry.plots.unwrap_or_default().into_iter().map(plot).collect::<Vec<_>>();
    let more = published_rows(entry.published.as_deref().unwrap_or_default());
    let paper = entry.paper.unwrap_or_default().into_iter().chain(more);
    let paper = paper
        .map(|(of, metric, value)| published(of.leak(), metric.leak(), value))
        .collect::<Vec<Published>>();
    Ok(Box::leak(Box::new(Definition {
        name: entry.name.leak(),
        title: entry.title.leak(),
        source: entry.source.unwrap_or_default().leak(),
        about: entry.about.leak(),
        points: Box::leak(Box::new(move |size: Size| size.pick(&small, &medium, &full).clone())),
        measure: Box::leak(Box::new(move |point: &Point, context: &mut tamis_bench::Context<'_>| {
            (run.measure)(&with_settings(&settings, point), context)
        })),
        plots: plots.leak(),
        paper: paper.leak(),
    })))
}

/// The values of a text of published values; a line with a wrong number of values has none.
fn published_rows(text: &str) -> Vec<(String, String, f64)> {
    let split = |line: &'_ str| {
        let (parameters, metrics) = line.split_once(" : ").unwrap_or_default();
        [parameters, metrics].map(|half| half.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    };
    let mut lines = text.lines();
    let [parameters, metrics] = split(lines.next().unwrap_or_default());
    let mut values = Vec::new();
    for [of, numbers] in lines.map(split) {
        let pairs = parameters.iter().zip(&of).map(|(name, value)| format!("{name}={value}"));
        let of = pairs.collect::<Vec<_>>().join("; ");
        let numbers = metrics.iter().zip(numbers);
        values.extend(
            numbers.filter_map(|(name, number)| Some((of.clone(), name.clone(), number.parse().ok()?))),
        );
    }
    values
}

fn in_experiment(name: &str, error: &BenchError) -> BenchError {
    BenchError::Other(format!("{name}: {error}"))
}

fn with_settings(settings: &Fields, point: &Point) -> Point {
    let all = settings.iter().chain(point.fields().iter());
    all.fold(Point::new(), |whole, (name, value)| whole.with(name, value.clone()))
}

fn plot(entry: PlotEntry) -> Plot {
    let axis = |name: Option<String>| if name.as_deref() == Some("log") { Axis::Log } else { Axis::Linear };
    Plot {
        name: entry.name.leak(),
        title: entry.title.leak(),
        x: entry.x.leak(),
        y: entry.y.leak(),
        series: entry.series.leak(),
        panel: entry.panel.leak(),
        heat: entry.heat.leak(),
        x_axis: axis(entry.x_axis),
        y_axis: axis(entry.y_axis),
    }
}

/// The points of a size, each with what it needs.
fn all_points(sets: &[Fields], run: &Run, needs: &NeedsEntry, size: Size) -> Result<Vec<Point>, BenchError> {
    let mut points = Vec::new();
    for set in sets {
        points.extend(product(set, run, size)?);
    }
    let of = needs.of.as_deref().unwrap_or("entries");
    let needing = |point: Point| {
        let count = point.integer(of).unwrap_or(0);
        let memory_bytes = count * needs.memory + (needs.memory_mib << 20);
        point.needing(Needs { disk_bytes: count * needs.disk, memory_bytes })
    };
    Ok(points.into_iter().map(needing).collect())
}

/// The product of the values of all parameters.
fn product(set: &Fields, run: &Run, size: Size) -> Result<Vec<Point>, BenchError> {
    let mut points = vec![Point::new()];
    for (names, values) in set.iter() {
        let values = match of_size(values, size) {
            Value::Text(text) if text.starts_with('@') => Value::List((run.values)(&text, size)),
            values => values,
        };
        let values = if let Value::List(list) = &values { list.as_slice() } else { slice::from_ref(&values) };
        let mut longer = Vec::new();
        for point in &points {
            for value in values {
                longer.push(with_values(point, names, value)?);
            }
        }
        points = longer;
    }
    Ok(points)
}

/// A value without the alternatives of other sizes.
fn of_size(value: &Value, size: Size) -> Value {
    match value {
        Value::Object(sizes) => {
            let given = Size::ALL.into_iter().filter(|own| *own <= size);
            let value = given.filter_map(|own| sizes.get(&own.to_string())).next_back();
            of_size(value.unwrap_or(&Value::Absent), size)
        }
        Value::List(values) => Value::List(values.iter().map(|value| of_size(value, size)).collect()),
        value => value.clone(),
    }
}

/// A point with a value for `names`, or with a list of values if they are several.
fn with_values(point: &Point, names: &str, value: &Value) -> Result<Point, BenchError> {
    let names: Vec<&str> = names.split(',').collect();
    let values = match value {
        Value::List(values) => values.as_slice(),
        value => slice::from_ref(value),
    };
    if names.len() != values.len() {
        return Err(BenchError::Other(format!("{} values for the parameters {names:?}", values.len())));
    }
    let with = |point: Point, (name, value): (&str, &Value)| {
        let value =
            if let Value::Text(text) = value { Value::Text(filled(text, &point)) } else { value.clone() };
        point.with(name, value)
    };
    Ok(names.into_iter().zip(values).fold(point.clone(), with))
}

/// A text whose names in braces are replaced by the values of the point.
fn filled(text: &str, point: &Point) -> String {
    point
        .fields()
        .iter()
        .fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), &value.to_string()))
}
