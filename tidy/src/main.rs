//! Lists findings while someone writes: words of files and folders, circles of imports, and subjects of commits that break the
//! rules. `cargo test -p tidy` checks the whole tree.

use std::{env, io, path::Path, process::ExitCode};

use tidy::{Finding, Tree, ranks, subjects, words};

const USAGE: &str = "usage: tidy words PATH...
       tidy circles CRATE...
       tidy subjects

words    lists the words of tidy/words.txt that occur in files and folders (paths from the root of the workspace;
         without PATH: in all), with the words to write instead
circles  lists the circles of imports between the files of crates
subjects lists the subjects of commits on the standard input, one a line, that are not `area: do this`

The exit code is 1 if there are findings.";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    let tree = Tree::load(root).map_err(|error| format!("{}: {error}", root.display()));
    match tree.and_then(|tree| findings(&tree, &arguments)) {
        Ok(findings) => {
            for finding in &findings {
                println!("{finding}");
            }
            eprintln!("findings: {}", findings.len());
            if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) }
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

fn findings(tree: &Tree, arguments: &[String]) -> Result<Vec<Finding>, String> {
    match arguments.split_first() {
        Some((command, paths)) if command == "words" => {
            match paths.iter().find(|path| !tree.contains(path)) {
                Some(missing) => Err(format!(
                    "`{missing}` is no file or folder of the workspace (paths are from its root)"
                )),
                None => Ok(words::findings_below(tree, paths)),
            }
        }
        Some((command, crates)) if command == "circles" && !crates.is_empty() => {
            Ok(crates.iter().flat_map(|name| ranks::circles_of(tree, name)).collect())
        }
        Some((command, [])) if command == "subjects" => bad_subjects(),
        _ => Err(USAGE.to_owned()),
    }
}

/// Checks the lines of the standard input.
fn bad_subjects() -> Result<Vec<Finding>, String> {
    let text = io::read_to_string(io::stdin()).map_err(|error| format!("the standard input: {error}"))?;
    let bad = text.lines().filter_map(|subject| Some((subject, subjects::violation(subject)?)));
    Ok(bad.map(|(subject, rule)| Finding::new("subject", 0, format!("{subject}: {rule}"))).collect())
}
