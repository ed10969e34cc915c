//! Makes one backup after another.

use std::time::Duration;

use tamis::{Clock as _, SystemClock};

use crate::{
    backup::{BackupOptions, BackupReport, backup},
    checkpoint::Source,
    error::{Error, Result},
    lease::pause,
    target::Target,
};

/// The longest time until a cancelled pause ends.
const STEP: Duration = Duration::from_millis(100);

/// One round of [`follow`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Round {
    /// The backup, or the error after which the next round tries again.
    pub result: Result<BackupReport>,
    /// The age of the state that a restore gave just before this round ended: the writes of at most this time would have been lost. It is at most
    /// the time between two rounds and the time of a backup, and grows while rounds fail.
    pub loss_max: Duration,
}

/// Makes a backup, then another one `every` time after the last one began, until [`crate::Progress::is_cancelled`]. A round without changes uploads
/// nothing. Between rounds other operations on the target can run.
///
/// # Errors
/// The errors of [`backup`] that the next round can't avoid ([`Error::is_transient`]), and all errors of the first round.
pub fn follow(
    source: Source<'_>,
    target: &Target,
    options: &BackupOptions,
    every: Duration,
    report: &mut dyn FnMut(Round),
) -> Result<()> {
    let options = &BackupOptions { skip_unchanged: true, ..options.clone() };
    let clock = SystemClock::default();
    let mut content_time = None;
    loop {
        let start = clock.now();
        let result = backup(source, target, options);
        let loss_max = clock.now().saturating_sub(content_time.unwrap_or(start));
        match &result {
            Ok(_) => content_time = Some(start),
            Err(Error::Cancelled) => return Ok(()),
            Err(error) if content_time.is_none() || !error.is_transient() => return Err(error.clone()),
            Err(_) => {}
        }
        report(Round { result, loss_max });
        while clock.now() < start + every {
            if options.progress.is_cancelled() {
                return Ok(());
            }
            pause(STEP.min((start + every).saturating_sub(clock.now())));
        }
    }
}
