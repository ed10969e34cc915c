//! Expected false-positive rate and cost of a design for its sampled queries.

use tamis_bits::line::LINE_PROBE_MAX;

use super::layout::{BitLayout, PROBES_MAX};
use super::level::sibling_bits;
use super::prices::Prices;
use crate::bloom::formula::{blocked_fpr, standard_best_k, standard_fpr};
use crate::bloom::{LINE_BITS, best_probe_count};
use crate::empty_query::EmptyQuery;
use crate::prefix_counts::PrefixCounts;

/// Price of a cache line that is read together with another one.
const SECOND_LINE: f64 = 0.1;

/// Rates up to this multiple of the minimum are equally good: each bit less that a node sets shortens the build of a
/// large filter.
const NEAR_RATE: f64 = 1.015;

/// Minimum number of bits of a level.
pub(super) const BITS_MIN: f64 = 64.0;

/// A possible level of a filter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Share {
    /// Depth in the tree; for the full level of keys of one length, the length of a key in bits.
    pub(super) depth: u32,
    /// Whether it contains whole keys.
    pub(super) is_full: bool,
    pub(super) layout: BitLayout,
    /// Bits of the level.
    pub(super) bits: f64,
}

/// Expected cost of a query.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Expected {
    /// False-positive rate.
    pub(crate) rate: f64,
    /// Price of its probes, in cache lines.
    pub(crate) lines: f64,
}

impl Expected {
    pub(super) fn cost(self, prices: &Prices) -> f64 {
        self.rate * prices.read_ns + self.lines * prices.probe_ns
    }
}

/// The Bloom filter of a level: its rate, the number of bits that a node sets, and the price of a probe in cache
/// lines.
#[derive(Debug, Clone, Copy)]
pub(super) struct Filter {
    pub(super) rate: f64,
    pub(super) probe_count: u32,
    lines: f64,
}

impl Filter {
    /// The filter of a number of prefixes; `groups` groups of siblings share cache lines.
    pub(super) fn new(layout: BitLayout, bits: f64, prefix_count: u64, groups: u64) -> Self {
        let prefix_count = (prefix_count as f64).max(1.0);
        let bits_per_prefix = bits / prefix_count;
        match layout {
            BitLayout::Standard => {
                let probe_count = probe_count(bits_per_prefix);
                let rate = standard_fpr(bits_per_prefix, probe_count);
                let fill = -(-f64::from(probe_count) / bits_per_prefix).exp_m1();
                Self { rate, probe_count, lines: standard_lines(fill, probe_count) }
            }
            BitLayout::Blocked => {
                let per_line = LINE_BITS / bits_per_prefix;
                let probe_count = best_probe_count(per_line).min(LINE_PROBE_MAX);
                // Siblings are in the same line: the average number of prefixes per group.
                let together = (prefix_count / (groups as f64).max(1.0)).max(1.0);
                let rate = if probe_count <= 2 {
                    let fill = blocked_fill(per_line / together, f64::from(probe_count) * together);
                    fill.powi(probe_count.cast_signed())
                } else {
                    blocked_fpr(LINE_BITS, per_line, probe_count)
                };
                Self { rate, probe_count, lines: 1.0 }
            }
        }
    }
}

/// The smallest number of bits per node with nearly the minimum rate of a standard level.
fn probe_count(bits_per_prefix: f64) -> u32 {
    let best = standard_best_k(bits_per_prefix, PROBES_MAX);
    let near = standard_fpr(bits_per_prefix, best) * NEAR_RATE;
    let fewer = best.saturating_sub(1).max(1);
    if standard_fpr(bits_per_prefix, fewer) <= near { fewer } else { best }
}

/// The lines that a probe reads one after the other in a standard level of which a share `fill` of the bits is set:
/// the first two are read together (`level.rs`), each further one if all bits before are set.
fn standard_lines(fill: f64, probe_count: u32) -> f64 {
    let Some(further) = probe_count.checked_sub(2) else { return 1.0 };
    let reads = (1.0 - fill.powi(further.cast_signed())) / (1.0 - fill).max(1e-9);
    1.0 + SECOND_LINE + fill * fill * reads
}

/// Mean share of set bits in lines with a Poisson number of groups that set `bits` bits each.
fn blocked_fill(groups_per_line: f64, bits: f64) -> f64 {
    let miss = (bits * (-1.0 / LINE_BITS).ln_1p()).exp();
    -(groups_per_line * (miss - 1.0)).exp_m1()
}

