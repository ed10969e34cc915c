//! The context that the runner passes to a measurement: seed, clock, scratch folder, shared inputs, progress, interruption.

use std::{
    any::Any,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use tamis::SystemClock;

use crate::{BenchError, Observer, Point, Size};

/// Maximum number of inputs that are cached between points; limits memory.
const INPUT_COUNT_MAX: usize = 6;

/// Prefix of the names of scratch folders; the process id follows.
const SCRATCH: &str = "tamis-bench-";

/// Returns the scratch folders of killed processes.
pub fn leftover_stores(scratch: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(scratch) else { return Vec::new() };
    let is_left = |name: &str| {
        let process =
            name.strip_prefix(SCRATCH).and_then(|rest| rest.split_once('-')).map(|(number, _)| number);
        // Without `/proc` it is unknown which processes exist.
        let has_proc = Path::new("/proc/self").exists();
        process.is_some_and(|number| {
            has_proc && number.parse::<u32>().is_ok() && !Path::new("/proc").join(number).exists()
        })
    };
    let left = entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(is_left));
    let mut paths: Vec<PathBuf> = left.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    paths.sort();
    paths
}

/// The name of an input and the input.
type NamedInput = (String, Arc<dyn Any + Send + Sync>);

/// The shared state of measurements.
pub struct Context<'a> {
    size: Size,
    seed: u64,
    clock: SystemClock,
    scratch: &'a Path,
    observer: &'a mut dyn Observer,
    /// The span of the progress of the point that [`Self::progress`] reports within.
    span: Range<f64>,
    /// Ordered by last use, the most recent last.
    inputs: Vec<NamedInput>,
}

impl<'a> Context<'a> {
    /// A context of measurements outside of the runner.
    pub fn new(size: Size, seed: u64, scratch: &'a Path, observer: &'a mut dyn Observer) -> Self {
        let (clock, span) = (SystemClock::default(), 0.0..1.0);
        Self { size, seed, clock, scratch, observer, span, inputs: Vec::new() }
    }

    /// Begins a point.
    pub(crate) fn begin(&mut self, point: &Point) -> Result<(), BenchError> {
        self.observer.point(point);
        self.span = 0.0..1.0;
        self.progress(0.0)
    }

    /// The size of the run.
    pub fn size(&self) -> Size {
        self.size
    }

    /// The seed of the random numbers.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The clock of all measurements.
    pub fn clock(&self) -> &SystemClock {
        &self.clock
    }

    /// Creates an empty folder for stores and files. It is deleted when the value is dropped, before the next store is loaded.
    ///
    /// # Errors
    /// I/O errors.
    pub fn scratch(&self) -> Result<tempfile::TempDir, BenchError> {
        let prefix = format!("{SCRATCH}{}-", std::process::id());
        let folder = tempfile::Builder::new().prefix(&prefix).tempdir_in(self.scratch);
        folder.map_err(BenchError::io(self.scratch))
    }

    /// Runs a part of the work; its progress from 0 to 1 is mapped to `span` of the current part.
    pub fn part<T>(&mut self, span: Range<f64>, work: impl FnOnce(&mut Self) -> T) -> T {
        let whole = self.span.clone();
        let place = |share: f64| whole.start + share * (whole.end - whole.start);
        self.span = place(span.start)..place(span.end);
        let result = work(self);
        self.span = whole;
        result
    }

    /// Reports the progress of the point or of the current [part](Self::part); fails if the run was interrupted. Long measurements
    /// call it at least once per second.
    ///
    /// # Errors
    /// [`BenchError::Interrupted`].
    pub fn progress(&mut self, share: f64) -> Result<(), BenchError> {
        let Range { start, end } = self.span;
        self.observer.progress(start + share.clamp(0.0, 1.0) * (end - start));
        if self.observer.is_interrupted() { Err(BenchError::Interrupted) } else { Ok(()) }
    }

    /// Whether the run was interrupted.
    pub fn is_interrupted(&self) -> bool {
        self.observer.is_interrupted()
    }

    /// Returns an input that several points share; the first of them builds it. The name must contain everything that the input
    /// depends on except the seed. Only the most recently used inputs are cached.
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
