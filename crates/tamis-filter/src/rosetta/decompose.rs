//! Decomposes a range into dyadic intervals, the largest aligned intervals inside it.

/// Calls `call` with each interval of `lower..=upper` from left to right: its node number and its level, counted from
/// the leaves (the interval is `node << level` to `((node + 1) << level) - 1`). At most two per level; does not walk
/// from the root.
pub(super) fn dyadic(lower: u64, upper: u64, mut call: impl FnMut(u64, u32)) {
    let (mut low, mut high) = (u128::from(lower), u128::from(upper) + 1);
    // The intervals on the right side are found from the leaves up, and reported from the top down.
    let mut right: [Option<u64>; 65] = [None; 65];
    let mut level = 0;
    while low < high {
        if low & 1 == 1 {
            call(low as u64, level);
            low += 1;
        }
        if high & 1 == 1 {
            high -= 1;
            if let Some(slot) = right.get_mut(level as usize) {
                *slot = Some(high as u64);
            }
        }
        low >>= 1;
        high >>= 1;
        level += 1;
    }
    for (level, node) in right.iter().enumerate().rev() {
        if let Some(node) = node {
            call(*node, level as u32);
        }
    }
}

/// The average number of intervals of each level per range: the frequencies `c` of the allocation.
pub(super) fn mean_counts(ranges: impl Iterator<Item = (u64, u64, f64)>) -> Vec<f64> {
    let mut counts = vec![0.0; 65];
    let mut total = 0.0;
    for (lower, upper, weight) in ranges {
        total += weight;
        dyadic(lower, upper, |_, level| {
            if let Some(count) = counts.get_mut(level as usize) {
                *count += weight;
            }
        });
    }
    counts.iter_mut().for_each(|count| *count /= f64::max(total, 1e-300));
    while counts.last().is_some_and(|count| *count == 0.0) {
        counts.pop();
    }
    counts
}

#[cfg(test)]
mod tests;
