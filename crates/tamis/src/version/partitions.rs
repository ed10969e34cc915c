//! The partitions of a version, in order of lower bounds, with the facts about all of them that each write and each read state needs.
//!
//! A store may have thousands of partitions. Such a fact is computed once, when it is first needed, and a change of the list drops it.

use std::{
    ops::Deref,
    sync::{Arc, OnceLock},
};

use super::partition::Partition;
use crate::observe::steps::{self, Step};

/// See the head of this file. Derefs to the partitions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Partitions {
    list: Vec<Arc<Partition>>,
    level0_run_count: OnceLock<usize>,
}

impl Partitions {
    /// The list, to change it.
    pub(crate) fn list_mut(&mut self) -> &mut Vec<Arc<Partition>> {
        self.level0_run_count = OnceLock::new();
        &mut self.list
    }

    /// The number of L0 runs of the partition that has the most.
    #[inline]
    pub(crate) fn level0_run_count(&self) -> usize {
        *self.level0_run_count.get_or_init(|| {
            steps::count(Step::CountedLevel0, self.list.len());
            self.list.iter().map(|partition| partition.level0_run_count()).max().unwrap_or(0)
        })
    }
}

impl Deref for Partitions {
    type Target = [Arc<Partition>];

    #[inline]
    fn deref(&self) -> &[Arc<Partition>] {
        &self.list
    }
}

impl<'a> IntoIterator for &'a Partitions {
    type Item = &'a Arc<Partition>;
    type IntoIter = std::slice::Iter<'a, Arc<Partition>>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

impl FromIterator<Arc<Partition>> for Partitions {
    fn from_iter<I: IntoIterator<Item = Arc<Partition>>>(partitions: I) -> Self {
        Self { list: partitions.into_iter().collect(), level0_run_count: OnceLock::new() }
    }
}
