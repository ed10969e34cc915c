//! Builds SuRFs: one pass over the keys; labels and, as the family needs, digest and cut-off bytes of each leaf are held.

use std::cell::RefCell;
use std::sync::Arc;

use tamis_bits::packed::{self, PackedVec};

use super::reader::NO_PREDICTION;
use super::suffix::{SuffixBits, word_behind};
use super::{BITS_PER_KEY_MAX, SMALL_SET_BYTES, SUFFIX_BITS_COUNTED_MAX, SurfFilter};
use crate::envelope::{ENVELOPE_BYTES, Envelope, PARAMETER_BYTES, set_parameter};
use crate::parameters::Parameters;
use crate::trie::{self, Depth, EncodedTrie, LeafWords, Levels, Plan, TRAILER_BYTES, WordBits};
use crate::{
    Budget, BuildError, Digester, Family, Filter, FilterBuilder, KeyRange, KeySet, Probe, RangeProbe, Samples,
};

/// Bytes that a filter may have beyond its bits per key.
const BUDGET_SLACK_BYTES: u64 = 128;

/// Builder of the SuRF families.
#[derive(Debug)]
pub struct SurfBuilder {
    family: Family,
    /// The suffix, where the parameters give it.
    given: Option<SuffixBits>,
    seed: u64,
    core: RefCell<Core>,
}

#[derive(Debug)]
struct Core {
    levels: Levels,
    leaf: Leaf,
}

/// What is held for each leaf: its suffix where that is given, else the digest, and the bytes behind the stored prefix, as the family
/// needs.
#[derive(Debug)]
struct Leaf {
    digester: Digester,
    /// Bits of both that are kept.
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
        let real = if self.kept.real > 0 { word_behind(key, depth) } else { 0 };
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

/// A trie and the plan that it was encoded by.
#[derive(Debug)]
struct Planned {
    plan: Plan,
    encoded: EncodedTrie,
}

impl Planned {
    /// Bytes of a filter with suffixes of so many bits.
    fn filter_bytes(&self, width: u32) -> u64 {
        let suffixes = packed::encoded_bytes(width, self.encoded.layout.counts.leaf_count());
        let others = ENVELOPE_BYTES + self.encoded.bytes.len() + TRAILER_BYTES;
        suffixes.unwrap_or(u64::MAX).saturating_add(others as u64)
    }
}

impl SurfBuilder {
    /// A builder of one of the SuRF families; any other counts as [`Family::Surf`]. `given` fixes the suffix, otherwise the
    /// budget does.
    pub fn new(family: Family, given: Option<SuffixBits>, seed: u64) -> Self {
        let given = if family == Family::SurfBase { Some(SuffixBits::default()) } else { given };
        let all = |is_kept: bool| if is_kept { SuffixBits::MAX } else { 0 };
        let (hash, real) = (all(family != Family::SurfReal), all(family != Family::SurfHash));
        let kept = given.unwrap_or(SuffixBits { hash, real });
        let leaf = Leaf { digester: Digester::new(seed), kept, is_given: given.is_some() };
        let core = RefCell::new(Core { levels: Levels::new(Depth::Capped, leaf.widths()), leaf });
        Self { family, given, seed, core }
    }

    pub(crate) fn with_parameters(
        family: Family,
        parameters: &mut Parameters<'_>,
        seed: u64,
    ) -> Result<Self, BuildError> {
        let is_possible = |bits: &u32| *bits <= SuffixBits::MAX;
        let expected = "0 to 64 bits";
        let given = match family {
            Family::SurfHash | Family::SurfReal => {
                let bits = parameters.take("bits", expected, is_possible)?;
                parameters.finish("bits")?;
                let is_hash = family == Family::SurfHash;
                bits.map(|bits| SuffixBits {
                    hash: if is_hash { bits } else { 0 },
                    real: if is_hash { 0 } else { bits },
                })
            }
            Family::SurfMixed => {
                let hash = parameters.take("hash", expected, is_possible)?;
                let real_max = SuffixBits::MAX - hash.unwrap_or(0);
                let expected = "0 to 64 bits, together with the hash bits at most 64";
                let real = parameters.take("real", expected, |bits: &u32| *bits <= real_max)?;
                parameters.finish("hash, real")?;
                (hash.is_some() || real.is_some())
                    .then(|| SuffixBits { hash: hash.unwrap_or(0), real: real.unwrap_or(0) })
            }
            _ => {
                parameters.finish("none")?;
                None
            }
        };
        Ok(Self::new(family, given, seed))
    }

