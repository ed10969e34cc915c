//! Wrappers around the file system, the clock and the event listener of the program, so that a panic in them never unwinds through
//! the engine: it becomes the background error of the store ([`BackgroundError`]).
//!
//! 1. A file operation that panics returns an [`io::Error`] with the text of the panic: the engine handles it as a failed operation.
//! 2. A clock that panicked is not used again: the clock of the operating system replaces it.
//! 3. An event listener that panicked still gets later events.
//!
//! Reads through a mapping run no code of the file system, so mapped files are not wrapped.

use std::{
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tamis_vfs::{Access, DirEntry, File, Lock, LockMode, Mapping, Vfs};

use crate::{
    observe::events::{Event, EventListener},
    options::Options,
    store::{
        background_error::BackgroundError,
        runtime::{Clock, Runtime, SystemClock},
    },
    sync::{Condvar, MutexGuard},
};

/// Wraps a file system.
pub(crate) fn guard_vfs(vfs: Arc<dyn Vfs>, background_error: &Arc<BackgroundError>) -> Arc<dyn Vfs> {
    Arc::new(GuardedVfs { inner: vfs, guard: FileGuard(Arc::clone(background_error)) })
}

/// Wraps the clock of a runtime.
pub(crate) fn guard_clock(runtime: Runtime, background_error: &Arc<BackgroundError>) -> Runtime {
    let clock = GuardedClock {
        inner: runtime.clock,
        has_panicked: AtomicBool::new(false),
        fallback: SystemClock::default(),
        background_error: Arc::clone(background_error),
    };
    Runtime { clock: Arc::new(clock), ..runtime }
}

/// Wraps the event listener of the options, if there is one.
pub(crate) fn guard_listener(options: Options, background_error: &Arc<BackgroundError>) -> Options {
    let wrap = |inner| -> Arc<dyn EventListener> {
        Arc::new(GuardedListener { inner, background_error: Arc::clone(background_error) })
    };
    Options { listener: options.listener.map(wrap), ..options }
}

/// Turns the panic of a file operation into an error.
#[derive(Debug, Clone)]
struct FileGuard(Arc<BackgroundError>);

impl FileGuard {
    fn run<T>(&self, operation: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        match self.0.catch("call the file system", operation) {
            Ok(result) => result,
            Err(error) => Err(io::Error::other(error.to_string())),
        }
    }

    fn open(&self, open: impl FnOnce() -> io::Result<Arc<dyn File>>) -> io::Result<Arc<dyn File>> {
        Ok(self.wrap(self.run(open)?))
    }

    fn wrap(&self, inner: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(GuardedFile { inner, guard: self.clone() })
    }
}

#[derive(Debug)]
struct GuardedVfs {
    inner: Arc<dyn Vfs>,
    guard: FileGuard,
}

impl Vfs for GuardedVfs {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.guard.open(|| self.inner.create(path))
    }

    fn create_log(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.guard.open(|| self.inner.create_log(path))
    }

    fn create_direct(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.guard.open(|| self.inner.create_direct(path))
    }

    fn create_exclusive(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.guard.open(|| self.inner.create_exclusive(path))
    }

    fn make_readable(&self, path: &Path) -> io::Result<()> {
        self.guard.run(|| self.inner.make_readable(path))
    }

    fn is_locked(&self, path: &Path) -> io::Result<bool> {
        self.guard.run(|| self.inner.is_locked(path))
    }

    fn reuse_log(&self, path: &Path) -> io::Result<Option<Arc<dyn File>>> {
        let file = self.guard.run(|| self.inner.reuse_log(path))?;
        Ok(file.map(|file| self.guard.wrap(file)))
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        let file = self.guard.run(|| self.inner.open(path, access))?;
        let is_mapped = access == Access::Mapped && file.mapping().is_some();
        Ok(if is_mapped { file } else { self.guard.wrap(file) })
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.guard.run(|| self.inner.read(path))
    }

    fn rename(&self, source: &Path, target: &Path) -> io::Result<()> {
        self.guard.run(|| self.inner.rename(source, target))
    }

    fn hard_link(&self, source: &Path, target: &Path) -> io::Result<()> {
        self.guard.run(|| self.inner.hard_link(source, target))
    }

    fn clone_file(&self, source: &Path, target: &Path) -> io::Result<()> {
        self.guard.run(|| self.inner.clone_file(source, target))
    }

    fn is_only_name(&self, path: &Path) -> io::Result<bool> {
        self.guard.run(|| self.inner.is_only_name(path))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.guard.run(|| self.inner.remove(path))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.guard.run(|| self.inner.create_dir_all(path))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.guard.run(|| self.inner.list(path))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.guard.run(|| self.inner.exists(path))
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.guard.run(|| self.inner.sync_dir(path))
    }

    fn open_folder(&self, path: &Path) -> io::Result<Arc<dyn Vfs>> {
        let inner = self.guard.run(|| self.inner.open_folder(path))?;
        Ok(Arc::new(Self { inner, guard: self.guard.clone() }))
    }

    fn check_folder(&self) -> io::Result<()> {
        self.guard.run(|| self.inner.check_folder())
    }

    fn is_within(&self, path: &Path, folder: &Path) -> io::Result<bool> {
        self.guard.run(|| self.inner.is_within(path, folder))
    }

    fn lock(&self, path: &Path, mode: LockMode) -> io::Result<Box<dyn Lock>> {
        self.guard.run(|| self.inner.lock(path, mode))
    }

    fn free_space(&self, path: &Path) -> io::Result<Option<u64>> {
        self.guard.run(|| self.inner.free_space(path))
    }

    fn open_files_max(&self) -> Option<u64> {
        self.guard.run(|| Ok(self.inner.open_files_max())).ok().flatten()
    }
}

