//! Operations with their keys written out, and values to write.

use tamis_workload::{KeyForm, Operation, OperationKind, fill_value};

use crate::OperationDigest;

#[cfg(test)]
mod tests;

/// Where an operation's keys end in the bytes, and what is done with them. They are read one after the other, which the processor
/// foresees: the keys cost no miss while the clock runs.
#[derive(Debug, Clone, Copy)]
struct Step {
    kind: OperationKind,
    key_length: u16,
    upper_length: u16,
    limit: u32,
}

/// One thread's operations.
#[derive(Debug, Clone, Default)]
pub struct Part {
    steps: Vec<Step>,
    bytes: Vec<u8>,
    /// It goes on, from its beginning again and again, as long as another part does.
    pub(super) is_beside: bool,
}

/// An operation as the store sees it.
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

    /// How many operations there are.
    pub(super) fn len(&self) -> usize {
        self.steps.len()
    }

    /// The operations in order.
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
    /// Deals the operations out to `thread_count` threads: one stream, whatever the number of threads.
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

    /// The same, each thread with a stretch of its own.
    pub fn deal_stretches(operations: &[Operation], form: KeyForm, thread_count: usize) -> Self {
        let stretch = operations.len().div_ceil(thread_count.max(1)).max(1);
        let parts = operations.chunks(stretch).map(|chunk| {
            let mut part = Part::default();
            chunk.iter().for_each(|operation| part.push(form, operation));
            part
        });
        Self::of(parts.collect())
    }

    /// With one more thread that works beside the others, again and again, until they are done.
    #[must_use]
    pub fn and_beside(self, operations: impl Iterator<Item = Operation>, form: KeyForm) -> Self {
        let mut parts = self.parts;
        let mut part = Part { is_beside: true, ..Part::default() };
        operations.for_each(|operation| part.push(form, &operation));
        parts.push(part);
        Self::of(parts)
    }

    fn of(parts: Vec<Part>) -> Self {
        let digest = digest(parts.iter().map(|part| (part, part.len())));
        Self { parts, digest }
    }

    /// One part for each thread.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// How many operations there are.
    pub fn operation_count(&self) -> u64 {
        self.parts.iter().map(|part| part.len() as u64).sum()
    }

    /// Digest of all operations and of how they are dealt out.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// The same of the first `done` operations of each part, where not all were done. What works beside others is taken whole.
    pub(super) fn digest_of(&self, done: &[u64]) -> u64 {
        let counts = self.parts.iter().zip(done).map(|(part, &done)| match part.is_beside {
            true => (part, part.len()),
            false => (part, part.len().min(done as usize)),
        });
        digest(counts)
    }

    /// Bytes of a key; all are of one form.
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

/// Bytes from which values are cut: half of each does not compress, the other half does.
#[derive(Debug, Clone)]
pub struct Values {
    pool: Vec<u8>,
    length: usize,
}

/// Bytes of the pool: it stays in the second-level cache.
const POOL_BYTES: usize = 1 << 18;
/// Distance of two values in the pool, so that neighbours differ in their first bytes.
const STRIDE: usize = 61;

impl Values {
    /// Values of `length` bytes.
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

    /// Bytes of each value.
    pub fn value_bytes(&self) -> usize {
        self.length
    }

    /// A value for a number.
    #[inline]
    pub fn get(&self, number: usize) -> &[u8] {
        let start = number.wrapping_mul(STRIDE) % POOL_BYTES;
        self.pool.get(start..start + self.length).unwrap_or_default()
    }
}
