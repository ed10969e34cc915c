//! Results: what was measured, with what, and how it compares with the paper; the JSON file that holds them, and the way to
//! go on with a file that an interruption left.

use std::{
    io::{ErrorKind, Write as _},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{
    BenchError, Configuration, Definition, Fields, Machine, OperationDigest, Point, RunOptions, Value,
};

#[cfg(test)]
mod tests;

/// A point with what was measured there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredRow {
    /// The parameters.
    pub point: Point,
    /// The metrics.
    pub metrics: Fields,
    /// Digest of the operations, in hexadecimal.
    pub digest: String,
    /// How long the measurement took, inputs included.
    pub seconds: f64,
}

impl MeasuredRow {
    /// A metric, or else a parameter.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.metrics.get(name).or_else(|| self.point.fields().get(name))
    }
}

/// A figure of the paper beside ours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The parameters of our row.
    pub point: Point,
    /// The metric.
    pub metric: String,
    /// What the paper says.
    pub paper: f64,
    /// What was measured.
    pub ours: f64,
    /// Ours divided by the paper's.
    pub ratio: Value,
}

/// The results of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The experiment.
    pub experiment: String,
    /// Its name for people.
    pub title: String,
    /// The paper and its figure.
    pub source: String,
    /// What it shows.
    pub about: String,
    /// The size that was run.
    pub size: String,
    /// The seed of everything drawn.
    pub seed: u64,
    /// Whether all points of the size are here. If not, the next run goes on.
    pub is_complete: bool,
    /// How many points the size has.
    pub point_count: u64,
    /// The program.
    pub configuration: Configuration,
    /// The machine.
    pub machine: Machine,
    /// When the last row was written.
    pub date: String,
    /// Digest of the operations of all rows, in the order of the points.
    pub digest: String,
    /// What was measured.
    pub rows: Vec<MeasuredRow>,
    /// What the paper says of it.
    pub comparisons: Vec<Comparison>,
    /// The file that this was read from or written to.
    #[serde(skip)]
    pub path: PathBuf,
    /// The drawings.
    #[serde(skip)]
    pub plots: Vec<PathBuf>,
}

impl Report {
    /// Nothing measured yet.
    pub(crate) fn new(definition: &Definition, options: &RunOptions, path: PathBuf) -> Self {
        Self {
            experiment: definition.name.to_owned(),
            title: definition.title.to_owned(),
            source: definition.source.to_owned(),
            about: definition.about.to_owned(),
            size: options.size.to_string(),
            seed: options.seed,
            is_complete: false,
            point_count: 0,
            configuration: Configuration::here(),
            machine: Machine::here(),
            date: String::new(),
            digest: String::new(),
            rows: Vec::new(),
            comparisons: Vec::new(),
            path,
            plots: Vec::new(),
        }
    }

    /// Where the results of a run lie: `NAME-SIZE-sSEED.json`.
    pub fn path_of(definition: &Definition, options: &RunOptions) -> PathBuf {
        options.out.join(format!("{}-{}-s{}.json", definition.name, options.size, options.seed))
    }

    /// The results of an earlier run to go on with; `None` where there are none.
    ///
    /// # Errors
    /// When the file is none of ours, or was measured by another program or on another machine: rows of both in one file would be
    /// compared with each other.
    pub(crate) fn earlier(
        definition: &Definition,
        options: &RunOptions,
        path: &Path,
    ) -> Result<Option<Self>, BenchError> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(BenchError::io(path)(error)),
        };
        let refuse = |what: String| Err(BenchError::Place { path: path.to_owned(), what });
        let advice = "run with --again to measure anew, or name another folder with --out";
        let earlier: Self = match serde_json::from_str(&text) {
            Ok(report) => report,
            Err(error) => return refuse(format!("holds no results of an experiment ({error}); {advice}")),
        };
        let expected = Self::new(definition, options, path.to_owned());
        let pairs = [
            ("experiment", &earlier.experiment, &expected.experiment),
            ("size", &earlier.size, &expected.size),
            ("commit", &earlier.configuration.commit, &expected.configuration.commit),
            ("profile", &earlier.configuration.profile, &expected.configuration.profile),
            ("compiler", &earlier.configuration.compiler, &expected.configuration.compiler),
            ("processor", &earlier.machine.processor, &expected.machine.processor),
        ];
        if let Some((what, old, new)) = pairs.into_iter().find(|(_, old, new)| old != new) {
            return refuse(format!("its {what} is {old}, that of this run is {new}; {advice}"));
        }
        if earlier.seed != expected.seed {
            return refuse(format!("its seed is {}, not {}; {advice}", earlier.seed, expected.seed));
        }
        Ok(Some(Self { rows: earlier.rows, date: earlier.date, ..expected }))
    }

    /// Whether a point was measured.
    pub(crate) fn has(&self, point: &Point) -> bool {
        self.rows.iter().any(|row| row.point.is_same(point))
    }

    /// Puts the rows into the order of the points, leaves out those of no point, and computes what follows from them.
    pub(crate) fn settle(&mut self, definition: &Definition, points: &[Point]) {
        let place = |row: &MeasuredRow| points.iter().position(|point| point.is_same(&row.point));
        self.rows.retain(|row| place(row).is_some());
        self.rows.sort_by_key(place);
        self.point_count = points.len() as u64;
        self.is_complete = self.rows.len() == points.len();
        let mut digest = OperationDigest::default();
        self.rows.iter().for_each(|row| digest.add_bytes(row.digest.as_bytes()));
        self.digest = format!("{:016x}", digest.finish());
        self.comparisons = self.compare(definition);
    }

    fn compare(&self, definition: &Definition) -> Vec<Comparison> {
        let mut comparisons = Vec::new();
        for figure in definition.paper {
            let fits = |row: &&MeasuredRow| {
                figure.parameters.iter().all(|(name, given)| row.get(name).is_some_and(|own| given.is(own)))
            };
            for row in self.rows.iter().filter(fits) {
                let Some(ours) = row.get(figure.metric).and_then(Value::as_number) else { continue };
                comparisons.push(Comparison {
                    point: row.point.clone(),
                    metric: figure.metric.to_owned(),
                    paper: figure.value,
                    ours,
                    ratio: Value::from(ours / figure.value),
                });
            }
        }
        comparisons
    }

    /// Writes the file: all of it, or the one before stays.
    pub(crate) fn write(&self) -> Result<(), BenchError> {
        let fail = || BenchError::io(&self.path);
        let folder = self.path.parent().unwrap_or(Path::new("."));
        // Readable for whom the user's other files are; by itself a temporary file is its owner's alone.
        let create = |path: &Path| std::fs::File::create_new(path);
        let mut file = tempfile::Builder::new().make_in(folder, create).map_err(fail())?;
        serde_json::to_writer_pretty(&mut file, self).map_err(|error| fail()(error.into()))?;
        file.write_all(b"\n").map_err(fail())?;
        file.persist(&self.path).map_err(|error| fail()(error.error))?;
        Ok(())
    }
}
