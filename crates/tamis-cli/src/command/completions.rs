//! `tamis completions`: prints completion scripts for shells.

use std::io::Write;

use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};

use super::Cli;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  tamis completions bash > ~/.local/share/bash-completion/completions/tamis
  tamis completions zsh > ~/.zfunc/_tamis
  tamis completions fish > ~/.config/fish/completions/tamis.fish";

/// Print the completion script of a shell: bash, elvish, fish, powershell, zsh
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

impl CompletionsArgs {
    pub(super) fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        let mut script = Vec::new();
        generate(self.shell, &mut Cli::command(), "tamis", &mut script);
        Ok(output.write_all(&script)?)
    }
}
