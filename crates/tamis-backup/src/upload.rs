//! Splits the files of a checkpoint into parts, and uploads those that the target lacks.
//!
//! **Tables are not read again.** If the newest backup has a table of the same name and length, whose last 4 KiB have the same digest, its
//! parts are taken over. The last 4 KiB contain the footer, and two tables with the same footer have the same content
//! (`docs/format/table.md`, "Footer"): it has a checksum over the checksums of all blocks and sections. Filter files and views have no such
//! checksum and are read.
//!
//! **The log is split where it was split before**, as long as the digests of these parts are those of the file. So a later backup uploads
//! only the bytes since the last one. A segment with [`LOG_PARTS_MAX`] parts is split again into large ones.
//!
//! Cost: a read of 4 KiB for each table, a read of new tables, filter files, views and the log. Memory: one part is read, [`REQUESTS`]
//! wait, and as many are uploaded.

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
};

use tamis::Access;
use tamis_vfs::File;

use crate::{
    backup_list::BackupList,
    checkpoint::{Checkpoint, CheckpointFile},
    digest::digest,
    error::{Error, Result},
    format::{FileEntry, FileList, OBJECTS, PART_BYTES, Part, is_immutable},
    parallel::REQUESTS,
    progress::{self, Progress},
    target::Target,
};

/// Bytes at the end of a table that contain its footer.
const END_BYTES: u64 = 4096;
/// Parts of a log segment that are kept.
const LOG_PARTS_MAX: usize = 32;

/// Parts that are in the target, with their lengths.
pub(crate) struct Known(HashMap<String, u64>);

impl Known {
    /// Lists the parts in the target.
    pub(crate) fn list(target: &Target) -> Result<Self> {
        let listed = target.list(OBJECTS)?;
        let parts = listed.into_iter().filter_map(|object| {
            let digest = object.name.rsplit_once('/')?.1.to_owned();
            Some((digest, object.bytes))
        });
        Ok(Self(parts.collect()))
    }

    /// Whether the part is in the target. An object of another length does not count.
    pub(crate) fn contains(&self, part: &Part) -> bool {
        self.0.get(&part.sha256) == Some(&part.bytes)
    }

    fn insert(&mut self, part: &Part) {
        self.0.insert(part.sha256.clone(), part.bytes);
    }
}

/// The files of the newest backup.
#[derive(Default)]
pub(crate) struct Previous {
    files: BTreeMap<String, FileEntry>,
    list: Option<Part>,
}

impl Previous {
    /// Reads the list of tables. If it is damaged or missing, all tables are read again.
    pub(crate) fn read(target: &Target, backups: &BackupList) -> Result<Self> {
        let Some(newest) = backups.newest() else { return Ok(Self::default()) };
        let (tables, list) = match target.file_list(newest) {
            Ok(tables) => (tables.files, Some(newest.tables.clone())),
            Err(Error::Damaged { .. }) => (Vec::new(), None),
            Err(error) => return Err(error),
        };
        let files = newest.files.iter().cloned().chain(tables);
        Ok(Self { files: files.map(|file| (file.name.clone(), file)).collect(), list })
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.files.contains_key(name)
    }

    /// The parts of the newest backup, which are in the target unless they were lost.
    pub(crate) fn parts(&self) -> Known {
        let parts = self.files.values().flat_map(|file| &file.parts).chain(&self.list);
        Known(parts.map(|part| (part.sha256.clone(), part.bytes)).collect())
    }
}

/// The result of [`upload`].
pub(crate) struct Uploaded {
    /// The object of the list of tables.
    pub(crate) list: Part,
    pub(crate) tables: FileList,
    pub(crate) files: Vec<FileEntry>,
    /// Bytes of the uploaded objects.
    pub(crate) bytes: u64,
}

/// Uploads the parts of a checkpoint that are not in `known`.
pub(crate) fn upload(
    target: &Target,
    checkpoint: &Checkpoint,
    previous: &Previous,
    known: Known,
    progress: &dyn Progress,
) -> Result<Uploaded> {
    progress.expect(checkpoint.files.iter().map(|file| file.bytes).sum());
    let (sender, receiver) = sync_channel(REQUESTS);
    let (error, bytes) = (Mutex::new(None), AtomicU64::new(0));
    let workers = Workers { target, progress, receiver: Mutex::new(receiver), error, bytes };
    let result = std::thread::scope(|scope| {
        for _ in 0..REQUESTS {
            scope.spawn(|| workers.run());
        }
        // The workers end when the sender is dropped.
        Reader { checkpoint, previous, known, workers: &workers, sender }.read_all()
    });
    workers.check()?;
    let (list, tables, files) = result?;
    Ok(Uploaded { list, tables, files, bytes: workers.bytes.into_inner() })
}

