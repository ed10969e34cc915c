//! `tamis stats`: answers five questions about a store, or prints its keyspaces, levels, tables, filters, sorted views and files.

pub(super) mod answers;

use std::{io::Write, path::PathBuf};

use clap::Args;
use serde_json::{Value, json};
use tamis::{
    Db, DecisionStatistics, FilterAnswers, KeyspaceStatistics, Layout, LevelFilters, LevelReads,
    LevelStatistics, PaidJob, PartitionStatistics, QuerySampleStatistics, ReadLoss, ReadStatistics,
    SAMPLED_BOUND_BYTES_MAX, SampleStatistics, Statistics, TableFilterStatistics, UnreadableTable,
    ViewStatistics,
};

use crate::{
    failure::Failure,
    store::{self, FileKind},
    terminal,
};

const EXAMPLES: &str = "\
Examples:
  tamis stats store
  tamis stats store --all
  tamis stats store --json
  tamis stats store --prometheus";

/// Answer five questions about a store: where its data is, what reads cost, what filters save, what waits, what keeps files
///
/// `--all` prints the keyspaces, levels, tables, filters, sorted views and files. The number of entries includes obsolete versions and tombstones (records of deletes) that compactions have not yet
/// dropped. The sampled queries are those from which filters are chosen, with the mean number of tables whose filters rejected them, that
/// had a key, and that were read because of a false positive. One of so many queries is sampled now; a process begins with all of them. The
/// filters that the store chose are listed with their expected cost and false positives, and with the next best ones. `stats` in `tamis shell` also prints the reads by level,
/// the decisions of the partitioned layout, and the jobs that reads pay for, with the time that they have lost and the price, which a process counts from its open on.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StatsArgs {
    /// Folder of the store
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Print all tables and numbers, in wide tables
    #[arg(long, conflicts_with_all = ["json", "prometheus"])]
    all: bool,
    /// Print a JSON object
    #[arg(long, conflicts_with = "prometheus")]
    json: bool,
    /// Print the statistics in the text format of Prometheus
    #[arg(long)]
    prometheus: bool,
}

impl StatsArgs {
    pub(super) fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        let db = store::open_to_read(&self.dir)?;
        let mut unreadable = Vec::new();
        for name in db.keyspace_names() {
            let of_keyspace = db.unreadable_tables(&db.keyspace(&name)?)?;
            unreadable.extend(of_keyspace.into_iter().map(|table| (name.clone(), table)));
        }
        let statistics = db.statistics();
        let files = store::files(&self.dir)?;
        if self.json {
            let line = json!({
                "folder": self.dir.display().to_string(),
                "keyspaces": statistics.keyspaces.iter().map(keyspace_json).collect::<Vec<_>>(),
                "log_bytes": statistics.log_bytes,
                "pinned_bytes": statistics.cache_pinned_bytes,
                "open_files_max": statistics.open_files_max,
                "pins": pins_json(&statistics),
                "unreadable_tables": unreadable.iter().map(unreadable_json).collect::<Vec<_>>(),
                "files": files_json(&files),
            });
            return Ok(writeln!(output, "{line}")?);
        }
        if self.prometheus {
            return Ok(write!(output, "{}", statistics.to_prometheus())?);
        }
        if self.all {
            return print_all(&statistics, &files, &unreadable, output);
        }
        let unreadable_count = unreadable.len();
        let found = answers::Found { statistics: &statistics, files: &files, unreadable_count };
        Ok(write!(output, "{}", answers::answers(&found))?)
    }
}

