//! What a test says about faults: which operations meet which one.

use std::{fmt, io::ErrorKind, path::Path, sync::Arc};

use crate::{Operation, OperationKind};

/// Called by a slow rule before the operation is done.
type Hook = Arc<dyn Fn(&Operation) + Send + Sync>;

/// What happens to an operation.
#[derive(Clone)]
pub enum Fault {
    /// It is not done and gives this error.
    Error(ErrorKind),
    /// It is done, and gives this error all the same: the caller cannot know.
    ErrorAfter(ErrorKind),
    /// An append writes at most this many bytes and gives the error; any other operation is not done.
    Short {
        /// Bytes that are written before the error.
        written_bytes: u64,
        /// The error.
        error: ErrorKind,
    },
    /// Appends take from this budget; one that exceeds it writes what fits and gives
    /// [`ErrorKind::StorageFull`]. Other operations pass. Truncating and removing give nothing back:
    /// [`crate::FaultVfs::remove_rule`] does.
    DiskFull {
        /// Bytes that can still be written.
        free_bytes: u64,
    },
    /// The hook is called, then the operation is done. It may block on what the test controls.
    Slow(Hook),
}

impl fmt::Debug for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(error) => write!(formatter, "Error({error:?})"),
            Self::ErrorAfter(error) => write!(formatter, "ErrorAfter({error:?})"),
            Self::Short { written_bytes, error } => write!(formatter, "Short({written_bytes}, {error:?})"),
            Self::DiskFull { free_bytes } => write!(formatter, "DiskFull({free_bytes})"),
            Self::Slow(_) => formatter.write_str("Slow"),
        }
    }
}

/// Which operations meet a fault: those of the given kinds and path, from the `nth` match on, `times` times.
///
/// Without further calls a rule is about the first operation of any kind on any path, once; [`Rule::disk_full`] and
/// [`Rule::slow`] are about all.
#[derive(Debug, Clone)]
pub struct Rule {
    pub(super) fault: Fault,
    kinds: Vec<OperationKind>,
    path_part: String,
    first: u64,
    count: u64,
}

impl Rule {
    /// A rule with this fault.
    pub fn new(fault: Fault) -> Self {
        let count = if matches!(fault, Fault::DiskFull { .. } | Fault::Slow(_)) { u64::MAX } else { 1 };
        Self { fault, kinds: Vec::new(), path_part: String::new(), first: 1, count }
    }

    /// [`Fault::Error`].
    pub fn error(error: ErrorKind) -> Self {
        Self::new(Fault::Error(error))
    }

    /// [`Fault::ErrorAfter`].
    pub fn error_after(error: ErrorKind) -> Self {
        Self::new(Fault::ErrorAfter(error))
    }

    /// [`Fault::Short`] with [`ErrorKind::WriteZero`], for appends only.
    pub fn short_append(written_bytes: u64) -> Self {
        Self::new(Fault::Short { written_bytes, error: ErrorKind::WriteZero }).on(&[OperationKind::Append])
    }

    /// [`Fault::DiskFull`].
    pub fn disk_full(free_bytes: u64) -> Self {
        Self::new(Fault::DiskFull { free_bytes }).on(&[OperationKind::Append])
    }

    /// [`Fault::Slow`].
    pub fn slow(hook: impl Fn(&Operation) + Send + Sync + 'static) -> Self {
        Self::new(Fault::Slow(Arc::new(hook)))
    }

    /// Only operations of these kinds; none given means all.
    #[must_use]
    pub fn on(mut self, kinds: &[OperationKind]) -> Self {
        self.kinds = kinds.to_vec();
        self
    }

    /// Only where the path, or the target of a rename or link, contains `part`.
    #[must_use]
    pub fn path(mut self, part: &str) -> Self {
        part.clone_into(&mut self.path_part);
        self
    }

    /// From the `nth` match on; the first is 1.
    #[must_use]
    pub fn nth(mut self, nth: u64) -> Self {
        self.first = nth;
        self
    }

    /// So many matches in a row.
    #[must_use]
    pub fn times(mut self, count: u64) -> Self {
        self.count = count;
        self
    }

    /// Every match from the first one on.
    #[must_use]
    pub fn forever(self) -> Self {
        self.times(u64::MAX)
    }

    /// Whether the rule is about an operation of this kind and path.
    pub(super) fn matches(&self, operation: &Operation) -> bool {
        let has_part = |path: &Path| path.to_string_lossy().contains(&self.path_part);
        (self.kinds.is_empty() || self.kinds.contains(&operation.kind))
            && (has_part(&operation.path) || operation.target.as_deref().is_some_and(has_part))
    }
    /// Whether the match of this number, counted from 1, meets the fault.
    pub(super) fn is_due(&self, match_count: u64) -> bool {
        match_count.checked_sub(self.first).is_some_and(|since| since < self.count)
    }
}

/// What is decided about one operation.
pub(super) enum Verdict {
    Pass,
    Fail(ErrorKind),
    FailAfter(ErrorKind),
    Short(u64, ErrorKind),
}

impl Fault {
    /// What this fault, being due, does to `operation`.
    pub(super) fn judge(&mut self, operation: &Operation) -> Verdict {
        match self {
            Self::Error(error) => Verdict::Fail(*error),
            Self::ErrorAfter(error) => Verdict::FailAfter(*error),
            Self::Short { written_bytes, error } => Verdict::Short(*written_bytes, *error),
            Self::DiskFull { free_bytes } => {
                if operation.kind != OperationKind::Append {
                    return Verdict::Pass;
                }
                let fitting = operation.length_bytes.min(*free_bytes);
                *free_bytes -= fitting;
                if fitting == operation.length_bytes {
                    Verdict::Pass
                } else {
                    Verdict::Short(fitting, ErrorKind::StorageFull)
                }
            }
            Self::Slow(_) => Verdict::Pass,
        }
    }
}
