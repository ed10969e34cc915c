//! Writers, readers, snapshots, scans, flushes, compactions, and keyspaces that are created and dropped, on real threads.
//!
//! Each writer owns its keys, so that the final state is the union of the writers' models. While they run, readers check the
//! guarantees that hold at every moment: a batch is visible completely or not at all, a snapshot does not change, a backward scan
//! is a reversed forward scan, a counter never decreases, and a writer reads its own writes.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    thread,
};

use tamis::{
    Db, Durability, Error, Keyspace, KeyspaceOptions, Layout, Options, Runtime, Scan, Slice, Views,
    WriteBatch,
};
use tamis_vfs::{Access, FaultVfs, MemVfs, OperationKind, OsVfs, Rule, Vfs};

use crate::support::{FOLDER, SplitMix64, small_keyspace};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

const SLOT_COUNT: u64 = 60;
const ACCOUNT_COUNT: u64 = 8;
const BALANCE: u64 = 1_000;

#[derive(Clone)]
struct World {
    db: Db,
    /// Keyspaces that contain the same entries at every moment.
    left: Keyspace,
    right: Keyspace,
    /// Their sum is the same at every moment.
    accounts: Keyspace,
    writer_count: u64,
}

fn counter_key(writer: u64) -> Vec<u8> {
    format!("counter/{writer}").into_bytes()
}

fn slot_key(writer: u64, slot: u64) -> Vec<u8> {
    format!("slot/{slot:03}/{writer}").into_bytes()
}

fn account_key(writer: u64, account: u64) -> Vec<u8> {
    format!("account/{account}/{writer}").into_bytes()
}

fn number(value: &[u8]) -> u64 {
    u64::from_be_bytes(value[..8].try_into().unwrap())
}

fn durability(random: &mut SplitMix64) -> Durability {
    match random.below(20) {
        0 => Durability::Synced,
        1..8 => Durability::Deferred,
        _ => Durability::Buffered,
    }
}

impl World {
    fn new(vfs: Arc<dyn Vfs>, folder: &std::path::Path, options: Options, shape: &Shape) -> Self {
        let runtime = Runtime { seed: 5, ..Runtime::system() };
        let db = Db::open_on(vfs, folder, options, runtime).unwrap();
        let keyspace = |name| db.get_or_create_keyspace(name, shape.keyspace.clone()).unwrap();
        let (left, right, accounts) = (keyspace("left"), keyspace("right"), keyspace("accounts"));
        Self { db, left, right, accounts, writer_count: shape.writer_count }
    }

    /// Before any thread: all accounts have the same balance.
    fn fill(&self) {
        let mut batch = WriteBatch::new();
        for writer in 0..self.writer_count {
            for account in 0..ACCOUNT_COUNT {
                batch.put(&self.accounts, account_key(writer, account), BALANCE.to_be_bytes()).unwrap();
            }
        }
        self.db.write(batch).unwrap();
    }

    fn check_sum(&self, values: impl Iterator<Item = Slice>) {
        let (mut sum, mut count) = (0, 0);
        for value in values {
            sum += number(&value);
            count += 1;
        }
        let expected = self.writer_count * ACCOUNT_COUNT;
        assert_eq!((sum, count), (expected * BALANCE, expected), "half a transfer was seen");
    }
}

/// A writer's view of its keys.
#[derive(Default)]
struct Own {
    pairs: Model,
    accounts: Model,
}

fn write(world: &World, writer: u64, step_count: u64, random: &mut SplitMix64) -> Own {
    let mut own = Own::default();
    let mut balances = [BALANCE; ACCOUNT_COUNT as usize];
    for step in 1..=step_count {
        let mut batch = WriteBatch::new();
        let slot = slot_key(writer, random.below(SLOT_COUNT));
        // The counter is the progress of this writer; the slot gets a value of random length, or is deleted.
        let mut puts = vec![(counter_key(writer), step.to_be_bytes().to_vec())];
        if random.below(4) == 0 {
            batch.delete(&world.left, &slot).unwrap();
            batch.delete(&world.right, &slot).unwrap();
            own.pairs.remove(&slot);
        } else {
            let mut value = step.to_be_bytes().to_vec();
            value.resize(8 + random.below(300) as usize, writer as u8);
            puts.push((slot.clone(), value));
        }
        for (key, value) in puts {
            batch.put(&world.left, &key, &value).unwrap();
            batch.put(&world.right, &key, &value).unwrap();
            own.pairs.insert(key, value);
        }
        let (from, to) = (random.below(ACCOUNT_COUNT) as usize, random.below(ACCOUNT_COUNT) as usize);
        let amount = random.below(balances[from] + 1);
        balances[from] -= amount;
        balances[to] += amount;
        for account in [from, to] {
            let key = account_key(writer, account as u64);
            batch.put(&world.accounts, &key, balances[account].to_be_bytes()).unwrap();
        }
        world.db.write_with(batch, durability(random)).unwrap();
        let (left, right) = (world.left.get(&slot).unwrap(), world.right.get(&slot).unwrap());
        assert_eq!(left.as_deref(), own.pairs.get(&slot).map(Vec::as_slice), "writer {writer} at {step}");
        assert_eq!(left, right);
    }
    for account in 0..ACCOUNT_COUNT {
        own.accounts.insert(account_key(writer, account), balances[account as usize].to_be_bytes().to_vec());
    }
    own
}

