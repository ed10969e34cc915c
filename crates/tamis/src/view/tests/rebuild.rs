//! Views that are rebuilt from an old view and new runs have the entries of views that are built from scratch, and answer like them.

use std::collections::{BTreeMap, HashSet};

use super::{
    model::{check, with_segments},
    *,
};
use crate::view::check::check_view;

/// An entry as a view describes it.
#[derive(Debug, PartialEq, Eq)]
struct EntryOf {
    run: usize,
    ordinal: u32,
    kind: u8,
    is_old_version: bool,
    difference: u32,
    infix: u8,
}

/// All entries of a view, in order. The ordinals of the first entries of pages are those that the page index has.
fn entries_of(view: &View) -> Vec<EntryOf> {
    let mut entries = Vec::new();
    let mut counts = vec![0; view.runs().len()];
    for number in 0..view.page_count() {
        let page = view.page(number, view.parse(number).unwrap());
        let stored: Vec<u32> = (0..counts.len()).map(|run| view.index.position(number, run)).collect();
        assert_eq!(stored, counts, "positions of page {number}");
        let mut entry = 0;
        for segment in 0..page.layout.segment_count() {
            for slot in 0..page.segment_length(segment) {
                let run = page.run(segment, slot);
                entries.push(EntryOf {
                    run,
                    ordinal: counts[run],
                    kind: page.kind(segment, slot),
                    is_old_version: page.is_old_version(entry),
                    difference: page.difference(entry),
                    infix: page.infix(entry),
                });
                counts[run] += 1;
                entry += 1;
            }
        }
    }
    entries
}

/// The pages by the number of their first entry and of their entries, with their separators.
fn pages_of(view: &View) -> BTreeMap<(u64, u64), (Vec<u8>, Vec<u8>)> {
    let place = |number| (view.index.entries_before(number), view.record(number).entry_count);
    let content = |number| {
        let (prefix, suffix) = view.index.separator(number);
        (view.page_bytes(number).to_vec(), [prefix, suffix].concat())
    };
    (0..view.page_count()).map(|number| (place(number), content(number))).collect()
}

/// How many pages of rebuilt views were compared with those of views from scratch.
#[derive(Debug, Default)]
struct Compared {
    /// Views without a copied page: they are equal.
    views: usize,
    /// Written pages with the entries of a page from scratch.
    pages: usize,
}

/// Compares a view that was rebuilt from `old` with one from scratch: all entries, and the bytes of all pages with equal entries that
/// were not copied.
fn assert_equal(old: &View, rebuilt: &View, scratch: &View, copied_pages: u64, compared: &mut Compared) {
    assert!(entries_of(rebuilt) == entries_of(scratch), "the entries are not those of a view from scratch");
    let counts = |view: &View| (view.key_count(), view.live_count(), view.largest_sequence());
    assert_eq!(counts(rebuilt), counts(scratch));
    let (found, expected) = (pages_of(rebuilt), pages_of(scratch));
    if copied_pages == 0 {
        assert!(found == expected, "no page was copied, and some differ from those of a view from scratch");
        compared.views += 1;
    }
    let copied: HashSet<&[u8]> = (0..old.page_count()).map(|number| old.page_bytes(number)).collect();
    for (place, page) in found.iter().filter(|(_, (bytes, _))| !copied.contains(bytes.as_slice())) {
        if let Some(expected) = expected.get(place) {
            assert!(page == expected, "the page at {place:?} is not that of a view from scratch");
            compared.pages += 1;
        }
    }
}

fn assert_rebuilt(old: &Sample, (sample, copied_pages): &(Sample, u64), random: &mut SplitMix64) -> Compared {
    let scratch = build(*sample.view.options(), &sample.runs).unwrap();
    let scratch = open(&scratch).unwrap();
    let mut compared = Compared::default();
    assert_equal(&old.view, &sample.view, &scratch, *copied_pages, &mut compared);
    let faults = check_view(&sample.view, &sample.runs).unwrap();
    assert!(faults.is_empty(), "{faults:?}");
    check(sample, random, 60);
    compared
}

#[test]
fn a_rebuilt_view_of_hostile_keys_equals_one_from_scratch() {
    let (mut views, mut pages) = (0, 0);
    for seed in 0..60 {
        let mut random = SplitMix64::new(seed);
        let entry_count = [0, 1, 5, 40, 300, 3_000][seed as usize % 6];
        let distinct: Vec<_> =
            (0..1 + random.index(entry_count + 1)).map(|_| hostile_key(&mut random)).collect();
        let mut pick = SplitMix64::new(seed + 1_000);
        let mut keys = |count: usize, random: &mut SplitMix64| -> Vec<Vec<u8>> {
            let key = |_| match random.index(3) {
                0 => hostile_key(random),
                _ => distinct[pick.index(distinct.len())].clone(),
            };
            (0..count).map(key).collect()
        };
        let old = keys(entry_count, &mut random);
        // New runs have older entries, too: sequence numbers 1,000 to 4,000 are the old ones.
        let runs = distribute_from(&mut random, 1_000, 3, old.into_iter());
        let mut sample = Sample::new(with_segments([16, 32, 64][random.index(3)]), runs);
        for first in [10_000, 1, 20_000] {
            let count = random.index(1 + entry_count / 4) + 1;
            let new = keys(count.min(900), &mut random);
            let run_count = 1 + random.index(5);
            let new = distribute_from(&mut random, first, run_count, new.into_iter());
            let rebuilt = sample.rebuild(new);
            let compared = assert_rebuilt(&sample, &rebuilt, &mut random);
            views += compared.views;
            pages += compared.pages;
            sample = rebuilt.0;
        }
    }
    assert!(views > 100 && pages > 200, "{views} views and {pages} pages were compared");
}

