//! The files and folders of a run, and how it uses each.
//!
//! All of them are in one list, [`PartySpec::paths`](crate::party::PartySpec::paths) plus the front end's own paths, so that
//! every check covers every pair: a path that is written is neither another path of the list nor in the folder of another.

use crate::error::{Error, Result};
use crate::places::same_file;
use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

/// Opens a regular file. Refuses pipes and devices, which might block the caller.
///
/// # Errors
/// The system's errors, and one for anything that is not a regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    match path.metadata()?.is_file() {
        true => File::open(path),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

/// How a run uses a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// The run reads the file, or all files in the folder.
    Read,
    /// The run creates the file, replaces it, appends to it, or deletes it once it is used up. `-` is standard output.
    Written,
    /// The folder of a job. The run creates it, takes an empty one, or goes on with the job in it, and deletes it once the job
    /// is complete. Nothing else may be in it.
    Folder,
}

/// The files and folders of a run.
#[derive(Debug, Default)]
pub struct Paths(Vec<Named>);

#[derive(Debug)]
struct Named {
    /// The name of the path in messages.
    what: &'static str,
    used: Use,
    path: PathBuf,
    /// The metadata of an existing file or folder.
    there: Option<Metadata>,
    /// The path with all links resolved.
    place: PathBuf,
}

impl Paths {
    /// Adds a path, if given, under a name for messages.
    #[must_use]
    pub fn with(mut self, what: &'static str, used: Use, path: Option<&Path>) -> Paths {
        if let Some(path) = path {
            let (there, place) = (path.metadata().ok(), place(path));
            self.0.push(Named { what, used, path: path.into(), there, place });
        }
        self
    }

    /// Adds the paths of another list.
    #[must_use]
    pub fn and(mut self, others: Paths) -> Paths {
        self.0.extend(others.0);
        self
    }

    /// Refuses a path that is written and is also another path, one that is written in a folder that is read, and any path in
    /// the folder of a job.
    ///
    /// # Errors
    /// [`Error::Usage`], which names both paths.
    pub fn check(&self) -> Result<()> {
        let (read, changed): (Vec<&Named>, Vec<&Named>) =
            self.0.iter().partition(|path| path.used == Use::Read);
        let pairs = || {
            changed
                .iter()
                .enumerate()
                .flat_map(|(i, two)| read.iter().chain(&changed[..i]).map(move |one| (*one, *two)))
        };
        pairs().try_for_each(|(one, two)| one.differs(two))?;
        pairs().try_for_each(|(one, two)| two.outside(one).and_then(|()| one.outside(two)))
    }
}

impl Named {
    /// Whether the path is standard output. For a path that is read, `-` is standard input or a file name.
    fn is_standard_output(&self) -> bool {
        self.used == Use::Written && self.path == Path::new("-")
    }

    fn differs(&self, other: &Named) -> Result<()> {
        let same = match (self.is_standard_output(), other.is_standard_output()) {
            (false, false) => self.is(other),
            (one, two) => one && two,
        };
        match same {
            true => Err(Error::usage(format!(
                "{} and {} are both {}. Give each its own file",
                self.what,
                other.what,
                other.path.display()
            ))),
            false => Ok(()),
        }
    }

    fn outside(&self, folder: &Named) -> Result<()> {
        let why = match folder.used {
            Use::Folder => "has no other files, and is deleted in the end",
            Use::Read if folder.there.as_ref().is_some_and(Metadata::is_dir) => "is read as the input",
            Use::Read | Use::Written => return Ok(()),
        };
        match !self.is_standard_output() && self.place.starts_with(&folder.place) {
            true => Err(Error::usage(format!(
                "{} would be in the folder {} ({}), which {why}. Give it another folder",
                self.what,
                folder.path.display(),
                folder.what,
            ))),
            false => Ok(()),
        }
    }

    /// Whether both paths name the same file, or will once it exists.
    fn is(&self, other: &Named) -> bool {
        match (&self.there, &other.there) {
            (Some(a), Some(b)) => same_file(a, b),
            _ => self.place == other.place,
        }
    }
}

