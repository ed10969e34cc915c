//! Ctrl-C: long commands ask between two batches whether to end, so that nothing is left half done.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::Failure;

static IS_INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// From here on Ctrl-C (and a request to end from the system) only sets a mark; a second one ends the program at
/// once, which the store survives too.
pub(crate) fn watch() -> Result<(), Failure> {
    ctrlc::set_handler(|| {
        if IS_INTERRUPTED.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
    })
    .map_err(|error| Failure::Usage(format!("Ctrl-C can't be watched for: {error}")))
}

/// Whether the command shall end.
pub(crate) fn is_interrupted() -> bool {
    IS_INTERRUPTED.load(Ordering::SeqCst)
}
