//! Fault rules: which operations get which fault.

use std::{fmt, io::ErrorKind, path::Path, sync::Arc};

use crate::{Operation, OperationKind};

/// Called by a slow rule before the operation.
type Hook = Arc<dyn Fn(&Operation) + Send + Sync>;

/// The effect of a rule on an operation.
#[derive(Clone)]
pub enum Fault {
    /// The operation has no effect and returns this error.
    Error(ErrorKind),
    /// The operation takes effect, but returns this error. The caller cannot distinguish it from
    /// [`Fault::Error`].
    ErrorAfter(ErrorKind),
    /// An append writes at most this many bytes and returns the error. Other operations have no effect and
    /// return it.
    Short {
        /// Bytes written before the error.
        written_bytes: u64,
        /// The error.
        error: ErrorKind,
    },
    /// Appends consume this budget. An append that exceeds it writes the part that fits and returns
    /// [`ErrorKind::StorageFull`]. Other operations succeed. Truncating and removing files does not free any
    /// bytes; only [`crate::FaultVfs::remove_rule`] ends the fault.
    DiskFull {
        /// Bytes that can still be written.
        free_bytes: u64,
    },
    /// Calls the hook, then does the operation. The hook may block until the test releases it.
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

/// Selects the operations that get a fault: those of the given kinds and path, from the `nth` match on, `times`
/// times.
///
/// By default a rule applies once, to the first operation of any kind on any path. [`Rule::disk_full`] and
/// [`Rule::slow`] apply to all operations.
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

    /// Restricts the rule to operations of these kinds. An empty list means all kinds.
    #[must_use]
    pub fn on(mut self, kinds: &[OperationKind]) -> Self {
        self.kinds = kinds.to_vec();
        self
    }

    /// Restricts the rule to operations whose path contains `part`. For a rename or link the target may contain
    /// it instead.
    #[must_use]
    pub fn path(mut self, part: &str) -> Self {
        part.clone_into(&mut self.path_part);
        self
    }

    /// Applies from the `nth` match on; the first match is 1.
    #[must_use]
    pub fn nth(mut self, nth: u64) -> Self {
        self.first = nth;
        self
    }

    /// Applies to this many consecutive matches.
    #[must_use]
    pub fn times(mut self, count: u64) -> Self {
        self.count = count;
        self
    }

    /// Applies to every match from the first one on.
    #[must_use]
    pub fn forever(self) -> Self {
        self.times(u64::MAX)
    }

    /// Whether the kind and path of the operation match this rule.
    pub(super) fn matches(&self, operation: &Operation) -> bool {
        let has_part = |path: &Path| path.to_string_lossy().contains(&self.path_part);
        (self.kinds.is_empty() || self.kinds.contains(&operation.kind))
            && (has_part(&operation.path) || operation.target.as_deref().is_some_and(has_part))
    }
    /// Whether the match with this number (the first is 1) gets the fault.
    pub(super) fn is_due(&self, match_count: u64) -> bool {
        match_count.checked_sub(self.first).is_some_and(|since| since < self.count)
    }
}

/// The result of evaluating all rules for one operation.
pub(super) enum Decision {
    Pass,
    Fail(ErrorKind),
    FailAfter(ErrorKind),
    Short(u64, ErrorKind),
}

impl Fault {
    /// The effect of this fault on `operation`. Consumes the budget of a full disk.
    pub(super) fn decide(&mut self, operation: &Operation) -> Decision {
        match self {
            Self::Error(error) => Decision::Fail(*error),
            Self::ErrorAfter(error) => Decision::FailAfter(*error),
            Self::Short { written_bytes, error } => Decision::Short(*written_bytes, *error),
            Self::DiskFull { free_bytes } => {
                if operation.kind != OperationKind::Append {
                    return Decision::Pass;
                }
                let fitting = operation.length_bytes.min(*free_bytes);
                *free_bytes -= fitting;
                if fitting == operation.length_bytes {
                    Decision::Pass
                } else {
                    Decision::Short(fitting, ErrorKind::StorageFull)
                }
            }
            Self::Slow(_) => Decision::Pass,
        }
    }
}
