//! Another filter for a table that is written already: its keys are read, values are left alone where they can be.
//!
//! Cost: with a key column the column is read, otherwise every data block. The table's file is not touched: the new
//! filter goes into a filter file of its own, which a version edit puts in force.

use std::{path::Path, sync::Arc};

use tamis_filter::BuildError;

use super::{
    filter_block::PointFilterBuilder,
    filter_file::{FilterOwner, write_filter_file},
    reader::TableReader,
};
use crate::{
    cursor::Cursor,
    error::{Error, Result},
};

/// A build error as the program sees it: only the budget can be at fault.
pub(super) fn refused(error: &BuildError) -> Error {
    Error::InvalidArgument {
        what: "filter_bits_per_key",
        got: error.to_string(),
        expected: "give 0 to 64 bits, and keys that fit into memory".to_owned(),
    }
}

/// Writes a point filter over all keys of `table`, tombstones included, as filter file `number`; none for 0 bits.
pub(crate) fn write_filter_of(
    table: &Arc<TableReader>,
    number: u64,
    bits_per_key: f32,
    seed: u64,
) -> Result<()> {
    let builder = PointFilterBuilder::new(bits_per_key, seed).map_err(|error| refused(&error))?;
    let Some(mut builder) = builder else { return Ok(()) };
    add_keys(table, &mut builder)?;
    let filters = [builder.finish().map_err(|error| refused(&error))?];
    let environment = table.environment();
    let folder: &Path = &environment.folder;
    write_filter_file(&*environment.vfs, folder, number, FilterOwner::of(table.properties()), &filters)?;
    Ok(())
}

fn add_keys(table: &Arc<TableReader>, builder: &mut PointFilterBuilder) -> Result<()> {
    if let Some(column) = table.key_column()? {
        let mut keys = column.keys_from(0);
        while let Some(key) = keys.advance() {
            let (key, _) = key.ok_or_else(|| table.damaged_key_column())?;
            builder.add(key).map_err(|error| refused(&error))?;
        }
        return Ok(());
    }
    let mut cursor = table.cursor_once();
    cursor.seek_first()?;
    while cursor.is_valid() {
        builder.add(cursor.key()).map_err(|error| refused(&error))?;
        cursor.next()?;
    }
    Ok(())
}