/// Prints everything that the statistics contain.
fn print_all(
    statistics: &Statistics,
    files: &[FileKind],
    unreadable: &[(String, UnreadableTable)],
    output: &mut dyn Write,
) -> Result<(), Failure> {
    writeln!(output, "{}", keyspaces_table(&statistics.keyspaces))?;
    if let Some(table) = partitions_table(&statistics.keyspaces) {
        writeln!(output, "{table}")?;
    }
    writeln!(output, "{}{}", filters_text(&statistics.keyspaces), views_text(&statistics.keyspaces))?;
    for (name, UnreadableTable { table_number, error, .. }) in unreadable {
        writeln!(output, "The filters of table {table_number} of {name} are not known: {error}")?;
    }
    if let Some(table) = samples_table(&statistics.keyspaces) {
        writeln!(output, "{table}")?;
    }
    write!(output, "{}", too_long_text(&statistics.keyspaces))?;
    writeln!(output, "{}", files_table(files))?;
    writeln!(
        output,
        "Log to replay on open: {}. Filters and indexes in memory: {}. Limit of open table files: {}.",
        terminal::bytes(statistics.log_bytes),
        terminal::bytes(statistics.cache_pinned_bytes),
        terminal::count(statistics.open_files_max)
    )?;
    writeln!(output, "{}", pins_text(statistics))?;
    Ok(())
}

fn keyspace_json(keyspace: &KeyspaceStatistics) -> Value {
    let level = |(number, level): (usize, &LevelStatistics)| {
        json!({
            "level": number, "runs": level.run_count, "tables": level.table_count, "bytes": level.bytes,
            "entries": level.entry_count, "tombstones": level.tombstone_count,
            "range_tombstones": level.range_tombstone_count,
        })
    };
    json!({
        "name": keyspace.name,
        "layout": keyspace.layout.to_string(),
        "memtable_bytes": keyspace.memtable_bytes,
        "immutable_memtables": keyspace.immutable_memtable_count,
        "views": views_json(&keyspace.views),
        "levels": keyspace.levels.iter().enumerate().map(level).collect::<Vec<_>>(),
        "partition_count": keyspace.partition_count,
        "partitions": keyspace.partitions.iter().map(partition_json).collect::<Vec<_>>(),
        "filters": filters_json(keyspace),
        "sampled_queries": sampled_kinds(&keyspace.sample)
            .into_iter()
            .map(|(kind, sample)| {
                json!({
                    "kind": kind, "seen": sample.seen, "kept": sample.kept, "interval": sample.interval,
                    "tables_rejected": sample.tables_rejected, "tables_true_positive": sample.tables_true_positive, "tables_false_positive": sample.tables_false_positive,
                })
            })
            .collect::<Vec<_>>(),
        "queries_too_long": keyspace.sample.too_long,
    })
}

fn unreadable_json((keyspace, table): &(String, UnreadableTable)) -> Value {
    json!({ "keyspace": keyspace, "table": table.table_number, "error": table.error.to_string() })
}

fn partition_json(partition: &PartitionStatistics) -> Value {
    json!({
        "lower": partition.lower.escape_ascii().to_string(), "runs": partition.size.run_count,
        "tables": partition.size.table_count, "bytes": partition.size.bytes, "entries": partition.size.entry_count,
    })
}

/// The maximum number of partitions in the table.
const ROWS_MAX: usize = 20;
/// The length of the bar of the whole keyspace.
const BAR_LENGTH: u64 = 20;

/// Returns a table with the largest partitions of each keyspace that has several, in key order; `None` without any.
fn partitions_table(keyspaces: &[KeyspaceStatistics]) -> Option<comfy_table::Table> {
    let mut rows = Vec::new();
    for keyspace in keyspaces.iter().filter(|keyspace| keyspace.partition_count > 1) {
        let all: u64 = keyspace.levels.iter().map(|level| level.bytes).sum();
        let mut largest: Vec<&PartitionStatistics> = keyspace.partitions.iter().collect();
        largest.sort_by_key(|partition| std::cmp::Reverse(partition.size.bytes));
        largest.truncate(ROWS_MAX);
        largest.sort_by(|left, right| left.lower.cmp(&right.lower));
        for PartitionStatistics { lower, size, .. } in largest {
            rows.push(vec![
                keyspace.name.clone(),
                shortened(lower),
                share_bar(size.bytes, all),
                terminal::count(size.run_count as u64),
                terminal::count(size.table_count as u64),
                terminal::bytes(size.bytes),
                terminal::count(size.entry_count),
            ]);
        }
        let others = keyspace.partition_count.saturating_sub(ROWS_MAX);
        if others > 0 {
            let name = format!("{} smaller ones", terminal::count(others as u64));
            let mut row = vec![keyspace.name.clone(), name];
            row.resize(7, String::new());
            rows.push(row);
        }
    }
    let header = ["keyspace", "partition from", "share", "runs", "tables", "size", "entries"];
    (!rows.is_empty()).then(|| terminal::table(3, &header, rows))
}

