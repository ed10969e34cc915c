#![expect(clippy::unwrap_used, reason = "tests may panic")]

use super::*;

#[test]
fn times_are_milliseconds_since_1970() {
    assert_eq!(time_at(0).unwrap(), UNIX_EPOCH);
    let time = time_at(1_500).unwrap();
    assert_eq!(time, UNIX_EPOCH + Duration::from_millis(1_500));
    assert!((seconds_of(time) - 1.5).abs() < 1e-9);
    assert!((seconds_of(UNIX_EPOCH - Duration::from_secs(2)) + 2.0).abs() < 1e-9);
}
