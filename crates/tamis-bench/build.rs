//! Puts the commit and the compiler into the crate, so that every result can say what was measured.

use std::{path::Path, process::Command};

/// What a command prints, without the line feed; nothing where it fails.
fn printed(program: &str, words: &[&str]) -> Option<String> {
    let output = Command::new(program).args(words).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn main() {
    let commit = printed("git", &["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    // Sources that differ from the commit are another program.
    let is_changed = printed("git", &["status", "--porcelain", "--", "../../crates", "../../Cargo.lock"])
        .is_some_and(|changes| !changes.is_empty());
    let mark = if is_changed { "+changes" } else { "" };
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
    println!("cargo::rerun-if-changed=../../crates");
}
