//! Exit codes of what an experiment met, and that the examples name what there is.

use std::{io, sync::Arc};

use tamis::Error;

use super::*;
use crate::command::{
    Command,
    tests::{examples, parsed},
};

#[test]
fn the_examples_name_experiments_and_parameters_that_there_are() {
    let mut count = 0;
    for words in examples() {
        let Command::Bench(BenchArgs { command: BenchCommand::Run(args) }) = parsed(&words).command else {
            continue;
        };
        let (definitions, options) = args.plan().unwrap_or_else(|failure| panic!("{words:?}: {failure:?}"));
        for definition in definitions {
            let checked = tamis_bench::check(definition, &options);
            // The machine of the test may be too small.
            let is_right = matches!(checked, Ok(()) | Err(BenchError::TooLittle { .. }));
            assert!(is_right, "{words:?}: {checked:?}");
        }
        count += 1;
    }
    assert!(count >= 3, "{count} examples of `bench run`");
}

/// A full disk and a refusal of the system ended with the code of damage where a point met them.
#[test]
fn what_a_point_met_decides_about_the_exit_code() {
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
        let Failure::Input(text) = at_point(source) else { panic!("a point's input or output failed") };
        assert!(text.contains("keys 7") && text.contains("out"), "{text}");
    }
    let unknown = || BenchError::Unknown { kind: "metric", name: "m".to_owned(), names: String::new() };
    for source in [BenchError::Store(Error::Closed), BenchError::other("wrong"), unknown()] {
        assert!(matches!(at_point(source), Failure::Damage(text) if text.contains("keys 7")));
    }
    assert!(matches!(unknown().into(), Failure::Usage(_)));
}
