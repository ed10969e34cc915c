//! A skip list with concurrent inserts and lock-free readers; entries are never removed.
//!
//! A node has one to [`HEIGHT_MAX`] levels, and each level has half of the nodes of the level below. A search follows the
//! highest level while the next node is before the target, then continues one level down. It compares key heads, and whole
//! keys only if heads are equal. Above level 0 the head of the next node is stored next to the link, so that the search
//! touches only nodes that it visits, one for every two levels. With a million entries nearly each of them is a cache miss,
//! and cache misses are the cost of a search. (Rejected: a quarter of the nodes per level, about 1.4 times as slow; no
//! heads next to links, 1.2 times.)
//!
//! A head next to a link can be that of an earlier next node, which is farther away (`node.rs`, invariant 3). Then a search
//! continues one level down too early and needs a step or two more. It is never wrong, because on level 0 the nodes
//! themselves are compared. Inserts compare the nodes themselves in each level that they link.
//!
//! An insert links its node from the lowest level up, each level with one compare-and-swap on the predecessor's link. Once
//! the lowest link is set, the entry is in the list; upper links only make it faster to find. If the swap fails, another
//! insert came first, and the search continues from the predecessor, which is never removed.
//!
//! The list remembers the predecessors of its last insert (`hint`). An insert next to it (ascending loads, sorted batches)
//! starts there instead of at the top. A hint is checked before use and can be any node of its level, so that threads may
//! overwrite each other's hints.
//!
//! A large list is sampled (`sample.rs`): most searches begin at a node near the target. A sampled node is a node of level
//! [`SAMPLE_LEVEL`] like any other, so the search finds the same predecessor as from the top.
//!
//! Invariants: (1) each level is sorted and a subset of the level below; (2) a node's fields are published by the release
//! of the swap that links it and seen by the acquire of the load that finds it; (3) `hint[n]` and predecessors of level `n`
//! have more than `n` levels.

use std::{array, cmp::Ordering, ptr, sync::Arc};

use tamis_bits::key_head;

use super::{
    arena::Arena,
    chunk::ChunkPool,
    node::{HEIGHT_MAX, Link, Node, NodeRef},
    sample::{SAMPLE_LEVEL, Samples},
    sync::{self, AtomicUsize},
};
use crate::{
    key::{Kind, Sequence},
    observe::steps::{self, Step},
};

/// Bytes of a head.
const HEAD_LENGTH: usize = 8;

/// Entries are counted in this level, which has one of 2^6.
const COUNT_LEVEL: usize = 6;

/// A place between entries: after all entries of smaller keys, and of `key` after those with a sequence number of at least
/// `sequence_limit`.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    head: u64,
    key: &'a [u8],
    sequence_limit: u64,
}

impl<'a> Place<'a> {
    /// Directly before the entry (`key`, `sequence`), whether it exists or not.
    pub(super) fn before_entry(key: &'a [u8], sequence: Sequence) -> Self {
        Self { head: key_head(key), key, sequence_limit: sequence.saturating_add(1) }
    }

    /// Before all entries of `key`.
    pub(super) fn before_key(key: &'a [u8]) -> Self {
        Self { head: key_head(key), key, sequence_limit: u64::MAX }
    }

    /// After all entries of `key`.
    pub(super) fn after_key(key: &'a [u8]) -> Self {
        Self { head: key_head(key), key, sequence_limit: 0 }
    }

    #[inline]
    fn is_after(&self, node: NodeRef<'_>) -> bool {
        let head = node.head();
        if head != self.head {
            return head < self.head;
        }
        self.is_after_by_key(node)
    }

    fn is_after_by_key(&self, node: NodeRef<'_>) -> bool {
        match compare_behind_heads(node.key(), self.key) {
            Ordering::Less => true,
            Ordering::Equal => node.sequence() >= self.sequence_limit,
            Ordering::Greater => false,
        }
    }

    /// Whether a node has the key of the place.
    #[inline]
    pub(super) fn has_key_of(&self, node: NodeRef<'_>) -> bool {
        node.head() == self.head && compare_behind_heads(node.key(), self.key).is_eq()
    }
}

/// The order of two keys with equal heads: that of the bytes behind the heads. If one of the keys has none, the shorter key is the smaller
/// one, or they are equal.
#[inline]
fn compare_behind_heads(left: &[u8], right: &[u8]) -> Ordering {
    match (left.get(HEAD_LENGTH..), right.get(HEAD_LENGTH..)) {
        (Some(left @ [_, ..]), Some(right @ [_, ..])) => left.cmp(right),
        _ => left.len().cmp(&right.len()),
    }
}

