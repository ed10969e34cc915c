//! Compiles the commit and the compiler version into the crate, so that every result records the measured program.

use std::{
    hash::{DefaultHasher, Hasher as _},
    path::{Path, PathBuf},
    process::Command,
};

/// The folders of the sources of all measuring programs, as seen from their packages.
const SOURCES: [&str; 2] = ["../../crates", "../../research"];

/// The trimmed output of a command; `None` if it fails.
fn output_of(program: &str, words: &[&str]) -> Option<String> {
    let output = Command::new(program).args(words).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The sorted entries of a folder, without `target`.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<_> =
        entries.map(|entry| entry.path()).filter(|path| !path.ends_with("target")).collect();
    paths.sort();
    paths
}

/// Hashes the names and bytes of all files below a folder, in sorted order.
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

/// `+changes-` and a digest of the sources, to distinguish programs with different uncommitted changes.
fn change_suffix() -> String {
    let mut hasher = DefaultHasher::new();
    for folder in SOURCES {
        add_folder(Path::new(folder), &mut hasher);
    }
    hasher.write(&std::fs::read("../../Cargo.lock").unwrap_or_default());
    format!("+changes-{:08x}", hasher.finish() as u32)
}

fn main() {
    let commit = output_of("git", &["rev-parse", "--short=12", "HEAD"]);
    // Uncommitted changes make it a different program.
    let words = ["status", "--porcelain", "--", "../../Cargo.lock"];
    let is_changed =
        output_of("git", &[&words[..], &SOURCES].concat()).is_none_or(|changes| !changes.is_empty());
    let mark = if is_changed || commit.is_none() { change_suffix() } else { String::new() };
    let commit = commit.unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env=TAMIS_COMMIT={commit}{mark}");

    let compiler = std::env::var("RUSTC").ok().and_then(|rustc| output_of(&rustc, &["--version"]));
    println!("cargo::rustc-env=TAMIS_COMPILER={}", compiler.unwrap_or_else(|| "unknown".to_owned()));
    let profile = std::env::var("PROFILE").unwrap_or_default();
    println!("cargo::rustc-env=TAMIS_PROFILE={profile}");
    let features = std::env::var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
    println!("cargo::rustc-env=TAMIS_TARGET_FEATURES={features}");

    // The reflog of HEAD changes with every commit.
    for name in ["HEAD", "logs/HEAD"] {
        if let Some(path) = output_of("git", &["rev-parse", "--git-path", name])
            && Path::new(&path).exists()
        {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    // One by one, because a crate that is a separate workspace has a `target` folder in it.
    for path in SOURCES.iter().flat_map(|folder| sources(Path::new(folder))).flat_map(|path| sources(&path)) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    println!("cargo::rerun-if-changed=../../Cargo.lock");
}
