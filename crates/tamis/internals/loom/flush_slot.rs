//! Every interleaving of a flush with a job that replaces the partition into which it writes, or whose entries it retains: run with
//! `RUSTFLAGS="--cfg loom" cargo test -p tamis --lib flush_slot::loom --release`.

use loom::{
    sync::{Arc, Mutex},
    thread,
};

use super::FlushSlot;

/// A partition: its id, and the keys of its tables.
type Partition = (u32, Vec<u32>);

/// A keyspace of one partition with the keys 0 and 10.
struct Keyspace {
    slot: FlushSlot,
    version: Mutex<Vec<Partition>>,
}

impl Keyspace {
    fn new() -> Arc<Self> {
        let version = Mutex::new(vec![(1, vec![0, 10])]);
        Arc::new(Self { slot: FlushSlot::new(), version })
    }

    fn version(&self) -> Vec<Partition> {
        self.version.lock().expect("no owner panics").clone()
    }

    fn take_slot(&self, try_take: impl Fn(&FlushSlot) -> bool) {
        while !try_take(&self.slot) {
            thread::yield_now();
        }
    }

    /// Writes the keys 1 and 11 by the partitions of a version, and installs them.
    fn flush(&self) {
        self.take_slot(FlushSlot::try_take_for_flush);
        let version = self.version();
        let upper = |index: usize| version.get(index + 1).map_or(u32::MAX, |_| 10);
        let mut keys = [1, 11].into_iter().peekable();
        let mut edit = Vec::new();
        for (index, (id, _)) in version.iter().enumerate() {
            while let Some(key) = keys.next_if(|key| *key < upper(index)) {
                edit.push((*id, key));
            }
        }
        let mut current = self.version.lock().expect("no owner panics");
        for (id, key) in edit {
            let place = current.iter_mut().find(|(other, _)| *other == id);
            place.expect("the partition of a flushed table is in the version").1.push(key);
        }
        drop(current);
        self.slot.give_back();
    }

    /// Splits the only partition before the key 10. The outputs are written without the slot.
    fn split(&self) {
        let merged = self.version();
        let (_, inputs) = merged.first().expect("a partition").clone();
        let request = self.slot.request_pause();
        self.take_slot(FlushSlot::try_take_for_pause);
        drop(request);
        let mut current = self.version.lock().expect("no owner panics");
        let (_, all) = current.pop().expect("a partition");
        // Keys that were flushed meanwhile are cut.
        let flushed = all.into_iter().filter(|key| !inputs.contains(key));
        let keys: Vec<u32> = inputs.iter().copied().chain(flushed).collect();
        let (below, above) = keys.into_iter().partition(|key| *key < 10);
        *current = vec![(2, below), (3, above)];
        drop(current);
        self.slot.give_back();
    }
}

#[test]
fn a_flush_and_a_split_lose_no_key() {
    loom::model(|| {
        let keyspace = Keyspace::new();
        let flushed = Arc::clone(&keyspace);
        let flush = thread::spawn(move || flushed.flush());
        keyspace.split();
        flush.join().expect("flush");
        let version = keyspace.version();
        assert_eq!(version.len(), 2);
        for ((_, mut keys), expected) in version.into_iter().zip([[0, 1], [10, 11]]) {
            keys.sort_unstable();
            assert_eq!(keys, expected);
        }
        assert!(!keyspace.slot.is_taken());
    });
}

#[test]
fn two_jobs_never_have_the_slot_at_once() {
    loom::model(|| {
        let slot = Arc::new(FlushSlot::new());
        let count = Arc::new(Mutex::new(0));
        let work = |slot: &FlushSlot, count: &Mutex<u32>, is_flush: bool| {
            let request = (!is_flush).then(|| slot.request_pause());
            let is_taken = if is_flush { slot.try_take_for_flush() } else { slot.try_take_for_pause() };
            if is_taken {
                *count.lock().expect("no owner panics") += 1;
                assert_eq!(*count.lock().expect("no owner panics"), 1);
                *count.lock().expect("no owner panics") -= 1;
                slot.give_back();
            }
            drop(request);
        };
        let (others_slot, others_count) = (Arc::clone(&slot), Arc::clone(&count));
        let other = thread::spawn(move || work(&others_slot, &others_count, true));
        work(&slot, &count, false);
        other.join().expect("job");
        assert!(slot.try_take_for_flush(), "the slot is free and nothing is requested");
    });
}

/// Two partitions, and the one whose entries a flush has retained.
struct RetainingKeyspace {
    slot: FlushSlot,
    version: Mutex<Vec<u32>>,
    retained: Mutex<Option<u32>>,
}

impl RetainingKeyspace {
    fn take_slot(&self, try_take: impl Fn(&FlushSlot) -> bool) {
        while !try_take(&self.slot) {
            thread::yield_now();
        }
    }

    /// Decides by the partitions of a version, and retains the entries of the first one.
    fn flush(&self) {
        self.take_slot(FlushSlot::try_take_for_flush);
        let first = self.version.lock().expect("no owner panics").first().copied();
        *self.retained.lock().expect("no owner panics") = first;
        self.slot.give_back();
    }

    /// Unites both partitions, unless entries of one were retained meanwhile. Whether that is so is known only while no flush runs.
    fn unite(&self) {
        let request = self.slot.request_pause();
        self.take_slot(FlushSlot::try_take_for_pause);
        drop(request);
        if self.retained.lock().expect("no owner panics").is_none() {
            *self.version.lock().expect("no owner panics") = vec![3];
        }
        self.slot.give_back();
    }
}

#[test]
fn no_union_takes_a_partition_while_its_entries_are_retained() {
    loom::model(|| {
        let keyspace = Arc::new(RetainingKeyspace {
            slot: FlushSlot::new(),
            version: Mutex::new(vec![1, 2]),
            retained: Mutex::new(None),
        });
        let flushed = Arc::clone(&keyspace);
        let flush = thread::spawn(move || flushed.flush());
        keyspace.unite();
        flush.join().expect("flush");
        let retained = keyspace.retained.lock().expect("no owner panics").expect("the flush retains entries");
        let version = keyspace.version.lock().expect("no owner panics").clone();
        assert!(version.contains(&retained), "partition {retained} was united: {version:?}");
        assert!(!keyspace.slot.is_taken());
    });
}
