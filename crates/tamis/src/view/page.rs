//! Reads a page of a sorted view in place (`docs/format/view.md`, "Segments and pages").
//!
//! A reader keeps the [`PageLayout`]; [`PageLayout::over`] applies it to the page's bytes. When a view is opened, each page is checked:
//! all parts fill it. Later accesses return empty values outside of the page, so that bytes that change in a mapping do not
//! cause a panic.
//!
//! The selectors of a segment are bit planes: the entries of one run are found by one AND per plane, and counted by one
//! instruction, however many runs there are.

use super::{
    format::{
        DIFFERENCE_ESCAPED, DIFFERENCE_SAME, ESCAPE_LENGTH, KIND_BITS_MAX, PAGE_HEADER_LENGTH, PAGE_WIDE,
        SAME_KEY, SEGMENT_CONTINUED, SEGMENT_COUNT_MAX, SELECTOR_BITS_MAX,
    },
    key_bits::BITS_PER_BYTE,
    segment::{Segment, ones, spread},
};

/// Positions of the parts of a page. Small and copied.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PageLayout {
    entry_count: u16,
    segment_count: u8,
    selector_bits: u8,
    kind_bits: u8,
    plane_bytes: u8,
    is_wide: bool,
    prefix_length: u16,
    escape_count: u16,
    first_difference: u32,
    planes_start: u32,
    differences_start: u32,
    escapes_start: u32,
    ends_start: u32,
    prefix_start: u32,
}

impl PageLayout {
    /// Parses a page and checks that its parts fill it; `None` if no writer can have written it.
    pub(super) fn parse_and_check(bytes: &[u8], segment_size: usize) -> Option<Self> {
        Self::parse(bytes, segment_size).filter(|layout| layout.fills(bytes, segment_size))
    }

    /// Parses the header of a page, which was checked when the view was opened; `None` for impossible values.
    pub(super) fn parse(bytes: &[u8], segment_size: usize) -> Option<Self> {
        let &[c0, c1, segment_count, selector_bits, kind_bits, flags, p0, p1, e0, e1, z0, z1, ref first @ ..] =
            bytes.first_chunk::<PAGE_HEADER_LENGTH>()?;
        let (entry_count, prefix_length) = (u16::from_le_bytes([c0, c1]), u16::from_le_bytes([p0, p1]));
        let (escape_count, zero) = (u16::from_le_bytes([e0, e1]), u16::from_le_bytes([z0, z1]));
        let first_difference = u32::from_le_bytes(*first);
        let is_wide = flags & PAGE_WIDE != 0;
        let plane_bytes = segment_size / 8;
        let planes_start = PAGE_HEADER_LENGTH + usize::from(segment_count);
        let plane_count = usize::from(segment_count) * (usize::from(selector_bits) + usize::from(kind_bits));
        let differences_start = planes_start + plane_count * plane_bytes;
        let escapes_start = differences_start + 2 * usize::from(entry_count);
        let ends_start = escapes_start + ESCAPE_LENGTH * usize::from(escape_count);
        let prefix_start = ends_start + if is_wide { 4 } else { 2 } * usize::from(segment_count);
        let layout = Self {
            entry_count,
            segment_count,
            selector_bits,
            kind_bits,
            plane_bytes: plane_bytes as u8,
            is_wide,
            prefix_length,
            escape_count,
            first_difference,
            planes_start: planes_start as u32,
            differences_start: differences_start as u32,
            escapes_start: escapes_start as u32,
            ends_start: ends_start as u32,
            prefix_start: prefix_start as u32,
        };
        let is_possible = (1..=SEGMENT_COUNT_MAX).contains(&segment_count.into())
            && selector_bits <= SELECTOR_BITS_MAX
            && kind_bits <= KIND_BITS_MAX
            && flags <= PAGE_WIDE
            && zero == 0;
        is_possible.then_some(layout)
    }

    /// Whether segments and anchors add up to the page.
    fn fills(&self, bytes: &[u8], segment_size: usize) -> bool {
        let page = self.over(bytes);
        let anchors_start = self.prefix_start as usize + usize::from(self.prefix_length);
        let Some(anchors_length) = bytes.len().checked_sub(anchors_start) else { return false };
        let (mut entry_count, mut anchors_end) = (0, 0);
        for segment in 0..self.segment_count() {
            let (length, end) = (page.segment_length(segment), page.anchor_end(segment));
            if length == 0 || length > segment_size || end < anchors_end {
                return false;
            }
            entry_count += length;
            anchors_end = end;
        }
        entry_count == self.entry_count() && anchors_end == anchors_length
    }

