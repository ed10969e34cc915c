//! Builds SuRF filters in one iteration over the keys. Holds the labels and, for each leaf, the digest and the first
//! bytes after the stored prefix, as the family needs.

use std::cell::RefCell;

use tamis_bits::packed::{self, PackedVec};

use super::suffix::{SuffixBits, word_after};
use super::{BITS_PER_KEY_MAX, SMALL_SET_BYTES, SUFFIX_BITS_COUNTED_MAX, SurfFilter};
use crate::envelope::{ENVELOPE_BYTES, Envelope, PARAMETER_BYTES, set_parameter, set_predicted_fpr};
use crate::parameters::Parameters;
use crate::trie::{self, Depth, EncodedTrie, LeafWords, Levels, Plan, TRAILER_BYTES, WordBits};
use crate::{
    Budget, BuildError, Digester, Family, Filter, FilterBuilder, KeyRange, Probe, RangeProbe, Samples,
};

/// Bytes that a filter may have in addition to its bits per key.
const BUDGET_SLACK_BYTES: u64 = 128;

/// Builder of the SuRF families.
#[derive(Debug)]
pub struct SurfBuilder {
    family: Family,
    /// The suffix, if the parameters fix it.
    given: Option<SuffixBits>,
    /// Whether a budget below the least size shortens the trie.
    may_truncate: bool,
    seed: u64,
    core: RefCell<Core>,
}

#[derive(Debug)]
struct Core {
    levels: Levels,
    leaf: Leaf,
}

/// The data held for each leaf: its suffix if that is fixed, otherwise the digest and the first bytes after the stored
/// prefix, as the family needs.
#[derive(Debug)]
struct Leaf {
    digester: Digester,
    /// Stored bits of both.
    kept: SuffixBits,
    is_given: bool,
}

impl LeafWords for Leaf {
    #[inline(always)]
    fn words(&mut self, key: &[u8], depth: usize) -> [u64; 2] {
        if self.kept.width() == 0 {
            return [0; 2];
        }
        let digest = if self.kept.hash > 0 { self.digester.digest(key) } else { 0 };
        let real = if self.kept.real > 0 { word_after(key, depth) } else { 0 };
        if self.is_given { [self.kept.field(digest, real), 0] } else { [digest, real] }
    }
}

impl Leaf {
    /// Bits of the two words.
    const fn widths(&self) -> WordBits {
        if self.is_given { [self.kept.width(), 0] } else { [self.kept.hash, self.kept.real] }
    }

    /// Appends the suffixes of the leaves of a plan.
    fn encode(&self, target: &mut Vec<u8>, suffix: SuffixBits, levels: &Levels, plan: &Plan) {
        let mut fields = PackedVec::new(suffix.width());
        for words in plan.leaves(levels) {
            let [first, second] = words.as_ref();
            if self.is_given {
                fields.append(first);
                continue;
            }
            for index in 0..first.len().max(second.len()) {
                fields.push(suffix.field(first.get(index), second.get(index)));
            }
        }
        fields.encode(target);
    }
}

/// A trie and the plan by which it was encoded.
#[derive(Debug)]
struct Planned {
    plan: Plan,
    encoded: EncodedTrie,
}

impl Planned {
    /// Bytes of a filter with suffixes of `width` bits.
    fn filter_bytes(&self, width: u32) -> u64 {
        let suffixes = packed::encoded_bytes(width, self.encoded.layout.counts.leaf_count());
        let others = ENVELOPE_BYTES + self.encoded.bytes.len() + TRAILER_BYTES;
        suffixes.unwrap_or(u64::MAX).saturating_add(others as u64)
    }
}

/// The encoded trie of a plan, or the error for levels with too many labels.
fn encoded(levels: &Levels, plan: Option<Plan>) -> Result<Planned, BuildError> {
    let planned = plan.and_then(|plan| trie::encode(levels, &plan).map(|encoded| Planned { plan, encoded }));
    planned.ok_or(BuildError::TooLarge { needed_bytes: u64::MAX, bytes_max: u64::from(u32::MAX) * 2 })
}

/// Maximal bytes of a filter within its budget.
fn allowed_bytes(key_count: u64, bits_per_key: f64) -> u64 {
    (key_count as f64 * bits_per_key / 8.0) as u64 + BUDGET_SLACK_BYTES
}

