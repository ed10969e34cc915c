//! The parts of the page, each with pictures or with one sentence that says why there is none.

use std::{cmp::Reverse, collections::BTreeMap};

use tamis::{LevelFilters, PartitionStatistics, Statistics};

use super::{
    KeyspaceFound, bytes_of,
    key_space::{KeySpace, shown},
    map,
};
use crate::{
    command::stats::{answers::NOT_SAMPLED, name_of_job, paid, sampled_kinds},
    html::{Colour, Page, Part, bar, legend},
    terminal,
};

/// Keyspaces that are drawn: the largest ones.
const KEYSPACES_MAX: usize = 6;
/// Bars and rows of one kind.
const ROWS_MAX: usize = 12;

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// The bounds of a range of keys.
fn range_text(lower: &[u8], upper: &[u8]) -> String {
    let upper = if upper.is_empty() { "the end".to_owned() } else { shown(upper) };
    format!("{} to {upper}", shown(lower))
}

/// The map of each keyspace, how many runs a read searches, and the largest partitions.
pub(super) fn data(page: &mut Page, keyspaces: &[KeyspaceFound<'_>]) {
    page.heading("Where is the data?");
    for keyspace in keyspaces.iter().take(KEYSPACES_MAX) {
        let layout = keyspace.statistics.layout.to_string();
        page.subheading(&format!("Keyspace {}", terminal::name(&keyspace.statistics.name)));
        page.paragraph(&format!(
            "{} in {}, {} in memory. Layout: {}.",
            terminal::bytes(bytes_of(keyspace)),
            terminal::amount(keyspace.tables.len() as u64, "table", "tables"),
            terminal::bytes(keyspace.statistics.memtable_bytes),
            layout.split(':').next().unwrap_or_default(),
        ));
        if keyspace.tables.is_empty() {
            page.paragraph("No tables yet: all entries are in memory and in the log.");
            continue;
        }
        let keys = KeySpace::new(&keyspace.tables);
        if let Some(prefix) = keys.prefix() {
            page.paragraph(&format!("All keys begin with {prefix}, which the pictures leave out."));
        }
        page.figure(
            "Each box is a table, or several small neighbours, above its keys from the least (left) to the greatest (right), newest rows on top, \
             and equal widths hold equal amounts of data",
            "many rows of L0 were above each other, or much of the map were red",
            &map::map(&keyspace.tables, &keys),
        );
        depths(page, &keys);
        partitions(page, keyspace);
    }
    let others = keyspaces.get(KEYSPACES_MAX..).unwrap_or_default();
    if !others.is_empty() {
        let bytes = others.iter().map(bytes_of).sum();
        let count = terminal::amount(others.len() as u64, "smaller keyspace", "smaller keyspaces");
        page.paragraph(&format!("{count} with {} are not drawn.", terminal::bytes(bytes)));
    }
}

fn depths(page: &mut Page, keys: &KeySpace) {
    let (picture, highest, mean) = map::depths(keys);
    if highest <= 1 {
        return page.paragraph("Each key is in at most one run: a read searches one table.");
    }
    page.figure(
        &format!(
            "The height is the number of runs that a read of these keys searches unless filters reject it, here {mean:.1} on average and at most \
             {highest}"
        ),
        "it were high where the program reads much",
        &picture,
    );
}

fn partitions(page: &mut Page, keyspace: &KeyspaceFound<'_>) {
    let count = keyspace.statistics.partition_count;
    if count < 2 {
        return;
    }
    let mut largest: Vec<&PartitionStatistics> = keyspace.statistics.partitions.iter().collect();
    largest.sort_by_key(|partition| Reverse(partition.size.bytes));
    let all = bytes_of(keyspace) as f64;
    let of_partition = |partition: &&PartitionStatistics| {
        let size = &partition.size;
        let value = format!(
            "{} in {}",
            terminal::bytes(size.bytes),
            terminal::amount(size.run_count as u64, "run", "runs")
        );
        let from =
            if partition.lower.is_empty() { "the first key".to_owned() } else { shown(&partition.lower) };
        let part = Part { share: share(size.bytes as f64, all), colour: Colour::Blue };
        bar(&format!("from {from}"), &value, &[part])
    };
    let bars: String = largest.iter().take(ROWS_MAX).map(of_partition).collect();
    page.figure(
        &format!(
            "Each bar is one of the largest of {} partitions, which are merged independently, as its share of the data",
            terminal::count(count as u64)
        ),
        "one bar took most of the width: its merges take long and all others wait",
        &bars,
    );
}

/// How the filters answered the sampled queries, what they are, and the tables with the most false positives.
pub(super) fn filters(page: &mut Page, keyspaces: &[KeyspaceFound<'_>]) {
    page.heading("How much do the filters save?");
    let mut bars = String::new();
    for keyspace in keyspaces.iter().take(KEYSPACES_MAX) {
        let name = terminal::name(&keyspace.statistics.name);
        for (kind, sample) in sampled_kinds(&keyspace.statistics.sample) {
            let [rejected, true_positives, false_positives] =
                [sample.tables_rejected, sample.tables_true_positive, sample.tables_false_positive]
                    .map(|count| count as f64);
            let (all, queries) = (rejected + true_positives + false_positives, sample.kept.max(1) as f64);
            if sample.kept == 0 || all == 0.0 {
                continue;
            }
            let value = format!("{:.2} of {:.2} tables not read", rejected / queries, all / queries);
            let parts =
                [(rejected, Colour::Green), (true_positives, Colour::Blue), (false_positives, Colour::Red)];
            let parts = parts.map(|(part, colour)| Part { share: part / all, colour });
            bars.push_str(&bar(&format!("{name}: {kind}"), &value, &parts));
        }
    }
    if bars.is_empty() {
        page.paragraph(NOT_SAMPLED);
    } else {
        let colours = legend([
            (Colour::Green, "not read: a filter rejected the query"),
            (Colour::Blue, "read, with a key"),
            (Colour::Red, "read without a key: a false positive"),
        ]);
        page.figure(
            "Each bar is one kind of query, and shows what happened to the tables in whose range of keys it was",
            "a red part were long: these reads return nothing",
            &(bars + &colours),
        );
    }
    filter_tables(page, keyspaces);
}

/// The families of filters, without the sizes that differ from table to table.
fn families(designs: &str) -> String {
    let families = designs.split(" + ").filter_map(|design| design.split([':', ';']).next());
    let families = families.collect::<Vec<_>>().join(" + ");
    if families.is_empty() { "none".to_owned() } else { families }
}

fn filter_tables(page: &mut Page, keyspaces: &[KeyspaceFound<'_>]) {
    for keyspace in keyspaces.iter().take(KEYSPACES_MAX) {
        let mut levels: BTreeMap<(usize, String), LevelFilters> = BTreeMap::new();
        for of in &keyspace.statistics.filters {
            let sum = levels.entry((of.level, families(&of.filters))).or_default();
            sum.table_count += of.table_count;
            sum.entry_count += of.entry_count;
            sum.bytes += of.bytes;
        }
        let rows = levels.iter().map(|((level, families), of)| {
            vec![
                families.clone(),
                format!("L{level}"),
                terminal::count(of.table_count as u64),
                terminal::bytes(of.bytes),
                format!("{:.1}", share(8.0 * of.bytes as f64, of.entry_count as f64)),
            ]
        });
        let name = format!("filters of {}", terminal::name(&keyspace.statistics.name));
        page.table(2, &[&name, "level", "tables", "memory", "bits per entry"], rows);
    }
    let mut worst = Vec::new();
    for keyspace in keyspaces {
        for table in &keyspace.filters {
            let mut sum = table.points;
            sum += table.ranges;
            sum += table.seeks;
            if sum.false_positives > 0 {
                worst.push((keyspace, table, sum));
            }
        }
    }
    worst.sort_by_key(|(.., sum)| Reverse((sum.false_positives, sum.checked)));
    if worst.is_empty() {
        return;
    }
    page.paragraph("The tables whose filters had the most false positives since the open:");
    let rows = worst.into_iter().take(ROWS_MAX).map(|(keyspace, table, sum)| {
        vec![
            format!("{} of {}", table.table_number, terminal::name(&keyspace.statistics.name)),
            format!("L{}", table.level),
            terminal::count(sum.rejected),
            terminal::count(sum.true_positives),
            terminal::count(sum.false_positives),
        ]
    });
    page.table(2, &["table", "level", "rejected", "true positives", "false positives"], rows);
}

/// The time that reads lose and the jobs that would save it.
pub(super) fn losses(page: &mut Page, keyspaces: &[KeyspaceFound<'_>]) {
    page.heading("Which work would make reads faster?");
    let mut rows: Vec<_> = keyspaces
        .iter()
        .flat_map(|keyspace| {
            let name = terminal::name(&keyspace.statistics.name);
            keyspace.losses.iter().map(move |loss| (name.clone(), loss))
        })
        .collect();
    if rows.is_empty() {
        page.paragraph(
            "Reads have lost no time to filters, or to runs that are not merged, since the store was opened. This count begins at zero with each \
             open: `page FILE` in `tamis shell` draws a store in use.",
        );
        return;
    }
    rows.sort_by(|(_, left), (_, right)| paid(right).total_cmp(&paid(left)));
    let of_row = |(name, loss): &(String, &tamis::ReadLoss)| {
        let value = format!(
            "lost {} of the {} that the job takes",
            terminal::seconds(loss.lost.as_secs_f64()),
            terminal::seconds(loss.price.as_secs_f64())
        );
        let part = Part { share: paid(loss), colour: Colour::Orange };
        bar(&format!("{name}: {}", name_of_job(loss)), &value, &[part])
    };
    let bars: String = rows.iter().take(ROWS_MAX).map(of_row).collect();
    page.figure(
        "Each bar is a job that would make reads faster: it fills with the time that reads lose without the job, and the job begins when the \
         bar is full, because it then costs no more than it saves",
        "many bars stayed nearly full",
        &bars,
    );
    if let Some(others) = rows.len().checked_sub(ROWS_MAX).filter(|others| *others > 0) {
        page.paragraph(&format!("{} more have lost less.", terminal::count(others as u64)));
    }
}

/// The bytes written, and the time that writers waited.
pub(super) fn writes(page: &mut Page, statistics: &Statistics) {
    page.heading("How much do writes cost?");
    let all = [
        ("keys and values of the program", statistics.user_bytes_written, Colour::Green),
        ("log", statistics.log_bytes_written, Colour::Grey),
        ("tables of flushes", statistics.flush_bytes_written, Colour::Blue),
        ("tables of compactions", statistics.compaction_bytes_written, Colour::Orange),
        ("sorted views", statistics.view_bytes_written, Colour::Pink),
    ];
    let longest = all.iter().map(|(_, bytes, _)| *bytes).max().unwrap_or_default();
    if longest == 0 {
        page.paragraph(
            "Nothing was written since the store was opened, and earlier counts are lost with each close.",
        );
    } else {
        let of_row = |(name, bytes, colour): &(&str, u64, Colour)| {
            let part = Part { share: share(*bytes as f64, longest as f64), colour: *colour };
            bar(name, &terminal::bytes(*bytes), &[part])
        };
        page.figure(
            &format!(
                "The first bar is what the program wrote since the open, the others are what the store wrote for it, {:.2} bytes per byte \
                 (write amplification); only totals are counted, no history",
                statistics.write_amplification()
            ),
            "the bar of compactions were many times as long as the first one",
            &all.iter().map(of_row).collect::<String>(),
        );
    }
    let seconds = |microseconds: u64| terminal::seconds(microseconds as f64 / 1e6);
    page.paragraph(&if statistics.throttled_writes + statistics.stopped_writes == 0 {
        "No write had to wait for flushes or compactions since the open.".to_owned()
    } else {
        format!(
            "Writes that had to wait since the open: {} were delayed by {} together, {} were stopped for {}. It is bad if this grows all the \
             time: the disk does not keep up with the program.",
            terminal::count(statistics.throttled_writes),
            seconds(statistics.throttled_microseconds),
            terminal::count(statistics.stopped_writes),
            seconds(statistics.stopped_microseconds)
        )
    });
}

/// The largest deleted ranges, and the tables with the most single deletes.
pub(super) fn deletes(page: &mut Page, keyspaces: &[KeyspaceFound<'_>]) {
    page.heading("Which deleted data still takes space?");
    let mut ranges = Vec::new();
    for keyspace in keyspaces {
        let name = terminal::name(&keyspace.statistics.name);
        match &keyspace.deleted_ranges {
            Ok(found) => ranges.extend(found.iter().map(|range| (name.clone(), range))),
            Err(error) => page.paragraph(&format!("The deleted ranges of {name} are not known: {error}")),
        }
    }
    ranges.retain(|(_, range)| range.bytes > 0);
    ranges.sort_by_key(|(_, range)| Reverse(range.bytes));
    ranges.truncate(ROWS_MAX);
    let all = keyspaces.iter().map(bytes_of).sum::<u64>() as f64;
    if ranges.is_empty() {
        page.paragraph("No deleted range has bytes in older tables.");
    } else {
        let of_row = |(name, range): &(String, &tamis::DeletedRange)| {
            let part = Part { share: share(range.bytes as f64, all), colour: Colour::Orange };
            let label = format!("{name}: {}", range_text(&range.lower, &range.upper));
            bar(&label, &terminal::bytes(range.bytes), &[part])
        };
        page.figure(
            "Each bar is a range of keys that the program deleted at once: the share of the store's tables that its entries still take",
            "a long bar stayed for hours while the store is open: a snapshot or a scan keeps the data",
            &ranges.iter().map(of_row).collect::<String>(),
        );
    }
    let mut tables: Vec<_> = keyspaces
        .iter()
        .flat_map(|keyspace| keyspace.tables.iter().map(move |table| (keyspace, table)))
        .filter(|(_, table)| table.tombstone_count > 0)
        .collect();
    tables.sort_by_key(|(_, table)| Reverse(table.tombstone_count));
    if tables.is_empty() {
        page.paragraph("No table has deletes of single keys.");
        return;
    }
    let of_row = |(keyspace, table): &(&KeyspaceFound<'_>, &tamis::TableStatistics)| {
        let (deletes, entries) = (table.tombstone_count, table.entry_count);
        let part = Part { share: share(deletes as f64, entries as f64), colour: Colour::Red };
        let name = terminal::name(&keyspace.statistics.name);
        let range = range_text(&table.smallest_key, &table.largest_key);
        let value = format!("{} of {} entries", terminal::count(deletes), terminal::count(entries));
        bar(&format!("{name}, table {} in L{}: {range}", table.table_number, table.level), &value, &[part])
    };
    let bars: String = tables.iter().take(ROWS_MAX).map(of_row).collect();
    page.figure(
        "Each bar is one of the tables with the most deletes of single keys: the share of its entries that are deletes, over which scans have to step",
        "full bars stayed for long where the program scans",
        &bars,
    );
}
