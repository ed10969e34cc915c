//! Nodes, labels and results of steps: the types that the readers of dense and sparse nodes share.

/// A node. A dense node is its number. A sparse node is the position of its labels; its number is computed on demand
/// ([`super::Trie::number`]), because few steps need it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node {
    /// Its number, or [`Node::UNKNOWN`].
    pub(super) number: u32,
    /// If the number is unknown: a position whose next label with a child is the parent.
    pub(super) place: u32,
    /// The mask of its labels in the block in which they begin.
    pub(super) range: u64,
    pub(super) block: u32,
}

impl Node {
    /// No node has this number.
    pub(super) const UNKNOWN: u32 = u32::MAX;

    #[inline(always)]
    pub(super) const fn dense(number: u32) -> Self {
        Self { number, place: 0, block: 0, range: 0 }
    }

    /// The position of its first label.
    #[inline(always)]
    pub(super) const fn start(&self) -> u32 {
        (self.block << 6).saturating_add(self.range.trailing_zeros())
    }
}

/// A label of a node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Edge {
    pub(super) node: Node,
    /// The label itself for a dense node; its position (block and index) for a sparse node.
    pub(super) at: u32,
    pub(crate) label: u8,
    pub(crate) has_child: bool,
}

impl Edge {
    /// The leaf of a walk that ends at this label.
    #[inline(always)]
    pub(crate) const fn leaf(&self) -> Leaf {
        Leaf { number: self.node.number, at: self.at }
    }
}

/// The labels of a node below, at and above a byte.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Split {
    pub(crate) has_smaller: bool,
    pub(crate) edge: Option<Edge>,
    pub(crate) has_greater: bool,
}

/// The labels of a node at the two bytes at which the bounds of a range diverge, and whether labels are between them.
/// If so, the other fields are not set.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Divergence {
    pub(crate) low: Option<Edge>,
    pub(crate) has_between: bool,
    pub(crate) high: Option<Edge>,
}

/// The result of a step from a dense node.
#[derive(Debug, Clone, Copy)]
pub(super) enum DenseStep {
    Absent,
    Leaf,
    /// To the node with this number.
    Child(u32),
}

/// A sparse node before anything of its block was read, by its index among the nodes that begin in a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lookahead {
    /// As in [`Node`].
    pub(super) number: u32,
    pub(super) place: u32,
    pub(super) block: u32,
    pub(super) index: u32,
}

impl Lookahead {
    /// A sparse root.
    pub(super) const ROOT: Self = Self { number: 0, place: 0, block: 0, index: 0 };
}

/// The end of the walk along a key.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WalkResult {
    /// At a node that does not have the next byte.
    Absent,
    /// At a node, with the key's last byte.
    Node(Node),
    /// At a leaf; the number is that of the bytes that lead to it.
    Leaf(Leaf, usize),
}

/// A label without a child.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Leaf {
    /// The number of its node if that is dense.
    pub(super) number: u32,
    pub(super) at: u32,
}

impl Leaf {
    #[inline(always)]
    pub(super) const fn sparse(at: u32) -> Self {
        Self { number: Node::UNKNOWN, at }
    }
}
