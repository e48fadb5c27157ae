//! Shell completions and manual pages, generated from the definition of the arguments.

use crate::args::Arguments;
use clap::CommandFactory;
use clap_complete::Shell;
use std::io::Write;
use std::path::Path;
use veilset::error::{Error, Result};

/// Prints the completion script of a shell.
pub fn completions(shell: Shell) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "veilset", &mut script);
    std::io::stdout().write_all(&script).map_err(|e| {
        Error::Output(format!("cannot write to standard output: {e}. Send it elsewhere and run again"))
    })
}

/// Writes one page for the program and one per command.
pub fn pages(folder: &Path) -> Result<()> {
    clap_mangen::generate_to(Arguments::command(), folder).map_err(|e| {
        Error::Output(format!("cannot write to {}: {e}. Name a folder that exists", folder.display()))
    })
}
