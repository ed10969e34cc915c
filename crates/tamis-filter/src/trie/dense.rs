//! Dense nodes: 256 bits of labels and 256 bits of children, one cache line; what lies before a node stands apart.

use super::layout::{DENSE_GROUP, DENSE_NODE_BYTES};
use super::reader::{Edge, Trie, chunk};

impl Trie<'_> {
    /// 64 bits of a node's labels (words 0 to 3) or children (words 4 to 7).
    #[inline(always)]
    fn dense_word(&self, number: u32, word: u32) -> u64 {
        u64::from_le_bytes(chunk(self.bytes, number as usize * DENSE_NODE_BYTES + word as usize * 8))
    }

    #[inline(always)]
    fn dense_edge(&self, number: u32, label: u8) -> Edge {
        let children = self.dense_word(number, 4 + u32::from(label / 64));
        Edge { node: number, at: u32::from(label), label, has_child: children >> (label % 64) & 1 == 1 }
    }

    #[inline(always)]
    pub(super) fn dense_find(&self, number: u32, byte: u8) -> Option<Edge> {
        let labels = self.dense_word(number, u32::from(byte / 64));
        (labels >> (byte % 64) & 1 == 1).then(|| self.dense_edge(number, byte))
    }

    #[inline(always)]
    pub(super) fn dense_at_or_after(&self, number: u32, byte: u8) -> Option<Edge> {
        let mut mask = u64::MAX << (byte % 64);
        for word in u32::from(byte / 64)..4 {
            let labels = self.dense_word(number, word) & mask;
            if labels != 0 {
                return Some(self.dense_edge(number, (word * 64 + labels.trailing_zeros()) as u8));
            }
            mask = u64::MAX;
        }
        None
    }

    #[inline(always)]
    pub(super) fn dense_at_or_before(&self, number: u32, byte: u8) -> Option<Edge> {
        let mut mask = u64::MAX >> (63 - byte % 64);
        for word in (0..=u32::from(byte / 64)).rev() {
            let labels = self.dense_word(number, word) & mask;
            if labels != 0 {
                return Some(self.dense_edge(number, (word * 64 + 63 - labels.leading_zeros()) as u8));
            }
            mask = u64::MAX;
        }
        None
    }

    /// What lies before a node: labels with a child, and leaves.
    #[inline(always)]
    fn dense_ranks(&self, number: u32) -> (u32, u32) {
        let group: [u8; 8] =
            chunk(self.bytes, self.layout.dense_groups + (number / DENSE_GROUP) as usize * 8);
        let own: [u8; 4] = chunk(self.bytes, self.layout.dense_ranks + number as usize * 4);
        let group = u64::from_le_bytes(group);
        let own = u32::from_le_bytes(own);
        ((group as u32).wrapping_add(own & 0xffff), ((group >> 32) as u32).wrapping_add(own >> 16))
    }

    /// One of the two bitmaps of a node.
    #[inline(always)]
    fn dense_bitmap(&self, number: u32, offset: usize) -> [u64; 4] {
        let bytes: [u8; 32] = chunk(self.bytes, number as usize * DENSE_NODE_BYTES + offset);
        match bytes.as_chunks::<8>().0 {
            [a, b, c, d] => [*a, *b, *c, *d].map(u64::from_le_bytes),
            _ => [0; 4],
        }
    }

    /// Labels with a child before label `at` (up to 256) of a node.
    #[inline(always)]
    pub(super) fn dense_children_before(&self, number: u32, at: u32) -> u32 {
        self.dense_ranks(number).0.wrapping_add(ones_before(self.dense_bitmap(number, 32), at))
    }

    /// Labels without a child before label `at` (up to 256) of a node.
    #[inline(always)]
    pub(super) fn dense_leaves_before(&self, number: u32, at: u32) -> u32 {
        let [a, b, c, d] = self.dense_bitmap(number, 0);
        let [e, f, g, h] = self.dense_bitmap(number, 32);
        self.dense_ranks(number).1.wrapping_add(ones_before([a & !e, b & !f, c & !g, d & !h], at))
    }
}

/// Bits set before bit `at` of 256.
#[inline(always)]
fn ones_before([a, b, c, d]: [u64; 4], at: u32) -> u32 {
    let whole = at / 64;
    let partial = (1_u64 << (at % 64)) - 1;
    // Without a branch: each word counts whole, in part, or not at all.
    let masked = |index: u32, word: u64| {
        let mask = if whole > index { u64::MAX } else { partial };
        if whole < index { 0 } else { (word & mask).count_ones() }
    };
    masked(0, a) + masked(1, b) + masked(2, c) + masked(3, d)
}
