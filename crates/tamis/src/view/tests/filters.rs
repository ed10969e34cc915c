//! Filters of views: absent keys and empty ranges are rejected without a read, and no answer changes.

use std::{cell::Cell, ops::Bound};

use tamis_filter::{
    KeyRange, Upper,
    auto::{Effort, Prices, QueryKind},
};

use super::{
    model::{check, hostile_target, with_segments},
    *,
};
use crate::{
    coding::put_u32,
    options::TableFilter,
    query_sample::{QueryOutcome, SampledQuery},
    table::{
        filter_plan::{ChoiceInput, FilterPlan},
        format::SECTION_HEADER_LENGTH,
    },
    view::{
        build::build_view_with_filters,
        check::check_view,
        checksums::{correct_checksums, section_of},
        filter_builder::FilterJob,
        filters::AskedPart,
        part_keys::keys_of,
        rebuild::rebuild_view_with_filters,
        spool::Spool,
    },
};

const PLANS: [&str; 6] =
    ["blocked-bloom@12", "bloom@12", "surf-mixed:hash=4,real=4@24", "proteus@14", "rosetta@16", "grafite@14"];

fn given(names: &[&str]) -> FilterPlan {
    FilterPlan::given(names.iter().map(|name| name.parse::<TableFilter>().unwrap()).collect())
}

/// How the filters of a view are built.
struct Filtering<'a> {
    plan: &'a FilterPlan,
    /// Bytes of the keys of a part.
    key_memory: u64,
    spool_memory: usize,
    vfs: Arc<dyn Vfs>,
}

impl<'a> Filtering<'a> {
    fn new(plan: &'a FilterPlan) -> Self {
        Self { plan, key_memory: 16 << 20, spool_memory: 4 << 20, vfs: Arc::new(MemVfs::new()) }
    }

    fn job(&self) -> FilterJob<'a> {
        let spool = Spool::new(&self.vfs, || "/spool".into()).with_memory(self.spool_memory);
        FilterJob::new(self.plan, spool).with_key_memory(self.key_memory)
    }
}

/// A sample with filters, and its file.
fn filtered(options: ViewOptions, runs: Vec<Vec<Entry>>, plan: &FilterPlan) -> (Sample, Vec<u8>) {
    filtered_by(options, runs, &Filtering::new(plan))
}

fn filtered_by(options: ViewOptions, runs: Vec<Vec<Entry>>, filtering: &Filtering<'_>) -> (Sample, Vec<u8>) {
    let runs: Vec<MemoryRun> = runs.into_iter().map(MemoryRun::new).collect();
    let named: Vec<_> = (100..).zip(runs.iter().cloned()).collect();
    let mut bytes = Vec::new();
    let job = Some(filtering.job());
    let built = build_view_with_filters(options, &named, job, Spool::in_memory(), &mut |part| {
        bytes.extend_from_slice(part);
        Ok(())
    });
    let (counts, refusals) = built.unwrap();
    assert_eq!(refusals, Vec::<String>::new());
    (Sample::of(runs, &bytes, counts), bytes)
}

fn assert_sound(sample: &Sample) {
    let faults = check_view(&sample.view, &sample.runs).unwrap();
    assert!(faults.is_empty(), "{faults:?}");
}

#[test]
fn filters_of_any_family_change_no_answer() {
    for names in [["blocked-bloom@12", "surf-mixed:hash=4,real=4@64"], ["proteus@14", "grafite@14"]] {
        for (number, run_count) in [(0, 1), (40, 3), (2_000, 5)] {
            let mut random = Random(run_count as u64);
            let keys: Vec<_> = (0..number).map(|_| hostile_key(&mut random)).collect();
            let runs = distribute(&mut random, run_count, keys.into_iter());
            let (sample, _) = filtered(with_segments(32), runs, &given(&names));
            assert_eq!(sample.view.has_filter(), number > 0);
            assert_sound(&sample);
            check(&sample, &mut random, 60);
            let mut scan = sample.scan(SEQUENCE_MAX);
            for _ in 0..400 {
                let key = hostile_target(&sample, &mut random);
                let expected = sample.entries.iter().find(|entry| entry.0 == key).map(|entry| entry.1);
                assert_eq!(scan.get(&key).unwrap().map(|found| found.sequence), expected);
            }
            check_denials(&sample, &mut random, 600);
        }
    }
}

