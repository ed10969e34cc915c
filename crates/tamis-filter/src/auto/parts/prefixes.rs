//! Bloom filters of prefixes: of one length that the sample shows, and, if the sample has prefixes, of their most frequent lengths
//! together, and of the prefixes that end with the byte that most sampled prefixes end with.

use std::collections::BTreeMap;

use crate::auto::candidates::{Predicted, Problem};
use crate::auto::cases::Case;
use crate::auto::{Part, ProbeTime, QueryKind};
use crate::bloom::formula::blocked_fpr;
use crate::bloom::prefix::{
    BITS_PER_PREFIX_MAX, Lengths, PREFIXES_MAX, PrefixSet, Separators, common_prefix,
};
use crate::bloom::{LINE_BITS, best_probe_count};
use crate::trie::shared_bytes;
use crate::{Family, FilterSpec, steps};

/// Lengths that are tried, the most frequent in the sample.
const LENGTHS_MAX: usize = 4;
/// Lengths that are tried together.
const JOINT_LENGTHS_MAX: usize = 3;
/// The share of the sampled prefixes that must end with the same byte to try it as a separator.
const SEPARATOR_SHARE: f64 = 0.5;
/// Budgets that are tried, as shares of the maximum.
const SHARES: [f64; 5] = [1.0, 0.7, 0.5, 0.35, 0.2];
/// Steps per key to count the prefixes of a set.
const KEY_STEPS: usize = 60;

impl Problem<'_> {
    pub(super) fn prefix_parts(&self) -> Vec<Predicted> {
        let mut specs: Vec<FilterSpec> = Vec::new();
        let prefix = || FilterSpec::new(Family::Prefix);
        // First, so that the limit on the work leaves out other sets.
        specs.extend(self.separator().map(|byte| prefix().with("separator", &format!("0x{byte:02x}"))));
        specs.extend(
            self.prefix_lengths(false).iter().map(|bytes| prefix().with("bytes", &bytes.to_string())),
        );
        let mut joint = self.prefix_lengths(true);
        joint.truncate(JOINT_LENGTHS_MAX);
        joint.sort_unstable();
        if joint.len() > 1 {
            let joint: Vec<String> = joint.iter().map(usize::to_string).collect();
            specs.push(prefix().with("bytes", &joint.join("+")));
        }
        let mut predicted = Vec::new();
        for spec in specs {
            let steps = self.cases.empty.len() * 4 * SHARES.len();
            let has_set = stored(&spec).is_some_and(|set| set.only_length().is_none());
            if self.work.take(steps + if has_set { self.keys.len() * KEY_STEPS } else { 0 }) {
                let part =
                    |share: f64| Part { spec: spec.clone(), bits_per_key: Some(share * self.bits_max()) };
                predicted.extend(self.predict_prefixes(&SHARES.map(part)));
            }
        }
        predicted
    }

    /// The most frequent lengths of sampled prefixes, and of the common bytes of the ends of ranges unless `only_prefixes`.
    fn prefix_lengths(&self, only_prefixes: bool) -> Vec<usize> {
        let mut weights: BTreeMap<usize, f64> = BTreeMap::new();
        for case in self.cases.sample().iter().filter(|case| !case.is_point && case.is_closed()) {
            let bytes = match case.kind {
                QueryKind::Prefix => case.range.lower_bytes().len(),
                _ if only_prefixes => continue,
                _ => (shared_ends(case) / 8) as usize,
            };
            *weights.entry(bytes).or_default() += case.weight;
        }
        let mut lengths: Vec<(usize, f64)> =
            weights.into_iter().filter(|(bytes, _)| (1..=1024).contains(bytes)).collect();
        lengths.sort_by(|left, right| right.1.total_cmp(&left.1));
        lengths.into_iter().take(LENGTHS_MAX).map(|(bytes, _)| bytes).collect()
    }

    /// The last byte of most sampled prefixes.
    fn separator(&self) -> Option<u8> {
        let mut weights: BTreeMap<u8, f64> = BTreeMap::new();
        let prefixes = self.cases.sample().iter().filter(|case| case.kind == QueryKind::Prefix);
        for case in prefixes {
            if let Some(last) = case.range.lower_bytes().last() {
                *weights.entry(*last).or_default() += case.weight;
            }
        }
        let total: f64 = weights.values().sum();
        let best = weights.into_iter().max_by(|left, right| left.1.total_cmp(&right.1));
        best.filter(|(_, weight)| *weight >= SEPARATOR_SHARE * total).map(|(byte, _)| byte)
    }

    pub(super) fn predict_prefix(&self, part: &Part) -> Option<Predicted> {
        self.predict_prefixes(std::slice::from_ref(part)).pop()
    }

    /// Predictions for filters of the same prefixes with different budgets.
    fn predict_prefixes(&self, parts: &[Part]) -> Vec<Predicted> {
        let Some(set) = parts.first().and_then(|part| stored(&part.spec)) else { return Vec::new() };
        let key_count = self.counts.key_count as f64;
        let only = set.only_length();
        let prefix_count =
            only.map_or_else(|| self.count_prefixes(&set), |bytes| self.counts.prefix_count(bytes));
        let prefix_count = prefix_count as f64;
        let further_ns = only.map_or(0.0, |bytes| self.further_prefix_ns(bytes as u32 * 8));
        let predict = |part: &Part| {
            let budget = part.bits_per_key.filter(|bits| *bits > 0.0)?;
            let total = (budget * key_count).min(prefix_count * BITS_PER_PREFIX_MAX);
            if total < prefix_count {
                return None;
            }
            let per_line = prefix_count / (total / LINE_BITS).ceil().max(1.0);
            let rate = blocked_fpr(LINE_BITS, per_line, best_probe_count(per_line));
            // At least one line for any budget: it is within the slack of a budget.
            let size = total / key_count.max(1.0);
            let result = |case: &Case<'_>| set_result(case, &set, rate);
            let mut predicted = self.prediction(part.spec.clone(), part.bits_per_key, size, result);
            predicted.range_ns += further_ns;
            Some(predicted)
        };
        parts.iter().filter_map(predict).collect()
    }

    /// The mean time of the prefixes that a range looks up after the first one.
    fn further_prefix_ns(&self, bits: u32) -> f64 {
        let (mut sum, mut weight) = (0.0, 0.0);
        let cases = self.cases.designed_for();
        for case in cases.iter().filter(|case| !case.is_point && case.is_closed()) {
            let further = further_prefixes(case, bits).filter(|count| *count < PREFIXES_MAX);
            sum += case.weight * further.unwrap_or(0) as f64;
            weight += case.weight;
        }
        ProbeTime::of(Family::Prefix).further_ns * sum / f64::max(weight, f64::MIN_POSITIVE)
    }

    /// Number of distinct prefixes of the keys.
    fn count_prefixes(&self, set: &PrefixSet) -> u64 {
        steps::count(self.keys.len());
        let (mut count, mut last): (u64, &[u8]) = (0, &[]);
        for key in self.keys.iter() {
            set.for_each_length(key, shared_bytes(last, key), |_| count += 1);
            count += u64::from(set.has_points);
            last = key;
        }
        count
    }
}

