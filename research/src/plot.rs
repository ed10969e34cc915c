//! Plots of results as SVG.
//!
//! Values are converted to axis positions here (a logarithm, or the index of a text), so that the plotting library gets plain
//! numbers. Published figures are crosses in the colour of the measured line.

use std::path::PathBuf;

use plotters::{
    coord::Shift,
    prelude::{
        BLACK, ChartBuilder, Circle, Color, Cross, DrawingArea, IntoDrawingArea, LineSeries, PathElement,
        RGBColor, Rectangle, SVGBackend, SeriesLabelPosition, ShapeStyle, WHITE,
    },
};

use tamis_bench::{Axis, BenchError, Definition, MeasuredRow, Plot, Published, Report, Value};

#[cfg(test)]
mod tests;

/// Pixels of one panel.
const PANEL: (u32, u32) = (720, 480);
/// Panels per row.
const COLUMN_COUNT: usize = 2;
/// Colours that are distinguishable in print and for most colour-blind readers.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(120, 120, 120),
    RGBColor(0, 0, 0),
];

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Draws all plots of an experiment into the folder of its results; returns the files.
pub(crate) fn draw(definition: &Definition, report: &Report) -> Result<Vec<PathBuf>, BenchError> {
    let mut paths = Vec::new();
    for plot in definition.plots {
        let Some(text) = svg(definition, plot, &report.rows)? else { continue };
        let path = report.path.with_extension(format!("{}.svg", plot.name));
        std::fs::write(&path, text).map_err(BenchError::io(&path))?;
        paths.push(path);
    }
    Ok(paths)
}

fn failed(error: impl std::fmt::Display) -> BenchError {
    BenchError::Other(format!("cannot draw the plot: {error}"))
}