#[test]
fn pages_without_new_keys_are_copied_and_not_read() {
    let mut random = SplitMix64::new(2);
    let old = (0..40_000_u64).map(|n| (n * 10).to_be_bytes().to_vec());
    let sample = Sample::new(with_segments(32), distribute(&mut random, 8, old));
    sample.take_read_count();
    let new: Vec<_> = (0..500_u64).map(|n| (100_005 + 10 * n).to_be_bytes().to_vec()).collect();
    let rebuilt = sample.rebuild(distribute_from(&mut random, 100_000, 1, new.into_iter()));
    let read_count = sample.take_read_count();
    assert!(rebuilt.1 + 4 >= 40_000 / 512, "{:?}", rebuilt.1);
    assert!(read_count < 3 * 500, "{read_count} keys read for 500 new ones");
    assert_rebuilt(&sample, &rebuilt, &mut random);
}

#[test]
fn a_new_key_costs_less_than_a_key_of_the_old_runs() {
    const NEW_COUNT: usize = 5_000;
    let mut random = SplitMix64::new(12);
    let sample = Sample::new(
        with_segments(32),
        distribute(&mut random, 8, even_keys(&mut SplitMix64::new(1), 40_000).into_iter()),
    );
    sample.take_read_count();
    let new = even_keys(&mut random, NEW_COUNT).into_iter();
    let rebuilt = sample.rebuild(distribute_from(&mut random, 100_000, 1, new));
    // The keys of new segments, and half of the keys after new ones.
    let read_count = sample.take_read_count() as usize;
    assert!(read_count < NEW_COUNT, "{read_count} old keys were read for {NEW_COUNT} new ones");
    assert_rebuilt(&sample, &rebuilt, &mut random);
}

#[test]
fn a_rebuild_without_new_runs_copies_all_pages() {
    let mut random = SplitMix64::new(3);
    let keys: Vec<_> = (0..3_000).map(|_| hostile_key(&mut random)).collect();
    let sample = Sample::new(with_segments(16), distribute(&mut random, 4, keys.into_iter()));
    sample.take_read_count();
    let rebuilt = sample.rebuild(vec![Vec::new()]);
    assert_eq!(sample.take_read_count(), 0);
    assert_rebuilt(&sample, &rebuilt, &mut random);
}

#[test]
fn a_key_with_many_versions_gets_more() {
    let mut random = SplitMix64::new(4);
    let keys = |count: u64| {
        (0..count).map(|n| if n % 50 == 0 { format!("k{n}").into_bytes() } else { b"k2".to_vec() })
    };
    let mut sample = Sample::new(with_segments(16), distribute_from(&mut random, 5_000, 3, keys(4_000)));
    for (first, count) in [(20_000, 3), (1, 700), (30_000, 20)] {
        let rebuilt = sample.rebuild(distribute_from(&mut random, first, 2, keys(count)));
        assert_rebuilt(&sample, &rebuilt, &mut random);
        sample = rebuilt.0;
    }
}

#[test]
fn repeated_rebuilds_keep_pages_large() {
    let mut random = SplitMix64::new(8);
    let mut sample = Sample::new(
        with_segments(32),
        distribute(&mut random, 2, even_keys(&mut SplitMix64::new(1), 20_000).into_iter()),
    );
    for round in 0..12 {
        let keys = even_keys(&mut random, 100).into_iter();
        sample = sample.rebuild(distribute_from(&mut random, 100_000 + 1_000 * round, 1, keys)).0;
    }
    let scratch = build(*sample.view.options(), &sample.runs).unwrap().len() as f64;
    let ratio = sample.view.file_bytes() as f64 / scratch;
    assert!(ratio < 1.25, "{ratio} times the size of a view from scratch");
}

#[test]
fn copied_pages_have_selectors_for_the_runs_of_the_old_view() {
    // One more run than a selector of 4 or 5 bits can name, with keys in two distant pages; the pages between are copied.
    for old_runs in [16, 32] {
        let mut random = SplitMix64::new(9);
        let old = (0..40_000_u64).map(|n| (n * 10).to_be_bytes().to_vec());
        let sample = Sample::new(with_segments(32), distribute(&mut random, old_runs, old));
        let near = |start: u64| (0..50).map(move |n| (start + 10 * n + 5).to_be_bytes().to_vec());
        let new = near(50_000).chain(near(100_000)).chain(near(300_000));
        let rebuilt = sample.rebuild(distribute_from(&mut random, 100_000, 1, new));
        assert!(rebuilt.1 > 20, "{:?}", rebuilt.1);
        assert_rebuilt(&sample, &rebuilt, &mut random);
    }
}
