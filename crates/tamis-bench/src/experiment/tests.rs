#![expect(clippy::unwrap_used, reason = "tests may panic")]

use crate::{Observer, RunOptions, Silent, Size, Value, WORKLOADS, run};

#[test]
fn store_experiments_measure_and_delete_their_stores() {
    let folder = tempfile::tempdir().unwrap();
    for (name, workload) in [
        ("store-ycsb", "ycsb-d"),
        ("store-ycsb", "ycsb-e"),
        ("store-micro", "deleterandom"),
        ("store-micro", "fillseq"),
        ("store-micro", "readwhilewriting"),
        ("store-empty-ranges", "empty-near"),
        ("store-shift", "shift-hot-spot"),
        ("store-harness", "ycsb-a"),
    ] {
        let only = [("workload", workload), ("threads", "2")];
        let only = only.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let options = RunOptions { only, ..RunOptions::new(Size::Small, folder.path()) };
        let report = run(WORKLOADS.find(name).unwrap(), &options, &mut Silent).unwrap();
        let row = report.rows.iter().find(|row| row.point.text("workload").unwrap() == workload).unwrap();
        let number = |metric: &str| row.get(metric).and_then(Value::as_number).unwrap();
        assert!(number("operations_per_second") > 0.0 && number("cpu_seconds") > 0.0, "{row:?}");
        if name != "store-harness" {
            assert!((0.9..3.0).contains(&number("space_amplification")), "{row:?}");
            // All writes are in blocks of 4 KiB after the store has settled.
            let written = number("blocks_written") * 4096.0;
            let is_writing = number("user_bytes_written") > 0.0;
            assert!((written > 0.0) == is_writing && written <= number("bytes_written"), "{row:?}");
            assert!(number("peak_resident_bytes") >= number("resident_bytes"), "{row:?}");
            assert!(matches!(row.get("operations_by_second"), Some(Value::List(_))), "{row:?}");
            assert!(matches!(row.get("configuration"), Some(Value::Object(_))), "{row:?}");
            assert!(number("stall_seconds") >= 0.0 && number("compaction_bytes_read") >= 0.0, "{row:?}");
            let left = number("entries_left") - number("entries");
            match workload {
                "ycsb-d" | "ycsb-e" => {
                    assert!((400.0..600.0).contains(&left), "5 % of 10,000: {row:?}")
                }
                "deleterandom" => assert!(left < -5000.0, "{row:?}"),
                _ => assert_eq!(left, 0.0, "{row:?}"),
            }
            let share = number("space_amplification") * number("entries_left") * 116.0 / number("disk_bytes");
            assert!((share - 1.0).abs() < 1e-9, "{row:?}");
            assert!(row.get("configuration").unwrap().to_string().contains("memtable_bytes="), "{row:?}");
        }
        if workload == "fillseq" {
            assert!((2.0..6.0).contains(&number("write_amplification")), "{row:?}");
        }
    }
    let left = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap());
    assert!(left.into_iter().all(|entry| entry.file_type().unwrap().is_file()), "no store is left");
}

/// Records the reported progress.
#[derive(Default)]
struct RecordedProgress(Vec<f64>);

impl Observer for RecordedProgress {
    fn progress(&mut self, share: f64) {
        self.0.push(share);
    }
}

/// Loading, running and settling are parts of the progress of one point.
#[test]
fn progress_never_decreases() {
    for workload in ["fillrandom", "overwrite", "readrandom"] {
        let folder = tempfile::tempdir().unwrap();
        let only = [("workload", workload), ("threads", "1")];
        let only = only.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let options = RunOptions { only, ..RunOptions::new(Size::Small, folder.path()) };
        let mut noted = RecordedProgress::default();
        run(WORKLOADS.find("store-micro").unwrap(), &options, &mut noted).unwrap();
        let RecordedProgress(shares) = noted;
        assert!(shares.is_sorted(), "{workload}: {shares:?}");
        let ends = (*shares.first().unwrap(), *shares.last().unwrap());
        assert!(ends.0 == 0.0 && (0.65..=1.0).contains(&ends.1), "{workload}: {shares:?}");
    }
}
