//! The page of `tamis filter advise`: the answer in words, then the costs and the rates as pictures.

use std::ops::RangeInclusive;

use tamis_filter::auto::Scored;

use super::{Advice, BUDGETS, HEADER, name_of, row};
use crate::{
    html::{Anchor, Colour, Drawing, Page, Part, bar, legend},
    terminal,
};

/// The height of a plot of rates, and of the part of it with the curves.
const HEIGHT: f64 = 260.0;
const PLOT_TOP: f64 = 16.0;
const PLOT_BOTTOM: f64 = HEIGHT - 42.0;
/// The part of the width with the curves; the labels of the rates are before it.
const PLOT_LEFT: f64 = 0.16;
const PLOT_RIGHT: f64 = 0.96;
/// Lower rates, which no sample of queries shows, are drawn as this one.
const DECADE_MIN: i32 = -6;

/// The rate of one kind of queries.
type Rate = fn(&Scored) -> Option<f64>;

/// The whole page.
pub(super) fn page(advice: &Advice) -> Page {
    let mut page = Page::new(&format!("Filters for {}", advice.origin));
    advice.answer().iter().for_each(|sentence| page.answer(sentence));
    page.paragraph(&advice.summary());
    page.paragraph(&format!("At most {} bits per key.", advice.bits_per_key_max));
    page.heading("Expected cost");
    page.figure(
        "Each bar is the expected time of a query with these filters, memory included, the recommended ones first",
        "the first bar were much longer than the others",
        &bars(advice.rows()),
    );
    page.table(1, &HEADER, advice.rows().iter().map(row));
    let rates: [(&str, Rate); 2] = [
        ("points", |scored| scored.false_positive_rates.point),
        ("ranges", |scored| scored.false_positive_rates.range),
    ];
    for (kind, rate) in rates {
        let Some(decades) = decades_of(advice, rate) else { continue };
        page.heading(&format!("False positives of {kind} by size"));
        page.figure(
            &format!("Each line is a family of filters: the share of {kind} without a key that read a block nevertheless, by bits per key"),
            "a line stayed high where it has many bits: more memory does not help that family",
            &curves(advice, rate, decades),
        );
    }
    page
}

fn bars(rows: &[Scored]) -> String {
    let longest = rows.iter().map(|scored| scored.cost_ns).fold(f64::MIN_POSITIVE, f64::max);
    let of_row = |(index, scored): (usize, &Scored)| {
        let colour = if index == 0 { Colour::Green } else { Colour::Grey };
        let value = format!("{} ns", terminal::count(scored.cost_ns.round() as u64));
        bar(&name_of(scored), &value, &[Part { share: scored.cost_ns / longest, colour }])
    };
    rows.iter().enumerate().map(of_row).collect()
}

/// The powers of ten around the rates that occur; `None` without any.
fn decades_of(advice: &Advice, rate: Rate) -> Option<RangeInclusive<i32>> {
    let rates = advice.by_budget.iter().flat_map(|(_, scored)| scored.iter().filter_map(rate));
    let logarithms: Vec<f64> = rates.map(|rate| rate.log10().max(DECADE_MIN.into())).collect();
    let least = logarithms.iter().copied().reduce(f64::min)?.floor() as i32;
    let greatest = logarithms.iter().copied().reduce(f64::max)?.ceil() as i32;
    Some(least.min(greatest - 1)..=greatest)
}

/// A power of ten as percent.
fn percent_of(decade: i32) -> String {
    let decimals = usize::try_from(-decade - 2).unwrap_or_default();
    format!("{:.decimals$} %", 100.0 * 10_f64.powi(decade))
}

/// A curve for each family: the rate, logarithmic, by the bits per key.
fn curves(advice: &Advice, rate: Rate, decades: RangeInclusive<i32>) -> String {
    let (least, greatest) = (f64::from(*decades.start()), f64::from(*decades.end()));
    let [first, .., last] = BUDGETS;
    let x = |bits: f64| PLOT_LEFT + (PLOT_RIGHT - PLOT_LEFT) * (bits - first) / (last - first);
    let y = |logarithm: f64| {
        PLOT_TOP + (PLOT_BOTTOM - PLOT_TOP) * (greatest - logarithm.max(least)) / (greatest - least)
    };
    let mut drawing = Drawing::new(HEIGHT);
    for decade in decades {
        let at = y(f64::from(decade));
        drawing.horizontal(at);
        drawing.text(0.0, at - 3.0, Anchor::Start, &percent_of(decade));
    }
    for bits in BUDGETS {
        drawing.text(x(bits), HEIGHT - 24.0, Anchor::Middle, &bits.to_string());
    }
    drawing.text((PLOT_LEFT + PLOT_RIGHT) / 2.0, HEIGHT - 5.0, Anchor::Middle, "bits per key");
    for (index, ((_, scored), colour)) in advice.by_budget.iter().zip(Colour::ALL).enumerate() {
        let place = |(bits, scored): (&f64, &Scored)| rate(scored).map(|rate| (x(*bits), y(rate.log10())));
        let points: Vec<_> = BUDGETS.iter().zip(scored).filter_map(place).collect();
        // Later curves are narrower, so that none covers another one with the same rates.
        drawing.curve(&points, colour, 2.0 + 0.8 * (Colour::ALL.len() - 1 - index) as f64);
    }
    let families = advice.by_budget.iter().map(|(family, _)| *family);
    drawing.finish() + &legend(Colour::ALL.into_iter().zip(families))
}
