//! `tamis backup verify`: reads every byte of all backups.

use std::io::Write;

use clap::Args;
use serde_json::json;
use tamis_backup::{ObjectFault, verify};

use super::{Bar, TargetArgs, failure};
use crate::{command::verify::faults, failure::Failure, terminal};

const EXAMPLES: &str = "\
Examples:
  tamis backup verify /mnt/backups
  tamis backup verify s3://bucket/path --json

Restores nothing. Each damaged or missing object is printed with the backups that need it, and the
exit code is 3. The next backup without --log uploads missing objects again; delete a damaged object
so that it is missing.";

/// Check every byte of all backups
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct VerifyArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Print the report as a JSON object
    #[arg(long)]
    json: bool,
}

impl VerifyArgs {
    pub(super) fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        let target = self.target.open()?;
        let bar = Bar::new("verify")?;
        let result = verify(&target, &*bar);
        bar.0.finish_and_clear();
        let report = result.map_err(failure)?;
        if self.json {
            let fault = |fault: &ObjectFault| json!({ "object": fault.object, "what": fault.what, "backups": fault.backups });
            let line = json!({
                "backups": report.backup_count, "objects": report.object_count, "bytes": report.bytes,
                "unused_objects": report.unused_object_count,
                "faults": report.faults.iter().map(fault).collect::<Vec<_>>(),
            });
            writeln!(output, "{line}")?;
        } else {
            for ObjectFault { object, what, backups, .. } in &report.faults {
                let numbers: Vec<String> = backups.iter().map(u64::to_string).collect();
                let users = match numbers.len() {
                    0 => String::new(),
                    1 => format!("; backup {} needs it", numbers.join("")),
                    _ => format!("; backups {} need it", numbers.join(", ")),
                };
                writeln!(output, "{object}: {what}{users}")?;
            }
            let count = report.faults.len();
            writeln!(
                output,
                "{}, {}, {} read; {}",
                terminal::amount(report.backup_count as u64, "backup", "backups"),
                terminal::amount(report.object_count as u64, "object", "objects"),
                terminal::bytes(report.bytes),
                if count == 0 { "no faults".to_owned() } else { faults(count) }
            )?;
        }
        match report.faults.len() {
            0 => Ok(()),
            count => {
                let advice = "restore a backup that is not named, and make a new one";
                Err(Failure::Damage(format!("{}: {}; {advice}", target.name(), faults(count))))
            }
        }
    }
}
