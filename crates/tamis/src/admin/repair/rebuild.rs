//! Builds the new state from the inventory, writes the tables that it needs, and records the losses.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
    path::Path,
    sync::Arc,
};

use super::{
    Repair, RepairReport, check_is_loss,
    inventory::{Inventory, foreign_format},
    report::LostRange,
    select_tables::{self, Exclusion},
};
use crate::{
    admin::verify::{compare_view, fault_of},
    batch::BatchEntry,
    changes::event::EVENTS,
    compaction::{drop_rules::DropRules, merge::range_tombstones_of, table_sink::TableSink},
    cursor::{Cursor, merge::MergeCursor, run::RunCursor, run_tables::RunTables},
    error::{Error, Result},
    file_name::FileName,
    key::{Kind, SEQUENCE_MAX},
    memtable::{ChunkPool, Memtable},
    merge_operator::MergeOperator,
    observe::metrics::LEVEL_COUNT_MAX,
    options::{DEFAULT_KEYSPACE, KeyspaceOptions, Layout, tables_after_split},
    range_tombstone::fragment,
    store::orphans::LogSpan,
    table::{properties::TableSummary, writer::TableWriter},
    version::{
        catalog::Catalog, edit::RunPlace, handle::Table, level::LEVELED_RUN_AGE, named_view::NamedView,
        partition::Partition, version::KeyspaceVersion,
    },
    view::writer::ViewOwner,
    wal::reader::{LogFiles, salvage},
};

/// The first keyspace of every store is the default one.
const DEFAULT_KEYSPACE_ID: u64 = 1;

/// Why the whole content of a keyspace is uncertain.
const UNCERTAIN: &str = "the end of the manifest is lost: a table here may have been replaced by others that are missing, \
    and with them the deletes that they had dropped";
/// Why the whole content of a keyspace is uncertain although all files of a known state exist.
const MAY_BE_DROPPED: &str = "the end of the manifest is lost: the keyspace may have been dropped";

/// Why the content of a keyspace is uncertain because of a fault of the log.
fn damaged_log(error: &Error) -> String {
    let file = fault_of(FileName::Log(0).path(Path::new("")), error).file;
    format!("a part of the log can't be read: {}: {}", file.display(), error.cause())
}

/// The level of rebuilt runs.
const LAST_LEVEL: usize = LEVEL_COUNT_MAX - 1;

pub(super) struct StateRebuilder<'a> {
    repair: &'a Repair,
    inventory: Inventory,
    pub(super) state: Catalog,
    pub(super) report: RepairReport,
    /// Why files are left out, by name.
    pub(super) reasons: BTreeMap<String, String>,
}

/// The entries of the log by keyspace, in memtables of bounded size.
/// The tables of a rebuilt state, by keyspace.
type ChosenTables = BTreeMap<u64, Vec<Arc<Table>>>;
type LogEntries = BTreeMap<u32, Vec<Arc<Memtable>>>;

/// Inserts a retained entry of the log into the oldest memtable; `false` if one of them has it.
fn insert_retained(memtables: &[Arc<Memtable>], entry: &BatchEntry<'_>) -> bool {
    let has_entry = |memtable: &Arc<Memtable>| {
        let found = memtable.get(entry.key, entry.sequence);
        found.is_some_and(|(_, sequence, _)| sequence == entry.sequence)
    };
    if memtables.iter().any(has_entry) {
        return false;
    }
    if let Some(oldest) = memtables.first() {
        oldest.insert_retained(entry.key, entry.sequence, entry.kind, entry.value);
    }
    true
}

/// Facts about the log, collected before its entries are used.
struct Logged {
    keyspaces: BTreeSet<u64>,
    span: LogSpan,
    faults: Vec<Error>,
}

impl Logged {
    /// # Errors
    /// Those of the system; an unknown format of the log or an unknown kind of entry.
    fn read(log: &LogFiles) -> Result<Self> {
        let mut keyspaces = BTreeSet::new();
        let (replayed, faults) = salvage(log, &mut |entry, _| {
            if entry.keyspace != EVENTS {
                keyspaces.insert(u64::from(entry.keyspace));
            }
        });
        faults.iter().try_for_each(check_is_loss)?;
        match foreign_format(&faults) {
            Some(error) => Err(error),
            None => Ok(Self { keyspaces, span: LogSpan::of(&replayed), faults }),
        }
    }
}

impl<'a> StateRebuilder<'a> {
    pub(super) fn new(repair: &'a Repair, inventory: Inventory) -> Self {
        let mut state = inventory.prefix.catalog.clone();
        state.database = Some(inventory.database);
        Self { repair, inventory, state, report: RepairReport::default(), reasons: BTreeMap::new() }
    }