/// The path with the links of its existing part resolved.
fn place(path: &Path) -> PathBuf {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.into());
    for there in whole.ancestors() {
        if let (Ok(real), Ok(rest)) = (there.canonicalize(), whole.strip_prefix(there)) {
            return if rest.as_os_str().is_empty() { real } else { real.join(rest) };
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::Use::{Folder, Read, Written};
    use super::*;

    /// The reason to refuse two paths, if they conflict.
    fn refused(one: (Use, &Path), two: (Use, &Path)) -> Option<String> {
        let paths = Paths::default().with("one", one.0, Some(one.1)).with("two", two.0, Some(two.1));
        paths.check().err().map(|e| {
            assert!(matches!(e, Error::Usage(_)));
            e.to_string()
        })
    }

    #[test]
    fn a_path_that_is_written_is_no_other_one() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("a"), "").unwrap();
        std::fs::hard_link(at("a"), at("hard")).unwrap();
        std::fs::write(at("b"), "").unwrap();
        std::fs::create_dir(at("empty")).unwrap();
        let mut same =
            vec![("a", "a"), ("a", "hard"), ("a", "./a"), ("a", "empty/../a"), ("new", "empty/../new")];
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(at("a"), at("link")).unwrap();
            std::os::unix::fs::symlink(folder.path(), at("here")).unwrap();
            same.extend([("a", "link"), ("link", "hard"), ("new", "here/new"), ("here/a", "a")]);
        }
        for (a, b) in same {
            for (one, two) in [(a, b), (b, a)] {
                let (one, two) = (at(one), at(two));
                assert_eq!(refused((Read, &one), (Read, &two)), None);
                for uses in [
                    (Written, Written),
                    (Read, Written),
                    (Written, Read),
                    (Folder, Written),
                    (Written, Folder),
                ] {
                    let said = refused((uses.0, &one), (uses.1, &two));
                    assert!(
                        said.is_some_and(|m| m.contains("one") && m.contains("two")),
                        "{one:?} {two:?} {uses:?}"
                    );
                }
            }
        }
        for (a, b) in [("a", "b"), ("a", "new"), ("new", "newer"), ("new", "empty/new"), ("none/a", "none/b")]
        {
            assert_eq!(refused((Written, &at(a)), (Written, &at(b))), None, "{a} {b}");
        }
        // Standard output can be used once; standard input does not conflict with it.
        let standard = Path::new("-");
        assert!(refused((Written, standard), (Written, standard)).is_some_and(|m| m.contains("are both -")));
        assert_eq!(refused((Read, standard), (Written, standard)), None);
        assert_eq!(refused((Written, standard), (Written, &at("-"))), None);
    }

    #[test]
    fn nothing_is_in_the_folder_of_another() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("parts")).unwrap();
        std::fs::write(at("parts/1"), "").unwrap();
        std::fs::create_dir(at("job")).unwrap();
        let mut cases = vec![
            (Read, "parts", Written, "parts/2", true),
            (Read, "parts", Written, "parts/deeper/2", true),
            (Read, "parts", Folder, "parts/job", true),
            (Read, "parts", Read, "parts/1", false),
            (Read, "parts", Written, "parts2", false),
            (Folder, "job", Written, "job/result", true),
            (Folder, "job", Read, "job/key", true),
            (Folder, "job", Written, "jobs", false),
            (Folder, "new", Written, "new/result", true),
            (Folder, "new", Written, "new/deeper/result", true),
            (Folder, "new", Read, "parts", false),
            (Folder, ".", Read, "parts", true),
        ];
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(at("job"), at("link")).unwrap();
            cases.extend([
                (Folder, "link", Written, "job/result", true),
                (Folder, "job", Written, "link/result", true),
            ]);
        }
        for (of_outer, outer, of_inner, inner, expected) in cases {
            let (one, two) = (at(outer), at(inner));
            let said =
                [refused((of_outer, &one), (of_inner, &two)), refused((of_inner, &two), (of_outer, &one))];
            for said in said {
                let told = said.as_ref().is_some_and(|m| m.contains("would be in the folder"));
                assert_eq!(told, expected, "{outer} {inner}: {said:?}");
                assert_eq!(said.is_some(), expected, "{outer} {inner}");
            }
        }
        assert_eq!(refused((Folder, &at("job")), (Written, Path::new("-"))), None);
    }
}
