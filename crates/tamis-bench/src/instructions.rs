//! Fixed pieces of work whose instructions are counted: a gate for speed that does not depend on the load of the machine.
//!
//! A [`Case`] prepares its input first; [`measured_region`] then runs the work, and nothing else is counted. The binary
//! `instruction-counts` runs each case under `valgrind --tool=callgrind` and compares the counts with those recorded in
//! `instruction_counts.json`. The counts are those of the AVX2 code.
//!
//! Inputs are seeded, background jobs run on the calling thread, and the clock is manual: counts of two runs of one binary
//! differ by less than 0.1 %.

mod filters;
mod store;
mod trie;

use std::path::Path;

use crate::BenchError;

/// The work of a case: it returns a value that depends on all of its results.
pub type Work = Box<dyn FnMut() -> Result<u64, BenchError>>;

/// Prepares the work of a case in an empty folder.
type Prepare = Box<dyn Fn(&Path) -> Result<Work, BenchError>>;

/// One piece of work.
pub struct Case {
    /// Its name in the record.
    pub name: String,
    /// How many operations one run of the work has.
    pub operations: u64,
    prepare: Prepare,
}

impl Case {
    fn new(
        name: impl Into<String>,
        operations: usize,
        prepare: impl Fn(&Path) -> Result<Work, BenchError> + 'static,
    ) -> Self {
        Self { name: name.into(), operations: operations as u64, prepare: Box::new(prepare) }
    }

    /// Prepares the input in an empty folder and runs the work once.
    ///
    /// # Errors
    /// The result of a filter or store.
    pub fn run(&self, folder: &Path) -> Result<u64, BenchError> {
        let mut work = (self.prepare)(folder)?;
        measured_region(&mut work)
    }
}

/// The only function that valgrind counts, with all that it calls.
///
/// # Errors
/// Those of the work.
#[inline(never)]
pub fn measured_region(work: &mut Work) -> Result<u64, BenchError> {
    let result = work();
    // Keeps the call above from becoming a tail call, which callgrind would not count.
    std::hint::black_box(&result);
    result
}

/// All cases.
pub fn cases() -> Vec<Case> {
    filters::cases().into_iter().chain(trie::cases()).chain(store::cases()).collect()
}

#[cfg(test)]
mod tests;