fn entries(scan: Scan) -> Vec<(Slice, Slice)> {
    scan.map(|entry| entry.unwrap()).collect()
}

fn entries_back(scan: Scan) -> Vec<(Slice, Slice)> {
    let mut entries: Vec<_> = scan.rev().map(|entry| entry.unwrap()).collect();
    entries.reverse();
    entries
}

fn read(world: &World, random: &mut SplitMix64, is_over: impl Fn() -> bool) {
    let mut counters = vec![0; world.writer_count as usize];
    let mut held: Option<(tamis::Snapshot, Vec<(Slice, Slice)>)> = None;
    loop {
        let is_last = is_over();
        // A scan that pauses for a while returns the state at which it began.
        let mut slow = world.accounts.range(..);
        let begun: Vec<_> = slow.by_ref().take(3).map(|entry| entry.unwrap().1).collect();

        let snapshot = world.db.snapshot();
        let left = entries(snapshot.range(&world.left, ..));
        assert_eq!(left, entries_back(snapshot.range(&world.right, ..)), "half a batch was seen");
        world.check_sum(
            entries(snapshot.prefix(&world.accounts, "account/")).into_iter().map(|entry| entry.1),
        );
        let from = slot_key(random.below(world.writer_count), random.below(SLOT_COUNT));
        let part = entries_back(snapshot.range(&world.left, from.clone()..));
        let expected: Vec<_> = left.iter().filter(|(key, _)| **key >= *from).cloned().collect();
        assert_eq!(part, expected);
        for (key, value) in left.iter().step_by(17) {
            assert_eq!(snapshot.get(&world.left, key).unwrap().as_ref(), Some(value));
        }

        for (writer, last) in counters.iter_mut().enumerate() {
            let value = world.left.get(counter_key(writer as u64)).unwrap();
            let now = value.map_or(0, |value| number(&value));
            assert!(now >= *last, "counter {writer} went back from {last} to {now}");
            *last = now;
        }
        let keys: Vec<_> = (0..world.writer_count)
            .flat_map(|writer| (0..ACCOUNT_COUNT).map(move |account| account_key(writer, account)))
            .collect();
        world.check_sum(world.accounts.multi_get(&keys).unwrap().into_iter().flatten());
        world.check_sum(entries(world.accounts.range(..)).into_iter().map(|entry| entry.1));
        world.check_sum(begun.into_iter().chain(slow.map(|entry| entry.unwrap().1)));

        // The snapshot of some rounds before still returns the same state.
        if let Some((snapshot, seen)) = &held {
            assert_eq!(&entries(snapshot.range(&world.right, ..)), seen, "a snapshot changed");
        }
        if held.is_none() || random.below(4) == 0 {
            held = Some((snapshot, left));
        }
        if is_last {
            return;
        }
    }
}

