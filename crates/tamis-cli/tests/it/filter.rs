//! `filter eval`: correct figures, reasons for rejected parameters, detection of file kinds.

use serde_json::Value;

use crate::Folder;

const FAMILIES: [&str; 4] =
    ["blocked-bloom", "blocked-bloom:probes=5", "prefix-bloom:bytes=6", "elastic:units=2"];

fn generated() -> Folder {
    let folder = Folder::new();
    let queries = ["--queries", "uniform_r0", "uniform_r32", "non_empty"];
    folder.ok(&[&["gen", ".", "--count", "20000", "--query-count", "3000"], queries.as_slice()].concat());
    folder
}

fn eval(folder: &Folder, words: &[&str]) -> Value {
    let words = [&["filter", "eval", "--format", "json"], words].concat();
    serde_json::from_str(&folder.ok(&words)).unwrap()
}

const KEYS: &str = "uniform_n20000_s42.keys";
const POINTS: &str = "uniform_n20000_s42.uniform_r0_s43.q";
const RANGES: &str = "uniform_n20000_s42.uniform_r32_s43.q";
const SAMPLE: &str = "uniform_n20000_s42.uniform_r0_s44.s";
const PRESENT: &str = "uniform_n20000_s42.fn_s45.q";

#[test]
fn every_family_is_measured_without_false_negatives() {
    let folder = generated();
    for family in FAMILIES {
        for queries in [POINTS, RANGES] {
            let words = ["--family", family, "--bits-per-key", "12", "--keys", KEYS, "--queries", queries];
            let report =
                eval(&folder, &[words.as_slice(), &["--present", PRESENT, "--sample", SAMPLE]].concat());
            assert_eq!(report["family"], family);
            assert_eq!((&report["keys"], &report["queries"]), (&20_000.into(), &3000.into()));
            assert_eq!(
                (&report["present"], &report["false_negatives"]),
                (&100_000.into(), &0.into()),
                "{report}"
            );
            assert!(report["bits_per_key"].as_f64().unwrap() <= 12.0 + 128.0 * 8.0 / 20_000.0, "{report}");
            assert_eq!(report["refused"], Value::Null);
            let (fpr, predicted) =
                (report["fpr"].as_f64().unwrap(), report["predicted_fpr"].as_f64().unwrap());
            assert!(queries == RANGES || fpr < 5.0 * predicted + 0.001, "{report}");
            for time in ["build_ns_per_key", "query_ns", "calibration_ns"] {
                assert!(report[time].as_f64().unwrap() > 0.0, "{time} {report}");
            }
            assert!(report["design"].as_str().unwrap().len() > 10 && report["probes_per_query"].is_number());
        }
    }
}

#[test]
fn text_files_are_detected_and_non_empty_queries_are_counted_separately() {
    let folder = Folder::new();
    folder.write("words", "\napple\nbanana\npear\npear\n");
    folder.write("ranges", "apple\tapple\nb\tbat\np\tq\nx\tz\nzoo\tzoo");
    let words = [
        "--family",
        "prefix-bloom:bytes=1",
        "--bits-per-key",
        "200",
        "--keys",
        "words",
        "--queries",
        "ranges",
    ];
    let report = eval(&folder, &words);
    assert_eq!((&report["keys"], &report["queries"]), (&4.into(), &5.into()), "{report}");
    assert_eq!((&report["present"], &report["false_negatives"]), (&3.into(), &0.into()));
    // x to z has three prefixes, zoo has one: none is a prefix of a key.
    assert_eq!(report["false_positives"], 0);
    let table = folder.ok(&[&["filter", "eval"], words.as_slice()].concat());
    assert!(table.contains("prefix-bloom:bytes=1") && table.contains("false negatives"), "{table}");
}

#[test]
fn a_failed_build_is_a_result_and_a_fixed_size_needs_no_budget() {
    let folder = generated();
    let words = ["--keys", KEYS, "--queries", POINTS, "--family"];
    let report = eval(&folder, &[words.as_slice(), &["surf", "--bits-per-key", "5"]].concat());
    assert!(report["refused"].as_str().unwrap().contains("needs at least "), "{report}");
    let report = eval(&folder, &[words.as_slice(), &["surf-base"]].concat());
    assert_eq!(report["refused"], Value::Null);
}

/// A trie of paths needs more than 18 bits per key: the report says how many, or the trie is shortened on request.
#[test]
fn surf_reports_its_least_size_for_paths_or_truncates_the_trie() {
    let folder = Folder::new();
    let path = |number: usize| {
        format!(
            "/srv/data/project-{:02}/src/part_{:02}/file_{:05}.rs\n",
            number % 37,
            number % 11,
            number * 7
        )
    };
    let mut paths: Vec<String> = (0..3000).map(path).collect();
    paths.sort();
    folder.write("paths.txt", paths.concat().as_bytes());
    folder.write("queries.txt", b"/srv/data/project-90\t/srv/data/project-91\n");
    let words = ["--keys", "paths.txt", "--queries", "queries.txt", "--family"];
    for bits in ["10", "14", "18"] {
        let of = |family| eval(&folder, &[words.as_slice(), &[family, "--bits-per-key", bits]].concat());
        let refused = of("surf");
        assert!(refused["refused"].as_str().unwrap().contains("surf needs at least "), "{refused}");
        let truncated = of("surf:truncate=yes");
        assert_eq!((&truncated["refused"], &truncated["false_positives"]), (&Value::Null, &Value::from(0)));
        assert!(
            truncated["bits_per_key"].as_f64().unwrap() <= bits.parse::<f64>().unwrap() + 0.5,
            "{truncated}"
        );
    }
}

