//! The optimisation goal of a filter: what a probe and a false positive cost.

use crate::BuildError;
use crate::parameters::Parameters;

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
pub(super) const PROBE_CAP_MAX: u32 = 1 << 16;

/// The highest price.
const PRICE_MAX: f64 = 1e12;

impl Prices {
    pub(super) fn from_parameters(parameters: &mut Parameters<'_>) -> Result<Self, BuildError> {
        let is_price = |price: &f64| (0.0..=PRICE_MAX).contains(price);
        let expected = "nanoseconds, 0 to 1e12";
        let defaults = Self::default();
        let probe_ns = parameters.take("probe-cost", expected, is_price)?.unwrap_or(defaults.probe_ns);
        let read_ns = parameters.take("read-cost", expected, is_price)?.unwrap_or(defaults.read_ns);
        let is_cap = |cap: &u32| (1..=PROBE_CAP_MAX).contains(cap);
        let probe_cap = parameters.take("probe-cap", "1 to 65536 probes", is_cap)?;
        parameters.finish("probe-cost, read-cost, probe-cap")?;
        Ok(Self { probe_ns, read_ns, probe_cap: probe_cap.unwrap_or(defaults.probe_cap) })
    }
}
