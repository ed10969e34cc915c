use super::*;

fn sample() -> Backup {
    Backup {
        format: VERSION,
        store: "0123456789abcdef".to_owned(),
        number: 12,
        time_milliseconds: 1_796_030_400_123,
        sequence: 34_567,
        kind: Kind::Log,
        base: 11,
        uploaded_bytes: 1_234,
        store_bytes: 56_789,
        catalog: digest(b"catalog"),
        tables: Part::of(b"list"),
        files: vec![
            FileEntry {
                name: "000007.log".to_owned(),
                bytes: 6,
                end: None,
                parts: vec![Part::of(b"one"), Part::of(b"two")],
            },
            FileEntry { name: "CURRENT".to_owned(), bytes: 7, end: None, parts: vec![Part::of(b"current")] },
        ],
        object: String::new(),
    }
}

#[test]
fn the_bytes_are_those_of_the_format_page() {
    let list = FileList {
        files: vec![FileEntry {
            name: "000003.table".to_owned(),
            bytes: 5,
            end: Some(digest(b"table")),
            parts: vec![Part::of(b"table")],
        }],
    };
    let header = TargetHeader { format: VERSION, store: "0123456789abcdef".to_owned() };
    let (object, backup) = sample().encode();
    let golden = [
        ("backup-target.json", encode(&header)),
        ("backup-list.json", list.encode()),
        ("backup-description.json", backup.clone()),
    ];
    for (name, bytes) in golden {
        let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("TAMIS_REWRITE").is_some() {
            std::fs::write(&path, &bytes).expect("the file can be written");
        }
        let expected = std::fs::read(&path).expect("the file is there");
        assert_eq!(String::from_utf8_lossy(&bytes), String::from_utf8_lossy(&expected), "{name}");
    }
    assert_eq!(FileList::decode(&list.encode()), Ok(list));
    let decoded = Backup::decode(&object, &backup).expect("it is valid");
    assert_eq!(decoded.id(), object.trim_start_matches("backups/00000000").trim_end_matches(".json"));
    assert_eq!(decoded.time(), "2026-11-30T09:20:00Z");
    assert_eq!(Backup { object, ..sample() }, decoded);
}

/// Whoever can write into the target can choose the digest of the name, too.
#[test]
fn hostile_descriptions_are_refused() {
    let refuse = |change: &dyn Fn(&mut Backup)| {
        let mut backup = sample();
        change(&mut backup);
        let (object, bytes) = backup.encode();
        Backup::decode(&object, &bytes).expect_err("it is not valid")
    };
    let first = |change: fn(&mut FileEntry)| {
        move |backup: &mut Backup| backup.files.iter_mut().take(1).for_each(change)
    };
    for name in ["../000007.log", "/etc/passwd", "000007.log/x", "", ".log", "CURRENT.log", "000007.exe", "7"]
    {
        refuse(&|backup| backup.files.iter_mut().for_each(|file| name.clone_into(&mut file.name)));
    }
    refuse(&first(|file| file.bytes = 7));
    refuse(&first(|file| file.parts.iter_mut().for_each(|part| part.bytes = u64::MAX)));
    refuse(&first(|file| file.parts.iter_mut().for_each(|part| part.sha256.truncate(63))));
    refuse(&first(|file| file.parts.iter_mut().for_each(|part| part.sha256.replace_range(..1, "/"))));
    refuse(&|backup| backup.tables.bytes = 1 << 40);
    assert_eq!(refuse(&|backup| backup.format = 2), "unknown format version 2");
    let (object, bytes) = sample().encode();
    let other = object.replace("0000000012", "0000000013");
    assert!(Backup::decode(&other, &bytes).is_err());
    // The last byte is the end of the line.
    for length in 0..bytes.len() - 1 {
        let cut = bytes.get(..length).unwrap_or_default();
        assert!(Backup::decode(&object, cut).is_err() && Backup::decode(&object_name(12, cut), cut).is_err());
    }
}
