use super::*;

fn of(parts: &[&[u8]]) -> u64 {
    let mut digest = OperationDigest::default();
    parts.iter().for_each(|part| digest.add_bytes(part));
    digest.finish()
}

#[test]
fn digest_depends_on_content_order_and_boundaries() {
    let all: &[&[&[u8]]] = &[
        &[],
        &[b""],
        &[b"", b""],
        &[b"a"],
        &[b"ab"],
        &[b"a", b"b"],
        &[b"b", b"a"],
        &[b"\0a"],
        &[b"a\0"],
        &[b"12345678"],
        &[b"123456789"],
        &[b"1234567", b"89"],
    ];
    let mut digests: Vec<u64> = all.iter().map(|parts| of(parts)).collect();
    assert_eq!(digests, all.iter().map(|parts| of(parts)).collect::<Vec<_>>());
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), all.len());
}
