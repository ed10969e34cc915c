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
use tamis_bench::{BenchError, Report, Value};

use self::summary::Summary;
use crate::store::Result;

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

/// Reads a file of results.
pub fn read(path: &Path) -> Result<Report> {
    let text = fs::read_to_string(path).map_err(BenchError::io(path))?;
    let wrong = |error: serde_json::Error| BenchError::WrongContent {
        path: path.to_owned(),
        what: format!("contains no results of a comparison: {error}"),
    };
    serde_json::from_str(&text).map_err(wrong)
}

impl ReportArgs {
    /// Writes the tables.
    pub fn run(&self) -> Result<()> {
        let mut results = read(&self.results)?;
        let is_shown = |state: Option<&Value>| {
            self.states.iter().any(|name| state.is_some_and(|state| state.to_string() == *name))
        };
        results.rows.retain(|row| self.states.is_empty() || is_shown(row.get("state")));
        let mut summary = Summary::new(&results)?;
        summary.rates.retain(|line| self.threads.is_empty() || self.threads.contains(&line.threads));
        if self.json {
            println!("{}", serde_json::to_string_pretty(&summary).map_err(BenchError::other)?);
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
        let old = fs::read_to_string(page).map_err(BenchError::io(page))?;
        let name = &self.name;
        let new = between_markers(&old, name, text).ok_or_else(|| BenchError::WrongContent {
            path: page.to_owned(),
            what: format!(
                "no lines `<!-- begin {name} -->` and `<!-- end {name} -->`; add them where the tables belong"
            ),
        })?;
        fs::write(page, new).map_err(BenchError::io(page))
    }
}

/// Returns the page with `text` between the markers of `name`.
fn between_markers(page: &str, name: &str, text: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- begin {name} -->\n"), format!("<!-- end {name} -->"));
    let (before, rest) = page.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}\n{text}\n{end}{after}"))
}