/// The threads that upload parts.
struct Workers<'a> {
    target: &'a Target,
    progress: &'a dyn Progress,
    receiver: Mutex<Receiver<(Part, Vec<u8>)>>,
    error: Mutex<Option<Error>>,
    bytes: AtomicU64,
}

impl Workers<'_> {
    fn run(&self) {
        loop {
            let received = self.receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok((part, bytes)) = received else { return };
            // After an error the queue is emptied, so that the reader does not wait.
            if self.check().is_err() {
                continue;
            }
            match self.target.put(&part.object(), &bytes) {
                Ok(()) => {
                    self.bytes.fetch_add(part.bytes, Ordering::Relaxed);
                    self.progress.advance(part.bytes);
                }
                Err(error) => {
                    self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                }
            }
        }
    }

    /// # Errors
    /// The first error of an upload; [`Error::Cancelled`].
    fn check(&self) -> Result<()> {
        progress::check(self.progress)?;
        self.error.lock().unwrap_or_else(PoisonError::into_inner).clone().map_or(Ok(()), Err)
    }
}

/// Reads the files.
struct Reader<'a> {
    checkpoint: &'a Checkpoint,
    previous: &'a Previous,
    known: Known,
    workers: &'a Workers<'a>,
    sender: SyncSender<(Part, Vec<u8>)>,
}

impl Reader<'_> {
    fn read_all(mut self) -> Result<(Part, FileList, Vec<FileEntry>)> {
        let (mut tables, mut files) = (FileList::default(), Vec::new());
        for file in &self.checkpoint.files {
            let list = if is_immutable(&file.name) { &mut tables.files } else { &mut files };
            list.push(self.read_file(file)?);
        }
        let encoded = tables.encode();
        let list = Part::of(&encoded);
        self.queue(&list, encoded)?;
        Ok((list, tables, files))
    }

    /// Uploads a part, unless the target has it.
    fn queue(&mut self, part: &Part, bytes: Vec<u8>) -> Result<()> {
        self.workers.check()?;
        if self.known.contains(part) {
            self.workers.progress.advance(part.bytes);
        } else {
            self.known.insert(part);
            // The receiver is there as long as the workers are.
            let _ = self.sender.send((part.clone(), bytes));
        }
        Ok(())
    }

    fn read_file(&mut self, file: &CheckpointFile) -> Result<FileEntry> {
        let opened = OpenFile::open(self.checkpoint, file)?;
        let mut entry =
            FileEntry { name: file.name.clone(), bytes: file.bytes, end: None, parts: Vec::new() };
        if file.name.ends_with(".table") {
            let end = file.bytes.min(END_BYTES);
            entry.end = Some(digest(&opened.read(file.bytes - end, end)?));
        }
        let previous = self.previous.files.get(&file.name);
        let is_same = |previous: &&FileEntry| {
            entry.end.is_some() && previous.end == entry.end && previous.bytes == entry.bytes
        };
        if let Some(same) = previous.filter(is_same)
            && same.parts.iter().all(|part| self.known.contains(part))
        {
            self.workers.progress.advance(file.bytes);
            return Ok(same.clone());
        }
        let mut earlier = previous.map_or(&[][..], |previous| &previous.parts);
        if earlier.len() >= LOG_PARTS_MAX {
            earlier = &[];
        }
        let mut offset = 0;
        while offset < file.bytes {
            let rest = file.bytes - offset;
            let split = earlier.first().filter(|part| (1..=rest).contains(&part.bytes));
            let bytes = opened.read(offset, split.map_or(rest.min(PART_BYTES), |part| part.bytes))?;
            let part = Part::of(&bytes);
            // After the first difference the rest is split into large parts.
            earlier = match split == Some(&part) {
                true => earlier.get(1..).unwrap_or_default(),
                false => &[],
            };
            self.queue(&part, bytes)?;
            offset += part.bytes;
            entry.parts.push(part);
        }
        Ok(entry)
    }
}

/// A file of a checkpoint.
struct OpenFile {
    path: PathBuf,
    file: Arc<dyn File>,
}

impl OpenFile {
    fn open(checkpoint: &Checkpoint, file: &CheckpointFile) -> Result<Self> {
        let path = checkpoint.path(&file.name);
        let opened = checkpoint.vfs().open(&path, Access::Buffered);
        let file = opened.map_err(|error| Error::file("open", &path, error))?;
        Ok(Self { path, file })
    }

    fn read(&self, offset: u64, bytes: u64) -> Result<Vec<u8>> {
        let mut buffer = vec![0; usize::try_from(bytes).unwrap_or(usize::MAX)];
        self.file.read_at(offset, &mut buffer).map_err(|error| Error::file("read", &self.path, error))?;
        Ok(buffer)
    }
}