/// The distinct values of the rows, in order of first occurrence.
fn distinct<T: PartialEq>(rows: &[MeasuredRow], value: impl Fn(&MeasuredRow) -> T) -> Vec<T> {
    let mut values = Vec::new();
    for value in rows.iter().map(value) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

/// The values of the comma-separated `names` of a row, for people.
fn label(row: &MeasuredRow, names: &str) -> String {
    let values = names.split(',').filter(|name| !name.is_empty());
    let texts = values.map(|name| row.get(name).map_or_else(|| "-".to_owned(), Value::to_string));
    texts.collect::<Vec<_>>().join(", ")
}

/// Draws one plot; `None` if no row has its metrics.
fn svg(definition: &Definition, plot: &Plot, rows: &[MeasuredRow]) -> Result<Option<String>, BenchError> {
    let shown: Vec<MeasuredRow> = rows.iter().filter(|row| has_position(row, plot)).cloned().collect();
    if shown.is_empty() {
        return Ok(None);
    }
    let panels = distinct(&shown, |row| label(row, plot.panel));
    let column_count = panels.len().min(COLUMN_COUNT);
    let row_count = panels.len().div_ceil(column_count);
    let mut text = String::new();
    {
        let size = (PANEL.0 * column_count as u32, PANEL.1 * row_count as u32 + 40);
        let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
        root.fill(&WHITE).map_err(failed)?;
        let body = root.titled(plot.title, ("sans-serif", 22)).map_err(failed)?;
        let areas = body.split_evenly((row_count, column_count));
        let scales = (Scale::of(&shown, plot.x, plot.x_axis), Scale::of(&shown, plot.y, plot.y_axis));
        for (area, panel) in areas.iter().zip(&panels) {
            let own: Vec<MeasuredRow> =
                shown.iter().filter(|row| label(row, plot.panel) == *panel).cloned().collect();
            Panel { plot, definition, name: panel, rows: &own, x: &scales.0, y: &scales.1, all: &shown }
                .draw(area)?;
        }
        root.present().map_err(failed)?;
    }
    Ok(Some(text))
}

/// Whether a row has both coordinates and y is a number.
fn has_position(row: &MeasuredRow, plot: &Plot) -> bool {
    row.get(plot.y).is_some_and(|y| y.as_number().is_some())
        && row.get(plot.x).is_some_and(|x| x.as_number().is_some() || matches!(x, Value::Text(_)))
}

/// Converts values of an axis to positions, and positions to labels.
enum Scale {
    Linear(f64, f64),
    /// Decimal logarithms of the ends; values that are not positive are at the lower end.
    Log(f64, f64),
    Names(Vec<String>),
}

impl Scale {
    fn of(rows: &[MeasuredRow], name: &str, axis: Axis) -> Self {
        let values: Vec<&Value> = rows.iter().filter_map(|row| row.get(name)).collect();
        if values.iter().any(|value| matches!(value, Value::Text(_))) {
            return Self::Names(distinct(rows, |row| label(row, name)));
        }
        let numbers = values.iter().filter_map(|value| value.as_number());
        let ends = |(least, most): (f64, f64), number: f64| (least.min(number), most.max(number));
        let none = (f64::INFINITY, f64::NEG_INFINITY);
        match axis {
            Axis::Linear => {
                let (least, most) = numbers.fold(none, ends);
                // Starts at zero unless that compresses the line.
                let least = if least > 0.0 && least < most * 0.5 { 0.0 } else { least };
                let most = if most > least { most + (most - least) * 0.05 } else { least + 1.0 };
                Self::Linear(least, most)
            }
            Axis::Log => {
                let (least, most) =
                    numbers.clone().filter(|number| *number > 0.0).map(f64::log10).fold(none, ends);
                let (least, most) = if least > most { (0.0, 1.0) } else { (least, most) };
                let has_zero = numbers.clone().any(|number| number <= 0.0);
                let lower = least.floor() - if has_zero { 1.0 } else { 0.0 };
                Self::Log(lower, most.ceil().max(lower + 1.0))
            }
        }
    }

    fn ends(&self) -> (f64, f64) {
        match self {
            Self::Linear(least, most) | Self::Log(least, most) => (*least, *most),
            Self::Names(names) => (-0.5, names.len() as f64 - 0.5),
        }
    }

    fn position(&self, value: &Value) -> f64 {
        match (self, value.as_number()) {
            (Self::Linear(..), Some(number)) => number,
            (Self::Log(least, _), Some(number)) => {
                if number > 0.0 {
                    number.log10().max(*least)
                } else {
                    *least
                }
            }
            (Self::Names(names), _) => {
                let text = value.to_string();
                names.iter().position(|name| *name == text).unwrap_or_default() as f64
            }
            (_, None) => 0.0,
        }
    }

    fn label(&self, place: f64) -> String {
        match self {
            Self::Linear(..) => Value::from((place * 1e9).round() / 1e9).to_string(),
            Self::Log(..) => Value::from(10_f64.powf(place)).to_string(),
            Self::Names(names) => {
                // No labels between two names.
                let is_name = (place - place.round()).abs() < 0.01 && place >= 0.0;
                names.get(place.round() as usize).filter(|_| is_name).cloned().unwrap_or_default()
            }
        }
    }

    fn label_count(&self) -> usize {
        match self {
            Self::Linear(..) => 10,
            Self::Log(least, most) => ((most - least) as usize + 1).min(12),
            Self::Names(names) => names.len() + 1,
        }
    }
}

/// The minimum distance of two positions; 1 if there are fewer than two.
fn min_distance(mut places: Vec<f64>) -> f64 {
    places.sort_by(f64::total_cmp);
    let steps = places.iter().zip(places.iter().skip(1)).map(|(one, next)| next - one);
    let least = steps.filter(|step| *step > 0.0).fold(f64::INFINITY, f64::min);
    if least.is_finite() { least } else { 1.0 }
}

/// One panel of a plot.
struct Panel<'a> {
    plot: &'a Plot,
    definition: &'a Definition,
    name: &'a str,
    rows: &'a [MeasuredRow],
    /// Rows of all panels, so that a line has the same colour in each.
    all: &'a [MeasuredRow],
    x: &'a Scale,
    y: &'a Scale,
}