/// Ranges with bounds of any kind, and prefixes, are denied only if no key of them is visible.
fn check_denials(sample: &Sample, random: &mut Random, count: usize) {
    let scan = sample.scan(SEQUENCE_MAX);
    for _ in 0..count {
        let (one, other) = (hostile_target(sample, random), hostile_target(sample, random));
        let other = if random.below(2) == 0 { [&one, [0xFF].as_slice()].concat() } else { other };
        let (lower, upper) = (one.as_slice().min(&other), one.as_slice().max(&other));
        let range = match random.below(5) {
            0 => KeyRange::prefix(&one[..1 + random.below(one.len())]),
            kind => KeyRange {
                lower: if kind < 3 { Bound::Included(lower) } else { Bound::Excluded(lower) },
                upper: if kind % 2 == 0 { Upper::Included(upper) } else { Upper::Excluded(upper) },
            },
        };
        assert!(!scan.denies_range(&range).unwrap() || all_deleted(sample, &range), "{range:?}");
    }
}

/// Whether the newest entry of each key of a range is a tombstone.
fn all_deleted(sample: &Sample, range: &KeyRange<'_>) -> bool {
    let mut last: &[u8] = &[];
    sample.entries.iter().filter(|entry| range.contains(&entry.0)).all(|entry| {
        let is_newest = entry.0 != last;
        last = &entry.0;
        !is_newest || entry.2 == Kind::Tombstone
    })
}

/// Keys that share all bits that the view knows with a key of it: only tags and filters can reject them.
fn near_keys(sample: &Sample, random: &mut Random) -> Vec<Vec<u8>> {
    (0..3_000)
        .map(|_| {
            let mut key = sample.entries[random.below(sample.entries.len())].0.clone();
            key[15] ^= 1 + random.below(255) as u8;
            key
        })
        .collect()
}

fn even_runs(random: &mut Random, count: usize) -> Vec<Vec<Entry>> {
    let mut runs = vec![Vec::new(); 4];
    for (number, key) in even_keys(random, count).into_iter().enumerate() {
        runs[number % 4].push((key, number as u64 + 1, Kind::Put, Vec::new()));
    }
    runs
}

#[test]
fn each_family_rejects_absent_keys_near_present_ones_without_a_read() {
    for name in PLANS {
        let mut random = Random(31);
        let (sample, _) = filtered(options(), even_runs(&mut random, 8_000), &given(&[name]));
        let mut scan = sample.scan(SEQUENCE_MAX);
        sample.take_read_count();
        for key in near_keys(&sample, &mut random) {
            assert!(scan.get(&key).unwrap().is_none());
        }
        // Range filters know prefixes: SuRF's hashed suffixes of 4 bits admit a sixteenth.
        let read_count = sample.take_read_count();
        let limit = if name.starts_with("surf") { 600 } else { 400 };
        let is_range_only = ["proteus", "grafite"].iter().any(|family| name.starts_with(family));
        assert!(read_count <= limit || is_range_only, "{name}: {read_count} of 3,000 absent keys were read");
    }
}

/// The view locates bounds only as bytes: the excluded lower bound, or the first key above a prefix, is a key of it. Its filters take the
/// range without that key.
#[test]
fn filters_are_asked_for_a_range_without_its_excluded_bounds() {
    let key = |number: usize| format!("id/{number:08}").into_bytes();
    let entries = (1..4_000).map(|number| (key(2 * number), number as u64, Kind::Put, Vec::new()));
    let mut runs = vec![Vec::new(); 3];
    entries.enumerate().for_each(|(number, entry)| runs[number % 3].push(entry));
    for (name, is_prefix) in [("grafite@16", false), ("prefix-bloom:bytes=11@14", true)] {
        let (sample, _) = filtered(options(), runs.clone(), &given(&[name]));
        let scan = sample.scan(SEQUENCE_MAX);
        let is_denied = |number: &usize| {
            let (before, absent, after) = (key(2 * number), key(2 * number + 1), key(2 * number + 2));
            let lower = Bound::Excluded(before.as_slice());
            let ranges = match is_prefix {
                true => vec![KeyRange::prefix(&absent)],
                false => [Upper::Included(absent.as_slice()), Upper::Excluded(&after)]
                    .map(|upper| KeyRange { lower, upper })
                    .to_vec(),
            };
            ranges.iter().all(|range| scan.denies_range(range).unwrap())
        };
        let denied_count = (1..3_999).filter(is_denied).count();
        assert!(denied_count >= 3_900, "{name}: {denied_count} of 3,998 empty ranges are denied");
    }
}

fn choice_input(queries: Vec<SampledQuery>) -> ChoiceInput {
    ChoiceInput {
        bits_per_key: 12.0,
        is_deepest: false,
        effort: Effort::Write,
        always_searches: true,
        prices: Prices::default(),
        queries: queries.into(),
        current: None,
        other_runs: Arc::default(),
        seed: 0,
        last: None,
    }
}

