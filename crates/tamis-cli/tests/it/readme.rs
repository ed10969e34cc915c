//! The commands of the README work: each `$ tamis` line is run and must succeed and print the lines
//! that follow it in the README.

use super::Folder;

/// Replaces each number by `#`: numbers vary with the sizes of formats.
fn without_numbers(text: &str) -> String {
    let mut shown = String::new();
    for character in text.chars() {
        let shown_character = if character.is_ascii_digit() { '#' } else { character };
        if !(shown_character == '#' && shown.ends_with('#')) {
            shown.push(shown_character);
        }
    }
    shown
}

#[test]
fn the_commands_of_the_readme_work_as_shown() {
    let readme = include_str!("../../../../README.md");
    let section = readme.split("```console\n").nth(1).unwrap().split("```").next().unwrap();
    let folder = Folder::new();
    let mut command_count = 0;
    for step in section.split("$ tamis ").skip(1) {
        let (line, expected) = step.split_once('\n').unwrap();
        let command = line.split(" #").next().unwrap();
        let words: Vec<&str> = command.split_whitespace().collect();
        let printed = folder.ok(&words);
        // The README shows no output for commands with a comment.
        if !line.contains(" #") {
            assert_eq!(without_numbers(&printed), without_numbers(expected), "tamis {command}");
        }
        command_count += 1;
    }
    assert!(command_count > 5, "the README has no commands");
}