impl SurfBuilder {
    /// Creates a builder of one of the SuRF families; any other family is treated as [`Family::Surf`]. `given` fixes
    /// the suffix, otherwise the budget does.
    pub fn new(family: Family, given: Option<SuffixBits>, seed: u64) -> Self {
        let given = if family == Family::SurfBase { Some(SuffixBits::default()) } else { given };
        let all = |is_kept: bool| if is_kept { SuffixBits::MAX } else { 0 };
        let (hash, real) = (all(family != Family::SurfReal), all(family != Family::SurfHash));
        let kept = given.unwrap_or(SuffixBits { hash, real });
        let leaf = Leaf { digester: Digester::new(seed), kept, is_given: given.is_some() };
        let core = RefCell::new(Core { levels: Levels::new(Depth::Capped, leaf.widths()), leaf });
        Self { family, given, may_truncate: false, seed, core }
    }

    /// Lets a budget below the least size shorten the trie: it has fewer levels, and a leaf may represent several keys.
    /// Otherwise such a budget is rejected.
    #[must_use]
    pub const fn with_truncation(mut self) -> Self {
        self.may_truncate = true;
        self
    }

    pub(crate) fn with_parameters(
        family: Family,
        parameters: &mut Parameters<'_>,
        seed: u64,
    ) -> Result<Self, BuildError> {
        let mut take =
            |name, bits_max, expected| parameters.take(name, expected, |bits: &u32| *bits <= bits_max);
        let bits = "0 to 64 bits";
        let (hash, real, known) = match family {
            Family::SurfHash => (take("bits", SuffixBits::MAX, bits)?, None, "bits"),
            Family::SurfReal => (None, take("bits", SuffixBits::MAX, bits)?, "bits"),
            Family::SurfMixed => {
                let hash = take("hash", SuffixBits::MAX, bits)?;
                let real_max = SuffixBits::MAX - hash.unwrap_or(0);
                let real = take("real", real_max, "0 to 64 bits, together with the hash bits at most 64")?;
                (hash, real, "hash, real")
            }
            Family::Surf => (None, None, "truncate"),
            _ => (None, None, "none"),
        };
        let truncate = match family {
            Family::Surf => {
                parameters.take("truncate", "yes or no", |given: &String| given == "yes" || given == "no")?
            }
            _ => None,
        };
        parameters.finish(known)?;
        let given = (hash.is_some() || real.is_some())
            .then(|| SuffixBits { hash: hash.unwrap_or(0), real: real.unwrap_or(0) });
        let builder = Self::new(family, given, seed);
        Ok(if truncate.is_some_and(|given| given == "yes") { builder.with_truncation() } else { builder })
    }

    /// The trie with its own height, or the greatest height within the maximal bits per key.
    fn trie(
        &self,
        core: &Core,
        has_suffixes: bool,
        plan: impl Fn(&Levels, u64, bool) -> Option<Plan>,
    ) -> Result<Planned, BuildError> {
        let reserved = self.given.map_or(0, |given| u64::from(given.width()).min(SUFFIX_BITS_COUNTED_MAX));
        let bits = core.levels.key_count().saturating_mul(BITS_PER_KEY_MAX - reserved);
        let bytes_max = bits / 8 + SMALL_SET_BYTES - (ENVELOPE_BYTES + TRAILER_BYTES) as u64;
        encoded(&core.levels, plan(&core.levels, bytes_max, has_suffixes))
    }

    /// The suffix fixed by the parameters, or `None` if the budget decides.
    fn fixed_suffix(&self, budget: Budget) -> Option<SuffixBits> {
        let has_default = self.family == Family::SurfMixed && budget.as_bits_per_key().is_none();
        self.given.or(has_default.then_some(SuffixBits { hash: 4, real: 4 }))
    }

    /// The error that names the least size, if a filter with suffixes of `width` bits exceeds the bits per key.
    fn check_size(&self, core: &Core, trie: &Planned, width: u32, given: f64) -> Result<(), BuildError> {
        let (key_count, bytes) = (core.levels.key_count(), trie.filter_bytes(width));
        if bytes <= allowed_bytes(key_count, given) {
            return Ok(());
        }
        let least_bits_per_key = (bytes - BUDGET_SLACK_BYTES) as f64 * 8.0 / key_count as f64;
        Err(BuildError::BudgetTooSmall { family: self.family.name(), given, least_bits_per_key })
    }

