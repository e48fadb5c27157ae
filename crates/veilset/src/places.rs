//! The user's folders for configuration and state, according to the XDG base directory specification, and the private files
//! and lists in them.

use crate::error::{Error, Result};
use std::ffi::OsString;
use std::fs::{DirBuilder, File, Metadata};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::NamedTempFile;

/// How long to wait for the lock of one of our lists. A process holds it only to read the list and write a line.
pub(crate) const PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 20 });
/// The pause between two attempts to take the lock.
pub(crate) const PAUSE: Duration = Duration::from_millis(10);

/// A per-user folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Folder {
    /// `veilset` in `$XDG_CONFIG_HOME`, by default `$HOME/.config`.
    Configuration,
    /// `veilset` in `$XDG_STATE_HOME`, by default `$HOME/.local/state`.
    State,
}

impl Folder {
    /// The path of the file with this name in the folder; `None` if neither variable is an absolute path.
    pub fn file(self, name: &str) -> Option<PathBuf> {
        self.file_from(name, |name| std::env::var_os(name))
    }

    /// The path of the file with this name in the folder, or an error that names `what` and the option for another path.
    pub fn file_or(self, name: &str, what: &str, option: &str) -> Result<PathBuf> {
        self.file(name).ok_or_else(|| self.none(what, option))
    }

    pub(super) fn none(self, what: &str, option: &str) -> Error {
        Error::usage(format!(
            "there is no default place for {what}, as neither {} nor HOME is set. Name a file with {option}",
            self.variable()
        ))
    }

    pub(super) fn file_from(
        self,
        name: &str,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Option<PathBuf> {
        // The specification says to ignore a relative or empty path.
        let directory = |name| variable(name).map(PathBuf::from).filter(|p| p.is_absolute());
        let place = directory(self.variable()).or_else(|| Some(directory("HOME")?.join(self.at_home())));
        place.map(|place| place.join("veilset").join(name))
    }

    const fn variable(self) -> &'static str {
        match self {
            Folder::Configuration => "XDG_CONFIG_HOME",
            Folder::State => "XDG_STATE_HOME",
        }
    }

    const fn at_home(self) -> &'static str {
        match self {
            Folder::Configuration => ".config",
            Folder::State => ".local/state",
        }
    }
}

/// Creates the parent folder of `path` and the folders above it, and syncs them to disk. On Unix, only their owner can access
/// them. Existing folders stay as they are.
pub fn private_parent(path: &Path) -> io::Result<()> {
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) else {
        return Ok(());
    };
    let missing: Vec<&Path> =
        folder.ancestors().take_while(|f| !f.as_os_str().is_empty() && !f.exists()).collect();
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)?;
    missing.into_iter().rev().try_for_each(sync_parent)
}

/// Syncs to disk that a file or folder was created, renamed or deleted. File systems without folders on a disk report that this
/// is not supported, which is not an error here.
pub(crate) fn sync_parent(path: &Path) -> io::Result<()> {
    use io::ErrorKind::{InvalidInput, Unsupported};
    match File::open(folder_of(path))?.sync_all() {
        Err(e) if matches!(e.kind(), InvalidInput | Unsupported) => Ok(()),
        done => done,
    }
}

/// Appends a line to a list and syncs it to disk. On failure takes back what was written, if possible, since a partial line
/// would remain forever. If the list is not locked, and its end shows that others have appended, nothing is taken back.
pub(crate) fn append_line(mut list: &File, line: &[u8]) -> io::Result<()> {
    let length = list.metadata()?.len();
    let written = list.write_all(line).and_then(|()| list.sync_all());
    let mut take_back = || {
        let now = list.metadata()?.len();
        // Bytes after the old end are ours if they are a prefix of the line, or all of it.
        let mut behind = Vec::new();
        if now.checked_sub(length).is_some_and(|more| more <= line.len() as u64) {
            list.seek(SeekFrom::Start(length))?;
            list.take(line.len() as u64 + 1).read_to_end(&mut behind)?;
            if line.starts_with(&behind) {
                list.set_len(length)?;
            }
        }
        io::Result::Ok(())
    };
    if written.is_err() {
        // The first error is the cause.
        let _ = take_back();
    }
    written
}