#[test]
fn the_store_chooses_the_filters_of_a_view() {
    let mut random = Random(32);
    let plan = FilterPlan::Chosen(Box::new(choice_input(Vec::new())));
    let (sample, bytes) = filtered(options(), even_runs(&mut random, 8_000), &plan);
    assert!(sample.view.has_filter());
    assert_sound(&sample);
    let plain = build(options(), &sample.runs).unwrap().1;
    // The store may choose filters with fewer bits.
    let (expected_max, written) = (plain.with_filter(8_000, 12.0).file_bytes(), bytes.len() as u64);
    assert!(plain.file_bytes() < written && written <= expected_max, "{written} of {expected_max} bytes");
}

/// The keys of a part.
fn keys_of_part(sample: &Sample, part: &AskedPart) -> Vec<Vec<u8>> {
    let found = keys_of(&sample.view, &sample.runs, part, &|| Ok(())).unwrap();
    (0..found.len()).map(|number| found.get(number).unwrap().to_vec()).collect()
}

/// A range of one key.
fn sampled(key: &[u8]) -> SampledQuery {
    let range = KeyRange::closed(key, key);
    SampledQuery::new(QueryKind::Range, &range, 1, QueryOutcome::default()).unwrap()
}

/// A choice is that of one part, which admits the queries; a rebuild keeps it with its keys.
#[test]
fn a_view_knows_why_filters_were_chosen_and_for_which_keys() {
    let mut random = Random(35);
    let runs = even_runs(&mut random, 8_000);
    let mut keys: Vec<Vec<u8>> = runs.iter().flatten().map(|entry| entry.0.clone()).collect();
    keys.sort();
    let asked = [vec![&keys[5_000]; 40], vec![&keys[100]; 39]].concat();
    let queries: Vec<_> = asked.into_iter().map(|key| sampled(key)).collect();
    let plan = FilterPlan::Chosen(Box::new(choice_input(queries.clone())));
    let filtering = Filtering { key_memory: 50_000, ..Filtering::new(&plan) };
    let (sample, bytes) = filtered_by(options(), runs, &filtering);
    let [part]: [AskedPart; 1] = sample.view.most_asked_parts(&queries).try_into().unwrap();
    let all = keys_of_part(&sample, &part);
    let first = keys.partition_point(|key| *key < part.first_key);
    assert_eq!(all, keys[first..first + all.len()]);
    assert!((first..first + all.len()).contains(&5_000), "{first} to {}", first + all.len());
    assert!(first > 0 && first + all.len() < keys.len(), "it is one of several parts");
    let chosen = sample.view.filters.choices().swap_remove(0).1.chosen.filters;
    assert_eq!(part.filters.as_ref(), Some(&chosen));
    // Filters that a rebuild adds are not chosen, and admit their keys.
    let new = even_runs(&mut random, 400);
    let mut new_keys: Vec<Vec<u8>> = new.iter().flatten().map(|entry| entry.0.clone()).collect();
    new_keys.sort();
    let added = FilterPlan::given(vec![TableFilter::for_ranges()]);
    let more = rebuilt(&sample, new, Some(&Filtering::new(&added)));
    let queries = [queries, vec![sampled(&new_keys[7])]].concat();
    let [kept, added]: [AskedPart; 2] = more.view.most_asked_parts(&queries).try_into().unwrap();
    assert_eq!((&kept.first_key, &kept.filters), (&part.first_key, &part.filters));
    assert_eq!(keys_of_part(&more, &kept), all);
    assert_eq!(added.filters, Some(vec![TableFilter::for_ranges()]));
    assert_eq!(keys_of_part(&more, &added), new_keys);
    // The specification of other filters is not known without a choice.
    let (other, _) = filtered(options(), even_runs(&mut random, 400), &given(&["proteus@14"]));
    let queries = [sampled(&other.entries[5].0)];
    assert!(other.view.most_asked_parts(&queries).iter().all(|part| part.filters.is_none()));
    assert_eq!(other.view.most_asked_parts(&queries).len(), 1);
    assert!(other.view.most_asked_parts(&[sampled(b"")]).is_empty(), "no part admits it");
    // A damaged section: no filter is used.
    let (offset, _) = section_of(&bytes, 13).unwrap();
    let mut damaged = bytes;
    damaged[offset + 3] ^= 1;
    assert!(!open(&damaged).unwrap().has_filter());
}

