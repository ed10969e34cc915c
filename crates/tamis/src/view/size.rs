//! The size of a view, from counts alone: one function for the decision to build a view and for the builder.
//!
//! The builder counts exactly. A decision has the numbers of entries, tombstones and runs, and the counts of some encoded pages, or of the view
//! to which runs are added; [`ViewCounts::expected`] fills in the rest. It is within 5 %.

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

/// A view that grows by more than one of so many entries has more neighbors than before, which share more bytes.
const SAMPLED_GROWTH: u64 = 8;

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
    /// The runs and the entries of the whole view.
    pub(crate) run_count: u64,
    pub(crate) entry_count: u64,
    /// The tombstones of new runs.
    pub(crate) tombstone_count: u64,
    pub(crate) mean_key_bytes: u64,
    pub(crate) segment_size: usize,
    pub(crate) tag_bytes: u8,
    /// The counts of some pages of the view ([`super::page_sample`]).
    pub(crate) sample: Option<ViewCounts>,
    /// The view to which the new runs are added.
    pub(crate) old: Option<ViewCounts>,
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

/// The share of pages with one of these entries, which are distributed at random.
fn share_of_pages(entry_count: u64, page_count: f64) -> f64 {
    1.0 - (-(entry_count as f64) / page_count.max(1.0)).exp()
}

impl ViewEstimate {
    fn format(&self, run_count: u64) -> PageFormat {
        let run_count = usize::try_from(run_count).unwrap_or(usize::MAX);
        PageFormat {
            segment_size: self.segment_size,
            selector_bits: selector_bits(run_count),
            tag_bytes: self.tag_bytes,
        }
    }

    /// The number of full segments of all entries, and of the full pages of these.
    fn segments_and_pages(&self) -> (u64, u64) {
        let segment_count = self.entry_count.div_ceil(self.segment_size as u64);
        let run_count = usize::try_from(self.run_count).unwrap_or(usize::MAX);
        (segment_count, segment_count.div_ceil(segments_per_page(run_count) as u64))
    }

    /// The counts of a view that is built from scratch: as many bytes for each entry as in the sample.
    fn for_new_view(&self, sample: ViewCounts) -> ViewCounts {
        let growth = self.entry_count as f64 / sample.entry_count.max(1) as f64;
        let page_count = (sample.page_count as f64 * growth).ceil();
        // The first page has none.
        let separators = |page_count: f64| (page_count - 1.0).max(1.0);
        let separator = sample.separator_bytes as f64 / separators(sample.page_count as f64);
        ViewCounts {
            run_count: self.run_count,
            entry_count: self.entry_count,
            page_count: page_count as u64,
            separator_bytes: (separator * separators(page_count)) as u64,
            page_bytes: (sample.page_bytes as f64 * growth) as u64,
            ..ViewCounts::default()
        }
    }

    /// The counts of a view of full segments, whose neighbors share the bytes that number them.
    fn without_sample(&self) -> ViewCounts {
        let (segment_count, page_count) = self.segments_and_pages();
        let bytes_for = |count: u64| (count.max(1).ilog2() as u64).div_ceil(8).min(self.mean_key_bytes);
        let by_page = bytes_for(page_count).saturating_sub(1);
        let by_neighbors = bytes_for(self.entry_count).saturating_sub(1);
        let anchor = by_neighbors.saturating_sub(by_page) + 1;
        let cost = PageCost {
            prefix_length: (by_page * page_count) as usize,
            anchor_bytes: (segment_count.saturating_sub(page_count) * anchor) as usize,
            ..PageCost::default()
        };
        let headers = page_count.saturating_sub(1) * PAGE_HEADER_LENGTH as u64;
        ViewCounts {
            run_count: self.run_count,
            entry_count: self.entry_count,
            page_count,
            separator_bytes: page_count * (by_neighbors + 1),
            page_bytes: headers
                + page_bytes(self.format(self.run_count), self.entry_count, segment_count, cost)
                + self.kind_plane_bytes(segment_count, page_count as f64),
            ..ViewCounts::default()
        }
    }

    /// Bytes of the kinds in pages that have a new tombstone.
    fn kind_plane_bytes(&self, segment_count: u64, page_count: f64) -> u64 {
        let planes = segment_count as f64 * (self.segment_size / 8) as f64;
        (planes * share_of_pages(self.tombstone_count, page_count)) as u64
    }

    /// The counts of a view that is built from an old one. Pages without new entries are those of the old view. Other pages are written
    /// again, with selectors for all runs, and take as many bytes for each entry as in the sample, or else as in the old view.
    fn for_rebuild(&self, old: ViewCounts) -> ViewCounts {
        let growth = self.entry_count as f64 / old.entry_count.max(1) as f64;
        let (segment_count, full_page_count) = self.segments_and_pages();
        let new_count = self.entry_count.saturating_sub(old.entry_count);
        let written_share = share_of_pages(new_count, old.page_count as f64);
        let page_count = old.page_count as f64 * growth;
        let page_count = page_count + (full_page_count as f64 - page_count) * written_share;
        let written_bytes = match self.sample {
            Some(sample) if sample.entry_count > 0 => {
                let copied = old.entry_count as f64 * (1.0 - written_share);
                sample.page_bytes as f64 * (self.entry_count as f64 - copied) / sample.entry_count as f64
            }
            _ => {
                let more_bits =
                    self.format(self.run_count).selector_bits - self.format(old.run_count).selector_bits;
                let selectors = segment_count as f64 * f64::from(more_bits) * (self.segment_size / 8) as f64;
                let headers = (page_count - old.page_count as f64 * growth) * PAGE_HEADER_LENGTH as f64;
                old.page_bytes as f64 * (growth - 1.0 + written_share) + selectors * written_share + headers
            }
        };
        let separator = old.separator_bytes as f64 / old.page_count.max(1) as f64;
        ViewCounts {
            run_count: self.run_count,
            entry_count: self.entry_count,
            page_count: page_count.ceil() as u64,
            separator_bytes: (page_count * separator) as u64,
            page_bytes: (old.page_bytes as f64 * (1.0 - written_share) + written_bytes) as u64,
            ..old
        }
    }
}

impl ViewCounts {
    /// The counts of a view that is not built yet.
    pub(crate) fn expected(estimate: &ViewEstimate) -> Self {
        match estimate.old {
            Some(old) if old.entry_count > 0 => estimate.for_rebuild(old),
            _ => match estimate.sample {
                Some(sample) if sample.page_count > 0 => estimate.for_new_view(sample),
                _ => estimate.without_sample(),
            },
        }
    }

    /// Whether a view to which so many entries are added takes about as many bytes for each entry as before, so that no sample is needed.
    pub(crate) const fn is_like(&self, new_count: u64) -> bool {
        new_count <= self.entry_count / SAMPLED_GROWTH
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
