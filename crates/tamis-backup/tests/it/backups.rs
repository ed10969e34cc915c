//! Backups of a growing store: what they upload, what they restore, what a prune leaves.

use std::{sync::atomic::Ordering, time::Duration};

use tamis::{Db, KeyspaceOptions};
use tamis_backup::{
    BackupOptions, Error, Keep, Kind, NoProgress, Progress, RestoreOptions, Source, backup, follow, prune,
    restore, verify,
};

use crate::support::{MemoryObjects, Place, fill, open, state};

#[test]
fn each_backup_restores_its_own_state() {
    let place = Place::new();
    let mut states = Vec::new();
    for round in 0..6 {
        fill(&place.db, (round * 500)..(round * 500 + 2_000), round);
        if round % 2 == 0 {
            place.db.flush().unwrap();
        }
        if round == 3 {
            let other = place.db.create_keyspace("other", KeyspaceOptions::default()).unwrap();
            other.put("apple", "red").unwrap();
            place.db.delete_prefix("key000010").unwrap();
        }
        let report = place.backup();
        assert_eq!(report.backup.number, round + 1);
        assert_eq!(report.backup.sequence, place.db.snapshot().sequence());
        states.push(state(&place.db));
    }
    let backups = place.target.backups().unwrap();
    assert_eq!(backups.intact.len(), 6);
    for (backup, state) in backups.intact.iter().zip(&states) {
        assert!(place.restore(Some(&backup.number.to_string())) == *state, "backup {}", backup.number);
        assert!(place.restore(Some(&backup.id())) == *state);
    }
    assert!(place.restore(None) == *states.last().unwrap());
    let report = verify(&place.target, &NoProgress).unwrap();
    assert!(report.faults.is_empty() && report.unused_object_count == 0, "{report:?}");
    assert!(
        place.target.backups().unwrap().find(Some("7")).unwrap_err().to_string().contains("there are 1 to 6")
    );
}

/// The checkpoint of a backup leaves no files, also if the process before was killed.
#[test]
fn a_backup_leaves_no_temporary_files() {
    let place = Place::new();
    fill(&place.db, 0..1_000, 0);
    let abandoned = place.path(".store.tamis-backup-0123456789abcdef");
    place.db.checkpoint(&abandoned).unwrap();
    place.backup();
    let mut names: Vec<_> =
        std::fs::read_dir(place.folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["store", "target"]);
    assert!(std::fs::read_dir(place.path("target/temporary")).unwrap().next().is_none());
    assert!(std::fs::read_dir(place.path("target/leases")).unwrap().next().is_none());
}

#[test]
fn a_later_backup_uploads_only_new_bytes() {
    let (place, objects) = Place::in_memory();
    fill(&place.db, 0..20_000, 0);
    place.db.flush().unwrap();
    place.db.wait_for_compactions().unwrap();
    let first = place.backup();
    assert_eq!((first.backup.kind, first.backup.base), (Kind::Whole, 1));
    let put = |objects: &MemoryObjects| objects.put_bytes.swap(0, Ordering::Relaxed);
    assert!(put(&objects) >= first.uploaded_bytes && first.uploaded_bytes > 2_000_000);

    // Only log: the bytes of the new entries, and small objects.
    fill(&place.db, 0..100, 1);
    let second = place.backup();
    assert_eq!((second.backup.kind, second.backup.base), (Kind::Log, 1));
    let bytes = put(&objects);
    assert!(bytes > 10_000 && bytes < 40_000, "{bytes}");
    fill(&place.db, 100..110, 1);
    let third = place.backup();
    assert_eq!(third.backup.base, 1);
    let bytes = put(&objects);
    assert!(bytes < 25_000, "{bytes}");

    // New tables, and no byte of the other ones.
    let before: Vec<_> = place.db.tables(&place.db.default_keyspace()).unwrap();
    place.db.flush().unwrap();
    place.db.wait_for_compactions().unwrap();
    let fourth = place.backup();
    assert_eq!(fourth.backup.kind, Kind::Whole);
    let after = place.db.tables(&place.db.default_keyspace()).unwrap();
    let new =
        after.iter().filter(|table| !before.iter().any(|other| other.table_number == table.table_number));
    let new_bytes: u64 = new.map(|table| table.bytes).sum();
    let bytes = put(&objects);
    assert!(bytes <= new_bytes + 40_000, "{bytes} bytes for {new_bytes} of tables");
    assert!(place.restore(None) == state(&place.db));
}

