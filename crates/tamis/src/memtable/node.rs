//! A node of the skip list: its links, the first eight bytes of its key, and the entry's bytes, in one allocation of the
//! arena.
//!
//! ```text
//! | tower: next and its head, level height-1 | ... | level 1 | next, level 0 | head | sequence | lengths, kind | key | value |
//!                                                            ^ the address of the node
//! ```
//!
//! The tower is below the node's address and grows downwards, so that the links that a search uses most often are next to
//! the head that it compares. Each link above level 0 is followed by the head of the next node. So a search finds out
//! without a cache miss that the next node is past the target: only the nodes that it visits cost a cache line.
//!
//! Invariants: (1) all fields except the links are written before the node is published and never again; (2) a node that is
//! reached by a link of level `n`, or returned as predecessor of level `n`, has more than `n` levels; (3) the head next to
//! a link is never below the head of the link's node. It is equal to it, except between the publication of a node and the
//! update of the head next to the link.

use std::{marker::PhantomData, ptr, slice};

use tamis_bits::key_head;

use super::{
    arena::{ALLOCATION_ALIGNMENT, Arena},
    sync::{AtomicPtr, AtomicU64, Ordering, Published},
};
use crate::key::{Kind, Sequence};

/// The most levels of a node: with half of the nodes per level enough for some million entries; for more, searches get
/// slower gradually.
pub(super) const HEIGHT_MAX: usize = 20;

pub(super) type Link = AtomicPtr<Node>;

/// A link above level 0.
#[repr(C)]
struct TowerLink {
    next: Link,
    /// The head of `next`, or of a node that was `next` before; `u64::MAX` if there is none.
    next_head: AtomicU64,
}

/// See the head of this file; key and value are after it in the same allocation, the tower is before it.
#[repr(C)]
pub(super) struct Node {
    link: Link,
    fields: Published<Fields>,
}

const _: () =
    assert!(align_of::<Node>() <= ALLOCATION_ALIGNMENT && align_of::<TowerLink>() <= ALLOCATION_ALIGNMENT);

#[derive(Debug, Clone, Copy)]
struct Fields {
    head: u64,
    sequence: Sequence,
    value_length: u32,
    key_length: u16,
    kind: Kind,
}

/// A node of an arena that lives for `'a`.
#[derive(Clone, Copy)]
pub(super) struct NodeRef<'a> {
    node: *mut Node,
    arena: PhantomData<&'a Arena>,
}

impl<'a> NodeRef<'a> {
    /// A new node that is not published; its links are unset.
    pub(super) fn allocate(
        arena: &'a Arena,
        height: usize,
        key: &[u8],
        sequence: Sequence,
        kind: Kind,
        value: &[u8],
    ) -> Self {
        let tower_size = (height - 1) * size_of::<TowerLink>();
        let base = arena.allocate(tower_size + size_of::<Node>() + key.len() + value.len());
        let fields = Fields {
            head: key_head(key),
            sequence,
            value_length: u32::try_from(value.len()).expect("values have at most 256 MiB"),
            key_length: u16::try_from(key.len()).expect("keys have at most 65,535 bytes"),
            kind,
        };
        // SAFETY: the allocation has room for tower, node, key and value in this order, no other reference to it exists
        // yet, and it is aligned for the links and the node. `key` and `value` are not in it.
        unsafe {
            let node = base.as_ptr().add(tower_size).cast::<Node>();
            for level in 1..height {
                let link =
                    TowerLink { next: Link::new(ptr::null_mut()), next_head: AtomicU64::new(u64::MAX) };
                node.cast::<TowerLink>().sub(level).write(link);
            }
            node.write(Node { link: Link::new(ptr::null_mut()), fields: Published::new(fields) });
            let bytes = node.add(1).cast::<u8>();
            ptr::copy_nonoverlapping(key.as_ptr(), bytes, key.len());
            ptr::copy_nonoverlapping(value.as_ptr(), bytes.add(key.len()), value.len());
            Self { node, arena: PhantomData }
        }
    }