/// Flushes and compacts; creates and drops keyspaces; changes layouts and views.
fn keep_up(world: &World, random: &mut SplitMix64, is_over: impl Fn() -> bool) {
    let mut turn = 0;
    while !is_over() {
        turn += 1;
        match random.below(5) {
            0 => world.db.flush().unwrap(),
            1 => {
                let from = slot_key(0, random.below(SLOT_COUNT));
                let keyspace = if random.below(2) == 0 { &world.left } else { &world.right };
                world.db.compact_range(keyspace, from..).unwrap();
            }
            2 => {
                let name = format!("temporary/{}", random.below(3));
                let keyspace = world.db.create_keyspace(&name, small_keyspace()).unwrap();
                assert!(keyspace.first().unwrap().is_none(), "a new keyspace is empty");
                for index in 0..300_u32 {
                    keyspace.put(index.to_be_bytes(), vec![turn as u8; 400]).unwrap();
                }
                assert_eq!(keyspace.range(..).count(), 300);
                let mut scan = keyspace.range(..);
                scan.move_next().unwrap();
                world.db.drop_keyspace(&name).unwrap();
                assert!(matches!(keyspace.put("a", "b"), Err(Error::KeyspaceDropped)));
                assert_eq!(scan.count(), 299, "an open scan continues");
            }
            3 => {
                let keyspace = if random.below(2) == 0 { &world.left } else { &world.right };
                let layout = [Layout::Leveled, Layout::tiered(), Layout::partitioned()];
                let views = [Views::Auto, Views::On, Views::Off];
                let options = keyspace.options().layout(layout[random.below(3) as usize]);
                keyspace.set_options(options.views(views[random.below(3) as usize])).unwrap();
            }
            _ => {
                let statistics = world.db.statistics();
                for keyspace in &statistics.keyspaces {
                    assert!(keyspace.immutable_memtable_count <= 8, "{keyspace:?}");
                }
            }
        }
    }
}

struct Shape {
    seed: u64,
    writer_count: u64,
    step_count: u64,
    keyspace: KeyspaceOptions,
}

