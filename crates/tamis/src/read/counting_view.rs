//! Counts the keys of a range in a sorted view.
//!
//! The result is exact for the runs of the view: versions of a key count once, deleted keys not at all. Cost: at most a block for each
//! bound. Two things are not in a view: range tombstones, so a view of runs that have some is not used; and which of its deleted keys
//! older runs have, so these count as -1 each, like the tombstones of tables.

use std::sync::Arc;

use crate::{
    cache::table::TableCache,
    cursor::Cursor,
    error::{Error, Result},
    version::{key_bounds::KeyBounds, level::Run, named_view::NamedView, partition::Partition},
    view::{reader::View, run::entry_at},
};

/// See the head of this file.
pub(super) struct CountingView<'a> {
    named: &'a NamedView,
    view: &'a Arc<View>,
    /// In the order of the view.
    runs: Vec<&'a Arc<Run>>,
    /// The share of deleted keys among all keys that older runs may have, relative to those that are not deleted.
    deleted_share: f64,
}

impl<'a> CountingView<'a> {
    /// `None` if some run has range tombstones.
    pub(super) fn new(partition: &'a Partition, named: &'a NamedView, view: &'a Arc<View>) -> Option<Self> {
        let runs = named.runs().iter().map(|&id| partition.run_with_id(id)).collect::<Option<Vec<_>>>()?;
        let is_covered = |run: &Run| named.runs().contains(&run.id());
        let mut from_first = partition.runs().map(|(_, run)| run).skip_while(|run| !is_covered(run));
        let has_older_runs = from_first.any(|run| !is_covered(run));
        let deleted_count = view.key_count().saturating_sub(view.live_count());
        let deleted_share = match has_older_runs {
            true => deleted_count as f64 / view.live_count().max(1) as f64,
            false => 0.0,
        };
        let has_range_tombstones = runs.iter().any(|run| run.has_range_tombstones());
        (!has_range_tombstones).then_some(Self { named, view, runs, deleted_share })
    }

    pub(super) fn covers(&self, run: &Run) -> bool {
        self.named.runs().contains(&run.id())
    }

    /// The number of keys within the bounds, without those of the spans within them that newer sources delete; `None` if the view is damaged.
    pub(super) fn count(
        &self,
        tables: &TableCache,
        bounds: KeyBounds<'_>,
        deleted: &[KeyBounds<'_>],
    ) -> Result<Option<f64>> {
        let mut read_key = |run: usize, ordinal: u64| self.key_at(tables, run, ordinal);
        let counted = self.view.count_live(bounds, &mut read_key).and_then(|mut count| {
            for &span in deleted {
                count = count.saturating_sub(self.view.count_live(span, &mut read_key)?);
            }
            Ok(count as f64 * (1.0 - self.deleted_share))
        });
        match counted {
            Ok(count) => Ok(Some(count.max(0.0))),
            Err(Error::Corruption(found)) if found.file == self.view.path() => {
                self.named.fail(tables.environment(), &Error::Corruption(found));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The key of an entry of a run. Reads a block.
    fn key_at(&self, tables: &TableCache, run: usize, ordinal: u64) -> Result<Vec<u8>> {
        let missing = || self.view.missing_entry(run, ordinal);
        let run = self.runs.get(run).ok_or_else(missing)?;
        let (table_index, number) = entry_at(run.entries_before(), ordinal);
        let table = run.tables().get(table_index).ok_or_else(missing)?;
        let mut cursor = tables.reader(table)?.cursor();
        cursor.seek_number(number)?;
        if cursor.is_valid() { Ok(cursor.key().to_vec()) } else { Err(missing()) }
    }
}
