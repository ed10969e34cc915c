//! Counts the instructions of fixed workloads under valgrind and compares them with the recorded counts.
//!
//! `cargo run --profile dist -p tamis-bench --bin instruction-counts` fails if a count grew by more than 3 %; `-- --accept`
//! records the counts of this build; `-- --only TEXT` selects the cases whose names contain the text. Exit codes: 0 no count
//! grew; 1 a count grew or a case failed; 2 valgrind is missing or an argument is unknown.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    sync::atomic::{AtomicUsize, Ordering},
};

use tamis_bench::{
    BenchError,
    instructions::{Case, cases},
};

/// The recorded counts: instructions per operation, by case.
type Record = BTreeMap<String, f64>;

const RECORD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/instruction_counts.json");
/// Maximum growth of a count, in percent.
const GROWTH_MAX: f64 = 3.0;
const USAGE: &str = "usage: instruction-counts [--accept] [--only TEXT]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["case", name] => run_case(name).map(|()| true),
        [] => compare("", false),
        ["--accept"] => compare("", true),
        ["--only", text] => compare(text, false),
        ["--only", text, "--accept"] | ["--accept", "--only", text] => compare(text, true),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

/// Runs one case; the child process under valgrind calls it.
fn run_case(name: &str) -> Result<(), BenchError> {
    let case = cases()
        .into_iter()
        .find(|case| case.name == name)
        .ok_or_else(|| BenchError::other(format!("no case named {name:?}")))?;
    let folder = tempfile::tempdir().map_err(BenchError::io("a temporary folder"))?;
    println!("{}", case.run(&folder.path().join("store"))?);
    Ok(())
}

/// Counts the cases whose names contain `text`, prints them next to the record, and writes the record if asked.
fn compare(text: &str, accept: bool) -> Result<bool, BenchError> {
    let cases: Vec<Case> = cases().into_iter().filter(|case| case.name.contains(text)).collect();
    if cases.is_empty() {
        return Err(BenchError::other(format!(
            "no case name contains {text:?}; leave out --only to run all cases"
        )));
    }
    let mut record = read_record()?;
    let counted = count_all(&cases)?;
    let mut is_within = true;
    println!("{:<52} {:>12} {:>12} {:>8}", "instructions per operation", "recorded", "now", "change");
    for (name, &now) in &counted {
        let (recorded, change) = match record.get(name) {
            Some(&recorded) => (format!("{recorded:.1}"), (now / recorded - 1.0) * 100.0),
            None => ("-".to_owned(), 0.0),
        };
        let has_grown = change > GROWTH_MAX;
        is_within &= !has_grown;
        println!(
            "{name:<52} {recorded:>12} {now:>12.1} {change:>+7.2}%{}",
            if has_grown { "  grew too much" } else { "" }
        );
    }
    if accept {
        record.extend(counted);
        if text.is_empty() {
            record.retain(|name, _| cases.iter().any(|case| case.name == *name));
        }
        let text = serde_json::to_string_pretty(&record).map_err(BenchError::other)? + "\n";
        std::fs::write(RECORD, text).map_err(BenchError::io(RECORD))?;
        println!("recorded in {RECORD}");
        return Ok(true);
    }
    if !is_within {
        println!(
            "a count grew by more than {GROWTH_MAX} %; reduce it, or record it with --accept and give the reason in the commit"
        );
    }
    Ok(is_within)
}

fn read_record() -> Result<Record, BenchError> {
    match std::fs::read_to_string(RECORD) {
        Ok(text) => serde_json::from_str(&text).map_err(BenchError::other),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Record::new()),
        Err(error) => Err(BenchError::io(RECORD)(error)),
    }
}

/// Counts all cases, as many in parallel as there are processors.
fn count_all(cases: &[Case]) -> Result<Record, BenchError> {
    let program = std::env::current_exe().map_err(BenchError::io("this program"))?;
    let folder = tempfile::tempdir().map_err(BenchError::io("a temporary folder"))?;
    let names: Vec<(&str, u64)> = cases.iter().map(|case| (case.name.as_str(), case.operations)).collect();
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut counted = Vec::new();
        while let Some((name, operations)) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
            let output =
                folder.path().join(format!("{}.out", name.replace(|c: char| !c.is_alphanumeric(), "-")));
            let instructions = count(&program, name, &output)?;
            counted
                .push(((*name).to_owned(), (instructions as f64 * 10.0 / *operations as f64).round() / 10.0));
        }
        Ok::<_, BenchError>(counted)
    };
    let thread_count = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..thread_count).map(|_| scope.spawn(worker)).collect();
        let mut record = Record::new();
        for thread in threads {
            let counted = thread.join().map_err(|_| BenchError::other("a counting thread panicked"))?;
            record.extend(counted?);
        }
        Ok(record)
    })
}

/// Runs one case under valgrind and reads the number of instructions from its output file.
fn count(program: &Path, name: &str, output: &PathBuf) -> Result<u64, BenchError> {
    let result = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg("--collect-atstart=no")
        .arg("--toggle-collect=*instructions*measured_region*")
        .arg(format!("--callgrind-out-file={}", output.display()))
        .arg(program)
        .args(["case", name])
        .output()
        .map_err(|error| BenchError::other(format!("cannot start valgrind ({error}); install it")))?;
    if !result.status.success() {
        let text = String::from_utf8_lossy(&result.stderr);
        return Err(BenchError::other(format!("{name}: {}\n{text}", result.status)));
    }
    let text = std::fs::read_to_string(output).map_err(BenchError::io(output))?;
    let sum = text.lines().find_map(|line| line.strip_prefix("summary: ").or(line.strip_prefix("totals: ")));
    match sum.and_then(|sum| sum.trim().parse().ok()) {
        Some(sum) if sum > 0 => Ok(sum),
        _ => Err(BenchError::other(format!(
            "{name}: no instruction count in {}; check the version of valgrind",
            output.display()
        ))),
    }
}
