//! Who may import whom: between the crates of the workspace, and between the modules of `crates/tamis`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::{
    Finding, Tree,
    imports::{Module, ModuleMap},
};

/// The modules of `crates/tamis` from low to high: a module imports rows below its own. The first row holds leaves,
/// which may import each other. A folder stands for all of its files; `folder/*` for all but its `mod.rs`; the
/// longest entry that fits a module counts.
pub const ROWS: &[&str] = &[
    "error coding file_name key link quarantine slice options open_report runtime metrics events",
    "frame cursor",
    "batch",
    "memtable wal cache/block cache/pinned_cache cache/hotness",
    "table",
    "cache version view",
    "cache/table",
    "cursor/* compaction/scheduler read/snapshot write/back_pressure write/group write/request",
    "engine orphans",
    "compaction write read",
    "recover checkpoint count ingest table_writer statistics",
    "verify",
    "repair inspect fuzz_internals",
    "db",
];

/// Imports that break the table, each with its reason: (importing module, imported module, why).
pub const DEVIATIONS: &[(&str, &str, &str)] = &[];

/// What each crate may import of ours, in its code and in its tests.
const CRATES: &[(&str, &[&str], &[&str])] = &[
    ("tamis-bits", &[], &[]),
    ("tamis-workload", &[], &[]),
    ("tamis-vfs", &[], &["tamis-workload"]),
    ("tamis-filter", &["tamis-bits"], &["tamis-workload"]),
    ("tamis", &["tamis-bits", "tamis-filter", "tamis-vfs"], &["tamis-workload"]),
    ("tamis-bench", &["tamis", "tamis-filter", "tamis-workload"], &[]),
    (
        "tamis-cli",
        &["tamis", "tamis-bench", "tamis-filter", "tamis-vfs", "tamis-workload"],
        &["tamis-workload"],
    ),
    ("tamis-bench-compare", &["tamis", "tamis-workload"], &["tamis-workload"]),
    ("tidy", &[], &[]),
];

/// Crates name in their manifests only the crates of ours that lie below them.
pub fn crate_imports(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for &(name, allowed, allowed_in_tests) in CRATES {
        let path =
            if name == "tidy" { "tidy/Cargo.toml".to_owned() } else { format!("crates/{name}/Cargo.toml") };
        let Some(manifest) = tree.get(&path) else { continue };
        let mut is_dev = false;
        for (index, line) in manifest.text.lines().enumerate() {
            if line.starts_with('[') {
                is_dev = line == "[dev-dependencies]";
                if !line.contains("dependencies") {
                    continue;
                }
            }
            let dependency = line.split(['.', ' ', '=']).next().unwrap_or_default();
            let is_ours = CRATES.iter().any(|(ours, _, _)| *ours == dependency);
            let may = allowed.contains(&dependency) || (is_dev && allowed_in_tests.contains(&dependency));
            if is_ours && line.contains('=') && !may {
                let message =
                    format!("`{name}` may not import `{dependency}`: move what both need to a lower crate");
                findings.push(Finding::new(&path, index + 1, message));
            }
        }
    }
    findings
}

/// The row of a module and the entry that names it.
fn row_of(module: &Module) -> Option<usize> {
    let path = module.join("/");
    let mut best: Option<(usize, usize)> = None;
    for (row, entries) in ROWS.iter().enumerate() {
        for entry in entries.split(' ') {
            let fits = match entry.strip_suffix('*') {
                Some(folder) => path.starts_with(folder),
                None => path == entry || path.starts_with(&format!("{entry}/")),
            };
            if fits && best.is_none_or(|(length, _)| entry.len() > length) {
                best = Some((entry.len(), row));
            }
        }
    }
    best.map(|(_, row)| row)
}

fn is_deviation(source: &Module, target: &Module) -> bool {
    let (source, target) = (source.join("/"), target.join("/"));
    DEVIATIONS.iter().any(|(from, to, why)| *from == source && *to == target && !why.is_empty())
}

