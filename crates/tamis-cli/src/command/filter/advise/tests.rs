#![expect(clippy::unwrap_used, reason = "tests may panic")]

use tamis::Db;
use tamis_filter::{
    KeyRange,
    auto::{Query, QueryKind},
};

use super::keys_around;

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

#[test]
fn the_keys_of_a_large_store_are_those_around_its_queries() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path()).unwrap();
    for number in 0..100 {
        db.put(key(number), []).unwrap();
    }
    let read = |places: &[u32], count_max| -> Vec<u32> {
        let bounds: Vec<_> = places.iter().map(|place| (key(*place), key(place + 1))).collect();
        let query = |(lower, upper)| Query {
            kind: QueryKind::Range,
            range: KeyRange::closed(lower, upper),
            weight: 1.0,
        };
        let queries: Vec<_> = bounds.iter().map(|(lower, upper)| query((lower, upper))).collect();
        let keys = keys_around(&db.default_keyspace(), &queries, count_max).unwrap();
        keys.iter().map(|key| u32::from_be_bytes(key.try_into().unwrap())).collect()
    };
    assert_eq!(read(&[0, 78, 80, 81, 95], 10), (75..85).collect::<Vec<_>>());
    // At an end of the store the other side has more.
    assert_eq!(read(&[98], 10), (90..100).collect::<Vec<_>>());
    assert_eq!(read(&[1], 10), (0..10).collect::<Vec<_>>());
    assert_eq!(read(&[], 10), (0..10).collect::<Vec<_>>());
    assert_eq!(read(&[50], 1_000), (0..100).collect::<Vec<_>>());
}