#[test]
fn the_seed_determines_the_false_positives() {
    let folder = generated();
    let of = |seed: &str| {
        let words = ["--family", "blocked-bloom", "--bits-per-key", "6", "--keys", KEYS, "--queries", POINTS];
        eval(&folder, &[words.as_slice(), &["--seed", seed]].concat())["false_positives"].clone()
    };
    assert_eq!(of("7"), of("7"));
    assert_ne!(of("7"), of("8"));
}

#[test]
fn empty_key_files_are_accepted() {
    let folder = Folder::new();
    folder.write("none.keys", [0; 8]);
    folder.write("some.q", [1_u64, 5, 9].map(u64::to_le_bytes).concat());
    folder.write("some.q", [2_u64, 5, 9].map(u64::to_le_bytes).concat());
    for family in FAMILIES {
        let words =
            ["--family", family, "--bits-per-key", "10", "--keys", "none.keys", "--queries", "some.q"];
        let report = eval(&folder, &words);
        assert_eq!((&report["keys"], &report["false_positives"]), (&0.into(), &0.into()), "{report}");
    }
}

#[test]
fn wrong_parameters_are_rejected_with_the_valid_ones() {
    let folder = Folder::new();
    folder.write("words", "a\nb\n");
    folder.write("ranges", "a\tb\n");
    let run = |family: &str, budget: &[&str]| {
        let words = ["filter", "eval", "--keys", "words", "--queries", "ranges", "--family", family];
        folder.fails(2, &[words.as_slice(), budget].concat())
    };
    let ten = ["--bits-per-key", "10"];
    assert!(run("blom", &ten).contains("blocked-bloom, prefix-bloom, elastic, surf"));
    assert!(run("blocked-bloom:probe=7", &ten).contains("probes"));
    assert!(run("blocked-bloom:probes=65", &ten).contains("1 to 16 bits"));
    assert!(run("blocked-bloom", &[]).contains("needs a budget"));
    for bits in ["0", "-3", "NaN", "inf", "1e99"] {
        let message = run("blocked-bloom", &[&format!("--bits-per-key={bits}")]);
        assert!(message.contains("at most 1024"), "{bits}: {message}");
    }
}

#[test]
fn invalid_files_are_rejected_with_their_position() {
    let folder = Folder::new();
    folder.write("words", "a\nb\n");
    folder.write("unsorted", "b\na\n");
    folder.write("ranges", "a\tb\n");
    folder.write("no_tab", "a\tb\nab\n");
    folder.write("reversed", "b\ta\n");
    let values = |values: &[u64]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    folder.write("good.keys", values(&[2, 5, 9]));
    folder.write("descending.keys", values(&[2, 9, 5]));
    folder.write("cut.keys", &values(&[2, 5, 9])[..20]);
    folder.write("good.q", values(&[2, 6, 7]));
    folder.write("odd.q", values(&[1, 6]));
    folder.write("reversed.q", values(&[2, 7, 6]));
    folder.write("cut.q", &values(&[2, 5, 9])[..17]);
    for (keys, queries, present, message) in [
        ("unsorted", "ranges", "ranges", "line 2"),
        ("words", "no_tab", "ranges", "line 2 has no tab"),
        ("words", "reversed", "ranges", "line 1"),
        ("words", "good.q", "ranges", "both files must be of the same kind"),
        ("good.keys", "ranges", "good.q", "both files must be of the same kind"),
        ("descending.keys", "good.q", "good.q", "offset 16"),
        ("cut.keys", "good.q", "good.q", "cut at offset 20"),
        ("good.keys", "odd.q", "good.q", "odd"),
        ("good.keys", "reversed.q", "good.q", "reversed"),
        ("good.keys", "cut.q", "good.q", "cut at offset 17"),
        ("good.keys", "good.q", "good.q", "contains no key"),
        ("missing", "ranges", "ranges", "missing"),
        (".", "ranges", "ranges", "folder"),
    ] {
        let words = ["filter", "eval", "--family", "blocked-bloom", "--bits-per-key", "10"];
        let files = ["--keys", keys, "--queries", queries, "--present", present];
        let got = folder.fails(4, &[words.as_slice(), &files].concat());
        assert!(got.contains(message), "{keys} {queries}: {got}");
    }
}

