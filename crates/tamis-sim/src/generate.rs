//! Draws the steps of a history from its seed.

use tamis::Durability;
use tamis_vfs::OperationKind;
use tamis_workload::SplitMix64;

use crate::{
    keys::{Shape, ValueSpec},
    model::Bounds,
    ops::{Change, Direction, End, Event, KEYSPACE_COUNT, Move, Op, Part, Profile, SLOT_COUNT, Step, Way},
    settings,
};

/// Draws all steps.
pub fn steps(random: &mut SplitMix64, profile: &Profile) -> Vec<Step> {
    let mut generator = Generator { random, profile };
    let mut steps = Vec::new();
    let mut until_end = generator.life_length();
    for client in 0..KEYSPACE_COUNT {
        let options = generator.random.next_u64();
        steps.push(Step { client: generator.owner(client), op: Op::Create(client, options) });
    }
    while steps.len() < profile.step_count {
        if until_end == 0 {
            let end = generator.end();
            let is_read_only = matches!(end, Op::Reopen(_, number) if settings::is_read_only(number));
            until_end = generator.life_length() / if is_read_only { 8 } else { 1 };
            steps.push(Step { client: 0, op: end });
            continue;
        }
        until_end -= 1;
        let is_world = profile.has_faults && generator.random.below(60) == 0;
        steps.push(if is_world { generator.world() } else { generator.client_step() });
    }
    steps
}

struct Generator<'a> {
    random: &'a mut SplitMix64,
    profile: &'a Profile,
}

