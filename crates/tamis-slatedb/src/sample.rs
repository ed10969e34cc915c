//! A sample of the queries that reach filters, in memory, for the automatic choice.
//!
//! All policies of a process can share one sample. Readers and the compactor are different processes: readers write
//! their sample into an object ([`QuerySample::write`]), and the compactor reads it ([`QuerySample::read`]). A sample
//! decides the quality of filters only, never an answer.
//!
//! Every query is taken until the sample is full, then one in [`TAKEN_ONE_IN`], which replaces the oldest. Queries without
//! an upper bound are not taken: no filter can reject them. Memory: at most [`QUERIES_MAX`] queries of [`KEY_BYTES_MAX`]
//! bytes.
//!
//! ```text
//! bytes = "TSQ1" | number: u32 | for each: kind: u8, lower bound, upper bound | digest of all before: u64
//! bound = 0 (included) or 1 (excluded): u8 | length: u32 | key        integers are little-endian
//! ```

use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use slatedb::FilterTarget;
use slatedb::bytes::Bytes;
use slatedb::object_store::{self, ObjectStore, ObjectStoreExt, path::Path};
use tamis_filter::auto::QueryKind;
use tamis_filter::{Digester, KeyRange, Upper, mix64};

use crate::SampleError;
use crate::range::{bytes_of, key_range};

/// The number of queries in a full sample.
const QUERIES_MAX: usize = 4096;
/// Queries with longer keys are not taken.
const KEY_BYTES_MAX: usize = 1024;
/// Decides which queries a full sample takes.
const SAMPLING: u64 = 0x7461_6d69;
/// The share of the queries that a full sample takes.
pub(crate) const TAKEN_ONE_IN: u64 = 16;

const MAGIC: &[u8; 4] = b"TSQ1";
const DIGEST_BYTES: usize = 8;

/// A query that owns its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SampledQuery {
    kind: QueryKind,
    lower: Bound<Vec<u8>>,
    upper: Bound<Vec<u8>>,
}

impl SampledQuery {
    /// A query that a filter can answer.
    fn new(target: &FilterTarget) -> Option<Self> {
        let owned = |bound: &Bound<Bytes>| bound.as_ref().map(|key| key.to_vec());
        let both = |kind, key: &[u8]| (kind, Bound::Included(key.to_vec()), Bound::Included(key.to_vec()));
        let (kind, lower, upper) = match target {
            FilterTarget::Point(key) => both(QueryKind::Point, key),
            FilterTarget::Prefix(prefix) => both(QueryKind::Prefix, prefix),
            FilterTarget::Range { lower, upper } => {
                let range = key_range(bytes_of(lower), bytes_of(upper));
                match range.upper {
                    Upper::Prefix(prefix) if range.lower == Bound::Included(prefix) => {
                        both(QueryKind::Prefix, prefix)
                    }
                    _ => (QueryKind::Range, owned(lower), owned(upper)),
                }
            }
        };
        let query = Self { kind, lower, upper };
        let is_short = |bound: &Bound<Vec<u8>>| key_of(bound).is_some_and(|key| key.len() <= KEY_BYTES_MAX);
        (is_short(&query.lower) && is_short(&query.upper)).then_some(query)
    }

    pub(crate) const fn kind(&self) -> QueryKind {
        self.kind
    }

    pub(crate) fn range(&self) -> KeyRange<'_> {
        match self.kind {
            QueryKind::Prefix => KeyRange::prefix(key_of(&self.lower).unwrap_or_default()),
            _ => key_range(self.lower.as_ref().map(Vec::as_slice), self.upper.as_ref().map(Vec::as_slice)),
        }
    }
}

fn key_of(bound: &Bound<Vec<u8>>) -> Option<&[u8]> {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) => Some(key),
        Bound::Unbounded => None,
    }
}

/// Queries in the order in which they replace each other.
#[derive(Debug, Default)]
struct Ring {
    queries: Vec<Arc<SampledQuery>>,
    next: usize,
    /// Number of all queries that were ever pushed.
    pushed: u64,
}

impl Ring {
    fn push(&mut self, query: SampledQuery) {
        let query = Arc::new(query);
        match self.queries.get_mut(self.next) {
            Some(oldest) => *oldest = query,
            None => self.queries.push(query),
        }
        self.next = (self.next + 1) % QUERIES_MAX;
        self.pushed += 1;
    }
}

/// A sample of queries, shared by the policies of a process.
#[derive(Debug, Default)]
pub struct QuerySample {
    seen: AtomicU64,
    ring: Mutex<Ring>,
}

