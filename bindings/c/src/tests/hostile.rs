//! Random calls with null pointers, invalid lengths, closed databases and damaged bytes: each returns a code and, for a failure,
//! a message; none crashes.

use std::{ffi::CString, mem::MaybeUninit, ptr};

use tamis_bindings_common::Code;

use crate::{
    batch::*, boundary::results, changes::*, database::*, filter::*, keyspace::*, multi_get::*, options::*,
    scan::*, snapshot::*, table_writer::*, value::*, write::*,
};

/// A random number generator: the same seed gives the same calls.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    fn is_one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    /// A pointer and a length: mostly a short key, otherwise null or an invalid length.
    fn bytes(&mut self) -> (*const u8, usize) {
        const KEYS: &[u8] = b"abcdefgh\x00\xff\xff\x00zzzzzzzzzzzzzzzz";
        let length = self.below(KEYS.len());
        match self.below(12) {
            0 => (ptr::null(), length),
            1 => (ptr::null(), 0),
            2 => (KEYS.as_ptr(), usize::MAX - self.below(2)),
            3 => (KEYS.as_ptr(), isize::MAX as usize + 1 + self.below(100)),
            _ => (KEYS.as_ptr(), length),
        }
    }

    /// A time of expiry: in the past, in the far future, or at an end of the numbers.
    fn time(&mut self) -> u64 {
        match self.below(4) {
            0 => self.below(1_000) as u64,
            1 => u64::MAX - self.below(2) as u64,
            2 => 1 << 56,
            _ => (1 << 55) + self.below(1_000) as u64,
        }
    }

    fn bound(&mut self) -> RangeBound {
        let (data, length) = self.bytes();
        let kind = if self.is_one_in(10) { self.below(1 << 20) as i32 - 1_000 } else { self.below(3) as i32 };
        RangeBound { kind, key: Bytes { data, length } }
    }
}

/// The message of a call, and the check that it matches the code.
struct Message(MaybeUninit<*mut std::ffi::c_char>);

impl Message {
    fn expect(make: impl FnOnce(Option<&mut MaybeUninit<*mut std::ffi::c_char>>) -> Code) -> Code {
        let mut message = Self(MaybeUninit::new(ptr::dangling_mut()));
        let code = make(Some(&mut message.0));
        let text = take_text(&mut message.0);
        assert_ne!(code, Code::Panic, "{text:?}");
        match text {
            None => assert_eq!(code, Code::Ok),
            Some(text) => assert!(code != Code::Ok && text.len() > 10, "{code:?}: {text}"),
        }
        code
    }
}

fn take_text(text: &mut MaybeUninit<*mut std::ffi::c_char>) -> Option<String> {
    let pointer = std::mem::replace(text, MaybeUninit::new(ptr::null_mut()));
    results::take_text(pointer)
}

/// The handles of a random run; each may be null.
#[derive(Default)]
struct World {
    database: Option<Box<Database>>,
    keyspaces: Vec<KeyspaceHandle>,
    batch: Option<Box<Batch>>,
    scan: Option<Box<ScanHandle>>,
    snapshot: Option<Box<SnapshotHandle>>,
    feed: Option<Box<ChangesHandle>>,
    options: Option<Box<DatabaseOptions>>,
    writer: Option<Box<WriterHandle>>,
    builder: Option<Box<FilterBuilderHandle>>,
}

/// Calls a constructor and takes its handle, if any.
fn made<T>(
    make: impl FnOnce(Option<&mut MaybeUninit<*mut T>>, Option<&mut MaybeUninit<*mut std::ffi::c_char>>) -> Code,
) -> Option<Box<T>> {
    let mut handle = MaybeUninit::new(ptr::dangling_mut());
    let code = Message::expect(|message| make(Some(&mut handle), message));
    let handle = results::take_box(handle);
    assert_eq!(handle.is_some(), code == Code::Ok);
    handle
}

impl World {
    fn keyspace(&self, random: &mut Random) -> Option<&KeyspaceHandle> {
        let index = random.below(self.keyspaces.len() + 1);
        self.keyspaces.get(index)
    }

