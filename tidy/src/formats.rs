//! Rules about completeness: format pages have golden files, options have docs and tests, dependencies have reasons and
//! users.

use crate::{Finding, SourceFile, Tree};

/// Topics of every format page, each with a word that the page must contain.
const FORMAT_TOPICS: &[(&str, &str)] = &[
    ("```", "a picture of the bytes in a code block"),
    ("checksum", "what each checksum covers"),
    ("limit", "the limits"),
    ("refuse", "what readers must refuse"),
    ("history", "the history by version"),
];

/// Pages that do not describe the bytes of a file, and so have no golden file.
const WITHOUT_GOLDEN: &[(&str, &str)] = &[("directory", "names of files, tested in file_name.rs")];

fn format_pages(tree: &Tree) -> impl Iterator<Item = &SourceFile> {
    tree.files().filter(|file| file.path.starts_with("docs/format/") && file.path.ends_with(".md"))
}

/// Every format page covers all topics.
pub fn format_pages_are_whole(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for page in format_pages(tree) {
        let text = page.text.to_lowercase();
        for (word, topic) in FORMAT_TOPICS.iter().filter(|(word, _)| !text.contains(word)) {
            let message = format!("the page lacks {topic} (it does not contain `{word}`)");
            findings.push(Finding::new(&page.path, 0, message));
        }
    }
    findings
}

/// Every format page has frozen bytes: a file with its name in a `golden` folder, or a golden test that names it.
pub fn format_pages_have_golden_files(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for page in format_pages(tree) {
        let name = page.stem();
        let has_file = tree.paths().any(|path| {
            path.split_once("/golden/").is_some_and(|(_, file)| file.contains(name) && !file.ends_with(".rs"))
        });
        let is_named = tree
            .rust_files()
            .any(|file| file.is_test() && file.path.contains("golden") && file.text.contains(name));
        let is_exempt = WITHOUT_GOLDEN.iter().any(|(exempt, _)| *exempt == name);
        if !(has_file || is_named || is_exempt) {
            let advice = format!("freeze its bytes as `tests/golden/{name}...` and compare them in a test");
            findings.push(Finding::new(&page.path, 0, advice));
        }
    }
    findings
}

/// The limit on the number of options, both structs together.
const OPTION_COUNT_MAX: usize = 18;

/// A public field of a struct.
struct PublicField<'a> {
    name: &'a str,
    line: usize,
    docs: String,
}

/// Every option documents its unit or values and its default, and a test names it; their number has a limit.
pub fn options_have_docs_and_tests(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let files = tree.rust_files().filter(|file| file.path == "crates/tamis/src/options.rs");
    for file in files {
        let fields = public_fields(&file.text, "Options {");
        // The options of the default keyspace are those of any keyspace. The key codec is a name that the store does not use.
        let is_counted = |field: &&PublicField<'_>| !["default_keyspace", "key_codec"].contains(&field.name);
        let count = fields.iter().filter(is_counted).count();
        if count > OPTION_COUNT_MAX {
            let message =
                format!("{count} options, at most {OPTION_COUNT_MAX} are allowed: make some constants");
            findings.push(Finding::new(&file.path, 0, message));
        }
        for field in fields {
            if !field.docs.contains("Default:") {
                let message = format!("`{}`: document unit, effect and `Default:`", field.name);
                findings.push(Finding::new(&file.path, field.line, message));
            }
            if !is_tested(tree, field.name) {
                let message =
                    format!("`{}`: no test of crates/tamis names it; show that it matters", field.name);
                findings.push(Finding::new(&file.path, field.line, message));
            }
        }
    }
    findings
}

/// A test names each statistic.
pub fn statistics_have_tests(tree: &Tree) -> Vec<Finding> {
    let files = tree.rust_files().filter(|file| file.path == "crates/tamis/src/observe/metrics.rs");
    let fields = files.flat_map(|file| {
        let listed = listed_numbers(&file.text);
        public_fields(&file.text, "Statistics {").into_iter().chain(listed).map(move |field| (file, field))
    });
    let untested = fields.filter(|(_, field)| !is_tested(tree, field.name)).map(|(file, field)| {
        let message = format!("`{}`: no test of crates/tamis names it; show what moves it", field.name);
        Finding::new(&file.path, field.line, message)
    });
    untested.collect()
}

