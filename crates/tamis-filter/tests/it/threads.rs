//! Threads share readers and get the answers of a single thread.

use std::sync::Barrier;

use tamis_filter::surf::SurfFilter;
use tamis_filter::trie::{TrieCursor, TrieIndex, TrieIndexBuilder};
use tamis_filter::{
    AlignedBytes, AnyFilter, Candidate, Digester, Direction, Filter, KeyRange, Probe, RangeProbe,
};

use crate::sets::{SEED, build, next};

const THREAD_COUNT: usize = 8;

fn is_shared<T: Send + Sync>() {}

#[test]
fn readers_may_be_sent_and_shared() {
    is_shared::<SurfFilter<Vec<u8>>>();
    is_shared::<SurfFilter<&[u8]>>();
    is_shared::<SurfFilter<AlignedBytes>>();
    is_shared::<AnyFilter<Vec<u8>>>();
    is_shared::<TrieIndex<Vec<u8>>>();
    is_shared::<TrieIndex<&[u8]>>();
    is_shared::<TrieIndex<AlignedBytes>>();
    is_shared::<TrieCursor<'_, Vec<u8>>>();
}

/// Integers, and some of their first bytes as separate keys.
fn keys() -> Vec<Vec<u8>> {
    let mut state = 7;
    let integers: Vec<[u8; 8]> = (0..20_000).map(|_| next(&mut state).to_be_bytes()).collect();
    let short = integers.iter().step_by(10).map(|integer| integer[..2].to_vec());
    let mut keys: Vec<Vec<u8>> = integers.iter().map(|integer| integer.to_vec()).chain(short).collect();
    keys.sort();
    keys.dedup();
    keys
}

/// Keys and strings near them.
fn strings(keys: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut state = 9;
    let near = keys.iter().step_by(7).map(|key| {
        let mut near = key.clone();
        near.truncate(1 + (next(&mut state) % 8) as usize);
        near.last_mut().into_iter().for_each(|last| *last ^= (next(&mut state) % 8) as u8);
        near
    });
    near.chain(keys.iter().step_by(5).cloned()).collect()
}

/// Runs all queries on as many threads, each of which begins at another query.
fn check<T: PartialEq + std::fmt::Debug + Send + Sync>(count: usize, ask: impl Fn(usize) -> T + Sync) {
    let alone: Vec<T> = (0..count).map(&ask).collect();
    let barrier = Barrier::new(THREAD_COUNT);
    std::thread::scope(|scope| {
        for thread in 0..THREAD_COUNT {
            let (alone, ask, barrier) = (&alone, &ask, &barrier);
            scope.spawn(move || {
                barrier.wait();
                for place in 0..count {
                    let number = (place + thread * count / THREAD_COUNT) % count;
                    assert_eq!(ask(number), alone[number], "question {number} of thread {thread}");
                }
            });
        }
    });
}

#[test]
fn threads_that_share_a_surf_get_the_answers_of_one_thread() {
    let keys = keys();
    let strings = strings(&keys);
    for spec in ["surf-base", "surf-real:bits=9", "surf-mixed:hash=5,real=11"] {
        let filter = AnyFilter::open(build(&spec.parse().unwrap(), &keys, 100.0).unwrap()).unwrap();
        let digester = Digester::new(SEED);
        check(strings.len(), |number| -> (bool, bool, Candidate, Candidate) {
            let (lower, upper) = (&strings[number], &strings[(number * 31 + 1) % strings.len()]);
            let probe = RangeProbe::new(KeyRange::closed(lower.min(upper), lower.max(upper)), &digester);
            (
                filter.may_contain(&Probe::new(lower, &digester)),
                filter.may_contain_range(&probe),
                filter.candidate(&probe, Direction::Forward),
                filter.candidate(&probe, Direction::Backward),
            )
        });
    }
}

#[test]
fn threads_that_share_an_index_get_the_answers_of_one_thread() {
    let keys = keys();
    let strings = strings(&keys);
    let mut builder = TrieIndexBuilder::new(4);
    for (number, key) in keys.iter().enumerate() {
        builder.add(key, &(number as u32).to_le_bytes()).unwrap();
    }
    let index = TrieIndex::open(builder.finish().unwrap()).unwrap();
    check(strings.len(), |number| {
        let (key, other) = (&strings[number], &strings[(number * 31 + 1) % strings.len()]);
        let values = [key, other].map(|key| index.get(key));
        let mut cursor = index.cursor();
        cursor.seek(other);
        let first = cursor.key().map(<[u8]>::to_vec);
        cursor.previous();
        (values.map(|value| value.map(<[u8]>::to_vec)), first, cursor.key().map(<[u8]>::to_vec))
    });
}
