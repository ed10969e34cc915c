use super::*;

/// The queries of another keyspace are others, and so are the tables of another level.
#[test]
fn only_tables_of_one_level_of_one_keyspace_share_a_choice() {
    let choices = LastChoices::default();
    let one = choices.of(1, 2);
    assert!(Arc::ptr_eq(&one, &choices.of(1, 2)));
    assert!(!Arc::ptr_eq(&one, &choices.of(1, 3)) && !Arc::ptr_eq(&one, &choices.of(2, 2)));
}