    pub(super) const fn entry_count(&self) -> usize {
        self.entry_count as usize
    }

    pub(super) const fn segment_count(&self) -> usize {
        self.segment_count as usize
    }

    pub(super) const fn prefix_length(&self) -> usize {
        self.prefix_length as usize
    }

    /// Bytes of the parts of a page of this length.
    pub(super) fn part_bytes(&self, length: u64) -> PartBytes {
        let planes = |bits: u8| u64::from(self.segment_count) * u64::from(bits) * u64::from(self.plane_bytes);
        let entry_count = u64::from(self.entry_count);
        PartBytes {
            headers: self.planes_start.into(),
            selectors: planes(self.selector_bits),
            kinds: planes(self.kind_bits),
            differences: entry_count + u64::from(self.ends_start - self.escapes_start),
            infixes: entry_count,
            anchors: length.saturating_sub(self.ends_start.into()),
        }
    }

    /// The reader of `bytes`, from which this layout was parsed.
    pub(super) const fn over<'a>(&self, bytes: &'a [u8]) -> Page<'a> {
        Page { layout: *self, bytes }
    }
}

/// Bytes of a page by what they hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct PartBytes {
    /// Header and segment lengths.
    pub(super) headers: u64,
    pub(super) selectors: u64,
    pub(super) kinds: u64,
    pub(super) differences: u64,
    pub(super) infixes: u64,
    /// Ends, prefix and anchors.
    pub(super) anchors: u64,
}

impl PartBytes {
    pub(super) const fn add(&mut self, other: Self) {
        self.headers += other.headers;
        self.selectors += other.selectors;
        self.kinds += other.kinds;
        self.differences += other.differences;
        self.infixes += other.infixes;
        self.anchors += other.anchors;
    }
}

/// A page's bytes with their layout.
#[derive(Debug, Clone, Copy)]
pub(super) struct Page<'a> {
    pub(super) layout: PageLayout,
    bytes: &'a [u8],
}

impl<'a> Page<'a> {
    #[inline]
    fn byte(&self, offset: usize) -> u8 {
        self.bytes.get(offset).copied().unwrap_or_default()
    }

    fn u16_at(&self, offset: usize) -> u16 {
        let bytes = self.bytes.get(offset..).and_then(<[u8]>::first_chunk);
        bytes.map_or(0, |bytes| u16::from_le_bytes(*bytes))
    }

    fn u32_at(&self, offset: usize) -> u32 {
        let bytes = self.bytes.get(offset..).and_then(<[u8]>::first_chunk);
        bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }

    #[inline]
    pub(super) fn segment_length(&self, segment: usize) -> usize {
        usize::from(self.byte(PAGE_HEADER_LENGTH + segment) & !SEGMENT_CONTINUED)
    }

    #[inline]
    pub(super) fn is_continuation(&self, segment: usize) -> bool {
        self.byte(PAGE_HEADER_LENGTH + segment) & SEGMENT_CONTINUED != 0
    }

    /// Whether some segment of the page is a continuation.
    #[inline]
    pub(super) fn has_continuation(&self) -> bool {
        let lengths = self.bytes.get(PAGE_HEADER_LENGTH..PAGE_HEADER_LENGTH + self.layout.segment_count());
        lengths.unwrap_or_default().iter().fold(0, |all, length| all | length) & SEGMENT_CONTINUED != 0
    }

    /// Entries of the page before a segment.
    #[inline]
    pub(super) fn segment_start(&self, segment: usize) -> usize {
        let lengths = self.bytes.get(PAGE_HEADER_LENGTH..PAGE_HEADER_LENGTH + segment).unwrap_or_default();
        lengths.iter().map(|&length| usize::from(length & !SEGMENT_CONTINUED)).sum()
    }

    /// The segment of an entry, and the entries of the page before the segment.
    pub(super) fn segment_of(&self, entry: usize) -> (usize, usize) {
        let mut start = 0;
        for segment in 0..self.layout.segment_count() {
            let end = start + self.segment_length(segment);
            if entry < end {
                return (segment, start);
            }
            start = end;
        }
        (self.layout.segment_count(), start)
    }

    /// The first segment at or after `segment` that begins with the newest entry of a key; the segment count without one.
    pub(super) fn head_segment_from(&self, segment: usize) -> usize {
        let mut segment = segment;
        while segment < self.layout.segment_count() && self.is_continuation(segment) {
            segment += 1;
        }
        segment
    }

