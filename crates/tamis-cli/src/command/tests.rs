//! The program accepts every example of its help texts.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

use clap::CommandFactory as _;

use super::*;

/// Returns every example of every help text: the words after `tamis`, without remarks, other programs and redirections.
pub(super) fn examples() -> Vec<Vec<String>> {
    let mut lines = Vec::new();
    collect(&Cli::command(), &mut lines);
    lines.iter().map(|line| words(line)).collect()
}

fn collect(command: &clap::Command, lines: &mut Vec<String>) {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let mut of_help = help.lines().skip_while(|line| *line != "Examples:").skip(1);
    while let Some(line) = of_help.next().filter(|line| !line.is_empty()) {
        assert!(line.len() <= 100, "this example is too long: {line}");
        let mut whole = String::new();
        let mut part = line;
        while let Some(front) = part.strip_suffix(" \\") {
            whole += front;
            part = of_help.next().unwrap();
            whole += " ";
            part = part.trim_start();
        }
        lines.push(whole + part);
    }
    command.get_subcommands().for_each(|command| collect(command, lines));
}

fn words(line: &str) -> Vec<String> {
    let command = line.trim_start().split("  ").next().unwrap();
    let own = command.split(" | ").find(|part| part.starts_with("tamis ")).unwrap_or_else(|| {
        panic!("no `tamis` command: {line}");
    });
    own.split(" > ").next().unwrap().split_whitespace().skip(1).map(str::to_owned).collect()
}

/// Parses an example.
pub(super) fn parsed(words: &[String]) -> Cli {
    let all = ["tamis"].into_iter().chain(words.iter().map(String::as_str));
    Cli::try_parse_from(all).unwrap_or_else(|error| panic!("tamis {}: {error}", words.join(" ")))
}

#[test]
fn every_help_example_is_accepted() {
    let examples = examples();
    assert!(examples.len() > 60, "{} examples found", examples.len());
    for words in &examples {
        parsed(words);
    }
}

#[test]
fn examples_are_extracted_without_remarks_and_pipes() {
    assert_eq!(words("  sort a | tamis build - b --no-header  | tamis"), ["build", "-", "b", "--no-header"]);
    assert_eq!(words("  tamis scan store > part    a remark with > and |"), ["scan", "store"]);
}
