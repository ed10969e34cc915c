//! Receives the progress of a run and may interrupt it.

use crate::Point;

/// Observes a run.
pub trait Observer {
    /// The run begins; `done` of `total` points are already measured.
    fn begin(&mut self, _total: usize, _done: usize) {}
    /// A point begins.
    fn point(&mut self, _point: &Point) {}
    /// Progress of the point from 0 to 1.
    fn progress(&mut self, _share: f64) {}
    /// Whether to interrupt the run.
    fn is_interrupted(&self) -> bool {
        false
    }
}

/// Observes nothing and never interrupts.
#[derive(Debug, Default, Clone, Copy)]
pub struct Silent;

impl Observer for Silent {}
