//! What a measurement of a filter found.

use super::{Answers, Calibrated};
use crate::{BenchError, Row};

/// Figures of a filter that was built.
#[derive(Debug, Clone)]
pub struct Figures {
    /// What the family built, and why.
    pub design: String,
    /// Keys in the filter.
    pub key_count: u64,
    /// Bytes of the whole filter.
    pub encoded_bytes: u64,
    /// Answers to the queries.
    pub answers: Answers,
    /// Ranges of the present set, and how many of them were denied.
    pub present: (u64, u64),
    /// What the family expects of itself.
    pub predicted_fpr: Option<f64>,
    /// The time of building, for each key, the choice of a design apart.
    pub build: Calibrated,
    /// Milliseconds in which the family chose its design; hardly any where it has no model.
    pub model_ms: f64,
    /// The peak of memory while building, where the system tells it.
    pub build_peak_bytes: Option<u64>,
    /// The time of a query, digests included.
    pub query: Calibrated,
    /// The same asked in batches.
    pub batch_query: Calibrated,
}

/// Figures, or the family's own reason for having none.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// It was built and asked.
    Figures(Box<Figures>),
    /// It can't be built for these keys and this budget.
    Refused(String),
}

impl Figures {
    /// Bits of the whole filter for each key.
    pub fn bits_per_key(&self) -> f64 {
        self.encoded_bytes as f64 * 8.0 / (self.key_count as f64).max(1.0)
    }

    /// Steps of the filter for a query.
    pub fn probes_per_query(&self) -> f64 {
        self.answers.probe_count as f64 / (self.answers.query_count as f64).max(1.0)
    }

    /// Queries and present ranges that hold a key.
    pub fn present_count(&self) -> u64 {
        self.answers.present + self.present.0
    }

    /// Those of them that were denied: there must be none.
    pub fn false_negatives(&self) -> u64 {
        self.answers.false_negatives + self.present.1
    }
}

impl Outcome {
    /// The row of an experiment: rate, size and times; or `refused` with the reason.
    ///
    /// # Errors
    /// When the filter denied a range that holds a key: no figure of such a filter counts.
    pub fn into_row(self) -> Result<Row, BenchError> {
        let figures = match self {
            Self::Figures(figures) => figures,
            Self::Refused(reason) => return Ok(Row::new().with("refused", reason)),
        };
        if figures.false_negatives() > 0 {
            return Err(BenchError::Other(format!(
                "the filter ({}) denied {} of {} ranges that hold a key",
                figures.design,
                figures.false_negatives(),
                figures.present_count()
            )));
        }
        let row = Row::new()
            .with("fpr", figures.answers.fpr())
            .with("predicted_fpr", figures.predicted_fpr)
            .with("bits_per_key", figures.bits_per_key())
            .with("encoded_bytes", figures.encoded_bytes)
            .with("queries", figures.answers.query_count)
            .with("false_positives", figures.answers.false_positives)
            .with("present", figures.present_count())
            .with("probes_per_query", figures.probes_per_query())
            .with("build_ns_per_key", figures.build.ns)
            .with("build_units", figures.build.units)
            .with("model_ms", figures.model_ms)
            .with("build_peak_bytes", figures.build_peak_bytes)
            .with("query_ns", figures.query.ns)
            .with("batch_query_ns", figures.batch_query.ns)
            .with("calibration_ns", figures.query.unit_ns)
            .with("query_units", figures.query.units)
            .with("batch_query_units", figures.batch_query.units)
            .with("design", figures.design);
        Ok(row.with_digest(figures.answers.digest))
    }
}
