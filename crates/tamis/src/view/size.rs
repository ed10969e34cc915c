//! The size of a view, from counts alone: one function for the decision to build a view and for the builder.
//!
//! The builder counts exactly. A decision has entries, runs and the mean length of keys; [`ViewCounts::expected`] fills in the rest,
//! within 5 % for keys that share no more than their neighbors' prefixes.

use super::{
    format::{
        ESCAPE_LENGTH, HEADER_LENGTH, HEADER_RUN_LENGTH, PAGE_HEADER_LENGTH, segments_per_page, selector_bits,
    },
    index::index_bytes,
    page_builder::{PageCost, PageFormat},
};
use crate::table::format::{
    DIRECTORY_RECORD_LENGTH, FILE_ALIGNMENT, FOOTER_LENGTH, SECTION_ALIGNMENT, SECTION_HEADER_LENGTH,
};

/// The counts that determine the size of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ViewCounts {
    pub(super) run_count: u64,
    pub(super) entry_count: u64,
    pub(super) page_count: u64,
    pub(super) separator_bytes: u64,
    /// Bytes of all pages.
    pub(super) page_bytes: u64,
    pub(super) filter_section_count: u64,
    /// Bytes of the filter sections, with their headers and padding.
    pub(super) filter_bytes: u64,
}

/// The input of [`ViewCounts::expected`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct ViewEstimate {
    pub(crate) run_count: u64,
    pub(crate) entry_count: u64,
    pub(crate) has_tombstones: bool,
    pub(crate) mean_key_bytes: u64,
    pub(crate) segment_size: usize,
    pub(crate) tag_bytes: u8,
}

/// Bytes of a page with this many entries and segments.
pub(super) fn page_bytes(format: PageFormat, entry_count: u64, segment_count: u64, cost: PageCost) -> u64 {
    let planes = u64::from(format.selector_bits + cost.kind_bits) * (format.segment_size / 8) as u64;
    let anchor_end = if cost.is_wide { 4 } else { 2 };
    PAGE_HEADER_LENGTH as u64
        + segment_count * (1 + planes + anchor_end)
        + entry_count * (2 + u64::from(format.tag_bytes))
        + (ESCAPE_LENGTH * cost.escape_count + cost.prefix_length + cost.anchor_bytes) as u64
}

impl ViewCounts {
    /// The counts of a view that is not built yet: full segments, keys whose bytes are evenly distributed.
    pub(crate) fn expected(estimate: &ViewEstimate) -> Self {
        let run_count = usize::try_from(estimate.run_count).unwrap_or(usize::MAX);
        let format = PageFormat {
            segment_size: estimate.segment_size,
            selector_bits: selector_bits(run_count),
            tag_bytes: estimate.tag_bytes,
        };
        let segment_count = estimate.entry_count.div_ceil(estimate.segment_size as u64);
        let page_count = segment_count.div_ceil(segments_per_page(run_count) as u64);
        // Neighbors share the bytes that number them; an anchor has one byte more at most.
        let bytes_for = |count: u64| (count.max(1).ilog2() as u64).div_ceil(8).min(estimate.mean_key_bytes);
        let prefix_length = bytes_for(page_count).saturating_sub(1) as usize;
        let anchor_length = bytes_for(estimate.entry_count).saturating_sub(prefix_length as u64);
        let cost = PageCost {
            kind_bits: u8::from(estimate.has_tombstones),
            is_wide: false,
            prefix_length: prefix_length * page_count as usize,
            escape_count: 0,
            anchor_bytes: (segment_count * anchor_length) as usize,
        };
        let headers = page_count.saturating_sub(1) * PAGE_HEADER_LENGTH as u64;
        Self {
            run_count: estimate.run_count,
            entry_count: estimate.entry_count,
            page_count,
            separator_bytes: page_count * (bytes_for(page_count) + 1),
            page_bytes: headers + page_bytes(format, estimate.entry_count, segment_count, cost),
            ..Self::default()
        }
    }

    /// Adds filters with this many bits for each key of a view that is not built yet.
    pub(crate) fn with_filter(mut self, key_count: u64, bits_per_key: f64) -> Self {
        self.add_filter_section((key_count as f64 * bits_per_key / 8.0) as u64);
        // The keys of its parts.
        self.add_filter_section(SECTION_ALIGNMENT as u64);
        self
    }

    /// Adds a section with a body of this length.
    pub(super) const fn add_filter_section(&mut self, body: u64) {
        self.filter_section_count += 1;
        self.filter_bytes += (SECTION_HEADER_LENGTH as u64 + body).next_multiple_of(SECTION_ALIGNMENT as u64);
    }

    /// Bytes of the file.
    pub(crate) fn file_bytes(&self) -> u64 {
        let section = |body: u64| SECTION_HEADER_LENGTH as u64 + body;
        let align = |bytes: u64| bytes.next_multiple_of(SECTION_ALIGNMENT as u64);
        let header = section(HEADER_LENGTH as u64 + HEADER_RUN_LENGTH as u64 * self.run_count);
        let index = section(index_bytes(self.page_count, self.run_count, self.separator_bytes));
        let directory = section((2 + self.filter_section_count) * DIRECTORY_RECORD_LENGTH as u64);
        let sections = align(align(align(self.page_bytes) + header) + index) + self.filter_bytes + directory;
        (sections + FOOTER_LENGTH as u64).next_multiple_of(FILE_ALIGNMENT as u64)
    }
}
