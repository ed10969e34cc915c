//! An output file that is complete or absent: it is written with the suffix `.part`, synced, and renamed.
//!
//! 1. An existing file with the name, or with the name and `.part`, is never overwritten without permission: it may be the
//!    user's, or the rest of an earlier attempt.
//! 2. A killed process leaves at most the `.part` file.
//! 3. A device (`/dev/stdout`, a named pipe) is written directly: it cannot be replaced by a rename.

use std::{
    fmt::Display,
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
};

use crate::failure::Failure;

/// An output file that is being written.
pub(crate) struct OutputFile {
    part: PathBuf,
    path: PathBuf,
    file: File,
}

/// An error of the operating system for a file.
fn fail(path: &Path, error: &dyn Display) -> Failure {
    Failure::Input(format!("{}: {error}", path.display()))
}

#[expect(clippy::disallowed_methods, reason = "the user's own output, no file of a store")]
impl OutputFile {
    /// Creates the file; with `may_replace`, overwrites an existing file and an existing `.part` file.
    pub(crate) fn create(path: &Path, may_replace: bool, advice: &str) -> Result<Self, Failure> {
        let is_device = std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir());
        if is_device {
            let file = File::options().write(true).open(path).map_err(|error| fail(path, &error))?;
            return Ok(Self { part: path.to_path_buf(), path: path.to_path_buf(), file });
        }
        // A dangling symbolic link is also an existing file.
        let found = path.symlink_metadata();
        if found.as_ref().is_ok_and(|found| found.is_dir()) {
            return Err(fail(path, &"is a folder; give a file name"));
        }
        if found.is_ok() && !may_replace {
            return Err(fail(path, &format!("already exists; {advice}")));
        }
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        let mut options = File::options();
        options.write(true).create(true).truncate(true).create_new(!may_replace);
        let file = options.open(&part).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                fail(&part, &"already exists, probably from an interrupted command; delete it first")
            }
            _ => fail(&part, &error),
        })?;
        Ok(Self { part, path: path.to_path_buf(), file })
    }

    /// The path of the partial file.
    pub(crate) fn part(&self) -> &Path {
        &self.part
    }

    /// Syncs and renames the file. Afterwards it survives a power failure (on Windows its name may be `.part` again).
    ///
    /// # Errors
    /// Errors of the operating system; the partial file remains.
    pub(crate) fn finish(self) -> io::Result<()> {
        if self.part == self.path {
            return Ok(());
        }
        self.file.sync_all()?;
        std::fs::rename(&self.part, &self.path)?;
        // Windows has no sync of folders.
        if cfg!(unix) {
            let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
            File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
        }
        Ok(())
    }

    /// Deletes the partial file.
    pub(crate) fn discard(self) {
        if self.part != self.path {
            let _ = std::fs::remove_file(&self.part);
        }
    }
}

impl Write for &OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&self.file).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        (&self.file).flush()
    }
}
