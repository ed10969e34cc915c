//! The steps of a history: what each client does, what the world does, and how each life of the store ends.
//!
//! A step contains all that it needs, so that a history can be made shorter by leaving out any of its steps.

use tamis::Durability;
use tamis_vfs::OperationKind;
use tamis_workload::SplitMix64;

use crate::{
    keys::{Shape, ValueSpec},
    model::Bounds,
};

/// The number of the keyspaces that a history uses; 0 is the default keyspace.
pub const KEYSPACE_COUNT: u64 = 4;
/// Slots for open scans and snapshots of a client.
pub const SLOT_COUNT: u64 = 3;

/// An entry of a batch or of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Sets a value.
    Put(Vec<u8>, ValueSpec),
    /// Sets a value that expires: after so many milliseconds, or once it is timed ([`Change::timed`]), at this time.
    PutUntil(Vec<u8>, ValueSpec, u64),
    /// Adds the operand of a number.
    Merge(Vec<u8>, u64),
    /// Deletes a key.
    Delete(Vec<u8>),
    /// Deletes a range.
    DeleteRange(Bounds),
}

impl Change {
    /// The change as it is made in a keyspace at a time: only keyspaces with an operator have operands, and only the others entries that expire.
    pub fn timed(&self, has_operator: bool, now: u64) -> Self {
        match self.clone() {
            Self::PutUntil(key, value, _) if has_operator => Self::Put(key, value),
            Self::PutUntil(key, value, after) => Self::PutUntil(key, value, now + after),
            Self::Merge(key, number) if !has_operator => {
                Self::Put(key, ValueSpec { number, length: 16, is_regular: false })
            }
            other => other,
        }
    }
}

/// How a range is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the first entry on.
    Forward,
    /// From the last entry on.
    Backward,
    /// From both ends until they meet.
    Both,
}

/// A move of an open scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Move {
    /// To the next entries.
    Next(u8),
    /// To the previous entries.
    Previous(u8),
    /// To the first entry at or after a key.
    Seek(Vec<u8>),
    /// To the last entry at or before a key.
    SeekForPrevious(Vec<u8>),
    /// Before the first entry.
    First,
    /// After the last entry.
    Last,
}

/// An event of the world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// File operations of one kind fail: the `nth` from now, `times` times.
    Fault {
        /// The kind.
        kind: OperationKind,
        /// The first one that fails, from 1.
        nth: u64,
        /// How many fail.
        times: u64,
        /// The operation takes effect nevertheless.
        takes_effect: bool,
    },
    /// Appends write a part only.
    ShortAppend(u64),
    /// The disk has space for this many bytes.
    DiskFull(u64),
    /// File operations take this many times longer.
    SlowDisk(u64),
    /// All of the above end, and flipped bits are restored.
    Heal,
    /// The clock jumps, by seconds.
    JumpClock(u64),
    /// The next event makes the listener panic.
    ListenerPanics,
    /// The next job panics.
    JobPanics,
    /// A bit of a table, filter or view flips; the number chooses file and bit.
    FlipBit(u64),
}

/// A read or a write of a transaction, in a keyspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Reads a key.
    Get(u64, Vec<u8>),
    /// Reads at most so many entries of a range, from its end if the flag is set.
    Range(u64, Bounds, bool, usize),
    /// Writes.
    Write(u64, Change),
}

/// The kind of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// An optimistic, serializable one.
    Serializable,
    /// An optimistic one with snapshot isolation.
    Snapshot,
    /// An exclusive one.
    Exclusive,
}

