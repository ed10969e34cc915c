//! Runs test scripts: blocks of a command, `----`, and the output, with a blank line after each. `TAMIS_REWRITE=1` rewrites the
//! files; review the difference.

use std::{fmt::Write, fs, path::Path};

/// Executes the commands of a file of the crate, and compares the output.
pub(crate) fn run_script(file: &str, mut execute: impl FnMut(&str) -> String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let script = fs::read_to_string(&path).expect("script");
    let mut output = String::new();
    for block in script.split("\n\n").map(|block| block.trim_matches('\n')).filter(|block| !block.is_empty())
    {
        let command = block.split("\n----").next().expect("a first part");
        let printed = execute(command);
        write!(output, "{command}\n----\n{printed}\n").expect("memory");
    }
    output.truncate(output.trim_end().len());
    output.push('\n');
    if std::env::var_os("TAMIS_REWRITE").is_some() {
        fs::write(&path, output).expect("script");
    } else {
        assert_eq!(output, script, "{file}: the output has changed; TAMIS_REWRITE=1 rewrites it");
    }
}