/// The probability that a query has a node with a key at its edge though no sampled query had: that of one sample at
/// the greatest depth at which a sampled query was present, and half of it for each further bit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unseen {
    share: f64,
    depth: u32,
}

impl Unseen {
    pub(super) fn new(cases: &[EmptyQuery<'_>]) -> Self {
        let depth = cases.iter().map(|case| case.near()).max().unwrap_or(0);
        Self { share: 1.0 / (cases.len() as f64 + 1.0), depth }
    }

    fn at(self, depth: u32) -> f64 {
        self.share * 0.5_f64.powi(depth.saturating_sub(self.depth).cast_signed())
    }
}

/// A level, as the recursion needs it.
#[derive(Debug, Clone, Copy)]
struct Step {
    depth: u32,
    /// The rate of a node at an edge that no sampled query found present.
    edge_rate: f64,
    lines: f64,
    /// A whole node: probability of `true`; cost of its probe and of those below it; logarithm of the probability of
    /// `false`.
    yes: f64,
    cost: f64,
    log_no: f64,
}

/// A design, ready to be evaluated for queries.
#[derive(Debug)]
pub(crate) struct Model {
    steps: Vec<Step>,
    /// The cost of points, if there is a full level.
    point: Option<Expected>,
    /// Whether a point without a full level always passes, instead of probing its prefixes.
    pub(super) needs_full: bool,
    probe_cap: f64,
}

/// Probability of `true` and cost of a part of the tree.
#[derive(Debug, Clone, Copy)]
struct Part {
    yes: f64,
    cost: f64,
}

impl Part {
    const OPEN: Self = Self { yes: 1.0, cost: 0.0 };
    const NONE: Self = Self { yes: 0.0, cost: 0.0 };

    /// This part, followed by another one if this one is rejected.
    fn then(self, next: Self) -> Self {
        let no = 1.0 - self.yes;
        Self { yes: self.yes + no * next.yes, cost: self.cost + no * next.cost }
    }
}

impl Step {
    /// A number of whole nodes, one after the other.
    #[inline]
    fn nodes(&self, count: f64) -> Part {
        if count == 0.0 {
            return Part::NONE;
        }
        let product = count * self.log_no;
        let yes = if product > -1e-4 { -product } else { -product.exp_m1() };
        let asked = if self.yes > 1e-12 { yes / self.yes } else { count };
        Part { yes, cost: self.cost * asked }
    }

    /// A node at an edge, with the nodes below it.
    #[inline]
    fn edge(&self, is_present: bool, below: Part) -> Part {
        let pass = if is_present { 1.0 } else { self.edge_rate };
        Part { yes: pass * below.yes, cost: self.lines + pass * below.cost }
    }
}

impl Model {
    /// `shares` are the levels, `key_bits` the length of all keys (0 for several lengths): a full level is part of the
    /// tree only if all keys have one length.
    pub(super) fn new(
        shares: &[Share],
        filter: impl Fn(&Share) -> Filter,
        key_bits: u32,
        unseen: Unseen,
        probe_cap: u32,
    ) -> Self {
        let mut sorted: Vec<&Share> = shares.iter().filter(|share| share.bits >= BITS_MIN).collect();
        sorted.sort_by_key(|share| (share.is_full, share.depth));
        let probe_cap = f64::from(probe_cap);
        let mut point = None;
        let mut steps: Vec<Step> = Vec::with_capacity(sorted.len());
        for share in sorted.iter().rev() {
            let filter = filter(share);
            if share.is_full {
                point = Some(Expected { rate: filter.rate, lines: filter.lines });
                if key_bits == 0 {
                    continue;
                }
            }
            let (mut yes, mut cost) = (filter.rate, filter.lines);
            if let Some(below) = steps.last() {
                let children = 2.0_f64.powi((below.depth - share.depth).cast_signed());
                let part = if children > probe_cap { Part::OPEN } else { below.nodes(children) };
                yes = filter.rate * part.yes;
                cost = filter.lines + filter.rate * part.cost;
            }
            let log_no = if yes >= 1.0 { f64::NEG_INFINITY } else { (-yes).ln_1p() };
            let (rate, lines, depth) = (filter.rate, filter.lines, share.depth);
            let edge_rate = rate + (1.0 - rate) * unseen.at(depth);
            steps.push(Step { depth, edge_rate, lines, yes, cost, log_no });
        }
        Self { steps, point, needs_full: false, probe_cap }
    }

