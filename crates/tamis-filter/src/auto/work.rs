//! The limit on the work of a choice: a number of steps that the keys of a table bound.
//!
//! A step is about a nanosecond, and no clock is read: equal inputs give equal choices on every machine. Each design announces
//! its steps before it is evaluated, and is left out if they exceed the rest.

use std::cell::Cell;

use super::{Effort, Pause};

/// Steps per key while a table is written: writing a key and its value takes about a microsecond, and the choice a tenth of it.
const STEPS_PER_KEY: usize = 100;

/// The least limit: the choice for a table of less than 60,000 keys takes a larger share.
const STEPS_MIN: usize = 6_000_000;

/// In the background so many times as many: about as long as writing the table, and at least 60 ms.
const BACKGROUND_FACTOR: usize = 10;

/// The steps of a choice.
#[derive(Debug)]
pub(super) struct Work<'a> {
    rest: Cell<usize>,
    was_cut: Cell<bool>,
    pause: Pause<'a>,
    is_stopped: Cell<bool>,
}

impl<'a> Work<'a> {
    pub(super) fn for_keys(key_count: usize, effort: Effort) -> Self {
        let factor = if effort == Effort::Background { BACKGROUND_FACTOR } else { 1 };
        let steps = key_count.saturating_mul(STEPS_PER_KEY).max(STEPS_MIN).saturating_mul(factor);
        Self { rest: Cell::new(steps), ..Self::unlimited() }
    }

    pub(super) const fn unlimited() -> Self {
        Self {
            rest: Cell::new(usize::MAX),
            was_cut: Cell::new(false),
            pause: Pause::NONE,
            is_stopped: Cell::new(false),
        }
    }

    /// Before each design `pause` is called; after a break all are left out.
    pub(super) fn with_pause(self, pause: Pause<'a>) -> Self {
        Self { pause, ..self }
    }

    /// Takes steps; `false` if too few are left.
    pub(super) fn take(&self, steps: usize) -> bool {
        if !self.is_stopped.get() && self.pause.is_break() {
            self.is_stopped.set(true);
        }
        let rest = self.rest.get().checked_sub(steps).filter(|_| !self.is_stopped.get());
        match rest {
            Some(rest) => self.rest.set(rest),
            None => self.was_cut.set(true),
        }
        rest.is_some()
    }

    /// Whether a design was left out.
    pub(super) fn was_cut(&self) -> bool {
        self.was_cut.get()
    }
}
