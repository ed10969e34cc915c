//! Every interleaving of small inserts and reads: run with
//! `RUSTFLAGS="--cfg loom" cargo test -p tamis --lib memtable::loom --release`.

use std::sync::Arc;

use loom::{model::Builder, thread};

use super::{ChunkPool, Memtable};
use crate::{
    cursor::Cursor,
    key::{Kind, SEQUENCE_MAX},
};

/// Structures of this size need no more preemptions to show their bugs, and more take hours.
const PREEMPTION_COUNT_MAX: usize = 3;

fn explore(test: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(PREEMPTION_COUNT_MAX);
    builder.max_branches = 10_000;
    builder.check(test);
}

fn keys(memtable: &Arc<Memtable>) -> Vec<Vec<u8>> {
    let mut cursor = memtable.cursor();
    let mut keys = Vec::new();
    cursor.seek_first().expect("memory");
    while cursor.is_valid() {
        assert_eq!(cursor.key(), cursor.value());
        keys.push(cursor.key().to_vec());
        cursor.next().expect("memory");
    }
    keys
}

#[test]
fn two_adjacent_inserts_are_both_linked() {
    explore(|| {
        let memtable = Memtable::new(&ChunkPool::new());
        memtable.insert(b"a", 1, Kind::Put, b"a");
        let other = {
            let memtable = Arc::clone(&memtable);
            thread::spawn(move || memtable.insert(b"b", 2, Kind::Put, b"b"))
        };
        memtable.insert(b"c", 3, Kind::Put, b"c");
        other.join().expect("inserter");
        assert_eq!(keys(&memtable), [b"a", b"b", b"c"]);
        assert!(memtable.get(b"b", SEQUENCE_MAX).is_some());
    });
}

#[test]
fn a_reader_sees_whole_entries_in_order() {
    explore(|| {
        let memtable = Memtable::new(&ChunkPool::new());
        memtable.insert(b"b", 1, Kind::Put, b"b");
        // The writer continues: loom lets a load return each earlier store that it may see, but no later one.
        let reader = {
            let memtable = Arc::clone(&memtable);
            thread::spawn(move || {
                let seen = keys(&memtable);
                assert!(seen.is_sorted() && seen.contains(&b"b".to_vec()), "{seen:?}");
                if let Some((kind, sequence, value)) = memtable.get(b"c", SEQUENCE_MAX) {
                    assert_eq!((kind, sequence, value), (Kind::Put, 3, b"c".as_slice()));
                    assert!(
                        memtable.get(b"a", SEQUENCE_MAX).is_some(),
                        "inserted before c by the same thread"
                    );
                }
            })
        };
        memtable.insert(b"a", 2, Kind::Put, b"a");
        memtable.insert(b"c", 3, Kind::Put, b"c");
        reader.join().expect("reader");
        assert_eq!(keys(&memtable), [b"a", b"b", b"c"]);
    });
}