    pub(super) fn rebuild(&mut self) -> Result<()> {
        for error in self.inventory.prefix.faults.clone() {
            self.note_fault(FileName::Current, &error);
        }
        let (folder, id) = (&self.repair.folder, self.repair.database.0);
        if self.inventory.is_certain {
            let log = LogFiles::find(folder, self.state.known_log())?;
            let found = Logged::read(&log)?;
            // A keyspace that only the log contains was created by an edit that is lost.
            let is_known = found.keyspaces.iter().all(|id| self.state.keyspaces.contains_key(id));
            let sign = self.inventory.proof_of_later_state(found.span);
            if sign.is_none() && (self.inventory.prefix.is_whole || is_known) {
                self.note_log_faults(&log, &found);
                self.rebuild_tables()?;
                if !self.inventory.prefix.is_whole {
                    self.note_what_may_be_dropped(&log);
                }
                return if found.faults.is_empty() { Ok(()) } else { self.empty_log(&log) };
            }
            if let Some((number, why)) = sign {
                let prefix = &self.inventory.prefix;
                let expected = format!("the edit about {}: {why}", FileName::Table(number).name());
                let error = Error::corruption(&prefix.path, prefix.bytes, "manifest", expected, "its end");
                self.note_fault(FileName::Current, &error);
            }
        }
        let log = LogFiles::find_all(folder, id)?;
        let found = Logged::read(&log)?;
        for error in &found.faults {
            self.note_fault(FileName::Log(0), error);
            self.note_loss(None, (Vec::new(), None), true, damaged_log(error));
        }
        self.rebuild_from_tables(&log)
    }

    /// If the state is certain. If the beginning of the log is missing, only entries that were not in tables yet are lost.
    fn note_log_faults(&mut self, log: &LogFiles, found: &Logged) {
        let first_there = log.segments().first().map_or(0, |segment| segment.number);
        for error in &found.faults {
            self.note_fault(FileName::Log(0), error);
            let why = damaged_log(error);
            let missing = match error {
                Error::MissingFile { path, .. } => {
                    path.file_name().and_then(|name| FileName::parse(name.to_str()?)?.number())
                }
                _ => None,
            };
            if missing.is_none_or(|missing| missing > first_there) || found.span == LogSpan::NONE {
                self.note_loss(None, (Vec::new(), None), true, why);
                continue;
            }
            let versions: Vec<_> = self.state.keyspaces.values().cloned().collect();
            for version in versions {
                for (index, partition) in version.partitions.iter().enumerate() {
                    if partition.flushed_sequence.saturating_add(1) < found.span.first {
                        let range = (partition.lower.clone(), version.upper_of(index).map(<[u8]>::to_vec));
                        self.note_loss(Some(&version.name), range, true, why.as_str());
                    }
                }
            }
        }
    }

    /// If the state counts as certain, but later edits are lost.
    fn note_what_may_be_dropped(&mut self, log: &LogFiles) {
        let counters = self.state.counters;
        let logged = self.log_entries(log, None);
        // They stay in the log.
        self.state.counters = counters;
        self.report.log_entry_count = 0;
        let versions: Vec<_> = self.state.keyspaces.values().cloned().collect();
        for version in versions {
            let memtables = u32::try_from(version.id).ok().and_then(|id| logged.get(&id));
            let tables: Vec<_> = version.tables().cloned().collect();
            let ranges = ranges_of(&tables, memtables.map_or(&[], Vec::as_slice));
            self.note_uncertain(&version.name, ranges, MAY_BE_DROPPED);
        }
    }

    fn note_fault(&mut self, name: FileName, error: &Error) {
        self.report.faults.push(fault_of(name.path(&self.repair.folder), error));
    }

    fn note_loss(
        &mut self,
        keyspace: Option<&str>,
        (lower, upper): (Vec<u8>, Option<Vec<u8>>),
        may_lose_deletes: bool,
        why: impl Into<String>,
    ) {
        let (keyspace, why) = (keyspace.map(str::to_owned), why.into());
        self.report.lost_ranges.push(LostRange { keyspace, lower, upper, may_lose_deletes, why });
    }

    fn note_lost_table(&mut self, keyspace: Option<&str>, summary: &TableSummary, why: &str) {
        let why = format!("{}: {why}", FileName::Table(summary.number).name());
        self.note_loss(keyspace, range_of(summary), summary.has_deletes(), why);
    }

