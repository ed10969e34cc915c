//! The frame of the pages that the program writes: one HTML file each, with its style and pictures in it, without scripts or references.
//!
//! Text is escaped here, so callers give it as it is. Each picture has one sentence that says what it shows and what would be bad.
//! Pictures are as wide as the window; their text keeps its size (`drawing.rs`). Writing to a string can't fail.

mod drawing;

use std::{fmt::Write as _, io::Write as _, path::Path};

pub(crate) use drawing::{Anchor, Colour, Drawing, Part, Span, bar, legend};

use crate::{failure::Failure, output_file::OutputFile};

const STYLE: &str = include_str!("html/style.css");

/// Replaces the characters that have a meaning in HTML.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A page under construction.
pub(crate) struct Page(String);

impl Page {
    /// Begins a page with its heading.
    pub(crate) fn new(heading: &str) -> Self {
        let heading = escaped(heading);
        Self(format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
             content=\"width=device-width\"><title>{heading}</title><style>{STYLE}</style></head><body>\n<h1>{heading}</h1>\n"
        ))
    }

    fn element(&mut self, tag: &str, class: &str, text: &str) {
        let _ = writeln!(self.0, "<{tag}{class}>{}</{tag}>", escaped(text));
    }

    /// The heading of a part.
    pub(crate) fn heading(&mut self, text: &str) {
        self.element("h2", "", text);
    }

    /// A heading within a part.
    pub(crate) fn subheading(&mut self, text: &str) {
        self.element("h3", "", text);
    }

    /// A sentence of the page's answer.
    pub(crate) fn answer(&mut self, text: &str) {
        self.element("p", " class=\"answer\"", text);
    }

    pub(crate) fn paragraph(&mut self, text: &str) {
        self.element("p", "", text);
    }

    /// A picture, and the sentence about it: what it shows, and what would be bad.
    pub(crate) fn figure(&mut self, shows: &str, bad: &str, picture: &str) {
        let (shows, bad) = (escaped(shows), escaped(bad));
        let _ = writeln!(
            self.0,
            "<figure><figcaption>{shows}; it would be bad if {bad}.</figcaption>\n{picture}</figure>"
        );
    }

    /// A table that scrolls where the window is narrower. The first columns are text, the others numbers.
    pub(crate) fn table(
        &mut self,
        text_columns: usize,
        header: &[&str],
        rows: impl IntoIterator<Item = Vec<String>>,
    ) {
        let cell = |tag: &str, column: usize, text: &str| {
            let class = if column < text_columns { " class=\"text\"" } else { "" };
            format!("<{tag}{class}>{}</{tag}>", escaped(text))
        };
        let head = header.iter().enumerate().map(|(column, text)| cell("th", column, text));
        let _ = write!(self.0, "<div class=\"wide\"><table><tr>{}</tr>", head.collect::<String>());
        for row in rows {
            let cells = row.iter().enumerate().map(|(column, text)| cell("td", column, text));
            let _ = write!(self.0, "\n<tr>{}</tr>", cells.collect::<String>());
        }
        self.0.push_str("</table></div>\n");
    }

    /// A list.
    pub(crate) fn list(&mut self, lines: &[String]) {
        self.0.push_str("<ul>");
        lines.iter().for_each(|line| self.element("li", "", line));
        self.0.push_str("</ul>\n");
    }

    /// The whole page.
    pub(crate) fn text(self) -> String {
        self.0 + "</body></html>\n"
    }

    /// Writes the page to a file, which must not exist; `advice` says what to do if it does.
    pub(crate) fn write(self, path: &Path, advice: &str) -> Result<(), Failure> {
        let file = OutputFile::create(path, false, advice)?;
        (&file).write_all(self.text().as_bytes())?;
        Ok(file.finish()?)
    }
}