/// Returns a table with a row for each decision of the partitioned layout since this process has opened the store; `None` if no keyspace has
/// this layout.
pub(super) fn decisions_table(statistics: &Statistics) -> Option<comfy_table::Table> {
    if !statistics.keyspaces.iter().any(|keyspace| matches!(keyspace.layout, Layout::Partitioned { .. })) {
        return None;
    }
    let rows = statistics.partition_decisions.named().map(|(name, decisions)| {
        let DecisionStatistics { count, bytes_expected, bytes_written, .. } = decisions;
        let sizes = [bytes_expected, bytes_written].map(terminal::bytes);
        [name.to_owned(), terminal::count(count)].into_iter().chain(sizes).collect()
    });
    Some(terminal::table(1, &["decision", "partitions", "expected", "written"], rows))
}

/// The job that would save the time that reads have lost, and its place.
pub(super) fn name_of_job(loss: &ReadLoss) -> String {
    let job = match loss.job {
        PaidJob::ChooseFilters => "choose the filters again",
        PaidJob::MergeRuns => "merge the runs",
        PaidJob::BuildView => "build a sorted view",
        _ => "another job",
    };
    match loss.table {
        Some(table) => format!("{job}, table {table}"),
        None if loss.partition.is_empty() => job.to_owned(),
        None => format!("{job}, partition from {}", shortened(&loss.partition)),
    }
}

/// The part of the price of a job that reads have paid; 0 for a job without a price, which changes nothing.
pub(super) fn paid(loss: &ReadLoss) -> f64 {
    if loss.price.is_zero() { 0.0 } else { loss.lost.as_secs_f64() / loss.price.as_secs_f64() }
}

/// The rows of [`losses_table`].
const LOSS_ROWS_MAX: usize = 10;

/// Returns a table with a row for each job that waits until reads have paid for it, those that have paid most first; `None` without any.
pub(super) fn losses_table(db: &Db) -> Result<Option<comfy_table::Table>, Failure> {
    let mut found = Vec::new();
    for name in db.keyspace_names() {
        let losses = db.read_losses(&db.keyspace(&name)?)?;
        found.extend(losses.into_iter().map(|loss| (name.clone(), loss)));
    }
    found.sort_by(|(_, left), (_, right)| paid(right).total_cmp(&paid(left)));
    let row = |(keyspace, loss): &(String, ReadLoss)| {
        let times = [loss.lost, loss.price].map(|time| terminal::seconds(time.as_secs_f64()));
        [keyspace.clone(), name_of_job(loss)].into_iter().chain(times).collect()
    };
    let rows: Vec<Vec<String>> = found.iter().take(LOSS_ROWS_MAX).map(row).collect();
    let header = ["keyspace", "job that reads pay for", "lost", "price"];
    Ok((!rows.is_empty()).then(|| terminal::table(2, &header, rows)))
}

/// A bar for the share of `part` in `whole`, of at least one character for a part that is not empty.
fn share_bar(part: u64, whole: u64) -> String {
    let length = (u128::from(part) * u128::from(BAR_LENGTH)).div_ceil(u128::from(whole.max(1)));
    "#".repeat(length.min(u128::from(BAR_LENGTH)) as usize)
}

/// The first bytes of a key.
fn shortened(key: &[u8]) -> String {
    const LENGTH_MAX: usize = 24;
    let shown = key.get(..LENGTH_MAX).unwrap_or(key).escape_ascii();
    if key.len() > LENGTH_MAX { format!("{shown}...") } else { shown.to_string() }
}

