//! `verify` and `stats`.

use crate::Folder;

fn store() -> Folder {
    let folder = Folder::new();
    let rows: String = (0..5000).map(|row| format!("key{row:06},value {row}\n")).collect();
    folder.write("rows.csv", rows);
    folder.ok(&["load", "store", "rows.csv", "--no-header"]);
    folder
}

#[test]
fn an_intact_store_has_no_faults() {
    let folder = store();
    assert!(folder.ok(&["verify", "store"]).contains("no faults"));
    let report: serde_json::Value = serde_json::from_str(&folder.ok(&["verify", "store", "--json"])).unwrap();
    assert_eq!(report["faults"].as_array().unwrap().len(), 0);
}

#[test]
fn a_flipped_bit_is_reported_with_file_and_offset() {
    let folder = store();
    let table = std::fs::read_dir(folder.path("store"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|extension| extension == "table"))
        .unwrap();
    let mut bytes = std::fs::read(&table).unwrap();
    bytes[5000] ^= 1;
    std::fs::write(&table, bytes).unwrap();
    let run = folder.tamis(&["verify", "store"]);
    let name = table.file_name().unwrap().to_str().unwrap();
    assert_eq!(run.code, 3, "{}", run.stdout);
    let shown = format!("{}{}", run.stdout, run.stderr);
    assert!(shown.contains(name) && shown.contains("offset 4096"), "{shown}");
    // A read of the damaged block fails instead of returning wrong data.
    let message = folder.fails(3, &["scan", "store"]);
    assert!(message.contains(name), "{message}");
}

#[test]
fn stats_list_levels_and_files() {
    let folder = store();
    let text = folder.ok(&["stats", "store", "--all"]);
    assert!(text.contains("default") && text.contains("5,000") && text.contains("*.table"), "{text}");
    let report: serde_json::Value = serde_json::from_str(&folder.ok(&["stats", "store", "--json"])).unwrap();
    assert_eq!(report["keyspaces"][0]["layout"], "leveled");
    let levels = report["keyspaces"][0]["levels"].as_array().unwrap();
    let entries: u64 = levels.iter().map(|level| level["entries"].as_u64().unwrap()).sum();
    assert_eq!(entries, 5000);
    assert!(text.contains("Snapshots: 0"), "{text}");
    let filters = report["keyspaces"][0]["filters"].as_array().unwrap();
    let counted: u64 = filters.iter().map(|filters| filters["entries"].as_u64().unwrap()).sum();
    assert!(counted == 5000 && filters.iter().all(|filters| filters["filters"] != ""), "{report}");
    for filters in filters {
        let line = format!("of default in L{}: {}", filters["level"], filters["filters"].as_str().unwrap());
        assert!(text.contains(&line) && text.contains("bits per entry"), "{line}: {text}");
    }
    let pins = &report["pins"];
    assert_eq!((pins["snapshots"].as_u64(), pins["held_bytes"].as_u64()), (Some(0), Some(0)), "{report}");
    folder.ok(&["delete", "store", "--prefix", "key0001"]);
    folder.ok(&["compact", "store"]);
    let report: serde_json::Value = serde_json::from_str(&folder.ok(&["stats", "store", "--json"])).unwrap();
    assert!(report["keyspaces"][0]["levels"][0]["range_tombstones"].is_u64(), "{report}");
    assert_eq!(report["keyspaces"][0]["views"]["count"], 0);
    assert!(report["files"].as_array().unwrap().iter().any(|file| file["kind"] == "CURRENT"));
}

#[test]
fn stats_answer_five_questions_in_80_columns() {
    let folder = store();
    folder.ok(&["delete", "store", "--prefix", "key0001"]);
    let text = folder.ok(&["stats", "store"]);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let questions: Vec<&str> = text.lines().filter(|line| line.ends_with('?')).collect();
    assert_eq!(
        questions,
        [
            "Where is the data?",
            "How many blocks does a read cost?",
            "How many blocks did the filters save?",
            "Does anything wait, and why?",
            "Does anything keep files?",
        ]
    );
    assert!(text.contains("  default: ") && text.contains("5,000 entries"), "{text}");
    assert!(text.contains("The next open, for"), "{text}");
}

#[test]
fn stats_for_prometheus_are_series() {
    let folder = store();
    let text = folder.ok(&["stats", "store", "--prometheus"]);
    assert!(text.contains("# TYPE tamis_level_entries gauge\n"), "{text}");
    let level =
        text.lines().filter(|line| line.starts_with("tamis_level_entries{keyspace=\"default\",level="));
    let entries: u64 = level.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(entries, 5000, "{text}");
    folder.fails(2, &["stats", "store", "--prometheus", "--json"]);
}

