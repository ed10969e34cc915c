//! Tables from results, put into a page between its markers, or their figures as JSON.
//!
//! A page says `<!-- begin NAME -->` and `<!-- end NAME -->`, each on a line of its own; what stands between is replaced.

mod summary;
mod table;
#[cfg(test)]
mod tests;

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::Args;

use self::summary::Summary;
use crate::{
    failure::{Failure, Result, while_doing},
    results::Results,
};

/// Make tables of results, on the terminal or into a page, or JSON
#[derive(Debug, Clone, Args)]
pub struct ReportArgs {
    /// The file of results
    results: PathBuf,
    /// A page with markers: the tables replace what stands between them
    #[arg(long)]
    page: Option<PathBuf>,
    /// The name in the markers
    #[arg(long, default_value = "main")]
    name: String,
    /// Medians, spreads, ratios and what was missed, as JSON on the terminal
    #[arg(long, conflicts_with_all = ["page", "name"])]
    json: bool,
}

impl ReportArgs {
    /// Makes the tables.
    pub fn run(&self) -> Result<()> {
        let results = Results::read(&self.results)?;
        let summary = Summary::new(&results);
        if self.json {
            println!("{}", serde_json::to_string_pretty(&summary)?);
            return Ok(());
        }
        let text = table::all(&summary);
        match &self.page {
            None => {
                print!("{text}");
                Ok(())
            }
            Some(page) => self.replace(page, &text),
        }
    }

    fn replace(&self, page: &Path, text: &str) -> Result<()> {
        let old = while_doing(fs::read_to_string(page), page.display())?;
        let new = between_markers(&old, &self.name, text).ok_or_else(|| {
            Failure(format!(
                "{} has no lines `<!-- begin {} -->` and `<!-- end {} -->`: add them where the tables belong",
                page.display(),
                self.name,
                self.name
            ))
        })?;
        while_doing(fs::write(page, new), page.display())
    }
}

/// The page with `text` between the markers of `name`.
fn between_markers(page: &str, name: &str, text: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- begin {name} -->\n"), format!("<!-- end {name} -->"));
    let (before, rest) = page.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}\n{text}\n{end}{after}"))
}
