//! Cuts a table that was built outside of the store at the bounds of partitions: a table must be within one partition.

use std::sync::Arc;

use tamis_vfs::Folder;

use crate::{
    admin::table_writer::TableWriter,
    cursor::Cursor,
    error::Result,
    key::Kind,
    options::KeyspaceOptions,
    range_tombstone::is_below_upper,
    table::{properties::TableSummary, reader::TableReader},
    version::version::KeyspaceVersion,
};

/// The options of the parts, and where their files go.
pub(super) struct Target<'a> {
    pub(super) folder: &'a Folder,
    pub(super) options: &'a KeyspaceOptions,
    pub(super) filter_seed: u64,
}

/// Whether the table reaches over the end of the partition in which it begins.
pub(super) fn crosses(version: &KeyspaceVersion, summary: &TableSummary) -> bool {
    let index = version.partition_index(&summary.smallest_key);
    version.upper_of(index).is_some_and(|upper| !summary.ends_before(upper))
}

/// Writes the parts of a table, each within one partition, as tables built outside of the store. `new_number` is called for the
/// number of each part before its file is made.
///
/// # Errors
/// Those of the system and of a damaged table.
pub(super) fn cut(
    table: &Arc<TableReader>,
    version: &KeyspaceVersion,
    target: &Target<'_>,
    new_number: &mut dyn FnMut() -> u64,
) -> Result<()> {
    let fragments = table.range_tombstones().map(|fragments| (**fragments).clone());
    let mut fragments_left = fragments.unwrap_or_default().into_parts();
    let mut cursor = table.cursor_once();
    cursor.seek_first()?;
    let summary = &table.properties().summary;
    let first = version.partition_index(&summary.smallest_key);
    for index in first..version.partitions.len() {
        let upper = version.upper_of(index).unwrap_or_default();
        let has_entries = cursor.is_valid() && is_below_upper(cursor.key(), upper);
        let fragments = fragments_left.next_below(upper);
        if has_entries || !fragments.is_empty() {
            let number = new_number();
            let mut part =
                TableWriter::in_store(target.folder, number, (target.options, target.filter_seed))?;
            for fragment in fragments.list() {
                part.delete_half_open(&fragment.lower, &fragment.upper);
            }
            while cursor.is_valid() && is_below_upper(cursor.key(), upper) {
                match cursor.kind() {
                    kind @ (Kind::Put | Kind::Operand | Kind::ExpiringPut) => {
                        part.add(cursor.key(), kind, cursor.value())?;
                    }
                    Kind::Tombstone | Kind::RangeTombstone => part.delete(cursor.key())?,
                }
                cursor.next()?;
            }
            part.finish()?;
        }
        if upper.is_empty() || summary.ends_before(upper) {
            break;
        }
    }
    Ok(())
}