    /// The trie: its own height, or the greatest within the bits that a key may cost.
    fn trie(
        &self,
        core: &Core,
        has_suffixes: bool,
        plan: impl Fn(&Levels, u64, bool) -> Option<Plan>,
    ) -> Result<Planned, BuildError> {
        let reserved = self.given.map_or(0, |given| u64::from(given.width()).min(SUFFIX_BITS_COUNTED_MAX));
        let bits = core.levels.key_count().saturating_mul(BITS_PER_KEY_MAX - reserved);
        let bytes_max = bits / 8 + SMALL_SET_BYTES - (ENVELOPE_BYTES + TRAILER_BYTES) as u64;
        let planned = plan(&core.levels, bytes_max, has_suffixes)
            .and_then(|plan| trie::encode(&core.levels, &plan).map(|encoded| Planned { plan, encoded }));
        let too_large = BuildError::TooLarge { needed_bytes: u64::MAX, bytes_max: u64::from(u32::MAX) * 2 };
        planned.ok_or(too_large)
    }

    /// The suffix that the parameters give, or `None` where the budget decides.
    fn fixed_suffix(&self, budget: Budget) -> Result<Option<SuffixBits>, BuildError> {
        match (self.given, budget.as_bits_per_key()) {
            (Some(given), _) => Ok(Some(given)),
            (None, Some(_)) => Ok(None),
            (None, None) if self.family == Family::SurfMixed => Ok(Some(SuffixBits { hash: 4, real: 4 })),
            (None, None) => Err(BuildError::BudgetMissing { family: self.family.name() }),
        }
    }

    /// The widest suffix, up to a limit, with which a filter keeps its budget, or the refusal of the budget.
    fn widest_suffix(
        &self,
        core: &Core,
        trie: &Planned,
        budget: Budget,
        width_max: u32,
    ) -> Result<u32, BuildError> {
        let Some(given) = budget.as_bits_per_key() else { return Ok(width_max) };
        let key_count = core.levels.key_count() as f64;
        let allowed = (key_count * given / 8.0) as u64 + BUDGET_SLACK_BYTES;
        let least = if self.given.is_some() { width_max } else { 0 };
        let widest = (least..=width_max).rev().find(|width| trie.filter_bytes(*width) <= allowed);
        widest.ok_or_else(|| {
            let needed = trie.filter_bytes(least) - BUDGET_SLACK_BYTES;
            let least_bits_per_key = needed as f64 * 8.0 / key_count;
            BuildError::BudgetTooSmall { family: self.family.name(), given, least_bits_per_key }
        })
    }

    /// How many bits of a suffix are of which kind, and the rate to be expected.
    fn divide(
        &self,
        core: &Core,
        trie: &Planned,
        width: u32,
        samples: Samples<'_>,
    ) -> (SuffixBits, Option<f64>) {
        match self.family {
            Family::SurfHash => (SuffixBits { hash: width, real: 0 }, None),
            Family::SurfReal => (SuffixBits { hash: 0, real: width }, None),
            Family::Surf if !samples.queries.is_empty() => {
                let detailed = SuffixBits { hash: 0, real: SuffixBits::MAX };
                choose(self.seed, self.assemble(core, trie, detailed, None), width, samples)
            }
            _ => (SuffixBits { hash: width - width / 2, real: width / 2 }, None),
        }
    }