/// The body of the section that says why filters were chosen.
fn choices(parts: &[(u32, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (part, choice) in parts {
        put_u32(&mut body, *part);
        put_u32(&mut body, choice.len() as u32);
        body.extend_from_slice(choice);
    }
    body
}

/// Parts ascend, each once. A choice of a later version does not prevent the use of the filters.
#[test]
fn a_choice_that_cannot_be_decoded_is_ignored_and_a_damaged_list_is_refused() {
    let mut random = Random(37);
    let plan = FilterPlan::Chosen(Box::new(choice_input(Vec::new())));
    let filtering = Filtering { key_memory: 20_000, ..Filtering::new(&plan) };
    let (sample, bytes) = filtered_by(options(), even_runs(&mut random, 3_000), &filtering);
    let chosen = sample.view.filters.choices();
    assert!(chosen.len() >= 3);
    let choice = chosen[0].1.encode();
    let (offset, length) = section_of(&bytes, 13).unwrap();
    let (offset, length) = (offset + SECTION_HEADER_LENGTH, length - SECTION_HEADER_LENGTH);
    // Behind the list, a choice that can't be decoded fills the section.
    let with_choices = |parts: &[(u32, &[u8])], filler: Option<u32>| {
        let mut body = choices(parts);
        let unknown = vec![0xFF; length - body.len() - 8];
        match filler {
            Some(part) => body.extend(choices(&[(part, &unknown)])),
            None => body.resize(length, 0xFF),
        }
        assert_eq!(body.len(), length);
        let mut changed = bytes.clone();
        changed[offset..offset + length].copy_from_slice(&body);
        correct_checksums(&mut changed, 0, true);
        let view = open(&changed).unwrap();
        (view.has_filter(), view.filters.choices().len())
    };
    let choice = choice.as_slice();
    assert_eq!(with_choices(&[(0, choice)], Some(1)), (true, 1));
    assert_eq!(with_choices(&[(0, &[][..]), (1, choice)], Some(2)), (true, 1));
    for (parts, filler) in [
        (&[(0, choice)][..], Some(0)),
        (&[(1, choice)], Some(0)),
        (&[(0, choice)], Some(1_000)),
        (&[(0, choice)], None),
    ] {
        assert_eq!(with_choices(parts, filler), (false, 0), "{filler:?}");
    }
}

#[test]
fn reading_the_keys_of_a_part_can_be_stopped() {
    let mut random = Random(36);
    let (sample, _) = filtered(options(), even_runs(&mut random, 20_000), &given(&["surf-real:bits=8"]));
    let queries = [sampled(&sample.entries[5].0)];
    let [part]: [AskedPart; 1] = sample.view.most_asked_parts(&queries).try_into().unwrap();
    let call_count = Cell::new(0);
    let stop_after = |calls: u32| {
        call_count.set(0);
        let check = || {
            call_count.set(call_count.get() + 1);
            if call_count.get() > calls { Err(Error::Closed) } else { Ok(()) }
        };
        keys_of(&sample.view, &sample.runs, &part, &check).map(|keys| keys.len())
    };
    assert_eq!(stop_after(u32::MAX).unwrap(), 20_000);
    assert!((4..=20).contains(&call_count.get()), "{} calls for 20,000 entries", call_count.get());
    sample.take_read_count();
    assert!(matches!(stop_after(2), Err(Error::Closed)));
    assert!(sample.take_read_count() < 10_000, "it read on after the stop");
}

fn rebuilt(sample: &Sample, new: Vec<Vec<Entry>>, filtering: Option<&Filtering<'_>>) -> Sample {
    let new: Vec<MemoryRun> = new.into_iter().map(MemoryRun::new).collect();
    let named: Vec<_> = (200..).zip(new.iter().cloned()).collect();
    let mut bytes = Vec::new();
    let owner = sample.view.options().owner;
    let job = filtering.map(Filtering::job);
    let (view, runs, spool) = (&sample.view, &sample.runs, Spool::in_memory());
    let built = rebuild_view_with_filters(owner, view, runs, &named, job, spool, &mut |part| {
        bytes.extend_from_slice(part);
        Ok(())
    });
    let (rebuilt, _) = built.unwrap();
    Sample::of(sample.runs.iter().cloned().chain(new).collect(), &bytes, rebuilt.counts)
}

#[test]
fn a_rebuild_keeps_the_filters_and_adds_those_of_the_new_keys() {
    let mut random = Random(33);
    let plan = given(&["blocked-bloom@12", "surf@12"]);
    // The keys of the second part of 4,000 keys are those of the old view alone: new runs have fewer.
    let filtering = Filtering { key_memory: 50_000, ..Filtering::new(&plan) };
    let (mut sample, _) = filtered_by(options(), even_runs(&mut random, 4_000), &filtering);
    for round in 1..4 {
        let new: Vec<_> = even_runs(&mut random, 400)
            .into_iter()
            .map(|run| {
                run.into_iter()
                    .map(|(key, sequence, ..)| (key, 10_000 * round + sequence, Kind::Put, Vec::new()))
            })
            .map(Iterator::collect)
            .collect();
        sample = rebuilt(&sample, new, Some(&filtering));
        assert!(sample.view.has_filter());
        assert_sound(&sample);
        sample.take_read_count();
        let mut scan = sample.scan(SEQUENCE_MAX);
        let near = near_keys(&sample, &mut random);
        near.iter().for_each(|key| assert!(scan.get(key).unwrap().is_none()));
        let read_count = sample.take_read_count();
        assert!(read_count < 60, "{read_count} of 3,000 absent keys were read after {round} rebuilds");
    }
    let without = rebuilt(&sample, even_runs(&mut random, 40), None);
    assert!(!without.view.has_filter(), "a rebuild without a plan has no filters for its new keys");
    let still_without = rebuilt(&without, even_runs(&mut random, 40), Some(&filtering));
    assert!(!still_without.view.has_filter(), "there are no filters for the old keys");
}

/// Keys and ranges between, at and around the first keys of parts of a few keys each.
#[test]
fn filters_in_many_parts_change_no_answer() {
    let plan = given(&["blocked-bloom@12", "proteus@14", "grafite@14"]);
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    for key_memory in [1, 200, 5_000] {
        let mut random = Random(key_memory);
        let filtering = Filtering { key_memory, spool_memory: 100, vfs: Arc::clone(&vfs), plan: &plan };
        let keys: Vec<_> = (0..600).map(|_| hostile_key(&mut random)).collect();
        let runs = distribute(&mut random, 3, keys.into_iter());
        let (sample, _) = filtered_by(with_segments(16), runs, &filtering);
        let more: Vec<_> = (0..100).map(|_| hostile_key(&mut random)).collect();
        let more = distribute(&mut random, 2, more.into_iter());
        let sample = rebuilt(&sample, more, Some(&filtering));
        assert!(sample.view.has_filter());
        assert_sound(&sample);
        check(&sample, &mut random, 60);
        check_denials(&sample, &mut random, 2_000);
    }
    assert!(vfs.list(Path::new("/")).unwrap().is_empty(), "spools remove their files");
}

/// The rate of false positives of filters in parts is that of one filter.
#[test]
fn filters_in_parts_reject_ranges_as_well_as_one_filter() {
    let plan = given(&["surf-mixed:hash=4,real=8@64"]);
    let admitted = |key_memory: u64| {
        let mut random = Random(41);
        let filtering = Filtering { key_memory, ..Filtering::new(&plan) };
        let (sample, _) = filtered_by(options(), even_runs(&mut random, 8_000), &filtering);
        let scan = sample.scan(SEQUENCE_MAX);
        let near = near_keys(&sample, &mut random);
        let is_admitted = |key: &&Vec<u8>| !scan.denies_range(&KeyRange::point(key)).unwrap();
        near.iter().filter(is_admitted).count()
    };
    let (one, many) = (admitted(u64::MAX), admitted(10_000));
    assert!(many <= one + 30, "{many} of 3,000 empty ranges are admitted by parts, {one} by one filter");
}

#[test]
fn a_damaged_filter_is_reported_and_not_used() {
    let mut random = Random(34);
    let keys: Vec<_> = (0..1_000).map(|_| hostile_key(&mut random)).collect();
    let runs = distribute(&mut random, 3, keys.into_iter());
    let plan = given(&["blocked-bloom@10", "surf@64"]);
    let filtering = Filtering { key_memory: 20_000, ..Filtering::new(&plan) };
    let (sample, bytes) = filtered_by(options(), runs, &filtering);
    for kind in [3, 12] {
        let (offset, length) = section_of(&bytes, kind).unwrap();
        for at in (offset..offset + length).step_by(length / 20 + 1) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            let view = open(&damaged).unwrap();
            assert!(!view.has_filter(), "flipped at {at}");
            let faults = check_view(&view, &sample.runs).unwrap();
            assert_eq!(faults.len(), 1, "{faults:?}");
            let mut scan = ViewScan::new(ViewCursor::new(&view, &sample.runs).unwrap(), SEQUENCE_MAX);
            assert!(sample.entries.iter().all(|entry| scan.get(&entry.0).unwrap().is_some()));
        }
    }
}
