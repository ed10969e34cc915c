//! What `tamis filter eval` found, as a JSON object or as a table.

use std::io::Write;

use serde_json::{Value, json};

use crate::{failure::Failure, terminal};

/// Figures of a filter that was built.
#[derive(Debug)]
pub(super) struct Figures {
    pub(super) design: String,
    pub(super) encoded_bytes: u64,
    pub(super) answers: super::measure::Answers,
    /// Ranges of the file of present ranges, and how many of them were denied.
    pub(super) present: (u64, u64),
    pub(super) predicted_fpr: Option<f64>,
    pub(super) build_ns_per_key: f64,
    pub(super) build_peak_bytes: Option<u64>,
    pub(super) query_ns: f64,
    pub(super) batch_query_ns: Option<f64>,
    pub(super) calibration_ns: f64,
}

/// What was found: figures, or why there are none.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) family: String,
    pub(super) key_count: u64,
    pub(super) query_count: u64,
    pub(super) outcome: Result<Figures, String>,
}

impl Figures {
    fn bits_per_key(&self, key_count: u64) -> f64 {
        self.encoded_bytes as f64 * 8.0 / (key_count as f64).max(1.0)
    }

    fn probes_per_query(&self) -> f64 {
        self.answers.probe_count as f64 / (self.answers.query_count as f64).max(1.0)
    }

    /// Ranges that hold a key, of both files.
    fn present(&self) -> u64 {
        self.answers.present + self.present.0
    }

    fn false_negatives(&self) -> u64 {
        self.answers.false_negatives + self.present.1
    }
}

impl Report {
    pub(super) fn to_json(&self) -> Value {
        let figures = match &self.outcome {
            Ok(figures) => figures,
            Err(reason) => {
                return json!({
                    "family": self.family, "keys": self.key_count, "queries": self.query_count, "refused": reason,
                });
            }
        };
        json!({
            "family": self.family,
            "design": figures.design,
            "keys": self.key_count,
            "encoded_bytes": figures.encoded_bytes,
            "bits_per_key": figures.bits_per_key(self.key_count),
            "queries": self.query_count,
            "false_positives": figures.answers.false_positives,
            "fpr": figures.answers.fpr(),
            "predicted_fpr": figures.predicted_fpr,
            "probes_per_query": figures.probes_per_query(),
            "present": figures.present(),
            "false_negatives": figures.false_negatives(),
            "build_ns_per_key": figures.build_ns_per_key,
            "build_peak_bytes": figures.build_peak_bytes,
            // No family of these chooses its design by a model.
            "model_ms": 0.0,
            "query_ns": figures.query_ns,
            "batch_query_ns": figures.batch_query_ns,
            "calibration_ns": figures.calibration_ns,
            "refused": null,
        })
    }

    pub(super) fn write_table(&self, output: &mut dyn Write) -> Result<(), Failure> {
        let row = |name: &str, value: String| vec![name.to_owned(), value];
        let mut rows = vec![row("family", self.family.clone()), row("keys", terminal::count(self.key_count))];
        match &self.outcome {
            Err(reason) => rows.push(row("refused", reason.clone())),
            Ok(figures) => rows.extend(self.figure_rows(figures).map(|(name, value)| row(name, value))),
        }
        Ok(writeln!(output, "{}", terminal::table(1, &["", "value"], rows))?)
    }

    fn figure_rows(&self, figures: &Figures) -> impl Iterator<Item = (&'static str, String)> {
        let unknown = || "unknown".to_owned();
        let in_units = |ns: f64| format!("{ns:.1} ns ({:.3} units)", ns / figures.calibration_ns.max(1e-9));
        [
            ("design", figures.design.clone()),
            ("size", terminal::bytes(figures.encoded_bytes)),
            ("bits per key", format!("{:.3}", figures.bits_per_key(self.key_count))),
            ("queries", terminal::count(self.query_count)),
            ("false positives", terminal::count(figures.answers.false_positives)),
            ("rate", format!("{:.6}", figures.answers.fpr())),
            ("rate, predicted", figures.predicted_fpr.map_or_else(unknown, |fpr| format!("{fpr:.6}"))),
            ("probes per query", format!("{:.2}", figures.probes_per_query())),
            ("ranges that hold a key", terminal::count(figures.present())),
            ("denied of them", terminal::count(figures.false_negatives())),
            ("build", format!("{:.1} ns/key", figures.build_ns_per_key)),
            ("build, memory peak", figures.build_peak_bytes.map_or_else(unknown, terminal::bytes)),
            ("query", in_units(figures.query_ns)),
            ("query, in batches", figures.batch_query_ns.map_or_else(|| "no points".to_owned(), in_units)),
            ("calibration unit", format!("{:.1} ns", figures.calibration_ns)),
        ]
        .into_iter()
    }
}
