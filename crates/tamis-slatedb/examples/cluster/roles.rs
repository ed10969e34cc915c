//! The work of each role.
//!
//! The writer cuts the data into [`TABLES`] tables, so that every run has the same. The compactor merges groups of
//! [`COMPACTED_TABLES`]; runs of different sizes are left, whose key ranges overlap, as in a database that grows.

use std::hash::Hasher;
use std::sync::Arc;
use std::time::{Duration, Instant};

use slatedb::config::{
    CompactionWorkerOptions, CompactorOptions, DbReaderOptions, FlushOptions, FlushType, Settings,
};
use slatedb::db_cache::SplitCache;
use slatedb::db_cache::moka::{MokaCache, MokaCacheOptions};
use slatedb::object_store::{ObjectStore, path::Path};
use slatedb::{
    BloomFilterPolicy, CompactorBuilder, Db, DbReader, DbReaderMode, FilterPolicy, WriteBatch, admin::Admin,
};
use slatedb_common::metrics::DefaultMetricsRecorder;
use tamis_slatedb::{
    FilterCounts, FilterMetrics, FilterPolicies, QuerySample, TakesFilterPolicies, TamisPolicy,
};
use tamis_slatedb_support::CountingStore;
use tamis_workload::fill_value;

use crate::Result;
use crate::data::{Data, Set};
use crate::messages::{Command, Kind, Measurement, Message, Role, Task, Variant};
use crate::queries::{Query, generate};
use crate::worker::Connection;

/// Tables of each set; after the first three the readers run, so that later tables fit their queries.
const TABLES: usize = 27;
const FIRST_TABLES: usize = 3;
const COMPACTED_TABLES: usize = 4;
/// Entries of a batch.
const BATCH: usize = 500;
const POLL: Duration = Duration::from_millis(200);
/// After this time without a compaction, all compactions are finished.
const SETTLED: Duration = Duration::from_millis(1500);
const FILTER_KEYS_MIN: u32 = 100;
/// Filters and indexes always fit; blocks have a tenth of the data.
const META_CACHE_BYTES: u64 = 512 << 20;
const CACHE_SHARE: u64 = 10;
const SAMPLE_SEED: u64 = 7;
const WARM_SEED: u64 = 8;
const QUERY_SEED: u64 = 9;
/// Queries that fill the caches before the measured ones.
const WARM_QUERIES: usize = 20;

pub(crate) async fn run(task: &Task, store: Arc<dyn ObjectStore>, connection: &mut Connection) -> Result<()> {
    match task.role {
        Role::Server { .. } => Err("a server needs a separate process".into()),
        Role::Writer => write(task, store, connection).await,
        Role::Compactor => compact(task, store, connection).await,
        Role::Sampler => sample(task, store, connection).await,
        Role::Reader { index } => measure(task, index as u64, store, connection).await,
    }
}

/// The filters of one set.
struct Filters {
    policies: Vec<Arc<dyn FilterPolicy>>,
    /// Those of Tamis.
    tamis: Option<FilterPolicies>,
}

impl Filters {
    fn new(variant: &Variant, set: Set) -> Result<Self> {
        let of = |policy: BloomFilterPolicy| Self { policies: vec![Arc::new(policy)], tamis: None };
        Ok(match variant {
            Variant::NoFilters => Self { policies: Vec::new(), tamis: None },
            Variant::Bloom { bits } => of(BloomFilterPolicy::new(*bits)),
            Variant::PrefixBloom { bits } => {
                of(BloomFilterPolicy::new(*bits).with_prefix_extractor(Arc::new(set.prefix())))
            }
            Variant::Tamis { design } => {
                let policies = FilterPolicies::new(TamisPolicy::new(design.parse()?)?);
                Self { policies: Vec::new(), tamis: Some(policies) }
            }
        })
    }

    fn configure<B: TakesFilterPolicies>(&self, builder: B) -> B {
        match &self.tamis {
            Some(policies) => policies.configure(builder),
            None => builder.take_filter_policies(self.policies.clone()),
        }
    }

