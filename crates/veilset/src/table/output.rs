//! Where a result goes: a file that appears complete or not at all, or standard output.

use crate::error::{Error, Result};
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Bytes written at a time.
const BUFFER: usize = 1 << 16;

/// The destination of a result.
///
/// A file is written under a temporary name in the same directory and renamed by [`Output::commit`], so
/// there is never a partial one. It is readable by its owner only, because the result is confidential.
/// Dropping an output without committing it removes the temporary file. (A process killed outright leaves
/// a `.veilset-*.part` file behind.) What goes to standard output is written as it comes; rows are
/// written only after the protocol has ended.
#[derive(Debug)]
pub struct Output {
    sink: BufWriter<Sink>,
    /// What is written, for messages.
    what: &'static str,
    path: PathBuf,
    force: bool,
}

impl Output {
    /// Opens the destination, before anything is sent to a peer: what would keep the result from being
    /// written is best known now. `what` is "result", say, in messages. `None` and `-` are standard output. An
    /// existing file is replaced only with `force`, and only if it is a regular file.
    pub fn create(what: &'static str, path: Option<&Path>, force: bool) -> Result<Output> {
        let (sink, path) = match path {
            Some(path) if path != Path::new("-") => (Sink::File(temporary(path, force)?), path),
            _ => (Sink::Stdout(io::stdout()), Path::new("-")),
        };
        Ok(Output { sink: BufWriter::with_capacity(BUFFER, sink), what, path: path.into(), force })
    }

    /// Where to write. Buffered.
    pub fn writer(&mut self) -> &mut (dyn Write + Send) {
        &mut self.sink
    }

    /// What could not be written, and the next step.
    pub fn unwritable(&self, e: &io::Error) -> Error {
        unwritable(self.what, e)
    }

    /// Writes what is buffered and makes the file appear under its name.
    ///
    /// If another file took that name meanwhile it is not overwritten without `force`; the result is then
    /// kept under the name in the message, for it is complete and another run would cost the peer's time.
    pub fn commit(mut self) -> Result<()> {
        self.sink.flush().map_err(|e| unwritable(self.what, &e))?;
        let Sink::File(file) = std::mem::replace(self.sink.get_mut(), Sink::Closed) else {
            return Ok(());
        };
        file.as_file().sync_all().map_err(|e| unwritable(self.what, &e))?;
        let renamed = if self.force { file.persist(&self.path) } else { file.persist_noclobber(&self.path) };
        if let Err(e) = renamed {
            let cause = e.error;
            let (_, kept) = e.file.keep().map_err(|e| unwritable(self.what, &e.error))?;
            return Err(Error::Output(format!(
                "the {} is complete but could not be renamed to {}: {cause}. It is in {}; move it by hand",
                self.what,
                self.path.display(),
                kept.display()
            )));
        }
        // The file is in place; that its name survives a power failure too is not worth failing for.
        let _ = fs::File::open(directory(&self.path)).and_then(|d| d.sync_all());
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // What is still buffered goes nowhere, and a temporary file is removed.
        *self.sink.get_mut() = Sink::Closed;
    }
}

#[derive(Debug)]
enum Sink {
    Stdout(io::Stdout),
    File(NamedTempFile),
    /// Nothing more is written.
    Closed,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Sink::Stdout(out) => out.write(bytes),
            Sink::File(file) => file.write(bytes),
            Sink::Closed => Ok(bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Sink::Stdout(out) => out.flush(),
            Sink::File(file) => file.flush(),
            Sink::Closed => Ok(()),
        }
    }
}

/// The temporary file for a path that may be written.
fn temporary(path: &Path, force: bool) -> Result<NamedTempFile> {
    let refuse = |what: &str, next: &str| Err(Error::Output(format!("{} {what}; {next}", path.display())));
    if path.file_name().is_none() {
        return refuse("does not name a file", "give a file name");
    }
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => return refuse("is a directory", "give the name of a file in it"),
        Ok(found) if !found.is_file() => {
            return refuse("exists and is not a regular file", "choose another name");
        }
        Ok(_) if !force => {
            return refuse("exists", "choose another name, or overwrite it with --force");
        }
        // That it cannot be looked at, opening the temporary file will tell.
        Ok(_) | Err(_) => {}
    }
    let directory = directory(path);
    tempfile::Builder::new().prefix(".veilset-").suffix(".part").tempfile_in(directory).map_err(|e| {
        // The message of the library names the temporary file, which means nothing to the user.
        let cause = e.raw_os_error().map_or_else(|| e.to_string(), |c| io::Error::from_raw_os_error(c).to_string());
        Error::Output(format!(
            "{} cannot be written: no file can be created in {}: {cause}; check that the directory exists and \
             may be written, or choose another place",
            path.display(),
            directory.display()
        ))
    })
}

