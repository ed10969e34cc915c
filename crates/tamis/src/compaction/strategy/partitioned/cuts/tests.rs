use super::*;
use crate::version::test_support::table;

/// The division of tables `(first, last, KiB)`; a new partition has at least 100 KiB.
fn division(tables: &[(&str, &str, u64)]) -> Division {
    let tables: Vec<Arc<Table>> = (1..)
        .zip(tables)
        .map(|(number, (first, last, kib))| table(number, (first, last), kib << 10, (1, 1)))
        .collect();
    divide(tables.iter(), 100 << 10)
}

fn keys(tables: &[(&str, &str, u64)]) -> Vec<String> {
    let keys = division(tables).keys;
    keys.into_iter().map(|key| String::from_utf8(key).expect("text")).collect()
}

#[test]
fn tables_in_key_order_are_divided_between_them() {
    let load = [("a", "b", 60), ("c", "d", 60), ("e", "f", 60), ("g", "h", 60), ("i", "j", 60)];
    assert_eq!(keys(&load), ["e"]);
    let large = [("a", "b", 100), ("c", "d", 100), ("e", "f", 100), ("g", "h", 20)];
    assert_eq!(keys(&large), ["c", "e"]);
}

#[test]
fn a_partition_is_split_at_keys_that_cut_few_bytes() {
    let base = [("a", "h", 100), ("i", "p", 100), ("q", "z", 100)];
    assert_eq!(keys(&base), ["i", "q"]);
    let with = |kib| keys(&[base[0], base[1], base[2], ("b", "y", kib)]);
    assert_eq!(with(10), ["i", "q"]);
    assert_eq!(with(40), [""; 0], "a third of the bytes would be rewritten");
    // The second key has far more bytes before it.
    assert_eq!(keys(&[("a", "h", 100), ("b", "y", 30), ("i", "p", 200), ("q", "z", 100)]), ["q"]);
}

#[test]
fn tables_that_begin_at_one_key_stay_together() {
    assert_eq!(keys(&[("a", "b", 200), ("c", "c", 1), ("c", "d", 100), ("c", "e", 100)]), ["c"]);
    assert_eq!(keys(&[("a", "a", 200), ("a", "a", 200)]), [""; 0]);
    assert_eq!(keys(&[]), [""; 0]);
}

/// A table that several keys cut through is rewritten once.
#[test]
fn the_expected_bytes_are_those_of_the_tables_that_a_key_cuts() {
    let base = [("a", "h", 100), ("i", "p", 100), ("q", "z", 100)];
    assert_eq!(division(&base).cut_bytes, 0);
    assert_eq!(division(&[base[0], base[1], base[2], ("b", "y", 10), ("i", "k", 5)]).cut_bytes, 10 << 10);
    assert_eq!(division(&[base[0], base[1], base[2], ("b", "k", 10), ("k", "r", 5)]).cut_bytes, 15 << 10);
    assert_eq!(division(&[("a", "a", 200), ("a", "a", 200)]), Division::default());
}
