use super::*;

const SERIALIZABLE: Level = Level::Serializable;

fn read(key: u32, elements: &[u64]) -> Step {
    Step::ReadList { key, length: elements.len() as u32, digest: list_digest(elements) }
}

fn append(key: u32, element: u64) -> Step {
    Step::Append { key, element }
}

fn check(transactions: &[&[Step]], lists: &[(u32, &[u64])], level: Level) -> Result<(), Anomaly> {
    let mut history = History::default();
    transactions.iter().for_each(|steps| _ = history.commit(steps.to_vec()));
    history.check(&lists.iter().map(|(key, list)| (*key, list.to_vec())).collect(), level)
}

#[test]
fn a_serial_history_has_no_anomaly() {
    let transactions: [&[Step]; 4] = [
        &[read(1, &[]), append(1, 1), append(1, 2)],
        &[read(1, &[1, 2]), append(2, 3)],
        &[read(2, &[3]), append(1, 4)],
        &[read(1, &[1, 2, 4]), read(2, &[3])],
    ];
    let lists: [(u32, &[u64]); 2] = [(1, &[1, 2, 4]), (2, &[3])];
    assert_eq!(check(&transactions, &lists, SERIALIZABLE), Ok(()));
    assert_eq!(check(&transactions, &lists, Level::Snapshot), Ok(()));
}

#[test]
fn write_skew_is_an_anomaly_for_serializable_transactions_only() {
    let transactions: [&[Step]; 2] = [&[read(1, &[]), append(2, 1)], &[read(2, &[]), append(1, 2)]];
    let lists: [(u32, &[u64]); 2] = [(1, &[2]), (2, &[1])];
    assert_eq!(check(&transactions, &lists, SERIALIZABLE), Err(Anomaly::Cycle(vec![0, 1])));
    assert_eq!(check(&transactions, &lists, Level::Snapshot), Ok(()));
}

#[test]
fn lost_updates_long_forks_and_mixed_snapshots_are_found() {
    // A lost update of a list and of a register.
    let lost: [&[Step]; 2] = [&[read(1, &[]), append(1, 1)], &[read(1, &[]), append(1, 2)]];
    for level in [SERIALIZABLE, Level::Snapshot] {
        assert!(matches!(check(&lost, &[(1, &[1, 2])], level), Err(Anomaly::Cycle(_))));
        let set = |value| [Step::ReadRegister { key: 9, value: 0 }, Step::Set { key: 9, value }];
        assert_eq!(check(&[&set(1), &set(2)], &[], level), Err(Anomaly::LostUpdate { key: 9, value: 0 }));
    }
    // Two readers see two writes in different orders.
    let fork: [&[Step]; 4] =
        [&[append(1, 1)], &[append(2, 2)], &[read(1, &[1]), read(2, &[])], &[read(1, &[]), read(2, &[2])]];
    assert!(check(&fork, &[(1, &[1]), (2, &[2])], SERIALIZABLE).is_err());
    // A snapshot with one of two writes of a transaction.
    let mixed: [&[Step]; 2] = [&[append(1, 1), append(2, 2)], &[read(1, &[1]), read(2, &[])]];
    for level in [SERIALIZABLE, Level::Snapshot] {
        assert!(check(&mixed, &[(1, &[1]), (2, &[2])], level).is_err());
    }
}

#[test]
fn reads_of_what_was_never_committed_are_found() {
    let lists: [(u32, &[u64]); 1] = [(1, &[1, 2])];
    let writer: &[Step] = &[append(1, 1), append(1, 2)];
    let check = |step| check(&[writer, &[step]], &lists, SERIALIZABLE);
    assert_eq!(check(read(1, &[1])), Err(Anomaly::Intermediate { transaction: 1, key: 1 }));
    assert_eq!(check(read(1, &[3])), Err(Anomaly::NoPrefix { transaction: 1, key: 1 }));
    assert_eq!(check(read(1, &[1, 2, 3])), Err(Anomaly::NoPrefix { transaction: 1, key: 1 }));
    let unknown = Step::ReadRegister { key: 4, value: 5 };
    assert_eq!(check(unknown), Err(Anomaly::UnknownValue { transaction: 1, key: 4 }));
    assert_eq!(check(append(1, 9)), Err(Anomaly::LostAppend { key: 1, element: 9 }));
}
