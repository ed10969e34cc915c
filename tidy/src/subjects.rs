//! Subjects of commits: `area: do this`, imperative and short, so that `git log --oneline` reads as a list of changes.

/// The longest subject in characters.
pub const SUBJECT_CHARACTERS_MAX: usize = 72;

/// First words that no imperative begins with.
const NO_VERBS: &[&str] = &[
    "a", "an", "the", "this", "that", "what", "who", "where", "when", "how", "if", "all", "some", "no",
    "more", "new",
];

/// Imperatives that end like another form of a verb.
const IMPERATIVES: &[&str] = &[
    "access", "address", "bring", "bypass", "compress", "cross", "discuss", "embed", "exceed", "express",
    "feed", "focus", "harness", "need", "pass", "press", "process", "proceed", "ring", "seed", "speed",
    "spring", "string", "stress", "suppress", "toss",
];

/// The rule that a subject breaks; `None` if it breaks none.
pub fn violation(subject: &str) -> Option<String> {
    let length = subject.chars().count();
    if length > SUBJECT_CHARACTERS_MAX {
        return Some(format!("{length} characters, at most {SUBJECT_CHARACTERS_MAX}"));
    }
    let is_unfinished = |prefix: &&str| subject.to_ascii_lowercase().starts_with(prefix);
    if let Some(prefix) = ["wip", "fixup!", "squash!", "amend!"].iter().find(|prefix| is_unfinished(prefix)) {
        return Some(format!("`{prefix}`: squash it into the commit that it belongs to"));
    }
    let Some((area, action)) = subject.split_once(": ") else {
        return Some("no `area: ` in front: write `area: do this`".to_owned());
    };
    let is_area_character = |character: char| {
        character.is_ascii_lowercase() || character.is_ascii_digit() || "_,/. -".contains(character)
    };
    if !area.starts_with(|first: char| first.is_ascii_alphanumeric()) || !area.chars().all(is_area_character)
    {
        return Some(format!("`{area}` is no area: write crates, modules or topics in lower case"));
    }
    let verb = action.split(' ').next().unwrap_or_default();
    if !verb.starts_with(|first: char| first.is_ascii_lowercase()) {
        return Some("no verb in lower case follows the area: write `area: do this`".to_owned());
    }
    let is_other_form = ["s", "ed", "ing"].iter().any(|ending| verb.ends_with(ending));
    if NO_VERBS.contains(&verb) || (is_other_form && !IMPERATIVES.contains(&verb)) {
        return Some(format!("`{verb}` is no imperative: write `area: do this`"));
    }
    action.ends_with('.').then(|| "a subject has no full stop".to_owned())
}

#[cfg(test)]
mod tests;
