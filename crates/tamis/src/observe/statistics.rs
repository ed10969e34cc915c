//! [`crate::Db::statistics`]: the counters, and the current sizes of log, cache and levels.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc, time::Duration};

use tamis_filter::auto::QueryKind;

use crate::{
    compaction::{law::JobTimes, plan::InProgress, strategy::pending_bytes, view_plan::plan_of},
    error::Result,
    expiry::milliseconds,
    file_name::FileName,
    observe::{
        metrics::{
            DroppedKeyspace, KeyspaceStatistics, LISTED_MAX, LevelFilters, LevelStatistics, PaidJob,
            PartitionStatistics, QuerySampleStatistics, ReadLoss, SampleStatistics, Statistics,
            TableFilterStatistics, TableStatistics, ViewStatistics,
        },
        query_sample::{QuerySample, position_of},
    },
    store::{
        context::StoreContext,
        keyspace_state::KeyspaceState,
        parts::StoreParts,
        readers::{ReaderStatistics, RegisteredReaders},
    },
    table::lazy_reader::NamedTable as _,
    version::{
        folder,
        handle::Table,
        level::Level,
        losses::{Loss, Losses},
        partition::Partition,
        version::KeyspaceVersion,
    },
};

/// Collects the statistics of an open store. `replayed_log_bytes`: the size of the log of one that was opened read-only.
pub(crate) fn collect(store: &StoreParts, replayed_log_bytes: u64) -> Statistics {
    let StoreParts { context, log, tables, keyspaces, snapshots, versions, .. } = store;
    let mut statistics = context.metrics.snapshot();
    let now = context.runtime.clock.now();
    let age = |since: Option<Duration>| since.map_or(Duration::ZERO, |since| now.saturating_sub(since));
    let (snapshot_count, oldest_snapshot) = snapshots.oldest();
    statistics.snapshots = snapshot_count as u64;
    statistics.oldest_snapshot = age(oldest_snapshot);
    let replaced = |keyspace: &Arc<KeyspaceState>| keyspace.oldest_replaced();
    statistics.oldest_replaced_state = age(keyspaces.load().values().filter_map(replaced).min());
    statistics.held_bytes = versions.obsolete_files().held_bytes();
    statistics.dropped_keyspaces = keyspaces.dropped().iter().map(|keyspace| of_dropped(keyspace)).collect();
    let log_bytes = log.lock().as_ref().map(|state| state.log.total_bytes());
    statistics.log_bytes = log_bytes.unwrap_or(replayed_log_bytes);
    statistics.cache_bytes = tables.block_bytes();
    statistics.cache_pinned_bytes = tables.pinned_bytes();
    statistics.cache_sample_bytes = tables.budget().sample_bytes();
    statistics.readers = readers(store).unwrap_or_else(|error| {
        context.report_failed_job("look for readers", &error);
        Vec::new()
    });
    statistics.open_files = tables.open_files().count() as u64;
    statistics.open_files_max = tables.open_files().count_max() as u64;
    statistics.keyspaces = keyspaces.load().values().map(|keyspace| of_keyspace(keyspace, context)).collect();
    statistics
}

/// The readers that have the store open. Cost: a system call if there are none.
fn readers(store: &StoreParts) -> Result<Vec<ReaderStatistics>> {
    let StoreParts { context, versions, .. } = store;
    let registered = RegisteredReaders::find(&context.folder)?;
    if registered.is_empty() {
        return Ok(Vec::new());
    }
    let listed = folder::list(&context.folder)?;
    let mut obsolete: BTreeMap<FileName, u64> =
        listed.iter().filter_map(|entry| Some((FileName::parse(&entry.name)?, entry.length))).collect();
    for file in versions.catalog().keyspaces.values().flat_map(|version| version.files()) {
        obsolete.remove(&file.name());
    }
    let now = milliseconds(context.runtime.clock.since_epoch());
    Ok(registered.statistics(|name| obsolete.get(&name).copied().unwrap_or_default(), now))
}

fn of_dropped(keyspace: &KeyspaceState) -> DroppedKeyspace {
    let read_state = keyspace.read_state.load();
    let bytes = read_state.version.partitions.iter().map(|partition| partition.totals().bytes).sum();
    DroppedKeyspace { name: keyspace.name.clone(), bytes }
}

