//! Filters of a view that is being written, until its pages are.
//!
//! The pages of a view come before its filters in the file, but both are built in one pass. So the first filters wait in memory, and those
//! that exceed it in a temporary file, which is removed with the spool. It is never synced: a crash leaves a temporary file, which
//! the next open removes.

use std::{path::PathBuf, sync::Arc};

use tamis_vfs::{File, Vfs};

use crate::error::{Error, Result};

/// Bytes of filters that wait in memory.
const MEMORY_BYTES: usize = 8 << 20;

/// See the head of this file.
pub(crate) struct FilterSpool {
    vfs: Arc<dyn Vfs>,
    path: PathBuf,
    memory_max: usize,
    in_memory: Vec<Vec<u8>>,
    memory_bytes: usize,
    /// Created for the first filter that exceeds the memory; all later ones follow there.
    file: Option<Arc<dyn File>>,
    lengths_in_file: Vec<usize>,
}

impl FilterSpool {
    /// An empty spool. No file exists at `path`.
    pub(crate) fn new(vfs: &Arc<dyn Vfs>, path: PathBuf) -> Self {
        Self {
            vfs: Arc::clone(vfs),
            path,
            memory_max: MEMORY_BYTES,
            in_memory: Vec::new(),
            memory_bytes: 0,
            file: None,
            lengths_in_file: Vec::new(),
        }
    }

    #[cfg(test)]
    pub(crate) const fn with_memory(mut self, bytes: usize) -> Self {
        self.memory_max = bytes;
        self
    }

    pub(super) fn push(&mut self, filter: Vec<u8>) -> Result<()> {
        if self.file.is_none() && self.memory_bytes + filter.len() <= self.memory_max {
            self.memory_bytes += filter.len();
            self.in_memory.push(filter);
            return Ok(());
        }
        let file = match &self.file {
            Some(file) => file,
            None => {
                let created = self.vfs.create(&self.path);
                self.file.insert(created.map_err(|error| Error::io("create", &self.path, error))?)
            }
        };
        file.append(&filter).map_err(|error| Error::io("append to", &self.path, error))?;
        self.lengths_in_file.push(filter.len());
        Ok(())
    }

    /// Calls `put` for each filter, in the order in which they were added.
    pub(super) fn for_each(&self, put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        for filter in &self.in_memory {
            put(filter)?;
        }
        let Some(file) = &self.file else { return Ok(()) };
        let mut offset = 0;
        for &length in &self.lengths_in_file {
            let mut filter = vec![0; length];
            file.read_at(offset, &mut filter).map_err(|error| Error::io("read", &self.path, error))?;
            put(&filter)?;
            offset += length as u64;
        }
        Ok(())
    }
}

impl Drop for FilterSpool {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            // A file that can't be removed is deleted at the next open.
            let _ = self.vfs.remove(&self.path);
        }
    }
}
