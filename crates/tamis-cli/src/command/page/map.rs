//! The pictures of one keyspace: a map of its tables, and how many runs a read searches.
//!
//! The size of a picture does not grow with the number of tables: neighbours that are too narrow to see share a box.

use std::collections::{BTreeMap, BTreeSet};

use tamis::TableStatistics;

use super::key_space::KeySpace;
use crate::{
    html::{Anchor, Colour, Drawing, Span, legend},
    terminal,
};

/// The height of a row of boxes, of its box, and of a line of text.
const ROW: f64 = 16.0;
const BOX: f64 = 13.0;
const LINE: f64 = 20.0;
/// The height of the plot of runs.
const DEPTH_HEIGHT: f64 = 90.0;
/// The longest keys on an axis, of which three are next to each other, and in the text of a box.
const AXIS_LENGTH_MAX: usize = 10;
const TIP_LENGTH_MAX: usize = 24;
/// Runs of a level with a separate row; older ones share the last row.
const RUNS_MAX: usize = 12;
/// The boxes of all rows together, and those of a row at least.
const BOXES_MAX: usize = 4_000;
const BOXES_OF_ROW: usize = 40;
/// Partitions whose bounds are drawn.
const BOUNDS_MAX: usize = 200;

/// Neighbouring tables of a row that share a box.
struct TableBox {
    span: Span,
    table_count: u64,
    bytes: u64,
    entry_count: u64,
    tombstone_count: u64,
    deletes_ranges: bool,
    smallest_key: Vec<u8>,
    largest_key: Vec<u8>,
}

impl TableBox {
    fn new(table: &TableStatistics, span: Span) -> Self {
        Self {
            span,
            table_count: 1,
            bytes: table.bytes,
            entry_count: table.entry_count,
            tombstone_count: table.tombstone_count,
            deletes_ranges: table.range_tombstone_count > 0,
            smallest_key: table.smallest_key.clone(),
            largest_key: table.largest_key.clone(),
        }
    }

    fn add(&mut self, table: &TableStatistics, span: Span) {
        self.span.to = self.span.to.max(span.to);
        self.table_count += 1;
        self.bytes += table.bytes;
        self.entry_count += table.entry_count;
        self.tombstone_count += table.tombstone_count;
        self.deletes_ranges |= table.range_tombstone_count > 0;
        if table.largest_key > self.largest_key {
            self.largest_key.clone_from(&table.largest_key);
        }
    }

    fn colour(&self) -> Colour {
        if 2 * self.tombstone_count >= self.entry_count.max(1) {
            Colour::Red
        } else if self.deletes_ranges || 8 * self.tombstone_count >= self.entry_count.max(1) {
            Colour::Orange
        } else {
            Colour::Blue
        }
    }

    fn tip(&self, keys: &KeySpace) -> String {
        format!(
            "{}, {}, {}, {} of them deletes, from {} to {}",
            terminal::amount(self.table_count, "table", "tables"),
            terminal::bytes(self.bytes),
            terminal::amount(self.entry_count, "entry", "entries"),
            terminal::count(self.tombstone_count),
            keys.shown(&self.smallest_key, TIP_LENGTH_MAX),
            keys.shown(&self.largest_key, TIP_LENGTH_MAX)
        )
    }
}

/// The tables of each row: by level, then by run, newest first.
type Rows<'a> = BTreeMap<(usize, usize), Vec<&'a TableStatistics>>;

fn rows(tables: &[TableStatistics]) -> Rows<'_> {
    let mut rows = Rows::new();
    for table in tables {
        rows.entry((table.level, table.run.min(RUNS_MAX - 1))).or_default().push(table);
    }
    rows
}

/// The tables of a row as boxes, of which none but the last of several is narrower than `width_min`.
fn boxes(tables: &[&TableStatistics], keys: &KeySpace, width_min: f64) -> Vec<TableBox> {
    let mut placed: Vec<_> = tables.iter().map(|table| (keys.span(table), *table)).collect();
    placed.sort_by(|(left, _), (right, _)| left.from.total_cmp(&right.from));
    let mut boxes: Vec<TableBox> = Vec::new();
    for (span, table) in placed {
        match boxes.last_mut() {
            Some(last) if span.from < last.span.from + width_min => last.add(table, span),
            _ => boxes.push(TableBox::new(table, span)),
        }
    }
    boxes
}

