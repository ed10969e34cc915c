//! The bytes that neighboring keys of a view share, estimated from a sample of its keys.
//!
//! The size of a view depends on three numbers of bytes: those that all keys of a page share, those of an anchor, and those of the
//! differences that do not fit a byte. All follow from the **difference** of keys at a distance: the position of the first bit in which they
//! differ. In a sample of M of N keys, neighbors are N / M entries apart. Keys that are half as far apart share a constant number of
//! bits more if keys are spread evenly, and about as many if they have digits, letters or groups. So the difference of keys that are
//! nearer than the sample's neighbors is extrapolated from those that are further apart.

use super::{
    format::DIFFERENCE_ESCAPED,
    key_bits::{BITS_PER_BYTE, byte_of, difference},
};

/// Keys of a sample that say something about their neighbors.
const KEY_COUNT_MIN: usize = 16;
/// Keys of the sample of several runs.
const KEY_COUNT_MAX: usize = 1 << 14;
/// The distances from which the growth of the difference is measured: one key and this many.
const FAR: usize = 8;

/// Keys of some runs, in order and evenly distributed among their entries.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeySample(Vec<Vec<u8>>);

/// The bytes that keys share. Means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SharedBytes {
    /// Of all keys of the view.
    pub(super) by_all: f64,
    /// Of the keys of a page.
    pub(super) by_page: f64,
    /// Of neighbors.
    pub(super) by_neighbors: f64,
    /// The share of entries whose difference does not fit a byte.
    pub(super) escape_share: f64,
}

impl KeySample {
    /// The sample of several runs from that of each run: its number of entries, and keys in order. Runs of which more keys are
    /// known than of others give fewer of them.
    pub(crate) fn merge(runs: &[(u64, &[Vec<u8>])]) -> Self {
        let distance = |(entry_count, keys): &(u64, &[Vec<u8>])| *entry_count as f64 / keys.len() as f64;
        let runs = || runs.iter().filter(|(_, keys)| !keys.is_empty());
        let greatest = runs().map(distance).fold(1.0, f64::max);
        let picked: f64 = runs().map(|(entry_count, _)| *entry_count as f64 / greatest).sum();
        let greatest = greatest * (picked / KEY_COUNT_MAX as f64).max(1.0);
        let mut sample = Vec::new();
        for run in runs() {
            let step = greatest / distance(run);
            let picked = (0..run.1.len()).map(|number| (step * (number as f64 + 0.5)) as usize);
            sample.extend(picked.map_while(|number| run.1.get(number)).cloned());
        }
        sample.sort_unstable();
        Self(sample)
    }

    /// The shared bytes of a view with this many entries, and with this many in a page; `None` if the sample is too small.
    pub(super) fn shared_bytes(&self, entry_count: u64, page_entry_count: u64) -> Option<SharedBytes> {
        let near = self.differences(1);
        let far = mean(&self.differences(FAR))?;
        if near.len() < KEY_COUNT_MIN {
            return None;
        }
        let growth = ((mean(&near)? - far) / (FAR as f64).log2()).max(0.0);
        let distance = (entry_count as f64 / self.0.len() as f64).max(1.0);
        let nearer = growth * distance.log2();
        let by_all = self.0.first().zip(self.0.last()).and_then(|(first, last)| difference(first, last))?;
        let page_step = page_entry_count as f64 / distance;
        let in_page = |step: f64| match step {
            step if step as usize + 1 >= self.0.len() => Some(f64::from(by_all)),
            step if step >= 1.0 => mean(&self.differences(step.round() as usize)),
            step => Some(mean(&near)? - growth * step.log2()),
        };
        let by_page = bytes_of(in_page(page_step)?);
        let base = by_page * f64::from(BITS_PER_BYTE);
        let is_escaped = |found: &&u32| f64::from(**found) + nearer - base >= f64::from(DIFFERENCE_ESCAPED);
        Some(SharedBytes {
            by_all: byte_of(by_all) as f64,
            by_page,
            by_neighbors: bytes_of(mean(&near)? + nearer),
            escape_share: near.iter().filter(is_escaped).count() as f64 / near.len() as f64,
        })
    }

    /// The differences of keys that are `step` apart in the sample, without equal ones: those are versions of a key.
    fn differences(&self, step: usize) -> Vec<u32> {
        let pairs = self.0.iter().zip(self.0.iter().skip(step));
        pairs.filter_map(|(left, right)| difference(left, right)).collect()
    }
}

fn mean(numbers: &[u32]) -> Option<f64> {
    let sum: f64 = numbers.iter().copied().map(f64::from).sum();
    (!numbers.is_empty()).then(|| sum / numbers.len() as f64)
}

/// The mean number of whole bytes before bits at this mean position, which is in the middle of a byte on average.
fn bytes_of(position: f64) -> f64 {
    ((position - f64::from(BITS_PER_BYTE - 1) / 2.0) / f64::from(BITS_PER_BYTE)).max(0.0)
}