/// Returns a table with a row per memtable, which names the layout, and per level with tables.
pub(super) fn keyspaces_table(keyspaces: &[KeyspaceStatistics]) -> comfy_table::Table {
    let mut rows = Vec::new();
    for keyspace in keyspaces {
        let dash = || "-".to_owned();
        let memory = terminal::bytes(keyspace.memtable_bytes);
        // Without the parameters, which would widen the table.
        let layout = keyspace.layout.to_string().split(':').next().unwrap_or_default().to_owned();
        let name = keyspace.name.clone();
        rows.push(vec![name, layout, "memory".to_owned(), dash(), dash(), memory, dash(), dash(), dash()]);
        for (number, level) in keyspace.levels.iter().enumerate().filter(|(_, level)| level.table_count > 0) {
            rows.push(vec![
                keyspace.name.clone(),
                String::new(),
                format!("L{number}"),
                terminal::count(level.run_count as u64),
                terminal::count(level.table_count as u64),
                terminal::bytes(level.bytes),
                terminal::count(level.entry_count),
                terminal::count(level.tombstone_count),
                terminal::count(level.range_tombstone_count),
            ]);
        }
    }
    let header = [
        "keyspace",
        "layout",
        "level",
        "runs",
        "tables",
        "size",
        "entries",
        "tombstones",
        "range tombstones",
    ];
    terminal::table(3, &header, rows)
}

/// Describes the filters of the open tables: a line for each level of a keyspace and each set of filters.
pub(super) fn filters_text(keyspaces: &[KeyspaceStatistics]) -> String {
    let mut text = String::new();
    for keyspace in keyspaces {
        for LevelFilters { level, filters, table_count, entry_count, bytes, .. } in &keyspace.filters {
            let tables = terminal::amount(*table_count as u64, "table", "tables");
            let filters = if filters.is_empty() { "none" } else { filters };
            let bits = 8.0 * *bytes as f64 / (*entry_count).max(1) as f64;
            let name = &keyspace.name;
            text.push_str(&format!(
                "Filters of {tables} of {name} in L{level}: {filters} ({bits:.1} bits per entry)\n"
            ));
        }
    }
    text
}

/// The same as JSON.
pub(super) fn filters_json(keyspace: &KeyspaceStatistics) -> Value {
    let of_level = |filters: &LevelFilters| {
        json!({
            "level": filters.level, "filters": filters.filters, "tables": filters.table_count,
            "entries": filters.entry_count, "bytes": filters.bytes,
        })
    };
    keyspace.filters.iter().map(of_level).collect()
}

/// Describes the sorted views: a line for each keyspace that has some.
pub(super) fn views_text(keyspaces: &[KeyspaceStatistics]) -> String {
    let mut text = String::new();
    for keyspace in keyspaces.iter().filter(|keyspace| keyspace.views.count > 0) {
        let ViewStatistics { count, open_count, run_count, entry_count, bytes, .. } = keyspace.views;
        let views = terminal::amount(count as u64, "sorted view", "sorted views");
        let state = if open_count == count { "" } else { &format!(", {open_count} of them open") };
        text.push_str(&format!(
            "{views} of {}{state}: {}, {}, {} ({:.2} bytes per entry)\n",
            keyspace.name,
            terminal::amount(run_count as u64, "run", "runs"),
            terminal::amount(entry_count, "entry", "entries"),
            terminal::bytes(bytes),
            bytes as f64 / entry_count.max(1) as f64,
        ));
    }
    text
}

fn views_json(views: &ViewStatistics) -> Value {
    json!({
        "count": views.count, "open": views.open_count, "runs": views.run_count, "entries": views.entry_count,
        "bytes": views.bytes,
    })
}

/// The filters of the tables of all keyspaces, with the names of the keyspaces.
pub(super) fn all_table_filters(db: &Db) -> Result<Vec<(String, TableFilterStatistics)>, Failure> {
    let mut all = Vec::new();
    for name in db.keyspace_names() {
        let tables = db.table_filters(&db.keyspace(&name)?)?;
        all.extend(tables.into_iter().map(|table| (name.clone(), table)));
    }
    Ok(all)
}

/// The rows of [`answers_table`].
const ANSWER_ROWS_MAX: usize = 10;

