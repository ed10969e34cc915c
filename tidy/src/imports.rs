//! Which modules of one crate a file imports: `use` trees and paths in the code, resolved through re-exports.
//!
//! A path is resolved to the longest prefix that is a module with a file. If that module re-exports the next name
//! (`pub(crate) use run::RunCursor`), the path is resolved further, to the module that defines the name. Names of other
//! crates are ignored.

use std::collections::{BTreeMap, BTreeSet};

use crate::{SourceFile, Tree, mask::words, tree::folder_of};

/// A module as the names from the crate's root: `table/block.rs` is `["table", "block"]`.
pub type Module = Vec<String>;

/// One import: the imported module and the line of the import.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Import {
    /// The imported module.
    pub target: Module,
    /// The line in the importing file.
    pub line: usize,
}

/// The modules of a crate with their files and re-exports.
#[derive(Debug)]
pub struct ModuleMap<'a> {
    files: BTreeMap<Module, &'a SourceFile>,
    reexports: BTreeMap<(Module, String), Module>,
}

impl<'a> ModuleMap<'a> {
    /// Reads the sources (no tests) of a crate.
    pub fn of_crate(tree: &'a Tree, crate_name: &str) -> Self {
        let prefix = format!("{}/src/", folder_of(crate_name));
        let files: BTreeMap<Module, &SourceFile> =
            tree.sources_of(crate_name).map(|file| (module_of(&file.path, &prefix), file)).collect();
        let mut map = Self { files, reexports: BTreeMap::new() };
        let mut reexports = BTreeMap::new();
        for (module, file) in &map.files {
            for (path, alias) in public_uses(&file.code) {
                if let Some(absolute) = map.absolute(module, &path) {
                    reexports.insert((module.clone(), alias), absolute);
                }
            }
        }
        map.reexports = reexports;
        map
    }

    /// The modules with their files; the crate's root has no names.
    pub fn files(&self) -> impl Iterator<Item = (&Module, &'a SourceFile)> {
        self.files.iter().map(|(module, file)| (module, *file))
    }

    /// The imports of `module` from its own crate, without itself, sorted and without duplicates.
    pub fn imports_of(&self, module: &Module) -> Vec<Import> {
        let Some(file) = self.files.get(module) else { return Vec::new() };
        let mut first_lines: BTreeMap<Module, usize> = BTreeMap::new();
        for (offset, path) in paths(&file.code) {
            let target = self.absolute(module, &path).and_then(|absolute| self.resolve(absolute));
            if let Some(target) = target.filter(|target| target != module && !target.is_empty()) {
                let line = file.line_of(offset);
                first_lines.entry(target).and_modify(|first| *first = line.min(*first)).or_insert(line);
            }
        }
        first_lines.into_iter().map(|(target, line)| Import { target, line }).collect()
    }

    /// A path as names from the crate's root; `None` for paths of other crates.
    fn absolute(&self, module: &Module, path: &[String]) -> Option<Module> {
        let (first, rest) = path.split_first()?;
        let mut base = match first.as_str() {
            "crate" => Vec::new(),
            "self" => module.clone(),
            "super" => parent(module),
            _ => {
                let mut child = module.clone();
                child.push(first.clone());
                return self.files.contains_key(&child).then(|| [module.as_slice(), path].concat());
            }
        };
        for name in rest {
            if name == "super" { base = parent(&base) } else { base.push(name.clone()) }
        }
        Some(base)
    }

    /// The module that defines an absolute path, with re-exports resolved.
    fn resolve(&self, mut path: Module) -> Option<Module> {
        let mut seen = BTreeSet::new();
        while seen.insert(path.clone()) {
            let length = (0..=path.len())
                .rev()
                .find(|&length| path.get(..length).is_some_and(|prefix| self.files.contains_key(prefix)))?;
            let module = path.get(..length)?.to_vec();
            let Some(next) =
                path.get(length).and_then(|name| self.reexports.get(&(module.clone(), name.clone())))
            else {
                return Some(module);
            };
            path = next.clone();
        }
        None
    }
}

fn parent(module: &Module) -> Module {
    module.split_last().map(|(_, rest)| rest.to_vec()).unwrap_or_default()
}

/// The module of a file below `prefix`.
fn module_of(path: &str, prefix: &str) -> Module {
    let inner = path.strip_prefix(prefix).unwrap_or(path);
    let inner = inner.strip_suffix(".rs").unwrap_or(inner);
    let inner = inner.strip_suffix("/mod").unwrap_or(inner);
    if inner == "lib" || inner == "main" { Vec::new() } else { inner.split('/').map(str::to_owned).collect() }
}

/// All paths of `use` declarations, and all other paths that begin with `crate::` or `super::`, with their offsets.
fn paths(code: &str) -> Vec<(usize, Vec<String>)> {
    let mut found = Vec::new();
    for (offset, word) in words(code) {
        let tail = code.get(offset + word.len()..).unwrap_or_default();
        match word {
            "use" => {
                let tree = tail.split(';').next().unwrap_or_default();
                found.extend(use_tree(tree, &[]).into_iter().map(|(path, _)| (offset, path)));
            }
            "crate" | "super"
                if tail.starts_with("::") && !code.get(..offset).is_some_and(|c| c.ends_with("::")) =>
            {
                let path = tail.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).next();
                let rest = path.unwrap_or_default().split("::").filter(|name| !name.is_empty());
                let names = [word].into_iter().chain(rest).map(str::to_owned).collect();
                found.push((offset, names));
            }
            _ => {}
        }
    }
    found
}

/// The paths of `pub use` and `pub(...) use` declarations, with the names that they define.
fn public_uses(code: &str) -> Vec<(Vec<String>, String)> {
    let mut found = Vec::new();
    for (offset, _) in words(code).filter(|(_, word)| *word == "use") {
        let before = code.get(..offset).unwrap_or_default().trim_end();
        let statement = before.rsplit([';', '}', '{']).next().unwrap_or_default();
        if words(statement).any(|(_, word)| word == "pub") {
            let tail = code.get(offset + 3..).unwrap_or_default();
            found.extend(use_tree(tail.split(';').next().unwrap_or_default(), &[]));
        }
    }
    found
}

/// The leaves of a `use` tree: their paths and the names that they define.
fn use_tree(text: &str, prefix: &[String]) -> Vec<(Vec<String>, String)> {
    let text = text.trim();
    if let Some((head, group)) = text.split_once('{') {
        let names = head.split("::").map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned);
        let prefix: Vec<String> = prefix.iter().cloned().chain(names).collect();
        let inner = group.trim_end().strip_suffix('}').unwrap_or(group);
        return split_at_top(inner).into_iter().flat_map(|part| use_tree(part, &prefix)).collect();
    }
    let (path, alias) =
        text.split_once(" as ").map_or((text, None), |(path, alias)| (path, Some(alias.trim())));
    let names = path.split("::").map(str::trim).filter(|name| !name.is_empty() && *name != "*");
    let mut path: Vec<String> = prefix.iter().cloned().chain(names.map(str::to_owned)).collect();
    if path.len() > 1 && path.last().is_some_and(|name| name == "self") {
        path.pop();
    }
    let alias = alias.map(str::to_owned).or_else(|| path.last().cloned());
    alias.map(|alias| (path, alias)).into_iter().collect()
}

/// The parts of a group, split at the commas outside of inner groups.
fn split_at_top(group: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    let parts = group.split(move |c: char| {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts.filter(|part| !part.trim().is_empty()).collect()
}

#[cfg(test)]
mod tests;