    /// One bit of each entry of a segment.
    #[inline]
    fn plane(&self, segment: usize, plane: usize) -> u64 {
        let layout = &self.layout;
        let plane_count = usize::from(layout.selector_bits) + usize::from(layout.kind_bits);
        let width = usize::from(layout.plane_bytes);
        let offset = layout.planes_start as usize + (segment * plane_count + plane) * width;
        match width {
            8 => self.bytes.get(offset..).and_then(<[u8]>::first_chunk).map_or(0, |w| u64::from_le_bytes(*w)),
            4 => u64::from(self.u32_at(offset)),
            _ => u64::from(self.u16_at(offset)),
        }
    }

    /// The number at a slot in `count` planes from `first` on.
    #[inline]
    fn planes_at(&self, segment: usize, slot: usize, first: usize, count: u8) -> usize {
        (0..usize::from(count))
            .map(|plane| {
                ((self.plane(segment, first + plane).checked_shr(slot as u32).unwrap_or_default() & 1)
                    as usize)
                    << plane
            })
            .sum()
    }

    /// The number of the run that has an entry.
    #[inline]
    pub(super) fn run(&self, segment: usize, slot: usize) -> usize {
        self.planes_at(segment, slot, 0, self.layout.selector_bits)
    }

    /// The number of an entry's kind.
    #[inline]
    pub(super) fn kind(&self, segment: usize, slot: usize) -> u8 {
        let first = usize::from(self.layout.selector_bits);
        self.planes_at(segment, slot, first, self.layout.kind_bits) as u8
    }

    /// A bit for each entry of a segment.
    fn all(&self, segment: usize) -> u64 {
        ones(self.segment_length(segment))
    }

    /// Whether bits without a meaning are as a writer leaves them: those of the planes behind the last entries of segments, and the
    /// difference byte of the first entry.
    pub(super) fn has_clear_ends(&self) -> bool {
        let plane_count = usize::from(self.layout.selector_bits) + usize::from(self.layout.kind_bits);
        let is_clear = |segment: usize| {
            (0..plane_count).all(|plane| self.plane(segment, plane) & !self.all(segment) == 0)
        };
        let first = self.byte(self.layout.differences_start as usize);
        matches!(first, 0 | DIFFERENCE_SAME) && (0..self.layout.segment_count()).all(is_clear)
    }

    /// The first segment with a selector that names none of so many runs.
    pub(super) fn find_unknown_run(&self, run_count: usize) -> Option<usize> {
        let bits = usize::from(self.layout.selector_bits);
        let last = run_count.saturating_sub(1);
        if last.checked_shr(bits as u32).unwrap_or_default() != 0 {
            return None;
        }
        (0..self.layout.segment_count()).find(|&segment| {
            // From the highest plane on: selectors that are equal to the last run so far, and those that are above it.
            let (mut equal, mut above) = (self.all(segment), 0);
            for plane in (0..bits).rev() {
                let (word, limit) = (self.plane(segment, plane), spread(last >> plane));
                above |= equal & word & !limit;
                equal &= !(word ^ limit);
            }
            above != 0
        })
    }

    /// Whether an entry is an operand or an expiring put.
    pub(super) fn is_mixed(&self) -> bool {
        let second = usize::from(self.layout.selector_bits) + 1;
        let mut segments = 0..self.layout.segment_count();
        self.layout.kind_bits > 1
            && segments.any(|segment| self.all(segment) & self.plane(segment, second) != 0)
    }

    /// The entries of a segment that are no tombstones, a bit each.
    fn values(&self, segment: usize) -> u64 {
        let first = usize::from(self.layout.selector_bits);
        let plane = |bit: u8| {
            if bit < self.layout.kind_bits { self.plane(segment, first + usize::from(bit)) } else { 0 }
        };
        self.all(segment) & !(plane(0) & !plane(1))
    }

    /// The newest entries of the keys of a segment, a bit each.
    fn newest(&self, segment: usize, segment_start: usize) -> u64 {
        let start = self.layout.differences_start as usize + segment_start;
        let length = self.segment_length(segment);
        let bytes = self.bytes.get(start..start + length).unwrap_or_default();
        let (words, rest) = bytes.as_chunks();
        let mut last = [0; 8];
        for (target, &byte) in last.iter_mut().zip(rest) {
            *target = byte;
        }
        let words = words.iter().chain([&last]).take(8).enumerate();
        let same = words.fold(0, |found, (number, word)| {
            found | same_key_bits(u64::from_le_bytes(*word)) << (8 * number)
        });
        !same & ones(length)
    }

