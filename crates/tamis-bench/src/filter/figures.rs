//! The figures of a measured filter.

use super::{answers::Answers, calibration::Calibrated};
use crate::{BenchError, Row};

/// The figures of one filter.
#[derive(Debug, Clone)]
pub struct Figures {
    /// The design that the family chose.
    pub design: String,
    /// Keys in the filter.
    pub key_count: u64,
    /// Bytes of the whole filter.
    pub encoded_bytes: u64,
    /// Answers to the queries.
    pub answers: Answers,
    /// Ranges of the present set, and how many of them the filter rejected.
    pub present: (u64, u64),
    /// The rate of false positives that the family predicts.
    pub predicted_fpr: Option<f64>,
    /// The build time per key without the choice of a design.
    pub build: Calibrated,
    /// Milliseconds in which the family chose its design; about 0 for families without a model.
    pub model_ms: f64,
    /// The peak of memory of a build, if the system reports it.
    pub build_peak_bytes: Option<u64>,
    /// The time of a query, digests included.
    pub query: Calibrated,
}

/// Figures, or the reason why the family has none.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// The filter was built and measured.
    Figures(Box<Figures>),
    /// The family cannot build a filter for these keys and this budget.
    Refused(String),
}

impl Figures {
    /// Bits of the whole filter per key.
    pub fn bits_per_key(&self) -> f64 {
        self.encoded_bytes as f64 * 8.0 / (self.key_count as f64).max(1.0)
    }

    /// Filter steps per query.
    pub fn probes_per_query(&self) -> f64 {
        self.answers.probe_count as f64 / (self.answers.query_count as f64).max(1.0)
    }

    /// Queries and present ranges with a key.
    pub fn present_count(&self) -> u64 {
        self.answers.present + self.present.0
    }

    /// Those of them that the filter rejected; must be 0.
    pub fn false_negatives(&self) -> u64 {
        self.answers.false_negatives + self.present.1
    }
}

impl Outcome {
    /// The row of an experiment: rate, size and times; or `refused` with the reason.
    ///
    /// # Errors
    /// If the filter rejected a range with a key: figures of such a filter are worthless.
    pub fn into_row(self) -> Result<Row, BenchError> {
        let figures = match self {
            Self::Figures(figures) => figures,
            Self::Refused(reason) => return Ok(Row::new().with("refused", reason)),
        };
        if figures.false_negatives() > 0 {
            return Err(BenchError::Other(format!(
                "the filter ({}) rejected {} of {} ranges with a key",
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
            .with("calibration_ns", figures.query.unit_ns)
            .with("query_units", figures.query.units)
            .with("design", figures.design);
        Ok(row.with_digest(figures.answers.digest))
    }
}