    /// The filter with the widest suffix; `None` if there is no room for one bit.
    fn with_widest_suffix(
        &self,
        core: &Core,
        trie: &Planned,
        given: f64,
        samples: Samples<'_>,
    ) -> Option<Vec<u8>> {
        let allowed = allowed_bytes(core.levels.key_count(), given);
        let width = (1..=SuffixBits::MAX).rev().find(|width| trie.filter_bytes(*width) <= allowed)?;
        let (suffix, predicted) = self.divide(core, trie, width, samples);
        Some(self.assemble(core, trie, suffix, predicted))
    }

    /// Divides the bits of a suffix into digest and real bits, and predicts the false-positive rate.
    fn divide(
        &self,
        core: &Core,
        trie: &Planned,
        width: u32,
        samples: Samples<'_>,
    ) -> (SuffixBits, Option<f64>) {
        let halves = (SuffixBits { hash: width - width / 2, real: width / 2 }, None);
        match self.family {
            Family::SurfHash => (SuffixBits { hash: width, real: 0 }, None),
            Family::SurfReal => (SuffixBits { hash: 0, real: width }, None),
            Family::Surf if !samples.queries.is_empty() => {
                let detailed = SuffixBits { hash: 0, real: SuffixBits::MAX };
                choose(self.seed, self.assemble(core, trie, detailed, None), width, samples)
                    .map_or(halves, |(suffix, rate)| (suffix, Some(rate)))
            }
            _ => halves,
        }
    }

    /// The encoded filter, with a trie by a plan of the caller's choice.
    pub(super) fn finish_with(
        &self,
        budget: Budget,
        samples: Samples<'_>,
        plan: impl Fn(&Levels, u64, bool) -> Option<Plan>,
    ) -> Result<Vec<u8>, BuildError> {
        {
            let Core { levels, leaf } = &mut *self.core.borrow_mut();
            levels.seal(leaf);
        }
        let core = self.core.borrow();
        if core.levels.key_count() == 0 {
            let mut filter = vec![0; ENVELOPE_BYTES];
            let mut parameters = [0; PARAMETER_BYTES];
            set_predicted_fpr(&mut parameters, None);
            Envelope::new(self.family, self.seed, 0, parameters).seal(&mut filter);
            return Ok(filter);
        }
        if let Some(fixed) = self.fixed_suffix(budget) {
            let trie = self.trie(&core, fixed.width() > 0, &plan)?;
            if let Some(given) = budget.as_bits_per_key() {
                self.check_size(&core, &trie, fixed.width(), given)?;
            }
            return Ok(self.assemble(&core, &trie, fixed, None));
        }
        let given = budget.require(self.family.name())?;
        let with_suffixes = self.trie(&core, true, &plan)?;
        if let Some(filter) = self.with_widest_suffix(&core, &with_suffixes, given, samples) {
            return Ok(filter);
        }
        // A trie without suffixes needs a smaller directory.
        let trie = self.trie(&core, false, &plan)?;
        match self.check_size(&core, &trie, 0, given) {
            Ok(()) => Ok(self.assemble(&core, &trie, SuffixBits::default(), None)),
            Err(_) if self.may_truncate => self.finish_truncated(&core, given, samples),
            Err(error) => Err(error),
        }
    }

    /// A filter whose trie has as many levels as `given` bits per key allow. The rest of the budget is used for
    /// suffixes.
    fn finish_truncated(&self, core: &Core, given: f64, samples: Samples<'_>) -> Result<Vec<u8>, BuildError> {
        let others = (ENVELOPE_BYTES + TRAILER_BYTES) as u64;
        let bytes_max = allowed_bytes(core.levels.key_count(), given).saturating_sub(others);
        let trie = encoded(&core.levels, trie::plan_within(&core.levels, bytes_max, false))?;
        self.check_size(core, &trie, 0, given)?;
        let with_suffixes = encoded(&core.levels, trie::plan(&core.levels, trie.plan.height, true))?;
        let filter = self.with_widest_suffix(core, &with_suffixes, given, samples);
        Ok(filter.unwrap_or_else(|| self.assemble(core, &trie, SuffixBits::default(), None)))
    }