    fn sample(&self) -> Option<&QuerySample> {
        self.tamis.as_ref().map(|policies| policies.sample().as_ref())
    }

    fn counters(&self, set: Set) -> String {
        self.tamis
            .as_ref()
            .map_or_else(String::new, |policies| format!("{}: {}", set.name(), policies.counters().values()))
    }
}

fn database_path(task: &Task, set: Set) -> Path {
    Path::from(format!("{}/{}", task.path, set.name()))
}

/// Outside of the databases.
fn sample_path(task: &Task, set: Set) -> Path {
    Path::from(format!("{}/samples/{}", task.path, set.name()))
}

fn generate_data(task: &Task, set: Set) -> Data {
    let count = match set {
        Set::Events => task.events,
        Set::Paths => task.paths,
    };
    Data::generate(set, count)
}

/// Waits for a command; [`Command::Stop`] if the cluster has ended.
async fn wait_for_command(connection: &mut Connection) -> Command {
    connection.commands.recv().await.unwrap_or(Command::Stop)
}

fn writer_settings() -> Settings {
    let mut settings =
        Settings { compactor_options: None, garbage_collector_options: None, ..Settings::default() };
    settings.min_filter_keys = FILTER_KEYS_MIN;
    // Tables are flushed by number of entries.
    settings.l0_sst_size_bytes = 1 << 29;
    settings.l0_max_ssts = 2 * TABLES;
    settings.l0_max_ssts_per_key = 2 * TABLES;
    settings
}

async fn write(task: &Task, store: Arc<dyn ObjectStore>, connection: &mut Connection) -> Result<()> {
    let counting = CountingStore::new(store, task.latency());
    let mut loads = Vec::new();
    for set in Set::ALL {
        let filters = Filters::new(&task.variant, set)?;
        let builder = Db::builder(database_path(task, set), Arc::new(counting.clone()))
            .with_settings(writer_settings());
        let db = filters.configure(builder).build().await?;
        loads.push(Load { data: generate_data(task, set), filters, db, value_bytes: task.value_bytes });
    }
    let mut seconds = 0.0;
    let mut entries = 0;
    for table in 0..TABLES {
        if table == FIRST_TABLES {
            connection.send(&Message::FirstTables);
            if wait_for_command(connection).await == Command::Stop {
                return Ok(());
            }
            for load in &loads {
                read_sample(task, load.data.set, &load.filters, &counting).await?;
            }
        }
        let started = Instant::now();
        for load in &loads {
            entries += load.write_table(table).await?;
        }
        seconds += started.elapsed().as_secs_f64();
        connection.send(&Message::Progress { entries, seconds });
    }
    let filters =
        loads.iter().map(|load| load.filters.counters(load.data.set)).collect::<Vec<_>>().join("; ");
    connection.send(&Message::Loaded { seconds, writes: counting.counts().writes, filters });
    let (mut tables, mut overlapping) = (0, 0);
    for load in &loads {
        settle(task, load, &counting).await?;
        let manifest = load.db.manifest();
        tables += manifest.all_sst_views().count();
        overlapping += manifest.l0().len() + manifest.compacted().len();
        load.db.close().await?;
    }
    connection.send(&Message::Settled { tables, overlapping });
    Ok(())
}

/// A database that is being loaded.
struct Load {
    data: Data,
    filters: Filters,
    db: Db,
    value_bytes: usize,
}

impl Load {
    /// Writes the entries of a table and flushes it; returns their number.
    async fn write_table(&self, table: usize) -> Result<usize> {
        let count = self.data.keys.len();
        let range = count * table / TABLES..count * (table + 1) / TABLES;
        let keys = self.data.keys.get(range.clone()).unwrap_or_default();
        let mut value = vec![0; self.value_bytes];
        for (batch, keys) in keys.chunks(BATCH).enumerate() {
            let mut writes = WriteBatch::new();
            for (index, key) in keys.iter().enumerate() {
                fill_value((range.start + batch * BATCH + index) as u64, &mut value);
                writes.put(key, &value);
            }
            self.db.write(writes).await?;
        }
        self.db.flush_with_options(FlushOptions { flush_type: FlushType::MemTable }).await?;
        Ok(keys.len())
    }
}