    /// The encoded filter, its trie of a plan of the caller's choice.
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
            set_parameter(&mut parameters, 4, NO_PREDICTION.to_le_bytes());
            Envelope::new(self.family, self.seed, 0, parameters).seal(&mut filter);
            return Ok(filter);
        }
        let fixed = self.fixed_suffix(budget)?;
        // A trie without suffixes needs less beside its labels: only where there is no room for one bit of them.
        if fixed.is_none_or(|fixed| fixed.width() > 0) {
            let trie = self.trie(&core, true, &plan)?;
            let width_max = fixed.map_or(SuffixBits::MAX, SuffixBits::width);
            match (self.widest_suffix(&core, &trie, budget, width_max), fixed) {
                (Ok(_), Some(fixed)) => return Ok(self.assemble(&core, &trie, fixed, None)),
                (Ok(width @ 1..), None) => {
                    let (suffix, predicted) = self.divide(&core, &trie, width, samples);
                    return Ok(self.assemble(&core, &trie, suffix, predicted));
                }
                (Err(error), Some(_)) => return Err(error),
                (Ok(_) | Err(_), None) => {}
            }
        }
        let trie = self.trie(&core, false, &plan)?;
        self.widest_suffix(&core, &trie, budget, 0)?;
        Ok(self.assemble(&core, &trie, SuffixBits::default(), None))
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
        // Without samples: what digest bits leave of the points that the trie does not deny.
        let formula = (suffix.hash > 0).then(|| 0.5_f64.powi(suffix.hash.cast_signed()));
        let predicted = predicted.or(formula).map_or(NO_PREDICTION, |rate| rate as f32);
        let mut parameters = [0; PARAMETER_BYTES];
        set_parameter(&mut parameters, 0, [suffix.hash as u8, suffix.real as u8]);
        set_parameter(&mut parameters, 4, predicted.to_le_bytes());
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

    fn add_all(&mut self, keys: &Arc<KeySet>) -> Result<(), BuildError> {
        let Core { levels, leaf } = self.core.get_mut();
        levels.add_all(keys.iter(), leaf)
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

/// How many digest bits and real bits give the fewest false positives on the samples, and the rate that is left.
///
/// `detailed` is the filter with 64 real bits: a sample that it still takes for present counts as one that holds a key. For the
/// others, the least number of real bits that deny it is found; a point can be denied by digest bits as well.
fn choose(seed: u64, detailed: Vec<u8>, width: u32, samples: Samples<'_>) -> (SuffixBits, Option<f64>) {
    let fallback = (SuffixBits { hash: width - width / 2, real: width / 2 }, None);
    let Ok(mut filter) = Envelope::parse(&detailed, detailed.len() as u64)
        .and_then(|envelope| SurfFilter::open(envelope, detailed))
    else {
        return fallback;
    };
    let digester = Digester::new(seed);
    // How many points and ranges need more real bits than the index says.
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
        return fallback;
    }
    let positives = |real: u32| {
        let at = |tally: &[u32]| f64::from(tally.get(real as usize).copied().unwrap_or(0));
        at(&points) * 0.5_f64.powi((width - real).cast_signed()) + at(&ranges)
    };
    let best = (0..=width).min_by(|left, right| positives(*left).total_cmp(&positives(*right))).unwrap_or(0);
    (SuffixBits { hash: width - best, real: best }, Some(positives(best) / f64::from(empty_count)))
}

/// The least number of real bits that deny a query; `None` where 64 do not.
fn real_bits_needed(
    filter: &mut SurfFilter<Vec<u8>>,
    query: &KeyRange<'_>,
    digester: &Digester,
) -> Option<u32> {
    let mut is_denied = |real: u32| {
        filter.compare_only(real);
        match query.as_point() {
            Some(key) => !filter.may_contain(&Probe::new(key, digester)),
            None => !filter.may_contain_range(&RangeProbe::new(*query, digester)),
        }
    };
    if !is_denied(SuffixBits::MAX) {
        return None;
    }
    let (mut fails, mut denies) = (0, SuffixBits::MAX);
    if is_denied(0) {
        return Some(0);
    }
    while fails + 1 < denies {
        let middle = u32::midpoint(fails, denies);
        if is_denied(middle) { denies = middle } else { fails = middle }
    }
    Some(denies)
}
