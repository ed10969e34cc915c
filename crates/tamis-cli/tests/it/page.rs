//! `page`: the pages of stores of different layouts and states, which `tests/browser/run` also opens in a browser.

use std::path::PathBuf;

use tamis::{Db, Filters, KeyspaceOptions, Layout, Options};
use tamis_workload::SplitMix64;

use crate::Folder;

/// Where the pages go: `TAMIS_PAGES` if the browser's test asks for them.
fn page_file(folder: &Folder, name: &str) -> PathBuf {
    std::env::var_os("TAMIS_PAGES").map_or_else(|| folder.path(name), |pages| PathBuf::from(pages).join(name))
}

/// Runs `tamis page` for the folder `store`; checks what all pages have in common.
fn page_of(folder: &Folder, name: &str) -> String {
    let file = page_file(folder, name);
    let shown = folder.ok(&["page", "store", "-o", file.to_str().unwrap()]);
    assert_eq!(shown.trim(), file.to_str().unwrap());
    let page = String::from_utf8(std::fs::read(file).unwrap()).unwrap();
    check(&page);
    page
}

fn check(page: &str) {
    assert!(page.starts_with("<!doctype html>\n") && page.ends_with("</html>\n"), "{page}");
    for reference in ["<script", "http:", "https:", "src=", "href=", "@import", "url("] {
        assert!(!page.contains(reference), "{reference}");
    }
    // Each picture says what would be bad.
    let (pictures, sentences) =
        (page.matches("<figure>").count(), page.matches("; it would be bad if ").count());
    assert_eq!(pictures, sentences);
    for question in [
        "Does anything wait, and why?",
        "Where is the data?",
        "How much do the filters save?",
        "Which work would make reads faster?",
        "How much do writes cost?",
        "Which deleted data still takes space?",
        "Does anything keep files?",
    ] {
        assert!(page.contains(&format!("<h2>{question}</h2>")), "{question}");
    }
}

fn key(number: u64) -> String {
    format!("user-{number:08}")
}

#[test]
fn a_page_draws_runs_filters_and_deleted_data() {
    let folder = Folder::new();
    // The page of a closed store shows the queries that its program has sampled.
    let db = Db::open_with(folder.path("store"), Options::default().sample_file(true)).unwrap();
    for number in 0..40_000 {
        db.put(key(number), [7; 60]).unwrap();
    }
    db.compact_range(&db.default_keyspace(), ..).unwrap();
    for run in 0..3_u64 {
        (0..500).for_each(|number| db.put(key(70 * number + run), [8; 60]).unwrap());
        (0..300).for_each(|number| db.delete(key(30_000 + 10 * number + run)).unwrap());
        db.flush().unwrap();
    }
    db.delete_range(key(8_000)..key(16_000)).unwrap();
    db.put("<script>alert(1)</script>", "bad").unwrap();
    db.flush().unwrap();
    for number in 0..3_000_u64 {
        let lower = key(number * 13 + 2) + "a";
        assert_eq!(db.range(lower.clone()..lower + "b").count(), 0);
        drop(db.get(key(number * 7)).unwrap());
    }
    db.close().unwrap();
    let page = page_of(&folder, "runs.html");
    assert!(page.contains("&lt;script&gt;"), "the first key is shown");
    assert!(page.contains("user-00008000 to user-00016000"), "the deleted range is named");
    assert!(page.contains("false positive") && page.contains("default: closed ranges"), "{page}");
    assert!(page.contains("Nothing was written since the store was opened"), "{page}");
    assert!(page.contains("Reads have lost no time"), "{page}");
    let message =
        folder.fails(4, &["page", "store", "-o", page_file(&folder, "runs.html").to_str().unwrap()]);
    assert!(message.contains("already exists; give another name"), "{message}");
    let message = folder.fails(3, &["page", "absent", "-o", "new.html"]);
    assert!(message.contains("name the folder of a store") && !folder.path("new.html").exists(), "{message}");
}

#[test]
fn the_shell_draws_what_its_reads_and_writes_cost() {
    let folder = Folder::new();
    let mut script = String::new();
    for run in 0..3 {
        (0..200).for_each(|number| script.push_str(&format!("put k{:05} {run}\n", 10 * number + run)));
        script.push_str("flush\n");
    }
    (0..500).for_each(|number| script.push_str(&format!("scan --lower k{number:05} --limit 2\n")));
    let file = page_file(&folder, "shell.html");
    script.push_str(&format!("page {}\nquit\n", file.display()));
    let run = folder.tamis_with(&["shell", "store"], script.as_bytes());
    assert_eq!(run.code, 0, "{}", run.stderr);
    let page = String::from_utf8(std::fs::read(file).unwrap()).unwrap();
    check(&page);
    assert!(page.contains("that the job takes") && page.contains("default: merge the runs"), "{page}");
    assert!(page.contains("write amplification") && page.contains("tables of flushes"), "{page}");
}

#[test]
fn a_page_of_many_tables_and_partitions_stays_small() {
    let folder = Folder::new();
    let layout = Layout::partitioned();
    let default_keyspace =
        KeyspaceOptions::default().memtable_bytes(64 << 10).table_bytes(64 << 10).layout(layout);
    let db =
        Db::open_with(folder.path("store"), Options::default().default_keyspace(default_keyspace)).unwrap();
    let mut random = SplitMix64::new(7);
    for _ in 0..60_000 {
        db.put(random.next_u64().to_be_bytes(), [7; 60]).unwrap();
    }
    // More keyspaces than are drawn, with names that are no HTML.
    for number in 0..10 {
        let options = KeyspaceOptions::default().filters(Filters::none());
        let keyspace = db.create_keyspace(&format!("<b>{number}</b>"), options).unwrap();
        (0..=number * 100_u64).for_each(|key| keyspace.put(key.to_be_bytes(), "value").unwrap());
    }
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    let table_count = db.tables(&db.default_keyspace()).unwrap().len();
    db.close().unwrap();
    let page = page_of(&folder, "partitions.html");
    assert!(table_count > 50 && page.contains("partitions, which are merged independently"), "{table_count}");
    assert!(
        page.contains("Keyspace &lt;b&gt;9&lt;/b&gt;") && page.contains("smaller keyspaces with "),
        "{page}"
    );
    assert!(page.len() < 1 << 20, "{} bytes", page.len());
}

#[test]
fn the_page_of_an_empty_store_says_that_it_is_empty() {
    let folder = Folder::new();
    folder.ok(&["put", "store", "apple", "red"]);
    let page = page_of(&folder, "empty.html");
    assert!(page.contains("0 entries in 0 tables") && page.contains("No tables yet"), "{page}");
}
