#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

use std::cell::Cell;

use super::*;
use crate::{Row, Silent, Size};

const DEFINITION: Definition = Definition {
    name: "store-squares",
    title: "Squares",
    source: "",
    about: "Squares of numbers.",
    points: &|size| {
        let point = |number: u64| Point::new().with("number", number).with("set", "all");
        (0..size.pick(6, 7, 8)).map(point).collect()
    },
    measure: &|point, context| {
        let number = point.integer("number")?;
        let base = context.input("base", |_| Ok(10_u64))?;
        let folder = context.scratch()?;
        std::fs::write(folder.path().join("store"), [0; 100]).map_err(BenchError::io(folder.path()))?;
        context.progress(0.5)?;
        if number == 7 {
            Err(BenchError::other("seven fails"))
        } else {
            Ok(Row::new().with("square", number * number + *base).with_digest(number))
        }
    },
    plots: &[],
    paper: &[],
};

/// Interrupts after a number of checks, and records its calls.
struct InterruptAfter {
    looks_left: Cell<usize>,
    begun: (usize, usize),
    points: usize,
}

impl InterruptAfter {
    fn after(looks: usize) -> Self {
        Self { looks_left: Cell::new(looks), begun: (0, 0), points: 0 }
    }
}

impl Observer for InterruptAfter {
    fn begin(&mut self, total: usize, done: usize) {
        self.begun = (total, done);
    }
    fn point(&mut self, _point: &Point) {
        self.points += 1;
    }
    fn is_interrupted(&self) -> bool {
        self.looks_left.set(self.looks_left.get().saturating_sub(1));
        self.looks_left.get() == 0
    }
}

#[test]
fn an_interrupted_run_continues_and_gives_the_same_results() {
    let folder = tempfile::tempdir().unwrap();
    let options = RunOptions::new(Size::Small, folder.path().join("out"));
    let mut impatient = InterruptAfter::after(6);
    let partial = run(&DEFINITION, &options, &mut impatient).unwrap();
    assert!(!partial.is_complete && partial.rows.len() == 2, "{partial:?}");
    let text = std::fs::read_to_string(&partial.path).unwrap();
    assert!(text.contains("\"is_complete\": false") && text.contains("\"point_count\": 6"), "{text}");

    let mut patient = InterruptAfter::after(1000);
    let whole = run(&DEFINITION, &options, &mut patient).unwrap();
    assert_eq!((patient.begun, patient.points), ((6, 2), 4));
    assert!(whole.is_complete && whole.rows.len() == 6);
    assert_eq!(whole.rows[0], partial.rows[0], "measured once");

    let other = RunOptions::new(Size::Small, folder.path().join("other"));
    let at_once = run(&DEFINITION, &other, &mut Silent).unwrap();
    assert_eq!((at_once.digest, at_once.is_complete), (whole.digest.clone(), true));

    let mut idle = InterruptAfter::after(1000);
    run(&DEFINITION, &options, &mut idle).unwrap();
    assert_eq!((idle.begun, idle.points), ((6, 6), 0));
    let again = RunOptions { again: true, ..options };
    let mut busy = InterruptAfter::after(1000);
    assert_eq!(run(&DEFINITION, &again, &mut busy).unwrap().digest, whole.digest);
    assert_eq!(busy.points, 6);

    let out = folder.path().join("out");
    let mode = |path: std::path::PathBuf| std::fs::metadata(path).unwrap().permissions();
    std::fs::write(folder.path().join("plain"), "").unwrap();
    assert_eq!(
        mode(out.join("store-squares-small-s42.json")),
        mode(folder.path().join("plain")),
        "the permissions of any file of the user"
    );
    let mut names: Vec<_> = std::fs::read_dir(out).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["store-squares-small-s42.json"], "no store is left");
}

#[test]
fn a_failed_point_is_named_and_earlier_results_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let options = RunOptions::new(Size::Full, folder.path());
    let error = run(&DEFINITION, &options, &mut Silent).unwrap_err().to_string();
    assert_eq!(error, "store-squares at number=7 set=all: seven fails");
    let mut observer = InterruptAfter::after(1000);
    assert!(run(&DEFINITION, &options, &mut observer).is_err());
    assert_eq!(observer.begun, (8, 7));
}

