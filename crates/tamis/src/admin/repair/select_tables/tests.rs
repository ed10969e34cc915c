//! Small folders, each with the tables that must be left out.

use super::*;

/// Tables with the tables that they replace; `gone` are missing, `damaged` can't be read.
fn tables(all: &[(u64, &[u64])], installed: &[u64], damaged: &[u64]) -> Tables {
    Tables {
        readable: all.iter().map(|(number, replaced)| (*number, replaced.to_vec())).collect(),
        present: all.iter().map(|(number, _)| *number).chain(damaged.iter().copied()).collect(),
        installed: installed.iter().copied().collect(),
    }
}

fn numbers(left: &BTreeMap<u64, Exclusion>) -> Vec<u64> {
    left.keys().copied().collect()
}

#[test]
fn flushed_tables_all_stay() {
    assert!(excluded_tables(&tables(&[(1, &[]), (2, &[])], &[], &[])).is_empty());
}

#[test]
fn outputs_of_a_compaction_with_all_its_inputs_are_leftovers() {
    let left = excluded_tables(&tables(&[(1, &[]), (2, &[]), (3, &[1, 2]), (4, &[2, 1])], &[], &[]));
    assert_eq!(numbers(&left), [3, 4]);
    assert_eq!(left.get(&3), Some(&Exclusion::Leftover));
}

#[test]
fn inputs_of_a_compaction_that_lost_one_are_obsolete() {
    let left = excluded_tables(&tables(&[(1, &[]), (3, &[1, 2])], &[], &[]));
    assert_eq!(left, BTreeMap::from([(1, Exclusion::Obsolete { by: 3 })]));
}

#[test]
fn inputs_are_obsolete_when_the_manifest_has_the_output() {
    assert_eq!(numbers(&excluded_tables(&tables(&[(1, &[]), (2, &[]), (3, &[1, 2])], &[3], &[]))), [1, 2]);
}

#[test]
fn inputs_are_obsolete_when_the_output_was_compacted_again() {
    // 3 replaced 1 and 2, and 5 was to replace 3 and 4: 5 is a leftover, 3 proves itself.
    let left =
        excluded_tables(&tables(&[(1, &[]), (2, &[]), (3, &[1, 2]), (4, &[]), (5, &[3, 4])], &[], &[]));
    assert_eq!(numbers(&left), [1, 2, 5]);
    // 5 was installed: 4 is missing.
    let left = excluded_tables(&tables(&[(1, &[]), (2, &[]), (3, &[1, 2]), (5, &[3, 4])], &[], &[]));
    assert_eq!(numbers(&left), [1, 2, 3]);
}

#[test]
fn a_compaction_with_a_damaged_input_excludes_no_table() {
    assert!(excluded_tables(&tables(&[(1, &[]), (3, &[1, 2])], &[], &[2])).is_empty());
}
