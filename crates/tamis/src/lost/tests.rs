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

/// Also where links are not possible.
#[test]
fn a_lost_file_takes_no_other_ones_name() {
    for has_links in [true, false] {
        let memory = MemVfs::new();
        let folder = Path::new(FOLDER);
        memory.create_dir_all(folder).unwrap();
        let vfs = FaultVfs::new(Arc::new(memory.clone()));
        if !has_links {
            vfs.add_rule(Rule::error(ErrorKind::Unsupported).on(&[OperationKind::HardLink]).forever());
        }
        let lost = make(&vfs, folder).unwrap();
        // What a copy that did not come to its end left.
        write(&vfs, &lost.join(UNFINISHED), b"fir");
        let source = folder.join("000001.table");
        for (bytes, name) in [
            ("first", "000001.table"),
            ("second", "000001.table.2"),
            ("first", "000001.table"),
            ("third", "000001.table.3"),
        ] {
            write(&vfs, &source, bytes.as_bytes());
            assert_eq!(keep(&vfs, &source, &lost, "000001.table").unwrap(), lost.join(name));
            assert_eq!(vfs.read(&lost.join(name)).unwrap(), bytes.as_bytes());
        }
        assert_eq!(vfs.list(&lost).unwrap().len(), 3);
    }
}
