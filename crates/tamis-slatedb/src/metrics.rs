//! SlateDB's own statistics of filters, read from its recorder.

use std::fmt;

use slatedb::db_stats::{
    FILTER_KIND_LABEL, FILTER_KIND_POINT, FILTER_KIND_PREFIX, FILTER_KIND_RANGE,
    SST_FILTER_FALSE_POSITIVE_COUNT, SST_FILTER_NEGATIVE_COUNT, SST_FILTER_POSITIVE_COUNT,
};
use slatedb_common::metrics::{DefaultMetricsRecorder, MetricValue, Metrics};

/// Tables that the filters rejected and passed, for one kind of query.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FilterCounts {
    /// Tables that were skipped.
    pub negatives: u64,
    /// Tables that were read.
    pub positives: u64,
    /// Tables that were read and had nothing.
    pub false_positives: u64,
}

impl std::ops::Add for FilterCounts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            negatives: self.negatives + other.negatives,
            positives: self.positives + other.positives,
            false_positives: self.false_positives + other.false_positives,
        }
    }
}

/// The counts of an open database or reader, by kind of query.
///
/// ```
/// use std::sync::Arc;
/// use slatedb_common::metrics::DefaultMetricsRecorder;
/// use tamis_slatedb::FilterMetrics;
///
/// let recorder = Arc::new(DefaultMetricsRecorder::new()); // for `with_metrics_recorder` of the builder
/// println!("{}", FilterMetrics::read(&recorder));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FilterMetrics {
    /// Of lookups of one key.
    pub points: FilterCounts,
    /// Of scans of a prefix, if another policy of the list answers prefixes. [`crate::TamisPolicy`] gets them as ranges.
    pub prefixes: FilterCounts,
    /// Of scans of a range, of a prefix and of a part of a prefix.
    pub ranges: FilterCounts,
}

impl FilterMetrics {
    /// The counts of a recorder.
    pub fn read(recorder: &DefaultMetricsRecorder) -> Self {
        let metrics = recorder.snapshot();
        let of_kind = |kind| FilterCounts {
            negatives: counter(&metrics, SST_FILTER_NEGATIVE_COUNT, kind),
            positives: counter(&metrics, SST_FILTER_POSITIVE_COUNT, kind),
            false_positives: counter(&metrics, SST_FILTER_FALSE_POSITIVE_COUNT, kind),
        };
        Self {
            points: of_kind(FILTER_KIND_POINT),
            prefixes: of_kind(FILTER_KIND_PREFIX),
            ranges: of_kind(FILTER_KIND_RANGE),
        }
    }
}

fn counter(metrics: &Metrics, name: &str, kind: &str) -> u64 {
    match metrics.by_name_and_labels(name, &[(FILTER_KIND_LABEL, kind)]).map(|metric| &metric.value) {
        Some(MetricValue::Counter(value)) => *value,
        _ => 0,
    }
}

impl fmt::Display for FilterMetrics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = [("points", self.points), ("prefixes", self.prefixes), ("ranges", self.ranges)];
        for (index, (kind, counts)) in kinds.into_iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            let FilterCounts { negatives, positives, false_positives } = counts;
            write!(
                formatter,
                "{separator}{kind}: {negatives} tables skipped, {positives} read, {false_positives} of them false positives"
            )?;
        }
        Ok(())
    }
}
