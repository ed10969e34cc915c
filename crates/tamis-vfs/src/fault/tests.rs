//! Tests that faults affect exactly the operations that match their rules.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

use std::{
    io::ErrorKind,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::{Access, FaultVfs, LockMode, MemVfs, OperationKind, Rule, Vfs};

fn vfs() -> (MemVfs, FaultVfs) {
    let memory = MemVfs::new();
    (memory.clone(), FaultVfs::new(Arc::new(memory)))
}

fn path(name: &str) -> &Path {
    Path::new(name)
}

#[test]
fn a_rule_fails_the_given_number_of_matches_from_the_nth_on() {
    let (_, vfs) = vfs();
    let log = vfs.create(path("/1.log")).unwrap();
    let table = vfs.create(path("/1.table")).unwrap();
    let rule = Rule::error(ErrorKind::TimedOut).on(&[OperationKind::Append]).path(".log").nth(2).times(2);
    let rule = vfs.add_rule(rule);

    let outcomes: Vec<bool> = (0..5)
        .map(|_| {
            table.append(b"t").unwrap();
            log.append(b"l").is_ok()
        })
        .collect();

    assert_eq!(outcomes, [true, false, false, true, true]);
    assert_eq!(vfs.hit_count(rule), 2);
    assert_eq!(vfs.fault_count(), 2);
    assert_eq!(vfs.read(path("/1.log")).unwrap(), b"lll");
    assert_eq!(vfs.read(path("/1.table")).unwrap(), b"ttttt");
}

#[test]
fn an_injected_error_leaves_every_kind_of_operation_undone() {
    for kind in OperationKind::ALL {
        let (memory, vfs) = vfs();
        let file = vfs.create(path("/a")).unwrap();
        file.append(b"abc").unwrap();
        vfs.add_rule(Rule::error(ErrorKind::TimedOut).on(&[kind]).forever());
        let result = match kind {
            OperationKind::Create => vfs.create(path("/b")).map(drop),
            OperationKind::Reuse => vfs.reuse_log(path("/a")).map(drop),
            OperationKind::Open => vfs.open(path("/a"), Access::Buffered).map(drop),
            OperationKind::Read => file.read_at(0, &mut [0; 1]),
            OperationKind::Append => file.append(b"d"),
            OperationKind::Sync => file.sync(),
            OperationKind::Truncate => file.truncate(0),
            OperationKind::Rename => vfs.rename(path("/a"), path("/b")),
            OperationKind::HardLink => vfs.hard_link(path("/a"), path("/b")),
            OperationKind::Remove => vfs.remove(path("/a")),
            OperationKind::CreateDir => vfs.create_dir_all(path("/b")),
            OperationKind::List => vfs.list(path("/")).map(drop),
            OperationKind::Exists => vfs.exists(path("/a")).map(drop),
            OperationKind::SyncDir => vfs.sync_dir(path("/")),
            OperationKind::OpenFolder => vfs.open_folder(path("/")).map(drop),
            OperationKind::Lock => vfs.lock(path("/"), LockMode::Exclusive).map(drop),
        };
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{kind:?}");
        assert!(error.to_string().contains("injected"), "{error}");
        assert_eq!(memory.list(path("/")).unwrap().len(), 1, "{kind:?}");
        assert_eq!(memory.read(path("/a")).unwrap(), b"abc", "{kind:?}");
    }
}

#[test]
fn an_error_after_the_operation_keeps_its_effect() {
    let (memory, vfs) = vfs();
    vfs.create(path("/a")).unwrap();
    vfs.add_rule(Rule::error_after(ErrorKind::TimedOut).on(&[OperationKind::Rename]));
    assert_eq!(vfs.rename(path("/a"), path("/b")).unwrap_err().kind(), ErrorKind::TimedOut);
    assert!(memory.exists(path("/b")).unwrap());
}

#[test]
fn a_path_rule_matches_the_target_of_a_rename() {
    let (_, vfs) = vfs();
    vfs.create(path("/a.tmp")).unwrap();
    vfs.add_rule(Rule::error(ErrorKind::TimedOut).on(&[OperationKind::Rename]).path("CURRENT"));
    vfs.rename(path("/a.tmp"), path("/b.tmp")).unwrap();
    assert!(vfs.rename(path("/b.tmp"), path("/CURRENT")).is_err());
}

#[test]
fn a_short_append_writes_a_prefix() {
    let (_, vfs) = vfs();
    let file = vfs.create(path("/a")).unwrap();
    vfs.add_rule(Rule::short_append(2));
    assert_eq!(file.append(b"abcd").unwrap_err().kind(), ErrorKind::WriteZero);
    assert_eq!(file.length().unwrap(), 2);
    file.truncate(0).unwrap();
    file.append(b"xyz").unwrap();
    assert_eq!(vfs.read(path("/a")).unwrap(), b"xyz");
}

#[test]
fn a_full_disk_writes_the_bytes_that_fit_until_the_rule_is_removed() {
    let (_, vfs) = vfs();
    let first = vfs.create(path("/1.log")).unwrap();
    let second = vfs.create(path("/2.log")).unwrap();
    let rule = vfs.add_rule(Rule::disk_full(6).path(".log"));
    first.append(b"1234").unwrap();
    assert_eq!(vfs.free_space(path("/")).unwrap(), Some(2));
    assert_eq!(second.append(b"5678").unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(vfs.read(path("/2.log")).unwrap(), b"56");
    assert_eq!(first.append(b"9").unwrap_err().kind(), ErrorKind::StorageFull);
    first.append(b"").unwrap();
    assert_eq!(vfs.hit_count(rule), 2);

    vfs.remove_rule(rule);
    first.append(b"9").unwrap();
    assert_eq!(vfs.read(path("/1.log")).unwrap(), b"12349");
    assert_eq!(vfs.free_space(path("/")).unwrap(), None);
}

#[test]
fn a_successful_sync_after_a_failed_one_makes_nothing_durable() {
    let (memory, vfs) = vfs();
    let file = vfs.create(path("/a")).unwrap();
    vfs.sync_dir(path("/")).unwrap();
    file.append(b"first").unwrap();
    file.sync().unwrap();
    file.append(b"second").unwrap();
    vfs.add_rule(Rule::error(ErrorKind::Other).on(&[OperationKind::Sync]));
    file.sync().unwrap_err();
    file.sync().unwrap();

    let found: Vec<Vec<u8>> =
        (0..60).map(|seed| memory.crash_clone(seed).read(path("/a")).unwrap()).collect();
    assert!(found.iter().all(|bytes| bytes.starts_with(b"first")));
    assert!(found.iter().any(|bytes| bytes == b"first"), "no crash lost the second append");
}

#[test]
fn a_slow_rule_calls_its_hook_before_the_operation() {
    let (memory, vfs) = vfs();
    let seen = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&seen);
    vfs.add_rule(
        Rule::slow(move |operation| {
            assert!(!memory.exists(&operation.path).unwrap());
            counter.fetch_add(1, Ordering::SeqCst);
        })
        .on(&[OperationKind::Create]),
    );
    vfs.create(path("/a")).unwrap();
    vfs.create(path("/b")).unwrap();
    assert_eq!(seen.load(Ordering::SeqCst), 2);
    assert_eq!(vfs.fault_count(), 0);
}

#[test]
fn a_sweep_fails_every_operation_once() {
    let scenario = |vfs: &FaultVfs| -> std::io::Result<()> {
        let file = vfs.create(path("/a.tmp"))?;
        file.append(b"x")?;
        file.sync()?;
        vfs.rename(path("/a.tmp"), path("/a"))?;
        vfs.sync_dir(path("/"))
    };
    let (_, whole) = vfs();
    scenario(&whole).unwrap();
    assert_eq!(whole.operation_count(), 5);
    let mut messages = Vec::new();
    for n in 1..=whole.operation_count() {
        let (_, vfs) = vfs();
        vfs.add_rule(Rule::error(ErrorKind::Other).nth(n));
        messages.push(scenario(&vfs).unwrap_err().to_string());
    }
    assert!(messages[0].contains("Create") && messages[4].contains("SyncDir"), "{messages:?}");
    messages.dedup();
    assert_eq!(messages.len(), 5);
}

#[test]
fn a_limit_of_open_files_counts_files_that_are_open_and_not_mapped() {
    let (_, vfs) = vfs();
    let first = vfs.create(path("/first")).unwrap();
    first.append(b"1").unwrap();
    assert_eq!(vfs.open_files_max(), None);
    vfs.limit_open_files(2);
    assert_eq!(vfs.open_files_max(), Some(2));
    let second = vfs.create(path("/second")).unwrap();
    assert!(vfs.create(path("/third")).is_err() && !vfs.exists(path("/third")).unwrap());
    assert!(vfs.open(path("/first"), Access::Buffered).is_err());
    drop(second);
    // A mapped file needs a descriptor only while it is opened.
    let mapped: Vec<_> = (0..3).map(|_| vfs.open(path("/first"), Access::Mapped).unwrap()).collect();
    let reader = vfs.open(path("/first"), Access::Buffered).unwrap();
    assert!(vfs.open(path("/first"), Access::Mapped).is_err());
    drop((first, reader));
    assert_eq!(vfs.read(path("/first")).unwrap(), b"1");
    assert_eq!(***mapped[0].mapping().unwrap(), b"1"[..]);
}
