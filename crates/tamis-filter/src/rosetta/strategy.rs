//! The optimisation goal of a filter: strategy and prices.

use std::str::FromStr;

use crate::BuildError;
use crate::parameters::Parameters;

/// How bits are allocated to the levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// The default: least expected cost of probes and false-positive reads for the sampled queries.
    LeastCost = 0,
    /// All bits in the deepest level.
    Single = 1,
    /// Equal rates of all nodes, their descendants included (section 2.3 of the paper).
    FirstCut = 2,
    /// Minimum sum of the levels' rates, weighted by the number of their probes (section 2.3).
    Optimised = 3,
    /// As before, with each level weighted by the probes of all levels above as well (section 2.4).
    Variable = 4,
    /// A single level if ranges of up to 16 keys dominate, otherwise the variable strategy (section 2.4).
    Hybrid = 5,
}

impl Strategy {
    /// All strategies.
    pub const ALL: [Self; 6] =
        [Self::LeastCost, Self::Single, Self::FirstCut, Self::Optimised, Self::Variable, Self::Hybrid];

    /// The name as a parameter.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LeastCost => "least-cost",
            Self::Single => "single",
            Self::FirstCut => "first-cut",
            Self::Optimised => "optimised",
            Self::Variable => "variable",
            Self::Hybrid => "hybrid",
        }
    }

    pub(super) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|strategy| *strategy as u8 == number)
    }
}

impl FromStr for Strategy {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|strategy| strategy.name() == name).ok_or(())
    }
}

/// Costs of a query in nanoseconds, and its probe limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prices {
    /// A cache line that a probe reads.
    pub probe_ns: f64,
    /// A read caused by a false positive.
    pub read_ns: f64,
    /// Maximum number of nodes that a query probes in one filter.
    pub probe_cap: u32,
}

impl Default for Prices {
    /// 10 ns per probe, 50 us per read, 2,048 probes.
    fn default() -> Self {
        Self { probe_ns: 10.0, read_ns: 50_000.0, probe_cap: 2048 }
    }
}

/// The largest probe limit.
const PROBE_CAP_MAX: u32 = 1 << 16;

/// The highest price.
const PRICE_MAX: f64 = 1e12;

/// All parameters of the family.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Options {
    pub(super) strategy: Strategy,
    pub(super) prices: Prices,
}

impl Options {
    pub(super) fn from_parameters(parameters: &mut Parameters<'_>) -> Result<Self, BuildError> {
        let expected = "least-cost, single, first-cut, optimised, variable or hybrid";
        let strategy = parameters.take("strategy", expected, |_| true)?;
        let is_price = |price: &f64| (0.0..=PRICE_MAX).contains(price);
        let expected = "nanoseconds, 0 to 1e12";
        let defaults = Prices::default();
        let probe_ns = parameters.take("probe-cost", expected, is_price)?.unwrap_or(defaults.probe_ns);
        let read_ns = parameters.take("read-cost", expected, is_price)?.unwrap_or(defaults.read_ns);
        let is_cap = |cap: &u32| (1..=PROBE_CAP_MAX).contains(cap);
        let probe_cap = parameters.take("probe-cap", "1 to 65536 probes", is_cap)?;
        parameters.finish("strategy, probe-cost, read-cost, probe-cap")?;
        let prices = Prices { probe_ns, read_ns, probe_cap: probe_cap.unwrap_or(defaults.probe_cap) };
        Ok(Self { strategy: strategy.unwrap_or(Strategy::LeastCost), prices })
    }
}