#[test]
fn points_can_be_chosen() {
    let folder = tempfile::tempdir().unwrap();
    let only = |pairs: &[(&str, &str)]| {
        let only = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let options = RunOptions { only, ..RunOptions::new(Size::Small, folder.path()) };
        run(&DEFINITION, &options, &mut Silent)
    };
    assert_eq!(only(&[("number", "3"), ("number", "4")]).unwrap().rows.len(), 2);
    let report = only(&[("number", "5"), ("set", "all")]).unwrap();
    assert!(report.rows.len() == 3 && !report.is_complete, "added to the earlier results");
    let message = only(&[("size", "3")]).unwrap_err().to_string();
    assert_eq!(message, "no parameter named \"size\"; there are: number, set");
    let message = only(&[("number", "9")]).unwrap_err().to_string();
    assert!(message.ends_with("named \"9\"; there are: 0, 1, 2, 3, 4, 5"), "{message}");
    assert!(only(&[]).unwrap().is_complete);
}

/// Like [`DEFINITION`], with 1 and 2 threads.
const THREADED: Definition = Definition {
    name: "store-threads",
    points: &|_| {
        let point = |set: &str, threads: u64| Point::new().with("set", set).with("threads", threads);
        ["one", "two"].iter().flat_map(|set| [1, 2].map(|threads| point(set, threads))).collect()
    },
    measure: &|point, _| Ok(Row::new().with("square", point.integer("threads")?)),
    ..DEFINITION
};

#[test]
fn results_of_other_thread_counts_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let measure = |threads: &[u64], only: &[(&str, &str)]| {
        let only = only.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let threads = threads.to_vec();
        let options = RunOptions { threads, only, ..RunOptions::new(Size::Small, folder.path()) };
        let report = run(&THREADED, &options, &mut Silent)?;
        let threads = report.rows.iter().map(|row| row.point.integer("threads").unwrap()).collect::<Vec<_>>();
        Ok::<_, BenchError>((threads, report.is_complete))
    };
    assert_eq!(measure(&[4, 1, 4], &[]).unwrap(), (vec![4, 1, 4, 1], true));
    assert_eq!(
        measure(&[], &[("set", "one")]).unwrap(),
        (vec![1, 2, 1, 4, 4], false),
        "rows with 4 threads are kept"
    );
    assert_eq!(measure(&[], &[]).unwrap(), (vec![1, 2, 1, 2, 4, 4], true));
    let message = measure(&[], &[("threads", "8")]).unwrap_err().to_string();
    assert!(message.ends_with("named \"8\"; there are: 1, 2, 4"), "{message}");
    let message = measure(&[2, 0], &[]).unwrap_err().to_string();
    assert!(message.contains("no threads named \"0\""), "{message}");

    let options = RunOptions { threads: vec![4], ..RunOptions::new(Size::Small, folder.path()) };
    let message = check(&DEFINITION, &options).unwrap_err().to_string();
    assert_eq!(message, "no parameter named \"threads\"; there are: number, set");
}

/// Like [`DEFINITION`], with a layout.
const OF_A_LAYOUT: Definition = Definition {
    name: "store-layouts",
    points: &|_| vec![Point::new().with("layout", "leveled").with("threads", 1)],
    measure: &|point, _| Ok(Row::new().with("square", point.text("layout")?.len() as u64)),
    ..DEFINITION
};

#[test]
fn requested_layouts_replace_the_default_one() {
    let folder = tempfile::tempdir().unwrap();
    let measure = |layouts: &[&str]| {
        let layouts = layouts.iter().map(|&layout| layout.to_owned()).collect();
        let options = RunOptions { layouts, ..RunOptions::new(Size::Small, folder.path()) };
        let report = run(&OF_A_LAYOUT, &options, &mut Silent)?;
        let layouts = report.rows.iter().map(|row| row.point.text("layout").unwrap().to_owned());
        Ok::<_, BenchError>(layouts.collect::<Vec<_>>())
    };
    let tiered = "tiered:runs_per_level=8";
    assert_eq!(measure(&["partitioned", tiered]).unwrap(), vec!["partitioned", tiered]);
    assert_eq!(measure(&[]).unwrap(), vec!["leveled", "partitioned", tiered], "earlier results are kept");
    let message = measure(&["flat"]).unwrap_err().to_string();
    assert!(message.contains("`partitioned`"), "{message}");
}

#[test]
fn messages_list_distinct_values_up_to_a_limit() {
    let values = |count: u64| listed((0..count).chain(0..count).map(|number| number.to_string()));
    assert_eq!(values(3), "0, 1, 2");
    assert!(values(3000).starts_with("0, 1, 2, 3") && values(3000).ends_with("18, 19, and 2980 more"));
}
