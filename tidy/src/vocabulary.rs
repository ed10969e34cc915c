//! The table of words that the tree does not use (`words.txt`), and the search for them.
//!
//! The table has three sections, because a word can be wrong as prose and right as an identifier, or the reverse:
//!
//! - **phrases**: consecutive words in any text. Letters, digits and apostrophes are words; identifiers are split at `_`
//!   and before capitals, so `read_from_disk` contains `from disk`. A phrase may continue on the next line of a comment or
//!   a literal, but not across punctuation.
//! - **names**: whole identifiers, compared letter by letter, in code. In comments and pages they are compared if they
//!   can't be English words: with a `_` or a capital inside, or between backquotes.
//! - **parts of names**: words that no declared name contains.
//!
//! Cost: one pass through the text; each word looks up the patterns that begin with it.

use std::collections::HashMap;

use crate::{Finding, SourceFile};

/// The table that is part of this crate.
const STANDARD: &str = include_str!("../words.txt");

/// Words that are not used, by kind.
#[derive(Debug, Default)]
pub struct Vocabulary {
    phrases: HashMap<String, Vec<Phrase>>,
    names: Vec<Entry>,
    name_parts: Vec<Entry>,
}

/// Consecutive words; each position is a list of alternatives.
#[derive(Debug)]
struct Phrase {
    positions: Vec<Vec<String>>,
    replacement: String,
}

/// An identifier, or a part of one.
#[derive(Debug)]
struct Entry {
    word: String,
    /// The entry is valid in files whose path begins with this.
    prefix: String,
    replacement: String,
}

/// A word of a text.
struct Word<'a> {
    text: &'a str,
    offset: usize,
    /// Nothing but spaces, `_` and comment markers separates it from the word before.
    continues: bool,
}

impl Vocabulary {
    /// The table of this workspace.
    ///
    /// # Errors
    /// The line of `words.txt` that can't be parsed.
    pub fn standard() -> Result<Self, String> {
        Self::parse(STANDARD)
    }

    /// Parses a table.
    ///
    /// # Errors
    /// The first line that is not a section, a comment, or `pattern => replacement`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut vocabulary = Self::default();
        let mut section = "";
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                section = name;
                continue;
            }
            let (pattern, replacement) =
                line.split_once(" => ").ok_or_else(|| format!("no ` => ` in `{line}`"))?;
            match section {
                "phrases" => vocabulary.add_phrase(pattern, replacement),
                "names" => vocabulary.names.push(Entry::new(pattern, replacement)),
                "parts of names" => vocabulary.name_parts.push(Entry::new(pattern, replacement)),
                _ => return Err(format!("`{line}` is in no known section")),
            }
        }
        Ok(vocabulary)
    }

    fn add_phrase(&mut self, pattern: &str, replacement: &str) {
        let positions: Vec<Vec<String>> =
            pattern.split(' ').map(|position| position.split('|').map(str::to_owned).collect()).collect();
        for first in positions.first().into_iter().flatten() {
            let phrase = Phrase { positions: positions.clone(), replacement: replacement.to_owned() };
            self.phrases.entry(first.clone()).or_default().push(phrase);
        }
    }

    /// The phrases and names in a file, in the order of lines.
    pub fn findings(&self, file: &SourceFile) -> Vec<Finding> {
        let mut found = self.phrases_in(&file.text);
        found.extend(self.names_in(file));
        found.sort_by_key(|(offset, _)| *offset);
        let lines = LineIndex::new(&file.text);
        found
            .into_iter()
            .map(|(offset, message)| Finding::new(&file.path, lines.line_of(offset), message))
            .collect()
    }

    fn phrases_in(&self, text: &str) -> Vec<(usize, String)> {
        let words = split_words(text);
        let lower: Vec<String> = words.iter().map(|word| word.text.to_ascii_lowercase()).collect();
        let mut found = Vec::new();
        for (index, word) in words.iter().enumerate() {
            let by_case = [word.text, lower.get(index).map_or("", String::as_str)];
            let keys = if by_case[0] == by_case[1] { &by_case[1..] } else { &by_case[..] };
            let phrases = keys.iter().filter_map(|key| self.phrases.get(*key)).flatten();
            for phrase in phrases.filter(|phrase| phrase.fits(&words, &lower, index)) {
                let matched: Vec<&str> =
                    words.iter().skip(index).take(phrase.positions.len()).map(|word| word.text).collect();
                let message = format!("`{}`: write {}", matched.join(" "), phrase.replacement);
                found.push((word.offset, message));
            }
        }
        found
    }

    fn names_in(&self, file: &SourceFile) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        for entry in self.names.iter().filter(|entry| file.path.starts_with(&entry.prefix)) {
            for (offset, _) in file.text.match_indices(&entry.word) {
                if is_whole(&file.text, offset, &entry.word) && is_identifier(file, offset, &entry.word) {
                    found.push((offset, format!("`{}`: write {}", entry.word, entry.replacement)));
                }
            }
        }
        found
    }

    /// The replacement for a part of a declared name (in lower case) in the file at `path`.
    pub fn replacement_of_part(&self, part: &str, path: &str) -> Option<&str> {
        let mut fitting =
            self.name_parts.iter().filter(|entry| entry.word == part && path.starts_with(&entry.prefix));
        fitting.next().map(|entry| entry.replacement.as_str())
    }
}

