//! The expected size of a view is within 5 % of the actual one: for keys of several forms, tombstones, tags, rebuilds and filters.

use super::{model::with_segments, *};
use crate::view::{
    page_sample::{sample_pages, window_starts},
    size::ViewEstimate,
};

const ENTRIES: u64 = 30_000;
/// Entries of a block: one of so many keys is in a sample.
const BLOCK_ENTRIES: usize = 34;

/// Makes the key of a number.
type KeyOf = fn(u64) -> Vec<u8>;

fn mixed(number: u64) -> u64 {
    tamis_bits::mix64(number.wrapping_mul(0x9e37_79b9_7f4a_7c15), 0)
}

/// A key of 8, 16 or 40 bytes, of which the first are evenly distributed.
fn even(number: u64, length: usize) -> Vec<u8> {
    let mut key = mixed(number).to_be_bytes().to_vec();
    key.resize(length, 7);
    key
}

fn words(number: u64, count: usize) -> String {
    const WORDS: [&str; 12] = [
        "ocean",
        "a",
        "river-bank",
        "stone",
        "the",
        "transport",
        "and",
        "window",
        "green",
        "administration",
        "cat",
        "zebra",
    ];
    let mut rest = mixed(number);
    let mut picked = Vec::new();
    for _ in 0..count {
        picked.push(WORDS[(rest % 12) as usize]);
        rest /= 12;
    }
    picked.join("-")
}

const FORMS: [(&str, KeyOf); 9] = [
    ("8 even bytes", |number| even(number, 8)),
    ("16 even bytes", |number| even(number, 16)),
    ("40 even bytes", |number| even(number, 40)),
    ("consecutive numbers", |number| number.to_be_bytes().to_vec()),
    ("decimal numbers", |number| format!("key/{:012}", mixed(number) % 1_000_000_000_000).into_bytes()),
    ("consecutive decimal numbers", |number| format!("user{number:020}").into_bytes()),
    ("records of users", |number| {
        format!("user/{:06}/order/{:04}", mixed(number / 20) % 1_000_000, mixed(number) % 10_000).into_bytes()
    }),
    ("addresses", |number| {
        let page = words(number, 6);
        format!("https://{}.example.com/{}/{page}-{number}", words(number % 40, 2), words(number % 400, 3))
            .into_bytes()
    }),
    ("words", |number| words(number, 8).into_bytes()),
];

/// Entries with the keys of these numbers, each in a run at random; one of `tombstones` is a tombstone, if that is not 0.
fn runs_of(
    random: &mut Random,
    key_of: KeyOf,
    numbers: std::ops::Range<u64>,
    run_count: usize,
    tombstones: u64,
) -> Vec<Vec<Entry>> {
    let mut runs = vec![Vec::new(); run_count];
    for number in numbers {
        let is_deleted = tombstones > 0 && number % tombstones == 0;
        let kind = if is_deleted { Kind::Tombstone } else { Kind::Put };
        runs[random.below(run_count)].push((key_of(number), number + 1, kind, Vec::new()));
    }
    runs
}

/// Counts of sample pages whose windows begin at one of the keys of each block.
fn sample_of(sample: &Sample) -> ViewCounts {
    let keys = |run: &MemoryRun| -> Vec<Vec<u8>> {
        run.entries.iter().step_by(BLOCK_ENTRIES).map(|entry| entry.0.clone()).collect()
    };
    let keys: Vec<_> = sample.runs.iter().map(|run| (run.entries.len() as u64, keys(run))).collect();
    let keys: Vec<_> = keys.iter().map(|(count, keys)| (*count, keys.as_slice())).collect();
    let options = *sample.view.options();
    sample_pages(options, &sample.runs, &window_starts(options.segment_size, &keys)).unwrap()
}

fn tombstones_in(runs: &[MemoryRun]) -> u64 {
    runs.iter().flat_map(|run| run.entries.iter()).filter(|entry| entry.2 == Kind::Tombstone).count() as u64
}

fn estimate(sample: &Sample, pages: Option<ViewCounts>, old: Option<(&Sample, &[MemoryRun])>) -> ViewCounts {
    let options = sample.view.options();
    let new = old.map_or(&*sample.runs, |(_, new)| new);
    ViewCounts::expected(&ViewEstimate {
        run_count: sample.runs.len() as u64,
        entry_count: sample.view.entry_count(),
        tombstone_count: tombstones_in(new),
        mean_key_bytes: 16,
        segment_size: options.segment_size,
        tag_bytes: options.tag_bytes,
        sample: pages,
        old: old.map(|(old, _)| old.view.counts()),
    })
}

