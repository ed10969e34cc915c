//! The checked-in header equals the output of cbindgen.

use std::{env, fs, path::Path};

#[test]
fn the_header_matches_the_sources() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).unwrap();
    let mut written = Vec::new();
    cbindgen::generate_with_config(folder, config).unwrap().write(&mut written);
    let file = folder.join("include/tamis.h");
    if env::var_os("UPDATE_HEADER").is_some() {
        fs::write(&file, &written).unwrap();
    }
    let checked_in = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        checked_in.as_bytes() == written,
        "include/tamis.h does not match the sources; run `UPDATE_HEADER=1 cargo test -p tamis-c header` and review the diff"
    );
}
