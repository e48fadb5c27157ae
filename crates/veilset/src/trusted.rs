//! Checks of files that decide whom we trust: whether another user of this machine can change them.
//!
//! A file that every user can change is refused, and so is one behind a link of another user. So is an identity, an address
//! book, a ledger or the default run file that belongs to another user. A policy or a list, for instance, may be written for us
//! by another user, so that causes a warning. A file that only a group can change, or a folder of another user, also causes a
//! warning, since this is often intended. Root is trusted, and so is a group whose number is the owner's: many systems give
//! each user such a group, and let it write the user's files.

use crate::error::{Error, Result};
use std::fs::{File, Metadata};
use std::path::Path;

/// The expected owner of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// Only we write the file, or it is the default run file, which nobody named. A file of another user is refused.
    Ours,
    /// Another user may write the file for us, which causes a warning.
    Given,
}

/// Refuses a file that others can change, called `what` in messages, or returns a warning about it. The open file is checked,
/// as well as the path to its name, since the name may have belonged to another file meanwhile. A device itself passes, and so
/// do a pipe or socket that was handed to this process, and every file on a system without file modes.
///
/// # Errors
/// [`Error::Usage`], which says who can change the file, and how to mend this; also for a file that cannot be examined.
pub fn check(what: &str, path: &Path, whose: Whose, file: &File) -> Result<Option<String>> {
    let opened = file.metadata().map_err(|e| {
        Error::usage(format!("{what} {} cannot be examined: {e}. Name another file", path.display()))
            .because(&e)
    })?;
    of(what, path, whose, Some(&opened))
}

/// Checks the file at `path`, or the place for one to be created, as [`check`] does.
///
/// # Errors
/// [`Error::Usage`], which says who can change the file, and how to mend this.
pub fn check_place(what: &str, path: &Path, whose: Whose) -> Result<Option<String>> {
    of(what, path, whose, None)
}

#[cfg(unix)]
fn of(what: &str, path: &Path, whose: Whose, opened: Option<&Metadata>) -> Result<Option<String>> {
    let user = rustix::process::geteuid().as_raw();
    unix::Place { what, path, own: whose == Whose::Ours, user, opened, warning: None }.check()
}

#[cfg(not(unix))]
fn of(_: &str, _: &Path, _: Whose, _: Option<&Metadata>) -> Result<Option<String>> {
    Ok(None)
}

#[cfg(unix)]
mod unix {
    use super::*;
    use std::collections::VecDeque;
    use std::ffi::OsString;
    use std::io;
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    use std::path::{Component, PathBuf};

    /// The limit on links, the same as in Linux.
    const MOST_LINKS: usize = 40;
    const ROOT: u32 = 0;
    const STICKY: u32 = 0o1000;
    const BY_ALL: u32 = 0o002;
    const BY_GROUP: u32 = 0o020;