/// A segment with many parts is split again, so that the description of a backup does not grow with the number of backups.
#[test]
fn many_backups_of_a_log_segment_have_few_parts() {
    let (place, objects) = Place::in_memory();
    let mut bytes = Vec::new();
    for round in 0..80 {
        fill(&place.db, round..round + 1, round);
        place.backup();
        bytes.push(objects.put_bytes.swap(0, Ordering::Relaxed));
    }
    let longest = objects
        .objects
        .lock()
        .unwrap()
        .iter()
        .filter(|(name, _)| name.starts_with("backups/"))
        .map(|(_, bytes)| bytes.len())
        .max()
        .unwrap();
    assert!(longest < 6_000, "{longest}");
    assert!(bytes.iter().all(|bytes| *bytes < 30_000), "{bytes:?}");
    assert!(place.restore(Some("79")).len() == 79);
    assert!(place.restore(Some("31")).len() == 31);
}

#[test]
fn log_backups_say_why_they_are_whole() {
    let place = Place::new();
    let options = || {
        let mut options = BackupOptions::default();
        options.log = true;
        options
    };
    let make = || backup(Source::Db(&place.db), &place.target, &options()).unwrap();
    fill(&place.db, 0..100, 0);
    assert_eq!(make().whole_because.unwrap(), "there was no backup before");
    fill(&place.db, 0..100, 1);
    let second = make();
    assert_eq!((second.whole_because, second.backup.kind), (None, Kind::Log));
    place.db.flush().unwrap();
    fill(&place.db, 0..100, 2);
    let third = make();
    assert!(third.whole_because.unwrap().contains("since backup 2"));
    assert!(place.restore(Some("2")) != place.restore(None));
    assert!(place.restore(None) == state(&place.db));
}

/// Of a closed store, and of one that another handle has open: a reader makes it.
#[test]
fn the_folder_of_a_store_can_be_backed_up() {
    let place = Place::new();
    fill(&place.db, 0..3_000, 0);
    let expected = state(&place.db);
    let store = place.path("store");
    let make =
        |folder: &std::path::Path| backup(Source::Folder(folder), &place.target, &BackupOptions::default());
    assert_eq!(make(&store).unwrap().backup.sequence, 3_000);
    assert!(place.restore(None) == expected);
    fill(&place.db, 0..10, 1);
    let expected = state(&place.db);
    place.db.checkpoint(place.path("closed")).unwrap();
    assert_eq!(make(&place.path("closed")).unwrap().backup.sequence, 3_010);
    assert!(place.restore(None) == expected);
    let absent = make(&place.path("absent")).unwrap_err();
    assert!(matches!(absent, Error::Store(tamis::Error::NotADatabase { .. })), "{absent}");
}

/// A copy of the store that continued on its own has the same id and the same file numbers: no byte is mixed up.
#[test]
fn backups_of_two_copies_of_a_store_are_separate() {
    let place = Place::new();
    fill(&place.db, 0..2_000, 0);
    place.db.flush().unwrap();
    place.db.checkpoint(place.path("copy")).unwrap();
    let copy = open(&place.path("copy"));
    fill(&place.db, 0..2_000, 1);
    fill(&copy, 0..2_000, 2);
    for db in [&place.db, &copy] {
        db.flush().unwrap();
        fill(db, 0..10, 3);
        backup(Source::Db(db), &place.target, &BackupOptions::default()).unwrap();
    }
    place.backup();
    for (number, db) in [("1", &place.db), ("2", &copy), ("3", &place.db)] {
        assert!(place.restore(Some(number)) == state(db), "backup {number}");
    }
}

#[test]
fn a_prune_removes_old_backups_and_nothing_else() {
    let place = Place::new();
    let mut states = Vec::new();
    for round in 0..5 {
        fill(&place.db, 0..3_000, round);
        place.db.flush().unwrap();
        place.db.wait_for_compactions().unwrap();
        place.backup();
        states.push(state(&place.db));
    }
    let before = place.objects("objects").len();
    let report = prune(&place.target, "2".parse().unwrap(), &NoProgress).unwrap();
    assert_eq!((report.removed, report.kept_count), (vec![1, 2, 3], 2));
    assert!(report.object_count > 0 && place.objects("objects").len() == before - report.object_count);
    for number in [4, 5] {
        assert!(place.restore(Some(&number.to_string())) == states[number - 1]);
    }
    assert!(matches!(place.try_restore(Some("3")), Err(Error::NoBackup { .. })));
    let report = verify(&place.target, &NoProgress).unwrap();
    assert!(report.faults.is_empty() && report.unused_object_count == 0, "{report:?}");
    // All are young.
    assert!(
        prune(&place.target, Keep::Age(Duration::from_secs(3600)), &NoProgress).unwrap().removed.is_empty()
    );
    assert_eq!(place.backup().backup.number, 6);
}

