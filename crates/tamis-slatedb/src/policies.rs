//! One list of policies for all builders of SlateDB.
//!
//! The lists of the writer, the readers, the compactor and its workers must be equal: a compactor without a policy drops
//! the filters of the tables that it rewrites, and a reader without it ignores them. `Admin::run_compactor` takes no list
//! and always uses SlateDB's default; run [`CompactorBuilder`] instead.

use std::sync::Arc;

use slatedb::object_store::path::Path;
use slatedb::{CompactionWorkerBuilder, CompactorBuilder, DbBuilder, DbReaderBuilder, FilterPolicy};

use crate::{Counters, PolicyError, QuerySample, TamisPolicy};

/// The filter policies of a database.
#[derive(Clone)]
pub struct FilterPolicies {
    policies: Vec<Arc<dyn FilterPolicy>>,
    sample: Arc<QuerySample>,
    counters: Arc<Counters>,
}

impl FilterPolicies {
    /// One policy.
    pub fn new(policy: TamisPolicy) -> Self {
        let (sample, counters) = (Arc::clone(policy.sample()), Arc::clone(policy.counters()));
        Self { policies: vec![Arc::new(policy)], sample, counters }
    }

    /// Adds another policy, for example SlateDB's Bloom filter, so that tables written before stay filtered. A table is
    /// skipped if any of its filters rejects the query.
    ///
    /// # Errors
    /// Another policy of the list has the same name.
    pub fn with(mut self, policy: Arc<dyn FilterPolicy>) -> Result<Self, PolicyError> {
        if self.policies.iter().any(|other| other.name() == policy.name()) {
            return Err(PolicyError::DuplicateName { name: policy.name().to_owned() });
        }
        self.policies.push(policy);
        Ok(self)
    }

    /// Sets the policies of any builder.
    pub fn configure<B: TakesFilterPolicies>(&self, builder: B) -> B {
        builder.take_filter_policies(self.policies.clone())
    }

    /// The sample of queries of the policy of Tamis.
    pub fn sample(&self) -> &Arc<QuerySample> {
        &self.sample
    }

    /// The counters of the policy of Tamis.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }
}

impl std::fmt::Debug for FilterPolicies {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_list().entries(self.policies.iter().map(|policy| policy.name())).finish()
    }
}

mod sealed {
    //! Only the builders of SlateDB take filter policies.

    /// Not nameable outside of this crate.
    pub trait Sealed {}
}

/// The builders of SlateDB that take filter policies.
pub trait TakesFilterPolicies: sealed::Sealed + Sized {
    /// Replaces the policies.
    #[must_use]
    fn take_filter_policies(self, policies: Vec<Arc<dyn FilterPolicy>>) -> Self;
}

macro_rules! takes_filter_policies {
    ($($builder:ident),*) => {
        $(
            impl<P: Into<Path>> sealed::Sealed for $builder<P> {}

            impl<P: Into<Path>> TakesFilterPolicies for $builder<P> {
                fn take_filter_policies(self, policies: Vec<Arc<dyn FilterPolicy>>) -> Self {
                    self.with_filter_policies(policies)
                }
            }
        )*
    };
}

takes_filter_policies!(DbBuilder, DbReaderBuilder, CompactorBuilder, CompactionWorkerBuilder);