/// How a life ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// After all steps, by a close.
    Close,
    /// During the steps, by a close: the calls that follow are refused.
    CloseEarly,
    /// After all steps, by dropping all handles.
    Drop,
    /// The process is killed during the steps.
    Kill,
    /// The machine crashes during the steps; the seed decides what is lost.
    Crash(u64),
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Writes one entry.
    Write(u64, Change),
    /// Deletes a prefix.
    DeletePrefix(u64, Vec<u8>),
    /// Deletes all keys.
    Clear(u64),
    /// Deletes so many keys one by one, in order from the first of these numbers on, in one batch.
    DeleteEach(u64, u64, u64),
    /// Puts values of some thousand bytes to so many keys, one after the other; the number chooses them.
    Fill(u64, u64, u64),
    /// Writes a batch.
    Batch(Vec<(u64, Change)>, Durability),
    /// Runs a transaction once.
    Transact(Vec<Part>, Way, Durability),
    /// Makes all writes durable.
    Persist(Durability),
    /// Reads a key.
    Get(u64, Vec<u8>),
    /// Reads keys at one point in time.
    MultiGet(u64, Vec<Vec<u8>>),
    /// The first entry, or the last one.
    Edge(u64, bool),
    /// Reads at most so many entries of a range.
    Range(u64, Bounds, Direction, usize),
    /// Reads all keys with a prefix.
    Prefix(u64, Vec<u8>),
    /// Reads several ranges.
    MultiRange(u64, Vec<Bounds>),
    /// Reads so many keys and short ranges that are never written; the number chooses them.
    Poll(u64, u64, u64),
    /// The approximate number of keys.
    Count(u64, Bounds),
    /// Opens a scan in a slot; on the snapshot of the same slot, if there is one and the flag is set.
    OpenScan(u64, u64, Bounds, bool),
    /// Moves the scan of a slot.
    MoveScan(u64, Vec<Move>),
    /// Drops the scan of a slot.
    CloseScan(u64),
    /// Takes a snapshot in a slot.
    TakeSnapshot(u64),
    /// Drops the snapshot of a slot.
    DropSnapshot(u64),
    /// Reads a key in the snapshot of a slot.
    SnapshotGet(u64, u64, Vec<u8>),
    /// Reads a range in the snapshot of a slot.
    SnapshotRange(u64, u64, Bounds),
    /// Flushes all memtables.
    Flush,
    /// Compacts a range.
    Compact(u64, Bounds),
    /// Waits until no job is due.
    WaitForJobs,
    /// Ingests a table with these entries, in key order.
    Ingest(u64, Vec<Change>),
    /// Makes a copy, opens and compares it.
    Checkpoint(bool),
    /// Creates the keyspace; the number decides its options.
    Create(u64, u64),
    /// Drops the keyspace.
    DropKeyspace(u64),
    /// Verifies all files.
    Verify,
    /// Reads the statistics.
    Statistics,
    /// Replaces the filters of all tables; the number decides which.
    RebuildFilters(u64, u64),
    /// Chooses the filters again.
    CheckFilters(u64),
    /// Changes the options of a keyspace; the number decides which.
    SetOptions(u64, u64),
    /// Opens all tables.
    OpenTables(u64),
    /// A call that is refused; the number decides which.
    BadInput(u64, u64),
    /// Reads a range as another process; the flag: with a new reader.
    ReadAsOther(u64, Bounds, bool),
    /// Reads the change feed.
    Changes,
    /// Waits, in milliseconds.
    Sleep(u64),
    /// An event of the world.
    World(Event),
    /// Ends the life, and opens the store again with options that the number decides; it also decides what is tried with a copy of the disk.
    Reopen(End, u64),
}

/// A step and the client that makes it. Client 0 is the world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The client.
    pub client: usize,
    /// The operation.
    pub op: Op,
}

/// The profile of a history, drawn once from its seed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Number of clients.
    pub client_count: usize,
    /// The shape of the keys of each keyspace, and their number.
    pub keys: Vec<(Shape, u64)>,
    /// Something goes wrong with the world.
    pub has_faults: bool,
    /// Lives end by kills and crashes.
    pub has_crashes: bool,
    /// Number of steps.
    pub step_count: usize,
    /// Of 100 steps, those that write.
    pub write_percent: u64,
    /// The longest value.
    pub value_length_max: u32,
    /// The most values that one step writes.
    pub fill_count_max: u64,
    /// The most keys that one step deletes one by one.
    pub delete_count_max: u64,
    /// One of so many steps is one of maintenance.
    pub maintenance_rarity: u64,
    /// The layout of all keyspaces; drawn for each keyspace otherwise.
    pub layout: Option<tamis::Layout>,
    /// Decides the options of the default keyspace.
    pub default_options: u64,
}

impl Profile {
    /// Nothing goes wrong, leveled layout: for figures of speed.
    pub const fn calm(&mut self) {
        (self.has_faults, self.has_crashes) = (false, false);
        self.layout = Some(tamis::Layout::Leveled);
        (self.fill_count_max, self.delete_count_max) = (10, 40);
    }

    /// Draws what a history is like.
    pub fn draw(random: &mut SplitMix64) -> Self {
        let key_count = |random: &mut SplitMix64| {
            [12, 100, 1_000, 1_000, 6_000].get(random.below(5) as usize).copied().unwrap_or(100)
        };
        let keys = (0..KEYSPACE_COUNT).map(|_| {
            let shape = Shape::ALL.get(random.below(7) as usize).copied().unwrap_or(Shape::Dense);
            (shape, key_count(random))
        });
        Self {
            keys: keys.collect(),
            client_count: 1 + random.below(4) as usize,
            has_faults: random.below(2) == 0,
            has_crashes: random.below(3) > 0,
            step_count: [200, 600, 1_500, 3_000].get(random.below(4) as usize).copied().unwrap_or(600),
            write_percent: 30 + random.below(50),
            value_length_max: [100, 2_000, 10_000, 4_000_000]
                .get(random.below(4) as usize)
                .copied()
                .unwrap_or(100),
            fill_count_max: [10, 60, 400].get(random.below(3) as usize).copied().unwrap_or(10),
            delete_count_max: [40, 1_200, 10_500].get(random.below(3) as usize).copied().unwrap_or(40),
            maintenance_rarity: [15, 40, 120].get(random.below(3) as usize).copied().unwrap_or(40),
            layout: None,
            default_options: random.next_u64(),
        }
    }
}