fn of_keyspace(keyspace: &KeyspaceState, context: &StoreContext) -> KeyspaceStatistics {
    let read_state = keyspace.read_state.load();
    let mut levels: Vec<LevelStatistics> = Vec::new();
    for partition in &read_state.version.partitions {
        for (index, level) in partition.levels().iter().enumerate() {
            if levels.len() <= index {
                levels.resize(index + 1, LevelStatistics::default());
            }
            if let Some(sum) = levels.get_mut(index) {
                add(sum, level);
            }
        }
    }
    KeyspaceStatistics {
        name: keyspace.name.clone(),
        layout: read_state.version.options.layout,
        memtable_bytes: read_state.memtable.memtable.bytes() as u64,
        pending_compaction_bytes: pending_bytes(&read_state.version),
        expired_bytes: expired_bytes(&read_state.version, context.expiry.now()),
        immutable_memtable_count: read_state.immutable.len(),
        levels,
        partition_count: read_state.version.partitions.len(),
        partitions: largest_partitions(&read_state.version),
        views: of_views(&read_state.version),
        filters: level_filters(&read_state.version),
        sample: of_sample(&read_state.query_sample),
    }
}

/// About the bytes of the entries that are expired at a time.
fn expired_bytes(version: &KeyspaceVersion, time: u64) -> u64 {
    let of_table = |table: &Arc<Table>| {
        let summary = table.summary();
        let share = summary.expired_count(time) as f64 / summary.entry_count.max(1) as f64;
        (summary.file_bytes as f64 * share) as u64
    };
    version.tables().map(of_table).sum()
}

/// The partitions with the most bytes, in key order.
fn largest_partitions(version: &KeyspaceVersion) -> Vec<PartitionStatistics> {
    let of_partition = |partition: &Arc<Partition>| {
        let mut size = LevelStatistics::default();
        partition.levels().iter().for_each(|level| add(&mut size, level));
        PartitionStatistics { lower: partition.lower.clone(), size }
    };
    let mut partitions: Vec<PartitionStatistics> = version.partitions.iter().map(of_partition).collect();
    partitions.sort_by_key(|partition| Reverse(partition.size.bytes));
    partitions.truncate(LISTED_MAX);
    partitions.sort_by(|left, right| left.lower.cmp(&right.lower));
    partitions
}

fn of_views(version: &KeyspaceVersion) -> ViewStatistics {
    let mut sum = ViewStatistics::default();
    for named in version.partitions.iter().filter_map(|partition| partition.view.as_ref()) {
        sum.count += 1;
        if let Some(view) = named.reader() {
            sum.open_count += 1;
            sum.run_count += view.runs().len();
            sum.entry_count += view.entry_count();
            sum.bytes += view.file_bytes();
        }
    }
    sum
}

fn level_filters(version: &KeyspaceVersion) -> Vec<LevelFilters> {
    let mut found: BTreeMap<(usize, String), LevelFilters> = BTreeMap::new();
    for (level, table) in version.tables_by_level() {
        let Some(reader) = table.slot().get() else { continue };
        // The size and the rate differ between tables.
        let designs = reader.filter_designs();
        let families: Vec<&str> = designs.iter().filter_map(|(design, _)| design.split(';').next()).collect();
        let are_evicted = families.is_empty() && reader.has_filter();
        if are_evicted {
            continue;
        }
        let filters = families.join(" + ");
        let sum = found.entry((level, filters)).or_insert_with_key(|(level, filters)| LevelFilters {
            level: *level,
            filters: filters.clone(),
            ..LevelFilters::default()
        });
        sum.table_count += 1;
        sum.entry_count += table.summary().entry_count;
        sum.bytes += designs.iter().map(|(_, bytes)| bytes).sum::<u64>();
    }
    found.into_values().collect()
}

