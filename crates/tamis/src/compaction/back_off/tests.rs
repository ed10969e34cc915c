use super::*;

const KEYSPACE: u32 = 1;

fn at(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn fail(back_off: &mut BackOff, partition: u64, now: Duration) {
    let number = 10 * partition;
    back_off.note_failure(KEYSPACE, BTreeSet::from([partition]), (number, &Error::Closed), (now, false));
}

fn succeed(back_off: &mut BackOff, partition: u64) {
    back_off.note_success(KEYSPACE, &BTreeSet::from([partition]));
}

#[test]
fn a_partition_waits_twice_as_long_after_each_failure() {
    let mut back_off = BackOff::default();
    let mut now = at(0);
    for wait in [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 64_000] {
        fail(&mut back_off, 7, now);
        let waiting = back_off.waiting(KEYSPACE, now);
        assert_eq!((waiting.held, waiting.retry_at), (vec![7], Some(now + at(wait))));
        assert_eq!(back_off.waiting(KEYSPACE + 1, now), WaitingPartitions::default());
        assert!(back_off.may_begin(KEYSPACE, now), "other partitions do not wait");
        now += at(wait);
        assert_eq!(back_off.waiting(KEYSPACE, now), WaitingPartitions::default());
    }
    succeed(&mut back_off, 7);
    fail(&mut back_off, 7, now);
    assert_eq!(back_off.waiting(KEYSPACE, now).retry_at, Some(now + RETRY));
}

/// As with a full disk.
#[test]
fn a_keyspace_waits_while_all_its_compactions_fail() {
    let mut back_off = BackOff::default();
    fail(&mut back_off, 1, at(0));
    assert!(back_off.may_begin(KEYSPACE, at(0)));
    fail(&mut back_off, 2, at(10));
    assert!(!back_off.may_begin(KEYSPACE, at(10)) && back_off.may_begin(KEYSPACE + 1, at(10)));
    assert_eq!(back_off.next_at(at(10)), Some(at(510)));
    assert!(back_off.may_begin(KEYSPACE, at(510)));
    fail(&mut back_off, 3, at(510));
    assert!(!back_off.may_begin(KEYSPACE, at(600)));
    assert_eq!(back_off.next_at(at(2_000)), None, "an end that has passed wakes no thread");
    succeed(&mut back_off, 4);
    assert!(back_off.may_begin(KEYSPACE, at(600)));
    fail(&mut back_off, 5, at(600));
    assert!(back_off.may_begin(KEYSPACE, at(600)));
}

#[test]
fn a_requested_retry_comes_after_other_compactions() {
    let mut back_off = BackOff::default();
    fail(&mut back_off, 1, at(0));
    fail(&mut back_off, 2, at(10));
    assert_eq!(back_off.retry_now(), [KEYSPACE]);
    assert!(back_off.may_begin(KEYSPACE, at(10)));
    fail(&mut back_off, 2, at(20));
    let expected = WaitingPartitions { held: vec![2], requested: vec![1], retry_at: Some(at(520)) };
    assert_eq!(back_off.waiting(KEYSPACE, at(20)), expected);
    back_off.forget(KEYSPACE);
    assert_eq!(back_off.waiting(KEYSPACE, at(20)), WaitingPartitions::default());
    assert_eq!(back_off.retry_now(), [0; 0]);
}

#[test]
fn a_waiting_writer_gets_the_newer_failures_of_its_partitions() {
    let mut back_off = BackOff::default();
    fail(&mut back_off, 1, at(0));
    fail(&mut back_off, 2, at(0));
    let found = |back_off: &BackOff, after: u64| {
        let has_failed = |wanted: u64| back_off.failure_after(after, KEYSPACE, |id| id <= wanted).is_some();
        [0, 1, 2].map(has_failed)
    };
    assert_eq!(found(&back_off, 0), [false, true, true]);
    assert_eq!(found(&back_off, 10), [false, false, true]);
    assert_eq!(found(&back_off, 20), [false, false, false]);
    succeed(&mut back_off, 2);
    assert_eq!(found(&back_off, 10), [false, false, false]);
}

#[test]
fn a_failure_that_a_thread_has_waited_for_is_tried_again_at_once() {
    let mut back_off = BackOff::default();
    for partition in [1, 2] {
        let failure = (7, &Error::Closed);
        back_off.note_failure(KEYSPACE, BTreeSet::from([partition]), failure, (at(0), true));
        assert!(back_off.may_begin(KEYSPACE, at(0)));
    }
    let expected = WaitingPartitions { held: vec![], requested: vec![1, 2], retry_at: None };
    assert_eq!(back_off.waiting(KEYSPACE, at(0)), expected);
}
