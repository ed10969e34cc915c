//! Puts the commit and the compiler into the crate, so that every result can say what was measured. Serves the comparison with
//! other stores, too.

use std::{
    hash::{DefaultHasher, Hasher as _},
    path::{Path, PathBuf},
    process::Command,
};

/// What a command prints, without the line feed; nothing where it fails.
fn printed(program: &str, words: &[&str]) -> Option<String> {
    let output = Command::new(program).args(words).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// What stands in a folder, in order, without what was built from it.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<_> =
        entries.map(|entry| entry.path()).filter(|path| !path.ends_with("target")).collect();
    paths.sort();
    paths
}

/// Takes names and bytes of all files below a folder, in order.
fn add_folder(folder: &Path, hasher: &mut DefaultHasher) {
    for path in sources(folder) {
        if path.is_dir() {
            add_folder(&path, hasher);
        } else {
            hasher.write(path.as_os_str().as_encoded_bytes());
            hasher.write(&std::fs::read(&path).unwrap_or_default());
        }
    }
}

/// `+changes-` and a digest of the sources: two programs that differ from the same commit are told apart.
fn mark_of_changes() -> String {
    let mut hasher = DefaultHasher::new();
    add_folder(Path::new("../../crates"), &mut hasher);
    hasher.write(&std::fs::read("../../Cargo.lock").unwrap_or_default());
    format!("+changes-{:08x}", hasher.finish() as u32)
}

fn main() {
    let commit = printed("git", &["rev-parse", "--short=12", "HEAD"]);
    // Sources that differ from the commit are another program.
    let is_changed = printed("git", &["status", "--porcelain", "--", "../../crates", "../../Cargo.lock"])
        .is_none_or(|changes| !changes.is_empty());
    let mark = if is_changed || commit.is_none() { mark_of_changes() } else { String::new() };
    let commit = commit.unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env=TAMIS_COMMIT={commit}{mark}");

    let compiler = std::env::var("RUSTC").ok().and_then(|rustc| printed(&rustc, &["--version"]));
    println!("cargo::rustc-env=TAMIS_COMPILER={}", compiler.unwrap_or_else(|| "unknown".to_owned()));
    let profile = std::env::var("PROFILE").unwrap_or_default();
    println!("cargo::rustc-env=TAMIS_PROFILE={profile}");
    let features = std::env::var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
    println!("cargo::rustc-env=TAMIS_TARGET_FEATURES={features}");

    // The log of HEAD changes with every commit, wherever the repository keeps it.
    for name in ["HEAD", "logs/HEAD"] {
        if let Some(path) = printed("git", &["rev-parse", "--git-path", name])
            && Path::new(&path).exists()
        {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    // Each by itself: a crate that is a workspace of its own builds into its folder.
    for path in sources(Path::new("../../crates")).iter().flat_map(|folder| sources(folder)) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    println!("cargo::rerun-if-changed=../../Cargo.lock");
}
