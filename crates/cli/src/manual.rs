//! Completion scripts for shells, and manual pages, generated from the definition of the arguments.

use crate::{args, complete};
use clap_complete::Shell;
use std::fs::DirEntry;
use std::io::{self, Write};
use std::path::Path;
use veilset::error::{Error, Result};

/// Prints the completion script of a shell: one that queries the program, if there is one, or else a generated one.
pub fn completions(shell: Shell) -> Result<()> {
    let mut script = Vec::new();
    match complete::SCRIPTS.iter().find(|(other, _)| *other == shell) {
        Some((_, asking)) => script.extend_from_slice(asking.as_bytes()),
        None => clap_complete::generate(shell, &mut args::command(), "veilset", &mut script),
    }
    std::io::stdout().write_all(&script).map_err(|e| {
        Error::output(format!("cannot write to standard output: {e}. Send it elsewhere and run again"))
    })
}

/// Writes one page for the program and one per command. Replaces existing pages of veilset, but no other file.
pub fn pages(folder: &Path) -> Result<()> {
    let failed =
        |e| Error::output(format!("cannot write to {}: {e}. Name a folder that exists", folder.display()));
    let made = tempfile::tempdir_in(folder).map_err(failed)?;
    clap_mangen::generate_to(args::command(), &made).map_err(failed)?;
    let pages = made.path().read_dir().and_then(|pages| {
        let to = |page: DirEntry| (page.path(), folder.join(page.file_name()));
        pages.map(|page| page.map(to)).collect::<io::Result<Vec<_>>>()
    });
    let pages = pages.map_err(failed)?;
    // The file is read as bytes, since it need not be text.
    let is_page =
        |path: &Path| std::fs::read(path).is_ok_and(|page| page.windows(12).any(|at| at == b"\n.TH veilset"));
    if let Some((_, other)) = pages.iter().find(|(_, to)| to.exists() && !is_page(to)) {
        return Err(Error::usage(format!(
            "{} is there already, and is no page of veilset. Name another folder, or move it",
            other.display()
        )));
    }
    pages.iter().try_for_each(|(page, to)| std::fs::rename(page, to)).map_err(failed)
}