#[test]
fn stats_list_the_sorted_views_of_each_keyspace() {
    let folder = Folder::new();
    // Without workers, a flush builds the view.
    let options = tamis::Options::default().workers(0);
    let db = tamis::Db::open_with(folder.path("store"), options).unwrap();
    let options = tamis::KeyspaceOptions::default()
        .level0_runs(64)
        .views(tamis::Views::On)
        .filters(tamis::Filters::none());
    let keyspace = db.create_keyspace("viewed", options).unwrap();
    let fill = |from: u64| {
        for number in (from..40_000_u64).step_by(4) {
            let key = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
            keyspace.put(key, number.to_be_bytes()).unwrap();
        }
        db.flush().unwrap();
    };
    (0..4).for_each(fill);
    drop(keyspace);
    db.close().unwrap();
    let text = folder.ok(&["stats", "store", "--all"]);
    let line = text.lines().find(|line| line.contains("sorted view")).unwrap_or_default();
    assert!(line.starts_with("1 sorted view of viewed: 4 runs, 40,000 entries, "), "{text}");
    assert!(line.contains(" bytes per entry)"), "{line}");
    let report: serde_json::Value = serde_json::from_str(&folder.ok(&["stats", "store", "--json"])).unwrap();
    let keyspaces = report["keyspaces"].as_array().unwrap();
    let views = &keyspaces.iter().find(|keyspace| keyspace["name"] == "viewed").unwrap()["views"];
    assert_eq!((views["count"].as_u64(), views["open"].as_u64()), (Some(1), Some(1)), "{report}");
    assert_eq!((views["runs"].as_u64(), views["entries"].as_u64()), (Some(4), Some(40_000)), "{report}");
    let bytes = views["bytes"].as_u64().unwrap();
    assert!((100_000..160_000).contains(&bytes), "{report}");
    let run = folder.tamis_with(&["shell", "store"], b"stats\nquit\n");
    assert!(run.stdout.contains("of viewed"), "{}", run.stdout);
}

#[test]
fn stats_list_partitions_with_their_shares_and_advise_names_a_layout() {
    let folder = Folder::new();
    let default_keyspace = tamis::KeyspaceOptions::default()
        .memtable_bytes(64 << 10)
        .table_bytes(64 << 10)
        .layout(tamis::Layout::partitioned());
    let options = tamis::Options::default().default_keyspace(default_keyspace);
    let db = tamis::Db::open_with(folder.path("store"), options).unwrap();
    for number in 0..20_000_u64 {
        db.put(number.to_be_bytes(), [7; 100]).unwrap();
    }
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    db.close().unwrap();
    let text = folder.ok(&["stats", "store", "--all"]);
    assert!(text.contains("partition from") && text.contains("##"), "{text}");
    let report: serde_json::Value = serde_json::from_str(&folder.ok(&["stats", "store", "--json"])).unwrap();
    let keyspace = &report["keyspaces"][0];
    assert!(keyspace["partition_count"].as_u64().unwrap() > 3, "{report}");
    assert_eq!(
        keyspace["partitions"].as_array().unwrap().len() as u64,
        keyspace["partition_count"].as_u64().unwrap()
    );
    let advice = folder.ok(&["advise", "store", "--written", "100000000000"]);
    assert!(advice.contains("Recommended: ") && advice.contains("leveled"), "{advice}");
    let scans = ["advise", "store", "--written", "1000", "--scans", "1000000", "--json"];
    let advice: serde_json::Value = serde_json::from_str(&folder.ok(&scans)).unwrap();
    assert_eq!(advice["recommended"], "leveled", "{advice}");

    // The same counts from the statistics of a program.
    let statistics = "{\"user_bytes_written\": 1000, \"point_reads\": 0, \"range_scans\": 400000, \
        \"prefix_scans\": 300000, \"forward_seeks\": 200000, \"backward_seeks\": 100000, \"keyspaces\": []}";
    folder.write("statistics.json", statistics);
    let of_file = ["advise", "store", "--statistics", "statistics.json", "--json"];
    assert_eq!(serde_json::from_str::<serde_json::Value>(&folder.ok(&of_file)).unwrap(), advice);
    folder.write("statistics.json", "{\"point_reads\": 1}");
    let refusal = folder.fails(4, &of_file);
    assert!(refusal.contains("statistics.json") && refusal.contains("no count `"), "{refusal}");
    assert!(folder.fails(2, &["advise", "store"]).contains("--written"));
}