    fn step(&mut self, random: &mut Random, folder: &CString) {
        match random.below(9) {
            8 => self.follow(random),
            0 => self.open(random, folder),
            1 | 2 => self.write(random),
            3 => self.read(random),
            4 | 5 => self.scan(random),
            6 => self.maintain(random),
            _ => self.build(random, folder),
        }
    }

    fn open(&mut self, random: &mut Random, folder: &CString) {
        match random.below(6) {
            0 => {
                self.options = made(|out, message| tamis_options_new(out, message));
                let name = CString::new(
                    ["memtable_bytes", "no_such", "filters", "merge", "expire_after"][random.below(5)],
                )
                .unwrap();
                let value =
                    CString::new(["64KiB", "surf@12", "-1", "max", "union", "5ms"][random.below(6)]).unwrap();
                let value = if random.is_one_in(4) { ptr::null() } else { value.as_ptr() };
                let options = self.options.as_deref();
                Message::expect(|message| tamis_options_set(options, name.as_ptr(), value, message));
            }
            1 => {
                let path = if random.is_one_in(4) { ptr::null() } else { folder.as_ptr() };
                let options = self.options.as_deref();
                if let Some(opened) = made(|out, message| tamis_open(path, options, out, message)) {
                    self.database = Some(opened);
                }
            }
            2 => {
                let found =
                    made(|out, message| tamis_default_keyspace(self.database.as_deref(), out, message));
                self.keyspaces.extend(found.map(|keyspace| *keyspace));
            }
            3 => {
                let name = CString::new(["a", "", "default"][random.below(3)]).unwrap();
                let database = self.database.as_deref();
                let made =
                    made(|out, message| tamis_keyspace_create(database, name.as_ptr(), None, out, message));
                self.keyspaces.extend(made.map(|keyspace| *keyspace));
            }
            4 if random.is_one_in(5) => {
                let name = CString::new(["a", "b"][random.below(2)]).unwrap();
                let database = self.database.as_deref();
                Message::expect(|message| tamis_keyspace_drop(database, name.as_ptr(), message));
            }
            _ if random.is_one_in(20) => {
                Message::expect(|message| tamis_close(self.database.as_deref(), message));
                self.database = None;
            }
            _ => self.keyspaces.truncate(random.below(4)),
        }
    }

    fn write(&mut self, random: &mut Random) {
        let ((key, key_length), (value, value_length)) = (random.bytes(), random.bytes());
        let keyspace = self.keyspace(random);
        let batch = self.batch.as_deref();
        match random.below(13) {
            7 => self.delete_ranges(random),
            8..=11 => self.merge_and_expire(random),
            0 => self.batch = made(|out, message| tamis_batch_new(out, message)),
            1 => {
                Message::expect(|message| tamis_delete(keyspace, key, key_length, message));
            }
            2 => {
                Message::expect(|message| {
                    tamis_batch_put(batch, keyspace, key, key_length, value, value_length, message)
                });
            }
            3 => {
                Message::expect(|message| tamis_batch_delete(batch, keyspace, key, key_length, message));
            }
            4 => {
                let durability = random.below(5) as i32 - 1;
                let database = self.database.as_deref();
                Message::expect(|message| tamis_write(database, batch, durability, message));
            }
            _ => {
                Message::expect(|message| tamis_put(keyspace, key, key_length, value, value_length, message));
            }
        }
    }

    fn merge_and_expire(&self, random: &mut Random) {
        let ((key, key_length), (value, length)) = (random.bytes(), random.bytes());
        let (keyspace, batch) = (self.keyspace(random), self.batch.as_deref());
        let writer = self.writer.as_deref();
        let time = random.time();
        Message::expect(|message| match random.below(6) {
            0 => tamis_merge(keyspace, key, key_length, value, length, message),
            1 => tamis_put_until(keyspace, key, key_length, value, length, time, message),
            2 => tamis_batch_merge(batch, keyspace, key, key_length, value, length, message),
            3 => tamis_batch_put_until(batch, keyspace, key, key_length, value, length, time, message),
            4 => tamis_table_writer_merge(writer, key, key_length, value, length, message),
            _ => tamis_table_writer_put_until(writer, key, key_length, value, length, time, message),
        });
    }

