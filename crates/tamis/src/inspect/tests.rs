//! Which manifest is read, and errors for a missing one.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

use tamis_vfs::OsVfs;

use super::*;

/// The message of a manifest given by its name said that `CURRENT` names it, whatever `CURRENT` names.
#[test]
fn a_manifest_must_be_the_file_that_current_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    crate::Db::open(&path).unwrap().close().unwrap();
    let vfs: Arc<dyn Vfs> = Arc::new(OsVfs);
    let inspect = |name: &str| Inspection::of_manifest(&vfs, &path.join(name));
    let message = inspect("987654.manifest").unwrap_err().to_string();
    assert!(
        message.contains("987654.manifest: the file is missing; name a manifest that is there"),
        "{message}"
    );

    let number = inspect("CURRENT").unwrap().facts.into_iter().find(|(name, _)| *name == "number");
    let Some((_, Cell::Number(number))) = number else { panic!("a manifest has a number") };
    let name = FileName::Manifest(number).name();
    assert!(inspect(&name).is_ok());
    let other = FileName::Table(number).name();
    std::fs::write(path.join(&other), "no manifest").unwrap();
    let message = inspect(&other).unwrap_err().to_string();
    assert!(
        message.contains(&other) && message.contains("name a file named"),
        "not that of the number: {message}"
    );
    vfs.remove(&path.join(&name)).unwrap();
    let message = inspect("CURRENT").unwrap_err().to_string();
    assert!(message.contains(&name) && message.contains("CURRENT names it"), "{message}");
}