/// Waits until no compaction runs, and none has begun for a while.
async fn settle(task: &Task, load: &Load, store: &CountingStore) -> Result<()> {
    let admin = Admin::builder(database_path(task, load.data.set), Arc::new(store.clone())).build();
    let mut quiet_since = Instant::now();
    while quiet_since.elapsed() < SETTLED {
        tokio::time::sleep(POLL).await;
        load.db.refresh_manifest().await?;
        let compactions = admin.read_compactions(None).await?;
        let is_active =
            compactions.is_some_and(|list| list.recent_compactions().any(|compaction| compaction.active()));
        if is_active || load.db.manifest().l0().len() >= COMPACTED_TABLES {
            quiet_since = Instant::now();
        }
    }
    Ok(())
}

async fn read_sample(task: &Task, set: Set, filters: &Filters, store: &CountingStore) -> Result<()> {
    if let Some(sample) = filters.sample() {
        sample.read(store, &sample_path(task, set)).await?;
    }
    Ok(())
}

async fn compact(task: &Task, store: Arc<dyn ObjectStore>, connection: &mut Connection) -> Result<()> {
    let counting = CountingStore::new(store, task.latency());
    let sources = COMPACTED_TABLES.to_string();
    let scheduler = [
        ("min_compaction_sources", sources.as_str()),
        ("max_compaction_sources", sources.as_str()),
        ("include_size_threshold", "1.5"),
    ];
    let mut worker =
        CompactionWorkerOptions { compactions_poll_interval: POLL, ..CompactionWorkerOptions::default() };
    worker.min_filter_keys = FILTER_KEYS_MIN;
    let options = CompactorOptions {
        poll_interval: POLL,
        commit_compacted_interval: POLL,
        scheduler_options: scheduler.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        worker: Some(worker),
        ..CompactorOptions::default()
    };
    let mut all = Vec::new();
    for set in Set::ALL {
        let filters = Filters::new(&task.variant, set)?;
        let builder = CompactorBuilder::new(database_path(task, set), Arc::new(counting.clone()));
        let compactor = Arc::new(filters.configure(builder.with_options(options.clone())).build());
        let runner = Arc::clone(&compactor);
        let running = tokio::spawn(async move { runner.run().await });
        all.push((set, filters, compactor, running));
    }
    connection.send(&Message::Started);
    while wait_for_command(connection).await == Command::ReadSample {
        for (set, filters, _, _) in &all {
            read_sample(task, *set, filters, &counting).await?;
        }
    }
    for (_, _, compactor, running) in &mut all {
        compactor.stop().await?;
        running.await??;
    }
    let filters =
        all.iter().map(|(set, filters, _, _)| filters.counters(*set)).collect::<Vec<_>>().join("; ");
    connection.send(&Message::Done { filters });
    Ok(())
}

/// An open reader of a set.
struct Reading {
    data: Data,
    filters: Filters,
    reader: DbReader,
    recorder: Arc<DefaultMetricsRecorder>,
    store: CountingStore,
}

impl Reading {
    async fn open(task: &Task, set: Set, store: &Arc<dyn ObjectStore>) -> Result<Self> {
        let (data, filters) = (generate_data(task, set), Filters::new(&task.variant, set)?);
        let store = CountingStore::new(Arc::clone(store), task.latency());
        let recorder = Arc::new(DefaultMetricsRecorder::new());
        let cache = |max_capacity| -> Option<Arc<dyn slatedb::db_cache::DbCache>> {
            Some(Arc::new(MokaCache::new_with_opts(MokaCacheOptions {
                max_capacity,
                ..MokaCacheOptions::default()
            })))
        };
        let cache = SplitCache::new()
            .with_block_cache(cache(data.bytes(task.value_bytes) / CACHE_SHARE))
            .with_meta_cache(cache(META_CACHE_BYTES));
        let builder = DbReader::builder(database_path(task, set), Arc::new(store.clone()))
            .with_reader_mode(DbReaderMode::FollowLatest)
            .with_options(DbReaderOptions { skip_wal_replay: true, ..DbReaderOptions::default() })
            .with_db_cache(Arc::new(cache.build()), 0)
            .with_metrics_recorder(recorder.clone());
        let reader = filters.configure(builder).build().await?;
        Ok(Self { data, filters, reader, recorder, store })
    }

