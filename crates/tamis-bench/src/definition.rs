//! What an experiment is.

use std::{fmt, str::FromStr};

use crate::{BenchError, Context, Point, Row, Value};

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Size {
    /// Seconds: shows that the experiment works.
    Small,
    /// Minutes: shows the shape.
    Medium,
    /// Up to two hours on two cores: the figures.
    Full,
}

impl Size {
    /// All sizes.
    pub const ALL: [Self; 3] = [Self::Small, Self::Medium, Self::Full];

    /// One of three values.
    pub fn pick<T>(self, small: T, medium: T, full: T) -> T {
        match self {
            Self::Small => small,
            Self::Medium => medium,
            Self::Full => full,
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.pick("small", "medium", "full"))
    }
}

impl FromStr for Size {
    type Err = BenchError;

    fn from_str(name: &str) -> Result<Self, BenchError> {
        Self::ALL.into_iter().find(|size| size.to_string() == name).ok_or_else(|| BenchError::Unknown {
            kind: "size",
            name: name.to_owned(),
            names: "small, medium, full".to_owned(),
        })
    }
}

/// An experiment.
#[derive(Debug)]
pub struct Definition {
    /// Its name on the command line: group, then what is measured: `surf-figure-3`.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// `SuRF, Figure 3`; empty for our own.
    pub source: &'static str,
    /// What it shows, in a sentence or two.
    pub about: &'static str,
    /// The points that a size measures, those that share inputs behind each other.
    pub points: fn(Size) -> Vec<Point>,
    /// Measures one point. It leans on no other point, so that a run can go on after an interruption.
    pub measure: fn(&Point, &mut Context<'_>) -> Result<Row, BenchError>,
    /// What is drawn.
    pub plots: &'static [Plot],
    /// What the paper says.
    pub paper: &'static [PaperFigure],
}

/// How values become places on an axis. Text always becomes a list of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Axis {
    /// In proportion.
    Linear,
    /// By the logarithm.
    Log,
}

/// A drawing: one line for each value of `series`, one field for each value of `panel`.
#[derive(Debug, Clone, Copy)]
pub struct Plot {
    /// Part of the file's name.
    pub name: &'static str,
    /// Stands above it.
    pub title: &'static str,
    /// Parameter or metric from left to right.
    pub x: &'static str,
    /// Parameter or metric from bottom to top.
    pub y: &'static str,
    /// Parameters or metrics that tell lines apart, with commas; empty: one line.
    pub series: &'static str,
    /// Parameter or metric that tells panels apart; empty: one panel.
    pub panel: &'static str,
    /// Metric that colours the cell at each place, dark for small and light for great: a heat map. Empty: lines.
    pub heat: &'static str,
    /// The scale from left to right.
    pub x_axis: Axis,
    /// The scale from bottom to top. Zeros stand on the lower edge of a logarithmic one.
    pub y_axis: Axis,
}

impl Plot {
    /// A plot with linear axes, one line and one panel, to be refined by `..Plot::NEW`.
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

/// A parameter's value in a definition, where nothing can be allocated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Given {
    /// Text.
    Text(&'static str),
    /// A number.
    Number(f64),
}

impl Given {
    /// Whether a parameter has this value.
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

/// A figure that a paper prints, to stand beside ours.
#[derive(Debug, Clone, Copy)]
pub struct PaperFigure {
    /// The parameters that it is for; those of ours that match all of them are compared.
    pub parameters: &'static [(&'static str, Given)],
    /// The metric.
    pub metric: &'static str,
    /// What the paper says.
    pub value: f64,
}
