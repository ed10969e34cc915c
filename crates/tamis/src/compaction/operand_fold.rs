//! Folds the operands of a key, as flushes and compactions write them: with the full value below them, or into one operand if that may be elsewhere.
//!
//! A fold has the entries of one key in one stratum of the drop rules ([`super::drop_rules`]): readers see all of them, or only older ones. It gets the
//! sequence number of its newest operand. If the operator fails, or cannot combine the operands, they are written as they are.
//!
//! An expiring put that is not expired is no base: the operands apply to it until its time, and to nothing from then on.

use crate::{
    error::Result,
    key::{Kind, Sequence, VALUE_LENGTH_MAX},
    merge_operator::{FoldStep, MergeOperator, Operands},
};

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct OperandFold {
    key: Vec<u8>,
    operands: Operands,
}

/// Receives the entries to write: sequence number, kind, value.
type Write<'a> = &'a mut dyn FnMut(&[u8], Sequence, Kind, &[u8]) -> Result<()>;

impl OperandFold {
    pub(super) const fn is_empty(&self) -> bool {
        self.operands.is_empty()
    }

    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    /// Begins with the newest operand of a key.
    pub(super) fn begin(&mut self, key: &[u8], sequence: Sequence, operand: &[u8]) {
        debug_assert!(self.is_empty());
        self.key.clear();
        self.key.extend_from_slice(key);
        self.operands.push(sequence, operand);
    }

    /// Removes the oldest operand.
    pub(super) fn pop(&mut self) {
        self.operands.pop();
    }

    /// Adds the next older operand; `false` if the operands are too long for one value.
    pub(super) fn push(&mut self, sequence: Sequence, operand: &[u8]) -> bool {
        let fits = self.operands.size_bytes() + operand.len() <= VALUE_LENGTH_MAX;
        if fits {
            self.operands.push(sequence, operand);
        }
        fits
    }

    /// Ends the fold and writes its result; returns whether `base` is in it.
    pub(super) fn end(
        &mut self,
        operator: Option<&MergeOperator>,
        base: FoldStep<'_>,
        write: Write<'_>,
    ) -> Result<bool> {
        let folded = operator.and_then(|operator| self.operands.fold(operator, &self.key, base));
        let is_folded = folded.is_some();
        let written = match folded {
            Some((kind, value)) => write(&self.key, self.operands.newest(), kind, &value),
            None => self
                .operands
                .iter()
                .try_for_each(|(sequence, operand)| write(&self.key, sequence, Kind::Operand, operand)),
        };
        self.operands.clear();
        written.map(|()| is_folded)
    }
}

#[cfg(test)]
mod tests;
