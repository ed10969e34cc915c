//! Runs the program like a user: results, messages and exit codes.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

mod backup;
mod bench;
mod demo;
mod entries;
mod filter;
mod generate;
#[cfg(unix)]
mod interrupts;
mod load;
mod maintenance;
mod other_processes;
mod page;
mod readme;
#[cfg(unix)]
mod terminal;
mod top;
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
        command.args(words).current_dir(self.0.path());
        // The folder of temporary files: the first name is that of Unix, the second that of Windows.
        command.env("TMPDIR", self.0.path()).env("TMP", self.0.path());
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
        "page",
        "top",
        "compact",
        "checkpoint",
        "backup",
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
        ["backup", "list"],
        ["backup", "verify"],
        ["backup", "restore"],
        ["backup", "prune"],
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
fn messages_of_bad_input_have_the_value_and_the_remedy() {
    let folder = Folder::new();
    folder.write("file", "text");
    folder.write("empty.csv", "key,value\n");
    folder.write("full.csv", "key,value\napple,red\n");
    folder.write("bad.jsonl", "apple\n");
    folder.write("words", "a\nb\n");
    folder.write("ranges", "a\tb\n");
    folder.ok(&["put", "store", "apple", "red"]);
    for (code, words, value, remedy) in [
        (2, &["scan", "store", "--limit", "few"][..], "'few'", "--limit <N>': give a whole number"),
        (2, &["scan", "store", "--limit", "-1"], "'-1'", "--limit <N>': give a whole number"),
        (
            2,
            &["build", "full.csv", "new", "--zstd", "20"],
            "'20'",
            "--zstd <LEVEL>': give a number from 1 to 19",
        ),
        (
            2,
            &["get", "store", "--key-format", "u64", "-1"],
            "\"-1\"",
            "a number from 0 to 18446744073709551615",
        ),
        (2, &["filter", "advise"], "", "give both --keys and --queries, or --store"),
        (2, &["filter", "advise", "--queries", "ranges"], "", "give both --keys and --queries, or --store"),
        (
            2,
            &["filter", "advise", "--store", "store", "--bits-per-key", "99"],
            "--bits-per-key 99",
            "at most 64",
        ),
        (2, &["filter", "advise", "--store", "store", "--read-time", "-1"], "--read-time -1", "above 0"),
        (2, &["delete", "store", "apple", "--all"], "", "give only one of these"),
        (2, &["load", "store", "file"], "file", "add --format csv"),
        (2, &["delete", "store", "--prefix", ""], "--prefix", "give --all to delete them"),
        (3, &["get", "absent", "apple"], "absent", "name the folder of a store\n"),
        (3, &["repair", "absent"], "absent", "name the folder of a store\n"),
        (3, &["put", "file", "apple", "red"], "file", "or an empty or new folder to create one"),
        (3, &["get", "file", "apple"], "file", "name the folder of a store"),
        (3, &["scan", "store", "--keyspace", "nuts"], "\"nuts\" in /", "/store; there are: default"),
        (3, &["checkpoint", "store", "store"], "store", "name a folder outside of the store"),
        (3, &["verify", "file"], "file", "name the folder of a store\n"),
        (4, &["checkpoint", "store", "file"], "file: is a file", "name a folder that is new or empty"),
        (4, &["checkpoint", "store", "file/copy"], "file/copy", "check the path"),
        (4, &["build", "full.csv", "file"], "file: already exists", "choose another name or delete it"),
        (4, &["build", "full.csv", "absent/out.table"], "absent/out.table", "check that the path exists"),
        (4, &["load", "store", "bad.jsonl"], "bad.jsonl: line 1: column 1", "correct the line"),
        (4, &["load", "store", "absent.csv"], "absent.csv", "check that the path exists"),
        (4, &["ingest", "store", "absent.table"], "absent.table", "check that the path exists"),
        (4, &["ingest", "store", "file"], "file", "check it or create it again"),
        (4, &["export", "store", "absent/out.jsonl"], "absent/out.jsonl", "check that the path exists"),
        (4, &["inspect", "table", "absent"], "absent", "check that the path exists"),
        (4, &["inspect", "table", "store"], "store", "give a file"),
        (4, &["inspect", "manifest", "file"], "file", "check it or create it again"),
        (4, &["inspect", "file"], "file", "give a table, filter file, sorted view, log segment or manifest"),
        (4, &["inspect", "absent"], "absent", "check that the path exists"),
        (2, &["inspect"], "inspect", "<FILE>"),
        (4, &["build", "empty.csv", "out.table"], "empty.csv", "give an input with at least one entry"),
    ] {
        let message = folder.fails(code, words);
        assert!(message.contains(value) && message.contains(remedy), "{words:?}: {message}");
        assert_eq!(message.lines().next().map(|line| line.matches("tamis: ").count() <= 1), Some(true));
    }
    let eval = |family| {
        let files = ["filter", "eval", "--keys", "words", "--queries", "ranges", "--family", family];
        folder.fails(2, &files)
    };
    assert!(eval("elastic").contains("elastic needs a budget: give the bits per key with --bits-per-key"));
    assert!(eval("elastic@10").contains("give the bits per key with --bits-per-key"));
    assert!(eval("elastic:probes=0").contains("probes=0 is not possible; use 1 to 16 bits"));
    let run = folder.tamis_with(&["shell", "store"], b"scan --limit few\n");
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("line 1: ") && run.stderr.contains("give a whole number"), "{}", run.stderr);
    assert_eq!(folder.ok(&["get", "store", "apple"]).trim(), "red");
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