/// Returns a table with a row per table and kind of sampled queries that its filters answered in this process, those with the most false positives
/// first; `None` without any.
pub(super) fn answers_table(tables: &[(String, TableFilterStatistics)]) -> Option<comfy_table::Table> {
    let mut found = Vec::new();
    for (keyspace, table) in tables {
        let kinds = [("points", table.points), ("ranges", table.ranges), ("open seeks", table.seeks)];
        let checked = kinds.into_iter().filter(|(_, answers)| answers.checked > 0);
        found.extend(checked.map(|(kind, answers)| (keyspace.as_str(), table, kind, answers)));
    }
    found.sort_by_key(|(.., answers)| std::cmp::Reverse((answers.false_positives, answers.checked)));
    let row = |(name, table, kind, answers): &(&str, &TableFilterStatistics, &str, FilterAnswers)| {
        let names = [(*name).to_owned(), format!("L{}", table.level), table.table_number.to_string()];
        let counts = [answers.rejected, answers.true_positives, answers.false_positives].map(terminal::count);
        names.into_iter().chain([(*kind).to_owned()]).chain(counts).collect()
    };
    let rows: Vec<Vec<String>> = found.iter().take(ANSWER_ROWS_MAX).map(row).collect();
    let header =
        ["keyspace", "level", "table", "queries about", "rejected", "true positives", "false positives"];
    (!rows.is_empty()).then(|| terminal::table(4, &header, rows))
}

/// Describes the handles of this process that keep versions and files.
pub(super) fn pins_text(statistics: &Statistics) -> String {
    let mut text = format!(
        "Snapshots: {} (oldest {:.1} s). Scans: {} (oldest replaced state {:.1} s). Obsolete tables that they hold: {}.",
        terminal::count(statistics.snapshots),
        statistics.oldest_snapshot.as_secs_f64(),
        terminal::count(statistics.open_scans),
        statistics.oldest_replaced_state.as_secs_f64(),
        terminal::bytes(statistics.held_bytes),
    );
    for dropped in &statistics.dropped_keyspaces {
        let bytes = terminal::bytes(dropped.bytes);
        text.push_str(&format!(" Handles of the dropped keyspace {:?} hold {bytes}.", dropped.name));
    }
    text
}

fn pins_json(statistics: &Statistics) -> Value {
    let dropped =
        |keyspace: &tamis::DroppedKeyspace| json!({ "name": keyspace.name, "bytes": keyspace.bytes });
    let reader = |reader: &tamis::ReaderStatistics| {
        json!({
            "process_id": reader.process_id,
            "age_seconds": reader.age.as_secs_f64(),
            "sequence": reader.sequence,
            "held_bytes": reader.held_bytes,
        })
    };
    json!({
        "snapshots": statistics.snapshots,
        "oldest_snapshot_seconds": statistics.oldest_snapshot.as_secs_f64(),
        "scans": statistics.open_scans,
        "oldest_replaced_state_seconds": statistics.oldest_replaced_state.as_secs_f64(),
        "held_bytes": statistics.held_bytes,
        "readers": statistics.readers.iter().map(reader).collect::<Vec<_>>(),
        "dropped_keyspaces": statistics.dropped_keyspaces.iter().map(dropped).collect::<Vec<_>>(),
    })
}

