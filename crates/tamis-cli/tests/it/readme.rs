//! The tour of the README is what the program does: each `$ tamis` line is run, and prints what stands below it.

use super::Folder;

/// Numbers vary with the sizes of formats; which words stand around them does not.
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
fn the_tour_of_the_readme_works_as_shown() {
    let readme = include_str!("../../../../README.md");
    let tour = readme.split("```console\n").nth(1).unwrap().split("```").next().unwrap();
    let folder = Folder::new();
    let mut command_count = 0;
    for step in tour.split("$ tamis ").skip(1) {
        let (command, expected) = step.split_once('\n').unwrap();
        let words: Vec<&str> = command.split(' ').collect();
        assert_eq!(without_numbers(&folder.ok(&words)), without_numbers(expected), "tamis {command}");
        command_count += 1;
    }
    assert!(command_count > 5, "the tour was not found");
}