    fn delete_ranges(&self, random: &mut Random) {
        let (lower, upper) = (random.bound(), random.bound());
        let (prefix, length) = random.bytes();
        let (keyspace, batch) = (self.keyspace(random), self.batch.as_deref());
        let durability = random.below(5) as i32 - 1;
        match random.below(6) {
            0 => Message::expect(|message| tamis_delete_range(keyspace, lower, upper, durability, message)),
            1 => {
                Message::expect(|message| tamis_delete_prefix(keyspace, prefix, length, durability, message))
            }
            2 => Message::expect(|message| tamis_clear(keyspace, durability, message)),
            3 => Message::expect(|message| tamis_batch_delete_range(batch, keyspace, lower, upper, message)),
            4 => Message::expect(|message| tamis_batch_append(batch, batch, message)),
            _ => {
                let ranges = [RangeOfKeys { lower, upper }, RangeOfKeys { lower: upper, upper: lower }];
                let mut scans = [const { MaybeUninit::uninit() }; 2];
                let count = if random.is_one_in(8) { usize::MAX / 2 } else { 2 };
                let target = scans.as_mut_ptr();
                let code = Message::expect(|message| {
                    tamis_multi_range(keyspace, None, ranges.as_ptr(), count, target, message)
                });
                if code == Code::Ok {
                    scans.into_iter().for_each(|scan| drop(results::take_box(scan)));
                }
                code
            }
        };
    }

    fn read(&mut self, random: &mut Random) {
        let (key, key_length) = random.bytes();
        let keyspace = self.keyspace(random);
        let snapshot = self.snapshot.as_deref();
        match random.below(4) {
            0 => {
                self.snapshot =
                    made(|out, message| tamis_snapshot_new(self.database.as_deref(), out, message))
            }
            1 => {
                let mut value = MaybeUninit::uninit();
                Message::expect(|message| {
                    tamis_get(keyspace, snapshot, key, key_length, Some(&mut value), message)
                });
                tamis_value_free(Some(results::written(&mut value)));
            }
            2 => {
                let keys: Vec<Bytes> = (0..random.below(5))
                    .map(|_| random.bytes())
                    .map(|(data, length)| Bytes { data, length })
                    .collect();
                let count = if random.is_one_in(8) { usize::MAX / 2 } else { keys.len() };
                let mut values: Vec<MaybeUninit<Value>> =
                    keys.iter().map(|_| MaybeUninit::uninit()).collect();
                let target = values.as_mut_ptr();
                let code = Message::expect(|message| {
                    tamis_multi_get(keyspace, snapshot, keys.as_ptr(), count, target, message)
                });
                if code == Code::Ok || count == keys.len() {
                    tamis_values_free(target.cast(), count);
                }
            }
            _ => {
                let mut buffer = [0; 8];
                let (mut length, mut is_found) = (MaybeUninit::uninit(), MaybeUninit::uninit());
                let capacity = if random.is_one_in(8) { usize::MAX } else { random.below(9) };
                let (target, length) =
                    (buffer.as_mut_ptr(), Some(&mut length).filter(|_| !random.is_one_in(5)));
                let capacity = capacity.min(if capacity > 8 { usize::MAX } else { 8 });
                Message::expect(|message| {
                    tamis_get_into(
                        keyspace,
                        snapshot,
                        key,
                        key_length,
                        target,
                        capacity,
                        length,
                        Some(&mut is_found),
                        message,
                    )
                });
            }
        }
    }

