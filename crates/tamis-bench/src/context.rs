//! What the runner lends to a measurement: the seed, a clock, a folder of its own, inputs that several points share, progress,
//! and the wish to end.

use std::{
    any::Any,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use tamis::SystemClock;

use crate::{BenchError, Observer, Point, Size};

/// Built inputs that are kept between points. More would hold the memory of points long done.
const INPUT_COUNT_MAX: usize = 6;

/// How the names of scratch folders begin; the process's number follows.
const SCRATCH: &str = "tamis-bench-";

/// Scratch folders of processes that are there no more: they were killed before they could delete them.
pub fn leftovers(scratch: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(scratch) else { return Vec::new() };
    let is_left = |name: &str| {
        let process =
            name.strip_prefix(SCRATCH).and_then(|rest| rest.split_once('-')).map(|(number, _)| number);
        // Where the system does not tell of processes, nobody is known to be gone.
        let tells = Path::new("/proc/self").exists();
        process.is_some_and(|number| {
            tells && number.parse::<u32>().is_ok() && !Path::new("/proc").join(number).exists()
        })
    };
    let left = entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(is_left));
    let mut paths: Vec<PathBuf> = left.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    paths.sort();
    paths
}

/// A built input and the name that it is asked for by.
type NamedInput = (String, Arc<dyn Any + Send + Sync>);

/// What measurements share.
pub struct Context<'a> {
    size: Size,
    seed: u64,
    clock: SystemClock,
    scratch: &'a Path,
    observer: &'a mut dyn Observer,
    /// Which span of the point the shares of progress are of.
    span: Range<f64>,
    /// The one used last stands last.
    inputs: Vec<NamedInput>,
}

impl<'a> Context<'a> {
    pub(crate) fn new(size: Size, seed: u64, scratch: &'a Path, observer: &'a mut dyn Observer) -> Self {
        let (clock, span) = (SystemClock::default(), 0.0..1.0);
        Self { size, seed, clock, scratch, observer, span, inputs: Vec::new() }
    }

    /// A point begins.
    pub(crate) fn begin(&mut self, point: &Point) -> Result<(), BenchError> {
        self.observer.point(point);
        self.span = 0.0..1.0;
        self.progress(0.0)
    }

    /// The size that is run.
    pub fn size(&self) -> Size {
        self.size
    }

    /// The seed of everything drawn.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The clock of all times.
    pub fn clock(&self) -> &SystemClock {
        &self.clock
    }

    /// An empty folder for stores and files; it is deleted when the value is dropped, and so before the next store is loaded.
    ///
    /// # Errors
    /// The system's.
    pub fn scratch(&self) -> Result<tempfile::TempDir, BenchError> {
        let prefix = format!("{SCRATCH}{}-", std::process::id());
        let folder = tempfile::Builder::new().prefix(&prefix).tempdir_in(self.scratch);
        folder.map_err(BenchError::io(self.scratch))
    }

    /// Does a part of the work: of the progress that it tells, 0 and 1 are the ends of this span of what is being done.
    pub fn part<T>(&mut self, span: Range<f64>, work: impl FnOnce(&mut Self) -> T) -> T {
        let whole = self.span.clone();
        let place = |share: f64| whole.start + share * (whole.end - whole.start);
        self.span = place(span.start)..place(span.end);
        let result = work(self);
        self.span = whole;
        result
    }

    /// Says how much of the point (or of the [part](Self::part)) is done, and ends it when somebody asked for the end. Long measurements call it between
    /// their parts, loops at least once a second.
    ///
    /// # Errors
    /// [`BenchError::Interrupted`].
    pub fn progress(&mut self, share: f64) -> Result<(), BenchError> {
        let Range { start, end } = self.span;
        self.observer.progress(start + share.clamp(0.0, 1.0) * (end - start));
        if self.observer.is_interrupted() { Err(BenchError::Interrupted) } else { Ok(()) }
    }

    /// Whether somebody asked for the end.
    pub fn is_interrupted(&self) -> bool {
        self.observer.is_interrupted()
    }

    /// An input that several points share, built by the first of them. The name tells everything that it depends on but the
    /// seed; the few used last are kept.
    ///
    /// # Errors
    /// Those of `build`.
    pub fn input<T: Any + Send + Sync>(
        &mut self,
        name: &str,
        build: impl FnOnce(&mut Self) -> Result<T, BenchError>,
    ) -> Result<Arc<T>, BenchError> {
        let known = self.inputs.iter().position(|(own, input)| own == name && input.is::<T>());
        let input = match known {
            Some(index) => self.inputs.remove(index).1,
            None => {
                if self.inputs.len() >= INPUT_COUNT_MAX {
                    self.inputs.remove(0);
                }
                Arc::new(build(self)?)
            }
        };
        self.inputs.push((name.to_owned(), Arc::clone(&input)));
        input.downcast().map_err(|_| BenchError::other(format!("the input {name} is of another type")))
    }
}