#[test]
fn stats_list_the_sampled_queries() {
    let folder = store();
    assert!(!folder.ok(&["stats", "store", "--all"]).contains("in the sample"), "nothing was read yet");
    // The program keeps the sample of a closed store, and so do commands.
    let options = tamis::Options::default().sample_file(true);
    tamis::Db::open_with(folder.path("store"), options).unwrap().close().unwrap();
    let script = "compact\nget key000001\nget key000002\nscan --prefix key00001\nquit\n";
    let run = folder.tamis_with(&["shell", "store"], script.as_bytes());
    assert_eq!(run.code, 0, "{}", run.stderr);
    let text = folder.ok(&["stats", "store", "--all"]);
    assert!(text.contains("points") && text.contains("prefixes") && text.contains("SAMPLES"), "{text}");
    let report: serde_json::Value = serde_json::from_str(&folder.ok(&["stats", "store", "--json"])).unwrap();
    assert_eq!(report["keyspaces"][0]["sampled_queries"][0]["kept"], 2);
    assert_eq!(report["keyspaces"][0]["sampled_queries"][2]["kept"], 1);
}

#[test]
fn stats_count_queries_that_are_too_long_for_the_sample_and_name_the_interval() {
    let folder = store();
    let longest = tamis::SAMPLED_BOUND_BYTES_MAX;
    let absent = "x".repeat(longest - 3);
    // Each shell begins with all queries; after 2,048 of them it samples 1 of 2.
    let mut script = format!(
        "compact\nscan --prefix key{absent}\nscan --prefix key0{absent}\nscan --prefix key00{absent}\n"
    );
    (0..2_100).for_each(|number| script.push_str(&format!("scan --prefix key{number:06}a\n")));
    script.push_str("stats\nquit\n");
    let options = tamis::Options::default().sample_file(true);
    tamis::Db::open_with(folder.path("store"), options).unwrap().close().unwrap();
    let run = folder.tamis_with(&["shell", "store"], script.as_bytes());
    assert_eq!(run.code, 0, "{}", run.stderr);
    let line = format!("Not in the sample of default: 2 queries with a bound of more than {longest} bytes");
    assert!(run.stdout.contains(&line) && run.stdout.contains("1 of 2"), "{}", run.stdout);
    let text = folder.ok(&["stats", "store", "--all"]);
    assert!(text.contains(&line) && text.contains("1 of 1"), "{text}");
    let report: serde_json::Value = serde_json::from_str(&folder.ok(&["stats", "store", "--json"])).unwrap();
    let keyspace = &report["keyspaces"][0];
    assert_eq!(keyspace["queries_too_long"], 2, "{report}");
    assert_eq!(keyspace["sampled_queries"][2]["interval"], 1, "{report}");
}

/// Symptom: `stats --json` left out the filters of tables that can't be read, without a word.
#[test]
fn stats_list_unreadable_tables_with_their_errors() {
    let folder = Folder::new();
    let db = tamis::Db::open(folder.path("store")).unwrap();
    for table in 0..3_u64 {
        db.put(table.to_be_bytes(), [7; 100]).unwrap();
        db.flush().unwrap();
    }
    db.close().unwrap();
    let report =
        || -> serde_json::Value { serde_json::from_str(&folder.ok(&["stats", "store", "--json"])).unwrap() };
    assert_eq!(report()["unreadable_tables"], serde_json::json!([]));
    let mut tables: Vec<_> = std::fs::read_dir(folder.path("store"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "table"))
        .collect();
    tables.sort();
    assert!(tables.len() >= 2, "{tables:?}");
    for path in &tables[..2] {
        let mut bytes = std::fs::read(path).unwrap();
        let footer = bytes.len() - 64;
        bytes[footer..].fill(0);
        std::fs::write(path, bytes).unwrap();
    }
    let report = report();
    let unreadable = report["unreadable_tables"].as_array().unwrap();
    assert_eq!(unreadable.len(), 2, "{report}");
    // The newest first.
    for (found, path) in unreadable.iter().rev().zip(&tables) {
        let name = path.file_name().unwrap().to_string_lossy();
        assert_eq!(found["keyspace"], "default", "{report}");
        assert!(found["error"].as_str().unwrap().contains(&*name), "{name}: {report}");
        assert!(name.contains(&found["table"].to_string()), "{name}: {report}");
    }
    let text = folder.ok(&["stats", "store", "--all"]);
    assert_eq!(text.matches("are not known: ").count(), 2, "{text}");
    let answer = folder.ok(&["stats", "store"]);
    assert!(answer.contains("2 tables cannot be opened; see `tamis verify`"), "{answer}");
}
