//! The content of a view for inspection: its pages, its sizes by what the bytes hold, and its faults.

use std::{path::Path, sync::Arc};

use tamis_vfs::Vfs;

use super::{page::PartBytes, reader::View};
use crate::{
    error::{Error, Result},
    table::inspect::open_anywhere,
};

/// A page.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PagePlace {
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) entry_count: u64,
    /// Keys whose newest entry is in the page and is a put.
    pub(crate) live_count: u64,
    pub(crate) separator: Vec<u8>,
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct ViewContent {
    pub(crate) pages: Vec<PagePlace>,
    /// Bytes by their content. Every byte of the file is counted once.
    pub(crate) sizes: Vec<(&'static str, u64)>,
    /// Pages that are damaged, which `sizes` counts as "damaged pages".
    pub(crate) faults: Vec<Error>,
}

impl View {
    /// Opens a view in any folder and with any name. Damaged pages are no errors; [`View::content`] returns them.
    pub(crate) fn open_anywhere(vfs: &Arc<dyn Vfs>, path: &Path) -> Result<Self> {
        Self::open_parts(open_anywhere(vfs, path)?)
    }

    pub(crate) fn content(&self) -> ViewContent {
        let (mut pages, mut faults) = (Vec::new(), Vec::new());
        let (mut parts, mut damaged_bytes) = (PartBytes::default(), 0);
        for number in 0..self.page_count() {
            let record = self.record(number);
            let parsed = self.check_page(number).and_then(|_| self.parse(number));
            match parsed {
                Ok(layout) => parts.add(layout.part_bytes(record.length)),
                Err(error) => {
                    damaged_bytes += record.length;
                    faults.push(error);
                }
            }
            let (prefix, suffix) = self.index.separator(number);
            pages.push(PagePlace {
                offset: self.index.extent(number).0,
                bytes: record.length,
                entry_count: record.entry_count,
                live_count: record.live_count,
                separator: [prefix, suffix].concat(),
            });
        }
        let (counts, positions, separators) = self.index.part_bytes();
        let mut sizes = vec![
            ("page headers", parts.headers),
            ("selectors", parts.selectors),
            ("kinds", parts.kinds),
            ("differences", parts.differences),
            ("infixes", parts.infixes),
            ("anchors", parts.anchors),
            ("page offsets and counts", counts),
            ("positions", positions),
            ("separators", separators),
        ];
        if damaged_bytes > 0 {
            sizes.push(("damaged pages", damaged_bytes));
        }
        let counted: u64 = sizes.iter().map(|(_, bytes)| bytes).sum();
        sizes.push(("header, directory, padding", self.file_bytes() - counted));
        ViewContent { pages, sizes, faults }
    }
}
