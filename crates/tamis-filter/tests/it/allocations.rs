//! Queries of SuRFs and of the trie index allocate nothing: the allocator of this program counts allocations per
//! thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ops::Bound;

use tamis_filter::trie::{TrieIndex, TrieIndexBuilder};
use tamis_filter::{
    AnyFilter, Budget, Digester, Filter, FilterSpec, KeyRange, Probe, RangeProbe, Samples, Upper, mix64,
};

const SEED: u64 = 3;
const QUERY_COUNT: usize = 10_000;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator with a count of allocations.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: the system's allocator provides all memory and meets the contract; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    /// # Safety
    ///
    /// As for [`GlobalAlloc::alloc`].
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller guarantees the layout.
        unsafe { System.alloc(layout) }
    }

    /// # Safety
    ///
    /// As for [`GlobalAlloc::dealloc`].
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the pointer comes from `alloc`, and so from the system's allocator, with this layout.
        unsafe { System.dealloc(place, layout) }
    }
}

/// Number of allocations of a task.
fn allocations(task: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    task();
    ALLOCATIONS.get() - before
}

/// Integers, words of which some are prefixes of others, and pairs with long common prefixes.
fn key_sets() -> [Vec<Vec<u8>>; 3] {
    let integers = (0..30_000).map(|number| mix64(number, 1).to_be_bytes().to_vec()).collect();
    let word = |number: u64| format!("{:b}{}", mix64(number, 2) >> 44, ["", "s", "ing"][number as usize % 3]);
    let words = (0..20_000).map(|number| word(number / 2).into_bytes()).collect();
    let pair = |number: u64| [&mix64(number / 2, 3).to_be_bytes()[..], &[7; 400], &[number as u8]].concat();
    let mut sets: [Vec<Vec<u8>>; 3] = [integers, words, (0..6000).map(pair).collect()];
    for keys in &mut sets {
        keys.sort();
        keys.dedup();
    }
    sets
}

/// Keys and strings near them, one per query.
fn strings(keys: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let near = |number: usize| {
        let mut string = keys[number * 7 % keys.len()].clone();
        let random = mix64(number as u64, 4);
        match random % 4 {
            0 => string.push((random >> 8) as u8),
            1 => string.truncate((random >> 8) as usize % (string.len() + 1)),
            2 => string.last_mut().into_iter().for_each(|last| *last ^= 1),
            _ => {}
        }
        string
    };
    (0..QUERY_COUNT).map(near).collect()
}

/// Ranges with all kinds of bounds.
fn ranges(strings: &[Vec<u8>]) -> Vec<KeyRange<'_>> {
    strings
        .iter()
        .zip(strings.iter().cycle().skip(1))
        .enumerate()
        .map(|(number, (left, right))| {
            let (lower, upper) = (left.min(right).as_slice(), left.max(right).as_slice());
            let lower = [Bound::Included(lower), Bound::Excluded(lower), Bound::Unbounded][number % 3];
            let uppers = [Upper::Included(upper), Upper::Excluded(upper), Upper::Prefix(upper), Upper::Open];
            KeyRange { lower, upper: uppers[number / 3 % 4] }
        })
        .collect()
}

#[test]
fn the_allocator_counts() {
    assert_eq!(allocations(|| drop(std::hint::black_box(vec![1, 2, 3]))), 1);
}

#[test]
fn surf_queries_allocate_nothing() {
    for keys in key_sets() {
        let strings = strings(&keys);
        let ranges = ranges(&strings);
        for spec in ["surf-base", "surf-hash:bits=7", "surf-real:bits=9", "surf-mixed:hash=5,real=11", "surf"]
        {
            let mut builder = spec.parse::<FilterSpec>().unwrap().builder(SEED).unwrap();
            keys.iter().for_each(|key| builder.add(key).unwrap());
            let budget = Budget::bits_per_key(100.0).unwrap();
            let filter = AnyFilter::open(builder.finish(budget, Samples::NONE).unwrap()).unwrap();
            let digester = Digester::new(SEED);
            let mut found = 0;
            let count = allocations(|| {
                for (string, range) in strings.iter().zip(&ranges) {
                    let probe = RangeProbe::new(*range, &digester);
                    found += usize::from(filter.may_contain(&Probe::new(string, &digester)))
                        + usize::from(filter.may_contain_range(&probe));
                }
            });
            assert_eq!(count, 0, "{spec}");
            assert!(found > QUERY_COUNT, "{found} of all queries passed");
        }
    }
}

#[test]
fn index_queries_allocate_nothing() {
    for keys in key_sets() {
        let strings = strings(&keys);
        let mut builder = TrieIndexBuilder::new(2);
        keys.iter().for_each(|key| builder.add(key, &[1, 2]).unwrap());
        let index = TrieIndex::open(builder.finish().unwrap()).unwrap();
        let asked: Vec<&[u8]> = strings.iter().map(Vec::as_slice).collect();
        let mut found = 0;
        let count = allocations(|| found = asked.iter().filter(|key| index.get(key).is_some()).count());
        assert_eq!(count, 0);
        assert!(found > 1000, "{found} found");
    }
}
