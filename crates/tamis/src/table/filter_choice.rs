//! The filters that the store chose for a table, with the reasons: a section of the table or of its filter file
//! (`docs/format/table.md`, "Filter choice").
//!
//! It is read when the filters are inspected or checked, never when a table is opened.

use std::fmt;

use tamis_filter::auto::{self, FalsePositiveRates};

use crate::{
    coding::{Decoder, put_bytes, put_u64, put_varint},
    options::TableFilter,
};

/// Filters and the costs that were expected of them.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ExpectedCost {
    /// Empty: no filters.
    pub(crate) filters: Vec<TableFilter>,
    /// Nanoseconds per query, with the price of memory.
    pub(crate) nanoseconds: f64,
    /// Expected false-positive rates of points, closed ranges and open seeks; NaN without such queries in the sample.
    pub(crate) rates: [f64; 3],
}

impl ExpectedCost {
    /// The filters, joined by ` + `; empty for no filters.
    pub(crate) fn names(&self) -> String {
        self.filters.iter().map(TableFilter::to_string).collect::<Vec<_>>().join(" + ")
    }

    /// See [`meets_targets`].
    pub(crate) fn meets_targets(&self, overlapping_tables: u32) -> bool {
        meets_targets(self.rates, overlapping_tables)
    }
}

/// Whether ranges and open seeks have few false-positive reads, if they ask so many tables whose filters have these rates
/// ([`ExpectedCost::rates`]).
pub(crate) fn meets_targets(rates: [f64; 3], overlapping_tables: u32) -> bool {
    let [point, range, seek] = rates.map(|rate| Some(rate).filter(|rate| !rate.is_nan()));
    auto::meets_targets(&FalsePositiveRates { point, range, seek }, overlapping_tables)
}

/// See the head of this file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FilterChoice {
    pub(crate) chosen: ExpectedCost,
    /// The next best, in order.
    pub(crate) runners_up: Vec<ExpectedCost>,
    /// Sampled queries without a key of the table, on which the choice is based.
    pub(crate) empty_query_count: u64,
    /// Some designs were not scored: the choice was quick, or its work was limited.
    pub(crate) was_cut: bool,
    /// Cheaper filters have too many false positives in all tables that overlap.
    pub(crate) is_for_targets: bool,
    /// The tables that a query of this one asked, this one included.
    pub(crate) overlapping_tables: u32,
}

impl FilterChoice {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut target = Vec::new();
        put_varint(&mut target, self.empty_query_count);
        target.extend([self.was_cut, self.is_for_targets].map(u8::from));
        put_varint(&mut target, self.overlapping_tables.into());
        for cost in std::iter::once(&self.chosen).chain(&self.runners_up) {
            put_varint(&mut target, cost.filters.len() as u64);
            cost.filters.iter().for_each(|filter| put_bytes(&mut target, filter.to_string().as_bytes()));
            put_u64(&mut target, cost.nanoseconds.to_bits());
            cost.rates.iter().for_each(|rate| put_u64(&mut target, rate.to_bits()));
        }
        target
    }

    /// `None` for bytes that [`FilterChoice::encode`] can't have written.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut source = Decoder::new(bytes);
        let empty_query_count = source.take_varint()?;
        let (was_cut, is_for_targets) = (source.take_bool()?, source.take_bool()?);
        let overlapping_tables = u32::try_from(source.take_varint()?).ok()?;
        let chosen = take_cost(&mut source)?;
        let mut runners_up = Vec::new();
        while !source.is_empty() {
            runners_up.push(take_cost(&mut source)?);
        }
        Some(Self { chosen, runners_up, empty_query_count, was_cut, is_for_targets, overlapping_tables })
    }
}

fn take_cost(source: &mut Decoder<'_>) -> Option<ExpectedCost> {
    let mut filters = Vec::new();
    for _ in 0..source.take_varint()? {
        filters.push(std::str::from_utf8(source.take_bytes()?).ok()?.parse().ok()?);
    }
    let nanoseconds = f64::from_bits(source.take_u64()?);
    let mut rates = [0.0; 3];
    for rate in &mut rates {
        *rate = f64::from_bits(source.take_u64()?);
    }
    Some(ExpectedCost { filters, nanoseconds, rates })
}

/// For people.
impl fmt::Display for ExpectedCost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let filters = if self.filters.is_empty() { "no filters" } else { &self.names() };
        write!(formatter, "{filters}: {:.0} ns per query", self.nanoseconds)?;
        let names = ["points", "ranges", "open seeks"];
        for (name, rate) in names.into_iter().zip(self.rates).filter(|(_, rate)| !rate.is_nan()) {
            write!(formatter, ", {:.2} % false positives of {name}", 100.0 * rate)?;
        }
        Ok(())
    }
}

impl fmt::Display for FilterChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "chosen for {} empty sampled queries", self.empty_query_count)?;
        if self.was_cut {
            formatter.write_str(" (not all designs were scored: the time of a choice is bounded)")?;
        }
        if self.is_for_targets {
            formatter.write_str(", so that all tables that overlap have few false positives together")?;
        }
        write!(formatter, ": {}", self.chosen)?;
        self.runners_up.iter().try_for_each(|other| write!(formatter, "; next: {other}"))
    }
}

#[cfg(test)]
mod tests;