/// The directory that a path is in.
fn directory(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The result, or whatever it is, could not be written.
pub(crate) fn unwritable(what: &str, e: &io::Error) -> Error {
    let next = match e.kind() {
        io::ErrorKind::BrokenPipe => "the program that reads it stopped early; run again, with --output FILE",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "make room and run again",
        _ => "check the destination and run again",
    };
    Error::Output(format!("the {what} could not be written: {e}; {next}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_appears_on_commit_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.csv");
        let mut output = Output::create("result", Some(&path), false).unwrap();
        output.writer().write_all(b"id\n1\n").unwrap();
        assert!(!path.exists());
        output.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"id\n1\n");
        assert_eq!(names(dir.path()), ["out.csv"]);
    }

    #[test]
    fn an_output_that_is_dropped_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let mut output = Output::create("result", Some(&dir.path().join("out.csv")), false).unwrap();
        output.writer().write_all(&[b'x'; 3 * BUFFER + 1]).unwrap();
        assert_eq!(names(dir.path()).len(), 1);
        drop(output);
        assert!(names(dir.path()).is_empty());
    }

    #[test]
    fn an_existing_file_is_refused_without_force_and_replaced_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.csv");
        fs::write(&path, "old").unwrap();
        let message = Output::create("result", Some(&path), false).unwrap_err().to_string();
        assert!(message.contains("out.csv exists") && message.contains("--force"), "{message}");
        let mut output = Output::create("result", Some(&path), true).unwrap();
        output.writer().write_all(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        output.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(dir.path()), ["out.csv"]);
    }

    #[test]
    fn a_file_that_appears_meanwhile_is_not_overwritten_and_the_result_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.csv");
        let mut output = Output::create("result", Some(&path), false).unwrap();
        output.writer().write_all(b"result").unwrap();
        fs::write(&path, "theirs").unwrap();
        let message = output.commit().unwrap_err().to_string();
        assert_eq!(fs::read(&path).unwrap(), b"theirs");
        let kept = names(dir.path()).into_iter().find(|n| n.starts_with(".veilset-")).unwrap();
        assert_eq!(fs::read(dir.path().join(&kept)).unwrap(), b"result");
        assert!(message.contains(&kept) && message.contains("out.csv"), "{message}");
    }

    #[test]
    fn what_cannot_be_written_is_known_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        // (path, force, what the message says)
        let mut cases = vec![
            (dir.path().join("nowhere/out.csv"), false, "check that the directory exists"),
            (file.join("out.csv"), false, "check that the directory exists"),
            (dir.path().into(), true, "is a directory"),
            (dir.path().join(".."), true, "does not name a file"),
        ];
        if cfg!(unix) {
            let link = dir.path().join("link");
            #[cfg(unix)]
            std::os::unix::fs::symlink(&file, &link).unwrap();
            cases.push((link, true, "not a regular file"));
            cases.push(("/dev/null".into(), true, "not a regular file"));
        }
        let before = names(dir.path());
        for (path, force, expected) in cases {
            let error = Output::create("result", Some(&path), force).unwrap_err();
            let message = error.to_string();
            assert!(matches!(error, Error::Output(_)), "{message}");
            assert!(message.contains(expected), "{message}");
            assert!(message.contains(&path.display().to_string()), "{message}");
        }
        assert_eq!(names(dir.path()), before);
    }

    #[test]
    fn without_a_path_the_result_goes_to_standard_output() {
        for path in [None, Some(Path::new("-"))] {
            let mut output = Output::create("result", path, false).unwrap();
            output.writer().write_all(b"").unwrap();
            output.commit().unwrap();
        }
        // Nothing of this is printed.
        Output::create("result", None, false).unwrap().writer().write_all(b"discarded").unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_result_is_readable_by_its_owner_only() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.csv");
        Output::create("result", Some(&path), false).unwrap().commit().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_broken_pipe_is_an_output_error() {
        let e = unwritable("result", &io::ErrorKind::BrokenPipe.into());
        assert!(matches!(&e, Error::Output(m) if m.contains("stopped early")), "{e}");
    }
}
