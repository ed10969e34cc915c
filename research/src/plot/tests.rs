#![expect(clippy::unwrap_used, reason = "tests may panic")]

use super::*;
use tamis_bench::{Point, Row, published};

const PLOT: Plot = Plot {
    name: "plot",
    title: "Rates",
    x: "bits",
    y: "fpr",
    series: "family,set",
    panel: "set",
    y_axis: Axis::Log,
    ..Plot::NEW
};

const DEFINITION: Definition = Definition {
    name: "bloom-none",
    title: "",
    source: "",
    about: "",
    points: &|_| Vec::new(),
    measure: &|_, _| Ok(Row::new()),
    plots: &[PLOT],
    paper: &[published("bits=8", "fpr", 0.02)],
};

fn row(family: &str, set: &str, bits: impl Into<Value>, fpr: impl Into<Value>) -> MeasuredRow {
    MeasuredRow {
        point: Point::new().with("family", family).with("set", set).with("bits", bits),
        metrics: Row::new().with("fpr", fpr).fields,
        digest: String::new(),
        seconds: 0.0,
    }
}

#[test]
fn lines_panels_and_published_figures_are_drawn() {
    let rows = [
        row("one", "uniform", 8.0, 0.03),
        row("one", "uniform", 10.0, 0.01),
        row("two", "normal", 8.0, 0.0),
        row("two", "normal", 10.0, 0.001),
        row("two", "normal", 12.0, Value::Absent),
    ];
    let text = svg(&DEFINITION, &PLOT, &rows).unwrap().unwrap();
    for part in ["Rates", "set = uniform", "set = normal", "one, uniform", "two, normal", "bits", "fpr"] {
        assert!(text.contains(part), "{part}");
    }
    assert_eq!(text.matches("<circle").count(), 4, "a dot per row with a rate");
    assert!(svg(&DEFINITION, &PLOT, &rows[4..]).unwrap().is_none(), "nothing to draw");
}

#[test]
fn axes_convert_values_to_positions_and_labels() {
    let rows = [row("a", "s", 1.0, 0.0), row("a", "s", 1.0, 0.02), row("a", "s", 1.0, 5.0)];
    let log = Scale::of(&rows, "fpr", Axis::Log);
    assert_eq!(log.ends(), (-3.0, 1.0), "whole decades, and one for the zero");
    assert_eq!((log.position(&Value::Number(0.0)), log.position(&Value::Number(0.1))), (-3.0, -1.0));
    assert_eq!((log.label(-3.0), log.label(1.0)), ("0.001".to_owned(), "10".to_owned()));
    let linear = Scale::of(&rows, "bits", Axis::Linear);
    assert!(linear.ends().0 <= 1.0 && linear.ends().1 > 1.0, "one value still makes an axis");
    let names = Scale::of(&[row("a", "s", "x", 1.0), row("a", "s", "y", 1.0)], "bits", Axis::Log);
    assert_eq!((names.position(&Value::from("y")), names.ends()), (1.0, (-0.5, 1.5)));
    assert_eq!((names.label(1.0), names.label(0.5)), ("y".to_owned(), String::new()));
}
