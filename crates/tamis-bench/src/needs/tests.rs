#![expect(clippy::unwrap_used, reason = "tests may panic")]

use super::*;

#[test]
fn a_machine_that_is_too_small_is_told_with_the_need() {
    let needs = Needs { disk_bytes: 3 << 30, memory_bytes: 1 << 30 };
    let check = |disk, memory| {
        let checked = needs.check_against(Path::new("out"), disk, memory, "take a smaller --size");
        checked.map_err(|error| error.to_string())
    };
    assert_eq!(check(Some(3 << 30), Some(1 << 30)), Ok(()));
    assert_eq!(check(None, None), Ok(()), "a system that does not tell");
    let text = check(Some(1 << 20), None).unwrap_err();
    assert_eq!(
        text,
        "this needs 3072 MiB of disk, and 1 MiB are free in out: take a smaller --size, or make room"
    );
    let text = check(None, Some(0)).unwrap_err();
    assert_eq!(
        text,
        "this needs 1024 MiB of memory, and 0 MiB are free: take a smaller --size, or make room"
    );
    assert_eq!(needs.max(Needs { disk_bytes: 1, memory_bytes: 2 << 30 }).memory_bytes, 2 << 30);
}