#[test]
fn eval_says_that_a_sample_would_change_the_result() {
    let folder = generated();
    let eval = |family: &str, sample: &[&str]| {
        let words = [
            "filter",
            "eval",
            "--family",
            family,
            "--bits-per-key",
            "12",
            "--keys",
            KEYS,
            "--queries",
            POINTS,
        ];
        folder.ok(&[words.as_slice(), sample].concat())
    };
    assert!(eval("proteus", &[]).contains("with --sample the result would differ"));
    assert!(!eval("proteus", &["--sample", SAMPLE]).contains("--sample"));
    assert!(!eval("blocked-bloom", &[]).contains("--sample"));
}

#[test]
fn advise_ranks_filters_for_files_and_draws_a_page() {
    let folder = generated();
    let words = ["filter", "advise", "--keys", KEYS, "--queries", RANGES];
    let report: Value = serde_json::from_str(&folder.ok(&[words.as_slice(), &["--json"]].concat())).unwrap();
    assert!(report["keys"] == 20_000 && report["empty_queries"].as_u64().unwrap() >= 1000, "{report}");
    let costs: Vec<f64> =
        report["ranked"].as_array().unwrap().iter().map(|row| row["cost_ns"].as_f64().unwrap()).collect();
    let cheapest = costs.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(costs.len() > 3 && costs[0] <= 1.03 * cheapest, "{costs:?}");
    assert!(report["chosen"]["rates"]["ranges"].as_f64().unwrap() < 0.01, "{report}");

    let shown = folder.ok(&[words.as_slice(), &["--html", "advice.html"]].concat());
    assert!(shown.contains("The store would choose"), "{shown}");
    let page = String::from_utf8(std::fs::read(folder.path("advice.html")).unwrap()).unwrap();
    assert!(page.matches("<figure>").count() >= 2 && page.matches("<polyline").count() >= 6, "{page}");
    // The answer is first: what to do, what it saves, what it costs.
    let body = page.split("</h1>").nth(1).unwrap();
    let answers: Vec<&str> = body.split("<p class=\"answer\">").skip(1).collect();
    assert!(body.trim_start().starts_with("<p class=\"answer\">") && answers.len() == 3, "{body}");
    for (answer, beginning) in answers.iter().zip(["To do: use ", "Savings: ", "Costs: "]) {
        assert!(answer.starts_with(beginning), "{answer}");
    }
    assert!(answers[2].contains(" for these 20,000 keys."), "{}", answers[2]);
    assert!(page.ends_with("</html>\n") && !page.contains("<script") && !page.contains("http"), "{page}");
    assert!(
        folder.fails(4, &[words.as_slice(), &["--html", "advice.html"]].concat()).contains("already exists")
    );
    assert!(folder.fails(2, &["filter", "advise", "--keys", KEYS]).contains("--queries"));
}

#[test]
fn advise_uses_the_sample_of_a_store() {
    let folder = Folder::new();
    for number in 0..20 {
        folder.ok(&["put", "store", &format!("key{number:04}"), "value"]);
    }
    let shown = folder.ok(&["filter", "advise", "--store", "store"]);
    assert!(shown.contains("20 keys") && shown.contains("assumed workload"), "{shown}");
    // The store chooses its filters itself: there is nothing to do.
    folder.ok(&["filter", "advise", "--store", "store", "--html", "advice.html"]);
    let page = std::fs::read_to_string(folder.path("advice.html")).unwrap();
    assert!(page.contains("To do: nothing. The store chooses"), "{page}");
}

#[test]
fn advise_uses_the_prices_of_a_store() {
    let folder = Folder::new();
    let db = tamis::Db::open(folder.path("store")).unwrap();
    for number in 0..20_000_u64 {
        db.put((number << 40).to_be_bytes(), "value").unwrap();
    }
    db.flush().unwrap();
    for number in 0..5_000_u64 {
        let lower = (number << 40) + 1;
        assert_eq!(db.range(lower.to_be_bytes()..(lower + 9).to_be_bytes()).count(), 0);
        assert!(db.get((number << 40).to_be_bytes()).unwrap().is_some());
    }
    db.close().unwrap();
    let options = tamis::Options::default().mode(tamis::OpenMode::Reader);
    let db = tamis::Db::open_with(folder.path("store"), options).unwrap();
    let prices = db.filter_prices();
    db.close().unwrap();
    let advise = |words: &[&str]| -> Value {
        let all = [&["filter", "advise", "--store", "store", "--json"][..], words].concat();
        serde_json::from_str(&folder.ok(&all)).unwrap()
    };
    let report = advise(&[]);
    for (name, price) in [("read_ns", prices.read_ns), ("bit_ns", prices.bit_ns)] {
        let given = report["prices"][name].as_f64().unwrap();
        assert!((given / price - 1.0).abs() < 1e-9, "{name} {price}: {report}");
    }
    assert!(prices.read_ns < 20_000.0, "{prices:?}: mapped, in memory");
    let slow = advise(&["--read-time", "20000"]);
    assert_eq!(slow["prices"]["read_ns"], 20_000_000.0);
    let rate = |report: &Value| report["chosen"]["rates"]["ranges"].as_f64().unwrap();
    assert!(rate(&slow) <= rate(&report), "{slow} {report}");
}