    /// A segment as bit masks. `number` is that of the page.
    pub(super) fn segment(&self, number: usize, segment: usize, segment_start: usize) -> Segment {
        let layout = &self.layout;
        let mut found = Segment {
            page: number,
            number: segment,
            length: self.segment_length(segment).min(64),
            selector_bits: layout.selector_bits,
            newest: self.newest(segment, segment_start),
            ..Segment::NONE
        };
        let selectors = found.selectors.iter_mut().take(layout.selector_bits.into());
        let kinds = found.kinds.iter_mut().take(layout.kind_bits.into());
        for (plane, target) in selectors.chain(kinds).enumerate() {
            *target = self.plane(segment, plane);
        }
        found
    }

    /// Entries of a run in the page before a segment.
    pub(super) fn count_before(&self, run: usize, segment: usize) -> u32 {
        let bits = usize::from(self.layout.selector_bits);
        if run.checked_shr(bits as u32).unwrap_or_default() != 0 {
            return 0;
        }
        match self.layout.plane_bytes {
            _ if bits == 0 => self.segment_start(segment) as u32,
            8 => self.count_in_planes::<8>(run, segment),
            4 => self.count_in_planes::<4>(run, segment),
            _ => self.count_in_planes::<2>(run, segment),
        }
    }

    /// As [`Page::count_before`], for planes of `W` bytes.
    fn count_in_planes<const W: usize>(&self, run: usize, segment: usize) -> u32 {
        // The usual numbers of planes, for which the compiler unrolls the loop over them.
        match self.layout.selector_bits {
            1 => self.count_in_first::<W, 1>(run, segment),
            2 => self.count_in_first::<W, 2>(run, segment),
            3 => self.count_in_first::<W, 3>(run, segment),
            4 => self.count_in_first::<W, 4>(run, segment),
            bits => self.count_in::<W>(segment, |planes, all| {
                let words = planes.iter().take(bits.into()).enumerate();
                words.fold(all, |found, (plane, bytes)| found & !(word(bytes) ^ spread(run >> plane)))
            }),
        }
    }

    /// As [`Page::count_in_planes`], for `B` planes of selectors.
    fn count_in_first<const W: usize, const B: usize>(&self, run: usize, segment: usize) -> u32 {
        let mut wanted = [0; B];
        wanted.iter_mut().enumerate().for_each(|(plane, target)| *target = spread(run >> plane));
        self.count_in::<W>(segment, |planes, all| {
            let words = planes.first_chunk::<B>().into_iter().flatten().zip(&wanted);
            words.fold(all, |found, (bytes, wanted)| found & !(word(bytes) ^ wanted))
        })
    }

    /// Counts the entries before a segment that `entries_of` finds in the planes of each segment, from a mask of all of them.
    #[inline(always)]
    fn count_in<const W: usize>(&self, segment: usize, entries_of: impl Fn(&[[u8; W]], u64) -> u64) -> u32 {
        let stride = W * (usize::from(self.layout.selector_bits) + usize::from(self.layout.kind_bits));
        let start = self.layout.planes_start as usize;
        let planes = self.bytes.get(start..start + stride * segment).unwrap_or_default();
        let lengths = self.bytes.get(PAGE_HEADER_LENGTH..).unwrap_or_default();
        let found = planes.chunks_exact(stride).zip(lengths).map(|(planes, length)| {
            entries_of(planes.as_chunks::<W>().0, ones(usize::from(length & !SEGMENT_CONTINUED)))
        });
        // The masks of small segments are counted several at a time.
        let (mut count, mut word, mut shift) = (0, 0, 0);
        for mask in found {
            word |= mask << shift;
            shift += 8 * W as u32;
            if shift >= u64::BITS {
                count += word.count_ones();
                (word, shift) = (0, 0);
            }
        }
        count + word.count_ones()
    }

    /// Keys in the page before an entry whose newest entry is a put.
    pub(super) fn live_before(&self, entry: usize) -> usize {
        let (mut start, mut count) = (0, 0);
        for segment in 0..self.layout.segment_count() {
            if start >= entry {
                break;
            }
            let live = self.values(segment) & self.newest(segment, start);
            let below = 1_u64.checked_shl((entry - start) as u32).map_or(u64::MAX, |bit| bit - 1);
            count += (live & below).count_ones() as usize;
            start += self.segment_length(segment);
        }
        count
    }

    /// The n-th key of the page whose newest entry is a put: that entry.
    pub(super) fn live_entry(&self, number: usize) -> Option<usize> {
        let (mut start, mut left) = (0, number);
        for segment in 0..self.layout.segment_count() {
            let mut live = self.values(segment) & self.newest(segment, start);
            let count = live.count_ones() as usize;
            if left < count {
                for _ in 0..left {
                    live &= live - 1;
                }
                return Some(start + live.trailing_zeros() as usize);
            }
            left -= count;
            start += self.segment_length(segment);
        }
        None
    }

