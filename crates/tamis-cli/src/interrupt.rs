//! Ctrl-C: long commands ask between two batches whether to end, so that nothing is left half done.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::Failure;

static IS_INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// Whether nothing is open that could be left half done.
static MAY_END_AT_ONCE: AtomicBool = AtomicBool::new(false);

/// From here on Ctrl-C (and a request to end from the system) only sets a mark, except within [`at_once`]; a second one ends the
/// program at once, which the store survives too.
pub(crate) fn watch() -> Result<(), Failure> {
    ctrlc::set_handler(|| {
        let is_first = !IS_INTERRUPTED.swap(true, Ordering::SeqCst);
        if MAY_END_AT_ONCE.load(Ordering::SeqCst) {
            eprintln!("tamis: interrupted; files whose names do not end with .part are whole");
            std::process::exit(130);
        }
        if !is_first {
            std::process::exit(130);
        }
    })
    .map_err(|error| Failure::Usage(format!("Ctrl-C can't be watched for: {error}")))
}

/// Whether the command shall end.
pub(crate) fn is_interrupted() -> bool {
    IS_INTERRUPTED.load(Ordering::SeqCst)
}

/// Does work that can't ask, and that leaves nothing when it ends in the middle: Ctrl-C ends the program at once.
pub(crate) fn at_once<R>(work: impl FnOnce() -> R) -> Result<R, Failure> {
    MAY_END_AT_ONCE.store(true, Ordering::SeqCst);
    // It may have come just before.
    let result = match is_interrupted() {
        true => Err(Failure::Interrupted("interrupted".to_owned())),
        false => Ok(work()),
    };
    MAY_END_AT_ONCE.store(false, Ordering::SeqCst);
    result
}
