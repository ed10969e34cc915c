//! Where keys are on a map whose equal widths hold equal amounts of data, and how keys are shown.
//!
//! The first and last keys of the tables divide the keys into cells. A table's bytes are spread over the cells that it spans by the distances of their
//! keys as numbers, so gaps between tables have no width. Cost: O(tables * runs).

use tamis::TableStatistics;

use crate::{
    bytes::{Format, hex},
    html::Span,
};

/// The longest text for a key.
const SHOWN_MAX: usize = 24;
/// The bytes behind a shared prefix that decide the place of a key.
const DIGITS: usize = 8;

/// The cells of a keyspace.
pub(super) struct KeySpace {
    /// The keys at which cells begin, ascending.
    edges: Vec<Vec<u8>>,
    /// The share of the data before each cell, and 1.
    before: Vec<f64>,
    /// The tables that span each cell, which are of as many runs.
    depths: Vec<usize>,
    /// The length of the prefix that all keys share.
    shared: usize,
}

impl KeySpace {
    pub(super) fn new(tables: &[TableStatistics]) -> Self {
        let keys = tables.iter().flat_map(|table| [&table.smallest_key, &table.largest_key]);
        let mut edges: Vec<Vec<u8>> = keys.cloned().collect();
        edges.sort_unstable();
        edges.dedup();
        let shared = shared_length(&edges);
        let mut this = Self { edges, before: Vec::new(), depths: Vec::new(), shared };
        let mut bytes = vec![0.0; this.edges.len()];
        this.depths = vec![0; this.edges.len()];
        for table in tables {
            let (from, to) = this.cells(table);
            let inside = this.edges.get(from..=to.min(this.edges.len() - 1)).unwrap_or_default();
            for (cell, share) in (from..to).zip(shares(inside)) {
                bytes.get_mut(cell).into_iter().for_each(|sum| *sum += share * table.bytes as f64);
                this.depths.get_mut(cell).into_iter().for_each(|depth| *depth += 1);
            }
        }
        let all = bytes.iter().sum::<f64>().max(1.0);
        let mut sum = 0.0;
        for bytes in bytes {
            this.before.push(f64::min(sum / all, 1.0));
            sum += bytes;
        }
        this.before.push(1.0);
        this
    }

    /// The cells of a table: the first one, and the one after the last.
    fn cells(&self, table: &TableStatistics) -> (usize, usize) {
        let (from, to) = (self.cell_of(&table.smallest_key), self.cell_of(&table.largest_key));
        (from, to.max(from + 1))
    }

    fn cell_of(&self, key: &[u8]) -> usize {
        self.edges.partition_point(|edge| edge.as_slice() < key)
    }

    /// The share of the data before a cell.
    fn share(&self, cell: usize) -> f64 {
        self.before.get(cell).copied().unwrap_or(1.0)
    }

    /// The place of a key.
    pub(super) fn place(&self, key: &[u8]) -> f64 {
        self.share(self.cell_of(key))
    }

    /// The place of a table.
    pub(super) fn span(&self, table: &TableStatistics) -> Span {
        let (from, to) = self.cells(table);
        Span { from: self.share(from), to: self.share(to) }
    }

    /// The cells that have a width, with the number of runs in which a read of their keys searches.
    pub(super) fn depths(&self) -> impl Iterator<Item = (Span, usize)> {
        let spans = self.before.iter().zip(self.before.iter().skip(1));
        let spans = spans.map(|(from, to)| Span { from: *from, to: *to }).zip(self.depths.iter().copied());
        spans.filter(|(span, _)| span.to > span.from)
    }

    /// The first key, one near the middle, and the last one, with their places.
    pub(super) fn marks(&self) -> Vec<(f64, &[u8])> {
        const NEAR: f64 = 0.05;
        let middle = self.before.partition_point(|before| *before < 0.5);
        let distance = |cell: &usize| (self.share(*cell) - 0.5).abs();
        let nearest = [middle.saturating_sub(1), middle].into_iter();
        let nearest = nearest.min_by(|left, right| distance(left).total_cmp(&distance(right)));
        let middle = nearest.filter(|cell| distance(cell) < NEAR && *cell < self.edges.len());
        let key = |cell: usize| self.edges.get(cell).map_or(&[][..], Vec::as_slice);
        let middle = middle.map(|cell| (self.share(cell), key(cell)));
        let last = key(self.edges.len().saturating_sub(1));
        [Some((0.0, key(0))), middle, Some((1.0, last))].into_iter().flatten().collect()
    }

    /// The prefix that all keys share, if it is long enough to leave it out.
    fn prefix_bytes(&self) -> Option<&[u8]> {
        self.edges.first()?.get(..self.shared).filter(|prefix| prefix.len() > 3)
    }

    /// The same as text.
    pub(super) fn prefix(&self) -> Option<String> {
        self.prefix_bytes().map(shown)
    }

    /// A key without the shared prefix, in at most about `length_max` characters.
    pub(super) fn shown(&self, key: &[u8], length_max: usize) -> String {
        match self.prefix_bytes().and_then(|prefix| key.strip_prefix(prefix)) {
            Some(rest) => format!("..{}", shortened(rest, length_max)),
            None => shortened(key, length_max),
        }
    }
}

/// The length of the prefix that ascending keys share.
fn shared_length(keys: &[Vec<u8>]) -> usize {
    let ends = keys.first().zip(keys.last());
    ends.map_or(0, |(first, last)| first.iter().zip(last).take_while(|(left, right)| left == right).count())
}

/// The shares of the cells between ascending keys in the distance from the first to the last one. The bytes behind the shared prefix are the
/// digits of numbers, with a digit for each byte between the least and the greatest one at this position.
fn shares(keys: &[Vec<u8>]) -> Vec<f64> {
    if keys.len() < 3 {
        return vec![1.0];
    }
    let shared = shared_length(keys);
    let range = |position: usize| {
        let bytes = keys.iter().filter_map(|key| key.get(shared + position)).copied();
        bytes.fold((u8::MAX, 0), |(least, greatest), byte| (least.min(byte), greatest.max(byte)))
    };
    let ranges: Vec<(u8, u8)> = (0..DIGITS).map(range).collect();
    let number = |key: &Vec<u8>| {
        ranges.iter().enumerate().rev().fold(0.0, |rest, (position, (least, greatest))| {
            // A key that ends has the least digits.
            let byte = key.get(shared + position).unwrap_or(least);
            (f64::from(byte.saturating_sub(*least)) + rest)
                / (f64::from(greatest.saturating_sub(*least)) + 1.0)
        })
    };
    let numbers: Vec<f64> = keys.iter().map(number).collect();
    let widths = numbers.windows(2).map(|pair| match pair {
        [left, right] => (right - left).max(0.0),
        _ => 0.0,
    });
    let widths: Vec<f64> = widths.collect();
    let all: f64 = widths.iter().sum();
    // Keys that differ behind these digits only.
    let even = 1.0 / widths.len() as f64;
    widths.iter().map(|width| if all > 0.0 { width / all } else { even }).collect()
}

/// The beginning of a key: as text if it is printable, otherwise as hexadecimal digits.
pub(super) fn shown(key: &[u8]) -> String {
    shortened(key, SHOWN_MAX)
}

fn shortened(key: &[u8], length_max: usize) -> String {
    let is_text = std::str::from_utf8(key).is_ok_and(|text| !text.chars().any(char::is_control));
    let text = if is_text { Format::Text.show(key) } else { format!("0x{}", hex(key)) };
    match text.char_indices().nth(length_max) {
        Some((cut, _)) => format!("{}..", text.get(..cut).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
mod tests;
