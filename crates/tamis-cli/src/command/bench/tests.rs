//! Exit codes of failed experiments, and the examples of the help text.

use std::{io, path::PathBuf, sync::Arc};

use tamis::Error;

use super::*;
use crate::command::{
    Command,
    tests::{examples, parsed},
};

#[test]
fn the_help_examples_are_valid() {
    let mut count = 0;
    for words in examples() {
        let Command::Bench(BenchArgs { command: BenchCommand::Run(args) }) = parsed(&words).command else {
            continue;
        };
        let (definitions, options) =
            args.plan(&WORKLOADS).unwrap_or_else(|error| panic!("{words:?}: {error:?}"));
        for definition in definitions {
            let checked = tamis_bench::check(definition, &options);
            // The machine that runs the test may have too little memory or disk.
            let is_right = matches!(checked, Ok(()) | Err(BenchError::InsufficientResources { .. }));
            assert!(is_right, "{words:?}: {checked:?}");
        }
        count += 1;
    }
    assert!(count >= 3, "{count} examples of `bench run`");
}

/// Regression: a full disk and an I/O error during a point ended with the exit code of corruption.
#[test]
fn the_error_of_a_point_determines_the_exit_code() {
    let io = || io::Error::other("refused");
    let path = || PathBuf::from("out");
    let at_point = |source: BenchError| {
        let point =
            BenchError::Point { experiment: "e", point: "keys 7".to_owned(), source: Box::new(source) };
        Failure::from(BenchError::Point { experiment: "all", point: "p".to_owned(), source: Box::new(point) })
    };
    let full = Error::DiskFull { operation: "write", path: path(), source: Arc::new(io()) };
    let refused = Error::Io { operation: "write", path: path(), source: Arc::new(io()) };
    for source in [BenchError::io(path())(io()), BenchError::Store(full), BenchError::Store(refused)] {
        let Failure::Input(text) = at_point(source) else {
            panic!("an I/O error of a point is not an input failure")
        };
        assert!(text.contains("keys 7") && text.contains("out"), "{text}");
    }
    let unknown = || BenchError::Unknown { kind: "metric", name: "m".to_owned(), names: String::new() };
    for source in [BenchError::Store(Error::Closed), BenchError::other("wrong"), unknown()] {
        assert!(matches!(at_point(source), Failure::Damage(text) if text.contains("keys 7")));
    }
    assert!(matches!(unknown().into(), Failure::Usage(_)));
}
