//! The pinned cache keeps the values with the most benefit per byte, within its capacity.

use super::*;
use crate::error::Error;

fn pinned_cache(capacity_bytes: u64) -> Arc<PinnedCache> {
    PinnedCache::new(capacity_bytes, &Arc::default(), &Arc::default(), None)
}

fn pinned(pinned_cache: &Arc<PinnedCache>, bytes: u64) -> Pinned<u64> {
    Pinned::counted(pinned_cache, &Arc::from(Path::new("/db/000001.table")), bytes, bytes)
}

fn is_cached(pinned: &Pinned<u64>) -> bool {
    match pinned {
        Pinned::Fixed(_) => true,
        Pinned::Counted(counted) => counted.cached().is_some(),
    }
}

#[test]
fn a_value_that_does_not_fit_is_returned_and_reported_once() {
    let pinned_cache = pinned_cache(100);
    let large = pinned(&pinned_cache, 101);
    for _ in 0..3 {
        assert_eq!(large.get(|| Ok(7)).map(|value| *value).ok(), Some(7));
    }
    assert!(!is_cached(&large) && pinned_cache.used_bytes() == 0);
    assert_eq!(pinned_cache.metrics.cache_too_small.get(), 1);
    assert!(matches!(large.get(|| Err(Error::Closed)), Err(Error::Closed)));
}

#[test]
fn the_value_with_the_least_benefit_per_byte_is_evicted() {
    let pinned_cache = pinned_cache(100);
    let (often, large, seldom) =
        (pinned(&pinned_cache, 40), pinned(&pinned_cache, 50), pinned(&pinned_cache, 10));
    for _ in 0..100 {
        let _ = often.get(|| Err(Error::Closed));
        let _ = large.get(|| Err(Error::Closed));
    }
    let _ = seldom.get(|| Err(Error::Closed));
    assert!(is_cached(&often) && is_cached(&large) && is_cached(&seldom) && pinned_cache.used_bytes() == 100);

    // The new value has 20 bytes: it may evict `seldom`, but not `large` for the rest, until it has more benefit.
    let added = pinned(&pinned_cache, 20);
    assert!(!is_cached(&added) && is_cached(&seldom));
    let mut needs = 0;
    while !is_cached(&added) {
        assert!(added.get(|| Ok(20)).is_ok());
        needs += 1;
        assert!(needs < 200);
    }
    assert!(needs > 20, "{needs}");
    assert!(is_cached(&often) && !is_cached(&large) && pinned_cache.used_bytes() <= 100);
    assert!(large.get(|| Ok(50)).is_ok(), "an evicted value is loaded again");
}

#[test]
fn an_optional_value_is_loaded_only_if_it_is_admitted() {
    let pinned_cache = pinned_cache(100);
    let first = pinned(&pinned_cache, 90);
    for _ in 0..1000 {
        let _ = first.get(|| Err(Error::Closed));
    }
    let second = pinned(&pinned_cache, 20);
    let loads = std::cell::Cell::new(0);
    for _ in 0..200 {
        let _ = second.get_if_admitted(|| {
            loads.set(loads.get() + 1);
            Ok(20)
        });
    }
    assert_eq!(loads.get(), 0, "it has less benefit than the cached values");
    drop(first);
    assert_eq!(pinned_cache.used_bytes(), 0);
    for _ in 0..200 {
        let _ = second.get_if_admitted(|| {
            loads.set(loads.get() + 1);
            Ok(20)
        });
    }
    assert!(is_cached(&second) && loads.get() == 1);
}

#[test]
fn a_fixed_value_is_not_counted() {
    let fixed = Pinned::fixed(5_u64);
    assert_eq!(fixed.get(|| Err(Error::Closed)).map(|value| *value).ok(), Some(5));
    assert!(fixed.get_if_admitted(|| Err(Error::Closed)).is_some());
}

#[test]
fn a_part_evicts_another_only_if_it_has_clearly_more_benefit() {
    let pinned_cache = pinned_cache(100);
    let hotness = [(); 2].map(|()| Arc::new(Hotness::default()));
    let [first, second] = hotness.each_ref().map(|hotness| {
        let share = Share { hotness: Arc::clone(hotness), saved: 0.5 };
        Pinned::shared(&pinned_cache, &Arc::from(Path::new("/db/000001.table")), share, 80)
    });
    let [of_first, of_second] = &hotness;
    of_first.set(1000.0, 0);
    assert!(first.load_if_admitted(|| Ok(1_u64)).is_some());
    // A part must have half as much benefit again; the same in the other direction, so that the two do not alternate.
    for (lookups, comes_in) in [(1000.0, false), (1450.0, false), (1550.0, true)] {
        of_second.set(lookups, 0);
        assert_eq!(second.load_if_admitted(|| Ok(2)).is_some(), comes_in, "{lookups}");
        assert_eq!((is_cached(&first), is_cached(&second)), (!comes_in, comes_in));
    }
    of_first.set(2200.0, 0);
    assert!(first.load_if_admitted(|| Ok(1)).is_none());
    of_first.set(2400.0, 0);
    assert!(first.load_if_admitted(|| Ok(1)).is_some() && !is_cached(&second));
}

/// Accesses of this many epochs, of one value at a time.
fn access(pinned: &Pinned<u64>, count: u64) {
    for _ in 0..count {
        let _ = pinned.get_if_admitted(|| Ok(7));
    }
}

