//! The state of one query across filters: its key or bounds, and the digests computed so far.
//!
//! A [`Probe`] computes its digest when the first filter needs it and never again: a lookup that the memtable answers
//! computes none, a lookup over any number of tables computes one. A [`RangeProbe`] caches digests of prefixes where that is faster
//! than to compute them again: of the first few, and of the last one of more than 64 bits of the lower bound.
//!
//! Both belong to one query on one thread (`Send`, not `Sync`). Tests and statistics read their counters.

use std::cell::{Cell, OnceCell};

use tamis_bits::key_head;

use crate::hash::length_mark;
use crate::{Digester, KeyRange};

/// A key to look up, and its digest.
#[derive(Debug, Clone)]
pub struct Probe<'a> {
    key: &'a [u8],
    digester: &'a Digester,
    // All fields below are zero in a new probe, which two vector stores initialise: batches create many probes.
    digest: Cell<u64>,
    prefixes: [Cell<PrefixMemo>; 2],
    /// Digests of prefixes, and digests with other seeds.
    other_digest_count: Cell<u32>,
    probe_count: Cell<u32>,
    has_digest: Cell<bool>,
}

/// Longest key whose digest is computed inline.
const QUICK_BYTES: usize = 16;

impl<'a> Probe<'a> {
    /// A key, not hashed yet.
    #[inline]
    pub const fn new(key: &'a [u8], digester: &'a Digester) -> Self {
        Self {
            key,
            digester,
            digest: Cell::new(0),
            prefixes: [const { Cell::new(PrefixMemo::NONE) }; 2],
            other_digest_count: Cell::new(0),
            probe_count: Cell::new(0),
            has_digest: Cell::new(false),
        }
    }

    /// The key.
    #[inline]
    pub const fn key(&self) -> &'a [u8] {
        self.key
    }

    /// The digest of the key under a filter's seed; computed once for the seed of the database.
    #[inline]
    pub fn digest(&self, seed: u64) -> u64 {
        if seed != self.digester.seed() {
            return self.foreign_digest(seed);
        }
        self.own_digest()
    }

    /// The digest of the key under the seed of the database.
    #[inline(always)]
    pub(crate) fn own_digest(&self) -> u64 {
        if !self.has_digest.get() {
            self.set_digest(self.digester.digest(self.key));
        }
        self.digest.get()
    }

    /// [`Probe::digest`] if it is already computed, or if the key is short enough to compute it inline.
    #[inline(always)]
    pub(crate) fn quick_digest(&self, seed: u64) -> Option<u64> {
        if seed != self.digester.seed() {
            return None;
        }
        if !self.has_digest.get() {
            if self.key.len() > QUICK_BYTES {
                return None;
            }
            self.set_digest(self.digester.digest(self.key));
        }
        Some(self.digest.get())
    }

    #[inline(always)]
    fn set_digest(&self, digest: u64) {
        self.digest.set(digest);
        self.has_digest.set(true);
    }

    #[cold]
    fn foreign_digest(&self, seed: u64) -> u64 {
        self.add_digests(1);
        Digester::new(seed).digest(self.key)
    }

    /// The digest of the key's first bits ([`Digester::prefix_digest`]). The digests of the last two lengths are
    /// cached: a filter uses at most two.
    pub fn prefix_digest(&self, seed: u64, bit_count: u32) -> u64 {
        cached_prefix_digest(&self.prefixes, self.digester, seed, self.key, bit_count, || self.add_digests(1))
    }

    /// [`Probe::digest`] of a key of eight bytes under the seed of the query.
    #[inline(always)]
    pub(crate) fn quick_word_digest(&self, seed: u64, word: u64) -> Option<u64> {
        if seed != self.digester.seed() {
            return None;
        }
        if !self.has_digest.get() {
            self.set_digest(self.digester.head_digest::<8>(word));
        }
        Some(self.digest.get())
    }

    /// [`Probe::prefix_digest`] under the seed of the query, of at most 64 bits, whose other bits are zero in the word; `None` if that
    /// of another length was computed first.
    #[inline(always)]
    pub(crate) fn quick_prefix_digest(&self, seed: u64, word: u64, bit_count: u32) -> Option<u64> {
        let [first, _] = &self.prefixes;
        let (known, length) = (first.get(), u64::from(bit_count) + 1);
        if seed != self.digester.seed() {
            return None;
        }
        if known.length != 0 {
            return (known.length == length).then_some(known.digest);
        }
        let digest = self.digester.short_digest(word, bit_count.div_ceil(8)) ^ length_mark(bit_count);
        first.set(PrefixMemo { digest, length });
        self.add_digests(1);
        Some(digest)
    }

    /// The digest function of the query.
    #[inline]
    pub(crate) const fn digester(&self) -> &'a Digester {
        self.digester
    }

    /// Number of digests computed for this query.
    pub const fn digest_count(&self) -> u32 {
        self.other_digest_count.get() + self.has_digest.get() as u32
    }

    /// Number of steps that filters took for this query: a probe of a Bloom filter is one step.
    pub const fn probe_count(&self) -> u32 {
        self.probe_count.get()
    }

    /// Counts steps; called by readers.
    #[inline]
    pub fn add_probes(&self, count: u32) {
        self.probe_count.set(self.probe_count.get().wrapping_add(count));
    }

    /// Counts a digest; called by readers that hash the key themselves.
    #[inline]
    pub fn add_digests(&self, count: u32) {
        self.other_digest_count.set(self.other_digest_count.get().wrapping_add(count));
    }
}

