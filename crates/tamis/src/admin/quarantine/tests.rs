#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::Arc;

use tamis_vfs::{FaultVfs, MemVfs, OperationKind, Rule};

use super::*;

const FOLDER: &str = "/db";

fn write(vfs: &dyn Vfs, path: &Path, bytes: &[u8]) {
    let _ = vfs.remove(path);
    let file = vfs.create(path).unwrap();
    file.append(bytes).unwrap();
    file.sync().unwrap();
}

/// With hard links and without.
#[test]
fn a_quarantined_file_never_replaces_another_one() {
    for has_links in [true, false] {
        let memory = MemVfs::new();
        let folder = Path::new(FOLDER);
        memory.create_dir_all(folder).unwrap();
        let vfs = FaultVfs::new(Arc::new(memory.clone()));
        if !has_links {
            vfs.add_rule(Rule::error(ErrorKind::Unsupported).on(&[OperationKind::HardLink]).forever());
        }
        let quarantine = create_folder(&Folder::open(&vfs, folder).unwrap()).unwrap();
        // Left by an interrupted copy.
        write(&vfs, &quarantine.join(UNFINISHED), b"fir");
        let source = folder.join("000001.table");
        for (bytes, name) in [
            ("first", "000001.table"),
            ("second", "000001.table.2"),
            ("first", "000001.table"),
            ("third", "000001.table.3"),
        ] {
            write(&vfs, &source, bytes.as_bytes());
            assert_eq!(link_into(&vfs, &source, &quarantine, "000001.table").unwrap(), quarantine.join(name));
            assert_eq!(vfs.read(&quarantine.join(name)).unwrap(), bytes.as_bytes());
        }
        assert_eq!(vfs.list(&quarantine).unwrap().len(), 3);
    }
}
