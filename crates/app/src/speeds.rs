//! The speeds of this machine, for the choice of protocols.

use std::path::{Path, PathBuf};
use veilset::error::Result;
use veilset::places::Folder;
use veilset::speed::{self, Speeds};
use veilset::spelling::SPEEDS;

/// Returns the speeds of this machine with this number of threads: measured, or built in if there are none or they cannot be
/// used. In the latter case, calls `say` with the reason.
pub fn speeds(path: Option<&Path>, threads: usize, say: &mut dyn FnMut(&str)) -> Speeds {
    let measured = file(path).ok().map(|path| speed::load(&path, threads));
    match measured {
        Some(Ok(Some(speeds))) => speeds,
        Some(Err(why)) => {
            say(&format!("{why}. Until then, built-in speeds choose the protocol"));
            Speeds::built_in(threads)
        }
        _ => Speeds::built_in(threads),
    }
}

/// Returns the file of the measured speeds: the named one, or the default one.
///
/// # Errors
/// [`veilset::error::Error::Usage`] if none is named and there is no folder for it.
pub fn file(path: Option<&Path>) -> Result<PathBuf> {
    path.map_or_else(
        || Folder::State.file_or("speeds.json", "the file of speeds", SPEEDS.marked()),
        |path| Ok(path.into()),
    )
}
