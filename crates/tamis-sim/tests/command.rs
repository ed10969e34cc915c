//! Bad input on the command line: each is refused by a sentence that says what to do.

use std::process::Command;

fn refused(arguments: &[&str]) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_tamis-sim")).args(arguments).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    String::from_utf8(output.stderr).expect("messages are text")
}

#[test]
fn an_unknown_option_is_refused_with_a_hint() {
    let message = refused(&["--sed", "1"]);
    assert!(message.contains("unexpected argument '--sed'") && message.contains("--seed"), "{message}");
}

#[test]
fn a_seed_of_another_version_is_refused() {
    let message = refused(&["--seed", "1:42"]);
    assert!(message.contains("the seed 1:42 is of history version 1"), "{message}");
    assert!(message.contains("build the program from the commit that reported the seed"), "{message}");
    assert!(refused(&["--seed", "many"]).contains("use a number, or VERSION:NUMBER"));
    assert!(refused(&["--seed", "1", "--keep", "all"]).contains("use for example 3,5-9"));
}

#[test]
fn an_unknown_fault_is_refused() {
    let message = refused(&["--fault", "no-such-fault", "--steps", "10"]);
    assert!(message.contains("no fault has the name") && message.contains("skip-log-sync"), "{message}");
}

#[test]
fn a_folder_for_reports_that_cannot_be_written_is_refused() {
    let message = refused(&["--seed", "1", "--report", "/dev/null/reports"]);
    assert!(message.contains("no report can be written into /dev/null/reports"), "{message}");
    assert!(message.contains("name a folder that can be written"), "{message}");
}
