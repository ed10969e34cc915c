//! Messages that depend on the permissions of the user or on the kind of the error.

use std::{io, path::Path, sync::Arc};

use tamis::Error;

use super::Failure;

fn io_error(path: &str, kind: io::ErrorKind) -> Error {
    Error::Io { operation: "create", path: path.into(), source: Arc::new(kind.into()) }
}

#[test]
fn a_folder_that_cannot_be_written_is_reported_without_options_of_the_library() {
    let message = Failure::of_existing(Error::NotWritable { path: "store".into() }).message();
    assert_eq!(message.as_deref(), Some("store: the folder can't be written; change its permissions"));
}

#[test]
fn errors_of_the_target_are_no_errors_of_the_store() {
    let target = Path::new("out/copy");
    for path in ["out/copy", "out/copy/000001.table", "out/copy.tamis-tmp"] {
        let failure = Failure::of_target(io_error(path, io::ErrorKind::PermissionDenied), target);
        assert!(matches!(failure, Failure::Input(_)), "{path}");
    }
    let failure = Failure::of_target(io_error("store/000001.table", io::ErrorKind::NotFound), target);
    assert!(matches!(failure, Failure::Store(_)));
}