    /// Step 3 if the state is certain: missing tables are removed, damaged ones are rewritten in their places.
    fn rebuild_tables(&mut self) -> Result<()> {
        let versions: Vec<_> = self.state.keyspaces.values().cloned().collect();
        for version in versions {
            let mut rebuilt = KeyspaceVersion::clone(&version);
            for (index, partition) in version.partitions.iter().enumerate() {
                let mut target = Partition::clone(partition);
                for (level, run) in partition.runs() {
                    let place = RunPlace {
                        keyspace: version.id,
                        partition: partition.id,
                        level: level as u8,
                        run_age: run.age(),
                    };
                    for table in run.tables() {
                        let now = self.rebuild_table(&version, place, table)?;
                        if now.as_ref().is_some_and(|now| Arc::ptr_eq(now, table)) {
                            continue;
                        }
                        let run = target.level_or_new(level).run_or_new(run.age());
                        run.remove(table.number());
                        if let Some(now) = now {
                            run.insert(now);
                        }
                    }
                }
                target.prune_empty();
                self.check_view(version.id, partition, &mut target)?;
                if let Some(slot) = rebuilt.partitions.list_mut().get_mut(index) {
                    *slot = Arc::new(target);
                }
            }
            self.state.keyspaces.insert(version.id, Arc::new(rebuilt));
        }
        Ok(())
    }

    /// Drops the view of a partition if it can't be used.
    fn check_view(&mut self, keyspace_id: u64, partition: &Partition, rebuilt: &mut Partition) -> Result<()> {
        let Some(view) = &partition.view else { return Ok(()) };
        let owner = ViewOwner { database_id: self.repair.database.0, keyspace_id, number: view.number() };
        let runs = partition.runs_of_view(view.runs()).unwrap_or_default();
        let opened = view.open(self.repair.tables.environment(), owner, &runs);
        if let Err(error) = opened.and_then(|()| self.compare_view(view, rebuilt)) {
            check_is_loss(&error)?;
            let name = FileName::View(view.number());
            self.note_fault(name, &error);
            self.reasons.insert(name.name(), format!("it can't be used: {}", error.cause()));
            rebuilt.view = None;
        }
        Ok(())
    }

    /// Compares a view with a merge of its runs, unless the repair changes some of them: then no version has the view.
    fn compare_view(&self, view: &NamedView, rebuilt: &Partition) -> Result<()> {
        let has_runs = rebuilt.runs_of_view(view.runs()).is_some();
        let Some(reader) = view.reader().filter(|_| has_runs) else { return Ok(()) };
        let faults = compare_view(reader, rebuilt, &self.repair.tables)?;
        faults.into_iter().next().map_or(Ok(()), Err)
    }

    /// The table itself if it is intact; otherwise a table of its readable entries, or `None` if there are none.
    fn rebuild_table(
        &mut self,
        version: &KeyspaceVersion,
        place: RunPlace,
        table: &Arc<Table>,
    ) -> Result<Option<Arc<Table>>> {
        let name = FileName::Table(table.number());
        let properties = self.inventory.readable.get(&table.number());
        let is_the_one = properties.is_some_and(|found| found.summary == *table.summary());
        let reader = match self.repair.tables.reader(table) {
            Ok(reader) if is_the_one => reader,
            other => {
                let error = other.err().unwrap_or_else(|| {
                    let path = name.path(&self.repair.folder);
                    Error::corruption(&path, 0, "table", "the one that the manifest names", "another")
                });
                check_is_loss(&error)?;
                self.note_fault(name, &error);
                self.note_lost_table(Some(&version.name), table.summary(), &error.cause());
                self.reasons.insert(name.name(), format!("it can't be read: {}", error.cause()));
                return Ok(None);
            }
        };
        let mut now = Arc::clone(table);
        if let Some(number) = table.filter_file()
            && let Err(error) = reader.check_filter_file(number)
        {
            check_is_loss(&error)?;
            self.note_fault(FileName::Filter(number), &error);
            self.reasons
                .insert(FileName::Filter(number).name(), format!("it can't be used: {}", error.cause()));
            now = table.with_filter(None);
        }
        let faults = reader.verify();
        if faults.is_empty() {
            return Ok(Some(now));
        }
        faults.iter().try_for_each(check_is_loss)?;
        if let Some(error) = foreign_format(&faults) {
            return Err(error);
        }
        faults.iter().for_each(|error| self.note_fault(name, error));
        self.reasons.insert(name.name(), "damaged: its readable entries were rewritten".to_owned());
        let salvaged = self.rewrite_readable(version, place, table)?;
        Ok(salvaged.map(|summary| Table::new(summary, None, &self.repair.obsolete_files)))
    }

