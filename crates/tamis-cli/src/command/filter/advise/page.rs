//! The page of `tamis filter advise`: one HTML file without scripts or references, with plots as SVG.

use std::fmt::Write as _;

use tamis_filter::auto::Scored;

use super::{Advice, BUDGETS, name_of, percent};

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 60.0;
const BOTTOM: f64 = 40.0;
/// Rates below this are drawn at the lower end.
const RATE_MIN: f64 = 1e-5;
const DECADES: f64 = 5.0;
const BAR_HEIGHT: f64 = 22.0;
/// Distinguishable in print and for most colour-blind readers.
const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];

const STYLE: &str = "body{font:16px sans-serif;max-width:60em;margin:2em auto;padding:0 1em;overflow-wrap:anywhere}\
svg{max-width:100%}table{border-collapse:collapse;width:100%}td,th{padding:.2em .8em;border-bottom:1px solid #ccc;text-align:right}\
td{white-space:nowrap}td:first-child,th:first-child{text-align:left}td:first-child{white-space:normal}";

/// The rate of one kind of queries.
type Rate = fn(&Scored) -> Option<f64>;

/// Replaces the characters that have a meaning in HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The whole page.
pub(super) fn page(advice: &Advice) -> String {
    let mut text = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Filters</title><style>{STYLE}</style></head><body>\n\
         <h1>Filters for {}</h1>\n<p>{}</p>\n<p>At most {} bits per key.</p>\n",
        escaped(&advice.origin),
        escaped(&advice.summary()),
        advice.bits_per_key_max,
    );
    text.push_str("<h2>Expected cost</h2>\n");
    text.push_str(&table(advice));
    text.push_str(&bars(advice.rows()));
    let rates: [(&str, Rate); 2] = [
        ("Expected false positives of points by size", |scored| scored.false_positive_rates.point),
        ("Expected false positives of ranges by size", |scored| scored.false_positive_rates.range),
    ];
    for (title, rate) in rates {
        if advice.by_budget.iter().any(|(_, scored)| scored.iter().any(|one| rate(one).is_some())) {
            text.push_str(&format!("<h2>{title}</h2>\n"));
            text.push_str(&lines(advice, rate));
        }
    }
    text.push_str("</body></html>\n");
    text
}

fn table(advice: &Advice) -> String {
    let mut text = String::from(
        "<table><tr><th>filters<th>bits per key<th>ns per query<th>points<th>ranges<th>open seeks</tr>\n",
    );
    for scored in advice.rows() {
        let rates = scored.false_positive_rates;
        // Writing to a string can't fail.
        let _ = writeln!(
            text,
            "<tr><td>{}<td>{:.1}<td>{:.0}<td>{}<td>{}<td>{}</tr>",
            escaped(&name_of(scored)),
            scored.bits_per_key,
            scored.cost_ns,
            percent(rates.point),
            percent(rates.range),
            percent(rates.seek),
        );
    }
    text.push_str("</table>\n");
    text
}

/// A bar for each of the filters, whose length is the logarithm of the cost.
fn bars(rows: &[Scored]) -> String {
    let length = |cost: f64| (1.0 + cost.max(1.0)).log10();
    let longest = rows.iter().map(|scored| length(scored.cost_ns)).fold(1.0, f64::max);
    let height = BAR_HEIGHT * rows.len() as f64;
    let mut text = format!(
        "<p>Cost per query, logarithmic:</p>\n<svg viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" role=\"img\">\n"
    );
    for (index, scored) in rows.iter().enumerate() {
        let top = BAR_HEIGHT * index as f64;
        let width = (WIDTH - LEFT) * length(scored.cost_ns) / longest;
        let colour = if index == 0 { "#009e73" } else { "#bcd" };
        let _ = writeln!(
            text,
            "<rect x=\"0\" y=\"{top}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"{colour}\"/><text x=\"4\" y=\"{:.1}\" font-size=\"13\">{} ({:.0} ns)</text>",
            BAR_HEIGHT - 3.0,
            top + 14.0,
            escaped(&name_of(scored)),
            scored.cost_ns,
        );
    }
    text.push_str("</svg>\n");
    text
}

/// A line for each family: the rate, logarithmic, by the bits per key.
fn lines(advice: &Advice, rate: Rate) -> String {
    let last = BUDGETS.last().copied().unwrap_or(1.0);
    let x = |bits: f64| LEFT + (WIDTH - LEFT - 180.0) * bits / last;
    let y = |rate: f64| 10.0 + (HEIGHT - BOTTOM - 10.0) * (-rate.clamp(RATE_MIN, 1.0).log10() / DECADES);
    let mut text = format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" role=\"img\">\n");
    for decade in 0..=DECADES as i32 {
        let (rate, at) = (10_f64.powi(-decade), y(10_f64.powi(-decade)));
        let end = x(last);
        let _ = writeln!(
            text,
            "<path d=\"M{LEFT} {at:.1}H{end:.1}\" stroke=\"#ddd\"/><text x=\"4\" y=\"{:.1}\" font-size=\"12\">{}</text>",
            at + 4.0,
            rate,
        );
    }
    let _ = writeln!(
        text,
        "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"12\" text-anchor=\"middle\">bits per key</text>",
        x(last / 2.0),
        HEIGHT - 2.0,
    );
    for bits in BUDGETS {
        let at = x(bits);
        let _ = writeln!(
            text,
            "<text x=\"{at:.1}\" y=\"{:.1}\" font-size=\"12\" text-anchor=\"middle\">{bits}</text>",
            HEIGHT - 18.0,
        );
    }
    for (index, ((family, scored), colour)) in advice.by_budget.iter().zip(COLOURS).enumerate() {
        let points: Vec<String> = BUDGETS
            .iter()
            .zip(scored)
            .filter_map(|(bits, scored)| rate(scored).map(|rate| format!("{:.1},{:.1}", x(*bits), y(rate))))
            .collect();
        let label = 24.0 + 20.0 * index as f64;
        // Later lines are narrower, so that none covers another one with the same rates.
        let width = 2.0 + 0.8 * (COLOURS.len() - 1 - index) as f64;
        let _ = writeln!(
            text,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width:.1}\"/><text x=\"{:.1}\" y=\"{label:.1}\" font-size=\"13\" fill=\"{colour}\">{}</text>",
            points.join(" "),
            x(last) + 10.0,
            escaped(family),
        );
    }
    text.push_str("</svg>\n");
    text
}
