use super::*;

#[test]
fn a_feed_that_has_lost_changes_names_the_first_position() {
    let failure = Failure::from(Error::ChangesLost { first_available: 7 });
    assert_eq!((failure.code, failure.first_available), (Code::ChangesLost, Some(7)));
}
