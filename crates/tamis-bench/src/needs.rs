//! Disk and memory that an experiment needs, checked before it starts.

use std::path::Path;

use crate::{BenchError, machine};

/// Peak disk and memory of a point.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Needs {
    /// Bytes of disk in the scratch folder.
    pub disk_bytes: u64,
    /// Bytes of memory.
    pub memory_bytes: u64,
}

impl Needs {
    /// The maximum of both, per resource.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            disk_bytes: self.disk_bytes.max(other.disk_bytes),
            memory_bytes: self.memory_bytes.max(other.memory_bytes),
        }
    }

    /// Fails if the machine has less, as far as the system reports it.
    ///
    /// # Errors
    /// [`BenchError::InsufficientResources`].
    pub fn check(self, scratch: &Path) -> Result<(), BenchError> {
        self.check_advising(scratch, "use a smaller --size")
    }

    /// [`Needs::check`] with other advice, for commands without sizes.
    ///
    /// # Errors
    /// As [`Needs::check`].
    pub fn check_advising(self, scratch: &Path, advice: &'static str) -> Result<(), BenchError> {
        let (disk_bytes, memory_bytes) = (machine::free_disk_bytes(scratch), machine::free_memory_bytes());
        self.check_against(scratch, disk_bytes, memory_bytes, advice)
    }

    fn check_against(
        self,
        scratch: &Path,
        free_disk_bytes: Option<u64>,
        free_memory_bytes: Option<u64>,
        advice: &'static str,
    ) -> Result<(), BenchError> {
        let kinds = [
            ("disk", self.disk_bytes, free_disk_bytes, format!(" in {}", scratch.display())),
            ("memory", self.memory_bytes, free_memory_bytes, String::new()),
        ];
        for (what, need, have, place) in kinds {
            if let Some(have) = have.filter(|have| *have < need) {
                let (need, have) = (mebibytes(need), mebibytes(have));
                return Err(BenchError::InsufficientResources { what, place, need, have, advice });
            }
        }
        Ok(())
    }
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

#[cfg(test)]
mod tests;
