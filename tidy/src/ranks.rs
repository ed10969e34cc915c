//! Allowed imports: between the crates of the workspace, and between the modules of `crates/tamis`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::{
    Finding, Tree,
    imports::{Module, ModuleMap},
    tree::folder_of,
};

/// The modules of `crates/tamis` from low to high: a module imports rows below its own. The first row holds leaves,
/// which may import each other. A folder means all of its files; `folder/*` means all except its `mod.rs`; the
/// longest entry that matches a module is valid.
pub const ROWS: &[&str] = &[
    "store observe admin transaction transaction/key_ranges transaction/exclusive transaction/reads sync error store/changed_keyspaces coding empty_ranges expiry merge_operator file_name key key_range_bounds range_tombstone admin/link admin/quarantine slice options store/open_report store/runtime observe/metrics observe/read_times observe/advise observe/events store/background_error store/guarded observe/steps store/store_folder store/flush_slot store/memory_budget store/readers observe/query_sample",
    "frame cursor cursor/run",
    "batch",
    "changes/event",
    "memtable wal cache/block cache/pinned_cache cache/hotness",
    "table",
    "view",
    "cache version",
    "cache/table",
    "cursor/* compaction/back_off compaction/due_jobs compaction/plan compaction/law compaction/scheduler read/snapshot write/back_pressure write/group",
    "store/context store/orphans",
    "store/keyspace_state store/commit_log",
    "store/version_installer observe/sample_file",
    "store/parts",
    "transaction/own_writes transaction/recent_commits transaction/condition",
    "compaction read",
    "write transaction/write_set",
    "store/recover admin/checkpoint admin/table_writer observe/statistics",
    "admin/verify admin/ingest store/follower",
    "admin/repair admin/inspect store/engine",
    "changes",
    "db",
    "transaction/scan transaction/handle",
];

/// Imports that break the table, each with its reason: (importing module, imported module, why).
pub const DEVIATIONS: &[(&str, &str, &str)] = &[];

/// The crates of the workspace that each crate may import, in its code and in its tests.
const CRATES: &[(&str, &[&str], &[&str])] = &[
    ("tamis-bits", &[], &[]),
    ("tamis-workload", &[], &[]),
    ("tamis-vfs", &[], &["tamis-workload"]),
    // Its own tests enable the feature `trie-index`.
    ("tamis-filter", &["tamis-bits"], &["tamis-filter", "tamis-workload"]),
    ("tamis", &["tamis-bits", "tamis-filter", "tamis-vfs"], &["tamis-workload"]),
    ("tamis-backup", &["tamis", "tamis-vfs"], &["tamis-workload"]),
    ("tamis-bench", &["tamis", "tamis-filter", "tamis-workload"], &[]),
    (
        "tamis-cli",
        &["tamis", "tamis-backup", "tamis-bench", "tamis-filter", "tamis-vfs", "tamis-workload"],
        &["tamis-workload"],
    ),
    ("tamis-sim", &["tamis", "tamis-vfs", "tamis-workload"], &[]),
    ("tamis-research", &["tamis", "tamis-bench", "tamis-filter", "tamis-workload"], &[]),
    ("tamis-compare", &["tamis", "tamis-bench", "tamis-workload"], &["tamis-workload"]),
    ("tamis-slatedb", &["tamis-filter"], &["tamis-workload"]),
    ("tidy", &[], &[]),
];

/// Manifests name only the crates of the workspace that are below the crate.
pub fn crate_imports(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for &(name, allowed, allowed_in_tests) in CRATES {
        let path = format!("{}/Cargo.toml", folder_of(name));
        let Some(manifest) = tree.get(&path) else { continue };
        let (mut is_dev, mut is_list) = (false, false);
        for (index, line) in manifest.text.lines().enumerate() {
            if line.starts_with('[') {
                is_dev = line == "[dev-dependencies]";
                is_list = line.contains("dependencies");
            }
            if !is_list {
                continue;
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

/// Folders of `crates/tamis/src` that group modules of several ranks.
const ROOMS: &[&str] = &["admin", "observe", "store"];

/// The folder whose files may import each other; in a room, each module is one.
fn place_of(module: &Module) -> &[String] {
    let is_in_room = module.first().is_some_and(|first| ROOMS.contains(&first.as_str()));
    module.get(..1 + usize::from(is_in_room)).unwrap_or(module)
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
                "this module has no rank: add it to ROWS in tidy/src/ranks.rs, in the lowest possible row";
            findings.push(Finding::new(&file.path, 0, message));
            continue;
        };
        for import in map.imports_of(module) {
            let Some(target_row) = row_of(&import.target) else { continue };
            let is_own_folder = place_of(module) == place_of(&import.target);
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

/// No circles in any crate.
pub fn no_circles(tree: &Tree) -> Vec<Finding> {
    CRATES.iter().flat_map(|(name, _, _)| circles_of(tree, name)).collect()
}

/// No two files of a crate need each other, directly or through others; a module and the files of its folder may,
/// because it is their front. Circles are reported from the shortest on; each import occurs in one of them only.
pub fn circles_of(tree: &Tree, crate_name: &str) -> Vec<Finding> {
    let map = ModuleMap::of_crate(tree, crate_name);
    let mut graph = Graph::new();
    for (module, _) in map.files().filter(|(module, _)| !module.is_empty()) {
        let imports = map.imports_of(module).into_iter();
        let outside = imports
            .filter(|import| !import.target.starts_with(module) && !module.starts_with(&import.target));
        graph.insert(module.clone(), outside.map(|import| (import.target, import.line)).collect());
    }
    let mut findings = Vec::new();
    while let Some(circle) = shortest_circle(&graph) {
        let files: Vec<String> = circle.iter().map(|module| path_of(&map, module)).collect();
        let mut first_line = None;
        for pair in circle.windows(2) {
            let [source, target] = pair else { continue };
            let line = graph.get_mut(source).and_then(|imports| imports.remove(target));
            first_line = first_line.or(line);
        }
        let message =
            format!("circle of imports: {}; move what both need to a file below them", files.join(" -> "));
        findings.push(Finding::new(
            files.first().map_or("", String::as_str),
            first_line.unwrap_or(0),
            message,
        ));
    }
    findings
}

/// The imports of each module, with their lines.
type Graph = BTreeMap<Module, BTreeMap<Module, usize>>;

/// A circle of the fewest modules; its first module is also its last.
fn shortest_circle(graph: &Graph) -> Option<Vec<Module>> {
    let routes =
        graph.iter().flat_map(|(module, imports)| imports.keys().map(move |target| (module, target)));
    let circles = routes.filter_map(|(module, target)| {
        let route = shortest_route(graph, target, module)?;
        Some([std::slice::from_ref(module), &route].concat())
    });
    circles.min_by_key(Vec::len)
}

fn path_of(map: &ModuleMap<'_>, module: &Module) -> String {
    map.files()
        .find(|(candidate, _)| *candidate == module)
        .map(|(_, file)| file.path.clone())
        .unwrap_or_default()
}

/// The shortest chain of imports from one module to another.
fn shortest_route(graph: &Graph, source: &Module, target: &Module) -> Option<Vec<Module>> {
    let mut queue = VecDeque::from([vec![source.clone()]]);
    let mut seen = BTreeSet::from([source.clone()]);
    while let Some(route) = queue.pop_front() {
        let last = route.last()?;
        if last == target {
            return Some(route);
        }
        for next in graph.get(last).into_iter().flat_map(BTreeMap::keys) {
            if seen.insert(next.clone()) {
                queue.push_back([route.as_slice(), std::slice::from_ref(next)].concat());
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