/// The filters of each table, newest first.
pub(crate) fn table_filters(version: &KeyspaceVersion) -> Vec<TableFilterStatistics> {
    let of_table = |(level, table): (usize, &Arc<Table>)| {
        let designs = table.slot().get().map(|reader| reader.filter_designs()).unwrap_or_default();
        let designs = designs.into_iter().map(|(design, _)| design).collect();
        let tally = table.filter_tally();
        let (points, ranges, seeks) = (tally.points.get(), tally.ranges.get(), tally.seeks.get());
        TableFilterStatistics { level, table_number: table.number(), designs, points, ranges, seeks }
    };
    version.tables_by_level().map(of_table).collect()
}

/// Each table, newest first in each partition.
pub(crate) fn tables(version: &KeyspaceVersion) -> Vec<TableStatistics> {
    let mut found = Vec::new();
    for partition in &version.partitions {
        for (level, runs) in partition.levels().iter().map(Level::runs).enumerate() {
            for (run, table) in runs
                .iter()
                .enumerate()
                .flat_map(|(run, of)| of.tables().iter().map(move |table| (run, table)))
            {
                let summary = table.summary();
                found.push(TableStatistics {
                    table_number: summary.number,
                    partition: partition.lower.clone(),
                    level,
                    run,
                    smallest_key: summary.smallest_key.clone(),
                    largest_key: summary.largest_key.clone(),
                    bytes: summary.file_bytes,
                    entry_count: summary.entry_count,
                    tombstone_count: summary.tombstone_count,
                    range_tombstone_count: summary.range_tombstone_count,
                });
            }
        }
    }
    found
}

/// The time that reads have lost without a job that would save it, by partition: of all of it, then of its tables.
pub(crate) fn read_losses(version: &KeyspaceVersion, times: &JobTimes) -> Vec<ReadLoss> {
    let in_progress = InProgress::default();
    let of_partition = |partition: &Arc<Partition>| {
        let row = |job, loss, price| read_loss(partition, None, (job, loss, price));
        let Losses { merge, view } = &*partition.losses;
        let plan = plan_of(partition, version.options.views, &in_progress);
        let views = plan.map(|plan| row(PaidJob::BuildView, view, times.of_view(plan.entry_counts())));
        let of_table = |table: &Arc<Table>| {
            let price = times.of_check(table.summary().entry_count);
            let loss = (PaidJob::ChooseFilters, table.filter_tally().loss(), price);
            read_loss(partition, Some(table.number()), loss)
        };
        let merges = row(PaidJob::MergeRuns, merge, times.of_merge(partition));
        [merges].into_iter().chain(views).chain(partition.tables().map(of_table)).collect::<Vec<_>>()
    };
    version.partitions.iter().flat_map(of_partition).filter(|row| !row.lost.is_zero()).collect()
}

fn read_loss(
    partition: &Partition,
    table: Option<u64>,
    (job, loss, price): (PaidJob, &Loss, u64),
) -> ReadLoss {
    ReadLoss {
        partition: partition.lower.clone(),
        table,
        job,
        lost: Duration::from_nanos(loss.nanoseconds()),
        price: Duration::from_nanos(loss.price(price)),
    }
}

fn of_sample(sample: &QuerySample) -> SampleStatistics {
    let kept = sample.kept();
    let of_kind = |kind| {
        let kept = kept.get(position_of(kind)).copied().unwrap_or_default();
        QuerySampleStatistics {
            seen: sample.seen(kind),
            kept: kept.count,
            interval: sample.interval(kind),
            tables_rejected: kept.rejected,
            tables_true_positive: kept.there,
            tables_false_positive: kept.nothing_there,
        }
    };
    SampleStatistics {
        points: of_kind(QueryKind::Point),
        ranges: of_kind(QueryKind::Range),
        prefixes: of_kind(QueryKind::Prefix),
        forward_seeks: of_kind(QueryKind::SeekForward),
        backward_seeks: of_kind(QueryKind::SeekBackward),
        too_long: sample.too_long(),
    }
}

fn add(sum: &mut LevelStatistics, level: &Level) {
    sum.run_count += level.runs().len();
    for table in level.tables() {
        sum.table_count += 1;
        sum.bytes += table.file_bytes();
        sum.entry_count += table.summary().entry_count;
        sum.tombstone_count += table.summary().tombstone_count;
        sum.range_tombstone_count += table.summary().range_tombstone_count;
    }
}
