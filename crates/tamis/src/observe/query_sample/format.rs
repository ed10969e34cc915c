//! The bytes of the file of sampled queries (`docs/format/samples.md`).

use tamis_filter::auto::QueryKind;

use super::{
    KIND_COUNT, LowerKind, QUERIES_MAX, QueryOutcome, SAMPLED_BOUND_BYTES_MAX, SampledQuery, SharedQueries,
    UpperKind, position_of,
};
use crate::coding::{Decoder, checksum, put_bytes, put_u32, put_u64, put_varint};

/// The first bytes: "TMsm".
const MAGIC: u32 = u32::from_le_bytes(*b"TMsm");
const VERSION: u32 = 4;
/// The least bytes of a query and of a keyspace.
const QUERY_BYTES_MIN: usize = 9;
const KEYSPACE_BYTES_MIN: usize = KIND_COUNT + 3;
/// The greatest size of a file.
pub(crate) const FILE_BYTES_MAX: usize = 16 << 20;

/// The sample of one keyspace, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct StoredSample {
    pub(crate) keyspace: u32,
    /// Numbers of queries, by [`position_of`].
    pub(crate) seen: [u64; KIND_COUNT],
    pub(crate) too_long: u64,
    /// The oldest first.
    pub(crate) queries: SharedQueries,
}

/// The kinds by [`position_of`].
const KINDS: [QueryKind; KIND_COUNT] =
    [QueryKind::Point, QueryKind::Range, QueryKind::Prefix, QueryKind::SeekForward, QueryKind::SeekBackward];

/// The bytes of a file. If they would exceed the limit, each keyspace keeps its newest queries only.
pub(crate) fn encode(database_id: u64, samples: &[StoredSample]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_u32(&mut bytes, MAGIC);
    put_u32(&mut bytes, VERSION);
    put_u64(&mut bytes, database_id);
    put_varint(&mut bytes, samples.len() as u64);
    let query_bytes_max = FILE_BYTES_MAX / 2 / samples.len().max(1);
    for sample in samples {
        put_varint(&mut bytes, sample.keyspace.into());
        sample.seen.iter().for_each(|seen| put_varint(&mut bytes, *seen));
        put_varint(&mut bytes, sample.too_long);
        let mut length = 0;
        let is_kept = |query: &&SampledQuery| {
            length += query.bytes.len() + 4 * QUERY_BYTES_MIN;
            length <= query_bytes_max
        };
        let queries: Vec<&SampledQuery> = sample.queries.iter().collect();
        let kept = queries.iter().copied().rev().take_while(is_kept).count();
        put_varint(&mut bytes, kept as u64);
        for query in queries.iter().skip(queries.len() - kept) {
            put_query(&mut bytes, query);
        }
    }
    let sum = checksum(0, &bytes);
    put_u64(&mut bytes, sum);
    bytes
}

fn put_query(bytes: &mut Vec<u8>, query: &SampledQuery) {
    bytes.extend([position_of(query.kind) as u8, query.lower as u8, query.upper as u8]);
    put_varint(bytes, query.weight.into());
    for count in [query.outcome.rejected, query.outcome.there, query.outcome.nothing_there] {
        put_varint(bytes, count.into());
    }
    let (lower, upper) = query.bounds();
    put_bytes(bytes, lower);
    put_bytes(bytes, upper);
}

/// The samples of a file, or the reason why it can't be used.
pub(crate) fn decode(database_id: u64, bytes: &[u8]) -> Result<Vec<StoredSample>, String> {
    // The checksum is at the end.
    let covered_length = bytes.len().checked_sub(8).ok_or("it is too short")?;
    let (covered, sum) = bytes.split_at_checked(covered_length).ok_or("it is too short")?;
    let mut header = Decoder::new(covered);
    match (header.take_u32(), header.take_u32(), header.take_u64()) {
        (Some(MAGIC), Some(VERSION), Some(id)) if id == database_id => {}
        (Some(MAGIC), Some(VERSION), Some(_)) => return Err("it is of another store".to_owned()),
        (Some(MAGIC), Some(version), _) => {
            return Err(format!("its version is {version}; this program knows version {VERSION}"));
        }
        _ => return Err("it does not begin as a file of sampled queries".to_owned()),
    }
    if Decoder::new(sum).take_u64() != Some(checksum(0, covered)) {
        return Err("its checksum is wrong".to_owned());
    }
    take_samples(&mut header).ok_or_else(|| "its checksum is right, but its content is invalid".to_owned())
}

/// A number of items of at least `bytes_min` bytes each, which must fit into the rest.
fn take_count(source: &mut Decoder<'_>, bytes_min: usize) -> Option<usize> {
    let count = usize::try_from(source.take_varint()?).ok()?;
    (count <= source.rest().len() / bytes_min).then_some(count)
}

fn take_samples(source: &mut Decoder<'_>) -> Option<Vec<StoredSample>> {
    let count = take_count(source, KEYSPACE_BYTES_MIN)?;
    let mut samples = Vec::with_capacity(count);
    for _ in 0..count {
        let mut sample =
            StoredSample { keyspace: u32::try_from(source.take_varint()?).ok()?, ..StoredSample::default() };
        for seen in &mut sample.seen {
            *seen = source.take_varint()?;
        }
        sample.too_long = source.take_varint()?;
        let query_count =
            take_count(source, QUERY_BYTES_MIN).filter(|query_count| *query_count <= QUERIES_MAX)?;
        sample.queries = (0..query_count).map(|_| take_query(source)).collect::<Option<_>>()?;
        samples.push(sample);
    }
    source.is_empty().then_some(samples)
}

fn take_query(source: &mut Decoder<'_>) -> Option<SampledQuery> {
    let kind = *KINDS.get(usize::from(source.take_u8()?))?;
    let lower_kinds = [LowerKind::Open, LowerKind::Included, LowerKind::Excluded];
    let lower = *lower_kinds.get(usize::from(source.take_u8()?))?;
    let upper_kinds =
        [UpperKind::Open, UpperKind::Included, UpperKind::Excluded, UpperKind::Prefix, UpperKind::Point];
    let upper = *upper_kinds.get(usize::from(source.take_u8()?))?;
    let weight = u32::try_from(source.take_varint()?).ok().filter(|weight| *weight > 0)?;
    let mut take = || u16::try_from(source.take_varint()?).ok();
    let outcome = QueryOutcome { rejected: take()?, there: take()?, nothing_there: take()? };
    let (lower_bytes, upper_bytes) = (source.take_bytes()?, source.take_bytes()?);
    if lower_bytes.len().max(upper_bytes.len()) > SAMPLED_BOUND_BYTES_MAX {
        return None;
    }
    let lower_length = u16::try_from(lower_bytes.len()).ok()?;
    let bytes = [lower_bytes, upper_bytes].concat().into_boxed_slice();
    Some(SampledQuery { bytes, lower_length, lower, upper, kind, weight, outcome })
}

#[cfg(test)]
mod tests;
