//! `tidy words PATH...`: lists the words that the tree does not use in files and folders, whether pending or not.

use std::{env, path::Path, process::ExitCode};

use tidy::{Tree, words};

const USAGE: &str = "usage: tidy words PATH...\n\
    Lists the words of tidy/words.txt that occur in files and folders (from the root of the workspace; all without PATH),\n\
    with the words to write instead. The exit code is 1 if there are any.";

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    if arguments.next().as_deref() != Some("words") {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    }
    let paths: Vec<String> = arguments.collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    let tree = match Tree::load(root) {
        Ok(tree) => tree,
        Err(error) => {
            eprintln!("{}: {error}", root.display());
            return ExitCode::from(2);
        }
    };
    if let Some(missing) = paths.iter().find(|path| !tree.contains(path)) {
        eprintln!("`{missing}` is no file or folder of the workspace: write paths from its root");
        return ExitCode::from(2);
    }
    let findings = words::findings_below(&tree, &paths);
    for finding in &findings {
        println!("{finding}");
    }
    eprintln!("{} findings", findings.len());
    if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) }
}
