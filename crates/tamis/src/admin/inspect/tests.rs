//! Which manifest is read, and errors for a missing one.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

use tamis_vfs::OsVfs;

use super::*;

/// The message of a manifest given by its name said that `CURRENT` names it, even if it does not.
#[test]
fn a_manifest_must_be_the_file_that_current_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    crate::Db::open(&path).unwrap().close().unwrap();
    let vfs: Arc<dyn Vfs> = Arc::new(OsVfs);
    let inspect = |name: &str| Inspection::of_manifest(&vfs, &path.join(name));
    let message = inspect("987654.manifest").unwrap_err().to_string();
    assert!(message.contains("987654.manifest: the file is missing; name an existing manifest"), "{message}");

    let number = inspect("CURRENT").unwrap().facts.into_iter().find(|(name, _)| *name == "number");
    let Some((_, Cell::Number(number))) = number else { panic!("a manifest has a number") };
    let name = FileName::Manifest(number).name();
    assert!(inspect(&name).is_ok());
    let other = FileName::Table(number).name();
    std::fs::write(path.join(&other), "no manifest").unwrap();
    let message = inspect(&other).unwrap_err().to_string();
    assert!(
        message.contains(&other) && message.contains("manifest header"),
        "not that of the number: {message}"
    );
    vfs.remove(&path.join(&name)).unwrap();
    let message = inspect("CURRENT").unwrap_err().to_string();
    assert!(message.contains(&name) && message.contains("CURRENT names it"), "{message}");
}

fn golden_view() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/view")
}

#[test]
fn a_view_is_shown_with_its_runs_pages_and_all_its_bytes() {
    let vfs: Arc<dyn Vfs> = Arc::new(OsVfs);
    let found = Inspection::of_view(&vfs, &golden_view()).unwrap();
    let fact = |name: &str| found.facts.iter().find(|(own, _)| *own == name).unwrap().1.clone();
    assert_eq!((fact("number"), fact("entries")), (Cell::Number(7), Cell::Number(650)));
    let Cell::Text(runs) = fact("runs") else { panic!("runs are text") };
    assert!(runs.starts_with("100 with 200 entries") && runs.contains("101 with 250 entries"), "{runs}");
    let sizes = found.facts.iter().filter_map(|(_, cell)| match cell {
        Cell::Text(text) => text.split_once(" bytes (").map(|(bytes, _)| bytes.parse::<u64>().unwrap()),
        _ => None,
    });
    assert_eq!(Cell::Number(sizes.sum()), fact("bytes"), "every byte is in one section");
    let entries = found.rows.iter().map(|row| match row.get(3) {
        Some(Cell::Number(entries)) => *entries,
        _ => panic!("a page has a number of entries"),
    });
    assert_eq!(entries.sum::<u64>(), 650);
    assert!(found.faults.is_empty());
}

#[test]
fn a_damaged_page_of_a_view_is_a_fault_and_the_others_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("000007.view");
    let mut bytes = std::fs::read(golden_view()).unwrap();
    if let Some(byte) = bytes.get_mut(40) {
        *byte ^= 1;
    }
    std::fs::write(&path, bytes).unwrap();
    let vfs: Arc<dyn Vfs> = Arc::new(OsVfs);
    let found = Inspection::of_view(&vfs, &path).unwrap();
    assert_eq!(found.faults.len(), 1);
    assert_eq!(found.faults.first().and_then(|fault| fault.offset), Some(0));
    assert!(!found.rows.is_empty() && found.facts.iter().any(|(name, _)| *name == "damaged pages"));
    std::fs::write(&path, "no view").unwrap();
    assert!(Inspection::of_view(&vfs, &path).is_err());
}