impl Phrase {
    fn fits(&self, words: &[Word<'_>], lower: &[String], first: usize) -> bool {
        self.positions.iter().enumerate().all(|(position, alternatives)| {
            let index = first + position;
            let (Some(word), Some(lower)) = (words.get(index), lower.get(index)) else { return false };
            (position == 0 || word.continues)
                && alternatives
                    .iter()
                    .any(|alternative| alternative == "*" || alternative == lower || alternative == word.text)
        })
    }
}

impl Entry {
    fn new(pattern: &str, replacement: &str) -> Self {
        let (word, prefix) = pattern.split_once(" in ").unwrap_or((pattern, ""));
        Self { word: word.to_owned(), prefix: prefix.to_owned(), replacement: replacement.to_owned() }
    }
}

/// Offsets of the lines of a text.
struct LineIndex(Vec<usize>);

impl LineIndex {
    fn new(text: &str) -> Self {
        Self(text.match_indices('\n').map(|(offset, _)| offset).collect())
    }

    fn line_of(&self, offset: usize) -> usize {
        1 + self.0.partition_point(|&end| end < offset)
    }
}

/// The words of a text. Identifiers are split at `_` and before capitals.
fn split_words(text: &str) -> Vec<Word<'_>> {
    let mut words: Vec<Word<'_>> = Vec::new();
    let mut end = 0;
    let mut start = None;
    let mut was_lower = false;
    for (offset, character) in text.char_indices().chain([(text.len(), ' ')]) {
        let is_inside = character.is_alphanumeric() || (character == '\'' && start.is_some() && was_lower);
        let splits = !is_inside || (character.is_uppercase() && was_lower);
        if let Some(begin) = start.filter(|_| splits) {
            let separator = text.get(end..begin).unwrap_or_default();
            let word = text.get(begin..offset).unwrap_or_default();
            words.push(Word { text: word, offset: begin, continues: continues(separator) });
            end = offset;
            start = None;
        }
        if is_inside && start.is_none() {
            start = Some(offset);
        }
        was_lower =
            character.is_lowercase() || character.is_ascii_digit() || (character == '\'' && is_inside);
    }
    words
}

/// Whether a phrase may continue across a separator: spaces, `_`, and on the next line the marker of a comment, the
/// margin of a quotation, or the end of a literal's line.
fn continues(separator: &str) -> bool {
    let is_space = |character: char| character.is_whitespace() || character == '_';
    match separator.split_once('\n') {
        None => separator.chars().all(is_space),
        Some((before, after)) => {
            before.chars().all(|character| is_space(character) || character == '\\')
                && !after.contains('\n')
                && after.chars().all(|character| is_space(character) || "/!#>".contains(character))
        }
    }
}

/// Whether no letter, digit or `_` touches the match.
fn is_whole(text: &str, offset: usize, word: &str) -> bool {
    let is_part = |character: Option<char>| character.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let before = text.get(..offset).and_then(|text| text.chars().next_back());
    let after = text.get(offset + word.len()..).and_then(|text| text.chars().next());
    !is_part(before) && !is_part(after)
}

/// Whether a match is an identifier: it is in code, or it can't be an English word, or backquotes enclose it.
fn is_identifier(file: &SourceFile, offset: usize, word: &str) -> bool {
    let has_inner_capital =
        word.chars().zip(word.chars().skip(1)).any(|(a, b)| a.is_lowercase() && b.is_uppercase());
    if has_inner_capital || word.contains(['_', ':']) {
        return true;
    }
    let is_code = file.code.get(offset..offset + word.len()) == Some(word);
    let before = file.text.get(..offset).is_some_and(|text| text.ends_with('`'));
    let after = file.text.get(offset + word.len()..).is_some_and(|text| text.starts_with('`'));
    is_code || (before && after)
}

/// The words of an identifier, in lower case: of `read_seqNo` they are `read`, `seq`, `no`.
pub(crate) fn parts(name: &str) -> Vec<String> {
    split_words(name).iter().map(|word| word.text.to_lowercase()).collect()
}

#[cfg(test)]
mod tests;