    /// Writes the readable blocks of a damaged table into another one; records the unreadable ranges.
    fn rewrite_readable(
        &mut self,
        version: &KeyspaceVersion,
        place: RunPlace,
        table: &Table,
    ) -> Result<Option<TableSummary>> {
        let reader = Arc::clone(self.repair.tables.reader(table)?);
        let mut writer = self.repair.with_context(version, |context| {
            let origin = context.origin(place.partition, place, vec![table.number()]);
            let options =
                context.table_options(&origin, usize::from(place.level), table.summary().entry_count);
            TableWriter::create(context.folder, (context.next_number)(), options)
        })?;
        let mut entry_count = 0_u64;
        let fragments =
            reader.range_tombstones().map(|fragments| fragments.list().to_vec()).unwrap_or_default();
        let scrubbed = reader.scrub(&mut |key, sequence, kind, value| {
            // Entries at or behind the bounds of the first one may be lost.
            if let Some(first) =
                fragments.first().filter(|first| entry_count == 0 && first.lower.as_slice() < key)
            {
                writer.begin_range_tombstones(first)?;
            }
            entry_count += 1;
            writer.add(key, sequence, kind, value)
        });
        let lost = match scrubbed {
            Ok(scrubbed) => scrubbed.lost,
            Err(error) => {
                let _ = writer.abandon();
                return Err(error);
            }
        };
        for (lower, upper) in lost {
            let why = format!("blocks of {} can't be read", FileName::Table(table.number()).name());
            let has_deletes = table.summary().has_deletes();
            self.note_loss(Some(&version.name), (lower, Some(upper)), has_deletes, why);
        }
        if entry_count == 0 && fragments.is_empty() {
            writer.abandon()?;
            return Ok(None);
        }
        for fragment in fragments {
            writer.begin_range_tombstones(&fragment)?;
            writer.add_range_tombstones(fragment)?;
        }
        self.report.rewritten_table_count += 1;
        writer.finish().map(Some)
    }

    /// All readable entries of the log that are not in tables yet. If the state is uncertain, `chosen` are the tables: entries that these may have are included, except
    /// operands, which would count twice.
    fn log_entries(&mut self, log: &LogFiles, chosen: Option<&ChosenTables>) -> LogEntries {
        let newest_in_tables = |keyspace: u32| {
            let tables = chosen.and_then(|chosen| chosen.get(&u64::from(keyspace)));
            tables.into_iter().flatten().map(|table| table.summary().largest_sequence).max().unwrap_or(0)
        };
        let pool = ChunkPool::new();
        let mut memtables = LogEntries::new();
        let mut counters = self.state.counters;
        let mut entry_count = 0;
        let (_, _) = salvage(log, &mut |entry, _| {
            counters.last_sequence = counters.last_sequence.max(entry.logged_at);
            if entry.keyspace == EVENTS {
                return;
            }
            let version = self.state.keyspaces.get(&u64::from(entry.keyspace));
            let flushed = version.and_then(|version| version.partition_of(entry.key));
            let is_there = flushed.is_some_and(|partition| entry.logged_at <= partition.flushed_sequence);
            let is_left_out = match chosen {
                None => is_there || version.is_none(),
                Some(_) => entry.kind == Kind::Operand && entry.logged_at <= newest_in_tables(entry.keyspace),
            };
            if is_left_out {
                return;
            }
            let bytes_max =
                version.map_or(KeyspaceOptions::default().memtable_bytes, |v| v.options.memtable_bytes);
            let list = memtables.entry(entry.keyspace).or_default();
            if entry.logged_at != entry.sequence && !list.is_empty() {
                // A retained entry is older than those before it, and the log may have had it before it was retained.
                entry_count += u64::from(insert_retained(list, &entry));
                return;
            }
            if list.last().is_none_or(|last| last.bytes() as u64 >= bytes_max) {
                list.push(Memtable::new(&pool));
            }
            if let Some(last) = list.last() {
                last.insert(entry.key, entry.sequence, entry.kind, entry.value);
                entry_count += 1;
            }
        });
        self.state.counters = counters;
        self.report.log_entry_count = entry_count;
        memtables
    }

