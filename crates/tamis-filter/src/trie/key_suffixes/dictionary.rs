//! Suffixes that many keys share, such as word endings: one byte per leaf selects one of the 255 most frequent suffixes.
//!
//! ```text
//! codes     u8 per leaf: the number of a frequent suffix, or 255 for another; padded with zeros to whole lines of 64 bytes
//! ranks     per line: u32 others before it
//! frequent  256 slots of 16 bytes: length, suffix, zeros; the last one is empty
//! others    for each of them its start in the pool, packed in as many bits as the greatest needs
//! pool      length (u8) and bytes of each distinct other suffix
//! ```
//!
//! The frequent suffixes are few enough to stay in the L1 cache, so most leaves cost only the line of their code.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use tamis_bits::kernel::{self, Steps, Task};
use tamis_bits::packed::{self, PackedInts, PackedVec};
use tamis_bits::prefetch;

use super::{DICTIONARY, StoredSuffix, SuffixCounts, SuffixEncoding};

const LINE: usize = 64;
const RANK_BYTES: usize = 4;
/// The code of suffixes that are not frequent, and the number of frequent ones.
const OTHER: u8 = u8::MAX;
const SLOT_BYTES: usize = 16;
const SLOTS_BYTES: usize = (OTHER as usize + 1) * SLOT_BYTES;
/// Longest suffix in a slot; in the pool it is 255.
const SLOT_MAX: usize = SLOT_BYTES - 1;
/// Number of evenly spaced suffixes that are sampled before all are counted, and the maximal number of distinct ones
/// among them.
const SAMPLE: usize = 4096;
const SAMPLE_DISTINCT_MAX: usize = SAMPLE / 2;

/// Starts of the parts.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct DictionaryLayout {
    leaf_count: usize,
    ranks: usize,
    frequent: usize,
    others: usize,
    other_count: u64,
    width: u32,
    pool: usize,
    end: usize,
}

/// Bits of an offset in a pool of this size.
const fn width(pool_bytes: u32) -> u32 {
    u32::BITS - pool_bytes.leading_zeros()
}

impl DictionaryLayout {
    pub(super) fn new(leaf_count: u64, counts: SuffixCounts) -> Option<Self> {
        let leaf_count = usize::try_from(leaf_count).ok()?;
        let (lines, width) = (leaf_count.div_ceil(LINE), width(counts.short_bytes));
        let ranks = lines.checked_mul(LINE)?;
        let frequent = ranks.checked_add(lines.checked_mul(RANK_BYTES)?)?;
        let others = frequent.checked_add(SLOTS_BYTES)?;
        let other_bytes = usize::try_from(packed::encoded_bytes(width, counts.long_bytes)?).ok()?;
        let pool = others.checked_add(other_bytes)?;
        let end = pool.checked_add(counts.short_bytes as usize)?;
        Some(Self { leaf_count, ranks, frequent, others, other_count: counts.long_bytes, width, pool, end })
    }

    pub(super) const fn bytes(&self) -> usize {
        self.end
    }

    /// Start of the suffix of a leaf that is not frequent.
    #[inline(never)]
    fn other(&self, bytes: &[u8], leaf: usize) -> Option<usize> {
        let (lines, _) = bytes.get(..self.ranks)?.as_chunks::<LINE>();
        let (ranks, _) = bytes.get(self.ranks..self.frequent)?.as_chunks::<RANK_BYTES>();
        let (line, rank) = (lines.get(leaf / LINE)?, ranks.get(leaf / LINE)?);
        let before = kernel::run(CountOthers { line, place: leaf % LINE });
        let number = u64::from(u32::from_le_bytes(*rank)) + u64::from(before);
        let (places, _) = PackedInts::open(bytes.get(self.others..self.pool)?, self.width, self.other_count)?;
        let start = self.pool.checked_add(usize::try_from(places.get(number)).ok()?)?;
        (start < self.end).then_some(start)
    }
}

impl SuffixEncoding for DictionaryLayout {
    const IS_IN_LEAF_ORDER: bool = false;

    #[inline(always)]
    fn slot<'a>(&self, bytes: &'a [u8], leaf: u64, _: usize) -> Option<StoredSuffix<'a>> {
        let leaf = usize::try_from(leaf).ok().filter(|leaf| *leaf < self.leaf_count)?;
        let code = *bytes.get(leaf)?;
        let start = if code == OTHER {
            self.other(bytes, leaf)?
        } else {
            self.frequent + usize::from(code) * SLOT_BYTES
        };
        let (length, rest) = bytes.get(start..)?.split_first()?;
        Some(StoredSuffix { suffix: rest, length: Some(usize::from(*length)) })
    }

    #[inline(always)]
    fn prefetch(&self, bytes: &[u8], leaf: u64) {
        prefetch(bytes, leaf as usize);
    }

    #[inline(always)]
    fn prefetch_near(&self, _: &[u8], _: u64, _: usize) {}
}

