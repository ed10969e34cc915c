//! A sorted view together with the runs that it covers, as readers of one version use it.
//!
//! It is found at the first read of a version that can use the view, and kept with the version's read state. So a scan takes a reference
//! and does not look for each run.

use std::sync::{Arc, OnceLock};

use super::{level::Run, named_view::NamedView, partition::Partition, version::KeyspaceVersion};
use crate::{sync::sim_fault, view::reader::View};

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct BoundView {
    pub(crate) named: Arc<NamedView>,
    pub(crate) view: Arc<View>,
    /// With their levels, in the order of the view.
    pub(crate) runs: Vec<(usize, Arc<Run>)>,
    /// The positions of the runs among all runs of the partition, in the order of the view.
    pub(crate) ranks: Vec<usize>,
    /// It covers all runs of the partition.
    pub(crate) is_complete: bool,
    /// No run of the partition is older than the covered ones, so that nothing is below their tombstones.
    pub(crate) hides_tombstones: bool,
}

impl BoundView {
    /// `None` if the partition does not have all runs of the view.
    fn new(partition: &Partition, named: &Arc<NamedView>, view: &Arc<View>) -> Option<Self> {
        let ids = named.runs();
        let mut runs = vec![None; ids.len()];
        let mut ranks = vec![0; ids.len()];
        let mut run_count = 0;
        for (level, run) in partition.runs() {
            let position = ids.iter().position(|&id| id == run.id());
            if let Some(position) = position
                && let (Some(slot), Some(rank)) = (runs.get_mut(position), ranks.get_mut(position))
            {
                *slot = Some((level, Arc::clone(run)));
                *rank = run_count;
            }
            run_count += 1;
        }
        let hides_tombstones = ranks.iter().min().is_some_and(|first| first + ranks.len() == run_count);
        Some(Self {
            named: Arc::clone(named),
            view: Arc::clone(view),
            runs: runs.into_iter().collect::<Option<_>>()?,
            is_complete: ranks.len() == run_count || sim_fault!("view-one-version-behind"),
            ranks,
            hides_tombstones,
        })
    }

    /// Whether it covers the run at this position among all runs of the partition.
    pub(crate) fn covers(&self, rank: usize) -> bool {
        self.ranks.contains(&rank)
    }

    /// The position of its newest run: its own one in a merge.
    pub(crate) fn rank(&self) -> usize {
        self.ranks.iter().min().copied().unwrap_or_default()
    }
}

/// The view of one partition, once it is bound; `None` if that is not possible.
type Slot = OnceLock<Option<Arc<BoundView>>>;

/// The views of a version, by partition.
#[derive(Default)]
pub(crate) struct BoundViews(OnceLock<Box<[Slot]>>);

impl BoundViews {
    /// The view of a partition of `version`, which is open; `None` if the version does not have all of its runs.
    pub(crate) fn get(
        &self,
        version: &KeyspaceVersion,
        partition_index: usize,
        view: &Arc<View>,
    ) -> Option<&Arc<BoundView>> {
        let partition = version.partitions.get(partition_index)?;
        let named = partition.view.as_ref()?;
        let slots = self.0.get_or_init(|| version.partitions.iter().map(|_| OnceLock::new()).collect());
        let bind = || BoundView::new(partition, named, view).map(Arc::new);
        slots.get(partition_index)?.get_or_init(bind).as_ref()
    }
}
