//! Definitions of experiments.

use std::fmt;

use crate::{BenchError, Context, MeasuredRow, Point, Row, Size};

/// The points of a size; points that share inputs are adjacent.
pub type Points = &'static (dyn Fn(Size) -> Vec<Point> + Send + Sync);

/// Measures one point, independent of the other points, so that an interrupted run can continue.
pub type Measure = &'static (dyn Fn(&Point, &mut Context<'_>) -> Result<Row, BenchError> + Send + Sync);

/// An experiment.
pub struct Definition {
    /// Name on the command line: the group, then the subject, such as `surf-figure-3`.
    pub name: &'static str,
    /// Title for people.
    pub title: &'static str,
    /// The reproduced figure, such as `SuRF, Figure 3`; empty if none.
    pub source: &'static str,
    /// Description in one or two sentences.
    pub about: &'static str,
    /// The points.
    pub points: Points,
    /// The measurement of a point.
    pub measure: Measure,
    /// The plots.
    pub plots: &'static [Plot],
    /// Published values for comparison.
    pub paper: &'static [Published],
}

impl fmt::Debug for Definition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Definition").field(&self.name).finish()
    }
}

/// The scale of an axis. Text values are always shown as a list of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Axis {
    /// Linear.
    Linear,
    /// Logarithmic.
    Log,
}

/// A plot: one line per value of `series`, one panel per value of `panel`.
#[derive(Debug, Clone, Copy)]
pub struct Plot {
    /// Part of the file name.
    pub name: &'static str,
    /// Title.
    pub title: &'static str,
    /// Parameter or metric of the x axis.
    pub x: &'static str,
    /// Parameter or metric of the y axis.
    pub y: &'static str,
    /// Comma-separated parameters or metrics, one line for each combination; empty for one line.
    pub series: &'static str,
    /// Parameters or metrics, one panel for each combination; empty for one panel.
    pub panel: &'static str,
    /// Metric of the colour of a heat map, dark for small values; empty for lines.
    pub heat: &'static str,
    /// Scale of the x axis.
    pub x_axis: Axis,
    /// Scale of the y axis. A logarithmic axis shows zeros at its lower end.
    pub y_axis: Axis,
}

impl Plot {
    /// A plot with linear axes, one line and one panel, for use as `..Plot::NEW`.
    pub const NEW: Self = Self {
        name: "plot",
        title: "",
        x: "",
        y: "",
        series: "",
        panel: "",
        heat: "",
        x_axis: Axis::Linear,
        y_axis: Axis::Linear,
    };
}

/// A published value, or a limit, next to which measured values are shown.
#[derive(Debug, Clone, Copy)]
pub struct Published {
    /// Its parameters as `name=value; name=value`, with values as they are printed.
    of: &'static str,
    /// The metric.
    pub metric: &'static str,
    /// The value.
    pub value: f64,
}

/// A published value of the rows with these parameters (`name=value; name=value`).
pub const fn published(of: &'static str, metric: &'static str, value: f64) -> Published {
    Published { of, metric, value }
}

impl Published {
    /// Whether a row has all of its parameters.
    pub fn is_of(&self, row: &MeasuredRow) -> bool {
        self.of
            .split("; ")
            .filter_map(|pair| pair.split_once('='))
            .all(|(name, value)| row.get(name).is_some_and(|own| own.to_string() == value))
    }
}
