//! Builds the filters of this module: collects the keys, lets the model choose a design, and encodes it.

use std::sync::Arc;

use super::bloom::{Inserter, best_rate};
use super::design::{BloomLayout, Design, Prices, SetForm, Stage, WHOLE_KEYS};
use super::design_search::Breadth;
use super::keys::{Prefix, for_each_prefix, string_bytes};
use super::layout::{BLOCK_BYTES, FIRST_BLOOM, Fields};
use super::model::{Model, is_surely_best, whole_set};
use super::prefix_set::{TrieSetBuilder, encode_integers};
use super::sizes::set_size;
use crate::bit_string::HEAD_BITS;
use crate::envelope::{ENVELOPE_BYTES, Envelope, PARAMETER_BYTES};
use crate::hash::length_mark;
use crate::key_set::{KeptKeys, PREFIX_BITS_MAX};
use crate::parameters::Parameters;
use crate::prefix_counts::PrefixCounts;
use crate::{Budget, BuildError, Digester, Family, FilterBuilder, KeySet, Samples};

/// Builder of the families of this module. Parameters: see [`Family`].
#[derive(Debug)]
pub struct ProteusBuilder {
    family: Family,
    prices: Prices,
    given: Option<Given>,
    layout: Option<BloomLayout>,
    digester: Digester,
    keys: KeptKeys,
    /// The design of [`FilterBuilder::design`] with its budget and predicted rate.
    chosen: Option<(Budget, Design, Option<f64>)>,
}

/// Lengths that the parameters give.
#[derive(Debug, Clone, Copy)]
struct Given {
    depth: u32,
    prefix: u32,
    share: f64,
}

impl ProteusBuilder {
    /// A builder of [`Family::Proteus`], [`Family::OnePrefixBloom`] or [`Family::TwoPrefixBloom`]; any other family counts as the
    /// first. Prices: see [`Prices`].
    pub fn new(family: Family, prices: Prices, seed: u64) -> Self {
        let digester = Digester::new(seed);
        let is_own = matches!(family, Family::OnePrefixBloom | Family::TwoPrefixBloom);
        let family = if is_own { family } else { Family::Proteus };
        let prices = prices.usable();
        Self { family, prices, given: None, layout: None, digester, keys: KeptKeys::new(), chosen: None }
    }

    /// Builds this design instead of choosing one. The form of a set is still the smallest one, or a bitmap that is not much larger.
    #[must_use]
    pub fn with_design(mut self, design: &Design) -> Self {
        let share = if let Stage::Bloom { share, .. } = design.first { share } else { 0.5 };
        self.given = Some(Given { depth: design.first.depth(), prefix: design.prefix, share });
        self.layout = Some(design.layout);
        self
    }

    pub(crate) fn with_parameters(
        family: Family,
        parameters: &mut Parameters<'_>,
        seed: u64,
    ) -> Result<Self, BuildError> {
        let default = Prices::DEFAULT;
        let is_price = |price: &f64| price.is_finite() && *price >= 0.0;
        let price = "a number from 0 on";
        let probe = parameters.take("probe-cost", price, is_price)?.unwrap_or(default.probe);
        let read = parameters.take("read-cost", price, is_price)?.unwrap_or(default.read);
        let is_cap = |cap: &u32| (Prices::PROBE_CAP_MIN..=Prices::PROBE_CAP_MAX).contains(cap);
        let cap = parameters.take("probe-cap", "2 to 16777216 tests", is_cap)?;
        let prices = Prices { probe, read, probe_cap: cap.unwrap_or(default.probe_cap) };
        let mut builder = Self::new(family, prices, seed);
        builder.layout = parameters.take("layout", "spread or lines", |_: &BloomLayout| true)?;
        let expected = "0 to 524280 bits";
        let is_depth = |bits: &u32| *bits <= PREFIX_BITS_MAX;
        let first_name = if family == Family::TwoPrefixBloom { "first" } else { "trie" };
        let depth = match family {
            Family::OnePrefixBloom => None,
            _ => parameters.take(first_name, expected, is_depth)?,
        };
        let prefix_name = if family == Family::TwoPrefixBloom { "second" } else { "prefix" };
        let prefix = parameters.take(prefix_name, expected, is_depth)?;
        let share = match family {
            Family::TwoPrefixBloom => {
                let is_share = |share: &f64| *share > 0.0 && *share < 1.0;
                parameters.take("share", "a number between 0 and 1", is_share)?
            }
            _ => None,
        };
        parameters.finish(match family {
            Family::OnePrefixBloom => "prefix, layout, probe-cost, read-cost, probe-cap",
            Family::TwoPrefixBloom => "first, second, share, layout, probe-cost, read-cost, probe-cap",
            _ => "trie, prefix, layout, probe-cost, read-cost, probe-cap",
        })?;
        if depth.is_some() || prefix.is_some() || share.is_some() {
            builder.given = Some(Given {
                depth: depth.unwrap_or(0),
                prefix: prefix.unwrap_or(0),
                share: share.unwrap_or(0.5),
            });
            builder.check_given(first_name)?;
        }
        Ok(builder)
    }

