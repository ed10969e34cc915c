//! Pictures as SVG: places on the width are shares of it, places on the height are pixels.
//!
//! So a picture fits a telephone and a wide window, and its text has the same size in both. Writing to a string can't fail.

use std::fmt::Write as _;

use super::escaped;

/// The height of the bar of [`bar`].
const BAR_HEIGHT: f64 = 14.0;

/// A colour of the style, which has one value for light and one for dark pages. Distinguishable for most colour-blind readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colour {
    Blue = 0,
    Red = 1,
    Green = 2,
    Pink = 3,
    Orange = 4,
    Grey = 5,
}

impl Colour {
    pub(crate) const ALL: [Self; 6] =
        [Self::Blue, Self::Red, Self::Green, Self::Pink, Self::Orange, Self::Grey];

    const fn class(self) -> u8 {
        self as u8
    }
}

/// The end of a text that is at its place.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A part of the width: shares from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Span {
    pub(crate) from: f64,
    pub(crate) to: f64,
}

/// A picture under construction.
pub(crate) struct Drawing {
    height: f64,
    body: String,
}

impl Drawing {
    pub(crate) const fn new(height: f64) -> Self {
        Self { height, body: String::new() }
    }

    /// A rectangle, with a text that appears under the pointer.
    pub(crate) fn rectangle(&mut self, span: Span, top: f64, height: f64, colour: Colour, tip: &str) {
        let (x, width) = (100.0 * span.from, 100.0 * (span.to - span.from));
        let tip = if tip.is_empty() { String::new() } else { format!("<title>{}</title>", escaped(tip)) };
        let _ = writeln!(
            self.body,
            "<rect class=\"c{}\" x=\"{x:.2}%\" y=\"{top:.0}\" width=\"{width:.2}%\" height=\"{height:.0}\">{tip}</rect>",
            colour.class(),
        );
    }

    /// A line of text whose foot is at `y`.
    pub(crate) fn text(&mut self, x: f64, y: f64, anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let _ = writeln!(
            self.body,
            "<text class=\"faint\" x=\"{:.2}%\" y=\"{y:.0}\" text-anchor=\"{anchor}\">{}</text>",
            100.0 * x,
            escaped(text)
        );
    }

    /// A line over the whole width.
    pub(crate) fn horizontal(&mut self, y: f64) {
        let _ =
            writeln!(self.body, "<line class=\"rule\" x1=\"0\" x2=\"100%\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>");
    }

    /// A vertical line.
    pub(crate) fn vertical(&mut self, x: f64, top: f64, bottom: f64) {
        let x = 100.0 * x;
        let _ = writeln!(
            self.body,
            "<line class=\"rule\" x1=\"{x:.2}%\" x2=\"{x:.2}%\" y1=\"{top:.0}\" y2=\"{bottom:.0}\"/>"
        );
    }

    /// A line through points, each a share of the width and a height in pixels.
    pub(crate) fn curve(&mut self, points: &[(f64, f64)], colour: Colour, width: f64) {
        let points: Vec<_> = points.iter().map(|(x, y)| format!("{:.2},{y:.1}", 100.0 * x)).collect();
        // The inner picture is stretched, so that its points are shares, too; the width of the line is not.
        let _ = writeln!(
            self.body,
            "<svg viewBox=\"0 0 100 {height}\" preserveAspectRatio=\"none\" width=\"100%\" height=\"{height}\" overflow=\"visible\">\
             <polyline class=\"curve c{}\" stroke-width=\"{width:.1}\" vector-effect=\"non-scaling-stroke\" points=\"{}\"/></svg>",
            colour.class(),
            points.join(" "),
            height = self.height,
        );
    }

    /// The picture as a part of a page.
    pub(crate) fn finish(self) -> String {
        format!("<svg height=\"{0}\" role=\"img\">\n{1}</svg>\n", self.height, self.body)
    }
}

/// A part of a bar: its share of the width.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub(crate) share: f64,
    pub(crate) colour: Colour,
}

/// A bar whose label is above it, so that the label wraps instead of being cut off.
pub(crate) fn bar(label: &str, value: &str, parts: &[Part]) -> String {
    let mut drawing = Drawing::new(BAR_HEIGHT);
    let mut from = 0.0;
    for Part { share, colour } in parts {
        let to = from + share.clamp(0.0, 1.0);
        drawing.rectangle(Span { from, to }, 0.0, BAR_HEIGHT, *colour, "");
        from = to;
    }
    format!(
        "<div class=\"bar\"><span>{}</span><span class=\"value\">{}</span>{}</div>\n",
        escaped(label),
        escaped(value),
        drawing.finish()
    )
}

/// The meaning of colours.
pub(crate) fn legend<'a>(entries: impl IntoIterator<Item = (Colour, &'a str)>) -> String {
    let entry = |(colour, text): (Colour, &str)| {
        format!("<li><i class=\"c{}\"></i>{}</li>", colour.class(), escaped(text))
    };
    format!("<ul class=\"legend\">{}</ul>\n", entries.into_iter().map(entry).collect::<String>())
}
