//! The file that keeps the sampled queries while a store is closed (`docs/format/samples.md`).
//!
//! It is derived data. A missing file is an empty sample; one that can't be used is reported ([`Event::SampleIgnored`]), and the
//! store continues with an empty sample. A file that can't be written is reported, too, and the old one stays.
//!
//! Queries have keys, and a deleted key may stay in the file. So it is written, when the store is closed, only if the program says so
//! ([`crate::Options::sample_file`]); otherwise the next open for writing removes it.

use std::{io::ErrorKind, path::Path, sync::Arc};

use tamis_vfs::{Access, Folder};

use crate::{
    admin::link::write_new,
    error::{Error, Result},
    file_name::FileName,
    observe::{
        events::{Event, EventListener},
        query_sample::format::{FILE_BYTES_MAX, StoredSample, decode, encode},
    },
    store::{context::StoreContext, keyspace_state::Keyspaces},
    version::set::VersionSet,
};

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

/// Writes the file, if the program has asked for it and writes are not refused.
pub(crate) fn save(context: &StoreContext, keyspaces: &Keyspaces, versions: &VersionSet) {
    let options = &context.options;
    if !options.sample_file || !options.sample_queries || context.check_writable().is_err() {
        return;
    }
    if let Err(error) = write(&context.folder, keyspaces, versions) {
        report(options.listener.as_ref(), &FileName::Samples.path(&context.folder), error.to_string());
    }
}

fn write(folder: &Folder, keyspaces: &Keyspaces, versions: &VersionSet) -> Result<()> {
    let samples: Vec<StoredSample> = keyspaces
        .values()
        .map(|keyspace| keyspace.read_state.load().query_sample.stored(keyspace.id))
        .filter(|sample| !sample.queries.is_empty())
        .collect();
    let bytes = encode(versions.database().0, &samples);
    let temporary = FileName::Temporary(versions.new_file_number()).path(folder);
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

/// Removes the file: a program that opens the store without it wants no keys outside of tables and the log.
pub(crate) fn remove(folder: &Folder, listener: Option<&Arc<dyn EventListener>>) {
    let path = FileName::Samples.path(folder);
    if let Err(error) = folder.remove(&path) {
        report(listener, &path, Error::io("remove", &path, error).to_string());
    }
}