    /// Sends queries one after another, and returns a digest of their answers.
    async fn send(&self, queries: &[Query]) -> Result<u64> {
        let mut answers = std::hash::DefaultHasher::new();
        for query in queries {
            let mut scan = match query {
                Query::Point(key) => {
                    answers.write(&self.reader.get(key).await?.unwrap_or_default());
                    continue;
                }
                Query::Range(lower, upper) => self.reader.scan(lower..=upper).await?,
                Query::Part(prefix, lower, upper) => self.reader.scan_prefix(prefix, lower..=upper).await?,
                Query::Prefix(prefix) => self.reader.scan_prefix(prefix, ..).await?,
            };
            while let Some(entry) = scan.next().await? {
                answers.write(&entry.key);
                answers.write(&entry.value);
            }
        }
        Ok(answers.finish())
    }

    fn counts(&self, kind: Kind) -> FilterCounts {
        let metrics = FilterMetrics::read(&self.recorder);
        match kind {
            Kind::EmptyRange | Kind::FullRange => metrics.ranges,
            // SlateDB asks for prefixes, or for their ranges, as the policy prefers.
            Kind::EmptyPart | Kind::EmptyPrefix => metrics.prefixes + metrics.ranges,
            Kind::Point => metrics.points,
        }
    }

    async fn measure(&self, kind: Kind, queries: &[Query]) -> Result<Measurement> {
        let (requests, counts, started) = (self.store.counts(), self.counts(kind), Instant::now());
        let answers = self.send(queries).await?;
        let seconds = started.elapsed().as_secs_f64();
        let after = self.counts(kind);
        let measured = Measurement {
            kind,
            queries: queries.len() as u64,
            seconds,
            requests: 0,
            bytes: 0,
            negatives: after.negatives - counts.negatives,
            positives: after.positives - counts.positives,
            false_positives: after.false_positives - counts.false_positives,
            answers,
        };
        Ok(measured.with_requests(self.store.counts().since(requests)))
    }
}

async fn sample(task: &Task, store: Arc<dyn ObjectStore>, connection: &Connection) -> Result<()> {
    let mut queries = 0;
    for set in Set::ALL {
        let reading = Reading::open(task, set, &store).await?;
        for kind in Kind::ALL {
            reading.send(&generate(&reading.data, kind, task.queries, SAMPLE_SEED)).await?;
        }
        if let Some(sample) = reading.filters.sample() {
            sample.write(&reading.store, &sample_path(task, set)).await?;
            queries += sample.len();
        }
        reading.reader.close().await?;
    }
    connection.send(&Message::Sampled { queries });
    Ok(())
}

async fn measure(
    task: &Task,
    index: u64,
    store: Arc<dyn ObjectStore>,
    connection: &Connection,
) -> Result<()> {
    let mut filters = Vec::new();
    for set in Set::ALL {
        let reading = Reading::open(task, set, &store).await?;
        for kind in Kind::ALL {
            reading.send(&generate(&reading.data, kind, WARM_QUERIES, WARM_SEED)).await?;
        }
        for kind in Kind::ALL {
            let queries = generate(&reading.data, kind, task.queries, QUERY_SEED + index * 1000);
            connection.send(&Message::Measured(reading.measure(kind, &queries).await?));
        }
        filters.push(reading.filters.counters(set));
        reading.reader.close().await?;
    }
    connection.send(&Message::Done { filters: filters.join("; ") });
    Ok(())
}