/// Counts down even when its thread panics, so that the others end.
struct Running<'a>(&'a AtomicUsize);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn run(vfs: &Arc<dyn Vfs>, folder: &std::path::Path, options: &Options, shape: &Shape) {
    println!("seed {}", shape.seed);
    let world = World::new(Arc::clone(vfs), folder, options.clone(), shape);
    world.fill();
    let running = AtomicUsize::new(shape.writer_count as usize);
    let is_over = || running.load(Ordering::SeqCst) == 0;
    let random = |thread: u64| SplitMix64::new(shape.seed.wrapping_mul(1_000).wrapping_add(thread));
    let owns: Vec<Own> = thread::scope(|scope| {
        let writers: Vec<_> = (0..shape.writer_count)
            .map(|writer| {
                let (world, running) = (&world, &running);
                scope.spawn(move || {
                    let _running = Running(running);
                    write(world, writer, shape.step_count, &mut random(writer))
                })
            })
            .collect();
        for reader in 0..2 {
            let world = &world;
            scope.spawn(move || read(world, &mut random(100 + reader), is_over));
        }
        scope.spawn(|| keep_up(&world, &mut random(200), is_over));
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    let mut pairs = Model::new();
    let mut accounts = Model::new();
    for own in owns {
        pairs.extend(own.pairs);
        accounts.extend(own.accounts);
    }
    check(&world, &pairs, &accounts);
    world.db.clone().close().unwrap();
    drop(world);
    let world = World::new(Arc::clone(vfs), folder, options.clone(), shape);
    check(&world, &pairs, &accounts);
    world.db.wait_for_compactions().unwrap();
    check(&world, &pairs, &accounts);
    assert!(world.db.verify().unwrap().is_sound());
}

fn check(world: &World, pairs: &Model, accounts: &Model) {
    for (keyspace, model) in [(&world.left, pairs), (&world.right, pairs), (&world.accounts, accounts)] {
        let found: Model =
            entries(keyspace.range(..)).iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
        assert!(found == *model, "{} differs from what its writers wrote", keyspace.name());
        for (key, value) in model {
            assert_eq!(keyspace.get(key).unwrap().as_deref(), Some(value.as_slice()));
        }
    }
}

fn shape(seed: u64, step_count: u64) -> Shape {
    Shape { seed, writer_count: 4, step_count, keyspace: small_keyspace() }
}

#[test]
fn batches_snapshots_and_scans_stay_whole_under_load() {
    for (seed, access) in [(1, Access::Mapped), (2, Access::Buffered)] {
        let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
        let options =
            Options::default().workers(2).table_access(access).cache_bytes(256 << 10).log_bytes_max(1 << 20);
        run(&vfs, FOLDER.as_ref(), &options, &shape(seed, 1_500));
    }
}

#[test]
fn threads_without_workers_see_whole_batches() {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    let options = Options::default().workers(0).log_bytes_max(1 << 20);
    run(&vfs, FOLDER.as_ref(), &options, &shape(3, 1_000));
}

#[test]
fn threads_on_a_disk_see_whole_batches() {
    let folder = tempfile::tempdir().unwrap();
    let vfs: Arc<dyn Vfs> = Arc::new(OsVfs);
    let options = Options::default().workers(3).cache_bytes(1 << 20).log_bytes_max(2 << 20);
    run(&vfs, folder.path(), &options, &shape(4, 600));
}

#[test]
fn closing_under_load_loses_nothing_that_was_acknowledged() {
    for seed in 0..10 {
        println!("seed {seed}");
        let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
        let options = Options::default().workers(2);
        let world = World::new(Arc::clone(&vfs), FOLDER.as_ref(), options.clone(), &shape(seed, 0));
        let writes = AtomicUsize::new(0);
        let acknowledged: Vec<u64> = thread::scope(|scope| {
            let writers: Vec<_> = (0..3_u64)
                .map(|writer| {
                    let (world, writes) = (&world, &writes);
                    scope.spawn(move || {
                        for step in 1.. {
                            let mut batch = WriteBatch::new();
                            batch.put(&world.left, counter_key(writer), u64::to_be_bytes(step)).unwrap();
                            batch.put(&world.right, counter_key(writer), u64::to_be_bytes(step)).unwrap();
                            match world.db.write_with(batch, Durability::Deferred) {
                                Ok(()) => writes.fetch_add(1, Ordering::SeqCst),
                                Err(Error::Closed) => return step - 1,
                                Err(error) => panic!("{error}"),
                            };
                        }
                        unreachable!("a loop without an end");
                    })
                })
                .collect();
            while writes.load(Ordering::SeqCst) < 200 * (1 + seed as usize) {
                thread::yield_now();
            }
            world.db.clone().close().unwrap();
            writers.into_iter().map(|writer| writer.join().unwrap()).collect()
        });
        assert!(matches!(world.left.get("a"), Err(Error::Closed)));
        drop(world);
        let world = World::new(vfs, FOLDER.as_ref(), options, &shape(seed, 0));
        for (writer, acknowledged) in acknowledged.into_iter().enumerate() {
            for keyspace in [&world.left, &world.right] {
                let found =
                    keyspace.get(counter_key(writer as u64)).unwrap().map_or(0, |value| number(&value));
                assert_eq!(found, acknowledged, "seed {seed}, writer {writer}");
            }
        }
    }
}

/// A requested compaction continued after another thread had closed the database: the folder was unlocked, and the late job
/// deleted files of the process that had opened it since.
#[test]
fn close_unlocks_the_folder_after_the_last_job() {
    let vfs = FaultVfs::new(Arc::new(MemVfs::new()));
    let open = || {
        let options = Options::default().workers(0);
        Db::open_on(Arc::new(vfs.clone()), FOLDER, options, Runtime::deterministic(1))
    };
    let db = open().unwrap();
    for round in 0..2_u8 {
        for index in 0..500_u32 {
            db.put(index.to_be_bytes(), [round; 100]).unwrap();
        }
        db.flush().unwrap();
    }
    // The merge stops where it writes its table, until the gate opens.
    let (reached, is_reached) = mpsc::channel();
    let (release, is_released) = mpsc::channel::<()>();
    let is_released = parking_lot::Mutex::new(is_released);
    vfs.add_rule(
        Rule::slow(move |operation| {
            if operation.file_name().ends_with(".table") || operation.file_name().ends_with(".tmp") {
                reached.send(()).unwrap();
                let _ = is_released.lock().recv();
            }
        })
        .on(&[OperationKind::Append])
        .path("/db/0"),
    );
    let is_closed = AtomicBool::new(false);
    thread::scope(|scope| {
        let compaction = scope.spawn(|| db.compact_range(&db.default_keyspace(), ..));
        is_reached.recv().unwrap();
        let close = scope.spawn(|| {
            let result = db.clone().close();
            is_closed.store(true, Ordering::SeqCst);
            result
        });
        // The store refuses writes from the moment that closing begins.
        while !matches!(db.put(0_u32.to_be_bytes(), [1; 100]), Err(Error::Closed)) {
            thread::yield_now();
        }
        for _ in 0..10_000 {
            assert!(!is_closed.load(Ordering::SeqCst), "closed while a job writes");
            thread::yield_now();
        }
        assert!(matches!(open(), Err(Error::Locked { .. })));
        drop(release);
        assert!(matches!(compaction.join().unwrap(), Err(Error::Closed)));
        close.join().unwrap().unwrap();
    });
    vfs.clear_rules();
    let db = open().unwrap();
    assert_eq!(db.range(..).count(), 500);
    assert!(db.verify().unwrap().is_sound());
}