    /// Writes a memtable into tables of L0; each with the index of its partition.
    fn write_memtable(
        &mut self,
        version: &KeyspaceVersion,
        memtable: &Arc<Memtable>,
    ) -> Result<Vec<(usize, u64, Arc<Table>)>> {
        let Some((_, newest)) = memtable.sequence_range() else { return Ok(Vec::new()) };
        let mut written = Vec::new();
        let mut cursor = memtable.cursor();
        cursor.seek_first()?;
        let mut tombstones_left = self.repair.with_context(version, |context| {
            fragment(memtable.range_tombstones().all(), &context.readers.read_points).into_parts()
        });
        for (index, partition) in version.partitions.iter().enumerate() {
            let place = RunPlace { keyspace: version.id, partition: partition.id, level: 0, run_age: newest };
            let summaries = self.repair.with_context(version, |context| {
                let origin = context.origin(partition.id, place, Vec::new());
                let tombstones = tombstones_left.next_below(version.upper_of(index).unwrap_or_default());
                let rules = DropRules::of_fragments(context.readers.read_points.clone(), tombstones);
                let kept = rules.kept_range_tombstones(whole_span, SEQUENCE_MAX);
                let mut sink = TableSink::new(context, &origin, (0, memtable.entry_count()), &[], rules);
                sink.take_range_tombstones(kept);
                sink.consume(&mut cursor, version.upper_of(index), &|_| false)?;
                sink.finish()
            })?;
            for summary in summaries {
                written.push((index, newest, Table::new(summary, None, &self.repair.obsolete_files)));
            }
        }
        self.report.rewritten_table_count += written.len();
        Ok(written)
    }

    /// Step 4 if the state is certain: entries of the log that are not in tables are written into new runs of L0.
    fn empty_log(&mut self, log: &LogFiles) -> Result<()> {
        for (id, memtables) in self.log_entries(log, None) {
            let Some(version) = self.state.keyspaces.get(&u64::from(id)).cloned() else { continue };
            let mut rebuilt = KeyspaceVersion::clone(&version);
            for memtable in &memtables {
                for (index, age, table) in self.write_memtable(&version, memtable)? {
                    if let Some(partition) = rebuilt.partitions.list_mut().get_mut(index) {
                        Arc::make_mut(partition).level_or_new(0).run_or_new(age).insert(table);
                    }
                }
            }
            self.state.keyspaces.insert(version.id, Arc::new(rebuilt));
        }
        self.end_log(log);
        Ok(())
    }

    /// Ends the log: no existing segment is needed afterwards.
    fn end_log(&mut self, log: &LogFiles) {
        let sequence = self.state.counters.last_sequence;
        for version in self.state.keyspaces.values_mut() {
            for partition in Arc::make_mut(version).partitions.list_mut() {
                let partition = Arc::make_mut(partition);
                partition.flushed_sequence = partition.flushed_sequence.max(sequence);
            }
        }
        for segment in log.segments() {
            let why = "its entries, as far as they can be read, are in tables now".to_owned();
            self.reasons.insert(FileName::Log(segment.number).name(), why);
        }
        self.state.counters.oldest_log = self.repair.new_number();
        self.state.synced_log.clear();
    }

    /// Step 2: the state is not certain.
    fn rebuild_from_tables(&mut self, log: &LogFiles) -> Result<()> {
        let left = select_tables::excluded_tables(&self.inventory.tables());
        for (number, left) in &left {
            let why = match left {
                Exclusion::Obsolete { by } => format!("{} replaced it", FileName::Table(*by).name()),
                Exclusion::Leftover => "an unfinished compaction left it; its inputs exist".to_owned(),
            };
            self.reasons.insert(FileName::Table(*number).name(), why);
        }
        self.note_missing_tables();
        let mut chosen = self.choose(&left);
        // The excluded files may be missing from the rebuilt state: their ranges are uncertain, too.
        let mut ranges: BTreeMap<u64, Vec<KeyRange>> = BTreeMap::new();
        for found in left.keys().filter_map(|number| self.inventory.readable.get(number)) {
            ranges.entry(found.origin.keyspace_id).or_default().push(range_of(&found.summary));
        }
        let logged = self.log_entries(log, Some(&chosen));
        let ids: BTreeSet<u64> = self.state.keyspaces.keys().copied().chain(chosen.keys().copied()).collect();
        let ids: BTreeSet<u64> = ids.into_iter().chain(ranges.keys().copied()).collect();
        let ids: BTreeSet<u64> = ids.into_iter().chain(logged.keys().map(|id| u64::from(*id))).collect();
        // Every store has the default keyspace, also if no file shows it.
        let ids: BTreeSet<u64> = ids.into_iter().chain([DEFAULT_KEYSPACE_ID]).collect();
        for id in ids.into_iter().rev() {
            let tables = chosen.remove(&id).unwrap_or_default();
            let memtables =
                u32::try_from(id).ok().and_then(|id| logged.get(&id)).cloned().unwrap_or_default();
            let mut ranges = ranges.remove(&id).unwrap_or_default();
            ranges.extend(ranges_of(&tables, &memtables));
            self.rebuild_keyspace(id, tables, &memtables, ranges)?;
        }
        self.end_log(log);
        Ok(())
    }