/// Modules of `crates/tamis` import lower rows only.
pub fn module_ranks(tree: &Tree) -> Vec<Finding> {
    let map = ModuleMap::of_crate(tree, "tamis");
    let mut findings = Vec::new();
    for (module, file) in map.files().filter(|(module, _)| !module.is_empty()) {
        let Some(row) = row_of(module) else {
            let message =
                "this module has no rank: add it to ROWS in tidy/src/ranks.rs, as low as it can stand";
            findings.push(Finding::new(&file.path, 0, message));
            continue;
        };
        for import in map.imports_of(module) {
            let Some(target_row) = row_of(&import.target) else { continue };
            let is_own_folder = import.target.first() == module.first();
            let is_lower = target_row < row || (target_row == row && row == 0);
            if !is_lower && !is_own_folder && !is_deviation(module, &import.target) {
                let message = format!(
                    "`{}` (rank {row}) imports `{}` (rank {target_row}): a module imports lower ranks only; pass the value \
                     in, or let `db` wire the two together",
                    module.join("::"),
                    import.target.join("::"),
                );
                findings.push(Finding::new(&file.path, import.line, message));
            }
        }
    }
    findings
}

/// No two files of `crates/tamis` need each other, directly or through others; a `mod.rs` and the files of its own
/// folder may, because it is their front.
pub fn no_circles(tree: &Tree) -> Vec<Finding> {
    let map = ModuleMap::of_crate(tree, "tamis");
    let mut graph: BTreeMap<&Module, BTreeMap<Module, usize>> = BTreeMap::new();
    for (module, _) in map.files().filter(|(module, _)| !module.is_empty()) {
        let imports = map.imports_of(module).into_iter();
        let apart = imports
            .filter(|import| !import.target.starts_with(module) && !module.starts_with(&import.target));
        graph.insert(module, apart.map(|import| (import.target, import.line)).collect());
    }
    let mut findings = Vec::new();
    let mut reported = BTreeSet::new();
    for (&module, imports) in &graph {
        for (target, line) in imports.iter().filter(|(target, _)| module < *target) {
            if let Some(way) = way_between(&graph, target, module) {
                if !reported.insert(way.iter().cloned().collect::<BTreeSet<Module>>()) {
                    continue;
                }
                let circle: Vec<String> = way.iter().map(|module| path_of(&map, module)).collect();
                let message = format!(
                    "circle of imports: {} -> {}; move what both need to a file below them",
                    path_of(&map, module),
                    circle.join(" -> ")
                );
                findings.push(Finding::new(&path_of(&map, module), *line, message));
            }
        }
    }
    findings
}

fn path_of(map: &ModuleMap<'_>, module: &Module) -> String {
    map.files()
        .find(|(candidate, _)| *candidate == module)
        .map(|(_, file)| file.path.clone())
        .unwrap_or_default()
}

/// The shortest way of imports from one module to another.
fn way_between(
    graph: &BTreeMap<&Module, BTreeMap<Module, usize>>,
    source: &Module,
    target: &Module,
) -> Option<Vec<Module>> {
    let mut queue = VecDeque::from([vec![source.clone()]]);
    let mut seen = BTreeSet::from([source.clone()]);
    while let Some(way) = queue.pop_front() {
        let last = way.last()?;
        if last == target {
            return Some(way);
        }
        for next in graph.get(last).into_iter().flat_map(BTreeMap::keys) {
            if seen.insert(next.clone()) {
                queue.push_back([way.as_slice(), std::slice::from_ref(next)].concat());
            }
        }
    }
    None
}

/// The root of the engine holds its documentation, its modules and the list of public items; nothing else.
pub fn root_is_a_list(tree: &Tree) -> Vec<Finding> {
    let Some(root) = tree.get("crates/tamis/src/lib.rs") else { return Vec::new() };
    let items = crate::mask::words(&root.code)
        .filter(|(_, word)| ["fn", "struct", "enum", "trait", "impl", "static", "const"].contains(word));
    let advice = "lib.rs lists modules and public items only: move this to the module it belongs to";
    items.map(|(offset, _)| Finding::new(&root.path, root.line_of(offset), advice)).collect()
}

#[cfg(test)]
mod tests;
