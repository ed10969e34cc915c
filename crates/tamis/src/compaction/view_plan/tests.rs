#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

use std::path::Path;

use tamis_vfs::{Access, Folder, MemVfs, Vfs};

use super::*;
use crate::{
    cache::{block::BlockCache, pinned_cache::PinnedCache},
    key::Kind,
    metrics::Metrics,
    options::TableFilter,
    table::{environment::TableEnvironment, filter_plan::FilterPlan, open_files::OpenFiles},
    version::{
        catalog::Catalog,
        edit::{Change, VersionEdit},
        named_view::NamedView,
        test_support::{add, catalog_of, place, summary},
    },
    view::{
        build::build_view_with_filters, filter_builder::FilterJob, memory_run::MemoryRun, spool::Spool,
        writer::ViewOwner,
    },
};

/// Runs of L0 with these numbers of entries, the newest first, which overlap.
fn partition_of(entry_counts: &[u64]) -> (Catalog, Arc<Partition>) {
    let count = entry_counts.len() as u64;
    let table = |(index, entries): (usize, &u64)| {
        let age = count - index as u64;
        add(place(0, age), summary(age, ("a", "z"), entries * 100, (age, age)))
    };
    let catalog = catalog_of(entry_counts.iter().enumerate().map(table).collect(), &Arc::default());
    let partition = Arc::clone(&catalog.keyspaces[&1].partitions[0]);
    (catalog, partition)
}

fn runs(partition: &Partition) -> Vec<Arc<Run>> {
    partition.runs().map(|(_, run)| Arc::clone(run)).collect()
}

fn options(views: Views) -> KeyspaceOptions {
    KeyspaceOptions { views, ..KeyspaceOptions::default() }
}

/// Without samples of keys.
fn sizes(bytes_max: u64) -> ViewSizes<'static> {
    ViewSizes { bytes_max, sample: &|_| None }
}

/// Picks with runs that each cost a seek this time.
fn pick_with(partition: &Partition, views: Views, bytes_max: u64, nanoseconds: f64) -> Option<ViewPlan> {
    pick(partition, &options(views), &InProgress::default(), sizes(bytes_max), &|_| nanoseconds)
}

fn pick_in(partition: &Partition, views: Views) -> Option<Vec<u64>> {
    let plan = pick_with(partition, views, u64::MAX, SEEK_NANOSECONDS)?;
    Some(plan.runs.iter().map(|run| run.id()).collect())
}

#[test]
fn an_automatic_view_is_due_when_seeks_have_cost_as_much_as_building_it() {
    let (_, partition) = partition_of(&[100_000; 5]);
    assert_eq!(pick_in(&partition, Views::Auto), None);
    // A seek in the view costs as much as some of the five runs.
    let saved = (5.0 - RUNS_OF_A_VIEW) * SEEK_NANOSECONDS;
    let due = (FILE_NANOSECONDS + 500_000.0 * BUILD_NANOSECONDS) / saved;
    runs(&partition).iter().for_each(|run| run.add_merged_seeks(due as u64 - 1));
    assert_eq!(pick_in(&partition, Views::Auto), None);
    runs(&partition).iter().for_each(|run| run.add_merged_seeks(2));
    assert_eq!(pick_in(&partition, Views::Auto).map(|runs| runs.len()), Some(5));
    assert_eq!(pick_in(&partition, Views::Off), None);
}

/// In a store that is larger than the processor's caches a run costs a seek a microsecond and more.
#[test]
fn views_of_runs_that_are_slow_to_read_are_due_earlier() {
    let (_, partition) = partition_of(&[100_000; 5]);
    runs(&partition).iter().for_each(|run| run.add_merged_seeks(40_000));
    let picked = |nanoseconds| pick_with(&partition, Views::Auto, u64::MAX, nanoseconds).is_some();
    assert!(!picked(SEEK_NANOSECONDS) && picked(5.0 * SEEK_NANOSECONDS));
}

#[test]
fn large_new_runs_are_built_into_a_view_from_scratch() {
    assert!(is_cheaper_from_scratch(500_000, 800_000));
    assert!(!is_cheaper_from_scratch(500_000, 500_000));
    assert!(!is_cheaper_from_scratch(700_000, 100_000));
    assert!(!is_cheaper_from_scratch(0, 0));
}

