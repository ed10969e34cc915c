//! Encodes segments as a page of a sorted view (`docs/format/view.md`, "Segments and pages").

use super::{
    format::{
        DIFFERENCE_ESCAPED, DIFFERENCE_SAME, PAGE_HEADER_LENGTH, PAGE_WIDE, SAME_KEY, SEGMENT_CONTINUED,
    },
    key_bits::{BITS_PER_BYTE, byte_of},
};
use crate::coding::{length_u8, length_u16, put_u16, put_u32};

/// An entry of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) run: u16,
    pub(super) kind: u8,
    /// Position of the first bit in which the key differs from the previous key, or [`SAME_KEY`].
    pub(super) difference: u32,
    pub(super) infix: u8,
}

/// Consecutive entries that are complete.
#[derive(Debug, Default)]
pub(super) struct Segment {
    pub(super) slots: Vec<Slot>,
    pub(super) is_continuation: bool,
    /// The first key.
    pub(super) key: Vec<u8>,
}

impl Segment {
    /// The shortest prefix of the first key that is greater than the previous key; empty for a continuation segment.
    pub(super) fn anchor(&self) -> &[u8] {
        match self.slots.first() {
            Some(first) if !self.is_continuation => {
                self.key.get(..=byte_of(first.difference)).unwrap_or(&self.key)
            }
            _ => &[],
        }
    }
}

/// The encoding that pages of a view share.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageFormat {
    pub(super) segment_size: usize,
    pub(super) selector_bits: u8,
}

/// Bytes of the prefix that the keys of a page share.
fn shared_prefix(segments: &[Segment]) -> usize {
    let slots = segments.iter().flat_map(|segment| &segment.slots).skip(1);
    let differences = slots.map(|slot| slot.difference).filter(|&difference| difference != SAME_KEY);
    let first_length = segments.first().map_or(0, |segment| segment.key.len());
    differences.map(byte_of).min().unwrap_or_default().min(first_length)
}

/// Encodes segments, at least one and none empty.
pub(super) fn encode_page(segments: &[Segment], format: PageFormat) -> Vec<u8> {
    let slots = || segments.iter().flat_map(|segment| &segment.slots);
    let prefix_length = shared_prefix(segments);
    let kind_bits = u8::BITS as u8 - slots().fold(0, |all, slot| all | slot.kind).leading_zeros() as u8;
    let first_head = segments.iter().position(|segment| !segment.is_continuation);
    let anchors: Vec<&[u8]> = segments
        .iter()
        .enumerate()
        .map(|(number, segment)| match Some(number) == first_head {
            true => &[],
            false => segment.anchor().get(prefix_length..).unwrap_or_default(),
        })
        .collect();
    let anchor_bytes: usize = anchors.iter().map(|anchor| anchor.len()).sum();
    let (differences, escapes) = encode_differences(segments, prefix_length);
    let is_wide = anchor_bytes > usize::from(u16::MAX);

    let mut page = Vec::with_capacity(PAGE_HEADER_LENGTH + 4 * differences.len() + prefix_length);
    put_u16(&mut page, length_u16(differences.len()));
    page.extend_from_slice(&[length_u8(segments.len()), format.selector_bits, kind_bits]);
    page.push(if is_wide { PAGE_WIDE } else { 0 });
    put_u16(&mut page, prefix_length as u16);
    put_u16(&mut page, length_u16(escapes.len()));
    put_u16(&mut page, 0);
    put_u32(&mut page, slots().next().map_or(SAME_KEY, |slot| slot.difference));
    page.extend(segments.iter().map(|segment| {
        length_u8(segment.slots.len()) | if segment.is_continuation { SEGMENT_CONTINUED } else { 0 }
    }));
    for segment in segments {
        put_planes(&mut page, segment, format, kind_bits);
    }
    page.extend_from_slice(&differences);
    page.extend(slots().map(|slot| slot.infix));
    for &(entry, difference) in &escapes {
        put_u16(&mut page, entry);
        put_u32(&mut page, difference);
    }
    let mut end = 0;
    for anchor in &anchors {
        end += anchor.len();
        if is_wide { put_u32(&mut page, end as u32) } else { put_u16(&mut page, end as u16) }
    }
    let prefix = segments.first().and_then(|segment| segment.key.get(..prefix_length));
    page.extend_from_slice(prefix.unwrap_or_default());
    anchors.iter().for_each(|anchor| page.extend_from_slice(anchor));
    page
}

/// The difference bytes, and the differences that do not fit one.
fn encode_differences(segments: &[Segment], prefix_length: usize) -> (Vec<u8>, Vec<(u16, u32)>) {
    let base = prefix_length as u32 * BITS_PER_BYTE;
    let (mut bytes, mut escapes) = (Vec::new(), Vec::new());
    for slot in segments.iter().flat_map(|segment| &segment.slots) {
        let byte = match slot.difference {
            SAME_KEY => DIFFERENCE_SAME,
            _ if bytes.is_empty() => 0,
            difference => match u8::try_from(difference.saturating_sub(base)) {
                Ok(byte) if byte < DIFFERENCE_ESCAPED => byte,
                _ => {
                    escapes.push((length_u16(bytes.len()), difference));
                    DIFFERENCE_ESCAPED
                }
            },
        };
        bytes.push(byte);
    }
    (bytes, escapes)
}

fn put_planes(page: &mut Vec<u8>, segment: &Segment, format: PageFormat, kind_bits: u8) {
    let numbers = |plane: u8, slot: &Slot| match plane.checked_sub(format.selector_bits) {
        None => slot.run >> plane & 1,
        Some(kind_plane) => u16::from(slot.kind >> kind_plane & 1),
    };
    for plane in 0..format.selector_bits + kind_bits {
        let bits = segment.slots.iter().enumerate();
        let word = bits.fold(0, |word, (place, slot)| word | u64::from(numbers(plane, slot)) << place);
        let bytes = word.to_le_bytes();
        page.extend_from_slice(bytes.get(..format.segment_size / 8).unwrap_or_default());
    }
}
