//! Queries to marked integers compared with a sorted vector, in all forms.
#![expect(clippy::indexing_slicing, reason = "tests may panic")]

use super::MarkedEliasFano;
use crate::elias_fano::{EliasFanoShape, encode_marked, tests::ascending};
use crate::kernel;
use proptest::prelude::*;

/// Bytes before the integers.
const START: usize = 11;

fn encoded(integers: &[u64]) -> (Vec<u8>, Option<MarkedEliasFano>) {
    let mut bytes = vec![0xa5; START];
    let (count, last) = (integers.len() as u64, integers.last().copied().unwrap_or(0));
    encode_marked(&mut bytes, count, last, integers.iter().copied());
    (bytes, marked(count, last))
}

fn marked(count: u64, last: u64) -> Option<MarkedEliasFano> {
    EliasFanoShape::new(count, last).and_then(|shape| shape.marked_at(START))
}

/// The answers for all pairs.
struct QueryAll<'a>(&'a MarkedEliasFano, &'a [u8], &'a [(u64, u64)]);

impl kernel::Task for QueryAll<'_> {
    type Output = Vec<Option<bool>>;

    #[inline(always)]
    fn run<S: kernel::Steps>(self, steps: S) -> Vec<Option<bool>> {
        let Self(set, bytes, pairs) = self;
        let is_free = |(from, to): &(u64, u64)| {
            if from == to {
                set.contains_in(steps, bytes, *from).map(|is_there| !is_there)
            } else {
                set.is_free_in(steps, bytes, *from, *to)
            }
        };
        pairs.iter().map(is_free).collect()
    }
}

fn query_all(set: &MarkedEliasFano, bytes: &[u8], pairs: &[(u64, u64)]) -> Vec<Option<bool>> {
    let answers = kernel::run(QueryAll(set, bytes, pairs));
    assert_eq!(kernel::Task::run(QueryAll(set, bytes, pairs), kernel::Portable), answers);
    answers
}

/// How many of all queries near the integers have an answer, and how many queries there are.
fn check(integers: &[u64]) -> (usize, usize) {
    let (bytes, Some(set)) = encoded(integers) else { return (0, 0) };
    let last = integers.last().copied().unwrap_or(0);
    let mut pairs = Vec::new();
    for integer in integers.iter().copied().chain([0, 1, last / 2, u64::MAX / 2, u64::MAX]) {
        for from in [integer.wrapping_sub(1), integer, integer.wrapping_add(1)] {
            let lengths = [0, 1, last / 16, u64::MAX];
            pairs.extend(lengths.map(|length| (from, from.saturating_add(length))));
        }
    }
    let answers = query_all(&set, &bytes, &pairs);
    for ((from, to), answer) in pairs.iter().zip(&answers) {
        let index = integers.partition_point(|integer| integer < from);
        let is_free = integers.get(index).is_none_or(|integer| integer > to);
        assert!(answer.is_none_or(|answer| answer == is_free), "{from} to {to} in {integers:?}");
    }
    (answers.iter().flatten().count(), answers.len())
}

proptest! {
    #[test]
    fn integers_are_found(integers in ascending()) {
        check(&integers);
    }
}

/// Integers of each width for which marks are useful, and of one less and more; nearly all queries to evenly
/// distributed ones have an answer.
#[test]
fn nearly_all_queries_are_answered() {
    for width in 0..=29 {
        let mut state = 7_u64;
        let mut even: Vec<u64> = (0..20_000)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 20) % (25_000 << width)
            })
            .collect();
        even.sort_unstable();
        let (answered, asked) = check(&even);
        assert!(answered * 100 >= asked * 97, "{answered} of {asked} for {width} bits");
        assert_eq!(asked == 0, width == 0 || width == 29);
    }
}

/// If a mark does not fit, or many integers have one high part, the result is no answer instead of a wrong one.
#[test]
fn groups_that_exceed_a_mark_return_no_answer() {
    let mut crowd: Vec<u64> = (0..100_000).map(|index| (1 << 20) + index / 4).collect();
    crowd.push(1 << 24);
    check(&crowd);
    let mut far: Vec<u64> = (0..70_000).map(|index| (1 << 10) + index / 1000).collect();
    far.extend((1..5000).map(|index| index << 12));
    far.sort_unstable();
    let (answered, asked) = check(&far);
    assert!(answered > 0 && answered < asked, "{answered} of {asked}");
}

#[test]
fn edges() {
    check(&[]);
    check(&[0]);
    check(&[5]);
    check(&[u64::MAX]);
    check(&[0, u64::MAX]);
    check(&[9; 1000]);
    check(&(0..5000).map(|index| index * 3).collect::<Vec<_>>());
    for count in 1..=129 {
        check(&(1..=count).map(|index| index * 100 + index * index % 97).collect::<Vec<_>>());
    }
}

/// For any bytes and any assumed shape, no byte beyond the end is read and nothing panics.
#[test]
fn damaged_bytes_are_refused_or_decoded_without_a_panic() {
    let integers: Vec<u64> = (0..3000).map(|index| index * 1000).collect();
    let (bytes, _) = encoded(&integers);
    let pairs: Vec<_> = (0..3_100_000)
        .step_by(99_991)
        .flat_map(|value| [(value, value), (value, value + 5)])
        .chain([(u64::MAX, u64::MAX), (0, u64::MAX)])
        .collect();
    let shapes = [(3000, 2_999_000), (2999, 2_999_000), (2900, 2_000_000), (10, 2000), (1 << 40, 1 << 50)];
    for offset in (0..bytes.len()).step_by(7) {
        let mut damaged = bytes.clone();
        damaged[offset] ^= 0xff;
        for set in shapes.iter().filter_map(|(count, last)| marked(*count, *last)) {
            query_all(&set, &damaged, &pairs);
        }
        for byte in [0, 0xff, offset as u8] {
            damaged.fill(byte);
            for set in shapes.iter().filter_map(|(count, last)| marked(*count, *last)) {
                query_all(&set, &damaged, &pairs);
            }
        }
        let set = marked(3000, 2_999_000).expect("useful");
        assert!(query_all(&set, &bytes[..offset], &pairs).iter().all(Option::is_none));
    }
}
