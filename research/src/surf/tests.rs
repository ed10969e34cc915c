//! Each experiment of the group runs with its small size.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

use super::EXPERIMENTS;
use tamis_bench::{RunOptions, Silent, Size, run};

#[test]
fn experiments_run_with_the_small_size() {
    let only =
        [("family", "surf-real:bits=4"), ("keys", "emails"), ("variant", "real"), ("variant", "bloom")];
    for (definition, (name, value)) in EXPERIMENTS.iter().zip(only) {
        let folder = tempfile::tempdir().unwrap();
        let only = vec![(name.to_owned(), value.to_owned())];
        let options = RunOptions { seed: 3, only, ..RunOptions::new(Size::Small, folder.path()) };
        let report = run(definition, &options, &mut Silent).unwrap();
        assert!(!report.rows.is_empty(), "{}", definition.name);
        assert!(report.rows.iter().all(|row| row.get("refused").is_none()), "{}", definition.name);
    }
}
