//! Damaged and missing objects: named, with the backups that need them.

use tamis_backup::{BackupOptions, Error, Keep, NoProgress, Source, backup, prune, verify};

use crate::support::{Place, fill, state};

#[expect(clippy::disallowed_methods, reason = "the damage that is tested")]
fn remove(path: &std::path::Path) {
    std::fs::remove_file(path).unwrap();
}

/// Two whole backups and one of the log, in few objects.
fn place() -> Place {
    let place = Place::new();
    for round in 0..2 {
        fill(&place.db, 0..500, round);
        place.db.flush().unwrap();
        place.backup();
    }
    fill(&place.db, 0..20, 2);
    place.backup();
    place
}

/// Each object of each kind: flipped, cut, removed. Restores of the named backups fail, all others have the right state.
#[test]
fn every_damaged_object_is_named_with_its_backups() {
    let place = place();
    let states: Vec<_> = (1..=3).map(|number| place.restore(Some(&number.to_string()))).collect();
    let objects = place.objects("objects");
    assert!(objects.len() > 8);
    for path in &objects {
        let name = path.strip_prefix(place.path("target")).unwrap().to_str().unwrap();
        let whole = std::fs::read(path).unwrap();
        for damage in 0..3 {
            let mut bytes = whole.clone();
            match damage {
                0 => *bytes.last_mut().unwrap() ^= 1,
                1 => bytes.truncate(whole.len() / 2),
                _ => remove(path),
            }
            if damage < 2 {
                std::fs::write(path, &bytes).unwrap();
            }
            let report = verify(&place.target, &NoProgress).unwrap();
            let [fault] = report.faults.as_slice() else { panic!("{name}: {:?}", report.faults) };
            assert!(fault.object == name && !fault.backups.is_empty(), "{fault:?}");
            for (number, state) in (1..).zip(&states) {
                match place.try_restore(Some(&number.to_string())) {
                    Ok(found) => assert!(!fault.backups.contains(&number) && found == *state, "{fault:?}"),
                    Err(Error::Damaged { object, .. }) => {
                        assert!(fault.backups.contains(&number) && object == name, "{fault:?} {object}");
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        }
        std::fs::write(path, whole).unwrap();
    }
    assert!(verify(&place.target, &NoProgress).unwrap().faults.is_empty());
}

#[test]
fn a_damaged_description_does_not_hide_other_backups() {
    let place = place();
    let description = place.objects("backups").remove(1);
    let whole = std::fs::read(&description).unwrap();
    for index in (0..whole.len()).step_by(7) {
        let mut bytes = whole.clone();
        bytes[index] ^= 2;
        std::fs::write(&description, bytes).unwrap();
        let backups = place.target.backups().unwrap();
        assert_eq!((backups.intact.len(), backups.damaged.len()), (2, 1));
        assert!(matches!(backups.find(Some("2")), Err(Error::NoBackup { .. })));
    }
    let error = prune(&place.target, Keep::Count(1), &NoProgress).unwrap_err();
    assert!(
        matches!(error, Error::Unprunable { .. }) && error.to_string().contains("0000000002-"),
        "{error}"
    );
    assert_eq!(verify(&place.target, &NoProgress).unwrap().faults.len(), 1);
    // The number is not used again.
    assert_eq!(place.backup().backup.number, 4);
    assert!(place.restore(None) == state(&place.db));
    remove(&description);
    assert_eq!(prune(&place.target, Keep::Count(1), &NoProgress).unwrap().removed, [1, 3]);
}

/// The next backup that is not `--log` uploads again what was lost.
#[test]
fn the_next_backup_uploads_lost_objects_again() {
    let place = place();
    for path in place.objects("objects") {
        remove(&path);
    }
    assert!(place.try_restore(None).is_err());
    backup(Source::Db(&place.db), &place.target, &BackupOptions::default()).unwrap();
    assert!(place.restore(None) == state(&place.db));
    let report = verify(&place.target, &NoProgress).unwrap();
    assert!(report.faults.iter().all(|fault| !fault.backups.contains(&4)), "{report:?}");
}

/// A file name of a description never leads out of the folder of a restore.
#[test]
fn a_description_of_another_format_is_refused() {
    let place = place();
    let header = place.path("target/tamis-backup.json");
    let text = std::fs::read_to_string(&header).unwrap();
    std::fs::write(&header, text.replace("\"format\":1", "\"format\":9")).unwrap();
    for error in [
        place.target.backups().unwrap_err(),
        backup(Source::Db(&place.db), &place.target, &BackupOptions::default()).unwrap_err(),
    ] {
        assert!(matches!(error, Error::UnknownFormat { found: 9, .. }), "{error}");
    }
    std::fs::write(&header, "{").unwrap();
    assert!(matches!(place.target.backups(), Err(Error::NotATarget { .. })));
}