/// The digest of the prefix of one key, of one length, under the seed of the database.
#[derive(Debug, Clone, Copy)]
struct PrefixMemo {
    digest: u64,
    /// Bits of the prefix plus one; 0 if the entry is empty.
    length: u64,
}

impl PrefixMemo {
    const NONE: Self = Self { digest: 0, length: 0 };
}

/// `memos`: the last used length comes first.
fn cached_prefix_digest(
    memos: &[Cell<PrefixMemo>],
    digester: &Digester,
    seed: u64,
    key: &[u8],
    bit_count: u32,
    count: impl FnOnce(),
) -> u64 {
    if seed != digester.seed() {
        count();
        return Digester::new(seed).prefix_digest(key, bit_count);
    }
    let length = u64::from(bit_count) + 1;
    if let Some(known) = memos.iter().map(Cell::get).find(|known| known.length == length) {
        return known.digest;
    }
    count();
    let digest = digester.prefix_digest(key, bit_count);
    let mut next = PrefixMemo { digest, length };
    for memo in memos {
        next = memo.replace(next);
    }
    digest
}

/// Digests of prefixes that are cached without an allocation: more than a prefix Bloom filter uses.
const FRONT_SLOTS: usize = 4;
/// A prefix or key (its last 64 bits and its length) and its digest under the seed of the database.
#[derive(Debug, Clone, Copy)]
struct WordMemo {
    word: u64,
    digest: u64,
    /// Bits plus one, with bit 31 set for a key of more than 64 bits; 0 if the slot is empty.
    length: u32,
}

impl WordMemo {
    const NONE: Self = Self { word: 0, digest: 0, length: 0 };
}

/// A range to look up, and the digests of prefixes that filters used.
#[derive(Debug)]
pub struct RangeProbe<'a> {
    range: KeyRange<'a>,
    digester: &'a Digester,
    point: OnceCell<Option<Probe<'a>>>,
    lower: Cell<PrefixMemo>,
    front: [Cell<WordMemo>; FRONT_SLOTS],
    digest_count: Cell<u32>,
    probe_count: Cell<u32>,
}

impl<'a> RangeProbe<'a> {
    /// A range, nothing hashed yet.
    #[inline]
    pub const fn new(range: KeyRange<'a>, digester: &'a Digester) -> Self {
        Self {
            range,
            digester,
            point: OnceCell::new(),
            lower: Cell::new(PrefixMemo::NONE),
            front: [const { Cell::new(WordMemo::NONE) }; FRONT_SLOTS],
            digest_count: Cell::new(0),
            probe_count: Cell::new(0),
        }
    }

