//! Builds other filters for an existing table: its keys are read, and values only if necessary.
//!
//! Cost: reads the key column if there is one, otherwise every data block. The table's file is not changed: the new filters
//! are written to their own filter file, which a version edit installs.

use std::{path::Path, sync::Arc};

use super::{
    filter_block::FiltersBuilder,
    filter_file::{FilterOwner, write_filter_file},
    reader::TableReader,
};
use crate::{
    cursor::Cursor,
    error::{Error, Result},
    options::TableFilter,
};

/// A build error as an error of the program: only the requested filters can be wrong.
pub(super) fn refused(error: impl ToString) -> Error {
    Error::InvalidArgument {
        what: "filters",
        got: error.to_string(),
        expected: "give filters that can be built for the keys of every table".to_owned(),
    }
}

/// Writes filters over all keys of `table`, tombstones included, as filter file `number`; no file if there are no filters.
pub(crate) fn write_filters_of(
    table: &Arc<TableReader>,
    number: u64,
    filters: &[TableFilter],
    seed: u64,
) -> Result<()> {
    if filters.is_empty() {
        return Ok(());
    }
    let mut builder = FiltersBuilder::new(filters, seed).map_err(refused)?;
    add_keys(table, &mut builder)?;
    let (filters, refusals) = builder.finish();
    if let Some(reason) = refusals.first() {
        return Err(refused(reason));
    }
    let environment = table.environment();
    let folder: &Path = &environment.folder;
    write_filter_file(&*environment.vfs, folder, number, FilterOwner::of(table.properties()), &filters)?;
    Ok(())
}

fn add_keys(table: &Arc<TableReader>, builder: &mut FiltersBuilder) -> Result<()> {
    if let Some(column) = table.key_column()? {
        let mut keys = column.keys_from(0);
        while let Some(key) = keys.advance() {
            let (key, _) = key.ok_or_else(|| table.key_column_error())?;
            builder.add(key);
        }
        return Ok(());
    }
    let mut cursor = table.cursor_once();
    cursor.seek_first()?;
    while cursor.is_valid() {
        builder.add(cursor.key());
        cursor.next()?;
    }
    Ok(())
}
