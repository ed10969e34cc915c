use super::*;

const FAST: Flush = Flush {
    fill_time: Some(Duration::from_millis(200)),
    cached_flush_time: Some(Duration::from_millis(150)),
    memtable_bytes: 64 << 20,
    read_bytes: 0,
    is_disjoint: true,
};

#[test]
fn only_a_flush_that_slows_a_fill_in_order_bypasses_page_cache() {
    assert!(FAST.bypasses_page_cache());
    for (why, flush) in [
        ("a merge reads it soon", Flush { is_disjoint: false, ..FAST }),
        ("the store is read", Flush { read_bytes: 4 << 20, ..FAST }),
        ("it is small", Flush { memtable_bytes: 4 << 20, ..FAST }),
        ("the fill time is not known", Flush { fill_time: None, ..FAST }),
        ("the pace of the page cache is not known", Flush { cached_flush_time: None, ..FAST }),
        ("flushes keep up", Flush { cached_flush_time: Some(Duration::from_millis(45)), ..FAST }),
        (
            "writers are slow",
            Flush {
                fill_time: Some(Duration::from_secs(2)),
                cached_flush_time: Some(Duration::from_secs(9)),
                ..FAST
            },
        ),
    ] {
        assert!(!flush.bypasses_page_cache(), "{why}");
    }
}

#[test]
fn the_flush_rate_is_that_of_the_last_flush() {
    let pace = CachedPace::default();
    assert_eq!(pace.time_of(1 << 20), None);
    pace.note(64 << 20, Duration::from_millis(640));
    assert_eq!(pace.time_of(8 << 20), Some(Duration::from_millis(80)));
    pace.note(1 << 20, Duration::from_millis(1));
    assert_eq!(pace.time_of(8 << 20), Some(Duration::from_millis(8)));
    pace.note(0, Duration::ZERO);
    assert_eq!(pace.time_of(1 << 20), Some(Duration::from_nanos(1)), "it never becomes unknown again");
}
