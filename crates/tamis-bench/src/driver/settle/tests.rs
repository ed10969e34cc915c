use std::{
    cell::Cell,
    path::Path,
    sync::{Condvar, Mutex, PoisonError},
};

use super::*;
use crate::{
    Observer, Silent, Size,
    driver::{EmptyStore, Session},
};

/// Settles only after it was closed.
#[derive(Default)]
struct NeverSettling {
    is_closed: Mutex<bool>,
    closed: Condvar,
}

impl Store for NeverSettling {
    fn session(&self, is_live: bool) -> Result<Box<dyn Session + '_>, BenchError> {
        EmptyStore.session(is_live)
    }
    fn settle(&self) -> Result<(), BenchError> {
        let mut is_closed = self.is_closed.lock().unwrap_or_else(PoisonError::into_inner);
        while !*is_closed {
            is_closed = self.closed.wait(is_closed).unwrap_or_else(PoisonError::into_inner);
        }
        Err(BenchError::other("closed"))
    }
    fn close(&self) -> Result<(), BenchError> {
        *self.is_closed.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.closed.notify_all();
        Ok(())
    }
}

/// Interrupts at the third check.
#[derive(Default)]
struct InterruptAtThirdCheck(Cell<u32>);

impl Observer for InterruptAtThirdCheck {
    fn is_interrupted(&self) -> bool {
        self.0.set(self.0.get() + 1);
        self.0.get() > 2
    }
}

#[test]
fn waiting_for_compactions_can_be_interrupted() {
    let mut observer = InterruptAtThirdCheck::default();
    let mut context = Context::new(Size::Small, 7, Path::new("."), &mut observer);
    let ended = settle(&NeverSettling::default(), &mut context);
    assert!(ended.is_err_and(|error| error.is_interrupted()));
    let mut silent = Silent;
    let mut context = Context::new(Size::Small, 7, Path::new("."), &mut silent);
    assert!(settle(&EmptyStore, &mut context).is_ok());
    let closed = NeverSettling::default();
    assert!(closed.close().is_ok());
    let ended = settle(&closed, &mut context);
    assert!(ended.is_err_and(|error| error.to_string() == "closed"), "the error of the store is returned");
}
