//! The check of a view accepts what a builder writes, and finds every field that differs from a merge of the runs.

use super::{model::with_segments, *};
use crate::view::{
    check::check_view,
    checksums::{correct_checksums, correct_section_checksums, sections},
};

/// Runs with tombstones, old versions, long keys, and a key with many versions.
fn mixed_sample(segment_size: usize, random: &mut SplitMix64) -> Sample {
    let keys: Vec<_> =
        (0..2_500).map(|n| if n % 7 == 0 { b"many".to_vec() } else { hostile_key(random) }).collect();
    Sample::new(with_segments(segment_size), distribute(random, 5, keys.into_iter()))
}

fn faults(view: &Arc<View>, runs: &[MemoryRun]) -> Vec<String> {
    check_view(view, runs).unwrap().iter().map(Error::to_string).collect()
}

#[test]
fn a_view_contains_the_merge_of_its_runs() {
    let mut random = SplitMix64::new(20);
    for segment_size in [16, 32, 64] {
        let mut sample = mixed_sample(segment_size, &mut random);
        assert_eq!(faults(&sample.view, &sample.runs), Vec::<String>::new());
        for first in [10_000, 1, 20_000] {
            let keys: Vec<_> = (0..300).map(|_| hostile_key(&mut random)).collect();
            sample = sample.rebuild(distribute_from(&mut random, first, 2, keys.into_iter())).0;
            assert_eq!(faults(&sample.view, &sample.runs), Vec::<String>::new());
        }
    }
    let empty = Sample::new(options(), vec![Vec::new(); 2]);
    assert_eq!(faults(&empty.view, &empty.runs), Vec::<String>::new());
}

/// Changed bytes with correct checksums: only the comparison with the runs can find them.
#[test]
fn each_changed_byte_of_the_pages_is_found() {
    let mut random = SplitMix64::new(21);
    let sample = mixed_sample(16, &mut random);
    let bytes = build(*sample.view.options(), &sample.runs).unwrap();
    let pages_end = sections(&bytes)[0].0;
    let mut compared = 0;
    for offset in (0..pages_end).step_by(5) {
        let mut damaged = bytes.clone();
        damaged[offset] ^= 1 << random.index(8);
        correct_checksums(&mut damaged, sample.view.page_count());
        let Ok(view) = open(&damaged) else { continue };
        compared += 1;
        assert!(!faults(&view, &sample.runs).is_empty(), "changed at {offset} of {pages_end}");
    }
    assert!(compared > 500, "{compared} changed views were opened");
}

#[test]
fn each_changed_position_and_separator_is_found() {
    let mut random = SplitMix64::new(22);
    let sample = mixed_sample(16, &mut random);
    let bytes = build(*sample.view.options(), &sample.runs).unwrap();
    let page_count = sample.view.page_count();
    assert!(page_count > 3);
    let index = sections(&bytes)[1];
    let positions = index.0 + 64 + 8 + 8 * (4 * page_count + 3);
    for offset in positions..index.0 + index.1 {
        let mut damaged = bytes.clone();
        damaged[offset] ^= 1 << random.index(8);
        correct_section_checksums(&mut damaged);
        let Ok(view) = open(&damaged) else { continue };
        assert!(!faults(&view, &sample.runs).is_empty(), "changed at {offset}");
    }
}

#[test]
fn runs_that_are_not_those_of_the_view_are_faults() {
    let mut random = SplitMix64::new(23);
    let sample = mixed_sample(32, &mut random);
    let mut runs = sample.runs.to_vec();
    runs.swap(0, 1);
    let found = faults(&sample.view, &runs);
    assert_eq!(found.len(), 1);
    assert!(found[0].contains("entries of the runs"), "{found:?}");
    let mut entries = sample.runs[2].entries.to_vec();
    let is_only = |key: &[u8]| sample.entries.iter().filter(|entry| entry.0 == key).count() == 1;
    let unique = entries.iter().position(|entry| is_only(&entry.0)).unwrap();
    entries[unique].1 = 1 << 40;
    let mut runs = sample.runs.to_vec();
    runs[2] = MemoryRun::new(entries);
    let found = faults(&sample.view, &runs).join("\n");
    assert!(found.contains("largest sequence number"), "{found}");
}