    fn check_given(&self, name: &'static str) -> Result<(), BuildError> {
        let Some(given) = self.given else { return Ok(()) };
        let needs_both = self.family == Family::TwoPrefixBloom;
        let is_possible = (given.prefix == 0 && !needs_both)
            || (given.prefix > given.depth && (given.depth > 0 || !needs_both));
        if is_possible {
            return Ok(());
        }
        Err(BuildError::Parameter {
            family: self.family.name(),
            name,
            value: given.depth.to_string(),
            expected: "fewer bits than the prefixes of the second stage",
        })
    }

    /// The design for a budget and a sample, and its predicted rate. [`FilterBuilder::finish`] calls this and builds the design.
    pub fn choose(&self, budget: Budget, samples: Samples<'_>) -> Result<(Design, Option<f64>), BuildError> {
        let bits = budget.require(self.family.name())?;
        if self.given.is_some() {
            return Ok((self.given_design(), None));
        }
        let budget_bytes = (self.keys.len() as f64 * bits / 8.0) as u64;
        if let Some((design, prediction)) = whole_set(self.family, &self.keys, budget_bytes, &self.prices)
            && (samples.queries.is_empty() || is_surely_best(&prediction, &self.prices))
        {
            return Ok((design, Some(prediction.fpr)));
        }
        let model = Model::new(&self.keys, samples);
        let (design, prediction) =
            model.choose_in(Breadth::FULL, self.layout, self.family, budget, &self.prices)?;
        Ok((design, Some(prediction.fpr)))
    }

    fn given_design(&self) -> Design {
        let given = self.given.unwrap_or(Given { depth: 0, prefix: 0, share: 0.5 });
        // Prefixes longer than the keys add nothing.
        let longest = self.keys.bit_count();
        let depth = given.depth.min(longest);
        // The second of two Bloom filters is tested for prefixes below those of the first: it can't contain whole keys.
        let is_whole = given.prefix == WHOLE_KEYS
            && self.keys.fixed().is_none()
            && self.family != Family::TwoPrefixBloom;
        let prefix = if is_whole { WHOLE_KEYS } else { given.prefix.min(longest) };
        let first = match (self.family, depth) {
            (_, 0) => Stage::None,
            (Family::TwoPrefixBloom, _) => Stage::Bloom { depth, share: given.share },
            _ => Stage::Set { depth, form: SetForm::Trie },
        };
        let is_pair = self.family == Family::TwoPrefixBloom;
        let (first, prefix) = match prefix <= depth {
            // Two filters of one length are the same as one.
            true if is_pair => (Stage::None, prefix),
            true => (first, 0),
            false => (first, prefix),
        };
        Design { first, prefix, layout: self.layout.unwrap_or(BloomLayout::Spread) }
    }

