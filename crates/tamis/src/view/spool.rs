//! Parts of a view that follow its pages in the file, but are built in the same pass: those of the page index.
//!
//! The first parts wait in memory, and those that exceed it in a temporary file, which is removed with the spool. It is never synced: a
//! crash leaves a temporary file, which the next open removes.

use std::{borrow::Cow, path::PathBuf, sync::Arc};

use tamis_vfs::{File, Vfs};

use crate::error::{Error, Result};

/// Bytes that wait in memory.
const MEMORY_BYTES: usize = 4 << 20;

/// See the head of this file.
pub(crate) struct Spool {
    vfs: Arc<dyn Vfs>,
    new_path: Box<dyn Fn() -> PathBuf>,
    memory_max: usize,
    in_memory: Vec<Box<[u8]>>,
    memory_bytes: usize,
    /// Created for the first part that exceeds the memory; all later ones follow there.
    file: Option<(PathBuf, Arc<dyn File>)>,
    /// Where each part in the file ends.
    ends_in_file: Vec<u64>,
}

impl Spool {
    /// An empty spool. `new_path` is called for its file only, and returns a path at which no file exists.
    pub(crate) fn new(vfs: &Arc<dyn Vfs>, new_path: impl Fn() -> PathBuf + 'static) -> Self {
        Self {
            vfs: Arc::clone(vfs),
            new_path: Box::new(new_path),
            memory_max: MEMORY_BYTES,
            in_memory: Vec::new(),
            memory_bytes: 0,
            file: None,
            ends_in_file: Vec::new(),
        }
    }

    /// A spool whose file is in memory, too.
    #[cfg(any(test, feature = "bench-internals", feature = "fuzz-internals"))]
    pub(crate) fn in_memory() -> Self {
        let vfs: Arc<dyn Vfs> = Arc::new(tamis_vfs::MemVfs::new());
        Self::new(&vfs, || "/spool".into())
    }

    #[cfg(any(test, feature = "fuzz-internals"))]
    pub(crate) const fn with_memory(mut self, bytes: usize) -> Self {
        self.memory_max = bytes;
        self
    }

    /// Bytes of the parts in memory, and of the ends of those in the file.
    #[cfg(test)]
    pub(super) const fn memory_bytes(&self) -> usize {
        self.memory_bytes + self.ends_in_file.capacity() * size_of::<u64>()
    }

    /// Bytes that a builder collects before it pushes them.
    pub(super) const fn part_bytes(&self) -> usize {
        self.memory_max / 4
    }

    pub(super) fn push(&mut self, part: Vec<u8>) -> Result<()> {
        if self.file.is_none() && self.memory_bytes + part.len() <= self.memory_max {
            self.memory_bytes += part.len();
            self.in_memory.push(part.into_boxed_slice());
            return Ok(());
        }
        let (path, file) = match &self.file {
            Some(file) => file,
            None => {
                let path = (self.new_path)();
                let created = self.vfs.create(&path).map_err(|error| Error::io("create", &path, error))?;
                self.file.insert((path, created))
            }
        };
        file.append(&part).map_err(|error| Error::io("append to", path, error))?;
        let start = self.ends_in_file.last().copied().unwrap_or_default();
        self.ends_in_file.push(start + part.len() as u64);
        Ok(())
    }

    /// The number of parts.
    pub(super) const fn len(&self) -> usize {
        self.in_memory.len() + self.ends_in_file.len()
    }

    /// The n-th part, from 0.
    pub(super) fn part(&self, number: usize) -> Result<Cow<'_, [u8]>> {
        if let Some(part) = self.in_memory.get(number) {
            return Ok(Cow::Borrowed(part));
        }
        let end_of = |number: usize| self.ends_in_file.get(number).copied().unwrap_or_default();
        let number = number - self.in_memory.len();
        let (start, end) = (number.checked_sub(1).map_or(0, end_of), end_of(number));
        let mut part = vec![0; (end - start) as usize];
        if let Some((path, file)) = &self.file {
            file.read_at(start, &mut part).map_err(|error| Error::io("read", path, error))?;
        }
        Ok(Cow::Owned(part))
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        if let Some((path, file)) = self.file.take() {
            drop(file);
            // A file that can't be removed is deleted at the next open.
            let _ = self.vfs.remove(&path);
        }
    }
}
