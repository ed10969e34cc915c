//! Plans, and what they delete.

use std::fs;

use clap::Parser;

use super::*;

#[derive(Debug, Parser)]
struct Command {
    #[command(flatten)]
    run: RunArgs,
}

fn parsed(folder: &Path, out: &Path, more: &[&str]) -> std::result::Result<RunArgs, clap::Error> {
    let paths = ["--folder".as_ref(), folder.as_os_str(), "--out".as_ref(), out.as_os_str()];
    let arguments = ["run".as_ref()].into_iter().chain(paths).chain(more.iter().map(AsRef::as_ref));
    Command::try_parse_from(arguments).map(|command| command.run)
}

fn plan(folder: &Path, out: &Path, more: &[&str]) -> RunArgs {
    parsed(folder, out, more).expect("arguments")
}

#[test]
fn results_in_the_folder_of_the_stores_are_rejected() {
    let folder = tempfile::tempdir().expect("a folder");
    for out in ["main.json", "deep/../main.json", "tamis/main.json"] {
        let plan = plan(folder.path(), &folder.path().join(out), &[]);
        let error = plan.check_folder().expect_err("the results would be deleted");
        assert!(error.to_string().contains("give another --out"), "{error}");
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a file of the test")]
fn only_files_of_runs_are_deleted() {
    let parent = tempfile::tempdir().expect("a folder");
    let (folder, out) = (parent.path().join("stores"), parent.path().join("main.json"));
    let plan = plan(&folder, &out, &[]);
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
    let plan = plan(&folder, &parent.path().join("main.json"), &[]);
    let error = plan.check_folder().expect_err("it is not from a run");
    assert!(error.to_string().contains("give an empty folder"), "{error}");
}

#[test]
fn numbers_without_meaning_and_unknown_names_are_rejected() {
    let path = Path::new("/nowhere");
    for (option, value) in [
        ("--entries", u64::MAX),
        ("--entries", 0),
        ("--rounds", 0),
        ("--threads", 0),
        ("--cache-mib", 1 << 50),
        ("--memtable-mib", 1 << 44),
    ] {
        assert!(parsed(path, path, &[option, &value.to_string()]).is_err(), "{option} {value}");
    }
    for (option, name) in [("--stores", "oracle"), ("--workloads", "tpc-c"), ("--states", "solid")] {
        let error = plan(path, path, &[option, name]).points().expect_err("an unknown name");
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[test]
fn the_order_of_the_stores_rotates_in_each_round() {
    let path = Path::new("/nowhere");
    let options = ["--stores", "tamis,tamis-bloom", "--workloads", "seek,open", "--states", "settled"];
    let points = plan(path, path, &[&options[..], &["--rounds", "2"]].concat()).points().expect("points");
    let places: Vec<Place> = points.iter().map(|point| Place::of(point).expect("a place")).collect();
    let of = |name: &str, threads: u64| -> Vec<&str> {
        let own = places.iter().filter(|place| (place.workload.name, place.threads) == (name, threads));
        own.map(|place| place.kind.name).collect()
    };
    for threads in [1, 2] {
        assert_eq!(of("seek", threads), ["tamis", "tamis-bloom", "tamis-bloom", "tamis"]);
    }
    assert_eq!((of("open", 1).len(), of("open", 2).len()), (4, 0));
}
