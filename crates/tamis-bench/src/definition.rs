//! Definitions of experiments.

use std::fmt;

use crate::{BenchError, Context, Point, Row, Size, Value};

/// An experiment.
#[derive(Debug)]
pub struct Definition {
    /// Name on the command line: the group, then the subject, such as `surf-figure-3`.
    pub name: &'static str,
    /// Title for people.
    pub title: &'static str,
    /// The reproduced figure, such as `SuRF, Figure 3`; empty if none.
    pub source: &'static str,
    /// Description in one or two sentences.
    pub about: &'static str,
    /// The points of a size; points that share inputs are adjacent.
    pub points: fn(Size) -> Vec<Point>,
    /// Measures one point, independent of the other points, so that an interrupted run can continue.
    pub measure: fn(&Point, &mut Context<'_>) -> Result<Row, BenchError>,
    /// The plots.
    pub plots: &'static [Plot],
    /// Published figures for comparison.
    pub paper: &'static [PaperFigure],
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

/// A parameter value in a constant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Given {
    /// Text.
    Text(&'static str),
    /// A number.
    Number(f64),
}

impl Given {
    /// Whether a parameter value equals this value.
    pub fn is(&self, value: &Value) -> bool {
        match self {
            Self::Text(text) => matches!(value, Value::Text(own) if own == text),
            Self::Number(number) => value.is_same(&Value::Number(*number)),
        }
    }
}

impl fmt::Display for Given {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => formatter.write_str(text),
            Self::Number(number) => Value::Number(*number).fmt(formatter),
        }
    }
}

/// A figure published in a paper, for comparison.
#[derive(Debug, Clone, Copy)]
pub struct PaperFigure {
    /// Its parameters; it is compared with the rows that match all of them.
    pub parameters: &'static [(&'static str, Given)],
    /// The metric.
    pub metric: &'static str,
    /// The published value.
    pub value: f64,
}