    /// The weighted mean over the queries.
    pub(super) fn expected(&self, cases: &[EmptyQuery<'_>]) -> Expected {
        let (mut rate, mut lines, mut weight) = (0.0, 0.0, 0.0);
        for case in cases {
            let one = self.of(case);
            rate += one.rate * case.weight;
            lines += one.lines * case.weight;
            weight += case.weight;
        }
        if weight == 0.0 {
            return Expected { rate: 1.0, lines: 0.0 };
        }
        Expected { rate: rate / weight, lines: lines / weight }
    }

    /// One query: from the deepest level up, the nodes at both edges with those below them.
    pub(crate) fn of(&self, case: &EmptyQuery<'_>) -> Expected {
        match self.point {
            Some(point) if case.is_point => return point,
            None if case.is_point && self.needs_full => return Expected { rate: 1.0, lines: 0.0 },
            _ => {}
        }
        // The parts below the lower edge node, below the upper one, and below a node that is both.
        let (mut lower, mut upper, mut both) = (Part::OPEN, Part::OPEN, Part::OPEN);
        let mut below: Option<(&Step, u64, u64)> = None;
        let mut is_open = false;
        for step in &self.steps {
            let Some((first, last)) = case.bounds.span(step.depth) else {
                // No common window here and at all deeper levels.
                (lower, upper, both) = (Part::OPEN, Part::OPEN, Part::OPEN);
                is_open = true;
                below = None;
                continue;
            };
            if let Some((step_below, first_below, last_below)) = below {
                let gap = step_below.depth - step.depth;
                (lower, upper, both) = self.children(
                    step_below,
                    (lower, upper, both),
                    (first_below, last_below),
                    gap,
                    first == last,
                );
            } else if is_open {
                (lower, upper, both) = (Part::OPEN, Part::OPEN, Part::OPEN);
            }
            let (in_lower, in_upper) = (case.shared_left >= step.depth, case.shared_right >= step.depth);
            lower = step.edge(in_lower, lower);
            upper = step.edge(in_upper, upper);
            both = step.edge(in_lower || in_upper, both);
            below = Some((step, first, last));
            is_open = false;
        }
        let Some((top, first, last)) = below else { return Expected { rate: 1.0, lines: 0.0 } };
        let part = self.between(top, (lower, upper, both), first, last);
        Expected { rate: part.yes + (1.0 - part.yes) * self.limited_share(part), lines: part.cost }
    }

    /// The probability that the probe limit ends the walk of a query that would be rejected. Such a query probes all
    /// its nodes, more than the mean. Numbers of probes vary by about a quarter.
    fn limited_share(&self, part: Part) -> f64 {
        let probes = part.cost / (1.0 - 0.5 * part.yes.min(1.0));
        ((probes / self.probe_cap - 0.6) / 0.8).clamp(0.0, 1.0)
    }

    /// The parts below the edge nodes of a level, from those of the edge nodes one level deeper.
    fn children(
        &self,
        below: &Step,
        (lower, upper, both): (Part, Part, Part),
        (first, last): (u64, u64),
        gap: u32,
        is_one: bool,
    ) -> (Part, Part, Part) {
        if is_one {
            return (Part::OPEN, Part::OPEN, self.between(below, (lower, upper, both), first, last));
        }
        let mask = if gap >= 64 { u64::MAX } else { (1 << gap) - 1 };
        let run = |count: u64| (count as f64 <= self.probe_cap).then(|| below.nodes(count as f64));
        let in_lower = run(mask - (first & mask)).map_or(Part::OPEN, |whole| lower.then(whole));
        let in_upper = run(last & mask).map_or(Part::OPEN, |whole| whole.then(upper));
        (in_lower, in_upper, Part::OPEN)
    }

    /// All nodes of a level that the range touches.
    fn between(&self, step: &Step, (lower, upper, both): (Part, Part, Part), first: u64, last: u64) -> Part {
        if first == last {
            return both;
        }
        let whole = (last.wrapping_sub(first) - 1) as f64;
        if whole + 2.0 > self.probe_cap {
            return Part::OPEN;
        }
        lower.then(step.nodes(whole)).then(upper)
    }
}

impl Share {
    /// The filter of the level.
    pub(super) fn filter(&self, counts: &PrefixCounts) -> Filter {
        let prefix_count = self.prefix_count(counts);
        let groups =
            if self.is_full { prefix_count } else { counts.at(self.depth - sibling_bits(self.depth)) };
        Filter::new(self.layout, self.bits, prefix_count, groups)
    }

    pub(super) fn prefix_count(&self, counts: &PrefixCounts) -> u64 {
        if self.is_full { counts.keys() } else { counts.at(self.depth) }
    }
}
