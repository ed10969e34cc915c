//! The public handle of a snapshot.

use std::{fmt, sync::Arc};

use super::Keyspace;
use tamis_vfs::fork::OwnedByProcess;

use crate::{
    cursor::bounded::{Bounds, ScanRange, range_bounds},
    error::Result,
    key_range_bounds::KeyRangeBounds,
    read::{scan::Scan, snapshot::SnapshotPoint},
    slice::Slice,
    store::{
        engine::Engine,
        keyspace_state::{KeyspaceState, Keyspaces},
        parts::StoreParts,
    },
};

/// All keyspaces at one point in time. While it exists, flushes and compactions keep the versions that it sees. Cheap to clone,
/// usable from any thread.
///
/// ```
/// # fn main() -> tamis::Result<()> {
/// # let folder = tempfile::tempdir().expect("a temporary folder");
/// let db = tamis::Db::open(folder.path())?;
/// let keyspace = db.default_keyspace();
/// db.put("key", "old")?;
/// let snapshot = db.snapshot();
/// db.put("key", "new")?;
/// assert_eq!(snapshot.get(&keyspace, "key")?.as_deref(), Some(b"old".as_slice()));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Snapshot {
    registered: Arc<Registered>,
}

struct Registered {
    engine: OwnedByProcess<Arc<Engine>>,
    point: SnapshotPoint,
    /// The states of all keyspaces of a reader, by id: its writer does not keep what the snapshot sees.
    frozen: Option<Keyspaces>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        if self.engine.store.context.check_process().is_ok() {
            self.engine.release_snapshot(self.point.sequence);
        }
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Snapshot({})", self.sequence())
    }
}

impl Snapshot {
    pub(crate) fn new(engine: OwnedByProcess<Arc<Engine>>) -> Self {
        let StoreParts { context, snapshots, .. } = &*engine.store;
        let register = || snapshots.register(context.runtime.clock.now(), &context.expiry);
        let (point, frozen) = match &engine.follower {
            // A forked child can't read from a snapshot.
            _ if context.check_process().is_err() => (SnapshotPoint::now(0), None),
            Some(follower) => {
                let (point, frozen) = follower.freeze(register);
                (point, Some(frozen))
            }
            None => (register(), None),
        };
        Self { registered: Arc::new(Registered { engine, point, frozen }) }
    }

    /// The state of a keyspace in which the snapshot is read.
    pub(crate) fn state_of<'a>(&'a self, keyspace: &'a Keyspace) -> &'a Arc<KeyspaceState> {
        let frozen = self.registered.frozen.as_ref().and_then(|frozen| frozen.get(&keyspace.state.id));
        frozen.unwrap_or(&keyspace.state)
    }

    pub(crate) fn engine(&self) -> &OwnedByProcess<Arc<Engine>> {
        &self.registered.engine
    }

    /// The sequence number of the last write that this snapshot sees.
    pub fn sequence(&self) -> u64 {
        self.registered.point.sequence
    }

    pub(crate) fn point(&self) -> SnapshotPoint {
        self.registered.point
    }

    /// The value of a key at the time of the snapshot. Cost and errors as [`Keyspace::get`].
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn get(&self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        keyspace.check_of(&self.registered.engine)?;
        self.registered.engine.read_path.get(
            self.state_of(keyspace),
            key.as_ref(),
            Some(self.registered.point),
        )
    }

    /// The values of several keys at the time of the snapshot.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn multi_get<K: AsRef<[u8]>>(
        &self,
        keyspace: &Keyspace,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Slice>>> {
        keyspace.check_of(&self.registered.engine)?;
        self.registered.engine.read_path.multi_get(self.state_of(keyspace), keys, Some(self.registered.point))
    }

    /// All entries of a keyspace at the time of the snapshot.
    pub fn iter(&self, keyspace: &Keyspace) -> Scan {
        self.range(keyspace, ..)
    }

    /// The entries in `range` at the time of the snapshot.
    pub fn range(&self, keyspace: &Keyspace, range: impl KeyRangeBounds) -> Scan {
        self.scan(keyspace, ScanRange::Bounds(range_bounds(&range)))
    }

    /// The entries of several ranges at the time of the snapshot; see [`Keyspace::multi_range`].
    pub fn multi_range(
        &self,
        keyspace: &Keyspace,
        ranges: impl IntoIterator<Item = impl KeyRangeBounds>,
    ) -> Vec<Scan> {
        let Registered { engine, point, .. } = &*self.registered;
        let ranges: Vec<Bounds> = ranges.into_iter().map(|range| range_bounds(&range)).collect();
        match keyspace.check_of(engine) {
            Ok(()) => engine.read_path.multi_scan(self.state_of(keyspace), ranges, Some(*point)),
            Err(error) => ranges.iter().map(|_| Scan::new(Err(error.clone()))).collect(),
        }
    }

    /// The entries with keys that begin with `prefix` at the time of the snapshot.
    pub fn prefix(&self, keyspace: &Keyspace, prefix: impl AsRef<[u8]>) -> Scan {
        self.scan(keyspace, ScanRange::Prefix(prefix.as_ref().to_vec()))
    }

    fn scan(&self, keyspace: &Keyspace, keys: ScanRange) -> Scan {
        let Registered { engine, point, .. } = &*self.registered;
        match keyspace.check_of(engine) {
            Ok(()) => engine.read_path.scan(self.state_of(keyspace), keys, Some(*point)),
            Err(error) => Scan::new(Err(error)),
        }
    }
}
