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

#[cfg(unix)]
#[test]
fn limits_of_the_system_are_named() {
    let advice = |code: i32| super::with_advice(format!("create a: {}", io::Error::from_raw_os_error(code)));
    assert!(advice(24).ends_with("`ulimit -n`)"), "{}", advice(24));
    assert!(advice(27).ends_with("`ulimit -f`)"), "{}", advice(27));
}