    /// Records the tables that the readable part of the manifest names and that are missing, and those that can't be read.
    fn note_missing_tables(&mut self) {
        let versions: Vec<_> = self.state.keyspaces.values().cloned().collect();
        let replaced: BTreeSet<u64> = self
            .inventory
            .readable
            .values()
            .flat_map(|found| found.origin.replaced.iter().copied())
            .collect();
        let mut unreadable = std::mem::take(&mut self.inventory.unreadable);
        for (version, table) in versions.iter().flat_map(|v| v.tables().map(move |table| (v, table))) {
            let number = table.number();
            if self.inventory.readable.contains_key(&number) || replaced.contains(&number) {
                continue;
            }
            let why = match unreadable.remove(&number) {
                Some(error) => {
                    self.note_fault(FileName::Table(number), &error);
                    self.reasons.insert(
                        FileName::Table(number).name(),
                        format!("it can't be read: {}", error.cause()),
                    );
                    error.cause()
                }
                None => "the file is missing".to_owned(),
            };
            self.note_lost_table(Some(&version.name), table.summary(), &why);
        }
        for (number, error) in unreadable {
            let name = FileName::Table(number);
            self.note_fault(name, &error);
            self.reasons.insert(name.name(), format!("it can't be read: {}", error.cause()));
            let why = format!("{}: its keys are not known: {}", name.name(), error.cause());
            self.note_loss(None, (Vec::new(), None), true, why);
        }
    }

    /// The tables that count, by keyspace.
    fn choose(&mut self, left: &BTreeMap<u64, Exclusion>) -> ChosenTables {
        let mut placed: BTreeMap<u64, (u64, Arc<Table>)> = BTreeMap::new();
        for version in self.state.keyspaces.values() {
            placed.extend(version.tables().map(|table| (table.number(), (version.id, Arc::clone(table)))));
        }
        let mut chosen = ChosenTables::new();
        let readable = std::mem::take(&mut self.inventory.readable);
        for (number, found) in readable.iter().filter(|(number, _)| !left.contains_key(number)) {
            let name = FileName::Table(*number).name();
            if let Some((keyspace, table)) = placed.get(number) {
                chosen.entry(*keyspace).or_default().push(Arc::clone(table));
            } else if found.origin.database_id == self.repair.database.0 {
                let table = Table::new(found.summary.clone(), None, &self.repair.obsolete_files);
                chosen.entry(found.origin.keyspace_id).or_default().push(table);
            } else if found.origin.database_id == 0 {
                let why =
                    "it was built outside of the store, and its place was in the lost part of the manifest";
                self.note_lost_table(None, &found.summary, why);
                self.reasons.insert(name, format!("{why}: ingest it again"));
            } else {
                self.reasons.insert(name, "it is of another store".to_owned());
            }
        }
        self.inventory.readable = readable;
        chosen
    }

    /// The keyspace as far as it is known, with one empty partition.
    fn bare_version(&self, id: u64, tables: &[Arc<Table>]) -> KeyspaceVersion {
        let known = self.state.keyspaces.get(&id);
        let from_tables = tables.iter().find_map(|table| {
            let found = self.inventory.readable.get(&table.number())?;
            Some(found.origin.keyspace_name.clone()).filter(|name| !name.is_empty())
        });
        let name = match (known, from_tables) {
            (Some(version), _) => version.name.to_string(),
            (None, Some(name)) => name,
            (None, None) if id == DEFAULT_KEYSPACE_ID => DEFAULT_KEYSPACE.to_owned(),
            (None, None) => format!("recovered-{id}"),
        };
        // A keyspace that was dropped may have had the name of one that was made later.
        let is_taken = self.state.keyspaces.values().any(|other| other.id != id && *other.name == *name);
        let name = if is_taken { format!("{name}-{id}") } else { name };
        let merge = tables.iter().find_map(|table| {
            MergeOperator::stored(&self.inventory.readable.get(&table.number())?.origin.merge_operator)
        });
        let from_tables = || Arc::new(KeyspaceOptions::default().merge(merge));
        let options = known.map_or_else(from_tables, |version| Arc::clone(&version.options));
        let partition = Partition::new(self.repair.new_number(), Vec::new(), 0);
        KeyspaceVersion {
            id,
            name: name.into(),
            options,
            partitions: [Arc::new(partition)].into_iter().collect(),
        }
    }

