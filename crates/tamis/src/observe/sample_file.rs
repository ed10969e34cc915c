//! The file that keeps the sampled queries while a store is closed (`docs/format/samples.md`).
//!
//! It is derived data. A missing file is an empty sample; one that can't be used is reported ([`Event::SampleIgnored`]), and the
//! store continues with an empty sample. A file that can't be written is reported, too, and the old one stays.
//!
//! It is written when the store is closed, and after a flush or compaction if [`SAVED_AFTER`] queries were sampled since.

use std::{
    io::ErrorKind,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tamis_vfs::{Access, Folder};

use crate::{
    admin::link::write_new,
    error::{Error, Result},
    file_name::FileName,
    observe::{
        events::{Event, EventListener},
        query_sample::format::{FILE_BYTES_MAX, StoredSample, decode, encode},
    },
    store::{
        context::StoreContext,
        keyspace_state::{KeyspaceRegistry, Keyspaces},
    },
    sync::Mutex,
    version::set::VersionSet,
};

/// Queries that are sampled before the file is written again, unless the store is closed.
const SAVED_AFTER: u64 = 4_000;

/// Reads the file of a store that is opened: the samples into its keyspaces.
pub(crate) fn load(
    folder: &Folder,
    database_id: u64,
    keyspaces: &Keyspaces,
    listener: Option<&Arc<dyn EventListener>>,
) {
    let path = FileName::Samples.path(folder);
    let file = match read(folder, &path) {
        Ok(Some(bytes)) => decode(database_id, &bytes),
        Ok(None) => return,
        Err(error) => Err(error.to_string()),
    };
    match file {
        Ok(samples) => {
            for sample in samples {
                if let Some(keyspace) = keyspaces.get(&sample.keyspace) {
                    keyspace.read_state.load().query_sample.restore(sample);
                }
            }
        }
        Err(reason) => report(listener, &path, reason),
    }
}

/// `None` if there is no file.
fn read(folder: &Folder, path: &Path) -> Result<Option<Vec<u8>>> {
    let failed = |error| Error::io("read", path, error);
    let file = match folder.open(path, Access::Buffered) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        other => other.map_err(failed)?,
    };
    let length = usize::try_from(file.length().map_err(failed)?).unwrap_or(usize::MAX);
    if length > FILE_BYTES_MAX {
        let got = format!("{length} bytes");
        return Err(Error::corruption(path, 0, "file of sampled queries", "at most 16 MiB", got));
    }
    let mut bytes = vec![0; length];
    file.read_at(0, &mut bytes).map_err(failed)?;
    Ok(Some(bytes))
}

fn report(listener: Option<&Arc<dyn EventListener>>, file: &Path, reason: String) {
    if let Some(listener) = listener {
        listener.on_event(&Event::SampleIgnored { file: file.to_path_buf(), reason });
    }
}

/// Writes the file of an open store; see the head of this file.
pub(crate) struct SampleFile {
    context: Arc<StoreContext>,
    keyspaces: Arc<KeyspaceRegistry>,
    versions: Arc<VersionSet>,
    /// Locked while the file is written.
    writing: Mutex<()>,
    /// Sampled queries of this open when the file was last written.
    saved_count: AtomicU64,
}

impl SampleFile {
    pub(crate) fn new(
        context: &Arc<StoreContext>,
        keyspaces: &Arc<KeyspaceRegistry>,
        versions: &Arc<VersionSet>,
    ) -> Arc<Self> {
        Arc::new(Self {
            context: Arc::clone(context),
            keyspaces: Arc::clone(keyspaces),
            versions: Arc::clone(versions),
            writing: Mutex::new(()),
            saved_count: AtomicU64::new(0),
        })
    }

    fn sampled_count(&self) -> u64 {
        let keyspaces = self.keyspaces.load();
        keyspaces.values().map(|keyspace| keyspace.read_state.load().query_sample.sampled_count()).sum()
    }

    /// Writes the file if many queries were sampled since it was last written.
    pub(crate) fn save_if_due(&self) {
        if self.sampled_count() >= self.saved_count.load(Ordering::Relaxed).saturating_add(SAVED_AFTER) {
            self.save();
        }
    }

    /// Writes the file if a query was sampled since it was last written. Does nothing if writes are refused.
    pub(crate) fn save(&self) {
        let _writing = self.writing.lock();
        let count = self.sampled_count();
        if !self.context.options.sample_queries
            || count == self.saved_count.load(Ordering::Relaxed)
            || self.context.check_writable().is_err()
        {
            return;
        }
        self.saved_count.store(count, Ordering::Relaxed);
        if let Err(error) = self.write() {
            report(
                self.context.options.listener.as_ref(),
                &FileName::Samples.path(&self.context.folder),
                error.to_string(),
            );
        }
    }

    fn write(&self) -> Result<()> {
        let folder = &self.context.folder;
        let samples: Vec<StoredSample> = self
            .keyspaces
            .load()
            .values()
            .map(|keyspace| keyspace.read_state.load().query_sample.stored(keyspace.id))
            .filter(|sample| !sample.queries.is_empty())
            .collect();
        let bytes = encode(self.versions.database().0, &samples);
        let temporary = FileName::Temporary(self.versions.new_file_number()).path(folder);
        let path = FileName::Samples.path(folder);
        write_new(&**folder, &temporary, |append| append(&bytes))?;
        // The folder is not synced: after a power failure the old file may remain, which is acceptable.
        folder.rename(&temporary, &path).map_err(|error| Error::io("rename", &temporary, error)).inspect_err(
            |_| {
                // If that fails, too, the next open removes it.
                let _ = folder.remove(&temporary);
            },
        )
    }
}
