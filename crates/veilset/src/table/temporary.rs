//! The file of a result until it is complete.
//!
//! On Linux it has no name: whatever ends the process (SIGKILL, an abort, lack of memory), the kernel removes it.
//! There are two exceptions. A link is tried when the file is made, and a file that replaces another has a temporary
//! name before it is renamed. Other systems, file systems without `O_TMPFILE` (NFS) and systems without `/proc` use a
//! temporary name, which [`remove_unfinished`] knows.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tempfile::{Builder, TempPath};

/// Removes the temporary files of all incomplete results: for a program about to exit without dropping its values.
/// Files without a name need no such help.
pub fn remove_unfinished() {
    for name in names().drain(..) {
        // It may be gone, or under its final name.
        let _ = std::fs::remove_file(name);
    }
}

/// The temporary names that exist.
fn names() -> MutexGuard<'static, Vec<PathBuf>> {
    static NAMES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    NAMES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file that gets its name when it is complete. Dropped before that, it is gone.
#[derive(Debug)]
pub(super) struct Temporary {
    pub(super) file: File,
    name: Option<Name>,
}

/// Why a file did not get its name, and where it is if it was kept.
#[derive(Debug)]
pub(super) struct NotPlaced {
    pub(super) cause: io::Error,
    pub(super) kept: Option<PathBuf>,
}

impl Temporary {
    /// Without a name where the system can do that.
    pub(super) fn create(directory: &Path) -> io::Result<Temporary> {
        match unnamed::create(directory) {
            Some(file) => Ok(Temporary { file, name: None }),
            None => Temporary::with_name(directory),
        }
    }

    fn with_name(directory: &Path) -> io::Result<Temporary> {
        let (file, path) = builder().tempfile_in(directory)?.into_parts();
        Ok(Temporary { file, name: Some(Name::of(path)) })
    }

    /// Gives the file its name, in the directory in which it was made. If the name is taken and must not be replaced,
    /// the file is kept under another one.
    pub(super) fn place(self, directory: &Path, path: &Path, replace: bool) -> Result<(), NotPlaced> {
        let lost = |cause| NotPlaced { cause, kept: None };
        let name = match self.name {
            Some(name) => name,
            None => {
                if !replace && unnamed::link(&self.file, path).is_ok() {
                    return Ok(());
                }
                // A link never replaces a file, a rename does.
                Name::link(&self.file, directory).map_err(lost)?
            }
        };
        name.take_name(path, replace)
    }
}

fn builder() -> Builder<'static, 'static> {
    let mut builder = Builder::new();
    builder.prefix(".veilset-").suffix(".part");
    builder
}

/// A temporary name, known to [`remove_unfinished`] as long as it exists.
#[derive(Debug)]
struct Name(Option<TempPath>);

impl Name {
    fn of(path: TempPath) -> Name {
        names().push(path.to_path_buf());
        Name(Some(path))
    }

    /// Gives a temporary name to a file that has none.
    fn link(file: &File, directory: &Path) -> io::Result<Name> {
        let linked = builder().make_in(directory, |name| {
            // Registered before the file exists, so that it never exists unregistered.
            names().push(name.into());
            unnamed::link(file, name).inspect_err(|_| forget(name))
        });
        Ok(Name(Some(linked?.into_temp_path())))
    }

    fn take_name(mut self, path: &Path, replace: bool) -> Result<(), NotPlaced> {
        // It is `None` only after this function or drop, and both consume it.
        let Some(name) = self.0.take() else { return Ok(()) };
        let temporary = name.to_path_buf();
        let renamed = if replace { name.persist(path) } else { name.persist_noclobber(path) };
        forget(&temporary);
        renamed.map_err(|e| match e.path.keep() {
            Ok(kept) => NotPlaced { cause: e.error, kept: Some(kept) },
            Err(not_kept) => NotPlaced { cause: not_kept.error, kept: None },
        })
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        if let Some(path) = self.0.take() {
            let name = path.to_path_buf();
            drop(path);
            forget(&name);
        }
    }
}

fn forget(name: &Path) {
    names().retain(|other| other != name);
}

#[cfg(target_os = "linux")]
mod unnamed {
    use super::Name;
    use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd;
    use std::path::Path;

    /// A file in this directory without a name that can be given one; `None` if the system cannot do that here.
    pub(super) fn create(directory: &Path) -> Option<File> {
        let open = || {
            let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
            open(directory, flags, Mode::RUSR | Mode::WUSR).map(File::from)
        };
        // Some file systems make such a file and cannot name it. A complete result must not be lost to one.
        let tried = open().ok()?;
        Name::link(&tried, directory).ok()?;
        open().ok()
    }

    pub(super) fn link(file: &File, name: &Path) -> io::Result<()> {
        let open = format!("/proc/self/fd/{}", file.as_raw_fd());
        Ok(linkat(CWD, open, CWD, name, AtFlags::SYMLINK_FOLLOW)?)
    }
}

#[cfg(not(target_os = "linux"))]
mod unnamed {
    use std::fs::File;
    use std::io;
    use std::path::Path;

    pub(super) fn create(_: &Path) -> Option<File> {
        None
    }

    pub(super) fn link(_: &File, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;

    fn count(directory: &Path) -> usize {
        fs::read_dir(directory).unwrap().count()
    }

    /// Both kinds, whatever the file system of the tests can do.
    fn kinds(directory: &Path) -> [Temporary; 2] {
        [Temporary::create(directory).unwrap(), Temporary::with_name(directory).unwrap()]
    }

    #[test]
    fn a_file_is_placed_or_kept_or_replaces_another() {
        for kind in [0, 1] {
            let dir = tempfile::tempdir().unwrap();
            let make = || {
                let [a, b] = kinds(dir.path());
                let mut file = if kind == 0 { a } else { b };
                file.file.write_all(b"new").unwrap();
                file
            };
            let path = dir.path().join("out");
            make().place(dir.path(), &path, false).unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"new");
            fs::write(&path, "old").unwrap();
            let kept = make().place(dir.path(), &path, false).unwrap_err();
            assert_eq!(kept.cause.kind(), io::ErrorKind::AlreadyExists);
            let kept = kept.kept.unwrap();
            assert_eq!((fs::read(&path).unwrap(), fs::read(&kept).unwrap()), (b"old".into(), b"new".into()));
            fs::remove_file(kept).unwrap();
            make().place(dir.path(), &path, true).unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"new");
            drop(make());
            assert_eq!(count(dir.path()), 1);
        }
    }

    #[cfg(unix)]
    #[test]
    fn both_kinds_are_their_owners() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        for file in kinds(dir.path()) {
            assert_eq!(file.file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn on_linux_nothing_has_a_name_before_it_is_complete() {
        let dir = tempfile::tempdir().unwrap();
        let file = Temporary::create(dir.path()).unwrap();
        // A file system that cannot do it would make this test say nothing.
        assert!(file.name.is_none());
        assert_eq!(count(dir.path()), 0);
    }

    #[test]
    fn names_of_unfinished_files_are_removed_on_request_and_others_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        Temporary::with_name(dir.path()).unwrap().place(dir.path(), &path, false).unwrap();
        let [_unnamed, _named] = kinds(dir.path());
        assert_eq!(count(dir.path()), 2);
        // As `remove_unfinished`, but not of the other tests' files.
        let ours: Vec<_> = names().iter().filter(|name| name.starts_with(dir.path())).cloned().collect();
        assert_eq!(ours.len(), 1);
        ours.iter().for_each(|name| fs::remove_file(name).unwrap());
        assert_eq!(count(dir.path()), 1);
    }
}