    /// Puts all tables and logged entries of a keyspace into one run for each partition. The partitions are those that the tables propose.
    fn rebuild_keyspace(
        &mut self,
        id: u64,
        tables: Vec<Arc<Table>>,
        memtables: &[Arc<Memtable>],
        ranges: Vec<KeyRange>,
    ) -> Result<()> {
        let mut version = self.bare_version(id, &tables);
        if !self.state.keyspaces.contains_key(&id) {
            self.report.default_options.push(version.name.to_string());
        }
        self.note_uncertain(&version.name, ranges, UNCERTAIN);
        let mut usable = Vec::new();
        for table in tables {
            let place = place_in(&version, table.smallest_key());
            usable.extend(self.rebuild_table(&version, place, &table)?);
        }
        let bounds = partition_bounds(&overlapping_groups(usable.clone()), version.options.layout);
        let new_partition = |lower| Arc::new(Partition::new(self.repair.new_number(), lower, 0));
        version.partitions = bounds.into_iter().map(new_partition).collect();
        // Their operands are folded together with the tables: a table may have the value below them.
        let apart = KeyspaceVersion {
            options: Arc::new(KeyspaceOptions::clone(&version.options).merge(None)),
            ..KeyspaceVersion::clone(&version)
        };
        for memtable in memtables {
            usable.extend(self.write_memtable(&apart, memtable)?.into_iter().map(|(.., table)| table));
        }
        let newest = usable.iter().map(|table| table.summary().largest_sequence).max().unwrap_or(0);
        let mut partitions: Vec<Partition> = version
            .partitions
            .iter()
            .map(|empty| Partition::new(empty.id, empty.lower.clone(), newest))
            .collect();
        for group in overlapping_groups(usable) {
            let Some(first) = group.first().map(|table| table.smallest_key().to_vec()) else { continue };
            let runs = disjoint_runs(group);
            let run = match <[_; 1]>::try_from(runs) {
                Ok([run]) => run,
                Err(runs) => self.merge(&version, place_in(&version, &first), &runs)?,
            };
            let Some(target) = partitions.get_mut(version.partition_index(&first)) else { continue };
            for table in run {
                target.level_or_new(LAST_LEVEL).run_or_new(LEVELED_RUN_AGE).insert(table);
            }
        }
        let next_partition_id =
            version.partitions.iter().map(|partition| partition.id + 1).max().unwrap_or(0);
        version.partitions = partitions.into_iter().map(Arc::new).collect();
        let counters = &mut self.state.counters;
        counters.last_sequence = counters.last_sequence.max(newest);
        counters.next_keyspace_id = counters.next_keyspace_id.max(id + 1);
        counters.next_partition_id = counters.next_partition_id.max(next_partition_id);
        self.state.keyspaces.insert(id, Arc::new(version));
        Ok(())
    }

    /// Merges runs by sequence numbers: levels no longer show their order.
    fn merge(
        &mut self,
        version: &KeyspaceVersion,
        place: RunPlace,
        runs: &[Vec<Arc<Table>>],
    ) -> Result<Vec<Arc<Table>>> {
        let replaced: Vec<u64> = runs.iter().flatten().map(|table| table.number()).collect();
        for number in &replaced {
            let why = "its entries were merged into tables of the repaired store".to_owned();
            self.reasons.entry(FileName::Table(*number).name()).or_insert(why);
        }
        let cursors = runs.iter().map(|run| RunCursor::new(RunTables::read_once(run, &self.repair.tables)));
        let mut cursor = MergeCursor::new(cursors.collect());
        let key_count = runs.iter().flatten().map(|table| table.summary().entry_count).sum();
        let tombstones = range_tombstones_of(runs.iter().flatten(), &self.repair.tables)?;
        cursor.seek_first()?;
        let summaries = self.repair.with_context(version, |context| {
            let origin = context.origin(place.partition, place, replaced);
            let rules = DropRules::new(context.readers.read_points.clone(), tombstones);
            let kept = rules.kept_range_tombstones(whole_span, SEQUENCE_MAX);
            let size = (usize::from(place.level), key_count);
            let mut sink = TableSink::new(context, &origin, size, &[], rules);
            sink.take_range_tombstones(kept);
            sink.consume(&mut cursor, None, &|_| false)?;
            sink.finish()
        })?;
        self.report.rewritten_table_count += summaries.len();
        Ok(summaries
            .into_iter()
            .map(|summary| Table::new(summary, None, &self.repair.obsolete_files))
            .collect())
    }

    /// All ranges of a keyspace; adjacent ones are joined.
    fn note_uncertain(&mut self, name: &str, mut ranges: Vec<KeyRange>, why: &str) {
        ranges.sort_unstable();
        let mut merged: Vec<KeyRange> = Vec::new();
        for (lower, upper) in ranges {
            match merged.last_mut() {
                Some((_, last)) if last.as_ref().is_none_or(|last| lower <= *last) => {
                    *last = last.take().zip(upper).map(|(last, upper)| last.max(upper));
                }
                _ => merged.push((lower, upper)),
            }
        }
        for range in merged {
            self.note_loss(Some(name), range, true, why);
        }
    }
}