    /// A file to check, and for which user.
    pub(super) struct Place<'a> {
        pub(super) what: &'a str,
        pub(super) path: &'a Path,
        /// Whether a file of another user is refused.
        pub(super) own: bool,
        /// The user who runs this process.
        pub(super) user: u32,
        /// The metadata of the opened file, if any.
        pub(super) opened: Option<&'a Metadata>,
        /// The first warning.
        pub(super) warning: Option<String>,
    }

    impl Place<'_> {
        /// Checks all folders and links on the path to the file, and the file.
        pub(super) fn check(mut self) -> Result<Option<String>> {
            let Ok(whole) = std::path::absolute(self.path) else { return Ok(None) };
            // If metadata cannot be read, opening the file reports the error.
            self.walk(&whole).unwrap_or(Ok(()))?;
            self.opened.map_or(Ok(()), |opened| self.file(opened))?;
            Ok(self.warning)
        }

        fn walk(&mut self, whole: &Path) -> io::Result<Result<()>> {
            let parts = |path: &Path| {
                path.components().map(|part| part.as_os_str().to_owned()).collect::<Vec<OsString>>()
            };
            let (mut at, mut rest, mut links) = (PathBuf::new(), VecDeque::from(parts(whole)), 0);
            while let Some(part) = rest.pop_front() {
                // The parent of a folder that was already checked.
                if Path::new(&part).components().next() == Some(Component::ParentDir) {
                    at.pop();
                    continue;
                }
                let next = at.join(&part);
                let there = next.symlink_metadata()?;
                let checked = if there.is_symlink() {
                    links += 1;
                    if links > MOST_LINKS {
                        return Err(io::Error::other("too many links"));
                    }
                    let target = next.read_link()?;
                    if is_descriptor(&next, &target) {
                        self.opened = None;
                        return Ok(Ok(()));
                    }
                    parts(&target).into_iter().rev().for_each(|part| rest.push_front(part));
                    self.link(&next, &there)
                } else {
                    at = next;
                    if there.is_dir() && !rest.is_empty() {
                        self.folder(&at, &there)
                    } else {
                        self.file(&there)
                    }
                };
                if checked.is_err() {
                    return Ok(checked);
                }
            }
            Ok(Ok(()))
        }

        fn is_ours(&self, there: &Metadata) -> bool {
            [ROOT, self.user].contains(&there.uid())
        }

        fn link(&self, at: &Path, there: &Metadata) -> Result<()> {
            match self.is_ours(there) {
                true => Ok(()),
                false => self.refuse(format!(
                    "is reached through the link {}, which belongs to another user ({}). Name the file itself",
                    at.display(),
                    there.uid()
                )),
            }
        }

        /// In a folder with the sticky bit, users cannot replace files of others.
        fn folder(&mut self, at: &Path, there: &Metadata) -> Result<()> {
            let (shown, mode) = (at.display(), there.mode());
            let sticky = mode & STICKY != 0;
            if mode & BY_ALL != 0 && !sticky {
                return self.refuse(format!(
                    "is in the folder {shown}, where every user can replace it (mode {}). Move it to a folder of your own, or \
                     run `chmod o-w {shown}`, and check the contents of the file",
                    octal(mode)
                ));
            }
            if !self.is_ours(there) {
                self.warn(format!(
                    "is in the folder {shown}, whose owner ({}) can replace it. If that is not intended, move it to a folder \
                     of your own",
                    there.uid()
                ));
            } else if !sticky && by_others_of_group(there) {
                self.warn(format!(
                    "is in the folder {shown}, where the members of a group ({}) can replace it. If that is not intended, run \
                     `chmod g-w {shown}`",
                    there.gid()
                ));
            }
            Ok(())
        }

        fn file(&mut self, there: &Metadata) -> Result<()> {
            let (shown, mode) = (self.path.display(), there.mode());
            // A device, such as a terminal, is the responsibility of the user who names it.
            let kind = there.file_type();
            if kind.is_char_device() || kind.is_block_device() {
                return Ok(());
            }
            if !self.is_ours(there) {
                let why = format!(
                    "belongs to another user ({}), who can change it. If that is not intended, check its contents and use \
                     a copy of your own",
                    there.uid()
                );
                if self.own {
                    return self.refuse(why);
                }
                self.warn(why);
            }
            if mode & BY_ALL != 0 {
                return self.refuse(format!(
                    "can be changed by every user (mode {}). Check its contents, then run `chmod o-w {shown}`",
                    octal(mode)
                ));
            }
            if by_others_of_group(there) {
                self.warn(format!(
                    "can be changed by the members of a group ({}, mode {}). If that is not intended, run `chmod g-w {shown}`",
                    there.gid(),
                    octal(mode)
                ));
            }
            Ok(())
        }

        fn refuse(&self, why: String) -> Result<()> {
            Err(Error::usage(format!("{} {} {why}", self.what, self.path.display())))
        }

        fn warn(&mut self, why: String) {
            let (what, path) = (self.what, self.path.display());
            self.warning.get_or_insert_with(|| format!("{what} {path} {why}"));
        }
    }

    /// Whether a link leads to an unnamed pipe or socket that was handed to this process, such as the one that the shell makes
    /// for `<(...)`.
    fn is_descriptor(link: &Path, target: &Path) -> bool {
        link.starts_with("/proc") && target.as_os_str().as_encoded_bytes().windows(2).any(|two| two == b":[")
    }

    /// Whether a group other than the owner's own can change the file.
    fn by_others_of_group(there: &Metadata) -> bool {
        there.mode() & BY_GROUP != 0 && there.gid() != there.uid()
    }

    fn octal(mode: u32) -> String {
        format!("{:04o}", mode & 0o7777)
    }
}

#[cfg(test)]
#[path = "trusted_tests.rs"]
mod tests;