#[derive(Debug)]
struct GuardedFile {
    inner: Arc<dyn File>,
    guard: FileGuard,
}

impl File for GuardedFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.guard.run(|| self.inner.read_at(offset, buffer))
    }

    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        self.guard.run(|| self.inner.append(bytes))
    }

    fn sync(&self) -> io::Result<()> {
        self.guard.run(|| self.inner.sync())
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.guard.run(|| self.inner.truncate(length))
    }

    fn length(&self) -> io::Result<u64> {
        self.guard.run(|| self.inner.length())
    }

    fn mapping(&self) -> Option<&Arc<Mapping>> {
        self.inner.mapping()
    }

    fn will_need(&self, offset: u64, length: u64) {
        // A hint: the background error reports a panic.
        let _ = self.guard.run(|| {
            self.inner.will_need(offset, length);
            Ok(())
        });
    }
}

#[derive(Debug)]
struct GuardedClock {
    inner: Arc<dyn Clock>,
    has_panicked: AtomicBool,
    fallback: SystemClock,
    background_error: Arc<BackgroundError>,
}

impl GuardedClock {
    /// Calls the inner clock; `None` if it panics or has panicked before.
    fn call<R>(&self, call: impl FnOnce(&dyn Clock) -> R) -> Option<R> {
        if self.has_panicked.load(Ordering::Relaxed) {
            return None;
        }
        let result = self.background_error.catch("call the clock", || call(&*self.inner));
        result.inspect_err(|_| self.has_panicked.store(true, Ordering::Relaxed)).ok()
    }
}

impl Clock for GuardedClock {
    fn now(&self) -> Duration {
        self.call(|clock| clock.now()).unwrap_or_else(|| self.fallback.now())
    }

    fn since_epoch(&self) -> Duration {
        self.call(|clock| clock.since_epoch()).unwrap_or_else(|| self.fallback.since_epoch())
    }

    fn wait(&self, condition: &Condvar, guard: &mut MutexGuard<'_, ()>, timeout: Duration) {
        if self.call(|clock| clock.wait(condition, guard, timeout)).is_none() {
            self.fallback.wait(condition, guard, timeout);
        }
    }
}

#[derive(Debug)]
struct GuardedListener {
    inner: Arc<dyn EventListener>,
    background_error: Arc<BackgroundError>,
}

impl EventListener for GuardedListener {
    fn on_event(&self, event: &Event) {
        // The background error reports a panic.
        let _ = self.background_error.catch("call the event listener", || self.inner.on_event(event));
    }
}
