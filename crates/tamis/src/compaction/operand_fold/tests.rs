//! The entries that a flush or a compaction writes for the versions of a key.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use super::OperandFold;
use crate::{
    compaction::drop_rules::{Decision, DropRules},
    key::Kind,
    merge_operator::{FoldStep, MergeOperator},
};

/// The written entries: sequence number, kind and value.
type Written = Vec<(u64, Kind, String)>;

fn fold(operator: Option<&MergeOperator>, list: &[(u64, &str)], base: FoldStep<'_>) -> (Written, bool) {
    let mut fold = OperandFold::default();
    for (index, (sequence, operand)) in list.iter().enumerate() {
        if index == 0 {
            fold.begin(b"key", *sequence, operand.as_bytes());
        } else {
            assert!(fold.push(*sequence, operand.as_bytes()));
        }
    }
    let mut written = Vec::new();
    let has_base = fold
        .end(operator, base, &mut |key, sequence, kind, value| {
            assert_eq!(key, b"key");
            written.push((sequence, kind, String::from_utf8(value.to_vec()).unwrap()));
            Ok(())
        })
        .unwrap();
    assert!(fold.is_empty());
    (written, has_base)
}

#[test]
fn operands_are_folded_with_their_base_or_into_one() {
    let append = MergeOperator::append(b",");
    let list = [(9, "c"), (7, "b"), (5, "a")];
    let value = |text: &str| vec![(9, Kind::Put, text.to_owned())];
    assert_eq!(fold(Some(&append), &list, FoldStep::Base(Some(b"x"))), (value("x,a,b,c"), true));
    assert_eq!(fold(Some(&append), &list, FoldStep::Base(None)), (value("a,b,c"), true));
    let one = vec![(9, Kind::Operand, "a,b,c".to_owned())];
    assert_eq!(fold(Some(&append), &list, FoldStep::Continue), (one, true));
    let as_they_are: Written =
        list.iter().map(|(sequence, text)| (*sequence, Kind::Operand, (*text).to_owned())).collect();
    assert_eq!(fold(None, &list, FoldStep::Base(Some(b"x"))), (as_they_are.clone(), false));
    let failing = MergeOperator::associative("failing", |_, _| Err("no".to_owned()));
    assert_eq!(fold(Some(&failing), &list, FoldStep::Base(None)), (as_they_are, false));
}

/// The decisions about the versions of a key, newest first.
fn decisions(read_points: &[u64], is_lowest: bool, versions: &[(u64, Kind)]) -> Vec<Decision> {
    let mut rules = DropRules::new(read_points.to_vec(), []);
    versions.iter().map(|&(sequence, kind)| rules.decide(b"key", sequence, kind, || is_lowest)).collect()
}

#[test]
fn each_stratum_keeps_its_operands_down_to_a_full_value() {
    use Decision::{Base, Drop, Keep, NoBase, Operand as Kept};
    use Kind::{Operand, Put, Tombstone};
    let (newest, older) = (Kept { is_newest: true }, Kept { is_newest: false });
    let all = [(9, Operand), (8, Operand), (7, Put), (6, Operand), (5, Put)];
    assert_eq!(decisions(&[9], false, &all), [newest, older, Base, Drop, Drop]);
    // A snapshot at 8 divides the operands.
    assert_eq!(decisions(&[8, 9], false, &all), [newest, newest, Base, Drop, Drop]);
    // One at 6 sees the second value.
    assert_eq!(decisions(&[6, 9], false, &all), [newest, older, Base, newest, Base]);
    // Entries above the last point stay as they are.
    assert_eq!(decisions(&[7], false, &all), [Keep, Keep, Keep, Drop, Drop]);
    assert_eq!(decisions(&[9], true, &[(9, Operand), (7, Tombstone), (5, Put)]), [newest, NoBase, Drop]);
    assert_eq!(decisions(&[9], false, &[(9, Operand), (7, Tombstone), (5, Put)]), [newest, Base, Drop]);
    // The same entry twice is one.
    assert_eq!(decisions(&[9], false, &[(9, Operand), (9, Operand), (7, Put)]), [newest, Drop, Base]);
}
