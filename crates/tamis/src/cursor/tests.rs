//! Tests of cursors over cursors: scripts with their costs, and random operations against sorted maps.

mod property;
mod script;
mod stretch;
mod vec_cursor;

use super::{bounded::KeyRange, visible::Values};
use crate::{
    error::Result,
    merge_operator::{MergeOperator, Operands},
};

/// Ranges of tests: nothing is expired at their time, and operands are appended.
impl Values for KeyRange {
    fn time(&self) -> u64 {
        0
    }

    fn merge(&self, key: &[u8], base: Option<&[u8]>, operands: &Operands) -> Result<Vec<u8>> {
        operands.merge(Some(&MergeOperator::append(b"")), "keyspace", key, base)
    }
}
