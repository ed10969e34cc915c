//! A file of the user's own that is whole or not there: it is written under its name with `.part` behind it, synced, and renamed.
//!
//! 1. A file that has the name, or that name, already is never cut: it may be somebody's, or all that is left of an earlier try.
//! 2. What ends the program in between leaves at most the `.part`.
//! 3. A device (`/dev/stdout`, a pipe with a name) is written as it is: nothing can be renamed over it.

use std::{
    fmt::Display,
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
};

use crate::failure::Failure;

/// The file while it is written.
pub(crate) struct OutputFile {
    part: PathBuf,
    path: PathBuf,
    file: File,
}

/// What the system said of a file.
fn fail(path: &Path, error: &dyn Display) -> Failure {
    Failure::Input(format!("{}: {error}", path.display()))
}

#[expect(clippy::disallowed_methods, reason = "the user's own output, no file of a store")]
impl OutputFile {
    /// Begins the file; with `may_replace`, files of its names are replaced.
    pub(crate) fn create(path: &Path, may_replace: bool, advice: &str) -> Result<Self, Failure> {
        let is_device = std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir());
        if is_device {
            let file = File::options().write(true).open(path).map_err(|error| fail(path, &error))?;
            return Ok(Self { part: path.to_path_buf(), path: path.to_path_buf(), file });
        }
        // A link that leads nowhere is somebody's, too.
        let found = path.symlink_metadata();
        if found.as_ref().is_ok_and(|found| found.is_dir()) {
            return Err(fail(path, &"a folder; name a file"));
        }
        if found.is_ok() && !may_replace {
            return Err(fail(path, &format!("it is there already; {advice}")));
        }
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        let mut options = File::options();
        options.write(true).create(true).truncate(true).create_new(!may_replace);
        let file = options.open(&part).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => fail(
                &part,
                &"it is there already, as what did not come to its end leaves it; remove it first",
            ),
            _ => fail(&part, &error),
        })?;
        Ok(Self { part, path: path.to_path_buf(), file })
    }

    /// Where the bytes are until the file is whole.
    pub(crate) fn part(&self) -> &Path {
        &self.part
    }

    /// Gives the file its name. It survives the machine then.
    ///
    /// # Errors
    /// The system's; what was written stays in the part.
    pub(crate) fn finish(self) -> io::Result<()> {
        if self.part == self.path {
            return Ok(());
        }
        self.file.sync_all()?;
        std::fs::rename(&self.part, &self.path)?;
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }

    /// Removes what was written.
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
