//! Batches of nodes cover the right nodes, in both directions.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

use super::Nodes;

fn members(nodes: Nodes) -> impl Iterator<Item = u64> {
    (0..64).filter(move |bit| nodes.mask >> bit & 1 == 1).map(move |bit| nodes.base + bit)
}

/// All batches of a range, in the order of the walk.
fn batches<const IS_FORWARD: bool>(range: (u64, u64)) -> Vec<Nodes> {
    let mut rest = Some(range);
    let mut all = Vec::new();
    while let Some(range) = rest {
        let nodes;
        (nodes, rest) = Nodes::begin::<IS_FORWARD>(range);
        all.push(nodes);
    }
    all
}

#[test]
fn batches_cover_a_range_without_gaps() {
    for first in [0, 1, 7, 8, 1000, u64::MAX - 130, u64::MAX - 64, u64::MAX] {
        for last in [0, 1, 5, 56, 57, 63, 64, 65, 130].map(|count| first.saturating_add(count)) {
            let all: Vec<u64> = (first..=last).collect();
            let forward = batches::<true>((first, last));
            assert_eq!(forward.iter().flat_map(|nodes| members(*nodes)).collect::<Vec<_>>(), all);
            let backward = batches::<false>((first, last));
            let joined: Vec<u64> = backward.iter().rev().flat_map(|nodes| members(*nodes)).collect();
            assert_eq!(joined, all);
            assert!(forward.iter().chain(&backward).all(|nodes| nodes.base.is_multiple_of(8)));
            assert_eq!(forward.first().unwrap().foremost::<true>(), first);
            assert_eq!(backward.first().unwrap().foremost::<false>(), last);
        }
    }
}

/// Takes the children of all nodes; returns them, and whether they came in the order of the walk.
fn children<const IS_FORWARD: bool>(mut nodes: Nodes, gap: u32, span: (u64, u64)) -> (Vec<u64>, bool) {
    let (mut all, mut is_in_order, mut before) = (Vec::new(), true, None);
    while nodes.mask != 0 {
        let part = nodes.take_children::<IS_FORWARD>(gap, span);
        assert!(part.mask != 0 && part.base.is_multiple_of(8));
        let foremost = part.foremost::<IS_FORWARD>();
        is_in_order &= before.is_none_or(|before| (before < foremost) == IS_FORWARD);
        before = Some(foremost);
        all.extend(members(part));
    }
    all.sort_unstable();
    (all, is_in_order)
}

#[test]
fn only_children_within_the_range_are_probed() {
    let masks = [1, 0b1001, 0xff, 1 << 63, u64::MAX, 0x8000_0001_0000_0001, 0x00f0_0000_0a00_0600];
    for (mask, base) in masks.into_iter().flat_map(|mask| [(mask, 0), (mask, 8), (mask, 1 << 40)]) {
        let nodes = Nodes { base, mask };
        let whole: Vec<u64> = members(nodes).collect();
        let (low, high) = (*whole.first().unwrap(), *whole.last().unwrap());
        for gap in 1..=6 {
            let (first, end) = (low << gap, (high + 1) << gap);
            // A range may start and end inside the first and the last node.
            for span in [(first, end - 1), (first + 1, end - 1), (first, end - 2), (0, u64::MAX)] {
                let expected: Vec<u64> = whole
                    .iter()
                    .flat_map(|node| node << gap..(node + 1) << gap)
                    .filter(|child| (span.0..=span.1).contains(child))
                    .collect();
                for (found, is_in_order) in
                    [children::<true>(nodes, gap, span), children::<false>(nodes, gap, span)]
                {
                    assert_eq!(found, expected, "{nodes:?} {gap} {span:?}");
                    assert!(is_in_order);
                }
            }
        }
    }
}
