//! A folder in which the program runs.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the program. The tester's own configuration is never read.
pub(crate) fn veilset_dev() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_veilset-dev"));
    command.env("XDG_CONFIG_HOME", "/nowhere").env("XDG_STATE_HOME", "/nowhere");
    command
}

/// An empty folder.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    /// Returns the program, run in this folder.
    pub(crate) fn veilset_dev(&self) -> Command {
        let mut command = veilset_dev();
        command.current_dir(&self.0);
        command
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Returns the names of the files.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}
