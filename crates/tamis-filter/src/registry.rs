//! One filter type and one builder function for all families.

use std::fmt;

use crate::bloom::blocked::{BlockedBloomBuilder, BlockedBloomFilter};
use crate::bloom::elastic::{ElasticBuilder, ElasticFilter};
use crate::bloom::prefix::{PrefixBuilder, PrefixFilter};
use crate::envelope::Envelope;
use crate::grafite::{GrafiteBuilder, GrafiteFilter};
use crate::parameters::Parameters;
use crate::proteus::{ProteusBuilder, ProteusFilter};
use crate::rosetta::{RosettaBuilder, RosettaFilter};
use crate::surf::{SurfBuilder, SurfFilter};
use crate::{
    BuildError, Candidate, DecodeError, Direction, Family, Filter, FilterBuilder, Probe, RangeProbe,
};

impl Family {
    /// A builder with a seed for its digests.
    pub(crate) fn builder(
        self,
        parameters: &mut Parameters<'_>,
        seed: u64,
    ) -> Result<Box<dyn FilterBuilder>, BuildError> {
        Ok(match self {
            Self::BlockedBloom => Box::new(BlockedBloomBuilder::with_parameters(parameters, seed)?),
            Self::Prefix => Box::new(PrefixBuilder::with_parameters(parameters, seed)?),
            Self::Elastic => Box::new(ElasticBuilder::with_parameters(parameters, seed)?),
            Self::Surf | Self::SurfBase | Self::SurfHash | Self::SurfReal | Self::SurfMixed => {
                Box::new(SurfBuilder::with_parameters(self, parameters, seed)?)
            }
            Self::Rosetta => Box::new(RosettaBuilder::with_parameters(parameters, seed)?),
            Self::Proteus | Self::OnePrefixBloom | Self::TwoPrefixBloom => {
                Box::new(ProteusBuilder::with_parameters(self, parameters, seed)?)
            }
            Self::Grafite => Box::new(GrafiteBuilder::with_parameters(parameters, seed)?),
        })
    }
}

/// A filter of any family over borrowed or owned bytes.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum AnyFilter<D> {
    /// [`Family::BlockedBloom`]
    BlockedBloom(BlockedBloomFilter<D>),
    /// [`Family::Prefix`]
    Prefix(PrefixFilter<D>),
    /// [`Family::Elastic`]
    Elastic(ElasticFilter<D>),
    /// [`Family::Surf`] and its variants
    Surf(SurfFilter<D>),
    /// [`Family::Rosetta`].
    Rosetta(RosettaFilter<D>),
    /// [`Family::Proteus`], [`Family::OnePrefixBloom`] and [`Family::TwoPrefixBloom`]
    Proteus(ProteusFilter<D>),
    /// [`Family::Grafite`]
    Grafite(GrafiteFilter<D>),
}

impl<D: AsRef<[u8]>> AnyFilter<D> {
    /// Opens encoded bytes in place; reads the header only.
    pub fn open(bytes: D) -> Result<Self, DecodeError> {
        let slice = bytes.as_ref();
        let envelope = Envelope::parse(slice, slice.len() as u64)?;
        Ok(match Family::from_number(envelope.family)? {
            Family::BlockedBloom => Self::BlockedBloom(BlockedBloomFilter::open(envelope, bytes)?),
            Family::Prefix => Self::Prefix(PrefixFilter::open(envelope, bytes)?),
            Family::Elastic => Self::Elastic(ElasticFilter::open(envelope, bytes)?),
            Family::Surf | Family::SurfBase | Family::SurfHash | Family::SurfReal | Family::SurfMixed => {
                Self::Surf(SurfFilter::open(envelope, bytes)?)
            }
            Family::Rosetta => Self::Rosetta(RosettaFilter::open(envelope, bytes)?),
            Family::Proteus | Family::OnePrefixBloom | Family::TwoPrefixBloom => {
                Self::Proteus(ProteusFilter::open(envelope, bytes)?)
            }
            Family::Grafite => Self::Grafite(GrafiteFilter::open(envelope, bytes)?),
        })
    }