    /// Keys whose newest entry is in the page.
    pub(super) fn key_count(&self) -> u64 {
        let start = self.layout.differences_start as usize;
        let bytes = self.bytes.get(start..start + self.layout.entry_count()).unwrap_or_default();
        bytes.iter().filter(|&&byte| byte != DIFFERENCE_SAME).count() as u64
    }

    /// Position of the first bit in which an entry's key differs from the previous key; [`SAME_KEY`] for an old version.
    #[inline]
    pub(super) fn difference(&self, entry: usize) -> u32 {
        if entry == 0 {
            return self.layout.first_difference;
        }
        self.decode_difference(self.byte(self.layout.differences_start as usize + entry), entry)
    }

    /// The position that a difference byte means, for an entry behind the first one of the page.
    #[inline]
    pub(super) fn decode_difference(&self, byte: u8, entry: usize) -> u32 {
        match byte {
            DIFFERENCE_SAME => SAME_KEY,
            DIFFERENCE_ESCAPED => self.escaped(entry),
            byte => u32::from(byte) + u32::from(self.layout.prefix_length) * BITS_PER_BYTE,
        }
    }

    /// The difference bytes and the infixes of a segment, of which `start` entries are before it in the page.
    #[inline]
    pub(super) fn differences_and_infixes(&self, segment: usize, start: usize) -> (&'a [u8], &'a [u8]) {
        let first = self.layout.differences_start as usize + start;
        let length = self.segment_length(segment);
        let part = |first: usize| self.bytes.get(first..first + length).unwrap_or_default();
        (part(first), part(first + self.layout.entry_count()))
    }

    /// Whether an entry has the key of the previous entry.
    #[inline]
    pub(super) fn is_old_version(&self, entry: usize) -> bool {
        self.byte(self.layout.differences_start as usize + entry) == DIFFERENCE_SAME
    }

    #[cold]
    fn escaped(&self, entry: usize) -> u32 {
        let start = self.layout.escapes_start as usize;
        let end = start + ESCAPE_LENGTH * usize::from(self.layout.escape_count);
        let escapes = self.bytes.get(start..end).unwrap_or_default().as_chunks::<ESCAPE_LENGTH>().0;
        let place =
            escapes.partition_point(|&[low, high, ..]| usize::from(u16::from_le_bytes([low, high])) < entry);
        escapes.get(place).map_or(0, |&[_, _, a, b, c, d]| u32::from_le_bytes([a, b, c, d]))
    }

    /// The eight bits of an entry's key behind its difference.
    #[inline]
    pub(super) fn infix(&self, entry: usize) -> u8 {
        self.byte(self.layout.differences_start as usize + self.layout.entry_count() + entry)
    }

    /// The bytes that all keys of the page begin with.
    pub(super) fn prefix(&self) -> &'a [u8] {
        let start = self.layout.prefix_start as usize;
        self.bytes.get(start..start + self.layout.prefix_length()).unwrap_or_default()
    }

    fn anchor_end(&self, segment: usize) -> usize {
        let start = self.layout.ends_start as usize;
        if self.layout.is_wide {
            self.u32_at(start + 4 * segment) as usize
        } else {
            self.u16_at(start + 2 * segment).into()
        }
    }

    /// The anchor of a segment without the page's prefix; empty for continuation segments and the first head segment.
    pub(super) fn anchor(&self, segment: usize) -> &'a [u8] {
        let start = segment.checked_sub(1).map_or(0, |before| self.anchor_end(before));
        let base = self.layout.prefix_start as usize + self.layout.prefix_length();
        self.bytes.get(base + start..base + self.anchor_end(segment)).unwrap_or_default()
    }
}

/// The bits of a plane.
#[inline]
fn word<const W: usize>(bytes: &[u8; W]) -> u64 {
    let mut word = [0; 8];
    word.iter_mut().zip(bytes).for_each(|(target, &byte)| *target = byte);
    u64::from_le_bytes(word)
}

/// A bit for each byte of a word that is [`DIFFERENCE_SAME`], the largest byte.
const fn same_key_bits(word: u64) -> u64 {
    const LOW: u64 = 0x7F7F_7F7F_7F7F_7F7F;
    let zeros = !word;
    // The high bit of each byte that is zero.
    let found = !(((zeros & LOW) + LOW) | zeros | LOW);
    // The product moves the high bits of all bytes to the highest byte.
    (found >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}