    /// The whole filter.
    fn assemble(
        &self,
        core: &Core,
        Planned { plan, encoded }: &Planned,
        suffix: SuffixBits,
        predicted: Option<f64>,
    ) -> Vec<u8> {
        let suffix_bytes = packed::encoded_bytes(suffix.width(), encoded.layout.counts.leaf_count());
        let mut filter = Vec::with_capacity(
            ENVELOPE_BYTES + encoded.bytes.len() + suffix_bytes.unwrap_or(0) as usize + TRAILER_BYTES,
        );
        filter.resize(ENVELOPE_BYTES, 0);
        filter.extend_from_slice(&encoded.bytes);
        if suffix.width() > 0 {
            core.leaf.encode(&mut filter, suffix, &core.levels, plan);
        }
        filter.extend_from_slice(&encoded.trailer);
        // Without samples: the rate of points that the trie accepts and the digest bits accept too.
        let formula = (suffix.hash > 0).then(|| 0.5_f64.powi(suffix.hash.cast_signed()));
        let mut parameters = [0; PARAMETER_BYTES];
        set_parameter(&mut parameters, 0, [suffix.hash as u8, suffix.real as u8]);
        set_predicted_fpr(&mut parameters, predicted.or(formula));
        Envelope::new(self.family, self.seed, core.levels.key_count(), parameters).seal(&mut filter);
        filter
    }
}

impl FilterBuilder for SurfBuilder {
    #[inline]
    fn add(&mut self, key: &[u8]) -> Result<(), BuildError> {
        let Core { levels, leaf } = self.core.get_mut();
        levels.add(key, leaf).map(|_| ())
    }

    fn key_count(&self) -> u64 {
        self.core.borrow().levels.key_count()
    }

    fn memory_bytes(&self) -> usize {
        self.core.borrow().levels.memory_bytes()
    }

    fn finish(&self, budget: Budget, samples: Samples<'_>) -> Result<Vec<u8>, BuildError> {
        self.finish_with(budget, samples, trie::plan_within)
    }
}

/// The numbers of digest bits and real bits with the fewest false positives on the samples, and the remaining rate;
/// `None` without samples of empty queries.
///
/// `detailed` is the filter with 64 real bits: a sample that it accepts counts as one that holds a key. For each other
/// sample, the least number of real bits that reject it is searched; digest bits can reject a point as well.
fn choose(seed: u64, detailed: Vec<u8>, width: u32, samples: Samples<'_>) -> Option<(SuffixBits, f64)> {
    let envelope = Envelope::parse(&detailed, detailed.len() as u64).ok()?;
    let mut filter = SurfFilter::open(envelope, detailed).ok()?;
    let digester = Digester::new(seed);
    // By a number of real bits: the points and ranges that need more.
    let mut points = [0_u32; SuffixBits::MAX as usize + 1];
    let mut ranges = points;
    let mut empty_count = 0_u32;
    for query in samples.queries.iter().filter(|query| !query.is_empty()) {
        let Some(needed) = real_bits_needed(&mut filter, query, &digester) else { continue };
        empty_count += 1;
        let tally = if query.as_point().is_some() { &mut points } else { &mut ranges };
        tally.iter_mut().take(needed as usize).for_each(|count| *count += 1);
    }
    if empty_count == 0 {
        return None;
    }
    let positives = |real: u32| {
        let at = |tally: &[u32]| f64::from(tally.get(real as usize).copied().unwrap_or(0));
        at(&points) * 0.5_f64.powi((width - real).cast_signed()) + at(&ranges)
    };
    let best = (0..=width).min_by(|left, right| positives(*left).total_cmp(&positives(*right))).unwrap_or(0);
    Some((SuffixBits { hash: width - best, real: best }, positives(best) / f64::from(empty_count)))
}

/// The least number of real bits that reject a query; `None` if 64 are not sufficient.
fn real_bits_needed(
    filter: &mut SurfFilter<Vec<u8>>,
    query: &KeyRange<'_>,
    digester: &Digester,
) -> Option<u32> {
    let mut is_rejected = |real: u32| {
        filter.compare_only(real);
        match query.as_point() {
            Some(key) => !filter.may_contain(&Probe::new(key, digester)),
            None => !filter.may_contain_range(&RangeProbe::new(*query, digester)),
        }
    };
    if !is_rejected(SuffixBits::MAX) {
        return None;
    }
    let (mut fails, mut rejects) = (0, SuffixBits::MAX);
    if is_rejected(0) {
        return Some(0);
    }
    while fails + 1 < rejects {
        let middle = u32::midpoint(fails, rejects);
        if is_rejected(middle) { rejects = middle } else { fails = middle }
    }
    Some(rejects)
}