    fn scan(&mut self, random: &mut Random) {
        let (key, length) = random.bytes();
        let scan = self.scan.as_deref();
        let mut flag = MaybeUninit::uninit();
        match random.below(8) {
            0 | 1 => {
                let (lower, upper) = (random.bound(), random.bound());
                let (keyspace, snapshot) = (self.keyspace(random), self.snapshot.as_deref());
                let made = made(|out, message| tamis_range(keyspace, snapshot, lower, upper, out, message));
                self.scan = made;
            }
            2 => {
                let keyspace = self.keyspace(random);
                let made = made(|out, message| tamis_prefix(keyspace, None, key, length, out, message));
                self.scan = made;
            }
            3 => {
                Message::expect(|message| tamis_scan_seek(scan, key, length, message));
                Message::expect(|message| tamis_scan_seek_for_prev(scan, key, length, message));
            }
            4 => {
                Message::expect(|message| tamis_scan_prev(scan, Some(&mut flag), message));
            }
            5 => {
                Message::expect(|message| tamis_scan_seek_to_last(scan, message));
                let mut chunk = MaybeUninit::uninit();
                let count = random.below(4).wrapping_sub(1);
                Message::expect(|message| {
                    tamis_scan_chunk(scan, random.below(2) as i32, count, 100, Some(&mut chunk), message)
                });
            }
            6 => {
                let (mut key, mut value) = (MaybeUninit::uninit(), MaybeUninit::uninit());
                Message::expect(|message| tamis_scan_entry(scan, Some(&mut key), Some(&mut value), message));
            }
            _ => {
                Message::expect(|message| tamis_scan_next(scan, Some(&mut flag), message));
            }
        }
    }

    fn follow(&mut self, random: &mut Random) {
        extern "C" fn wants_the_next(_: *mut std::ffi::c_void, write: *const ChangeFields) -> bool {
            !write.is_null()
        }
        let (database, feed) = (self.database.as_deref(), self.feed.as_deref());
        match random.below(6) {
            0 => {
                let position = if random.is_one_in(3) { u64::MAX } else { random.below(20) as u64 };
                self.feed = made(|out, message| tamis_changes_open(database, position, out, message));
            }
            1 => {
                Message::expect(|message| tamis_refresh(database, message));
                let interval = if random.is_one_in(2) { u64::MAX } else { 0 };
                Message::expect(|message| tamis_refresh_every(database, interval, message));
            }
            2 => {
                let callback = (!random.is_one_in(4)).then_some(wants_the_next as _);
                Message::expect(|message| tamis_changes_ingested(feed, callback, ptr::null_mut(), message));
            }
            3 => {
                let mut position = MaybeUninit::uninit();
                Message::expect(|message| tamis_changes_position(feed, Some(&mut position), message));
            }
            _ => {
                let (mut change, mut has_change) = (MaybeUninit::uninit(), MaybeUninit::uninit());
                let wait = random.below(2) as u64;
                let target = Some(&mut change).filter(|_| !random.is_one_in(8));
                Message::expect(|message| {
                    tamis_changes_next(feed, wait, target, Some(&mut has_change), message)
                });
            }
        }
    }

    fn maintain(&mut self, random: &mut Random) {
        let (lower, upper) = (random.bound(), random.bound());
        let database = self.database.as_deref();
        let mut json = MaybeUninit::uninit();
        match random.below(6) {
            0 => {
                Message::expect(|message| tamis_flush(database, message));
            }
            1 => {
                let keyspace = self.keyspace(random);
                Message::expect(|message| tamis_compact(database, keyspace, lower, upper, message));
            }
            2 => {
                Message::expect(|message| tamis_statistics(database, Some(&mut json), message));
                take_text(&mut json);
            }
            3 => {
                Message::expect(|message| tamis_keyspace_names(database, Some(&mut json), message));
                take_text(&mut json);
            }
            4 => {
                let mut count = MaybeUninit::uninit();
                let keyspace = self.keyspace(random);
                Message::expect(|message| {
                    tamis_approximate_count(keyspace, lower, upper, Some(&mut count), message)
                });
            }
            _ => {
                Message::expect(|message| tamis_verify(database, Some(&mut json), message));
                take_text(&mut json);
            }
        }
    }

