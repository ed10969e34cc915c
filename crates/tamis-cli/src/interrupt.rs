//! Ctrl-C: long commands check between two batches whether they were interrupted, and end in a consistent state.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::Failure;

static IS_INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// Whether the process can exit immediately because no work would be left incomplete.
static CAN_EXIT_IMMEDIATELY: AtomicBool = AtomicBool::new(false);

/// Installs the handler: the first Ctrl-C or termination signal only sets a flag, except within [`run_killable`]; the second
/// one exits the process immediately. The store survives both.
pub(crate) fn install_handler() -> Result<(), Failure> {
    ctrlc::set_handler(|| {
        let is_first = !IS_INTERRUPTED.swap(true, Ordering::SeqCst);
        if CAN_EXIT_IMMEDIATELY.load(Ordering::SeqCst) {
            eprintln!("tamis: interrupted; files whose names do not end with .part are complete");
            std::process::exit(130);
        }
        if !is_first {
            std::process::exit(130);
        }
    })
    .map_err(|error| Failure::Usage(format!("cannot install the handler for Ctrl-C: {error}")))
}

/// Whether the command was interrupted and must end.
pub(crate) fn is_interrupted() -> bool {
    IS_INTERRUPTED.load(Ordering::SeqCst)
}

/// Runs work that cannot check for an interrupt and leaves nothing behind: Ctrl-C exits the process immediately.
pub(crate) fn run_killable<R>(work: impl FnOnce() -> R) -> Result<R, Failure> {
    CAN_EXIT_IMMEDIATELY.store(true, Ordering::SeqCst);
    // The signal may have arrived just before.
    let result = match is_interrupted() {
        true => Err(Failure::Interrupted("interrupted".to_owned())),
        false => Ok(work()),
    };
    CAN_EXIT_IMMEDIATELY.store(false, Ordering::SeqCst);
    result
}
