use std::{
    cell::Cell,
    path::Path,
    sync::{Condvar, Mutex, PoisonError},
};

use super::*;
use crate::{
    Fields, Observer, Silent, Size,
    driver::{EmptyStore, Session},
};

/// Comes to rest only when it is closed.
#[derive(Default)]
struct Restless {
    is_closed: Mutex<bool>,
    closed: Condvar,
}

impl Store for Restless {
    fn session(&self) -> Result<Box<dyn Session + '_>, BenchError> {
        EmptyStore.session()
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
    fn configuration(&self) -> Fields {
        Fields::default()
    }
    fn folder(&self) -> Option<&Path> {
        None
    }
}

/// Asks for the end at the third look.
#[derive(Default)]
struct Impatient(Cell<u32>);

impl Observer for Impatient {
    fn is_interrupted(&self) -> bool {
        self.0.set(self.0.get() + 1);
        self.0.get() > 2
    }
}

#[test]
fn settling_can_be_interrupted() {
    let mut observer = Impatient::default();
    let mut context = Context::new(Size::Small, 7, Path::new("."), &mut observer);
    let ended = settle(&Restless::default(), &mut context);
    assert!(ended.is_err_and(|error| error.is_interrupted()));
    let mut silent = Silent;
    let mut context = Context::new(Size::Small, 7, Path::new("."), &mut silent);
    assert!(settle(&EmptyStore, &mut context).is_ok());
    let closed = Restless::default();
    assert!(closed.close().is_ok());
    let ended = settle(&closed, &mut context);
    assert!(ended.is_err_and(|error| error.to_string() == "closed"), "what the store says is told");
}
