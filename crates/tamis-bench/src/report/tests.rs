#![expect(clippy::unwrap_used, reason = "tests may panic")]

use super::*;
use crate::{Row, Size, published};

const DEFINITION: Definition = Definition {
    name: "bloom-none",
    title: "none",
    source: "a paper, Figure 1",
    about: "",
    points: &|_| (0..3).map(|number| Point::new().with("number", number)).collect(),
    measure: &|_, _| Ok(Row::new()),
    plots: &[],
    paper: &[published("number=2", "fpr", 0.5)],
};

fn row(number: u64, fpr: f64) -> MeasuredRow {
    MeasuredRow {
        point: Point::new().with("number", number),
        metrics: Row::new().with("fpr", fpr).fields,
        digest: format!("{number:016x}"),
        seconds: 0.5,
    }
}

#[test]
fn results_are_in_point_order_and_compared_with_the_paper() {
    let options = RunOptions::new(Size::Small, "out");
    let points = (DEFINITION.points)(Size::Small);
    let mut report = Report::new(&DEFINITION, &options, PathBuf::new());
    report.rows = vec![row(2, 0.25), row(9, 1.0), row(0, 0.125)];
    report.finish(&DEFINITION, &points);
    let numbers: Vec<u64> = report.rows.iter().map(|row| row.point.integer("number").unwrap()).collect();
    assert_eq!(numbers, [0, 2]);
    assert!(!report.is_complete && report.point_count == 3);
    let [comparison] = report.comparisons.as_slice() else { panic!("{:?}", report.comparisons) };
    assert_eq!((comparison.paper, comparison.ours, &comparison.ratio), (0.5, 0.25, &Value::Number(0.5)));
    let partial = report.digest.clone();
    report.rows.push(row(1, 0.0));
    report.finish(&DEFINITION, &points);
    assert!(report.is_complete && report.digest != partial);
}

#[test]
fn results_of_another_program_are_not_continued() {
    let folder = tempfile::tempdir().unwrap();
    let options = RunOptions::new(Size::Small, folder.path());
    let path = Report::path_of(&DEFINITION, &options);
    assert!(path.ends_with("bloom-none-small-s42.json"));
    let earlier = || Report::load_earlier(&DEFINITION, &options, &path);
    assert!(earlier().unwrap().is_none());
    let mut report = Report::new(&DEFINITION, &options, path.clone());
    report.rows = vec![row(0, 0.5)];
    report.write().unwrap();
    assert_eq!(earlier().unwrap().unwrap().rows, report.rows);
    let refused = |change: &dyn Fn(&mut Report)| {
        let mut other = report.clone();
        change(&mut other);
        other.write().unwrap();
        earlier().unwrap_err().to_string()
    };
    assert!(
        refused(&|other| other.configuration.commit = "abc".to_owned())
            .contains("its commit is abc, but this run has")
    );
    assert!(
        refused(&|other| other.machine.processor = "abacus".to_owned()).contains("its processor is abacus")
    );
    assert!(refused(&|other| other.seed = 1).contains("--again"));
    std::fs::write(&path, "{\"experiment\": 1").unwrap();
    assert!(earlier().unwrap_err().to_string().contains("contains no results of an experiment"));
}
