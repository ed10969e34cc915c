//! The result of `tamis filter eval`, as a JSON object or as a table.

use std::io::Write;

use serde_json::{Value, json};
use tamis_bench::filter::{Calibrated, Figures, Outcome};

use crate::{failure::Failure, terminal};

/// The measured figures, or the reason why the filter was not built.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) family: String,
    pub(super) key_count: u64,
    pub(super) query_count: u64,
    pub(super) outcome: Outcome,
    /// The family chooses its design from a sample, and none was given.
    pub(super) lacks_sample: bool,
}

const LACKS_SAMPLE: &str = "This family chooses its design from sampled queries. None were given: with --sample the result would differ.";

impl Report {
    pub(super) fn to_json(&self) -> Value {
        let figures = match &self.outcome {
            Outcome::Figures(figures) => figures,
            Outcome::Refused(reason) => {
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
            "bits_per_key": figures.bits_per_key(),
            "queries": self.query_count,
            "false_positives": figures.answers.false_positives,
            "fpr": figures.answers.fpr(),
            "predicted_fpr": figures.predicted_fpr,
            "probes_per_query": figures.probes_per_query(),
            "present": figures.present_count(),
            "false_negatives": figures.false_negatives(),
            "build_ns_per_key": figures.build.ns,
            "build_units": figures.build.units,
            "build_peak_bytes": figures.build_peak_bytes,
            "model_ms": figures.model_ms,
            "query_ns": figures.query.ns,
            "query_units": figures.query.units,
            "calibration_ns": figures.query.unit_ns,
            "lacks_sample": self.lacks_sample,
            "refused": null,
        })
    }

    pub(super) fn write_table(&self, output: &mut dyn Write) -> Result<(), Failure> {
        let row = |name: &str, value: String| vec![name.to_owned(), value];
        let mut rows = vec![row("family", self.family.clone()), row("keys", terminal::count(self.key_count))];
        match &self.outcome {
            Outcome::Refused(reason) => rows.push(row("refused", reason.clone())),
            Outcome::Figures(figures) => {
                rows.extend(self.figure_rows(figures).map(|(name, value)| row(name, value)))
            }
        }
        writeln!(output, "{}", terminal::table(1, &["", "value"], rows))?;
        if self.lacks_sample {
            writeln!(output, "{LACKS_SAMPLE}")?;
        }
        Ok(())
    }

    fn figure_rows(&self, figures: &Figures) -> impl Iterator<Item = (&'static str, String)> {
        let unknown = || "unknown".to_owned();
        let in_units = |time: &Calibrated| format!("{:.1} ns ({:.3} units)", time.ns, time.units);
        [
            ("design", figures.design.clone()),
            ("size", terminal::bytes(figures.encoded_bytes)),
            ("bits per key", format!("{:.3}", figures.bits_per_key())),
            ("queries", terminal::count(self.query_count)),
            ("false positives", terminal::count(figures.answers.false_positives)),
            ("false positive rate", format!("{:.6}", figures.answers.fpr())),
            ("predicted rate", figures.predicted_fpr.map_or_else(unknown, |fpr| format!("{fpr:.6}"))),
            ("probes per query", format!("{:.2}", figures.probes_per_query())),
            ("queries that contain a key", terminal::count(figures.present_count())),
            ("false negatives", terminal::count(figures.false_negatives())),
            ("build", format!("{:.1} ns/key ({:.3} units)", figures.build.ns, figures.build.units)),
            ("design search", format!("{:.1} ms", figures.model_ms)),
            ("peak memory of the build", figures.build_peak_bytes.map_or_else(unknown, terminal::bytes)),
            ("query", in_units(&figures.query)),
            ("calibration unit", format!("{:.1} ns", figures.query.unit_ns)),
        ]
        .into_iter()
    }
}
