//! Every Rust file is declared by a `mod`, every page is linked, and pages that texts name exist.

use std::collections::BTreeSet;

use crate::{Finding, SourceFile, Tree, mask::words};

/// Every `.rs` file is a root that cargo finds, or is declared by a `mod` of such a file.
pub fn dead_sources(tree: &Tree) -> Vec<Finding> {
    let mut alive: BTreeSet<&str> = BTreeSet::new();
    let mut queue: Vec<&SourceFile> = tree.rust_files().filter(|file| is_root(&file.path)).collect();
    let mut findings = Vec::new();
    while let Some(file) = queue.pop() {
        if !alive.insert(&file.path) {
            continue;
        }
        for (line, name) in declared_modules(file) {
            let candidates = module_paths(file, line, &name);
            match candidates.iter().find_map(|path| tree.get(path)) {
                Some(module) => queue.push(module),
                None => findings.push(Finding::new(&file.path, line, format!("`mod {name};` names no file"))),
            }
        }
    }
    let dead = tree.rust_files().filter(|file| !alive.contains(file.path.as_str()));
    findings.extend(
        dead.map(|file| Finding::new(&file.path, 0, "no `mod` names this file: declare it or delete it")),
    );
    findings
}

/// Files that cargo compiles without a declaration: crate roots, tests, benches, examples, fuzz targets.
fn is_root(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    let is_source = parts.contains(&"src");
    match parts.as_slice() {
        [.., "src", "lib.rs" | "main.rs"] | [.., "src", "bin", _] => true,
        [.., "build.rs"] => !is_source,
        [.., "fuzz_targets", _] => true,
        [.., "tests" | "benches" | "examples", _, "main.rs"] => !is_source,
        [.., "tests" | "benches" | "examples", _] => !is_source,
        _ => false,
    }
}

/// The modules that a file declares without a body, with their lines.
fn declared_modules(file: &SourceFile) -> Vec<(usize, String)> {
    let all: Vec<(usize, &str)> = words(&file.code).collect();
    let pairs = all.windows(2).filter_map(|pair| match pair {
        [(offset, "mod"), (name_offset, name)] => {
            let after = file.code.get(name_offset + name.len()..).unwrap_or_default();
            after.trim_start().starts_with(';').then(|| (file.line_of(*offset), (*name).to_owned()))
        }
        _ => None,
    });
    pairs.collect()
}

/// The paths that `mod name;` at a line of a file may mean. An attribute `path` in the line above names it. Without one, the modules of a
/// root or a `mod.rs` are in the same folder, those of other files in a folder with the name of the file.
fn module_paths(file: &SourceFile, line: usize, name: &str) -> [String; 2] {
    let above = line.checked_sub(2).and_then(|above| file.text.lines().nth(above)).unwrap_or_default();
    let named = above.trim().strip_prefix("#[path = \"").and_then(|path| path.strip_suffix("\"]"));
    if let Some(path) = named {
        return [resolve(&file.path, path), String::new()];
    }
    let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let base = if is_root(&file.path) || file.stem() == "mod" {
        folder.to_owned()
    } else {
        format!("{folder}/{}", file.stem())
    };
    [format!("{base}/{name}.rs"), format!("{base}/{name}/mod.rs")]
}

/// Every page below `docs/` is named by another text, and every `docs/...md` that a text names exists.
pub fn dead_pages(tree: &Tree) -> Vec<Finding> {
    let mut named: BTreeSet<String> = BTreeSet::new();
    let mut findings = Vec::new();
    for file in tree.files().filter(|file| !file.path.starts_with("tidy/")) {
        for (line, target) in named_pages(file) {
            if !tree.contains(&target) {
                let message = format!("`{target}` does not exist: write the page, or name the right one");
                findings.push(Finding::new(&file.path, line, message));
            } else if target != file.path {
                named.insert(target);
            }
        }
    }
    let pages = tree.files().filter(|file| file.path.starts_with("docs/") && file.path.ends_with(".md"));
    let unnamed = pages.filter(|page| !named.contains(&page.path));
    findings.extend(unnamed.map(|page| {
        Finding::new(
            &page.path,
            0,
            "no text links this page: link it from ARCHITECTURE.md, another page, or the code",
        )
    }));
    findings
}

/// Paths that begin with `docs/` and targets of relative links, from the root of the workspace.
fn named_pages(file: &SourceFile) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let mut rest = line;
        while let Some((_, tail)) = rest.split_once("docs/") {
            let length =
                tail.find(|c: char| !(c.is_ascii_alphanumeric() || "-_./".contains(c))).unwrap_or(tail.len());
            let (name, after) = tail.split_at_checked(length).unwrap_or((tail, ""));
            if name.trim_end_matches('.').ends_with(".md") {
                found.push((index + 1, format!("docs/{}", name.trim_end_matches('.'))));
            }
            rest = after;
        }
        if file.path.ends_with(".md") {
            found.extend(link_targets(line).map(|target| (index + 1, resolve(&file.path, target))));
        }
    }
    found
}

/// Targets of `[text](target)` on one line that are paths.
fn link_targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|tail| {
        let target = tail.split([')', '#', ' ']).next()?;
        (!target.is_empty() && !target.contains("://") && !target.contains('`')).then_some(target)
    })
}

/// A relative link of a file as a path from the root.
fn resolve(path: &str, target: &str) -> String {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests;