    /// Encodes the first stage and sets its fields.
    fn encode_first(
        &self,
        design: &Design,
        budget_bytes: u64,
        fields: &mut Fields,
    ) -> Result<Vec<u8>, BuildError> {
        let mut first = Vec::new();
        match design.first {
            Stage::None => {}
            Stage::Set { depth, form } => {
                fields.depth = depth;
                self.encode_set(depth, form, &mut first, fields)?;
            }
            Stage::Bloom { depth, share } => {
                let bytes = (budget_bytes as f64 * share) as u64;
                let plan = best_rate(BloomLayout::Spread, bytes, self.prefix_count(depth));
                if let Some(plan) = plan {
                    fields.depth = depth;
                    fields.first = FIRST_BLOOM;
                    fields.first_probe_count = plan.probe_count as u8;
                    first.resize(plan.bytes as usize, 0);
                    self.insert(Inserter::first(&mut first, &plan), depth);
                }
            }
        }
        fields.first_bytes = first.len() as u64;
        Ok(first)
    }

    fn encode_set(
        &self,
        depth: u32,
        form: SetForm,
        target: &mut Vec<u8>,
        fields: &mut Fields,
    ) -> Result<(), BuildError> {
        let form = self.set_form(depth, form);
        if form != SetForm::Trie {
            let mut integers: Vec<u64> =
                self.keys.heads().map(|head| (head >> (HEAD_BITS - depth)) as u64).collect();
            integers.dedup();
            let least = integers.first().copied().unwrap_or(0);
            let last = integers.last().copied().unwrap_or(0) - least;
            let ends @ (count, _) = (integers.len() as u64, last);
            (fields.first, fields.count, fields.least, fields.last) = (form as u8, count, least, last);
            encode_integers(target, form, ends, integers.iter().map(|integer| integer - least));
            return Ok(());
        }
        fields.first = SetForm::Trie as u8;
        let mut set = TrieSetBuilder::new(depth);
        for_each_prefix(&self.keys, depth, |prefix| match prefix {
            Prefix::Head(head) => {
                set.add(head.to_be_bytes().get(..depth.div_ceil(8) as usize).unwrap_or_default())
            }
            Prefix::Bytes(bytes) => set.add(bytes),
        });
        set.finish(target)
    }

    /// The form of a set: that of the design, or the one that the model takes if only the depth is given.
    fn set_form(&self, depth: u32, form: SetForm) -> SetForm {
        if self.given.is_none() || self.keys.fixed().is_none() {
            return form;
        }
        let counts = PrefixCounts::of_keys(&self.keys, self.keys.bit_count());
        set_size(&self.keys, &counts, depth).map_or(SetForm::EliasFano, |size| size.form)
    }

    /// Counts the distinct prefixes of a length.
    fn prefix_count(&self, bits: u32) -> u64 {
        if bits == WHOLE_KEYS {
            return self.keys.len() as u64;
        }
        let mut count = 0;
        for_each_prefix(&self.keys, bits, |_| count += 1);
        count
    }

    /// Inserts the digests of all prefixes of a length into a Bloom filter.
    fn insert(&self, mut inserter: Inserter<'_>, bits: u32) {
        let (digester, fixed) = (&self.digester, self.keys.fixed());
        if bits == WHOLE_KEYS && fixed.is_none() {
            self.keys.iter().for_each(|key| inserter.push(digester.digest(key)));
        } else {
            // The digests of whole integers are those of keys, which have no mark.
            let is_whole = fixed.is_some_and(|fixed| fixed.bit_count() == bits);
            let mark = if is_whole { length_mark(bits) } else { 0 };
            for_each_prefix(&self.keys, bits, |prefix| {
                inserter.push(match prefix {
                    Prefix::Head(head) => digester.long_word_prefix_digest(head, bits) ^ mark,
                    Prefix::Bytes(bytes) => digester.whole_byte_prefix_digest(bytes, bits),
                });
            });
        }
        inserter.finish();
    }

