//! Tests of the whole log: what a crash, a fault or a flipped bit may lose, and the frozen bytes.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

pub(super) mod support;

use std::{io::ErrorKind, path::Path, sync::Arc};

use tamis_vfs::{Fault, FaultVfs, MemVfs, OperationKind, OsVfs, Rule, Vfs};
use tamis_workload::SplitMix64;

use self::support::{
    Numbers, append, folder, log_files, new_vfs, open_log, path, remove_below, replayed, vfs_of, write,
};
use super::{format::HEADER_BYTES, reader::ReplayReport, writer::Log};
use crate::{error::Error, options::Durability};

const DURABILITIES: [Durability; 3] = [Durability::Deferred, Durability::Buffered, Durability::Synced];

/// The acknowledged records, in order, and how many of them must survive a kill and a power loss.
#[derive(Debug, Default)]
struct Model {
    acknowledged: Vec<u64>,
    /// Failed records, which replay may find or not.
    failed: Vec<u64>,
    survives_process: usize,
    survives_machine: usize,
}

impl Model {
    fn append(&mut self, log: &mut Log, id: u64, durability: Durability) -> Result<(), Error> {
        let result = append(log, id, durability);
        match result {
            Ok(()) => {
                self.acknowledged.push(id);
                self.raise(durability);
            }
            Err(_) => self.failed.push(id),
        }
        result
    }

    fn persist(&mut self, log: &mut Log, durability: Durability) -> Result<(), Error> {
        log.persist(durability).inspect(|()| self.raise(durability))
    }

    fn raise(&mut self, durability: Durability) {
        if durability >= Durability::Buffered {
            self.survives_process = self.acknowledged.len();
        }
        if durability == Durability::Synced {
            self.survives_machine = self.acknowledged.len();
        }
    }

    /// Checks the result of a replay, and continues from it.
    fn check(&mut self, found: &[u64], is_power_loss: bool, context: &str) {
        let kept: Vec<u64> = found.iter().copied().filter(|id| !self.failed.contains(id)).collect();
        assert!(self.acknowledged.starts_with(&kept), "{context}: {kept:?} of {:?}", self.acknowledged);
        let least = if is_power_loss { self.survives_machine } else { self.survives_process };
        assert!(kept.len() >= least, "{context}: {} of {least} acknowledged records", kept.len());
        self.acknowledged.truncate(kept.len());
        self.survives_process = kept.len();
        self.survives_machine = self.survives_machine.min(kept.len());
    }
}

#[test]
fn after_any_crash_replay_finds_a_prefix_with_all_durable_records() {
    let mut truncation_count = 0;
    for seed in 0..600 {
        let mut random = SplitMix64::new(seed);
        let (mut vfs, numbers, mut model) = (new_vfs(), Numbers::default(), Model::default());
        let (mut id, mut first_needed) = (1, 0);
        let mut report = ReplayReport::default();
        for generation in 0..5 {
            let mut log = open_log(Arc::new(vfs.clone()), &numbers, &report.segments).unwrap();
            if generation % 2 == 1 && !report.obsolete.is_empty() {
                model.persist(&mut log, Durability::Synced).unwrap();
                report.obsolete.iter().for_each(|number| vfs.remove(&path(*number)).unwrap());
            }
            for _ in 0..random.below(16) {
                let durability = DURABILITIES[random.below(3) as usize];
                match random.below(12) {
                    0 => drop(log.rotate().unwrap()),
                    1 => model.persist(&mut log, durability).unwrap(),
                    2 => log.flush_deferred().unwrap(),
                    3 => {
                        first_needed = log.rotate().unwrap();
                        // A flush syncs the folder for its table, before the manifest names the segment.
                        vfs.sync_dir(&folder()).unwrap();
                        remove_below(&mut log, &vfs, first_needed).unwrap();
                        model = Model::default();
                    }
                    _ => model.append(&mut log, id, durability).unwrap(),
                }
                id += 1;
            }
            drop(log);
            let is_power_loss = random.below(2) == 0;
            if is_power_loss {
                vfs = vfs.crash_clone(random.next_u64());
            }
            let context = format!("seed {seed}, generation {generation}, power loss: {is_power_loss}");
            let (found, found_report) =
                replayed(&vfs, first_needed).unwrap_or_else(|e| panic!("{context}: {e}"));
            assert_eq!(replayed(&vfs, first_needed).unwrap(), (found.clone(), found_report.clone()));
            model.check(&found, is_power_loss, &context);
            truncation_count += found_report.truncations.len();
            report = found_report;
        }
    }
    assert!(truncation_count > 100, "the crashes left only {truncation_count} torn tails");
}