impl Generator<'_> {
    fn below(&mut self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    fn life_length(&mut self) -> u64 {
        let length = [4, 30, 150, 600].get(self.below(4) as usize).copied().unwrap_or(150);
        length + self.below(length)
    }

    /// The client that creates and drops a keyspace.
    fn owner(&self, keyspace: u64) -> usize {
        1 + keyspace as usize % self.profile.client_count
    }

    fn end(&mut self) -> Op {
        let end = match self.below(if self.profile.has_crashes { 7 } else { 3 }) {
            0 => End::Close,
            1 => End::Drop,
            2 => End::CloseEarly,
            3 | 4 => End::Kill,
            _ => End::Crash(self.random.next_u64()),
        };
        Op::Reopen(end, self.random.next_u64())
    }

    fn world(&mut self) -> Step {
        let event = match self.below(16) {
            0..5 => Event::Fault {
                kind: *OperationKind::ALL
                    .get(self.below(OperationKind::ALL.len() as u64) as usize)
                    .unwrap_or(&OperationKind::Sync),
                nth: 1 + self.below(20),
                times: [1, 1, 3, 1_000].get(self.below(4) as usize).copied().unwrap_or(1),
                takes_effect: self.below(3) == 0,
            },
            5 => Event::ShortAppend(self.below(2_000)),
            6 => Event::DiskFull(self.below(200_000)),
            7 => Event::SlowDisk(2 + self.below(200)),
            8..11 => Event::Heal,
            11 => Event::JumpClock(1 + self.below(100_000)),
            12 => Event::ListenerPanics,
            13 => Event::JobPanics,
            _ => Event::FlipBit(self.random.next_u64()),
        };
        Step { client: 0, op: Op::World(event) }
    }

    fn client_step(&mut self) -> Step {
        let client = 1 + self.below(self.profile.client_count as u64) as usize;
        if self.below(self.profile.maintenance_rarity) == 0 {
            return self.maintenance(client);
        }
        let op = if self.below(100) < self.profile.write_percent { self.write() } else { self.read() };
        Step { client, op }
    }

    fn keyspace(&mut self) -> u64 {
        self.below(KEYSPACE_COUNT)
    }

    fn keys_of(&self, keyspace: u64) -> (Shape, u64) {
        self.profile.keys.get(keyspace as usize).copied().unwrap_or((Shape::Dense, 100))
    }

    fn key(&mut self, keyspace: u64) -> Vec<u8> {
        let (shape, count) = self.keys_of(keyspace);
        shape.key(self.random, count)
    }

    fn bounds(&mut self, keyspace: u64) -> Bounds {
        let (shape, count) = self.keys_of(keyspace);
        if self.below(2) == 0 {
            shape.short_bounds(self.random, count)
        } else {
            shape.bounds(self.random, count)
        }
    }

    fn prefix(&mut self, keyspace: u64) -> Vec<u8> {
        let (shape, count) = self.keys_of(keyspace);
        shape.prefix(self.random, count)
    }

    fn change(&mut self, keyspace: u64) -> Change {
        match self.below(40) {
            0 => {
                let (shape, count) = self.keys_of(keyspace);
                Change::DeleteRange(shape.short_bounds(self.random, count))
            }
            1..10 => Change::Delete(self.key(keyspace)),
            10..18 => Change::Merge(self.key(keyspace), self.random.next_u64()),
            18..22 => {
                let after = [5, 200, 5_000, 100_000_000].get(self.below(4) as usize).copied().unwrap_or(200);
                let (key, after) = (self.key(keyspace), 1 + self.below(after));
                Change::PutUntil(key, ValueSpec::draw(self.random, self.profile.value_length_max), after)
            }
            _ => {
                let key = self.key(keyspace);
                Change::Put(key, ValueSpec::draw(self.random, self.profile.value_length_max))
            }
        }
    }

    fn durability(&mut self) -> Durability {
        match self.below(8) {
            0 | 1 => Durability::Synced,
            2..5 => Durability::Deferred,
            _ => Durability::Buffered,
        }
    }

    fn write(&mut self) -> Op {
        let keyspace = self.keyspace();
        match self.below(100) {
            0..66 => Op::Write(keyspace, self.change(keyspace)),
            66..72 => self.transaction(),
            72..96 => {
                let count = 1 + self.below(12);
                let mut changes = Vec::new();
                for _ in 0..count {
                    let keyspace = self.keyspace();
                    changes.push((keyspace, self.change(keyspace)));
                }
                Op::Batch(changes, self.durability())
            }
            96 => Op::DeletePrefix(keyspace, self.prefix(keyspace)),
            97 if self.below(6) == 0 => Op::Clear(keyspace),
            97 | 98 => Op::Write(keyspace, Change::DeleteRange(self.bounds(keyspace))),
            _ => Op::Persist(self.durability()),
        }
    }

    fn transaction(&mut self) -> Op {
        let mut parts = Vec::new();
        for _ in 0..1 + self.below(8) {
            let keyspace = self.keyspace();
            parts.push(match self.below(5) {
                0 => Part::Get(keyspace, self.key(keyspace)),
                1 => {
                    let limit = [1, 3, 100_000].get(self.below(3) as usize).copied().unwrap_or(1);
                    Part::Range(keyspace, self.bounds(keyspace), self.below(2) == 0, limit)
                }
                _ => Part::Write(keyspace, self.change(keyspace)),
            });
        }
        let way = match self.below(6) {
            0 => Way::Exclusive,
            1 | 2 => Way::Snapshot,
            _ => Way::Serializable,
        };
        Op::Transact(parts, way, self.durability())
    }

    fn read(&mut self) -> Op {
        let keyspace = self.keyspace();
        let slot = self.below(SLOT_COUNT);
        match self.below(100) {
            0..40 => Op::Get(keyspace, self.key(keyspace)),
            40..46 => Op::MultiGet(keyspace, (0..self.below(12)).map(|_| self.key(keyspace)).collect()),
            46..48 => Op::Edge(keyspace, self.below(2) == 0),
            48..65 => {
                let direction = [Direction::Forward, Direction::Backward, Direction::Both];
                let direction = direction.get(self.below(3) as usize).copied().unwrap_or(Direction::Forward);
                let limit = [3, 30, 100_000].get(self.below(3) as usize).copied().unwrap_or(30);
                Op::Range(keyspace, self.bounds(keyspace), direction, limit)
            }
            65..68 => Op::Prefix(keyspace, self.prefix(keyspace)),
            68..71 => Op::MultiRange(keyspace, (0..self.below(6)).map(|_| self.bounds(keyspace)).collect()),
            71..73 => Op::Count(keyspace, self.bounds(keyspace)),
            73..77 => Op::OpenScan(slot, keyspace, self.bounds(keyspace), self.below(3) == 0),
            77..87 => Op::MoveScan(slot, (0..1 + self.below(5)).map(|_| self.move_in(keyspace)).collect()),
            87 => Op::CloseScan(slot),
            88..90 => Op::TakeSnapshot(slot),
            90 => Op::DropSnapshot(slot),
            91..96 => Op::SnapshotGet(slot, keyspace, self.key(keyspace)),
            96..98 => Op::SnapshotRange(slot, keyspace, self.bounds(keyspace)),
            98 => Op::BadInput(keyspace, self.random.next_u64()),
            _ => Op::Sleep(1 + self.below(400)),
        }
    }

    fn move_in(&mut self, keyspace: u64) -> Move {
        match self.below(12) {
            0..5 => Move::Next(1 + self.below(20) as u8),
            5..8 => Move::Previous(1 + self.below(20) as u8),
            8 => Move::Seek(self.key(keyspace)),
            9 => Move::SeekForPrevious(self.key(keyspace)),
            10 => Move::First,
            _ => Move::Last,
        }
    }

    fn maintenance(&mut self, client: usize) -> Step {
        let keyspace = self.keyspace();
        let op = match self.below(43) {
            0..7 => Op::Flush,
            7..10 => Op::Compact(keyspace, self.bounds(keyspace)),
            10..13 => Op::WaitForJobs,
            13..17 => Op::Ingest(keyspace, (0..1 + self.below(60)).map(|_| self.change(keyspace)).collect()),
            17..19 => Op::Checkpoint(self.below(2) == 0),
            19..22 => {
                let op = Op::Create(keyspace, self.random.next_u64());
                return Step { client: self.owner(keyspace), op };
            }
            22 => return Step { client: self.owner(keyspace), op: Op::DropKeyspace(keyspace) },
            23 | 24 => Op::Verify,
            25 | 26 => Op::Statistics,
            27 => Op::RebuildFilters(keyspace, self.random.next_u64()),
            28 => Op::CheckFilters(keyspace),
            29 => Op::OpenTables(keyspace),
            30 => Op::Poll(keyspace, self.random.next_u64(), 200 + self.below(2_000)),
            31 | 32 => {
                Op::Fill(keyspace, self.random.next_u64(), 1 + self.below(self.profile.fill_count_max))
            }
            33 => {
                let count = [40, 1_200, 10_500].get(self.below(3) as usize).copied().unwrap_or(40);
                let count = count.min(self.profile.delete_count_max);
                Op::DeleteEach(keyspace, self.below(50), count)
            }
            34 => Op::SetOptions(keyspace, self.random.next_u64()),
            35..39 => Op::ReadAsOther(keyspace, self.bounds(keyspace), self.below(3) == 0),
            39..41 => Op::Changes,
            _ => Op::Sleep(1 + self.below(5_000)),
        };
        Step { client, op }
    }
}