/// The tables as boxes, above the keys.
pub(super) fn map(tables: &[TableStatistics], keys: &KeySpace) -> String {
    let rows = rows(tables);
    let width_min = 1.0 / ((BOXES_MAX / rows.len().max(1)).max(BOXES_OF_ROW) as f64).min(400.0);
    let level_count = rows.keys().map(|(level, _)| level).collect::<BTreeSet<_>>().len();
    let bottom = level_count as f64 * LINE + rows.len() as f64 * ROW;
    let mut drawing = Drawing::new(bottom + LINE);
    let mut partitions: Vec<&[u8]> = tables.iter().map(|table| table.partition.as_slice()).collect();
    partitions.sort_unstable();
    partitions.dedup();
    // Too many would hide the tables.
    let bounds = if partitions.len() <= BOUNDS_MAX { partitions.get(1..) } else { None };
    let bounds = bounds.unwrap_or_default();
    let (mut top, mut previous) = (0.0, None);
    for ((level, _), of_row) in &rows {
        if previous != Some(level) {
            previous = Some(level);
            drawing.text(0.0, top + LINE - 6.0, Anchor::Start, &level_text(tables, *level, partitions.len()));
            top += LINE;
            let row_count = rows.keys().filter(|(of, _)| of == level).count();
            let below = top + row_count as f64 * ROW;
            bounds.iter().for_each(|lower| drawing.vertical(keys.place(lower), top, below));
        }
        for one in boxes(of_row, keys, width_min) {
            // A gap between neighbours, and a width that can be seen.
            let to = (one.span.to - 0.0008).max(one.span.from + width_min / 2.0).min(1.0);
            let span = Span { from: one.span.from.min(1.0 - width_min / 2.0), to };
            drawing.rectangle(span, top, BOX, one.colour(), &one.tip(keys));
        }
        top += ROW;
    }
    axis(&mut drawing, keys, bottom + LINE - 5.0);
    drawing.finish()
        + &legend([
            (Colour::Blue, "few deletes"),
            (Colour::Orange, "an eighth or more are deletes, or it deletes ranges"),
            (Colour::Red, "half or more are deletes"),
        ])
}

fn level_text(tables: &[TableStatistics], level: usize, partition_count: usize) -> String {
    let of_level = tables.iter().filter(|table| table.level == level);
    let (mut count, mut bytes, mut runs) = (0, 0, 0);
    for table in of_level {
        (count, bytes, runs) = (count + 1, bytes + table.bytes, runs.max(table.run + 1));
    }
    format!(
        "L{level}: {}, {}, {}{}",
        terminal::bytes(bytes),
        terminal::amount(count, "table", "tables"),
        if partition_count > 1 { "at most " } else { "" },
        terminal::amount(runs as u64, "run", "runs")
    )
}

/// The keys at the ends and near the middle.
fn axis(drawing: &mut Drawing, keys: &KeySpace, y: f64) {
    for (place, key) in keys.marks() {
        let anchor = match place {
            0.0 => Anchor::Start,
            1.0 => Anchor::End,
            _ => Anchor::Middle,
        };
        drawing.text(place, y, anchor, &keys.shown(key, AXIS_LENGTH_MAX));
    }
}

/// How many runs have a key in their range, by key; the highest and the mean number.
pub(super) fn depths(keys: &KeySpace) -> (String, usize, f64) {
    const COLUMNS: usize = 240;
    let mut highest = [0_usize; COLUMNS];
    let mut mean = 0.0;
    for (span, depth) in keys.depths() {
        mean += depth as f64 * (span.to - span.from);
        let (from, to) = (span.from * COLUMNS as f64, span.to * COLUMNS as f64);
        let columns = from as usize..(to.ceil() as usize).min(COLUMNS);
        highest.get_mut(columns).into_iter().flatten().for_each(|column| *column = depth.max(*column));
    }
    let top = highest.iter().copied().max().unwrap_or_default();
    let mut drawing = Drawing::new(DEPTH_HEIGHT + 2.0 * LINE);
    drawing.text(0.0, LINE - 6.0, Anchor::Start, &terminal::amount(top as u64, "run", "runs"));
    drawing.horizontal(LINE);
    let mut from = 0;
    for columns in highest.chunk_by(|left, right| left == right) {
        let depth = columns.first().copied().unwrap_or_default();
        let place = |column: usize| column as f64 / COLUMNS as f64;
        let span = Span { from: place(from), to: place(from + columns.len()) };
        let height = DEPTH_HEIGHT * depth as f64 / top.max(1) as f64;
        let tip = terminal::amount(depth as u64, "run", "runs");
        drawing.rectangle(span, LINE + DEPTH_HEIGHT - height, height, Colour::Grey, &tip);
        from += columns.len();
    }
    axis(&mut drawing, keys, 2.0 * LINE + DEPTH_HEIGHT - 5.0);
    (drawing.finish(), top, mean)
}

#[cfg(test)]
mod tests;
