//! Counts the steps of work whose cost is bounded, for tests of the bound. Outside of tests it counts nothing and costs nothing.
//!
//! Each thread counts its own steps: a test that reads them opens its store with `workers: 0`.

/// The kind of work that a step belongs to.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    /// A table or run that a check of invariants reads.
    Check,
    /// A keyspace that a search for log segments reads.
    Segment,
    /// A search for the next compaction of a keyspace.
    Pick,
    /// A table that such a search reads.
    PickedTable,
    /// A node that a count of a memtable's entries visits.
    CountedNode,
    /// A partition that a search by id reads.
    FoundPartition,
    /// A memtable, run or view that a scan merges.
    MergedSource,
    /// A key of retained entries that a search for partitions to unite compares.
    ComparedRetained,
    /// A comparison of a range tombstone with the bounds of a partition.
    ComparedTombstone,
    /// A range tombstone that is cut into fragments.
    FragmentedTombstone,
    /// A partition whose L0 runs are counted to delay writers.
    CountedLevel0,
    /// A run that a search by id reads.
    SearchedRun,
}

#[cfg(test)]
const KINDS: usize = 12;

#[cfg(test)]
thread_local! {
    static COUNTS: [std::cell::Cell<usize>; KINDS] = const { [const { std::cell::Cell::new(0) }; KINDS] };
}

#[cfg(test)]
pub(crate) fn count(step: Step, count: usize) {
    COUNTS.with(|counts| {
        if let Some(total) = counts.get(step as usize) {
            total.set(total.get() + count);
        }
    });
}

#[cfg(not(test))]
#[inline]
pub(crate) const fn count(_step: Step, _count: usize) {}

/// The steps of this thread since the last call.
#[cfg(test)]
pub(crate) fn take(step: Step) -> usize {
    COUNTS.with(|counts| counts.get(step as usize).map_or(0, |total| total.replace(0)))
}
