//! The built-in operators, and what failing ones do.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use super::{FoldStep, Merge, MergeOperator, Operands, SortedSet};
use crate::{error::Error, key::Kind};

/// The operands, which are given oldest first.
fn operands(list: &[&[u8]]) -> Operands {
    let mut operands = Operands::default();
    for (index, operand) in list.iter().enumerate().rev() {
        operands.push(index as u64 + 1, operand);
    }
    operands
}

fn merged(operator: &MergeOperator, base: Option<&[u8]>, list: &[&[u8]]) -> Vec<u8> {
    operands(list).merge(Some(operator), "keyspace", b"key", base).unwrap()
}

#[test]
fn built_in_operators_merge_with_and_without_a_base() {
    let number = |number: u64| number.to_be_bytes();
    let (two, three, ten) = (number(2), number(3), number(10));
    let add = MergeOperator::add_u64();
    assert_eq!(merged(&add, Some(&ten), &[&two, &three]), number(15));
    assert_eq!(merged(&add, None, &[&two, &three]), number(5));
    assert_eq!(merged(&add, Some(&number(u64::MAX)), &[&two]), number(1), "sums wrap around");
    let minus = (-5_i64).to_be_bytes();
    assert_eq!(merged(&MergeOperator::add_i64(), Some(&three), &[&minus]), (-2_i64).to_be_bytes());
    assert_eq!(merged(&MergeOperator::max(), Some(&three), &[&two, &ten]), ten);
    assert_eq!(merged(&MergeOperator::min(), Some(&three), &[&two, &ten]), two);
    let append = MergeOperator::append(b", ");
    assert_eq!(merged(&append, Some(b"a"), &[b"b", b"c"]), b"a, b, c");
    assert_eq!(merged(&append, None, &[b"b", b"c"]), b"b, c");
    let set = |elements: &[&str]| SortedSet::from_iter(elements).encode();
    let united = merged(&MergeOperator::union(), Some(&set(&["b", "d"])), &[&set(&["a", "b"]), &set(&["c"])]);
    assert_eq!(united, set(&["a", "b", "c", "d"]));
}

#[test]
fn combined_operands_have_the_effect_of_all_of_them() {
    let set = |elements: &[&str]| SortedSet::from_iter(elements).encode();
    let number = |number: u64| number.to_be_bytes().to_vec();
    let cases = [
        (MergeOperator::add_u64(), number(7), [number(1), number(2), number(4)]),
        (MergeOperator::add_i64(), number(7), [number(1), number(u64::MAX), number(4)]),
        (MergeOperator::max(), number(3), [number(1), number(9), number(4)]),
        (MergeOperator::min(), number(3), [number(1), number(9), number(4)]),
        (MergeOperator::append(b""), number(3), [number(1), number(9), number(4)]),
        (MergeOperator::union(), set(&["c"]), [set(&["a"]), set(&["b", "c"]), set(&[])]),
    ];
    for (operator, base, list) in cases {
        let list: Vec<&[u8]> = list.iter().map(Vec::as_slice).collect();
        let expected = merged(&operator, Some(&base), &list);
        for cut in 1..=list.len() {
            let (first, rest) = list.split_at(cut);
            let combined = operands(first).fold(&operator, b"key", FoldStep::Continue);
            let first = match &combined {
                Some((Kind::Operand, operand)) => vec![operand.as_slice()],
                Some(other) => panic!("{other:?}"),
                None => first.to_vec(),
            };
            let all = [first, rest.to_vec()].concat();
            assert_eq!(merged(&operator, Some(&base), &all), expected, "{operator:?} cut at {cut}");
        }
    }
}

#[test]
fn names_select_the_built_in_operators() {
    for operator in [
        MergeOperator::add_u64(),
        MergeOperator::add_i64(),
        MergeOperator::max(),
        MergeOperator::min(),
        MergeOperator::union(),
        MergeOperator::append(b""),
        MergeOperator::append(b"\x00, "),
    ] {
        assert_eq!(MergeOperator::named(operator.name()).as_ref(), Some(&operator));
        operator.check_name().unwrap();
    }
    for unknown in ["", "add", "append", "append:2", "append:2C", "append:zz", "append:+1"] {
        assert_eq!(MergeOperator::named(unknown), None, "{unknown:?}");
    }
    let taken = MergeOperator::associative("max", |older, _| Ok(older.to_vec()));
    assert!(matches!(taken.check_name(), Err(Error::InvalidArgument { .. })));
    let reserved = MergeOperator::associative("none", |older, _| Ok(older.to_vec()));
    assert!(matches!(reserved.check_name(), Err(Error::InvalidArgument { .. })));
    assert!(matches!(
        MergeOperator::associative("", |older, _| Ok(older.to_vec())).check_name(),
        Err(Error::InvalidArgument { .. })
    ));
}

struct Failing;

impl Merge for Failing {
    fn merge(&self, _: &[u8], base: Option<&[u8]>, _: &[&[u8]]) -> Result<Vec<u8>, String> {
        match base {
            Some(b"panic") => panic!("of the operator"),
            _ => Err("no".to_owned()),
        }
    }

    fn combine(&self, _: &[u8], _: &[&[u8]]) -> Option<Vec<u8>> {
        panic!("of combine")
    }
}

#[test]
fn a_failure_and_a_panic_are_errors_of_the_key() {
    let operator = MergeOperator::new("failing", Failing);
    for (base, expected) in [(&b"fail"[..], "no"), (b"panic", "it panicked: of the operator")] {
        let failed = operands(&[b"a"]).merge(Some(&operator), "keyspace", b"key", Some(base));
        let Err(Error::MergeFailed { operator, key, reason, .. }) = failed else { panic!("{failed:?}") };
        assert_eq!((operator.as_str(), key.as_slice(), reason.as_str()), ("failing", &b"key"[..], expected));
    }
    assert_eq!(operands(&[b"a", b"b"]).fold(&operator, b"key", FoldStep::Continue), None);
    assert_eq!(operands(&[b"a", b"b"]).fold(&operator, b"key", FoldStep::Base(None)), None);
}

#[test]
fn invalid_operands_are_refused() {
    let refused = |operator: &MergeOperator, operand: &[u8]| {
        matches!(operator.check_operand(operand), Err(Error::InvalidArgument { what: "merge operand", .. }))
    };
    assert!(refused(&MergeOperator::add_u64(), b"1234567"));
    assert!(!refused(&MergeOperator::add_u64(), b"12345678"));
    assert!(refused(&MergeOperator::union(), b"\x05a"));
    assert!(refused(&MergeOperator::union(), b"\x01b\x01a"), "not sorted");
    assert!(!refused(&MergeOperator::union(), b"\x01a\x01b"));
    assert!(!refused(&MergeOperator::max(), b""));
}

#[test]
fn an_operator_without_its_functions_is_missing() {
    let stored = MergeOperator::stored("custom").unwrap();
    let missing = stored.resolve("keyspace", &[]);
    assert!(matches!(missing, Err(Error::MergeOperatorMissing { operator, .. }) if operator == "custom"));
    let given = MergeOperator::new("custom", Failing);
    assert_eq!(stored.resolve("keyspace", &[given]).unwrap(), stored);
    assert!(MergeOperator::stored("add_u64").unwrap().resolve("keyspace", &[]).is_ok());
    assert!(MergeOperator::stored("").is_none());
    assert!(MergeOperator::stored(&"n".repeat(256)).is_none());
}
