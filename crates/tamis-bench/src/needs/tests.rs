#![expect(clippy::unwrap_used, reason = "tests may panic")]

use super::*;

#[test]
fn too_little_disk_or_memory_is_reported_with_the_need() {
    let needs = Needs { disk_bytes: 3 << 30, memory_bytes: 1 << 30 };
    let check = |disk, memory| {
        let checked = needs.check_against(Path::new("out"), disk, memory, "use a smaller --size");
        checked.map_err(|error| error.to_string())
    };
    assert_eq!(check(Some(3 << 30), Some(1 << 30)), Ok(()));
    assert_eq!(check(None, None), Ok(()), "the system does not report free resources");
    let text = check(Some(1 << 20), None).unwrap_err();
    assert_eq!(
        text,
        "3072 MiB of disk are needed, but only 1 MiB are free in out; use a smaller --size, or free some"
    );
    let text = check(None, Some(0)).unwrap_err();
    assert_eq!(
        text,
        "1024 MiB of memory are needed, but only 0 MiB are free; use a smaller --size, or free some"
    );
    assert_eq!(needs.max(Needs { disk_bytes: 1, memory_bytes: 2 << 30 }).memory_bytes, 2 << 30);
}