    /// The node at an address read from a link, a hint or a cursor; `None` for null.
    ///
    /// # Safety
    ///
    /// `node` is null or came from [`NodeRef::as_ptr`] of a node of an arena that lives for `'a`, by an acquiring load.
    #[inline]
    pub(super) unsafe fn from_ptr(node: *mut Node) -> Option<Self> {
        (!node.is_null()).then_some(Self { node, arena: PhantomData })
    }

    #[inline]
    pub(super) fn as_ptr(self) -> *mut Node {
        self.node
    }

    /// The link of a level.
    ///
    /// # Safety
    ///
    /// The node has more than `level` levels.
    #[inline]
    pub(super) unsafe fn link(self, level: usize) -> &'a Link {
        if level == 0 {
            // SAFETY: the node lives for 'a, and its pointer is derived from the whole chunk.
            return unsafe { &(*self.node).link };
        }
        // SAFETY: the caller's promise.
        unsafe { &self.tower(level).next }
    }

    /// A link above level 0.
    ///
    /// # Safety
    ///
    /// The node has more than `level` levels, and `level` is not 0.
    #[inline]
    unsafe fn tower(self, level: usize) -> &'a TowerLink {
        // SAFETY: by the caller's promise the link is part of the node's allocation, which lives for 'a; the pointer
        // is derived from the whole chunk.
        unsafe { &*self.node.cast::<TowerLink>().sub(level) }
    }

    /// The head next to a link above level 0: the next node in this level has at most this head, or had when the link was
    /// last changed.
    ///
    /// # Safety
    ///
    /// The node has more than `level` levels, and `level` is not 0.
    #[inline]
    pub(super) unsafe fn next_head(self, level: usize) -> u64 {
        // SAFETY: the caller's promise.
        unsafe { self.tower(level) }.next_head.load(Ordering::Relaxed)
    }

    /// Sets the head next to a link of a node that is not yet published in the level.
    ///
    /// # Safety
    ///
    /// The node has more than `level` levels.
    #[inline]
    pub(super) unsafe fn set_next_head(self, level: usize, head: u64) {
        if level > 0 {
            // SAFETY: the caller's promise.
            unsafe { self.tower(level) }.next_head.store(head, Ordering::Relaxed);
        }
    }

    /// Records the head of a node that was linked after this one. Nodes are never removed, so the next head only decreases,
    /// and of two concurrent updates the smaller value is correct.
    ///
    /// # Safety
    ///
    /// The node has more than `level` levels.
    #[inline]
    pub(super) unsafe fn lower_next_head(self, level: usize, head: u64) {
        if level > 0 {
            // SAFETY: the caller's promise.
            unsafe { self.tower(level) }.next_head.fetch_min(head, Ordering::Relaxed);
        }
    }

    /// The next node in a level.
    ///
    /// # Safety
    ///
    /// The node has more than `level` levels.
    #[inline]
    pub(super) unsafe fn next(self, level: usize) -> Option<Self> {
        // SAFETY: the caller's promise; links hold only null and nodes of the same arena, stored with release.
        unsafe { Self::from_ptr(self.link(level).load(Ordering::Acquire)) }
    }

    #[inline]
    fn fields(self) -> Fields {
        // SAFETY: the node was written before it was published and lives for 'a.
        unsafe { (*self.node).fields.get() }
    }

    #[inline]
    pub(super) fn head(self) -> u64 {
        self.fields().head
    }

    #[inline]
    pub(super) fn sequence(self) -> Sequence {
        self.fields().sequence
    }

    #[inline]
    pub(super) fn kind(self) -> Kind {
        self.fields().kind
    }

    #[inline]
    pub(super) fn key(self) -> &'a [u8] {
        // SAFETY: `key_length` bytes were written directly after the node, in the same allocation, which lives for 'a.
        unsafe { slice::from_raw_parts(self.node.add(1).cast::<u8>(), self.fields().key_length.into()) }
    }

    #[inline]
    pub(super) fn value(self) -> &'a [u8] {
        let fields = self.fields();
        // SAFETY: `value_length` bytes were written directly after the key, in the same allocation, which lives for 'a.
        unsafe {
            let value = self.node.add(1).cast::<u8>().add(fields.key_length.into());
            slice::from_raw_parts(value, fields.value_length as usize)
        }
    }
}

impl PartialEq for NodeRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self.node, other.node)
    }
}
