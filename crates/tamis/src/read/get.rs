//! Point reads: memtables, then the runs of the key's partition from new to old. The first version found ends it.
//!
//! The key's digest is computed when the first filter is asked, once, and serves every filter of every level; a key
//! that a memtable answers is not hashed at all. A run is left without touching a block when no table of it covers the
//! key, or when the table's filter says no.

use tamis_filter::Probe;

use crate::{
    error::Result,
    key::{Kind, Sequence, check_key},
    slice::Slice,
    state::{Engine, KeyspaceState, ReadView},
    table::{environment::ReadCost, reader::Found},
};

impl Engine {
    /// The value of `key` as of `snapshot`, or as of now.
    pub(crate) fn get(
        &self,
        keyspace: &KeyspaceState,
        key: &[u8],
        snapshot: Option<Sequence>,
    ) -> Result<Option<Slice>> {
        check_key(key)?;
        self.check_open()?;
        keyspace.check()?;
        let (view, visible) = keyspace.read_point(&self.snapshots);
        self.metrics.point_reads.add(1);
        self.get_in(&view, key, snapshot.unwrap_or(visible))
    }

    /// The values of several keys as of one moment.
    pub(crate) fn multi_get<K: AsRef<[u8]>>(
        &self,
        keyspace: &KeyspaceState,
        keys: impl IntoIterator<Item = K>,
        snapshot: Option<Sequence>,
    ) -> Result<Vec<Option<Slice>>> {
        self.check_open()?;
        keyspace.check()?;
        let (view, visible) = keyspace.read_point(&self.snapshots);
        let sequence = snapshot.unwrap_or(visible);
        let get = |key: K| {
            check_key(key.as_ref())?;
            self.metrics.point_reads.add(1);
            self.get_in(&view, key.as_ref(), sequence)
        };
        keys.into_iter().map(get).collect()
    }

    fn get_in(&self, view: &ReadView, key: &[u8], sequence: Sequence) -> Result<Option<Slice>> {
        for memtable in view.memtables() {
            if let Some((kind, _, value)) = memtable.memtable.get(key, sequence) {
                return Ok((kind == Kind::Put).then(|| Slice::from(value)));
            }
        }
        let mut cost = ReadCost::default();
        let found = self.get_in_tables(view, key, sequence, &mut cost);
        cost.add_to(&self.metrics);
        Ok(found?.filter(|found| found.kind == Kind::Put).map(|found| found.value))
    }

    fn get_in_tables(
        &self,
        view: &ReadView,
        key: &[u8],
        sequence: Sequence,
        cost: &mut ReadCost,
    ) -> Result<Option<Found>> {
        let Some(partition) = view.version.partition_of(key) else { return Ok(None) };
        let probe = Probe::new(key, &self.digester);
        for (level, runs) in partition.levels.iter().enumerate() {
            for run in runs.runs() {
                let Some(table) = run.table_of(key) else { continue };
                let reader = self.tables.reader(table)?;
                let counters = self.metrics.filters.get(level);
                let is_asked = reader.has_point_filter();
                if is_asked {
                    counters.inspect(|level| level.asked.add(1));
                    if !reader.may_contain(&probe) {
                        counters.inspect(|level| level.denied.add(1));
                        continue;
                    }
                }
                if let Some(found) = reader.get(key, sequence, cost)? {
                    if is_asked {
                        counters.inspect(|level| level.useful.add(1));
                    }
                    return Ok(Some(found));
                }
            }
        }
        Ok(None)
    }
}
