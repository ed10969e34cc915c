//! The pinned cache keeps what is worth most per byte, within its capacity.

use super::*;
use crate::error::Error;

fn pinned_cache(capacity_bytes: u64) -> Arc<PinnedCache> {
    PinnedCache::new(capacity_bytes, &Arc::default(), None)
}

fn kept(pinned_cache: &Arc<PinnedCache>, bytes: u64) -> Pinned<u64> {
    Pinned::counted(pinned_cache, &Arc::from(Path::new("/db/000001.table")), bytes, bytes)
}

fn is_held(kept: &Pinned<u64>) -> bool {
    match kept {
        Pinned::Fixed(_) => true,
        Pinned::Counted(counted) => counted.held().is_some(),
    }
}

#[test]
fn a_value_that_does_not_fit_is_given_and_reported_once() {
    let pinned_cache = pinned_cache(100);
    let large = kept(&pinned_cache, 101);
    for _ in 0..3 {
        assert_eq!(large.get(|| Ok(7)).map(|value| *value).ok(), Some(7));
    }
    assert!(!is_held(&large) && pinned_cache.used_bytes() == 0);
    assert_eq!(pinned_cache.metrics.cache_too_small.get(), 1);
    assert!(matches!(large.get(|| Err(Error::Closed)), Err(Error::Closed)));
}

#[test]
fn the_least_benefit_per_byte_goes_and_not_the_least_recent() {
    let pinned_cache = pinned_cache(100);
    let (often, large, seldom) = (kept(&pinned_cache, 40), kept(&pinned_cache, 50), kept(&pinned_cache, 10));
    for _ in 0..100 {
        let _ = often.get(|| Err(Error::Closed));
        let _ = large.get(|| Err(Error::Closed));
    }
    let _ = seldom.get(|| Err(Error::Closed));
    assert!(is_held(&often) && is_held(&large) && is_held(&seldom) && pinned_cache.used_bytes() == 100);

    // A newcomer needs 20 bytes: it may push out `seldom`, but not `large` for the rest, until it is worth more.
    let newcomer = kept(&pinned_cache, 20);
    assert!(!is_held(&newcomer) && is_held(&seldom));
    let mut needs = 0;
    while !is_held(&newcomer) {
        assert!(newcomer.get(|| Ok(20)).is_ok());
        needs += 1;
        assert!(needs < 200);
    }
    assert!(needs > 20, "{needs}");
    assert!(is_held(&often) && !is_held(&large) && pinned_cache.used_bytes() <= 100);
    assert!(large.get(|| Ok(50)).is_ok(), "a dropped value is loaded again");
}

#[test]
fn what_a_read_can_do_without_is_loaded_only_where_there_is_room() {
    let pinned_cache = pinned_cache(100);
    let first = kept(&pinned_cache, 90);
    for _ in 0..1000 {
        let _ = first.get(|| Err(Error::Closed));
    }
    let second = kept(&pinned_cache, 20);
    let loads = std::cell::Cell::new(0);
    for _ in 0..200 {
        let _ = second.get_if_room(|| {
            loads.set(loads.get() + 1);
            Ok(20)
        });
    }
    assert_eq!(loads.get(), 0, "it is worth less than what is there");
    drop(first);
    assert_eq!(pinned_cache.used_bytes(), 0);
    for _ in 0..200 {
        let _ = second.get_if_room(|| {
            loads.set(loads.get() + 1);
            Ok(20)
        });
    }
    assert!(is_held(&second) && loads.get() == 1);
}

#[test]
fn a_fixed_value_takes_no_part() {
    let fixed = Pinned::fixed(5_u64);
    assert_eq!(fixed.get(|| Err(Error::Closed)).map(|value| *value).ok(), Some(5));
    assert!(fixed.get_if_room(|| Err(Error::Closed)).is_some());
}

#[test]
fn a_share_takes_the_place_of_another_only_where_it_is_worth_clearly_more() {
    let pinned_cache = pinned_cache(100);
    let hotness = [(); 2].map(|()| Arc::new(Hotness::default()));
    let [first, second] = hotness.each_ref().map(|hotness| {
        let share = Share { hotness: Arc::clone(hotness), saved: 0.5 };
        Pinned::shared(&pinned_cache, &Arc::from(Path::new("/db/000001.table")), share, 80)
    });
    let [of_first, of_second] = &hotness;
    of_first.set(1000.0, 0);
    assert!(first.get_if_room_now(|| Ok(1_u64)).is_some());
    // Half as much again is what loading must be worth; the same going back, so that the two do not take turns.
    for (lookups, comes_in) in [(1000.0, false), (1450.0, false), (1550.0, true)] {
        of_second.set(lookups, 0);
        assert_eq!(second.get_if_room_now(|| Ok(2)).is_some(), comes_in, "{lookups}");
        assert_eq!((is_held(&first), is_held(&second)), (!comes_in, comes_in));
    }
    of_first.set(2200.0, 0);
    assert!(first.get_if_room_now(|| Ok(1)).is_none());
    of_first.set(2400.0, 0);
    assert!(first.get_if_room_now(|| Ok(1)).is_some() && !is_held(&second));
}

/// Needs of so many epochs, told to one value at a time.
fn need(kept: &Pinned<u64>, count: u64) {
    for _ in 0..count {
        let _ = kept.get_if_room(|| Ok(7));
    }
}

#[test]
fn memory_follows_the_hot_spot_when_it_moves_after_several_epochs() {
    const EPOCH: u64 = 1 << 20;
    let pinned_cache = pinned_cache(100);
    let (first, second) = (kept(&pinned_cache, 80), kept(&pinned_cache, 80));
    need(&first, 4 * EPOCH);
    assert!(is_held(&first) && !is_held(&second));
    // What was counted before is worth two epochs at most, and half with each that passes.
    need(&second, EPOCH / 2);
    assert!(is_held(&first) && !is_held(&second), "a short visit moves nothing");
    need(&second, 3 * EPOCH / 2);
    assert!(!is_held(&first) && is_held(&second));

    // The same between whole values and shares, both ways.
    let hotness = Arc::new(Hotness::default());
    let share = Share { hotness: Arc::clone(&hotness), saved: 0.75 };
    let unit = Pinned::shared(&pinned_cache, &Arc::from(Path::new("/db/000001.table")), share, 80);
    let in_vain = |count: u64| {
        for _ in 0..count {
            hotness.note(pinned_cache.epoch());
            let _ = unit.get_if_room(|| Ok(1));
        }
    };
    in_vain(4 * EPOCH);
    assert!(is_held(&unit) && !is_held(&second));
    need(&second, 3 * EPOCH);
    assert!(!is_held(&unit) && is_held(&second));
}

#[test]
fn to_look_at_a_value_is_no_need() {
    let pinned_cache = pinned_cache(100);
    let (first, second) = (kept(&pinned_cache, 80), kept(&pinned_cache, 80));
    for _ in 0..1000 {
        assert!(first.peek().is_some() && second.peek().is_none());
    }
    need(&second, 2 * RETRY_INTERVAL);
    assert!(is_held(&second) && !is_held(&first));
}