    /// The bounds as given.
    #[inline]
    pub const fn range(&self) -> &KeyRange<'a> {
        &self.range
    }

    /// The digest function of the query, for readers that hash many prefixes without caching them.
    #[inline]
    pub const fn digester(&self) -> &'a Digester {
        self.digester
    }

    /// The probe of the only key in the range, if there is exactly one.
    pub fn point(&self) -> Option<&Probe<'a>> {
        self.point.get_or_init(|| self.range.as_point().map(|key| Probe::new(key, self.digester))).as_ref()
    }

    /// The digest of a prefix of at most 64 bits, given as the top bits of a word (big-endian key bytes, see
    /// [`Digester::word_prefix_digest`]); cached for the next filter of the database.
    #[inline]
    pub fn word_prefix_digest(&self, seed: u64, word: u64, bit_count: u32) -> u64 {
        let word = if bit_count == 0 { 0 } else { word & (u64::MAX << (64 - bit_count.min(64))) };
        if seed != self.digester.seed() {
            return self.foreign_word_digest(seed, word, bit_count);
        }
        let quick = self.quick_word_digest(0, word, bit_count);
        quick.unwrap_or_else(|| self.other_word_digest(word, bit_count))
    }

    /// The digest of a prefix whose other bits are zero in the word, under the seed of the query; the `index`-th that the caller needs. `None`
    /// if another one has its place in the cache.
    #[inline(always)]
    pub(crate) fn quick_word_digest(&self, index: usize, word: u64, bit_count: u32) -> Option<u64> {
        let slot = self.front.get(index)?;
        let (known, length) = (slot.get(), bit_count.saturating_add(1));
        if known.length != 0 {
            return ((known.word, known.length) == (word, length)).then_some(known.digest);
        }
        self.add_digests(1);
        let digest = self.digester.short_digest(word, bit_count.div_ceil(8)) ^ length_mark(bit_count);
        slot.set(WordMemo { word, digest, length });
        Some(digest)
    }

    /// [`RangeProbe::word_prefix_digest`] under the seed of the database, for a word whose bits below the prefix are zero.
    #[inline(never)]
    pub(crate) fn other_word_digest(&self, word: u64, bit_count: u32) -> u64 {
        self.cached_digest(word, bit_count.saturating_add(1), |digester| {
            digester.word_prefix_digest(word, bit_count)
        })
    }

    /// The digest of a prefix, under the seed of the database: `digest` computes it. The first ones of a query are cached. `word` has the last 64
    /// bits of a longer prefix, whose others are those of the lower bound; `length` is the number of its bits plus one, with bit 31 set for a key.
    #[inline(always)]
    pub(crate) fn cached_digest(&self, word: u64, length: u32, digest: impl FnOnce(&Digester) -> u64) -> u64 {
        for slot in &self.front {
            let known = slot.get();
            if (known.word, known.length) == (word, length) {
                return known.digest;
            }
            if known.length == 0 {
                self.add_digests(1);
                let digest = digest(self.digester);
                slot.set(WordMemo { word, digest, length });
                return digest;
            }
        }
        self.add_digests(1);
        digest(self.digester)
    }

    #[cold]
    fn foreign_word_digest(&self, seed: u64, word: u64, bit_count: u32) -> u64 {
        self.add_digests(1);
        Digester::new(seed).word_prefix_digest(word, bit_count)
    }

    /// The seed of the database.
    #[inline]
    pub(crate) const fn seed(&self) -> u64 {
        self.digester.seed()
    }

    /// The digest of a prefix of any length of the lower bound; the last length above 64 bits is cached, too.
    pub fn lower_prefix_digest(&self, seed: u64, bit_count: u32) -> u64 {
        let lower = self.range.lower_bytes();
        if bit_count <= 64 {
            return self.word_prefix_digest(seed, key_head(lower), bit_count);
        }
        cached_prefix_digest(std::slice::from_ref(&self.lower), self.digester, seed, lower, bit_count, || {
            self.add_digests(1)
        })
    }

    /// Number of digests computed for this query, including those of its point.
    pub fn digest_count(&self) -> u32 {
        let point = self.point.get().and_then(Option::as_ref);
        self.digest_count.get() + point.map_or(0, Probe::digest_count)
    }

    /// Number of steps that filters took for this query, including those of its point.
    pub fn probe_count(&self) -> u32 {
        let point = self.point.get().and_then(Option::as_ref);
        self.probe_count.get().saturating_add(point.map_or(0, Probe::probe_count))
    }

    /// Counts steps; called by readers.
    #[inline]
    pub fn add_probes(&self, count: u32) {
        self.probe_count.set(self.probe_count.get().saturating_add(count));
    }

    /// Counts digests; called by readers that hash themselves.
    #[inline]
    pub fn add_digests(&self, count: u32) {
        self.digest_count.set(self.digest_count.get().saturating_add(count));
    }
}

#[cfg(test)]
mod tests;