    /// The family.
    pub const fn family(&self) -> Family {
        match self {
            Self::BlockedBloom(_) => Family::BlockedBloom,
            Self::Prefix(_) => Family::Prefix,
            Self::Elastic(_) => Family::Elastic,
            Self::Surf(filter) => filter.family(),
            Self::Rosetta(_) => Family::Rosetta,
            Self::Proteus(filter) => filter.family(),
            Self::Grafite(_) => Family::Grafite,
        }
    }
}

macro_rules! each {
    ($any:expr, $filter:ident => $answer:expr) => {
        match $any {
            AnyFilter::BlockedBloom($filter) => $answer,
            AnyFilter::Prefix($filter) => $answer,
            AnyFilter::Elastic($filter) => $answer,
            AnyFilter::Surf($filter) => $answer,
            AnyFilter::Rosetta($filter) => $answer,
            AnyFilter::Proteus($filter) => $answer,
            AnyFilter::Grafite($filter) => $answer,
        }
    };
}

impl<D: AsRef<[u8]>> AnyFilter<D> {
    #[inline(never)]
    fn others_may_contain(&self, probe: &Probe<'_>) -> bool {
        match self {
            Self::BlockedBloom(filter) => filter.may_contain(probe),
            Self::Prefix(filter) => filter.may_contain(probe),
            Self::Elastic(filter) => filter.may_contain(probe),
            Self::Rosetta(filter) => filter.may_contain(probe),
            Self::Surf(_) | Self::Proteus(_) | Self::Grafite(_) => self.walks_may_contain(probe),
        }
    }

    /// Apart from the others, because its stack space would slow these down.
    #[inline(never)]
    fn walks_may_contain(&self, probe: &Probe<'_>) -> bool {
        each!(self, filter => filter.may_contain(probe))
    }

    #[inline(never)]
    fn others_prefetch(&self, probe: &Probe<'_>) {
        each!(self, filter => filter.prefetch(probe));
    }

    #[inline(never)]
    fn others_may_contain_range(&self, probe: &RangeProbe<'_>) -> bool {
        each!(self, filter => filter.may_contain_range(probe))
    }
}

impl<D: AsRef<[u8]>> Filter for AnyFilter<D> {
    /// The default family and tries are inlined here: the walks of the others need stack space that would slow these
    /// down.
    #[inline]
    fn may_contain(&self, probe: &Probe<'_>) -> bool {
        match self {
            Self::BlockedBloom(filter) => filter.may_contain(probe),
            Self::Surf(filter) => filter.may_contain(probe),
            Self::Proteus(filter) => filter.may_contain(probe),
            other => other.others_may_contain(probe),
        }
    }

    #[inline]
    fn may_contain_range(&self, probe: &RangeProbe<'_>) -> bool {
        match self {
            Self::Surf(filter) => filter.may_contain_range(probe),
            Self::Proteus(filter) => filter.may_contain_range(probe),
            other => other.others_may_contain_range(probe),
        }
    }

    #[inline]
    fn prefetch(&self, probe: &Probe<'_>) {
        match self {
            Self::BlockedBloom(filter) => filter.prefetch(probe),
            other => other.others_prefetch(probe),
        }
    }

    fn candidate(&self, probe: &RangeProbe<'_>, direction: Direction) -> Candidate {
        each!(self, filter => filter.candidate(probe, direction))
    }

    fn key_count(&self) -> u64 {
        each!(self, filter => filter.key_count())
    }

    fn encoded_bytes(&self) -> u64 {
        each!(self, filter => filter.encoded_bytes())
    }

    fn predicted_fpr(&self) -> Option<f64> {
        each!(self, filter => filter.predicted_fpr())
    }

    fn design(&self, target: &mut dyn fmt::Write) -> fmt::Result {
        each!(self, filter => filter.design(target))
    }

    fn verify(&self) -> Result<(), DecodeError> {
        each!(self, filter => filter.verify())
    }
}
