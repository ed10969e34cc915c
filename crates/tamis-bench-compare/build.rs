//! Writes the commit that is built into the program: every result names it.

use std::process::Command;

/// What git answers, without the line's end.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../tamis/src");
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    let changes =
        git(&["status", "--porcelain", "--", "../tamis", "../tamis-vfs", "../tamis-filter", "../tamis-bits"]);
    let suffix = if changes.is_some_and(|changes| !changes.is_empty()) { "+changes" } else { "" };
    println!("cargo::rustc-env=TAMIS_COMMIT={commit}{suffix}");
}