/// The prefixes that a filter stores; `None` for parameters with which none can be built.
fn stored(spec: &FilterSpec) -> Option<PrefixSet> {
    let lengths = spec.parameter("bytes").map_or(Ok(Lengths::default()), str::parse).ok()?;
    let separators = spec.parameter("separator").map_or(Ok(Separators::default()), str::parse).ok()?;
    let set = PrefixSet { lengths, separators, has_points: spec.parameter("points") == Some("yes") };
    Some(if set.is_empty() { PrefixSet { lengths: Lengths(vec![4]), ..set } } else { set })
}

/// Common bits of both ends.
fn shared_ends(case: &Case<'_>) -> u32 {
    case.query.map_or(0, |query| query.shared_ends)
}

/// The number of prefixes of a range without the first one; `None` if it is not known.
fn further_prefixes(case: &Case<'_>, bits: u32) -> Option<u64> {
    if shared_ends(case) >= bits {
        return Some(0);
    }
    let words = if bits <= 64 { case.range.word_bounds() } else { None };
    words.map(|(lower, upper)| (upper >> (64 - bits)) - (lower >> (64 - bits)))
}

fn set_result(case: &Case<'_>, set: &PrefixSet, rate: f64) -> f64 {
    if case.is_point && set.has_points {
        return rate;
    }
    let longest = if case.is_point {
        set.longest_of_key(case.range.lower_bytes())
    } else {
        set.longest(common_prefix(&case.range))
    };
    let Some(bytes) = longest.or(set.only_length()) else { return 1.0 };
    if case.near() >= bytes as u32 * 8 {
        return 1.0;
    }
    let further = longest.map_or_else(|| further_prefixes(case, bytes as u32 * 8), |_| Some(0));
    let count = further.filter(|count| *count < PREFIXES_MAX);
    count.map_or(1.0, |count| 1.0 - (1.0 - rate).powi(count as i32 + 1))
}
