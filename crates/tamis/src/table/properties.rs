//! The properties of a table: its origin ([`TableOrigin`]) and a summary of its entries ([`TableSummary`]).
//!
//! The manifest has the summary of each table, too, so that compactions can be planned without opening tables.
//! `docs/format/table.md`, section "Properties", defines the bytes. Readers ignore bytes after the fields that they know.

use std::{fmt, ops::Bound};

use crate::{
    coding::{Decoder, put_bytes, put_u64, put_varint},
    key::Sequence,
    range_tombstone::is_below_upper,
};

/// The place of a table and its inputs, for repair and inspection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TableOrigin {
    /// The database's id. Repair refuses a table of another database.
    pub(crate) database_id: u64,
    /// The keyspace's id, never reused.
    pub(crate) keyspace_id: u64,
    /// The keyspace's name when the table was written.
    pub(crate) keyspace_name: String,
    /// The name of its merge operator; empty: it has none.
    pub(crate) merge_operator: String,
    /// Lower bound (included) of the partition; empty: from the first key.
    pub(crate) partition_lower: Vec<u8>,
    /// Upper bound (excluded) of the partition; empty: to the last key.
    pub(crate) partition_upper: Vec<u8>,
    /// The level for which it was written. A moved table keeps this field.
    pub(crate) level: u8,
    /// Age of its run: of two runs with the same key and level, the one with the greater age number is newer.
    pub(crate) run_age: u64,
    /// Numbers of the files that its compaction replaced; none for a flush.
    pub(crate) replaced: Vec<u64>,
}

/// A summary of a table's entries, in the table and in the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TableSummary {
    /// The file's number.
    pub(crate) number: u64,
    /// The file's length in bytes. Not stored in the table itself.
    pub(crate) file_bytes: u64,
    /// The checksum of the file's footer, which identifies its content. Not stored in the table itself.
    pub(crate) checksum: u64,
    /// Entries of all kinds.
    pub(crate) entry_count: u64,
    /// Entries that are tombstones.
    pub(crate) tombstone_count: u64,
    /// Data blocks.
    pub(crate) block_count: u64,
    /// Bytes of all keys, without prefix compression.
    pub(crate) key_bytes: u64,
    /// Bytes of all values.
    pub(crate) value_bytes: u64,
    /// The smallest sequence number.
    pub(crate) smallest_sequence: Sequence,
    /// The largest sequence number.
    pub(crate) largest_sequence: Sequence,
    /// The first entry's key.
    pub(crate) smallest_key: Vec<u8>,
    /// The last entry's key.
    pub(crate) largest_key: Vec<u8>,
    /// Fragments of range tombstones. The first begins at or after the smallest key.
    pub(crate) range_tombstone_count: u64,
    /// The end of the last fragment (excluded); empty: no end, or no fragments.
    pub(crate) range_tombstone_upper: Vec<u8>,
    /// Entries that a newer version of the same key or a range tombstone of this table hides: only snapshots see them.
    pub(crate) obsolete_count: u64,
    /// The greatest sequence number of what hides an obsolete entry; 0 without any. No reader sees one of them if no read point is
    /// at or above `smallest_sequence` and below this number.
    pub(crate) obsolete_since: Sequence,
    /// Entries that expire ([`crate::expiry`]).
    pub(crate) expiring_count: u64,
    /// The times at which they do: the least one, about those of a quarter, a half and three quarters of them, and the greatest one; 0 without any.
    pub(crate) expires_at: [u64; 5],
}

/// The values that distinguish a table file from all others, also from an older one with the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TableIdentity {
    /// Its length.
    pub(crate) file_bytes: u64,
    /// The checksum of its footer.
    pub(crate) checksum: u64,
}

impl fmt::Display for TableIdentity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} bytes with footer checksum {:#018x}", self.file_bytes, self.checksum)
    }
}

/// The properties section of a table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TableProperties {
    pub(crate) origin: TableOrigin,
    pub(crate) summary: TableSummary,
}

impl TableOrigin {
    pub(crate) fn encode(&self, target: &mut Vec<u8>) {
        put_u64(target, self.database_id);
        put_varint(target, self.keyspace_id);
        put_bytes(target, self.keyspace_name.as_bytes());
        put_bytes(target, self.merge_operator.as_bytes());
        put_bytes(target, &self.partition_lower);
        put_bytes(target, &self.partition_upper);
        target.push(self.level);
        put_varint(target, self.run_age);
        put_varint(target, self.replaced.len() as u64);
        for &number in &self.replaced {
            put_varint(target, number);
        }
    }

    /// `None` for bytes that [`TableOrigin::encode`] can't have written.
    pub(crate) fn decode(source: &mut Decoder<'_>) -> Option<Self> {
        let mut origin = Self {
            database_id: source.take_u64()?,
            keyspace_id: source.take_varint()?,
            keyspace_name: String::from_utf8(source.take_bytes()?.to_vec()).ok()?,
            merge_operator: String::from_utf8(source.take_bytes()?.to_vec()).ok()?,
            partition_lower: source.take_bytes()?.to_vec(),
            partition_upper: source.take_bytes()?.to_vec(),
            level: source.take_u8()?,
            run_age: source.take_varint()?,
            replaced: Vec::new(),
        };
        // The count is not trusted: numbers are decoded while there are bytes.
        for _ in 0..source.take_varint()? {
            origin.replaced.push(source.take_varint()?);
        }
        Some(origin)
    }
}

impl TableSummary {
    pub(crate) const fn identity(&self) -> TableIdentity {
        TableIdentity { file_bytes: self.file_bytes, checksum: self.checksum }
    }

