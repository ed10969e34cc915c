//! `tamis backup STORE TARGET`: makes a backup, or one after another.

use std::{io::Write, path::PathBuf, time::Duration};

use clap::Args;
use serde_json::json;
use tamis::{Clock as _, SystemClock};
use tamis_backup::{BackupOptions, BackupReport, Source, Target, backup, follow};

use super::{Bar, failure, parse_time};
use crate::{failure::Failure, terminal};

#[derive(Debug, Args)]
pub(super) struct MakeArgs {
    /// Folder of the store
    #[arg(value_name = "STORE", required = true)]
    store: Option<PathBuf>,
    /// Folder, or s3://bucket/path
    #[arg(value_name = "TARGET", required = true)]
    target: Option<String>,
    /// Upload only new bytes of the log; a whole backup if tables have changed
    #[arg(long)]
    log: bool,
    /// Make one backup after another, until Ctrl-C
    #[arg(long)]
    follow: bool,
    /// Time between two backups of --follow
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "10s", requires = "follow")]
    every: Duration,
    /// Folder for the temporary checkpoint, on the file system of the store [default: next to the store]
    #[arg(long, value_name = "DIR")]
    temporary: Option<PathBuf>,
    /// Print the report as a JSON object
    #[arg(long)]
    json: bool,
}

impl MakeArgs {
    pub(super) fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        // A command line without them is refused.
        let (store, target) =
            (self.store.clone().unwrap_or_default(), self.target.clone().unwrap_or_default());
        let target = Target::open(&target).map_err(failure)?;
        let bar = Bar::new("backup")?;
        let mut options = BackupOptions::default();
        options.log = self.log || self.follow;
        options.temporary.clone_from(&self.temporary);
        options.progress = bar.clone();
        let source = Source::Folder(&store);
        if !self.follow {
            let clock = SystemClock::default();
            let result = backup(source, &target, &options);
            bar.0.finish_and_clear();
            return self.print(output, &result.map_err(failure)?, "seconds", clock.now());
        }
        let mut printed = Ok(());
        follow(source, &target, &options, self.every, &mut |round| {
            bar.0.suspend(|| match &round.result {
                Ok(report) if report.is_new => {
                    let shown = self.print(output, report, "loss_seconds_max", round.loss_max);
                    printed = shown.and_then(|()| Ok(output.flush()?));
                }
                Ok(_) => {}
                Err(error) => {
                    let loss = terminal::seconds(round.loss_max.as_secs_f64());
                    eprintln!("tamis: {error}; the newest backup is {loss} old, and the next one is tried");
                }
            });
        })
        .map_err(failure)?;
        bar.0.finish_and_clear();
        printed?;
        Err(Failure::Interrupted("interrupted; all backups in the list are complete".to_owned()))
    }

    /// Prints a backup with a time: that of the backup, or the greatest loss.
    fn print(
        &self,
        output: &mut dyn Write,
        report: &BackupReport,
        name: &'static str,
        time: Duration,
    ) -> Result<(), Failure> {
        let BackupReport { backup, uploaded_bytes, whole_because, clock_jumped_since, .. } = report;
        if self.json {
            let more = [
                ("uploaded_bytes", json!(uploaded_bytes)),
                ("whole_because", json!(whole_because)),
                ("clock_jumped_since", json!(clock_jumped_since)),
                (name, json!(time.as_secs_f64())),
            ];
            let line = super::list::backup_json(backup, more);
            return Ok(writeln!(output, "{line}")?);
        }
        let kind = super::list::kind_text(backup);
        let time = terminal::seconds(time.as_secs_f64());
        let time = match name {
            "seconds" => format!("in {time}"),
            _ => format!("at most {time} of writes can be lost"),
        };
        writeln!(
            output,
            "backup {} ({kind}): sequence number {}, {} uploaded of {}, {time}",
            backup.number,
            terminal::count(backup.sequence),
            terminal::bytes(*uploaded_bytes),
            terminal::bytes(backup.store_bytes),
        )?;
        if let (Some(reason), true) = (whole_because, self.log) {
            writeln!(output, "it is whole: {reason}")?;
        }
        if let Some(number) = clock_jumped_since {
            writeln!(output, "the clock is before that of backup {number}: name backups by their numbers")?;
        }
        Ok(())
    }
}
