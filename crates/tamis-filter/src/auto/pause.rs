//! A call between the designs that a choice evaluates, so that the program can do other work or stop the choice.

use std::{fmt, ops::ControlFlow};

/// See the head of this file. By default nothing is called.
#[derive(Clone, Copy, Default)]
pub struct Pause<'a>(Option<&'a dyn Fn() -> ControlFlow<()>>);

impl<'a> Pause<'a> {
    pub(super) const NONE: Self = Self(None);

    /// Calls `work` before each design. After a break the choice leaves out all further designs and returns soon; the caller does not use
    /// it.
    pub fn with(work: &'a dyn Fn() -> ControlFlow<()>) -> Self {
        Self(Some(work))
    }

    pub(super) fn is_break(self) -> bool {
        self.0.is_some_and(|work| work().is_break())
    }
}

impl fmt::Debug for Pause<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_some() { "Pause::with(..)" } else { "Pause::default()" })
    }
}
