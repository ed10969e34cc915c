//! The operations of a pass, drawn before its clock starts: the same ones, in the same order, for every store.

use tamis_workload::{ScrambledZipfian, SplitMix64, Zipfian};

use crate::{
    data::{Key, absent_key, key_of, key_of_number, number_of},
    workload::{Action, Mix},
};

#[cfg(test)]
mod tests;

/// The longest scan of YCSB E.
const SCAN_LENGTH_MAX: u64 = 100;
/// Numbers of a closed empty range.
const EMPTY_RANGE_LENGTH: u64 = 16;

/// What is done with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Reads its value.
    Get,
    /// Scans from it on.
    Scan,
    /// Scans from it on with a new iterator.
    ScanFresh,
    /// Scans from it back.
    ScanBack,
    /// Reads the closed range of [`EMPTY_RANGE_LENGTH`] numbers that begins with it.
    Range,
    /// Writes it.
    Put,
    /// Reads and writes it.
    Modify,
    /// Writes a key that is not there yet.
    Insert,
}

/// One operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// The key.
    pub key: Key,
    /// What is done with it.
    pub verb: Verb,
    /// Entries that a scan reads.
    pub length: u8,
}

impl Operation {
    /// The last key of a closed range.
    pub fn range_end(&self) -> Key {
        let digits = std::str::from_utf8(&self.key).unwrap_or_default();
        let number = u64::from_str_radix(digits, 16).unwrap_or(0);
        key_of_number(number.saturating_add(EMPTY_RANGE_LENGTH - 1))
    }
}

/// What a thread's operations are drawn from.
#[derive(Debug, Clone, Copy)]
pub struct Draw {
    /// Entries that were filled in.
    pub entry_count: u64,
    /// Entries that are there now, inserts of earlier passes included.
    pub present_count: u64,
    /// Another number for each pass, the same for every store.
    pub seed: u64,
    /// The thread.
    pub thread: u64,
    /// Threads of the pass.
    pub thread_count: u64,
}

/// Draws `count` operations of an action.
pub fn draw(action: Action, count: usize, draw: Draw) -> Vec<Operation> {
    let mut random = SplitMix64::new(draw.seed.wrapping_mul(0x9E37_79B9).wrapping_add(draw.thread));
    if let Action::Ycsb(mix) = action {
        return Mixer::new(mix, draw).take(count, &mut random);
    }
    let zipf = ScrambledZipfian::new(draw.entry_count);
    let n = draw.entry_count;
    let one = |key: Key, verb: Verb, length: usize| Operation { key, verb, length: length as u8 };
    let mut next = || match action {
        Action::GetUniform => one(key_of(random.below(n)), Verb::Get, 0),
        Action::GetZipf => one(key_of(zipf.draw(&mut random)), Verb::Get, 0),
        Action::GetAbsent => one(absent_key(random.next_u64()), Verb::Get, 0),
        Action::Seek { count, is_fresh } => {
            let verb = if is_fresh { Verb::ScanFresh } else { Verb::Scan };
            one(key_of_number(random.next_u64()), verb, count)
        }
        Action::Reverse { count } => one(key_of_number(random.next_u64()), Verb::ScanBack, count),
        Action::Empty { is_near: true } => {
            one(key_of_number(number_of(random.below(n)).saturating_add(1)), Verb::Range, 0)
        }
        _ => one(key_of_number(random.next_u64()), Verb::Range, 0),
    };
    (0..count).map(|_| next()).collect()
}

/// Draws a mix of YCSB.
struct Mixer {
    mix: Mix,
    draw: Draw,
    scrambled: ScrambledZipfian,
    latest: Zipfian,
    inserted_count: u64,
}

impl Mixer {
    fn new(mix: Mix, draw: Draw) -> Self {
        // Only D asks for what is new: the other mixes need not sum up its distribution.
        let latest = Zipfian::new(if mix == Mix::D { draw.present_count } else { 1 });
        let scrambled = ScrambledZipfian::new(draw.present_count);
        Self { mix, draw, scrambled, latest, inserted_count: 0 }
    }

    fn take(mut self, count: usize, random: &mut SplitMix64) -> Vec<Operation> {
        (0..count).map(|_| self.next(random)).collect()
    }

    fn next(&mut self, random: &mut SplitMix64) -> Operation {
        let share = random.below(100);
        let verb = match self.mix {
            Mix::A if share < 50 => Verb::Put,
            Mix::B if share < 5 => Verb::Put,
            Mix::F if share < 50 => Verb::Modify,
            Mix::D | Mix::E if share < 5 => Verb::Insert,
            Mix::E => Verb::ScanFresh,
            _ => Verb::Get,
        };
        let index = match (verb, self.mix) {
            (Verb::Insert, _) => self.insert(),
            (_, Mix::D) => self.newest(random),
            _ => self.scrambled.draw(random),
        };
        let length = if verb == Verb::ScanFresh { 1 + random.below(SCAN_LENGTH_MAX) } else { 0 };
        Operation { key: key_of(index), verb, length: length as u8 }
    }

    /// The threads of a pass insert by turns, so that their keys differ.
    fn insert(&mut self) -> u64 {
        let index = self.draw.present_count + self.inserted_count * self.draw.thread_count + self.draw.thread;
        self.inserted_count += 1;
        index
    }

    /// An entry that this thread or an earlier pass wrote, the newest most often.
    fn newest(&self, random: &mut SplitMix64) -> u64 {
        let age = self.latest.draw(random);
        match self.inserted_count.checked_sub(age + 1) {
            Some(turn) => self.draw.present_count + turn * self.draw.thread_count + self.draw.thread,
            None => self.draw.present_count.saturating_sub(age - self.inserted_count + 1),
        }
    }
}
