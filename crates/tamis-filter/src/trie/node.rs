//! Nodes, labels and the results of steps: what readers of dense and of sparse nodes share.

/// A node. A dense one is its number. A sparse one is where its labels lie; its number, which hardly any step needs, is
/// counted on demand ([`Trie::number`]).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node {
    /// Its number, or [`Node::UNKNOWN`].
    pub(super) number: u32,
    /// Where the number is unknown: a place whose next label with a child is its parent.
    pub(super) place: u32,
    /// Its labels in the block where they begin.
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

    /// The place of its first label.
    #[inline(always)]
    pub(super) const fn start(&self) -> u32 {
        (self.block << 6).saturating_add(self.range.trailing_zeros())
    }
}

/// A label of a node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Edge {
    pub(super) node: Node,
    /// The label itself where the node is dense, its place (block and label) where it is sparse.
    pub(super) at: u32,
    pub(crate) label: u8,
    pub(crate) has_child: bool,
}

impl Edge {
    /// What a walk that ends here gives.
    #[inline(always)]
    pub(crate) const fn leaf(&self) -> Leaf {
        Leaf { number: self.node.number, at: self.at }
    }
}

/// What a node has below, at and above a byte.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Split {
    pub(crate) has_smaller: bool,
    pub(crate) edge: Option<Edge>,
    pub(crate) has_greater: bool,
}

/// What a node has between two bytes, and at them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Divergence {
    pub(crate) low: Option<Edge>,
    pub(crate) has_between: bool,
    pub(crate) high: Option<Edge>,
}

/// Where a byte leads from a dense node.
#[derive(Debug, Clone, Copy)]
pub(super) enum DenseStep {
    Absent,
    Leaf,
    /// To the node of this number.
    Child(u32),
}

/// A node that a walk goes to. A sparse one is a number among the nodes that begin in a block: nothing of that block was read.
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

    /// The node itself, by its block and its labels there.
    #[inline(always)]
    pub(super) const fn node(&self, (block, range): (u32, u64)) -> Node {
        Node { number: self.number, place: self.place, block, range }
    }
}

/// Where the dense nodes lead.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DenseWalk {
    Ended(WalkResult),
    /// To a sparse node; so many bytes lead to it.
    Sparse(Lookahead, usize),
    /// The same of one that certainly begins in the block that is named.
    SparseExact(Lookahead, usize),
}

/// Where the walk along a key ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WalkResult {
    /// At a node that does not have the next byte.
    Absent,
    /// At a node, with the key's last byte.
    Node(Node),
    /// At a leaf; so many bytes lead to it.
    Leaf(Leaf, usize),
}

/// A label without a child.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Leaf {
    /// The number of its node where that is dense.
    pub(super) number: u32,
    pub(super) at: u32,
}

impl Leaf {
    #[inline(always)]
    pub(super) const fn sparse(at: u32) -> Self {
        Self { number: Node::UNKNOWN, at }
    }
}

/// A node that a walk comes to, before anything of its block is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct PendingNode {
    /// The block that is named for the node, and its number among those that begin there; it may lie in a block before or behind.
    pub(super) block: u32,
    pub(super) index: u32,
    /// One of the first sparse nodes, which have many labels.
    pub(super) is_wide: bool,
    /// The label that is looked for, and how many bytes lead to what is behind it.
    pub(super) byte: u8,
    pub(super) depth: usize,
}

/// Goes ahead of a walk, and may ask for what is needed at its end.
pub(super) trait Prefetcher {
    /// Before each node.
    fn before_node(&self, pending: PendingNode);

    /// What a block says of where the block of its children is, where that is known without the block: the walk need not wait for it.
    #[inline(always)]
    fn child_number(&self, _block: u32) -> Option<u32> {
        None
    }
}

impl Prefetcher for () {
    #[inline(always)]
    fn before_node(&self, _: PendingNode) {}
}