#[test]
fn two_runs_get_no_automatic_view() {
    let (_, partition) = partition_of(&[1_000; 2]);
    runs(&partition).iter().for_each(|run| run.add_merged_seeks(100_000_000));
    assert_eq!(pick_in(&partition, Views::Auto), None);
    assert_eq!(pick_in(&partition, Views::On).map(|runs| runs.len()), Some(2));
    let (_, partition) = partition_of(&[1_000; 3]);
    runs(&partition).iter().for_each(|run| run.add_merged_seeks(100_000_000));
    assert_eq!(pick_in(&partition, Views::Auto).map(|runs| runs.len()), Some(3));
}

#[test]
fn an_automatic_view_excludes_runs_with_low_costs() {
    let (_, partition) = partition_of(&[100_000, 1_000, 1_000, 1_000, 1_000, 90_000_000]);
    let runs = runs(&partition);
    // The newest run is new; the oldest one is large.
    runs[1..].iter().for_each(|run| run.add_merged_seeks(200_000));
    let chosen = pick_in(&partition, Views::Auto).unwrap();
    assert_eq!(chosen, [1, 2, 3, 4].map(|index: usize| runs[index].id()));
    assert_eq!(pick_in(&partition, Views::On).map(|runs| runs.len()), Some(6));
}

#[test]
fn runs_that_overlap_no_other_get_no_view() {
    let apart = |age: u64, keys| add(place(0, age), summary(age, keys, 10_000, (age, age)));
    let catalog = catalog_of(vec![apart(2, ("a", "c")), apart(1, ("d", "f"))], &Arc::default());
    let partition = &catalog.keyspaces[&1].partitions[0];
    assert_eq!(pick_in(partition, Views::On), None);
    let (_, one) = partition_of(&[100]);
    assert_eq!(pick_in(&one, Views::On), None);
}

#[test]
fn a_view_that_is_larger_than_its_memory_is_not_built() {
    let (_, partition) = partition_of(&[100_000, 100_000]);
    let pick = |bytes_max| pick_with(&partition, Views::On, bytes_max, SEEK_NANOSECONDS);
    let bytes = pick(u64::MAX).unwrap().bytes(None);
    assert!((400_000..800_000).contains(&bytes), "{bytes} bytes");
    assert!(pick(bytes).is_some() && pick(bytes - 1).is_none());
}

/// A plan that ignored the view would build a second one.
#[test]
fn nothing_is_built_while_the_view_of_a_partition_is_not_open() {
    let (_catalog, partition) = partition_with_view();
    assert!(partition.view.is_some());
    assert_eq!(pick_in(&partition, Views::On), None);
}

const VIEW_NUMBER: u64 = 9;

/// Two runs with a view, which is not open.
fn partition_with_view() -> (Catalog, Arc<Partition>) {
    let (catalog, partition) = partition_of(&[1_000, 1_000]);
    let ids = runs(&partition).iter().map(|run| run.id()).collect();
    let set = Change::SetView { keyspace: 1, partition: 1, view: Some((VIEW_NUMBER, ids)) };
    let edit = VersionEdit { changes: vec![set] };
    let catalog = catalog.apply(&edit, &Arc::default()).unwrap().catalog;
    let partition = Arc::clone(&catalog.keyspaces[&1].partitions[0]);
    (catalog, partition)
}

fn environment(folder: &Folder) -> TableEnvironment {
    TableEnvironment {
        folder: folder.clone(),
        access: Access::Mapped,
        is_paranoid: false,
        open_files: OpenFiles::new(&**folder),
        cache: Arc::new(BlockCache::new(1 << 20)),
        pinned_cache: PinnedCache::new(1 << 20, None, &Arc::default(), None),
        gap_budget: Arc::default(),
        view_budget: Arc::default(),
        metrics: Arc::new(Metrics::default()),
        listener: None,
    }
}

