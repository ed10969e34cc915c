//! What a machine finds after it lost power.
//!
//! Names: of the changes since a folder's last sync any subset survives, but a change survives only together with the
//! earlier ones that touch the same names; so a file never loses its only durable name to a later file, and a rename
//! is kept or lost as a whole.
//!
//! Bytes: the synced prefix stays. Of the rest one of these is chosen:
//!
//! ```text
//!   synced            appended since
//!   ssssssssssssssss|aaaaaaaa|bbbbbbbbbbbb|cccccc|     all
//!   ssssssssssssssss|                                  none
//!   ssssssssssssssss|aaaaaaaa|                         some whole appends
//!   ssssssssssssssss|aaaaaaaa|bbbbbbb                  cut anywhere
//!   ssssssssssssssss|aaaa0000|0000bbb?????bb|cccccc|   length grew, sectors of 512 bytes are zero or garbage
//! ```
//!
//! A truncation that was not synced may have happened or not. Behind what is left of a log there may be zero bytes. Of a log that
//! was used again and not synced since, each sector may be as it was before.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::RwLock;

use super::{Change, Contents, Folder, Inode, MemVfs, State};

const SECTOR_BYTES: usize = 512;
/// The most zero bytes that are found behind the contents of a log.
const LOG_ROOM_BYTES: usize = 6000;

impl MemVfs {
    /// The file system as a machine finds it that loses power now: synced bytes and names are there, of the others a
    /// choice that depends on `seed` alone; nobody holds a lock. The original and its open handles go on unharmed.
    ///
    /// ```
    /// use std::path::Path;
    /// use tamis_vfs::{MemVfs, Vfs};
    ///
    /// let vfs = MemVfs::new();
    /// vfs.create(Path::new("/a"))?; // the folder is not synced
    /// let found = (0..50).filter(|seed| vfs.crash_clone(*seed).exists(Path::new("/a")).unwrap()).count();
    /// assert!(0 < found && found < 50);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn crash_clone(&self, seed: u64) -> MemVfs {
        let state = self.state.write();
        let mut random = Random::new(seed);
        let mut survivors = Survivors::default();
        let mut after = State::default();
        for (path, folder) in &state.folders {
            let mut names = BTreeMap::new();
            for (name, inode) in surviving_names(folder, &mut random) {
                names.insert(name, survivors.get(&inode, &mut random));
            }
            let durable = names.clone();
            after.folders.insert(path.clone(), Folder { names, durable, pending: Vec::new() });
        }
        MemVfs { state: Arc::new(RwLock::new(after)) }
    }
}

/// The file that each old file became; a file with two names becomes one file again.
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
            bring_back(Arc::make_mut(&mut bytes), former, random);
        } else if contents.is_log && random.below(2) == 0 {
            let length = bytes.len() + 1 + random.index(LOG_ROOM_BYTES);
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

fn surviving_names(folder: &Folder, random: &mut Random) -> BTreeMap<String, Arc<Inode>> {
    // All, none, or each by a coin, so that the extremes are met often.
    let quarters = random.below(5);
    let wanted: Vec<bool> = folder.pending.iter().map(|_| random.below(4) < quarters).collect();
    let mut kept = Vec::new();
    for (change, is_wanted) in folder.pending.iter().zip(wanted).rev() {
        if is_wanted || kept.iter().any(|later: &&Change| later.shares_name(change)) {
            kept.push(change);
        }
    }
    let mut names = folder.durable.clone();
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
            // Within the last append, where a torn record shows.
            let last_start = contents.append_ends.iter().rev().nth(1).copied().unwrap_or(synced);
            last_start + random.index(length - last_start + 1)
        }
    };
    let kept = kept.clamp(synced, length);
    let mut bytes = contents.bytes.get(..kept).unwrap_or_default().to_vec();
    if random.below(3) == 0 {
        spoil_sectors(&mut bytes, synced, random);
    }
    Arc::new(bytes)
}

/// Makes the contents of a log that was used again as long as it was before, and brings some of its sectors back: all, none, or
/// each by a coin; the rest is what was appended, with zeros behind.
fn bring_back(bytes: &mut Vec<u8>, former: &[u8], random: &mut Random) {
    bytes.resize(bytes.len().max(former.len()), 0);
    let quarters = random.below(5);
    for (now, before) in bytes.chunks_mut(SECTOR_BYTES).zip(former.chunks(SECTOR_BYTES)) {
        if random.below(4) < quarters
            && let Some(part) = now.get_mut(..before.len())
        {
            part.copy_from_slice(before);
        }
    }
}

/// Zeroes or scrambles some sectors from `synced` on: the length reached the disk, the bytes did not.
fn spoil_sectors(bytes: &mut [u8], synced: usize, random: &mut Random) {
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

/// SplitMix64: enough to choose, and the same on every machine.
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
