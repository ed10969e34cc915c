//! Writes results as tables, to standard output or into a page, or as JSON.
//!
//! A page has the lines `<!-- begin NAME -->` and `<!-- end NAME -->`; the text between them is replaced.

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

/// Write results as tables, to standard output or into a page, or as JSON
#[derive(Debug, Clone, Args)]
pub struct ReportArgs {
    /// File of results
    results: PathBuf,
    /// Page with markers; the tables replace the text between them
    #[arg(long)]
    page: Option<PathBuf>,
    /// Name in the markers
    #[arg(long, default_value = "main")]
    name: String,
    /// States of the tables [default: all]
    #[arg(long, value_delimiter = ',')]
    states: Vec<String>,
    /// Numbers of threads of the tables [default: all]
    #[arg(long, value_delimiter = ',')]
    threads: Vec<u64>,
    /// Print medians, spreads, ratios and missed targets as JSON
    #[arg(long, conflicts_with_all = ["page", "name"])]
    json: bool,
}

impl ReportArgs {
    /// Writes the tables.
    pub fn run(&self) -> Result<()> {
        let mut results = Results::read(&self.results)?;
        results.rows.retain(|row| self.states.is_empty() || self.states.contains(&row.state));
        let mut summary = Summary::new(&results);
        summary.rates.retain(|line| self.threads.is_empty() || self.threads.contains(&line.threads));
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
                "{} has no lines `<!-- begin {} -->` and `<!-- end {} -->`; add them where the tables belong",
                page.display(),
                self.name,
                self.name
            ))
        })?;
        while_doing(fs::write(page, new), page.display())
    }
}

/// Returns the page with `text` between the markers of `name`.
fn between_markers(page: &str, name: &str, text: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- begin {name} -->\n"), format!("<!-- end {name} -->"));
    let (before, rest) = page.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}\n{text}\n{end}{after}"))
}