/// Uses a log in which each step may fail. Returns what must survive.
fn scenario(vfs: &Arc<FaultVfs>) -> Model {
    let mut model = Model::default();
    let numbers = Numbers::default();
    let Ok(mut log) = open_log(Arc::clone(vfs) as Arc<dyn Vfs>, &numbers, &[]) else { return model };
    let mut refused = false;
    for id in 1..24 {
        let durability = DURABILITIES[(id * id % 7 % 3) as usize];
        let result = model.append(&mut log, id, durability);
        assert!(!refused || matches!(result, Err(Error::WritesRefused { .. })), "writes after a failed sync");
        refused = log.background_error().is_some();
        let _ = match id % 6 {
            2 => log.rotate().map(drop),
            4 => model.persist(&mut log, Durability::Synced),
            _ => Ok(()),
        };
        refused |= log.background_error().is_some();
    }
    let _ = log.close().inspect(|()| model.raise(Durability::Synced));
    model
}

fn sweep(fault: &Fault) -> u64 {
    let mut fault_count = 0;
    for nth in 1.. {
        let inner = new_vfs();
        let vfs = Arc::new(FaultVfs::new(Arc::new(inner.clone())));
        vfs.add_rule(Rule::new(fault.clone()).nth(nth));
        let mut model = scenario(&vfs);
        if vfs.fault_count() == 0 {
            break;
        }
        fault_count += 1;
        for seed in 0..6 {
            let after = inner.crash_clone(seed);
            let context = format!("{fault:?} at operation {nth}, crash {seed}");
            let (found, report) = replayed(&after, 0).unwrap_or_else(|e| panic!("{context}: {e}"));
            let mut power = Model { failed: model.failed.clone(), ..Model::default() };
            power.acknowledged.clone_from(&model.acknowledged);
            power.survives_machine = model.survives_machine;
            power.check(&found, true, &context);
            // The log continues from the found segments, regardless of other files in the folder.
            let numbers = Numbers::starting_at(1000);
            let mut log = open_log(Arc::new(after.clone()), &numbers, &report.segments).unwrap();
            append(&mut log, 90, Durability::Synced).unwrap();
            let (again, _) = replayed(&after.crash_clone(seed), 0).unwrap();
            assert_eq!(again, [&found[..], &[90]].concat(), "{context}");
        }
        let context = format!("{fault:?} at operation {nth}, process killed");
        let (found, _) = replayed(&inner, 0).unwrap_or_else(|e| panic!("{context}: {e}"));
        model.check(&found, false, &context);
    }
    fault_count
}

#[test]
fn a_fault_at_any_operation_loses_no_acknowledged_record() {
    let faults = [
        Fault::Error(ErrorKind::Other),
        Fault::ErrorAfter(ErrorKind::Other),
        Fault::Error(ErrorKind::StorageFull),
        Fault::Short { written_bytes: 1, error: ErrorKind::StorageFull },
        Fault::Short { written_bytes: 70, error: ErrorKind::WriteZero },
    ];
    for fault in faults {
        assert!(sweep(&fault) > 20, "the scenario has too few operations");
    }
}

/// A log of three segments in which every record was synced; closed or not.
fn small_log(is_closed: bool) -> MemVfs {
    let vfs = new_vfs();
    let mut log = open_log(Arc::new(vfs.clone()), &Numbers::default(), &[]).unwrap();
    for id in 1..=7 {
        append(&mut log, id, if id == 3 { Durability::Buffered } else { Durability::Synced }).unwrap();
        if id % 3 == 0 {
            log.rotate().unwrap();
        }
    }
    if is_closed {
        log.close().unwrap();
    }
    vfs
}

#[test]
fn a_flipped_bit_is_reported_with_file_and_offset_or_has_no_effect() {
    for is_closed in [true, false] {
        let files = log_files(&small_log(is_closed));
        assert_eq!(files.len(), 3);
        let whole: Vec<u64> = (1..=7).collect();
        let last = files.keys().last().unwrap().clone();
        let mut truncation_count = 0;
        for (name, bytes) in &files {
            for bit in 0..bytes.len() * 8 {
                let mut flipped = files.clone();
                flipped.get_mut(name).unwrap()[bit / 8] ^= 1 << (bit % 8);
                match replayed(&vfs_of(&flipped), 0) {
                    Err(Error::Corruption(found)) => {
                        assert!(found.file.ends_with(name), "{name} bit {bit}: {}", found.file.display());
                        assert!(found.offset <= bit as u64 / 8, "{name} bit {bit}: offset {}", found.offset);
                    }
                    Err(other) => panic!("{name} bit {bit}: {other}"),
                    Ok((ids, report)) if report.truncations.is_empty() => {
                        panic!("{name} bit {bit} was not detected: {ids:?}")
                    }
                    Ok((ids, _)) => {
                        truncation_count += 1;
                        assert_eq!(*name, last, "bit {bit}");
                        let lost = usize::from(!is_closed);
                        assert_eq!(ids, whole[..7 - lost], "{name} bit {bit}");
                    }
                }
            }
        }
        assert!(truncation_count > 0, "a flipped last record looks torn");
    }
}

