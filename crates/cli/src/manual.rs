//! Shell completions and manual pages, both made from the arguments' definition.

use crate::args::Arguments;
use clap::CommandFactory;
use clap_complete::Shell;
use std::io::Write;
use std::path::Path;
use veilset::error::{Error, Result};

/// Prints what the shell needs.
pub fn completions(shell: Shell) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "veilset", &mut script);
    std::io::stdout().write_all(&script).map_err(|e| {
        Error::Output(format!("cannot write to standard output: {e}. Send it elsewhere and run again"))
    })
}

/// Writes a page for the program and one for each command.
pub fn pages(folder: &Path) -> Result<()> {
    clap_mangen::generate_to(Arguments::command(), folder).map_err(|e| {
        Error::Output(format!("cannot write to {}: {e}. Name a folder that exists", folder.display()))
    })
}