#[test]
fn values_of_equal_hotness_do_not_evict_each_other() {
    let pinned_cache = pinned_cache(100);
    let (first, second) = (pinned(&pinned_cache, 80), pinned(&pinned_cache, 80));
    let loads = std::cell::Cell::new(0);
    let access = |pinned: &Pinned<u64>| {
        let _ = pinned.get_if_admitted(|| {
            loads.set(loads.get() + 1);
            Ok(7)
        });
    };
    (0..1000).for_each(|_| access(&first));
    // Now the one is a little hotter, now the other.
    (0..1040).for_each(|_| access(&second));
    for _ in 0..10 {
        (0..80).for_each(|_| access(&first));
        (0..80).for_each(|_| access(&second));
    }
    assert_eq!(loads.get(), 0);
    assert!(is_cached(&first) && !is_cached(&second));
}

#[test]
fn the_cache_evicts_values_that_are_no_longer_hot() {
    const EPOCH: u64 = 1 << 20;
    let pinned_cache = pinned_cache(100);
    let (first, second) = (pinned(&pinned_cache, 80), pinned(&pinned_cache, 80));
    access(&first, 4 * EPOCH);
    assert!(is_cached(&first) && !is_cached(&second));
    // Earlier accesses count at most as two epochs, and half with each epoch that passes.
    access(&second, EPOCH / 2);
    assert!(is_cached(&first) && !is_cached(&second), "a few accesses evict nothing");
    access(&second, 3 * EPOCH / 2);
    assert!(!is_cached(&first) && is_cached(&second));

    // The same between whole values and shares, both ways.
    let hotness = Arc::new(Hotness::default());
    let share = Share { hotness: Arc::clone(&hotness), saved: 0.75 };
    let unit = Pinned::shared(&pinned_cache, &Arc::from(Path::new("/db/000001.table")), share, 80);
    let false_positives = |count: u64| {
        for _ in 0..count {
            hotness.record_access(pinned_cache.epoch());
            let _ = unit.get_if_admitted(|| Ok(1));
        }
    };
    false_positives(4 * EPOCH);
    assert!(is_cached(&unit) && !is_cached(&second));
    access(&second, 3 * EPOCH);
    assert!(!is_cached(&unit) && is_cached(&second));
}

#[test]
fn a_lookup_without_load_counts_no_access() {
    let pinned_cache = pinned_cache(100);
    let (first, second) = (pinned(&pinned_cache, 80), pinned(&pinned_cache, 80));
    for _ in 0..1000 {
        assert!(first.get_if_cached().is_some() && second.get_if_cached().is_none());
    }
    access(&second, 2 * RETRY_INTERVAL);
    assert!(is_cached(&second) && !is_cached(&first));
}

#[test]
fn a_sample_finds_a_cold_value_among_many_within_a_circle() {
    const COUNT: u64 = 1_000;
    let pinned_cache = pinned_cache(10 * COUNT);
    let values: Vec<_> = (0..COUNT).map(|_| pinned(&pinned_cache, 10)).collect();
    let (cold, hot) = values.split_first().expect("there are values");
    hot.iter().for_each(|value| access(value, 100));
    assert!(is_cached(cold) && pinned_cache.used_bytes() == 10 * COUNT);

    let added = pinned(&pinned_cache, 10);
    access(&added, 50);
    let mut tries = 0;
    while !is_cached(&added) {
        assert!(added.load_if_admitted(|| Ok(10)).is_some() || tries < COUNT as usize / SAMPLE_LENGTH);
        tries += 1;
    }
    assert!(tries > 1, "the first sample does not have all values");
    assert!(!is_cached(cold) && hot.iter().all(is_cached) && pinned_cache.used_bytes() == 10 * COUNT);
}

#[test]
fn a_large_value_evicts_more_values_than_a_sample_has() {
    let pinned_cache = pinned_cache(10 * 300);
    let small: Vec<_> = (0..300).map(|_| pinned(&pinned_cache, 10)).collect();
    let large = pinned(&pinned_cache, 10 * 200);
    (0..1_000).for_each(|_| assert!(large.get(|| Ok(7)).is_ok()));
    assert!(is_cached(&large) && small.iter().filter(|value| is_cached(value)).count() == 100);
    assert_eq!(pinned_cache.used_bytes(), 10 * 300);
}

#[test]
fn dropped_values_are_forgotten_while_others_are_added() {
    let pinned_cache = pinned_cache(u64::MAX);
    let kept: Vec<_> = (0..10).map(|_| pinned(&pinned_cache, 10)).collect();
    (0..10_000).for_each(|_| drop(pinned(&pinned_cache, 10)));
    assert!(pinned_cache.cached.lock().0.len() < 30, "about half of them");
    assert!(kept.iter().all(is_cached) && pinned_cache.used_bytes() == 100);
}

#[test]
fn a_large_value_evicts_many_small_ones_between_hot_ones() {
    const COUNT: usize = 1000;
    let pinned_cache = pinned_cache(COUNT as u64 * 10);
    let small: Vec<Pinned<u64>> = (0..COUNT).map(|_| pinned(&pinned_cache, 10)).collect();
    let is_hot = |index: &usize| index.is_multiple_of(10);
    for (_, hot) in small.iter().enumerate().filter(|(index, _)| is_hot(index)) {
        for _ in 0..1000 {
            assert!(hot.get(|| Err(Error::Closed)).is_ok());
        }
    }
    // More bytes than the small values of several samples have together.
    let large = pinned(&pinned_cache, 4000);
    for _ in 0..5000 {
        assert!(large.get(|| Ok(4000)).is_ok());
    }
    assert!(is_cached(&large) && pinned_cache.used_bytes() <= COUNT as u64 * 10);
    assert!(small.iter().enumerate().filter(|(index, _)| is_hot(index)).all(|(_, hot)| is_cached(hot)));
}