/// Where it is not known what is older, range tombstones are kept as they are.
fn whole_span(lower: &[u8], upper: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    Some((lower.to_vec(), upper.to_vec()))
}

/// The least and the greatest key; `None`: all from the least key on.
type KeyRange = (Vec<u8>, Option<Vec<u8>>);

/// The range of the entries and range tombstones of a table.
fn range_of(summary: &TableSummary) -> KeyRange {
    let upper = match summary.end() {
        Bound::Included(upper) | Bound::Excluded(upper) => Some(upper.to_vec()),
        Bound::Unbounded => None,
    };
    (summary.smallest_key.clone(), upper)
}

/// The ranges that tables and logged entries cover.
fn ranges_of(tables: &[Arc<Table>], memtables: &[Arc<Memtable>]) -> Vec<KeyRange> {
    let mut ranges: Vec<KeyRange> = tables.iter().map(|table| range_of(table.summary())).collect();
    for memtable in memtables {
        let mut cursor = memtable.cursor();
        if cursor.seek_first().is_ok() && cursor.is_valid() {
            let first = cursor.key().to_vec();
            let last = cursor.seek_last().ok().map(|()| cursor.key().to_vec());
            ranges.push((first, last));
        }
        let upper_of = |upper: Vec<u8>| (!upper.is_empty()).then_some(upper);
        let tombstones = memtable.range_tombstones().all();
        ranges.extend(tombstones.into_iter().map(|tombstone| (tombstone.lower, upper_of(tombstone.upper))));
    }
    ranges
}

/// The place of the only run of the partition of a key.
fn place_in(version: &KeyspaceVersion, key: &[u8]) -> RunPlace {
    let partition = version.partition_of(key).map_or(0, |partition| partition.id);
    RunPlace { keyspace: version.id, partition, level: LAST_LEVEL as u8, run_age: LEVELED_RUN_AGE }
}

/// Tables in groups, both in key order: no two tables of different groups overlap.
fn overlapping_groups(mut tables: Vec<Arc<Table>>) -> Vec<Vec<Arc<Table>>> {
    tables.sort_by(|left, right| left.smallest_key().cmp(right.smallest_key()));
    let mut groups: Vec<Vec<Arc<Table>>> = Vec::new();
    // The table of the last group that ends last.
    let mut last: Option<Arc<Table>> = None;
    for table in tables {
        let begins_group = last.as_ref().is_none_or(|last| last.ends_before(table.smallest_key()));
        if last.as_ref().is_none_or(|last| end_of(last) < end_of(&table)) {
            last = Some(Arc::clone(&table));
        }
        match groups.last_mut().filter(|_| !begins_group) {
            Some(group) => group.push(table),
            None => groups.push(vec![table]),
        }
    }
    groups
}

/// The end of a table, as a value that orders ends.
fn end_of(table: &Table) -> (bool, &[u8], bool) {
    match table.summary().end() {
        Bound::Excluded(key) => (false, key, false),
        Bound::Included(key) => (false, key, true),
        Bound::Unbounded => (true, &[], false),
    }
}

/// The lower bounds of the partitions for these groups. A partition gets as many tables as after a split, if the groups allow it.
fn partition_bounds(groups: &[Vec<Arc<Table>>], layout: Layout) -> Vec<Vec<u8>> {
    let mut bounds = vec![Vec::new()];
    let Layout::Partitioned { tables_per_partition } = layout else { return bounds };
    let mut table_count = 0;
    for group in groups {
        if table_count >= tables_after_split(tables_per_partition) {
            bounds.extend(group.first().map(|table| table.smallest_key().to_vec()));
            table_count = 0;
        }
        table_count += group.len();
    }
    bounds
}

/// Tables as few runs, each in key order and disjoint.
fn disjoint_runs(mut tables: Vec<Arc<Table>>) -> Vec<Vec<Arc<Table>>> {
    tables.sort_by(|left, right| left.smallest_key().cmp(right.smallest_key()));
    let mut runs: Vec<Vec<Arc<Table>>> = Vec::new();
    for table in tables {
        let fits =
            |run: &&mut Vec<Arc<Table>>| run.last().is_none_or(|last| last.ends_before(table.smallest_key()));
        match runs.iter_mut().find(fits) {
            Some(run) => run.push(table),
            None => runs.push(vec![table]),
        }
    }
    runs
}
