//! The counters of a database: file numbers, ids, sequence numbers, the oldest log segment that is needed, the greatest time.

use crate::{
    coding::Decoder,
    key::{SEQUENCE_MAX, Sequence},
};

/// Counters that never decrease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counters {
    /// No file has had this number or a greater one.
    pub(crate) next_file_number: u64,
    /// No keyspace has had this id or a greater one.
    pub(crate) next_keyspace_id: u64,
    /// No partition has had this id or a greater one.
    pub(crate) next_partition_id: u64,
    /// No run has had this id or a greater one.
    pub(crate) next_run_id: u64,
    /// A sequence number that was assigned; tables have no greater one.
    pub(crate) last_sequence: Sequence,
    /// Log segments with lower numbers are obsolete.
    pub(crate) oldest_log: u64,
    /// The greatest time by which entries were expired, in milliseconds since 1970 ([`crate::expiry`]).
    pub(crate) greatest_time: u64,
}

impl Counters {
    pub(super) const fn to_fields(self) -> [u64; 7] {
        [
            self.next_file_number,
            self.next_keyspace_id,
            self.next_partition_id,
            self.last_sequence,
            self.oldest_log,
            self.next_run_id,
            self.greatest_time,
        ]
    }

    pub(super) fn take(source: &mut Decoder<'_>) -> Option<Self> {
        Some(Self {
            next_file_number: source.take_varint()?,
            next_keyspace_id: source.take_varint()?,
            next_partition_id: source.take_varint()?,
            last_sequence: source.take_varint().filter(|&sequence| sequence <= SEQUENCE_MAX)?,
            oldest_log: source.take_varint()?,
            next_run_id: source.take_varint()?,
            greatest_time: source.take_varint()?,
        })
    }

    /// The greater value of each counter.
    pub(crate) fn max(self, other: Self) -> Self {
        Self {
            next_file_number: self.next_file_number.max(other.next_file_number),
            next_keyspace_id: self.next_keyspace_id.max(other.next_keyspace_id),
            next_partition_id: self.next_partition_id.max(other.next_partition_id),
            next_run_id: self.next_run_id.max(other.next_run_id),
            last_sequence: self.last_sequence.max(other.last_sequence),
            oldest_log: self.oldest_log.max(other.oldest_log),
            greatest_time: self.greatest_time.max(other.greatest_time),
        }
    }
}
