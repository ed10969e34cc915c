//! Configuration, sample and counters that the builders and filters of a policy share.

use std::sync::Arc;

use tamis_filter::auto::Prices;

use crate::choice::LastChoice;
use crate::{Counters, Design, QuerySample};

/// Configuration and counters that builders and filters share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) design: Design,
    pub(crate) prices: Prices,
    pub(crate) seed: u64,
    pub(crate) sample: Arc<QuerySample>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) last_choice: LastChoice,
}
