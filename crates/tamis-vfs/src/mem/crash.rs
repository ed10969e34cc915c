//! Simulated power loss: computes a possible state of the disk after a crash.
//!
//! Names: of the changes since the last sync of a directory any subset survives. A change survives only together
//! with the earlier changes of the same names. So a file never loses its only durable name to a later file, and
//! a rename is kept or lost atomically.
//!
//! Bytes: the synced prefix always survives. For the rest, one of these cases is chosen:
//!
//! ```text
//!   synced            appended since
//!   ssssssssssssssss|aaaaaaaa|bbbbbbbbbbbb|cccccc|     all
//!   ssssssssssssssss|                                  none
//!   ssssssssssssssss|aaaaaaaa|                         some whole appends
//!   ssssssssssssssss|aaaaaaaa|bbbbbbb                  cut at any byte
//!   ssssssssssssssss|aaaa0000|0000bbb?????bb|cccccc|   length grew, sectors of 512 bytes are zero or garbage
//! ```
//!
//! An unsynced truncation may be lost. A log may have zero bytes after the surviving bytes. In a log that was
//! reused and not synced since, each sector may have its old content.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::RwLock;

use super::{Change, Contents, Directory, Inode, MemVfs, State};

const SECTOR_BYTES: usize = 512;
/// Maximum number of zero bytes after the contents of a log.
const LOG_PREALLOCATED_BYTES: usize = 6000;

impl MemVfs {
    /// A possible state of the file system after a power loss at this moment. Synced bytes and names survive;
    /// `seed` alone decides which others survive. All locks are released. The original and its open handles are
    /// not affected.
    ///
    /// ```
    /// use std::path::Path;
    /// use tamis_vfs::{MemVfs, Vfs};
    ///
    /// let vfs = MemVfs::new();
    /// vfs.create(Path::new("/a"))?; // the directory is not synced
    /// let found = (0..50).filter(|seed| vfs.crash_clone(*seed).exists(Path::new("/a")).unwrap()).count();
    /// assert!(0 < found && found < 50);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn crash_clone(&self, seed: u64) -> MemVfs {
        let state = self.state.write();
        let mut random = Random::new(seed);
        let mut survivors = Survivors::default();
        let mut after = State { next_id: state.next_id, ..State::default() };
        for (path, directory) in &state.directories {
            let mut names = BTreeMap::new();
            for (name, inode) in surviving_names(directory, &mut random) {
                names.insert(name, survivors.get(&inode, &mut random));
            }
            let durable = names.clone();
            after
                .directories
                .insert(path.clone(), Directory { id: directory.id, names, durable, pending: Vec::new() });
        }
        MemVfs { state: Arc::new(RwLock::new(after)), folder: None }
    }
}

/// Maps each original file to its surviving copy, so that a file with two names stays one file.
#[derive(Default)]
struct Survivors {
    by_original: Vec<(Arc<Inode>, Arc<Inode>)>,
}

impl Survivors {
    fn get(&mut self, original: &Arc<Inode>, random: &mut Random) -> Arc<Inode> {
        if let Some((_, survivor)) = self.by_original.iter().find(|(old, _)| Arc::ptr_eq(old, original)) {
            return Arc::clone(survivor);
        }
        let contents = original.contents.read();
        let mut bytes = surviving_bytes(&contents, random);
        if let Some(former) = &contents.former {
            restore_old_sectors(Arc::make_mut(&mut bytes), former, random);
        } else if contents.is_log && random.below(2) == 0 {
            let length = bytes.len() + 1 + random.index(LOG_PREALLOCATED_BYTES);
            Arc::make_mut(&mut bytes).resize(length, 0);
        }
        drop(contents);
        let synced_length = bytes.len();
        let contents = Contents { bytes, synced_length, ..Contents::default() };
        let survivor = Arc::new(Inode { contents: RwLock::new(contents), ..Inode::default() });
        self.by_original.push((Arc::clone(original), Arc::clone(&survivor)));
        survivor
    }
}

fn surviving_names(directory: &Directory, random: &mut Random) -> BTreeMap<String, Arc<Inode>> {
    // All, none, or a random subset, so that the extremes are frequent.
    let probability_quarters = random.below(5);
    let chosen: Vec<bool> =
        directory.pending.iter().map(|_| random.below(4) < probability_quarters).collect();
    let mut kept = Vec::new();
    for (change, is_chosen) in directory.pending.iter().zip(chosen).rev() {
        if is_chosen || kept.iter().any(|later: &&Change| later.shares_name(change)) {
            kept.push(change);
        }
    }
    let mut names = directory.durable.clone();
    for change in kept.iter().rev() {
        change.apply(&mut names);
    }
    names
}

impl Change {
    fn names(&self) -> impl Iterator<Item = &str> {
        self.removed.as_deref().into_iter().chain(self.added.as_ref().map(|(name, _)| name.as_str()))
    }

    fn shares_name(&self, other: &Change) -> bool {
        self.names().any(|name| other.names().any(|other| other == name))
    }
}

fn surviving_bytes(contents: &Contents, random: &mut Random) -> Arc<Vec<u8>> {
    if let Some(before) = &contents.before_truncation
        && random.below(2) == 0
    {
        return Arc::clone(before);
    }
    let synced = contents.synced_length;
    let length = contents.bytes.len();
    if synced == length {
        return Arc::clone(&contents.bytes);
    }
    let kept = match random.below(6) {
        0 => synced,
        1 | 2 => length,
        3 => contents.append_ends.get(random.index(contents.append_ends.len())).copied().unwrap_or(synced),
        4 => synced + random.index(length - synced + 1),
        _ => {
            // Cuts within the last append, which produces a torn record.
            let last_start = contents.append_ends.iter().rev().nth(1).copied().unwrap_or(synced);
            last_start + random.index(length - last_start + 1)
        }
    };
    let kept = kept.clamp(synced, length);
    let mut bytes = contents.bytes.get(..kept).unwrap_or_default().to_vec();
    if random.below(3) == 0 {
        corrupt_sectors(&mut bytes, synced, random);
    }
    Arc::new(bytes)
}

/// Restores old sectors of a reused log: all, none, or a random subset. The other sectors contain the appended
/// bytes and zeros. The log gets at least its former length.
fn restore_old_sectors(bytes: &mut Vec<u8>, former: &[u8], random: &mut Random) {
    bytes.resize(bytes.len().max(former.len()), 0);
    let probability_quarters = random.below(5);
    for (now, before) in bytes.chunks_mut(SECTOR_BYTES).zip(former.chunks(SECTOR_BYTES)) {
        if random.below(4) < probability_quarters
            && let Some(part) = now.get_mut(..before.len())
        {
            part.copy_from_slice(before);
        }
    }
}

/// Replaces some sectors after `synced` by zeros or garbage: the length reached the disk, but these bytes did
/// not.
fn corrupt_sectors(bytes: &mut [u8], synced: usize, random: &mut Random) {
    let mut start = synced;
    while start < bytes.len() {
        let end = ((start / SECTOR_BYTES + 1) * SECTOR_BYTES).min(bytes.len());
        let sector = bytes.get_mut(start..end).unwrap_or_default();
        match random.below(4) {
            0 => sector.fill(0),
            1 => sector.iter_mut().for_each(|byte| *byte = random.next() as u8),
            _ => {}
        }
        start = end;
    }
}

/// SplitMix64: sufficient for random choices, and equal on every machine.
struct Random {
    state: u64,
}

impl Random {
    fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    fn index(&mut self, count: usize) -> usize {
        self.below(count as u64) as usize
    }
}