pub(super) struct SkipList {
    arena: Arena,
    /// The node before all others, with all levels; its key is never compared.
    root: *mut Node,
    /// Levels in use.
    height: AtomicUsize,
    samples: Samples,
    hint: Hint,
}

/// On separate cache lines: written by each insert, while readers need the fields above.
#[repr(align(128))]
struct Hint([Link; HEIGHT_MAX]);

// SAFETY: `root` points into the arena that the list owns; threads share nodes through atomics, and all else is immutable.
unsafe impl Send for SkipList {}
// SAFETY: as above.
unsafe impl Sync for SkipList {}

impl SkipList {
    pub(super) fn new(pool: &Arc<ChunkPool>) -> Self {
        let arena = Arena::new(pool);
        let root = NodeRef::allocate(&arena, HEIGHT_MAX, &[], 0, Kind::Tombstone, &[]).as_ptr();
        let hint = Hint(array::from_fn(|_| Link::new(root)));
        Self { arena, root, height: AtomicUsize::new(1), samples: Samples::new(), hint }
    }

    /// Bytes of entries and their nodes.
    pub(super) fn bytes(&self) -> usize {
        self.arena.bytes()
    }

    fn root(&self) -> NodeRef<'_> {
        // SAFETY: `root` was allocated in the list's own arena.
        unsafe { NodeRef::from_ptr(self.root) }.expect("the root is allocated with the list")
    }

    pub(super) fn first(&self) -> Option<NodeRef<'_>> {
        // SAFETY: every node has level 0.
        unsafe { self.root().next(0) }
    }

    pub(super) fn last(&self) -> Option<NodeRef<'_>> {
        let mut node = self.root();
        for level in (0..self.height.load(sync::Ordering::Relaxed)).rev() {
            // SAFETY: the root has all levels, and a node reached in a level has it.
            while let Some(next) = unsafe { node.next(level) } {
                node = next;
            }
        }
        self.unless_root(node)
    }

    /// The first node after a place.
    #[inline]
    pub(super) fn find(&self, place: &Place<'_>) -> Option<NodeRef<'_>> {
        let node = self.find_near(place, 1);
        // SAFETY: every node has level 0.
        unsafe { Self::walk(node, 0, place) }.1
    }

    /// The last node before a place.
    pub(super) fn find_last_before(&self, place: &Place<'_>) -> Option<NodeRef<'_>> {
        let node = self.find_near(place, 1);
        // SAFETY: every node has level 0.
        self.unless_root(unsafe { Self::walk(node, 0, place) }.0)
    }

    /// The nodes before a place, in order, from one with more than `level` levels (not 0) on; none at the beginning.
    pub(super) fn collect_before(&self, place: &Place<'_>, level: usize, nodes: &mut Vec<*mut Node>) {
        let mut node = self.find_near(place, level);
        if node != self.root() {
            nodes.push(node.as_ptr());
        }
        // SAFETY: every node has level 0.
        while let Some(next) = unsafe { node.next(0) }.filter(|&next| place.is_after(next)) {
            node = next;
            nodes.push(node.as_ptr());
        }
    }

    /// The nodes of a level, in order.
    pub(super) fn nodes(&self, level: usize) -> impl Iterator<Item = NodeRef<'_>> {
        let mut node = self.root();
        std::iter::from_fn(move || {
            // SAFETY: the root has all levels, and a node reached in a level has it.
            node = unsafe { node.next(level) }?;
            Some(node)
        })
    }

    /// The approximate number of entries before a place.
    pub(super) fn count_before(&self, place: &Place<'_>) -> u64 {
        let before = self.nodes(COUNT_LEVEL).take_while(|&node| place.is_after(node)).count();
        (before as u64) << COUNT_LEVEL
    }

    /// The nodes between two places in one level, and that level: the lowest one in which they are at most `count_max`. `None`: no
    /// bound. The levels of a node do not depend on its key, so each node of level n represents 2^n entries.
    ///
    /// Cost: a search, and at most three times `count_max` nodes.
    pub(super) fn sample_between(
        &self,
        from: Option<Place<'_>>,
        to: Option<Place<'_>>,
        count_max: usize,
    ) -> (Vec<NodeRef<'_>>, usize) {
        let mut before = self.root();
        let mut sample = (Vec::new(), 0);
        for level in (0..self.height.load(sync::Ordering::Relaxed)).rev() {
            let mut nodes = Vec::new();
            // SAFETY: the root has all levels, and a node reached in a level has it and those below.
            let mut next = unsafe { before.next(level) };
            while let Some(node) = next.filter(|&node| to.is_none_or(|to| to.is_after(node))) {
                steps::count(Step::CountedNode, 1);
                if from.is_some_and(|from| from.is_after(node)) {
                    before = node;
                } else if nodes.len() < count_max {
                    nodes.push(node);
                } else {
                    return sample;
                }
                // SAFETY: as above.
                next = unsafe { node.next(level) };
            }
            sample = (nodes, level);
        }
        sample
    }

    /// A node with about `count` entries before it; `None` if the counted level has too few nodes.
    pub(super) fn nth_of_counted(&self, count: u64) -> Option<NodeRef<'_>> {
        self.nodes(COUNT_LEVEL).nth((count >> COUNT_LEVEL) as usize)
    }

    fn unless_root<'a>(&'a self, node: NodeRef<'a>) -> Option<NodeRef<'a>> {
        (node != self.root()).then_some(node)
    }

    /// A node of a level (not 0) before a place: the last one, unless others are being linked.
    fn find_near(&self, place: &Place<'_>, level_lowest: usize) -> NodeRef<'_> {
        let sampled = if level_lowest <= SAMPLE_LEVEL { self.find_by_sample(place) } else { None };
        let (mut node, level_count) = match sampled {
            Some(node) => (node, SAMPLE_LEVEL),
            None => (self.root(), self.height.load(sync::Ordering::Relaxed)),
        };
        for level in (level_lowest..level_count).rev() {
            // SAFETY: the root has all levels, and a node reached in a level has it and those below.
            node = unsafe { Self::walk_tower(node, level, place) };
        }
        node
    }

    /// As `find_near` for the level of the samples; `None` if the newest sample does not lead there in a few steps.
    #[inline]
    fn find_by_sample(&self, place: &Place<'_>) -> Option<NodeRef<'_>> {
        // SAFETY: samples have nodes of this list; they are stored with release and loaded with acquire.
        let mut node = unsafe { NodeRef::from_ptr(self.samples.below(place.head)) }?;
        // After so many steps from a sampled node a search begins at the top instead.
        for _ in 0..8 {
            // SAFETY: sampled nodes have more than `SAMPLE_LEVEL` levels, and so have those reached in it.
            if unsafe { node.next_head(SAMPLE_LEVEL) } > place.head {
                return Some(node);
            }
            // SAFETY: as above.
            match unsafe { node.next(SAMPLE_LEVEL) } {
                Some(next) if place.is_after(next) => node = next,
                _ => return Some(node),
            }
        }
        None
    }

    /// Takes the sample that is due at this number of entries.
    #[cold]
    pub(super) fn take_sample(&self, entry_count: u64) {
        self.samples.store(entry_count, self.nodes(SAMPLE_LEVEL));
    }

    /// Follows a level above 0 from a node before the place to the last node before it, according to the heads next to the
    /// links.
    ///
    /// # Safety
    ///
    /// `node` has more than `level` levels, and `level` is not 0.
    #[inline]
    unsafe fn walk_tower<'a>(mut node: NodeRef<'a>, level: usize, place: &Place<'_>) -> NodeRef<'a> {
        // SAFETY: the caller's promise; a node reached in a level has it.
        while unsafe { node.next_head(level) } <= place.head {
            // SAFETY: as above.
            match unsafe { node.next(level) } {
                Some(next) if place.is_after(next) => node = next,
                _ => break,
            }
        }
        node
    }

    /// Follows a level from a node before the place; returns the last node before it, and the first after it.
    ///
    /// # Safety
    ///
    /// `node` has more than `level` levels.
    #[inline(always)]
    unsafe fn walk<'a>(
        mut node: NodeRef<'a>,
        level: usize,
        place: &Place<'_>,
    ) -> (NodeRef<'a>, Option<NodeRef<'a>>) {
        loop {
            // SAFETY: the caller's promise; a node reached in a level has it.
            match unsafe { node.next(level) } {
                Some(next) if place.is_after(next) => node = next,
                next => return (node, next),
            }
        }
    }

    /// Adds an entry with a node of `height` levels (1 to [`HEIGHT_MAX`]).
    pub(super) fn insert(&self, height: usize, key: &[u8], sequence: Sequence, kind: Kind, value: &[u8]) {
        let node = NodeRef::allocate(&self.arena, height, key, sequence, kind, value);
        let list_height = self.height.load(sync::Ordering::Relaxed);
        if height > list_height {
            self.height.fetch_max(height, sync::Ordering::Relaxed);
        }
        let place = Place::before_entry(key, sequence);
        let mut predecessors = [self.root(); HEIGHT_MAX];
        let level_count = match self.search_from_hint(&place, height, &mut predecessors) {
            Some(level_count) => level_count,
            None => self.search(&place, height, list_height.max(height), &mut predecessors),
        };
        for (level, predecessor) in predecessors.iter_mut().enumerate().take(height) {
            // SAFETY: the predecessor of a level has that level, and the new node has `height` levels.
            unsafe { Self::link(node, level, *predecessor, &place) };
            *predecessor = node;
        }
        for (hint, predecessor) in self.hint.0.iter().zip(predecessors).take(level_count) {
            hint.store(predecessor.as_ptr(), sync::Ordering::Release);
        }
    }

    /// Links `node` into a level at its place, which is not before `predecessor`.
    ///
    /// # Safety
    ///
    /// Both nodes have more than `level` levels.
    unsafe fn link(node: NodeRef<'_>, level: usize, mut predecessor: NodeRef<'_>, place: &Place<'_>) {
        loop {
            // SAFETY: the caller's promise; `walk` stays in the level.
            let (link, next) = unsafe {
                let (before, next) = Self::walk(predecessor, level, place);
                predecessor = before;
                (before.link(level), next)
            };
            let expected = next.map_or(ptr::null_mut(), NodeRef::as_ptr);
            // SAFETY: the caller's promise. No other thread knows this link before it is published below.
            unsafe {
                node.link(level).store(expected, sync::Ordering::Relaxed);
                node.set_next_head(level, next.map_or(u64::MAX, NodeRef::head));
            }
            let node_pointer = node.as_ptr();
            if link
                .compare_exchange(expected, node_pointer, sync::Ordering::Release, sync::Ordering::Relaxed)
                .is_ok()
            {
                // SAFETY: the caller's promise.
                unsafe { predecessor.lower_next_head(level, node.head()) };
                return;
            }
        }
    }

    /// Finds nodes before a place in all levels below `level_count`, or at least in those below `height`. Above level 0
    /// they are the last ones unless others are being linked. Returns the number of levels.
    fn search<'a>(
        &'a self,
        place: &Place<'_>,
        height: usize,
        level_count: usize,
        predecessors: &mut [NodeRef<'a>; HEIGHT_MAX],
    ) -> usize {
        let mut node = self.root();
        let mut level_count = level_count;
        if height <= SAMPLE_LEVEL + 1
            && let Some(near) = self.find_by_sample(place)
        {
            (node, level_count) = (near, SAMPLE_LEVEL + 1);
        }
        for (level, predecessor) in predecessors.iter_mut().enumerate().take(level_count).rev() {
            if level > 0 {
                // SAFETY: the root has all levels, and a node reached in a level has it and those below.
                node = unsafe { Self::walk_tower(node, level, place) };
            }
            *predecessor = node;
        }
        level_count
    }

    /// As `search`, from the place of the last insert: at least the levels below `height` and those in which it found the
    /// place; `None` if the place is not near.
    fn search_from_hint<'a>(
        &'a self,
        place: &Place<'_>,
        height: usize,
        predecessors: &mut [NodeRef<'a>; HEIGHT_MAX],
    ) -> Option<usize> {
        // An insert searches near the hint in four levels before it starts at the top.
        let found = (0..4).find_map(|level| Some((level, self.hint_around(place, level)?)));
        let (level_found, mut node) = found?;
        for (level, predecessor) in predecessors.iter_mut().enumerate().take(height).skip(level_found + 1) {
            *predecessor = self.hint_around(place, level)?;
        }
        for (level, predecessor) in predecessors.iter_mut().enumerate().take(level_found + 1).rev() {
            // SAFETY: a hint of a level has it and those below, and so have the nodes reached in it.
            node = unsafe { Self::walk(node, level, place) }.0;
            *predecessor = node;
        }
        Some(height.max(level_found + 1))
    }

    /// The hint of a level, if the place is between it and the node after it.
    fn hint_around(&self, place: &Place<'_>, level: usize) -> Option<NodeRef<'_>> {
        // SAFETY: hints are nodes of this list, stored with release.
        let node = unsafe { NodeRef::from_ptr(self.hint.0.get(level)?.load(sync::Ordering::Acquire)) }?;
        if node != self.root() && !place.is_after(node) {
            return None;
        }
        // SAFETY: the hint of a level has that level.
        let next = unsafe { node.next(level) };
        next.is_none_or(|next| !place.is_after(next)).then_some(node)
    }
}