/// Whether a test of the store names it.
fn is_tested(tree: &Tree, name: &str) -> bool {
    let mut tests = tree.rust_files().filter(|file| file.is_test() && file.path.starts_with("crates/tamis/"));
    tests.any(|test| test.names(name))
}

/// The names in the list of `numbers!`, which declares most fields of the statistics.
fn listed_numbers(text: &str) -> Vec<PublicField<'_>> {
    let lines = text.lines().enumerate().skip_while(|(_, line)| !line.starts_with("numbers! {"));
    let within = lines.take_while(|(_, line)| !line.starts_with('}'));
    let is_name = |name: &&str| name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    let names = within.filter_map(|(index, line)| Some((index, line.trim().strip_suffix(',')?)));
    let names = names.filter(|(_, name)| is_name(name));
    names.map(|(index, name)| PublicField { name, line: index + 1, docs: String::new() }).collect()
}

/// Public fields of structs whose heading ends with `ending`, with the doc comment above each.
fn public_fields<'a>(text: &'a str, ending: &str) -> Vec<PublicField<'a>> {
    let mut fields = Vec::new();
    let mut is_inside = false;
    let mut docs = String::new();
    for (index, line) in text.lines().enumerate() {
        if line.starts_with("pub struct ") {
            is_inside = line.ends_with(ending);
        } else if line.starts_with('}') {
            is_inside = false;
        }
        let line = line.trim_start();
        if let Some(doc) = line.strip_prefix("///") {
            docs.push_str(doc);
        } else if let Some((name, _)) = line.strip_prefix("pub ").and_then(|field| field.split_once(':')) {
            if is_inside {
                fields.push(PublicField { name, line: index + 1, docs: docs.clone() });
            }
            docs.clear();
        } else {
            docs.clear();
        }
    }
    fields
}

/// The lines of a `[...dependencies]` part of a manifest: line, name, whole text.
fn dependencies<'a>(manifest: &'a SourceFile, heading: &str) -> Vec<(usize, &'a str, &'a str)> {
    let mut is_inside = false;
    let mut found = Vec::new();
    for (index, line) in manifest.text.lines().enumerate() {
        if line.starts_with('[') {
            is_inside = line.ends_with(heading);
        } else if is_inside && line.contains('=') && !line.trim_start().starts_with('#') {
            let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
            found.push((index + 1, name, line));
        }
    }
    found
}

/// The workspace's manifest states a reason for every external crate, and each crate uses its dependencies.
pub fn dependencies_have_reasons_and_users(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(root) = tree.get("Cargo.toml") {
        for (line, name, text) in dependencies(root, "[workspace.dependencies]") {
            if !text.contains("path =") && !text.contains("# ") {
                let message =
                    format!("`{name}`: add a comment at the end of the line with the reason for it");
                findings.push(Finding::new(&root.path, line, message));
            }
        }
    }
    for manifest in tree.files().filter(|file| file.path.ends_with("/Cargo.toml")) {
        let folder = manifest.path.trim_end_matches("Cargo.toml");
        for (line, name, _) in dependencies(manifest, "dependencies]") {
            let word = name.replace('-', "_");
            let mut users = tree.rust_files().filter(|file| file.path.starts_with(folder));
            if !users.any(|file| file.text.contains(&word)) {
                let message = format!("no file of this crate names `{word}`: remove the dependency");
                findings.push(Finding::new(&manifest.path, line, message));
            }
        }
    }
    findings
}

/// The files that every reader expects at the root.
const EXPECTED: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
    ".ci/run",
    "Cargo.lock",
    "deny.toml",
    "docs/format/directory.md",
    "docs/format/filter.md",
    "docs/format/manifest.md",
    "docs/format/table.md",
    "docs/format/wal.md",
];

/// All expected files exist.
pub fn expected_files(tree: &Tree) -> Vec<Finding> {
    let missing = EXPECTED.iter().filter(|path| !tree.contains(path));
    missing.map(|path| Finding::new(path, 0, "missing: every reader expects it")).collect()
}

#[cfg(test)]
mod tests;
