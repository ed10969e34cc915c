//! The steps of other processes: readers of the store, which the client opens, and consumers of its change feed.

use std::{path::Path, sync::Arc};

use tamis::{Access, BatchWrite, Change, Db, Durability, Error, Keyspace, OpenMode, Options, Position, Vfs};

use super::{Client, Judgement, collect};
use crate::{
    check::runtime,
    model::{Bounds, Value, short},
    operator::operators,
    ops::Direction,
    store::name_of,
    world::{FOLDER, SimVfs},
};

/// A range that a reader has read, with the keyspace as the reader sees it.
type FoundRange = (Keyspace, Vec<(Vec<u8>, Value)>);

impl Client {
    /// Opens a reader or refreshes that of an earlier step, and reads a range. All writes that reached the files before are visible, and it sees a single state.
    pub(super) fn read_as_other(&mut self, number: u64, bounds: &Bounds, opens: bool) -> Judgement {
        let store = Arc::clone(&self.store);
        let mut reader = self.reader.take().filter(|_| !opens);
        let found = self.read("a reader", || {
            let persist = || if store.is_read_only { Ok(()) } else { store.db.persist(Durability::Buffered) };
            persist()?;
            let found = store.unobserved(|| self.range_of_reader(&mut reader, (number, bounds)));
            // A record may be in the files before its commit is visible in the process that writes: it is after this call.
            persist()?;
            found
        });
        self.reader = reader;
        // A refused record may be in the files, as long as no later one follows.
        let (found, states) = match found {
            _ if store.life.is_disturbed() => return Ok(()),
            found => match found? {
                Some((Some(found), states)) => (found, states),
                _ => return Ok(()),
            },
        };
        let (keyspace, entries) = found;
        let way = (Direction::Forward, usize::MAX);
        self.compare_range(&keyspace, bounds, way, &entries, &states)
            .map_err(|error| format!("a reader: {error}"))
    }

    fn range_of_reader(
        &self,
        reader: &mut Option<Db>,
        (number, bounds): (u64, &Bounds),
    ) -> tamis::Result<Option<FoundRange>> {
        if reader.is_none() {
            let options = Options::default()
                .mode(OpenMode::Reader)
                .table_access(Access::Buffered)
                .cache_bytes(64 << 10)
                .merge_operators(operators().to_vec());
            let vfs: Arc<dyn Vfs> = Arc::new(SimVfs::new(&self.store.life));
            let runtime = runtime(&self.store.shared, Arc::new(|| {}));
            *reader = Some(Db::open_on(vfs, Path::new(FOLDER), options, runtime)?);
        } else if let Some(reader) = reader {
            reader.refresh()?;
        }
        let Some(keyspace) = reader.as_ref().and_then(|reader| reader.keyspace(&name_of(number)).ok()) else {
            return Ok(None);
        };
        let entries = match collect(keyspace.range(bounds.clone()), Direction::Forward, usize::MAX) {
            Err(Error::KeyspaceDropped) => return Ok(None),
            entries => entries?,
        };
        Ok(Some((keyspace, entries)))
    }

    /// Reads all new changes: each is a write of a client, none is left out, and none comes twice.
    pub(super) fn read_changes(&mut self) -> Judgement {
        let low = self.store.shared.model.lock().visible();
        let store = Arc::clone(&self.store);
        let mut changes = match self.changes.take() {
            Some(changes) => changes,
            None => match store.db.changes(Position::after(store.db.snapshot().sequence())) {
                Ok(changes) => changes,
                Err(error) => return self.judge_changes(error),
            },
        };
        loop {
            let before = changes.position();
            match changes.try_next() {
                _ if store.life.is_off() => return Ok(()),
                Ok(Some(change)) => self.check_change(before, &change)?,
                Ok(None) => break,
                Err(error) => return self.judge_changes(error),
            }
        }
        let position = changes.position().sequence();
        self.record(position);
        self.changes = Some(changes);
        match position >= low || store.life.is_disturbed() || store.is_read_only {
            true => Ok(()),
            false => Err(format!("the change feed ends at {position}, but {low} was visible before")),
        }
    }

    /// A log without old segments is no fault.
    fn judge_changes(&self, error: Error) -> Judgement {
        match error {
            Error::ChangesLost { .. } => {
                self.store.shared.coverage.note_error(&error);
                Ok(())
            }
            error if self.store.life.is_disturbed() => self.judge("a change feed", Err(error)).or(Ok(())),
            error => self.judge("a change feed", Err(error)),
        }
    }

    fn check_change(&self, before: Position, change: &Change) -> Judgement {
        if change.position() <= before {
            return Err(format!("the change feed was at {before:?} and returned {change:?}"));
        }
        let Change::Batch(batch) = change else { return Ok(()) };
        let model = self.store.shared.model.lock();
        for (keyspace, write) in batch.writes() {
            if let BatchWrite::Put { key, value } = write
                && !model.was_written(key, Value::of(value))
            {
                return Err(format!(
                    "the change feed has a put of {} in {keyspace} that no client made",
                    short(key)
                ));
            }
        }
        Ok(())
    }
}