    /// Encodes the filter of a design.
    fn encode(&self, design: &Design, predicted: Option<f64>, budget: Budget) -> Result<Vec<u8>, BuildError> {
        let bits = budget.require(self.family.name())?;
        let key_count = self.keys.len() as f64;
        let budget_bytes = (key_count * bits / 8.0) as u64;
        let has_set = self.family == Family::Proteus;
        let mut fields = Fields {
            cap: self.prices.bloom_cap(has_set) as u32,
            key_bytes: self.keys.fixed().map_or(0, |fixed| fixed.byte_count),
            string_bytes: string_bytes(&self.keys),
            predicted,
            ..Fields::default()
        };
        let mut first = self.encode_first(design, budget_bytes, &mut fields)?;
        let Some(left) = budget_bytes.checked_sub(first.len() as u64) else {
            let least_bits_per_key = first.len() as f64 * 8.0 / key_count;
            if least_bits_per_key > Budget::BITS_PER_KEY_MAX {
                // Very few keys: the requested set exceeds every budget, so the filter has none.
                return self.encode(&Design { first: Stage::None, ..*design }, predicted, budget);
            }
            return Err(BuildError::BudgetTooSmall {
                family: self.family.name(),
                given: bits,
                least_bits_per_key,
            });
        };
        let plan = (design.prefix != 0)
            .then(|| best_rate(design.layout, left, self.prefix_count(design.prefix)))
            .flatten();
        if plan.is_none() && fields.first == FIRST_BLOOM {
            // No bytes remain for the second of two Bloom filters: the first one is useless alone.
            first.clear();
            (fields.depth, fields.first, fields.first_bytes, fields.first_probe_count) = (0, 0, 0, 0);
        }
        let bloom_bytes = plan.map_or(0, |plan| plan.bytes);
        let mut filter = crate::bloom::empty_filter(BLOCK_BYTES as u64 + bloom_bytes + first.len() as u64)?;
        let (block, parts) = filter.split_at_mut(ENVELOPE_BYTES + BLOCK_BYTES);
        let (bloom, set) = parts.split_at_mut(bloom_bytes as usize);
        if let Some(plan) = plan {
            fields.prefix = design.prefix;
            fields.layout = plan.layout.number();
            fields.probe_count = plan.probe_count as u8;
            fields.bloom_bytes = plan.bytes;
            self.insert(Inserter::new(bloom, &plan), design.prefix);
        }
        block
            .iter_mut()
            .skip(ENVELOPE_BYTES)
            .zip(fields.block())
            .for_each(|(target, source)| *target = source);
        set.copy_from_slice(&first);
        Envelope::new(self.family, self.digester.seed(), self.keys.len() as u64, fields.parameters())
            .seal(&mut filter);
        Ok(filter)
    }
}

impl FilterBuilder for ProteusBuilder {
    #[inline]
    fn add(&mut self, key: &[u8]) -> Result<(), BuildError> {
        self.chosen = None;
        self.keys.push(key)
    }

    fn add_all(&mut self, keys: &Arc<KeySet>) -> Result<(), BuildError> {
        self.chosen = None;
        self.keys.push_all(keys)
    }

    fn key_count(&self) -> u64 {
        self.keys.len() as u64
    }

    fn memory_bytes(&self) -> usize {
        self.keys.memory_bytes()
    }

    fn design(&mut self, budget: Budget, samples: Samples<'_>) -> Result<(), BuildError> {
        if !self.keys.is_empty() {
            let (design, predicted) = self.choose(budget, samples)?;
            self.chosen = Some((budget, design, predicted));
        }
        Ok(())
    }

    fn finish(&self, budget: Budget, samples: Samples<'_>) -> Result<Vec<u8>, BuildError> {
        budget.require(self.family.name())?;
        if self.keys.is_empty() {
            let mut filter = vec![0; ENVELOPE_BYTES];
            Envelope::new(self.family, self.digester.seed(), 0, [0; PARAMETER_BYTES]).seal(&mut filter);
            return Ok(filter);
        }
        let (design, predicted) = match self.chosen {
            Some((known, design, predicted)) if known == budget => (design, predicted),
            _ => self.choose(budget, samples)?,
        };
        self.encode(&design, predicted, budget)
    }
}

impl std::str::FromStr for BloomLayout {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|layout| layout.name() == name).ok_or(())
    }
}
