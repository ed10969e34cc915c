//! Results: measured rows, program and machine, and the comparison with the paper; reading and writing their JSON file.

use std::{
    io::{ErrorKind, Write as _},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{
    BenchError, Configuration, Definition, Machine, MeasuredRow, OperationDigest, Point, RunOptions, Value,
};

#[cfg(test)]
mod tests;

/// A published figure and the measured one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The parameters of the measured row.
    pub point: Point,
    /// The metric.
    pub metric: String,
    /// The published value.
    pub paper: f64,
    /// The measured value.
    pub ours: f64,
    /// The measured value divided by the published one.
    pub ratio: Value,
}

/// The results of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The experiment.
    pub experiment: String,
    /// Title of the experiment.
    pub title: String,
    /// The reproduced paper and figure.
    pub source: String,
    /// Description of the experiment.
    pub about: String,
    /// The size of the run.
    pub size: String,
    /// The seed of the random numbers.
    pub seed: u64,
    /// Whether all points of the size are measured; otherwise the next run continues.
    pub is_complete: bool,
    /// Number of points of the size.
    pub point_count: u64,
    /// The program.
    pub configuration: Configuration,
    /// The machine.
    pub machine: Machine,
    /// Date and time of the last row.
    pub date: String,
    /// Digest of the operations of all rows in the order of the points.
    pub digest: String,
    /// The measured rows.
    pub rows: Vec<MeasuredRow>,
    /// Comparison with the paper.
    pub comparisons: Vec<Comparison>,
    /// The file of the report.
    #[serde(skip)]
    pub path: PathBuf,
    /// The files of the plots.
    #[serde(skip)]
    pub plots: Vec<PathBuf>,
}

impl Report {
    /// A report without rows.
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
            configuration: Configuration::current(),
            machine: Machine::current(),
            date: String::new(),
            digest: String::new(),
            rows: Vec::new(),
            comparisons: Vec::new(),
            path,
            plots: Vec::new(),
        }
    }

    /// The file of the results of a run: `NAME-SIZE-sSEED.json`, or the given one.
    pub fn path_of(definition: &Definition, options: &RunOptions) -> PathBuf {
        let name = || format!("{}-{}-s{}.json", definition.name, options.size, options.seed);
        options.file.clone().unwrap_or_else(|| options.out.join(name()))
    }

    /// Reads the results of an earlier run to continue; `None` if there are none.
    ///
    /// # Errors
    /// If the file is not a report, or was measured by another program or on another machine: rows in one file must be comparable.
    pub(crate) fn load_earlier(
        definition: &Definition,
        options: &RunOptions,
        path: &Path,
    ) -> Result<Option<Self>, BenchError> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(BenchError::io(path)(error)),
        };
        let refuse = |what: String| Err(BenchError::WrongContent { path: path.to_owned(), what });
        let advice = "measure again with --again, or give another folder with --out";
        let earlier: Self = match serde_json::from_str(&text) {
            Ok(report) => report,
            Err(error) => return refuse(format!("contains no results of an experiment ({error}); {advice}")),
        };
        let expected = Self::new(definition, options, path.to_owned());
        let (old_seed, new_seed) = (earlier.seed.to_string(), expected.seed.to_string());
        let pairs = [
            ("seed", &old_seed, &new_seed),
            ("experiment", &earlier.experiment, &expected.experiment),
            ("size", &earlier.size, &expected.size),
            ("commit", &earlier.configuration.commit, &expected.configuration.commit),
            ("profile", &earlier.configuration.profile, &expected.configuration.profile),
            ("compiler", &earlier.configuration.compiler, &expected.configuration.compiler),
            ("features", &earlier.configuration.target_features, &expected.configuration.target_features),
            ("processor", &earlier.machine.processor, &expected.machine.processor),
        ];
        if let Some((what, old, new)) = pairs.into_iter().find(|(_, old, new)| old != new) {
            return refuse(format!("its {what} is {old}, but this run has {new}; {advice}"));
        }
        Ok(Some(Self { rows: earlier.rows, date: earlier.date, ..expected }))
    }

    /// Whether a point is measured.
    pub(crate) fn has(&self, point: &Point) -> bool {
        self.rows.iter().any(|row| row.point.is_same(point))
    }

    /// Sorts the rows in the order of the points, removes rows without a point, and computes digest and comparisons.
    pub(crate) fn finish(&mut self, definition: &Definition, points: &[Point]) {
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
            for row in self.rows.iter().filter(|row| figure.is_of(row)) {
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

    /// Writes the file atomically.
    pub(crate) fn write(&self) -> Result<(), BenchError> {
        let fail = || BenchError::io(&self.path);
        let folder = self.path.parent().unwrap_or(Path::new("."));
        // With the default permissions of the user; a temporary file is readable by its owner only.
        let create = |path: &Path| std::fs::File::create_new(path);
        let mut file = tempfile::Builder::new().make_in(folder, create).map_err(fail())?;
        serde_json::to_writer_pretty(&mut file, self).map_err(|error| fail()(error.into()))?;
        file.write_all(b"\n").map_err(fail())?;
        file.persist(&self.path).map_err(|error| fail()(error.error))?;
        Ok(())
    }
}