/// An open view of other runs with this filter, if it is not empty.
fn open_view(filter: &str) -> Arc<View> {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    let folder = Path::new("/db");
    vfs.create_dir_all(folder).unwrap();
    let entry = |number: u64| ((number << 20).to_be_bytes().to_vec(), number + 1, Kind::Put, Vec::new());
    let run = MemoryRun::new((0..200).map(entry).collect());
    let plan = FilterPlan::given(filter.parse::<TableFilter>().into_iter().collect());
    let job = (!filter.is_empty()).then(|| FilterJob::new(&plan, Spool::in_memory()));
    let owner = ViewOwner { number: VIEW_NUMBER, ..ViewOwner::default() };
    let mut file = Vec::new();
    let options = ViewOptions { owner, ..ViewOptions::default() };
    build_view_with_filters(options, &[(1, run)], job, Spool::in_memory(), &mut |part| {
        file.extend_from_slice(part);
        Ok(())
    })
    .unwrap();
    vfs.create(&folder.join("000009.view")).unwrap().append(&file).unwrap();
    View::open(&environment(&Folder::open(&*vfs, folder).unwrap()), VIEW_NUMBER).unwrap()
}

/// The plan for filters of a view after these checks and this work.
fn pick_after(view: &Arc<View>, checks: FilterChecks, work: impl FnOnce(&NamedView)) -> Option<ViewPlan> {
    let (_catalog, partition) = partition_with_view();
    let named = partition.view.as_ref().unwrap();
    named.set_reader(Arc::clone(view));
    named.set_filter_checks(checks);
    work(named);
    pick_with_filters(&partition, &options(Views::On), sizes(u64::MAX))
}

/// Counts answers, of which one of `wrong_of` is a false positive.
fn answer(named: &NamedView, count: u32, wrong_of: u32) {
    let (answers, wrong) = (named.filter_answers(), count / wrong_of);
    answers.add_denied(count - wrong);
    answers.add_admitted(wrong);
    answers.add_outcome(false, wrong);
}

/// Symptom: a view whose filters have more false positives than they predict, but as few as any for the queries, was checked or built again
/// after every 1,000 ranges.
#[test]
fn each_check_that_keeps_the_filters_of_a_view_doubles_the_answers_until_the_next_one() {
    let (view, other) = (open_view("grafite@14"), open_view("rosetta@16"));
    assert!(view.has_filter() && view.filter_families() != other.filter_families());
    let after = |checks, count| pick_after(&view, checks, |named| answer(named, count, 20));
    let checks_of = |plan: Option<ViewPlan>, view: &View| plan.unwrap().refiltered.unwrap().checks_of(view);
    let mut checks = FilterChecks::default();
    for needed in [1_000, 2_000, 4_000, 8_000] {
        assert!(after(checks, needed - 20).is_none(), "{needed}");
        assert_eq!(checks_of(after(checks, needed), &other).kept_count, 0, "other families are new filters");
        checks = checks_of(after(checks, needed), &view);
    }
    // A rate that is far above that at the checks shows that the queries have changed since.
    assert!(pick_after(&view, checks, |named| answer(named, 1_000, 4)).is_some());
}

/// The view stays, and its answers are counted on.
#[test]
fn a_check_that_builds_no_view_doubles_the_answers_until_the_next_one() {
    let view = open_view("grafite@14");
    let after_check = |count| {
        pick_after(&view, FilterChecks::default(), |named| {
            answer(named, 1_000, 20);
            named.keep_filters(0.05);
            answer(named, count, 20);
        })
    };
    assert!(after_check(1_980).is_none() && after_check(2_000).is_some());
}

/// Filters that are not worth their memory are not built. The view without them would be built again after every 64 ranges.
#[test]
fn a_view_without_filters_tries_again_after_twice_as_many_admitted_ranges() {
    let view = open_view("");
    assert!(!view.has_filter());
    let after = |checks, count| {
        pick_after(&view, checks, |named| (0..count).for_each(|_| named.add_admitted_range()))
    };
    let mut checks = FilterChecks::default();
    for needed in [64, 128, 256] {
        assert!(after(checks, needed - 1).is_none(), "{needed}");
        checks = after(checks, needed).unwrap().refiltered.unwrap().checks_of(&view);
    }
    let kept = pick_after(&view, FilterChecks::default(), |named| {
        (0..64).for_each(|_| named.add_admitted_range());
        named.keep_filters(0.0);
        (0..63).for_each(|_| named.add_admitted_range());
    });
    assert!(kept.is_none(), "64 before the check, and 63 since");
}
