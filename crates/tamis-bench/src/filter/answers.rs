//! The answers of a filter to all queries, compared with the keys.

use tamis_filter::{Digester, Filter, KeyRange, KeySet, Probe, RangeProbe};

use super::Ranges;
use crate::OperationDigest;

/// Counts of the answers.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Answers {
    /// Queries.
    pub query_count: u64,
    /// Queries with a key.
    pub present: u64,
    /// Those of them that the filter rejected; must be 0.
    pub false_negatives: u64,
    /// Queries without a key that the filter accepted.
    pub false_positives: u64,
    /// Filter steps of all queries.
    pub probe_count: u64,
    /// A digest of queries and answers.
    pub digest: u64,
}

impl Answers {
    /// The share of false positives among the queries without a key.
    pub fn fpr(&self) -> f64 {
        self.false_positives as f64 / ((self.query_count - self.present) as f64).max(1.0)
    }
}

/// Probes the filter once with every query and compares its answers with the keys.
pub fn answers(
    filter: &(impl Filter + ?Sized),
    digester: &Digester,
    keys: &KeySet,
    queries: &Ranges,
) -> Answers {
    let mut answers = Answers { query_count: queries.len() as u64, ..Answers::default() };
    let mut digest = OperationDigest::default();
    for (lower, upper) in queries.iter() {
        let range = KeyRange::closed(lower, upper);
        let (answer, probe_count) = if lower == upper {
            let probe = Probe::new(lower, digester);
            (filter.may_contain(&probe), probe.probe_count())
        } else {
            let probe = RangeProbe::new(range, digester);
            (filter.may_contain_range(&probe), probe.probe_count())
        };
        answers.probe_count += u64::from(probe_count);
        digest.add_bytes(lower);
        digest.add_bytes(upper);
        digest.add(u64::from(answer));
        match (keys.has_key_in(&range), answer) {
            (true, answer) => {
                answers.present += 1;
                answers.false_negatives += u64::from(!answer);
            }
            (false, true) => answers.false_positives += 1,
            (false, false) => {}
        }
    }
    answers.digest = digest.finish();
    answers
}