/// Counts the others before an index in a line.
struct CountOthers<'a> {
    line: &'a [u8; LINE],
    place: usize,
}

impl Task for CountOthers<'_> {
    type Output = u32;

    #[inline(always)]
    fn run<S: Steps>(self, steps: S) -> u32 {
        (steps.equal_mask(self.line, OTHER) & ((1 << self.place) - 1)).count_ones()
    }
}

/// The distinct suffixes of an index and their counts.
struct Census<'t> {
    /// For each leaf the number of its suffix.
    leaves: Vec<u32>,
    /// Count and bytes of each suffix, by its number.
    suffixes: Vec<(u64, &'t [u8])>,
}

impl<'t> Census<'t> {
    /// `None` if the suffixes differ too much.
    fn take(suffixes: impl Iterator<Item = &'t [u8]> + Clone, count: usize) -> Option<Self> {
        if count < SAMPLE {
            return None;
        }
        let sample: HashSet<&[u8]> = suffixes.clone().step_by(count / SAMPLE).collect();
        if sample.len() > SAMPLE_DISTINCT_MAX {
            return None;
        }
        let mut numbers: HashMap<&[u8], u32> = HashMap::new();
        let mut census = Self { leaves: Vec::with_capacity(count), suffixes: Vec::new() };
        for suffix in suffixes {
            let number = *numbers.entry(suffix).or_insert_with(|| {
                census.suffixes.push((0, suffix));
                census.suffixes.len() as u32 - 1
            });
            if let Some((count, _)) = census.suffixes.get_mut(number as usize) {
                *count += 1;
            }
            census.leaves.push(number);
        }
        debug_assert_eq!(census.leaves.len(), count, "as many suffixes as leaves");
        Some(census)
    }

    /// The numbers of the frequent suffixes in the order of their codes, then those of the others. Suffixes that do not
    /// fit in a slot are others, however frequent they are.
    fn order(&self) -> (Vec<u32>, Vec<u32>) {
        let suffix = |number: &u32| self.suffixes.get(*number as usize).copied().unwrap_or_default();
        let mut frequent: Vec<u32> = (0..self.suffixes.len() as u32).collect();
        frequent.sort_unstable_by_key(|number| {
            let (count, suffix) = suffix(number);
            (suffix.len() > SLOT_MAX, Reverse(count), suffix)
        });
        let short_count = frequent.partition_point(|number| suffix(number).1.len() <= SLOT_MAX);
        let others = frequent.split_off(short_count.min(usize::from(OTHER)));
        (frequent, others)
    }
}

/// Appends suffixes in the order of their leaves, if that takes fewer than `bytes_max` bytes.
pub(super) fn encode<'t>(
    target: &mut Vec<u8>,
    suffixes: impl Iterator<Item = &'t [u8]> + Clone,
    count: usize,
    bytes_max: usize,
) -> Option<SuffixCounts> {
    let census = Census::take(suffixes, count)?;
    let (frequent, others) = census.order();
    let mut pool = Vec::new();
    // For each number its code, or that of others with the start in the pool.
    let mut places = vec![(OTHER, 0); census.suffixes.len()];
    let mut other_count = 0;
    for number in others {
        let (count, suffix) = *census.suffixes.get(number as usize)?;
        *places.get_mut(number as usize)? = (OTHER, pool.len() as u64);
        other_count += count;
        pool.push(u8::try_from(suffix.len()).ok()?);
        pool.extend_from_slice(suffix);
    }
    let short_bytes = u32::try_from(pool.len()).ok()?;
    let counts = SuffixCounts { short_bytes, long_bytes: other_count, length_bits: DICTIONARY };
    let layout = DictionaryLayout::new(count as u64, counts).filter(|layout| layout.bytes() < bytes_max)?;
    let mut slots = Vec::with_capacity(SLOTS_BYTES);
    for (code, number) in frequent.into_iter().enumerate() {
        let (_, suffix) = *census.suffixes.get(number as usize)?;
        places.get_mut(number as usize)?.0 = code as u8;
        slots.push(suffix.len() as u8);
        slots.extend_from_slice(suffix);
        slots.resize(slots.len().next_multiple_of(SLOT_BYTES), 0);
    }
    slots.resize(SLOTS_BYTES, 0);
    let (mut codes, mut ranks) = (Vec::with_capacity(layout.ranks), Vec::new());
    let mut starts = PackedVec::new(layout.width);
    for (leaf, number) in census.leaves.iter().enumerate() {
        if leaf % LINE == 0 {
            ranks.extend_from_slice(&(starts.len() as u32).to_le_bytes());
        }
        let (code, start) = *places.get(*number as usize)?;
        codes.push(code);
        if code == OTHER {
            starts.push(start);
        }
    }
    codes.resize(layout.ranks, 0);
    [codes, ranks, slots].iter().for_each(|part| target.extend_from_slice(part));
    starts.encode(target);
    target.extend_from_slice(&pool);
    Some(counts)
}
