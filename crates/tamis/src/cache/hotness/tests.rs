//! Counts are halved epoch by epoch.

use super::*;

#[test]
fn counts_are_halved_with_every_epoch() {
    let (epoch, hot, cold) = (Epoch::default(), Hotness::default(), Hotness::default());
    (1..=100).for_each(|count| assert_eq!(cold.record_access(&epoch), count));
    assert_eq!(cold.at(epoch.now()).round(), 100.0);
    (0..EPOCH_COUNT).for_each(|_| {
        hot.record_access(&epoch);
    });
    assert_eq!((epoch.now(), cold.at(epoch.now())), (1, 50.0));
    assert_eq!(cold.at(3), 12.5);
    assert_eq!(cold.at(u64::MAX), 0.0);
    assert_eq!(cold.record_access(&epoch), 101);
    assert_eq!(cold.at(1), 51.0);
    cold.set(7.5, 4);
    assert_eq!((cold.at(2), cold.at(4), cold.at(5)), (7.5, 7.5, 3.75));
}