/// Ends after some checks.
#[derive(Debug)]
struct CancelAfter(std::sync::atomic::AtomicU64);

impl Progress for CancelAfter {
    fn is_cancelled(&self) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err()
    }
}

#[test]
fn a_cancelled_backup_continues() {
    let (place, objects) = Place::in_memory();
    fill(&place.db, 0..20_000, 0);
    place.db.flush().unwrap();
    place.db.wait_for_compactions().unwrap();
    let mut options = BackupOptions::default();
    options.progress = std::sync::Arc::new(CancelAfter(30.into()));
    let cancelled = backup(Source::Db(&place.db), &place.target, &options);
    assert!(matches!(cancelled, Err(Error::Cancelled)), "{cancelled:?}");
    assert!(place.target.backups().unwrap().intact.is_empty());
    let uploaded = objects.put_bytes.swap(0, Ordering::Relaxed);
    assert!(uploaded > 0);
    let report = place.backup();
    assert!(report.uploaded_bytes + uploaded < report.backup.store_bytes + 100_000);
    assert!(place.restore(None) == state(&place.db));
}

#[test]
fn follow_uploads_changes_and_shows_the_loss() {
    let place = Place::new();
    fill(&place.db, 0..100, 0);
    let mut options = BackupOptions::default();
    options.progress = std::sync::Arc::new(CancelAfter(2_000.into()));
    let (mut rounds, mut new) = (0, 0);
    let every = Duration::from_millis(30);
    follow(Source::Db(&place.db), &place.target, &options, every, &mut |round| {
        rounds += 1;
        new += u64::from(round.result.unwrap().is_new);
        assert!(round.loss_max < Duration::from_secs(20));
        if rounds % 2 == 0 {
            fill(&place.db, 0..10, rounds);
        }
    })
    .unwrap();
    let backups = place.target.backups().unwrap();
    assert!(rounds > 3 && new < rounds && backups.intact.len() as u64 == new, "{new} of {rounds}");
    let numbers: Vec<u64> = backups.intact.iter().map(|backup| backup.number).collect();
    assert_eq!(numbers, (1..=new).collect::<Vec<_>>());
}

/// An error of the target does not end it: the loss grows until a round succeeds.
#[test]
fn follow_continues_after_errors_of_the_target() {
    let (place, objects) = Place::in_memory();
    fill(&place.db, 0..10, 0);
    let mut options = BackupOptions::default();
    options.progress = std::sync::Arc::new(CancelAfter(400.into()));
    let mut results = Vec::new();
    follow(Source::Db(&place.db), &place.target, &options, Duration::from_millis(1), &mut |round| {
        fill(&place.db, 0..10, results.len() as u64);
        let failure = (results.len() % 2 == 0).then_some((5, std::io::ErrorKind::ConnectionReset));
        *objects.failure.lock().unwrap() = failure;
        results.push((round.result.is_ok(), round.loss_max));
    })
    .unwrap();
    *objects.failure.lock().unwrap() = None;
    assert!(results.len() > 4, "{results:?}");
    for (index, pair) in results.windows(2).enumerate() {
        assert_eq!(pair[0].0, index % 2 == 0, "{results:?}");
        assert!(pair[0].0 || pair[1].1 > pair[0].1, "{results:?}");
    }
    assert_eq!(place.restore(None).len(), 10);
}