impl Panel<'_> {
    fn draw(&self, area: &Area<'_>) -> Result<(), BenchError> {
        let (x_ends, y_ends) = (self.x.ends(), self.y.ends());
        let mut builder = ChartBuilder::on(area);
        builder.margin(12).x_label_area_size(42).y_label_area_size(70);
        if !self.name.is_empty() {
            builder.caption(format!("{} = {}", self.plot.panel, self.name), ("sans-serif", 16));
        }
        let mut chart = builder.build_cartesian_2d(x_ends.0..x_ends.1, y_ends.0..y_ends.1).map_err(failed)?;
        chart
            .configure_mesh()
            .x_desc(self.plot.x)
            .y_desc(self.plot.y)
            .x_labels(self.x.label_count())
            .y_labels(self.y.label_count())
            .x_label_formatter(&|place| self.x.label(*place))
            .y_label_formatter(&|place| self.y.label(*place))
            .max_light_lines(1)
            .draw()
            .map_err(failed)?;
        if !self.plot.heat.is_empty() {
            chart.draw_series(self.cells()).map_err(failed)?;
            return Ok(());
        }
        let lines = distinct(self.all, |row| label(row, self.plot.series));
        for (line, colour) in lines.iter().zip(COLOURS.iter().cycle()) {
            let mut places: Vec<_> = self.rows_of(line).filter_map(|row| self.place(row)).collect();
            if places.is_empty() {
                continue;
            }
            places.sort_by(|one, two| one.0.total_cmp(&two.0));
            let style = ShapeStyle::from(colour).stroke_width(2);
            let series = chart.draw_series(LineSeries::new(places.iter().copied(), style)).map_err(failed)?;
            if !line.is_empty() {
                series
                    .label(line.as_str())
                    .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 16, y)], style));
            }
            let dots = places.iter().map(|place| Circle::new(*place, 3, colour.filled()));
            chart.draw_series(dots).map_err(failed)?;
            let crosses = self.paper_positions(line);
            let crosses =
                crosses.iter().map(|place| Cross::new(*place, 5, ShapeStyle::from(colour).stroke_width(2)));
            chart.draw_series(crosses).map_err(failed)?;
        }
        if lines.len() > 1 {
            let mut labels = chart.configure_series_labels();
            labels.position(SeriesLabelPosition::UpperRight).border_style(BLACK.mix(0.3));
            labels.background_style(WHITE.mix(0.8)).draw().map_err(failed)?;
        }
        Ok(())
    }

    /// The cells of a heat map; their size is the minimum distance of two positions.
    fn cells(&self) -> Vec<Rectangle<(f64, f64)>> {
        let heat = |row: &MeasuredRow| row.get(self.plot.heat).and_then(Value::as_number);
        let most = self.all.iter().filter_map(heat).fold(0.0, f64::max);
        let (widths, heights): (Vec<f64>, Vec<f64>) =
            self.all.iter().filter_map(|row| self.place(row)).unzip();
        let (width, height) = (min_distance(widths) / 2.0, min_distance(heights) / 2.0);
        let cell = |row: &MeasuredRow| {
            let (x, y) = self.place(row)?;
            // The square root makes small values distinguishable. Dark is low.
            let share = if most > 0.0 { (heat(row)? / most).max(0.0).sqrt() } else { 0.0 };
            let shade = |dark: f64, light: f64| (dark + (light - dark) * share) as u8;
            let colour = RGBColor(shade(8.0, 247.0), shade(48.0, 251.0), shade(107.0, 255.0));
            Some(Rectangle::new([(x - width, y - height), (x + width, y + height)], colour.filled()))
        };
        self.rows.iter().filter_map(cell).collect()
    }

    /// The position of a row.
    fn place(&self, row: &MeasuredRow) -> Option<(f64, f64)> {
        Some((self.x.position(row.get(self.plot.x)?), self.y.position(row.get(self.plot.y)?)))
    }

    /// The rows of a line.
    fn rows_of(&self, line: &str) -> impl Iterator<Item = &MeasuredRow> {
        self.rows.iter().filter(move |row| label(row, self.plot.series) == line)
    }

    /// The published figures of a line of this panel.
    fn paper_positions(&self, line: &str) -> Vec<(f64, f64)> {
        let place = |row: &MeasuredRow| {
            let of_row = |published: &&Published| published.metric == self.plot.y && published.is_of(row);
            let figure = self.definition.paper.iter().find(of_row)?;
            Some((self.x.position(row.get(self.plot.x)?), self.y.position(&Value::from(figure.value))))
        };
        self.rows_of(line).filter_map(place).collect()
    }
}
