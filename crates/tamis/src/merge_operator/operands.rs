//! The operands of a key, collected from the newest to the oldest, until its base value is found.

use super::MergeOperator;
use crate::{
    error::{Error, Result},
    expiry,
    key::{Kind, Sequence},
};

/// The part of an entry in the value of its key, given the newer entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FoldStep<'a> {
    /// An operand: the value depends on older entries, too.
    Continue,
    /// The value below the operands. `None`: there is none.
    Base(Option<&'a [u8]>),
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct Operands {
    /// One after the other.
    bytes: Vec<u8>,
    /// The sequence number of each, and where it ends.
    ends: Vec<(Sequence, usize)>,
    /// The sequence number of the oldest one that is comparable; 0: there is none.
    oldest: Sequence,
}

impl Operands {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.oldest = 0;
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of all operands.
    pub(crate) const fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Whether an entry was added already: another memtable or the log may have it, too.
    pub(crate) const fn has(&self, sequence: Sequence) -> bool {
        self.oldest > 0 && sequence >= self.oldest
    }

    /// Continues with entries whose numbers are not comparable with those of the operands.
    pub(crate) const fn forget_numbers(&mut self) {
        self.oldest = 0;
    }

    /// Adds an older operand.
    pub(crate) fn push(&mut self, sequence: Sequence, operand: &[u8]) {
        self.bytes.extend_from_slice(operand);
        self.ends.push((sequence, self.bytes.len()));
        self.oldest = sequence;
    }

    /// Removes the oldest operand.
    pub(crate) fn pop(&mut self) {
        self.ends.pop();
        let (oldest, end) = self.ends.last().copied().unwrap_or_default();
        self.bytes.truncate(end);
        self.oldest = oldest;
    }

    /// Adds the next older entry of the key. `time` returns the time of the reader.
    pub(crate) fn add<'a>(
        &mut self,
        (sequence, kind): (Sequence, Kind),
        value: &'a [u8],
        time: impl FnOnce() -> u64,
    ) -> FoldStep<'a> {
        if kind != Kind::Operand && self.has(sequence) {
            // It is the result of the operand with its number.
            self.pop();
        }
        match kind {
            Kind::Operand => {
                if !self.has(sequence) {
                    self.push(sequence, value);
                }
                FoldStep::Continue
            }
            Kind::Put => FoldStep::Base(Some(value)),
            Kind::ExpiringPut => FoldStep::Base(expiry::live_value(value, time)),
            Kind::Tombstone | Kind::RangeTombstone => FoldStep::Base(None),
        }
    }

    /// The sequence number of the newest one; 0: there is none.
    pub(crate) fn newest(&self) -> Sequence {
        self.ends.first().map_or(0, |(sequence, _)| *sequence)
    }

    /// Sequence numbers and operands, newest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Sequence, &[u8])> {
        let starts = [0].into_iter().chain(self.ends.iter().map(|(_, end)| *end));
        let part = |(start, &(sequence, end))| (sequence, self.bytes.get(start..end).unwrap_or_default());
        starts.zip(&self.ends).map(part)
    }

    /// Oldest first.
    fn list(&self) -> Vec<&[u8]> {
        let mut list: Vec<&[u8]> = self.iter().map(|(_, operand)| operand).collect();
        list.reverse();
        list
    }

    /// The value of the key: the operands applied to `base`.
    ///
    /// # Errors
    /// [`Error::MergeFailed`].
    pub(crate) fn merge(
        &self,
        operator: Option<&MergeOperator>,
        keyspace: &str,
        key: &[u8],
        base: Option<&[u8]>,
    ) -> Result<Vec<u8>> {
        if self.is_empty() {
            return Ok(base.unwrap_or_default().to_vec());
        }
        let failed = |reason| Error::MergeFailed {
            keyspace: keyspace.to_owned(),
            operator: operator.map_or("none", MergeOperator::name).to_owned(),
            key: key.to_vec(),
            reason,
        };
        match operator {
            Some(operator) => operator.merge(key, base, &self.list()).map_err(failed),
            None => Err(failed("the keyspace has no merge operator".to_owned())),
        }
    }

    /// The value of the key, or one operand instead of these if its base is unknown; `None` if the operator fails or cannot combine them.
    pub(crate) fn fold(
        &self,
        operator: &MergeOperator,
        key: &[u8],
        base: FoldStep<'_>,
    ) -> Option<(Kind, Vec<u8>)> {
        match base {
            FoldStep::Base(base) => {
                operator.merge(key, base, &self.list()).ok().map(|value| (Kind::Put, value))
            }
            FoldStep::Continue if self.ends.len() < 2 => None,
            FoldStep::Continue => operator.combine(key, &self.list()).map(|operand| (Kind::Operand, operand)),
        }
    }
}
