//! Operations with encoded keys, and values to write.

use tamis_workload::{KeyForm, Operation, OperationKind, fill_value};

use crate::OperationDigest;

#[cfg(test)]
mod tests;

/// An operation and the lengths of its keys. Keys are read sequentially, so the hardware prefetcher loads them: they cost no
/// cache miss while the clock runs.
#[derive(Debug, Clone, Copy)]
struct Step {
    kind: OperationKind,
    key_length: u16,
    upper_length: u16,
    limit: u32,
}

/// The operations of one thread.
#[derive(Debug, Clone, Default)]
pub struct Part {
    steps: Vec<Step>,
    bytes: Vec<u8>,
    /// Whether the part is repeated in the background until all other parts end.
    pub(super) is_background: bool,
}

/// A decoded operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ready<'a> {
    pub(super) kind: OperationKind,
    pub(super) key: &'a [u8],
    /// The upper bound of a range.
    pub(super) upper: &'a [u8],
    pub(super) limit: u32,
}

impl Part {
    fn push(&mut self, form: KeyForm, operation: &Operation) {
        let start = self.bytes.len();
        let mut upper_length = 0;
        if operation.kind == OperationKind::Range {
            let (lower, upper) = form.bounds(operation);
            form.encode(lower, &mut self.bytes);
            let middle = self.bytes.len();
            form.encode(upper, &mut self.bytes);
            upper_length = self.bytes.len() - middle;
        } else {
            form.encode(form.number(operation.item), &mut self.bytes);
        }
        let key_length = (self.bytes.len() - start - upper_length) as u16;
        let upper_length = upper_length as u16;
        self.steps.push(Step { kind: operation.kind, key_length, upper_length, limit: operation.limit });
    }

    /// The number of operations.
    pub(super) fn len(&self) -> usize {
        self.steps.len()
    }

    /// Iterates over the operations.
    #[inline]
    pub(super) fn iter(&self) -> impl Iterator<Item = Ready<'_>> {
        let mut rest = self.bytes.as_slice();
        self.steps.iter().map(move |step| {
            let (key, behind) = rest.split_at_checked(usize::from(step.key_length)).unwrap_or_default();
            let (upper, behind) = behind.split_at_checked(usize::from(step.upper_length)).unwrap_or_default();
            rest = behind;
            Ready { kind: step.kind, key, upper, limit: step.limit }
        })
    }
}

/// The operations of all threads.
#[derive(Debug, Clone)]
pub struct Script {
    parts: Vec<Part>,
    digest: u64,
}

impl Script {
    /// Distributes the operations to `thread_count` threads round-robin: the operations do not depend on the number of threads.
    pub fn deal(operations: impl Iterator<Item = Operation>, form: KeyForm, thread_count: usize) -> Self {
        let thread_count = thread_count.max(1);
        let mut parts = vec![Part::default(); thread_count];
        for (index, operation) in operations.enumerate() {
            if let Some(part) = parts.get_mut(index % thread_count) {
                part.push(form, &operation);
            }
        }
        Self::of(parts)
    }

    /// Distributes the operations in contiguous chunks, one per thread.
    pub fn deal_chunks(operations: &[Operation], form: KeyForm, thread_count: usize) -> Self {
        let stretch = operations.len().div_ceil(thread_count.max(1)).max(1);
        let parts = operations.chunks(stretch).map(|chunk| {
            let mut part = Part::default();
            chunk.iter().for_each(|operation| part.push(form, operation));
            part
        });
        Self::of(parts.collect())
    }

    /// Adds a background thread that repeats its operations until the other threads end.
    #[must_use]
    pub fn with_background(self, operations: impl Iterator<Item = Operation>, form: KeyForm) -> Self {
        let mut parts = self.parts;
        let mut part = Part { is_background: true, ..Part::default() };
        operations.for_each(|operation| part.push(form, &operation));
        parts.push(part);
        Self::of(parts)
    }

    fn of(parts: Vec<Part>) -> Self {
        let digest = digest(parts.iter().map(|part| (part, part.len())));
        Self { parts, digest }
    }

    /// The parts, one per thread.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The number of operations.
    pub fn operation_count(&self) -> u64 {
        self.parts.iter().map(|part| part.len() as u64).sum()
    }

    /// Digest of all operations and their distribution to threads.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// Digest of the first `done` operations of each part; background parts count completely.
    pub(super) fn digest_of(&self, done: &[u64]) -> u64 {
        let counts = self.parts.iter().zip(done).map(|(part, &done)| match part.is_background {
            true => (part, part.len()),
            false => (part, part.len().min(done as usize)),
        });
        digest(counts)
    }

    /// Length of the keys; all have the same form.
    pub(super) fn key_bytes(&self) -> usize {
        self.parts.iter().find_map(|part| part.iter().next()).map_or(0, |ready| ready.key.len())
    }
}

/// Digest of the first operations of each part.
fn digest<'a>(parts: impl Iterator<Item = (&'a Part, usize)>) -> u64 {
    let mut digest = OperationDigest::default();
    for (part, count) in parts {
        digest.add(count as u64);
        for ready in part.iter().take(count) {
            digest.add(ready.kind as u64 | u64::from(ready.limit) << 8);
            digest.add_bytes(ready.key);
            digest.add_bytes(ready.upper);
        }
    }
    digest.finish()
}

/// A pool of bytes for values: half of each value is random, the other half is compressible.
#[derive(Debug, Clone)]
pub struct Values {
    pool: Vec<u8>,
    length: usize,
}

/// Size of the pool; it fits in the L2 cache.
const POOL_BYTES: usize = 1 << 18;
/// Distance of two values in the pool, so that consecutive values differ in their first bytes.
const STRIDE: usize = 61;

impl Values {
    /// Creates values of `length` bytes.
    pub fn new(length: usize, seed: u64) -> Self {
        let mut pool = vec![0; POOL_BYTES + length];
        fill_value(seed, &mut pool);
        let half = (length / 2).max(1);
        for (index, chunk) in pool.chunks_mut(half).enumerate() {
            if index % 2 == 1 {
                chunk.fill(b'.');
            }
        }
        Self { pool, length }
    }

    /// The length of the values.
    pub fn value_bytes(&self) -> usize {
        self.length
    }

    /// Returns the value of a number.
    #[inline]
    pub fn get(&self, number: usize) -> &[u8] {
        let start = number.wrapping_mul(STRIDE) % POOL_BYTES;
        self.pool.get(start..start + self.length).unwrap_or_default()
    }
}