fn check(expected: &ViewCounts, sample: &Sample, form: &str, what: &str) {
    let (expected, found) = (expected.file_bytes(), sample.counts.file_bytes());
    let error = expected as f64 / found as f64 - 1.0;
    println!("{form}, {what}: {expected} expected, {found} bytes: {:.1} %", 100.0 * error);
    assert!(error.abs() <= 0.05, "{form}, {what}: {expected} expected, {found} bytes");
}

#[test]
fn the_counts_of_an_open_view_are_those_of_its_builder() {
    let mut random = Random(1);
    let sample = Sample::new(with_segments(32), runs_of(&mut random, FORMS[7].1, 0..5_000, 9, 7));
    assert_eq!(sample.view.counts(), sample.counts);
}

#[test]
fn the_size_is_estimated_within_5_percent() {
    for (form, key_of) in FORMS {
        for (run_count, segment_size, tombstones) in
            [(2, 32, 0), (8, 32, 5), (8, 16, 0), (16, 64, 300), (63, 32, 10_000)]
        {
            let mut random = Random(run_count as u64);
            let runs = runs_of(&mut random, key_of, 0..ENTRIES, run_count, tombstones);
            let sample = Sample::new(with_segments(segment_size), runs);
            let expected = estimate(&sample, Some(sample_of(&sample)), None);
            check(&expected, &sample, form, &format!("{run_count} runs of {segment_size}"));
        }
    }
}

/// A part of the pages is encoded.
#[test]
fn the_size_of_a_view_of_many_pages_is_estimated_within_5_percent() {
    for (form, key_of) in &FORMS[6..] {
        let sample = Sample::new(with_segments(32), runs_of(&mut Random(9), *key_of, 0..5 * ENTRIES, 8, 40));
        let pages = sample_of(&sample);
        assert!(2 * pages.entry_count < sample.view.entry_count(), "{} entries", pages.entry_count);
        check(&estimate(&sample, Some(pages), None), &sample, form, "many pages");
    }
}

/// The first key of a window follows a key that is in no page of the sample. The separator of its page has as many bytes as others.
#[test]
fn separators_are_estimated_from_sampled_windows() {
    // The keys of each half share 200 bytes. The second half begins with a page.
    const HALF: u64 = 29 * 16 * 32;
    let key_of: KeyOf = |number| {
        let half = if number < HALF { 'a' } else { 'b' };
        format!("{half}{:x<200}{number:08}", "").into_bytes()
    };
    let sample = Sample::new(with_segments(32), runs_of(&mut Random(4), key_of, 0..ENTRIES, 2, 0));
    let starts: Vec<_> = (0..20).map(|window| key_of(window * ENTRIES / 20 + 7)).collect();
    let pages = sample_pages(*sample.view.options(), &sample.runs, &starts).unwrap();
    assert_eq!(pages.page_count, 20);
    check(&estimate(&sample, Some(pages), None), &sample, "long keys", "a page of each window");
}

/// Without a sample, keys are taken for evenly distributed ones.
#[test]
fn the_size_is_estimated_without_a_sample() {
    for (form, key_of) in &FORMS[..5] {
        let sample = Sample::new(with_segments(32), runs_of(&mut Random(3), *key_of, 0..ENTRIES, 8, 5));
        check(&estimate(&sample, None, None), &sample, form, "no sample");
    }
}

/// Runs that are added to a view: as many runs as selectors can name, and one more; entries everywhere or at the end.
#[test]
fn the_size_of_a_rebuilt_view_is_estimated_within_5_percent() {
    for (form, key_of) in FORMS {
        for (run_count, new_count, tombstones) in
            [(8, ENTRIES / 8, 0), (7, ENTRIES / 30, 3), (16, ENTRIES / 2, 40)]
        {
            let mut random = Random(run_count as u64);
            let old = runs_of(&mut random, key_of, 0..ENTRIES, run_count, 0);
            let mut sample = Sample::new(with_segments(32), old);
            for round in 0..2 {
                let from = ENTRIES + round * new_count;
                let new = runs_of(&mut random, key_of, from..from + new_count, 1, tombstones);
                let rebuilt = sample.rebuild(new.clone()).0;
                let new: Vec<_> = new.into_iter().map(MemoryRun::new).collect();
                let is_like_old = sample.counts.is_like(new_count);
                let pages = (!is_like_old).then(|| sample_of(&rebuilt));
                let expected = estimate(&rebuilt, pages, Some((&sample, &new)));
                let what = format!("{run_count} runs and {round} more, and {new_count} entries");
                check(&expected, &rebuilt, form, &what);
                sample = rebuilt;
            }
        }
    }
}