    fn build(&mut self, random: &mut Random, folder: &CString) {
        let ((key, key_length), (lower, upper)) = (random.bytes(), (random.bound(), random.bound()));
        let (writer, builder) = (self.writer.as_deref(), self.builder.as_deref());
        match random.below(7) {
            0 => {
                let name = CString::new(format!("{}.table", folder.to_str().unwrap())).unwrap();
                let keyspace = self.keyspace(random);
                let made = made(|out, message| tamis_table_writer_new(keyspace, name.as_ptr(), out, message));
                self.writer = made;
            }
            1 => {
                Message::expect(|message| {
                    tamis_table_writer_put(writer, key, key_length, key, key_length, message)
                });
            }
            2 => {
                let files = [folder.as_ptr(), ptr::null()];
                let keyspace = self.keyspace(random);
                let database = self.database.as_deref();
                let (count, keep) = (random.below(3), random.below(2) == 0);
                Message::expect(|message| {
                    tamis_ingest(database, keyspace, files.as_ptr(), count, keep, None, message)
                });
            }
            3 => {
                let specifications =
                    ["surf@16", "blocked-bloom@10", "rosetta@20", "cuckoo", "surf-real:bits=x"];
                let name = CString::new(specifications[random.below(specifications.len())]).unwrap();
                self.builder = made(|out, message| tamis_filter_builder_new(name.as_ptr(), 1, out, message));
            }
            4 => {
                Message::expect(|message| tamis_filter_builder_sample(builder, lower, upper, message));
            }
            5 => {
                let bits = [0.0, 12.0, f64::NAN, -3.0, f64::INFINITY][random.below(5)];
                let mut value = MaybeUninit::uninit();
                Message::expect(|message| {
                    tamis_filter_builder_finish(builder, bits, Some(&mut value), message)
                });
                let value = results::written(&mut value);
                let mut bytes = crate::boundary::bytes(value.data, value.length, "filter").unwrap().to_vec();
                tamis_value_free(Some(value));
                if !bytes.is_empty() && random.is_one_in(2) {
                    let index = random.below(bytes.len());
                    bytes[index] ^= 1 << random.below(8);
                }
                query(&bytes, random);
            }
            _ => {
                Message::expect(|message| tamis_filter_builder_add(builder, key, key_length, message));
            }
        }
    }
}

/// Runs every query on a filter that may be damaged.
fn query(bytes: &[u8], random: &mut Random) {
    let open = made(|out, message| tamis_filter_open(bytes.as_ptr(), bytes.len(), out, message));
    let filter = open.as_deref();
    let (key, length) = random.bytes();
    let (lower, upper) = (random.bound(), random.bound());
    let mut answer = MaybeUninit::uninit();
    Message::expect(|message| tamis_filter_may_contain(filter, key, length, Some(&mut answer), message));
    Message::expect(|message| {
        tamis_filter_may_contain_range(filter, lower, upper, Some(&mut answer), message)
    });
    Message::expect(|message| {
        let (data, length) = (bytes.as_ptr(), bytes.len());
        tamis_filter_bytes_may_contain_range(data, length, lower, upper, Some(&mut answer), message)
    });
    Message::expect(|message| {
        tamis_filter_may_contain_prefix(filter, key, length, Some(&mut answer), message)
    });
    let (mut kind, mut candidate) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let is_backward = random.below(2) as i32;
    Message::expect(|message| {
        tamis_filter_candidate(
            filter,
            lower,
            upper,
            is_backward,
            Some(&mut kind),
            Some(&mut candidate),
            message,
        )
    });
    tamis_value_free(Some(results::written(&mut candidate)));
    let mut json = MaybeUninit::uninit();
    Message::expect(|message| tamis_filter_describe(filter, Some(&mut json), message));
    take_text(&mut json);
    Message::expect(|message| tamis_filter_verify(filter, message));
}

#[test]
fn random_calls_return_codes_and_messages() {
    for seed in 0..40 {
        let folder = tempfile::tempdir().unwrap();
        let path = CString::new(folder.path().join("store").to_str().unwrap()).unwrap();
        let mut random = Random(seed);
        let mut world = World::default();
        for _ in 0..400 {
            world.step(&mut random, &path);
        }
    }
}

#[test]
fn panics_are_caught_at_the_boundary() {
    let code = crate::boundary::call(None, || panic!("a bug"));
    assert_eq!(code, Code::Panic);
    let mut message = MaybeUninit::uninit();
    assert_eq!(crate::boundary::call(Some(&mut message), || panic!("number {}", 7)), Code::Panic);
    assert!(take_text(&mut message).unwrap().contains("number 7"));
    crate::boundary::quiet(|| panic!("in a destructor"));
}