/// The separator before the check of a line of JSON.
pub(crate) const CHECK: &str = ",\"check\":\"";

/// Returns a line of JSON that ends with its check, made from an object; `None` if `object` does not end with a brace.
pub(crate) fn with_check(object: &str) -> Option<String> {
    let open = object.strip_suffix('}')?;
    Some(format!("{open}{CHECK}{}\"}}", check_of(open.as_bytes())))
}

/// A line of JSON read from disk.
pub(crate) enum Line {
    /// The line has no check.
    Unchecked,
    /// The check does not match the rest of the line.
    Wrong,
    /// The object without its check, which matches.
    Right(Vec<u8>),
}

/// Removes the check of a line that [`with_check`] made.
pub(crate) fn without_check(line: &[u8]) -> Line {
    let Some(at) = line.windows(CHECK.len()).rposition(|at| at == CHECK.as_bytes()) else {
        return Line::Unchecked;
    };
    let (before, check) = (&line[..at], line[at + CHECK.len()..].trim_ascii_end());
    match *check == *format!("{}\"}}", check_of(before)).as_bytes() {
        true => Line::Right([before, b"}"].concat()),
        false => Line::Wrong,
    }
}

/// Eight hexadecimal digits that detect whether a line of a list was changed on disk. They protect against accidents only:
/// anyone who can change the list can compute them.
pub(crate) fn check_of(line: &[u8]) -> String {
    blake3::Hasher::new_derive_key("veilset 2026-11 check of a line").update(line).finalize().to_hex()[..8]
        .into()
}

/// Creates a file in the folder of `path`, on Unix accessible to its owner only. It has a temporary name, and is deleted when
/// dropped unless it was renamed.
pub(crate) fn beside(path: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new().prefix(".veilset-").suffix(".part").tempfile_in(folder_of(path))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whether both are the same file, under any names.
#[cfg(unix)]
pub fn same_file(a: &Metadata, b: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

/// Whether both are the same file, as far as this system can determine.
#[cfg(not(unix))]
pub fn same_file(a: &Metadata, b: &Metadata) -> bool {
    let of = |m: &Metadata| (m.len(), m.created().ok(), m.modified().ok());
    of(a) == of(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_places_follow_the_environment() {
        use Folder::*;
        let place = |folder: Folder, own: Option<&'static str>, home: Option<&'static str>| {
            let variable = |name: &str| if name == "HOME" { home } else { own };
            folder.file_from("f", |name| variable(name).map(OsString::from))
        };
        assert_eq!(place(Configuration, Some("/c"), Some("/h")), Some("/c/veilset/f".into()));
        assert_eq!(place(Configuration, None, Some("/h")), Some("/h/.config/veilset/f".into()));
        assert_eq!(place(State, Some(""), Some("/h")), Some("/h/.local/state/veilset/f".into()));
        for nowhere in [(None, None), (Some("c"), Some(""))] {
            assert_eq!(place(State, nowhere.0, nowhere.1), None);
        }
        let e = State.none("the log", "`log`").to_string();
        assert!(e.contains("XDG_STATE_HOME") && e.contains("`log`"), "{e}");
    }

    #[test]
    fn a_file_system_that_keeps_no_folders_is_no_failure() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/file");
        private_parent(&path).unwrap();
        sync_parent(&path).unwrap();
        sync_parent(&folder.path().join("none/file")).unwrap_err();
        // A file system that reports this error.
        if cfg!(target_os = "linux") {
            File::open("/proc").unwrap().sync_all().unwrap_err();
            sync_parent(Path::new("/proc/self")).unwrap();
        }
    }

    #[test]
    fn one_file_has_several_names() {
        let folder = tempfile::tempdir().unwrap();
        let [a, b, c] = ["a", "b", "c"].map(|name| folder.path().join(name));
        std::fs::write(&a, "").unwrap();
        std::fs::hard_link(&a, &b).unwrap();
        std::fs::write(&c, "").unwrap();
        let [a, b, c] = [a, b, c].map(|path| path.metadata().unwrap());
        assert!(same_file(&a, &b) && !same_file(&a, &c));
    }
}
