//! An object store that counts its requests and adds latency to each.
//!
//! Reads of table data are requests too: SlateDB marks requests for tables, and this store counts them separately from
//! manifests and the log. A request of a store in the cloud takes milliseconds; on loopback it does not, so the added
//! latency replaces the network.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, stream};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use slatedb::object_store_tag::{ObjectStoreCallTag, SstType};

/// Numbers of requests and bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// Reads of tables: data, and filters and indexes that are not cached.
    pub table_reads: u64,
    /// Bytes of these reads.
    pub table_bytes: u64,
    /// Other reads: manifests, log, `head`.
    pub other_reads: u64,
    /// Lists.
    pub lists: u64,
    /// Puts, parts of puts, and deletes.
    pub writes: u64,
}

impl RequestCounts {
    /// The requests since an earlier moment.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            table_reads: self.table_reads - earlier.table_reads,
            table_bytes: self.table_bytes - earlier.table_bytes,
            other_reads: self.other_reads - earlier.other_reads,
            lists: self.lists - earlier.lists,
            writes: self.writes - earlier.writes,
        }
    }
}

#[derive(Debug, Default)]
struct Counters {
    table_reads: AtomicU64,
    table_bytes: AtomicU64,
    other_reads: AtomicU64,
    lists: AtomicU64,
    writes: AtomicU64,
}

/// Counts the requests to another store.
#[derive(Debug, Clone)]
pub struct CountingStore {
    inner: Arc<dyn ObjectStore>,
    latency: Duration,
    counters: Arc<Counters>,
}

impl CountingStore {
    /// Counts the requests to `inner`, and adds latency to each.
    pub fn new(inner: Arc<dyn ObjectStore>, latency: Duration) -> Self {
        Self { inner, latency, counters: Arc::default() }
    }

    /// The requests until now.
    pub fn counts(&self) -> RequestCounts {
        let Counters { table_reads, table_bytes, other_reads, lists, writes } = &*self.counters;
        RequestCounts {
            table_reads: table_reads.load(Relaxed),
            table_bytes: table_bytes.load(Relaxed),
            other_reads: other_reads.load(Relaxed),
            lists: lists.load(Relaxed),
            writes: writes.load(Relaxed),
        }
    }

    async fn delay(&self) {
        if !self.latency.is_zero() {
            tokio::time::sleep(self.latency).await;
        }
    }
}

impl fmt::Display for CountingStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "CountingStore({})", self.inner)
    }
}

#[async_trait]
impl ObjectStore for CountingStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.counters.writes.fetch_add(1, Relaxed);
        self.delay().await;
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.counters.writes.fetch_add(1, Relaxed);
        self.delay().await;
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let tag = ObjectStoreCallTag::from_extensions(&options.extensions);
        let is_table = tag.is_some_and(|tag| tag.sst_type == SstType::Compacted) && !options.head;
        self.delay().await;
        let result = self.inner.get_opts(location, options).await?;
        if is_table {
            self.counters.table_reads.fetch_add(1, Relaxed);
            self.counters.table_bytes.fetch_add(result.range.end - result.range.start, Relaxed);
        } else {
            self.counters.other_reads.fetch_add(1, Relaxed);
        }
        Ok(result)
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.counters.table_reads.fetch_add(ranges.len() as u64, Relaxed);
        let bytes: u64 = ranges.iter().map(|range| range.end - range.start).sum();
        self.counters.table_bytes.fetch_add(bytes, Relaxed);
        self.delay().await;
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.counters.writes.fetch_add(1, Relaxed);
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.counters.lists.fetch_add(1, Relaxed);
        delayed(self.latency, self.inner.list(prefix))
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.counters.lists.fetch_add(1, Relaxed);
        delayed(self.latency, self.inner.list_with_offset(prefix, offset))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.counters.lists.fetch_add(1, Relaxed);
        self.delay().await;
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.counters.writes.fetch_add(1, Relaxed);
        self.delay().await;
        self.inner.copy_opts(from, to, options).await
    }
}

/// A stream whose first item comes later.
fn delayed<T: Send + 'static>(latency: Duration, items: BoxStream<'static, T>) -> BoxStream<'static, T> {
    if latency.is_zero() {
        return items;
    }
    let wait = stream::once(tokio::time::sleep(latency)).filter_map(|()| std::future::ready(None));
    wait.chain(items).boxed()
}
