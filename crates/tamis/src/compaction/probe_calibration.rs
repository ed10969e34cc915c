//! Measures the times of filter probes, once per machine (`probe_times.rs`).
//!
//! A background job of about 10 ms, between whose parts due flushes run.

use std::sync::Arc;

use tamis_filter::auto::ProbeTimes;

use crate::{context::StoreContext, events::Event, keyspace_state::KeyspaceRegistry, options::Policy};

/// Whether the caller shall measure the times: a keyspace has filters that the store chooses, and enough queries were sampled.
pub(super) fn claim(context: &StoreContext, keyspaces: &KeyspaceRegistry) -> bool {
    if !context.options.sample_queries
        || !context.runtime.clock.is_real_time()
        || !context.probe_times.may_claim(context.metrics.read_count())
    {
        return false;
    }
    let sampled_count = |keyspace: &crate::keyspace_state::KeyspaceState| {
        let read_state = keyspace.read_state.load();
        let is_automatic = matches!(read_state.version.options.filters.policy(), Some(Policy::Automatic(_)));
        if is_automatic { read_state.query_sample.sampled_count() } else { 0 }
    };
    let sampled_count = keyspaces.load().values().map(|keyspace| sampled_count(keyspace)).max();
    context.probe_times.claim(sampled_count.unwrap_or(0))
}

/// Measures the times. `between` runs between two parts.
pub(super) fn measure(context: &Arc<StoreContext>, between: &dyn Fn()) {
    let clock = &context.runtime.clock;
    let began = clock.now();
    context.probe_times.set(ProbeTimes::measure(&|| clock.now(), between));
    let microseconds = clock.now().saturating_sub(began).as_micros() as u64;
    context.report(&Event::ProbeTimesMeasured { microseconds });
}
