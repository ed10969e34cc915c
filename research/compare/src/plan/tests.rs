//! Deletion of stores, and checks before a run.

use std::fs;

use clap::Parser;

use super::*;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    run: RunArgs,
}

fn plan(folder: &Path, out: &Path, more: &[&str]) -> Result<Plan> {
    let paths = ["--folder".as_ref(), folder.as_os_str(), "--out".as_ref(), out.as_os_str()];
    let arguments = ["run".as_ref()].into_iter().chain(paths).chain(more.iter().map(AsRef::as_ref));
    Command::parse_from(arguments).run.plan()
}

#[test]
fn results_in_the_folder_of_the_stores_are_rejected() {
    let folder = tempfile::tempdir().expect("a folder");
    for out in ["main.json", "deep/../main.json", "tamis/main.json"] {
        let plan = plan(folder.path(), &folder.path().join(out), &[]).expect("a plan");
        let failure = plan.check_folder().expect_err("the results would be deleted");
        assert!(failure.to_string().contains("give another --out"), "{failure}");
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a file of the test")]
fn only_files_of_runs_are_deleted() {
    let parent = tempfile::tempdir().expect("a folder");
    let (folder, out) = (parent.path().join("stores"), parent.path().join("main.json"));
    let plan = plan(&folder, &out, &[]).expect("a plan");
    plan.check_folder().expect("it does not exist yet");
    plan.claim_folder().expect("it can be created");
    fs::create_dir_all(folder.join("tamis/settled")).expect("a store");
    plan.check_folder().expect("it is from a run");
    fs::write(folder.join("notes.txt"), "mine").expect("a file");
    plan.remove_stores().expect("stores are deleted");
    assert!(!folder.join("tamis").exists());
    assert_eq!(fs::read_to_string(folder.join("notes.txt")).expect("kept"), "mine");
    fs::remove_file(folder.join("notes.txt")).expect("a file");
    plan.claim_folder().expect("it exists");
    plan.remove_stores().expect("nothing to do");
    assert!(!folder.exists());
}

#[test]
fn a_folder_without_a_marker_is_rejected() {
    let parent = tempfile::tempdir().expect("a folder");
    let folder = parent.path().join("checkouts");
    fs::create_dir_all(folder.join("tamis/src")).expect("a folder");
    let plan = plan(&folder, &parent.path().join("main.json"), &[]).expect("a plan");
    let failure = plan.check_folder().expect_err("it is not from a run");
    assert!(failure.to_string().contains("give an empty folder"), "{failure}");
}

#[test]
fn too_large_numbers_are_rejected() {
    let path = Path::new("/nowhere");
    for (option, value) in [
        ("--entries", u64::MAX),
        ("--entries", 1 << 60),
        ("--cache-mib", 1 << 50),
        ("--memtable-mib", 1 << 44),
    ] {
        let refused = plan(path, path, &[option, &value.to_string()]);
        assert!(refused.is_err(), "{option} {value}");
    }
}