#[test]
fn a_truncated_last_segment_keeps_whole_records_and_a_truncated_earlier_one_is_damage() {
    let files = log_files(&small_log(true));
    let last = files.keys().last().unwrap().clone();
    for (name, bytes) in &files {
        for length in 0..bytes.len() {
            let mut cut = files.clone();
            cut.get_mut(name).unwrap().truncate(length);
            match replayed(&vfs_of(&cut), 0) {
                Err(Error::Corruption(found)) => {
                    assert!(*name != last && found.file.ends_with(name), "{name} truncated to {length}");
                }
                Err(other) => panic!("{name} truncated to {length}: {other}"),
                Ok((ids, _)) => {
                    assert_eq!(*name, last, "truncated to {length}");
                    assert!((1..=7).collect::<Vec<_>>().starts_with(&ids) && ids.len() >= 6);
                }
            }
        }
    }
}

/// The program that wrote the frozen bytes: every durability, a rotation, a failed append, a reopen after a torn tail,
/// a retained entry, a close.
fn write_golden_log() -> MemVfs {
    let inner = new_vfs();
    let vfs = Arc::new(FaultVfs::new(Arc::new(inner.clone())));
    let numbers = Numbers::default();
    let mut log = open_log(Arc::clone(&vfs) as Arc<dyn Vfs>, &numbers, &[]).unwrap();
    append(&mut log, 1, Durability::Deferred).unwrap();
    append(&mut log, 2, Durability::Synced).unwrap();
    append(&mut log, 3, Durability::Buffered).unwrap();
    log.rotate().unwrap();
    append(&mut log, 4, Durability::Buffered).unwrap();
    vfs.add_rule(Rule::short_append(30));
    vfs.add_rule(Rule::error(ErrorKind::Other).on(&[OperationKind::Truncate]));
    append(&mut log, 5, Durability::Buffered).unwrap_err();
    append(&mut log, 6, Durability::Synced).unwrap();
    append(&mut log, 7, Durability::Buffered).unwrap();
    drop(log);
    let (_, report) = replayed(&inner, 0).unwrap();
    let mut log = open_log(Arc::new(inner.clone()), &numbers, &report.segments).unwrap();
    let mut retained = crate::batch::WriteBatch::retaining();
    let entry = crate::batch::BatchEntry {
        keyspace: 0,
        sequence: 32,
        logged_at: 32,
        kind: crate::key::Kind::Put,
        key: b"key 8",
        value: &[8; 16],
    };
    retained.retain(entry).unwrap();
    for (keyspace, sequence) in [(1, 33), (2, 34)] {
        retained.retain(crate::batch::BatchEntry { keyspace, sequence, ..entry }).unwrap();
    }
    log.append(&[retained.assign_sequences(0)], Durability::Synced, std::time::Duration::ZERO).unwrap();
    log.close().unwrap();
    inner
}

#[test]
fn the_bytes_of_a_log_are_frozen() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/wal");
    let written = log_files(&write_golden_log());
    let os = OsVfs;
    if std::env::var_os("TAMIS_REWRITE").is_some() {
        os.create_dir_all(&golden).unwrap();
        for (name, bytes) in &written {
            let _ = os.remove(&golden.join(name));
            write(&os, &golden.join(name), bytes);
        }
    }
    let frozen = vfs_of(
        &os.list(&golden)
            .unwrap()
            .into_iter()
            .map(|e| (e.name.clone(), os.read(&golden.join(e.name)).unwrap()))
            .collect(),
    );
    assert_eq!(log_files(&frozen), written);
    let (ids, report) = replayed(&frozen, 0).unwrap();
    assert_eq!(ids, [1, 2, 3, 4, 6, 7, 8]);
    assert_eq!((report.records, report.last_sequence, report.truncations.len()), (8, 34, 0));
    assert_eq!(report.segments.iter().map(|s| s.number).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert!(
        written["000002.log"].len() as u64 > report.segments[1].bytes
            && report.segments[1].bytes > HEADER_BYTES
    );
    assert!(folder().is_absolute());
}