impl QuerySample {
    /// An empty sample.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of queries in the sample.
    pub fn len(&self) -> usize {
        self.locked(|ring| ring.queries.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of queries of which the sample was taken; one that probes several tables counts several times.
    pub fn seen(&self) -> u64 {
        self.seen.load(Relaxed)
    }

    /// Takes a query, or not.
    pub(crate) fn record(&self, target: &FilterTarget) {
        let index = self.seen.fetch_add(1, Relaxed);
        // The digest of the index: every n-th query would always probe the same table.
        if index >= QUERIES_MAX as u64 && !mix64(index, SAMPLING).is_multiple_of(TAKEN_ONE_IN) {
            return;
        }
        if let Some(query) = SampledQuery::new(target) {
            self.locked(|ring| ring.push(query));
        }
    }

    /// The queries at this moment, and the number of all that the sample has taken, replaced ones included.
    pub(crate) fn queries(&self) -> (Vec<Arc<SampledQuery>>, u64) {
        self.locked(|ring| (ring.queries.clone(), ring.pushed))
    }

    /// A panic of another thread leaves the ring valid: it changes by one assignment.
    fn locked<T>(&self, access: impl FnOnce(&mut Ring) -> T) -> T {
        access(&mut self.ring.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The bytes of the sample.
    pub fn encode(&self) -> Vec<u8> {
        let (queries, _) = self.queries();
        let mut bytes = MAGIC.to_vec();
        push_length(&mut bytes, queries.len());
        for query in queries {
            bytes.push(kind_number(query.kind));
            for bound in [&query.lower, &query.upper] {
                bytes.push(u8::from(matches!(bound, Bound::Excluded(_))));
                let key = key_of(bound).unwrap_or_default();
                push_length(&mut bytes, key.len());
                bytes.extend_from_slice(key);
            }
        }
        let digest = Digester::new(0).digest(&bytes);
        bytes.extend_from_slice(&digest.to_le_bytes());
        bytes
    }

    /// Adds the queries of an encoded sample.
    ///
    /// # Errors
    /// [`SampleError::Damaged`]; the sample is unchanged then.
    pub fn add_encoded(&self, bytes: &[u8]) -> Result<usize, SampleError> {
        let damaged = |reason| SampleError::Damaged { location: "encoded sample".to_owned(), reason };
        let queries = decode(bytes).map_err(damaged)?;
        let count = queries.len();
        self.locked(|ring| queries.into_iter().for_each(|query| ring.push(query)));
        Ok(count)
    }

    /// Writes the sample into an object. Choose a path outside of the database's.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn write(&self, store: &dyn ObjectStore, location: &Path) -> Result<(), SampleError> {
        store.put(location, self.encode().into()).await?;
        Ok(())
    }

    /// Adds the queries of an object, and returns their number; 0 if there is no such object.
    ///
    /// # Errors
    /// Those of the store, and [`SampleError::Damaged`]; the sample is unchanged then.
    pub async fn read(&self, store: &dyn ObjectStore, location: &Path) -> Result<usize, SampleError> {
        let bytes = match store.get(location).await {
            Ok(object) => object.bytes().await?,
            Err(object_store::Error::NotFound { .. }) => return Ok(0),
            Err(error) => return Err(error.into()),
        };
        self.add_encoded(&bytes).map_err(|error| match error {
            SampleError::Damaged { reason, .. } => {
                SampleError::Damaged { location: location.to_string(), reason }
            }
            other => other,
        })
    }
}

fn push_length(bytes: &mut Vec<u8>, length: usize) {
    let length = u32::try_from(length).expect("samples have 4,096 queries with keys of at most 1 KiB");
    bytes.extend_from_slice(&length.to_le_bytes());
}

const fn kind_number(kind: QueryKind) -> u8 {
    match kind {
        QueryKind::Point => 0,
        QueryKind::Prefix => 1,
        _ => 2,
    }
}

fn decode(bytes: &[u8]) -> Result<Vec<SampledQuery>, &'static str> {
    let (body, digest) = bytes.split_last_chunk::<DIGEST_BYTES>().ok_or("too short")?;
    let mut rest = body.strip_prefix(MAGIC).ok_or("unknown first bytes")?;
    if Digester::new(0).digest(body) != u64::from_le_bytes(*digest) {
        return Err("wrong checksum");
    }
    let cut = "ends too early";
    let count = take_length(&mut rest).ok_or(cut)?;
    let mut queries = Vec::new();
    for _ in 0..count {
        let (kind, after) = rest.split_first().ok_or(cut)?;
        rest = after;
        let kind = match kind {
            0 => QueryKind::Point,
            1 => QueryKind::Prefix,
            2 => QueryKind::Range,
            _ => return Err("unknown kind of query"),
        };
        let lower = take_bound(&mut rest).ok_or(cut)?;
        let upper = take_bound(&mut rest).ok_or(cut)?;
        queries.push(SampledQuery { kind, lower, upper });
    }
    if rest.is_empty() { Ok(queries) } else { Err("has bytes after its end") }
}

fn take_length(rest: &mut &[u8]) -> Option<usize> {
    let (length, after) = rest.split_first_chunk()?;
    *rest = after;
    usize::try_from(u32::from_le_bytes(*length)).ok()
}

fn take_bound(rest: &mut &[u8]) -> Option<Bound<Vec<u8>>> {
    let (is_excluded, after) = rest.split_first()?;
    *rest = after;
    let length = take_length(rest)?;
    let (key, after) = rest.split_at_checked(length)?;
    *rest = after;
    let key = key.to_vec();
    Some(if *is_excluded == 0 { Bound::Included(key) } else { Bound::Excluded(key) })
}

#[cfg(test)]
mod tests;
