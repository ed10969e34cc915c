//! Runs the program like a user: results, messages and exit codes.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

mod bench;
mod demo;
mod entries;
mod filter;
mod generate;
mod interrupts;
mod load;
mod maintenance;
mod readme;
mod terminal;
mod verify_stats;

use std::{
    ffi::OsStr,
    io::Write,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

/// A folder for the stores and files of one test.
struct Folder(tempfile::TempDir);

/// The result of a command.
struct Run {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Runs `tamis` with these arguments in this folder.
    fn tamis(&self, words: &[&str]) -> Run {
        self.tamis_with(words, b"")
    }

    /// Runs `tamis` with `input` on standard input.
    fn tamis_with(&self, words: &[impl AsRef<OsStr>], input: &[u8]) -> Run {
        let mut child = self.command(words).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // A command that fails early does not read its input.
        let _ = stdin.write_all(input);
        drop(stdin);
        Run::from(child.wait_with_output().unwrap())
    }

    fn command(&self, words: &[impl AsRef<OsStr>]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tamis"));
        command.args(words).current_dir(self.0.path()).env("TMPDIR", self.0.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs a command that must succeed with nothing on standard error; returns its output.
    fn ok(&self, words: &[&str]) -> String {
        let run = self.tamis(words);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{}", shown(words));
        run.stdout
    }

    /// Runs a command that must end with `code`; returns its message.
    fn fails(&self, code: i32, words: &[&str]) -> String {
        let run = self.tamis(words);
        assert_eq!(run.code, code, "{}: {}{}", shown(words), run.stdout, run.stderr);
        run.stderr
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    fn is_empty(&self) -> bool {
        std::fs::read_dir(self.0.path()).unwrap().next().is_none()
    }
}

/// The arguments of a command, long ones shortened.
fn shown(words: &[&str]) -> String {
    words.iter().map(|word| word.chars().take(40).collect::<String>()).collect::<Vec<_>>().join(" ")
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

#[test]
fn help_has_examples_and_exit_codes() {
    let folder = Folder::new();
    let help = folder.ok(&["--help"]);
    assert!(help.contains("Examples:") && help.contains("130  interrupted"), "{help}");
    for command in [
        "demo",
        "put",
        "get",
        "delete",
        "scan",
        "load",
        "export",
        "build",
        "ingest",
        "shell",
        "stats",
        "compact",
        "checkpoint",
        "verify",
        "repair",
        "inspect",
        "gen",
        "filter",
        "completions",
        "bench",
    ] {
        assert!(help.contains(command), "{command}");
        let help = folder.ok(&[command, "--help"]);
        assert!(help.contains(&format!("Examples:\n  tamis {command}")), "{help}");
        assert!(help.is_ascii() && help.lines().all(|line| line.len() <= 100), "{help}");
    }
    for words in [
        ["inspect", "table"],
        ["inspect", "block"],
        ["inspect", "filter"],
        ["inspect", "view"],
        ["inspect", "log"],
        ["inspect", "manifest"],
        ["bench", "list"],
        ["bench", "run"],
        ["filter", "eval"],
        ["filter", "advise"],
    ] {
        let help = folder.ok(&[words.as_slice(), &["--help"]].concat());
        assert!(
            help.contains("Examples:") && help.contains(&format!("\n  tamis {}", words.join(" "))),
            "{help}"
        );
    }
    let help = folder.ok(&["gen", "--help"]);
    assert!(help.contains(" ycsb-a ycsb-b ") && help.contains(" shift-hot-spot"), "{help}");
    assert!(folder.ok(&["--version"]).starts_with("tamis 0."));
}

#[test]
fn wrong_command_lines_exit_with_2_and_create_nothing() {
    let folder = Folder::new();
    for words in [
        ["frobnicate"].as_slice(),
        &[],
        &["put", "store"],
        &["put", "store", "key"],
        &["put", "store", "key", "value", "--value-format", "octal"],
        &["put", "store", "--key-format", "u64", "many", "value"],
        &["get", "store", "--key-format", "hex", "0xabc"],
        &["scan", "store", "--prefix", "a", "--lower", "b"],
        &["scan", "store", "--upper", "a", "--upper-exclusive", "b"],
        &["scan", "store", "--limit", "few"],
        &["gen", "out", "--keys", "zeta"],
        &["gen", "out", "--queries", "uniform_r7"],
        &["demo", "--events", "1"],
    ] {
        let message = folder.fails(2, words);
        assert!(!message.is_empty(), "{words:?}");
    }
    assert!(folder.is_empty());
}