    pub(crate) fn encode(&self, target: &mut Vec<u8>) {
        for field in [
            self.number,
            self.file_bytes,
            self.entry_count,
            self.tombstone_count,
            self.block_count,
            self.key_bytes,
            self.value_bytes,
            self.smallest_sequence,
            self.largest_sequence,
        ] {
            put_varint(target, field);
        }
        put_bytes(target, &self.smallest_key);
        put_bytes(target, &self.largest_key);
        put_varint(target, self.range_tombstone_count);
        put_bytes(target, &self.range_tombstone_upper);
        put_varint(target, self.obsolete_count);
        put_varint(target, self.obsolete_since);
        put_varint(target, self.expiring_count);
        self.expires_at.iter().for_each(|&time| put_varint(target, time));
    }

    /// `None` for bytes that [`TableSummary::encode`] can't have written, and for an impossible summary.
    pub(crate) fn decode(source: &mut Decoder<'_>) -> Option<Self> {
        let summary = Self {
            number: source.take_varint()?,
            file_bytes: source.take_varint()?,
            checksum: 0,
            entry_count: source.take_varint()?,
            tombstone_count: source.take_varint()?,
            block_count: source.take_varint()?,
            key_bytes: source.take_varint()?,
            value_bytes: source.take_varint()?,
            smallest_sequence: source.take_varint()?,
            largest_sequence: source.take_varint()?,
            smallest_key: source.take_bytes()?.to_vec(),
            largest_key: source.take_bytes()?.to_vec(),
            range_tombstone_count: source.take_varint()?,
            range_tombstone_upper: source.take_bytes()?.to_vec(),
            obsolete_count: source.take_varint()?,
            obsolete_since: source.take_varint()?,
            expiring_count: source.take_varint()?,
            expires_at: {
                let mut times = [0; 5];
                for time in &mut times {
                    *time = source.take_varint()?;
                }
                times
            },
        };
        let are_tombstones_possible = match summary.range_tombstone_count {
            0 => summary.range_tombstone_upper.is_empty(),
            _ => is_below_upper(&summary.smallest_key, &summary.range_tombstone_upper),
        };
        let are_obsolete_possible = match summary.obsolete_count {
            0 => summary.obsolete_since == 0,
            _ => {
                summary.obsolete_count <= summary.entry_count
                    && summary.smallest_sequence < summary.obsolete_since
                    && summary.obsolete_since <= summary.largest_sequence
            }
        };
        let is_possible = summary.tombstone_count <= summary.entry_count
            && summary.block_count <= summary.entry_count
            && summary.smallest_sequence <= summary.largest_sequence
            && summary.smallest_key <= summary.largest_key
            && summary.expiring_count <= summary.entry_count
            && summary.expires_at.is_sorted()
            && (summary.expiring_count > 0 || summary.expires_at == [0; 5])
            && are_tombstones_possible
            && are_obsolete_possible;
        is_possible.then_some(summary)
    }

    /// The end of the table: its last entry, or the end of its last range tombstone.
    pub(crate) fn end(&self) -> Bound<&[u8]> {
        match self.range_tombstone_upper.as_slice() {
            [] if self.range_tombstone_count > 0 => Bound::Unbounded,
            upper if upper > self.largest_key.as_slice() => Bound::Excluded(upper),
            _ => Bound::Included(&self.largest_key),
        }
    }

    /// Whether `key` is above all entries and range tombstones.
    pub(crate) fn ends_before(&self, key: &[u8]) -> bool {
        match self.end() {
            Bound::Included(largest) => largest < key,
            Bound::Excluded(upper) => upper <= key,
            Bound::Unbounded => false,
        }
    }

    /// About how many entries are expired at a time: between two of the known times as if they expired in equal steps.
    pub(crate) fn expired_count(&self, time: u64) -> u64 {
        if self.expiring_count == 0 || time < self.expires_at[0] {
            return 0;
        }
        let quarter = self.expiring_count as f64 / 4.0;
        let of_quarter = |&[from, to]: &[u64; 2]| match time {
            _ if time >= to => quarter,
            _ if time < from => 0.0,
            _ => quarter * ((time - from) as f64 / (to - from) as f64),
        };
        self.expires_at.array_windows().map(of_quarter).sum::<f64>() as u64
    }

    /// Whether all entries are expired at a time, and nothing else is in the table.
    pub(crate) const fn is_expired(&self, time: u64) -> bool {
        self.expiring_count == self.entry_count
            && self.range_tombstone_count == 0
            && self.expires_at[4] <= time
    }

    /// Whether a compaction may reclaim bytes, now or later.
    pub(crate) const fn may_have_garbage(&self) -> bool {
        self.has_deletes() || self.obsolete_count > 0 || self.expiring_count > 0
    }

    /// Whether the table deletes keys.
    pub(crate) const fn has_deletes(&self) -> bool {
        self.tombstone_count > 0 || self.range_tombstone_count > 0
    }

    /// Whether the key range of the table has `key`.
    #[cfg(test)]
    pub(crate) fn covers(&self, key: &[u8]) -> bool {
        self.smallest_key.as_slice() <= key && key <= self.largest_key.as_slice()
    }
}

impl TableProperties {
    pub(crate) fn encode(&self, target: &mut Vec<u8>) {
        self.origin.encode(target);
        TableSummary { file_bytes: 0, ..self.summary.clone() }.encode(target);
    }

    /// `None` for bytes that [`TableProperties::encode`] can't have written; more bytes may follow.
    pub(crate) fn decode(source: &mut Decoder<'_>) -> Option<Self> {
        Some(Self { origin: TableOrigin::decode(source)?, summary: TableSummary::decode(source)? })
    }
}

#[cfg(test)]
mod tests;