#[test]
fn wrong_targets_are_refused_and_unchanged() {
    let place = Place::new();
    fill(&place.db, 0..10, 0);
    let refuse = |target: &tamis_backup::Target| {
        backup(Source::Db(&place.db), target, &BackupOptions::default()).unwrap_err()
    };
    // A folder with something else.
    std::fs::create_dir(place.path("photos")).unwrap();
    std::fs::write(place.path("photos/cat.jpg"), "cat").unwrap();
    let photos = tamis_backup::Target::folder(place.path("photos"));
    let error = refuse(&photos);
    assert!(matches!(error, Error::Foreign { .. }) && error.to_string().contains("cat.jpg"), "{error}");
    assert!(matches!(prune(&photos, Keep::Count(1), &NoProgress), Err(Error::NotATarget { .. })));
    assert_eq!(std::fs::read_dir(place.path("photos")).unwrap().count(), 1);
    // Another store.
    place.backup();
    let other = Db::open(place.path("other")).unwrap();
    let error = backup(Source::Db(&other), &place.target, &BackupOptions::default()).unwrap_err();
    assert!(matches!(error, Error::OtherStore { .. }), "{error}");
    assert_eq!(place.target.backups().unwrap().intact.len(), 1);
    // A new disk is empty.
    std::fs::create_dir_all(place.path("disk/lost+found")).unwrap();
    std::fs::write(place.path("disk/.DS_Store"), "").unwrap();
    let disk = tamis_backup::Target::folder(place.path("disk"));
    backup(Source::Db(&place.db), &disk, &BackupOptions::default()).unwrap();
    // A missing target.
    let absent = tamis_backup::Target::folder(place.path("absent"));
    for target in [&absent, &photos] {
        assert!(matches!(target.backups(), Err(Error::NotATarget { .. })));
        assert!(matches!(verify(target, &NoProgress), Err(Error::NotATarget { .. })));
        let restored = restore(target, place.path("restored"), &RestoreOptions::default());
        assert!(matches!(restored, Err(Error::NotATarget { .. })) && !place.path("restored").exists());
    }
    assert!(!place.path("absent").exists());
    assert_eq!(std::fs::read_dir(place.path("photos")).unwrap().count(), 1);
    for address in ["", "ftp://host/folder"] {
        assert!(matches!(tamis_backup::Target::open(address), Err(Error::Address { .. })));
    }
    #[cfg(not(feature = "s3"))]
    assert!(matches!(tamis_backup::Target::open("s3://bucket"), Err(Error::S3Unavailable { .. })));
    // The folder of a restore.
    let error = restore(&place.target, place.path("photos"), &RestoreOptions::default()).unwrap_err();
    assert!(matches!(error, Error::FolderNotEmpty { .. }), "{error}");
    // A file is no folder.
    std::fs::write(place.path("file"), "").unwrap();
    let error = refuse(&tamis_backup::Target::folder(place.path("file")));
    assert!(error.to_string().contains("is a file") || error.to_string().contains("directory"), "{error}");
}

/// A backup of a machine whose clock was years ahead: nothing depends on its time.
#[test]
fn a_clock_that_jumped_changes_no_order() {
    use sha2::Digest as _;

    let place = Place::new();
    fill(&place.db, 0..100, 0);
    place.backup();
    let description = std::fs::read_to_string(&place.objects("backups")[0]).unwrap();
    let time = description.split("\"time_milliseconds\":").nth(1).unwrap().split(',').next().unwrap();
    let future = description.replace(time, "4102444800000").replace("\"number\":1,", "\"number\":2,");
    let digest: String =
        sha2::Sha256::digest(future.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    std::fs::write(place.path(&format!("target/backups/0000000002-{}.json", &digest[..16])), future).unwrap();
    fill(&place.db, 0..100, 1);
    let report = place.backup();
    assert_eq!((report.backup.number, report.clock_jumped_since), (3, Some(2)));
    assert!(place.restore(None) == state(&place.db) && place.restore(Some("2")) != state(&place.db));
    let backups = place.target.backups().unwrap();
    assert_eq!(backups.find(Some("2100-01-02")).unwrap().number, 3);
    assert!(matches!(backups.find(Some("2099-01-01")), Err(Error::ClockJumped { earlier: 2, later: 3, .. })));
    assert!(
        prune(&place.target, Keep::Age(Duration::from_secs(60)), &NoProgress).unwrap().removed.is_empty()
    );
    assert_eq!(prune(&place.target, Keep::Count(1), &NoProgress).unwrap().removed, [1, 2]);
    assert!(place.restore(None) == state(&place.db));
}

#[test]
fn a_full_target_and_a_full_disk_say_so() {
    let (place, objects) = Place::in_memory();
    fill(&place.db, 0..100, 0);
    place.backup();
    fill(&place.db, 0..100, 1);
    *objects.failure.lock().unwrap() = Some((9, std::io::ErrorKind::StorageFull));
    let error =
        backup(Source::Db(&place.db), &place.target, &BackupOptions::default()).unwrap_err().to_string();
    assert!(error.contains("free space and run the command again, which continues"), "{error}");
    assert!(place.backup().is_new && place.restore(None) == state(&place.db));
}