pub(super) fn sampled_kinds(sample: &SampleStatistics) -> [(&'static str, QuerySampleStatistics); 5] {
    [
        ("points", sample.points),
        ("closed ranges", sample.ranges),
        ("prefixes", sample.prefixes),
        ("forward seeks", sample.forward_seeks),
        ("backward seeks", sample.backward_seeks),
    ]
}

/// Returns a table with a row per keyspace and kind of query that was sampled; `None` without any.
pub(super) fn samples_table(keyspaces: &[KeyspaceStatistics]) -> Option<comfy_table::Table> {
    let mut rows = Vec::new();
    for keyspace in keyspaces {
        for (kind, sample) in
            sampled_kinds(&keyspace.sample).into_iter().filter(|(_, sample)| sample.seen > 0)
        {
            rows.push(vec![
                keyspace.name.clone(),
                kind.to_owned(),
                terminal::count(sample.seen),
                terminal::count(sample.kept),
                format!("1 of {}", terminal::count(sample.interval.into())),
                per_query(sample.tables_rejected, sample.kept),
                per_query(sample.tables_true_positive, sample.kept),
                per_query(sample.tables_false_positive, sample.kept),
            ]);
        }
    }
    let header = [
        "keyspace",
        "queries",
        "seen about",
        "in the sample",
        "sampled now",
        "tables rejected",
        "true positives",
        "false positives",
    ];
    (!rows.is_empty()).then(|| terminal::table(2, &header, rows))
}

/// Names the keyspaces with queries that were too long for the sample: a line for each.
pub(super) fn too_long_text(keyspaces: &[KeyspaceStatistics]) -> String {
    let with_some = keyspaces.iter().filter(|keyspace| keyspace.sample.too_long > 0);
    let line = |keyspace: &KeyspaceStatistics| {
        let queries = terminal::amount(keyspace.sample.too_long, "query", "queries");
        let name = &keyspace.name;
        format!(
            "Not in the sample of {name}: {queries} with a bound of more than {SAMPLED_BOUND_BYTES_MAX} bytes\n"
        )
    };
    with_some.map(line).collect()
}

fn per_query(count: u64, query_count: u64) -> String {
    format!("{:.3}", count as f64 / query_count.max(1) as f64)
}

/// The kinds of reads that are counted by level.
fn read_kinds(level: &LevelReads) -> [(&'static str, ReadStatistics); 4] {
    [
        ("points", level.points),
        ("closed ranges", level.ranges),
        ("prefixes", level.prefixes),
        ("open scans", level.seeks),
    ]
}

/// Returns a table with a row per level and kind of reads of this process; `None` without any.
pub(super) fn reads_table(levels: &[LevelReads]) -> Option<comfy_table::Table> {
    let mut rows = Vec::new();
    for (number, level) in levels.iter().enumerate() {
        for (kind, reads) in
            read_kinds(level).into_iter().filter(|(_, reads)| reads.checked + reads.blocks() > 0)
        {
            let counts = [reads.checked, reads.rejected, reads.true_positives, reads.false_positives];
            let blocks = [reads.blocks_read, reads.cache_hits];
            let names = [format!("L{number}"), kind.to_owned()];
            let numbers = counts.into_iter().chain(blocks).map(terminal::count);
            rows.push(names.into_iter().chain(numbers).chain([read_time(level.read_nanoseconds)]).collect());
        }
    }
    let header = [
        "level",
        "reads",
        "filters checked",
        "rejected",
        "true positives",
        "false positives",
        "blocks read",
        "blocks from memory",
        "table read, us",
    ];
    (!rows.is_empty()).then(|| terminal::table(2, &header, rows))
}

/// The mean time of a read of a table in a level, which is what a false positive costs.
fn read_time(nanoseconds: u64) -> String {
    if nanoseconds == 0 { "-".to_owned() } else { format!("{:.1}", nanoseconds as f64 / 1_000.0) }
}

/// The same as JSON.
pub(super) fn reads_json(levels: &[LevelReads]) -> Value {
    let mut rows = Vec::new();
    for (number, level) in levels.iter().enumerate() {
        for (kind, reads) in read_kinds(level) {
            rows.push(json!({
                "level": number, "reads": kind, "checked": reads.checked, "rejected": reads.rejected, "true_positives": reads.true_positives,
                "false_positives": reads.false_positives, "blocks_read": reads.blocks_read, "blocks_from_memory": reads.cache_hits,
                "read_nanoseconds": level.read_nanoseconds,
            }));
        }
    }
    Value::Array(rows)
}

/// The columns of [`files_rows`].
pub(super) const FILES_HEADER: [&str; 4] = ["files", "content", "count", "size"];

/// Returns a table with a row per kind of file.
pub(super) fn files_table(files: &[FileKind]) -> comfy_table::Table {
    terminal::table(2, &FILES_HEADER, files_rows(files))
}

/// Returns a row per kind of file.
pub(super) fn files_rows(files: &[FileKind]) -> impl Iterator<Item = Vec<String>> {
    files.iter().map(|kind| {
        vec![
            kind.name.clone(),
            kind.content().to_owned(),
            terminal::count(kind.count),
            terminal::bytes(kind.bytes),
        ]
    })
}

/// Returns the kinds of files as JSON.
pub(super) fn files_json(files: &[FileKind]) -> Value {
    let kinds =
        files.iter().map(|kind| json!({ "kind": kind.name, "count": kind.count, "bytes": kind.bytes }));
    Value::Array(kinds.collect())
}
