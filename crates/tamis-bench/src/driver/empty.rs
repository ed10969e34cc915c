//! A store that does nothing, to measure the overhead of the driver.

use std::hint::black_box;

use super::{Session, Sink, Store};
use crate::{BenchError, Fields};

/// Ignores writes and contains nothing.
#[derive(Debug, Default, Clone, Copy)]
pub struct EmptyStore;

/// The session of [`EmptyStore`].
struct EmptySession;

impl Store for EmptyStore {
    fn session(&self, _is_live: bool) -> Result<Box<dyn Session + '_>, BenchError> {
        Ok(Box::new(EmptySession))
    }

    fn settle(&self) -> Result<(), BenchError> {
        Ok(())
    }

    fn configuration(&self) -> Fields {
        let mut fields = Fields::default();
        fields.set("store", "empty");
        fields
    }
}

impl Session for EmptySession {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), BenchError> {
        black_box((key, value));
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), BenchError> {
        black_box(key);
        Ok(())
    }

    fn get(&mut self, key: &[u8], _sink: &mut Sink) -> Result<bool, BenchError> {
        Ok(black_box(key).is_empty())
    }

    fn scan(&mut self, lower: &[u8], limit: u64, _sink: &mut Sink) -> Result<u64, BenchError> {
        black_box((lower, limit));
        Ok(0)
    }

    fn scan_back(&mut self, upper: &[u8], limit: u64, _sink: &mut Sink) -> Result<u64, BenchError> {
        black_box((upper, limit));
        Ok(0)
    }

    fn range(&mut self, lower: &[u8], upper: &[u8], _sink: &mut Sink) -> Result<u64, BenchError> {
        black_box((lower, upper));
        Ok(0)
    }
}
