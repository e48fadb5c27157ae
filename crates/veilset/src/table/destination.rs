//! Where a result goes: a file that appears complete or not at all, or standard output.

use super::temporary::Temporary;
use super::terminal::Escaped;
use crate::error::{Error, Result};
use crate::spelling::setting;
use std::fmt;
use std::fs;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Bytes written at a time.
const BUFFER: usize = 1 << 16;

/// The destination of a result.
///
/// [`Destination::commit`] gives a file its name when it is complete, so a partial file never appears. Until then it has
/// no name, or a temporary one where the system offers nothing better; see [`super::remove_unfinished`]. Only its
/// owner can read it, because the result is confidential. An output that is dropped before the commit removes its
/// file.
///
/// What goes to standard output is written as it comes; rows are written only after the protocol has ended. On a
/// terminal, control characters are escaped: the peer's cells must not be able to command it.
pub struct Destination {
    sink: BufWriter<Sink>,
    /// What is written, for messages.
    what: &'static str,
    path: PathBuf,
    force: bool,
}

impl Destination {
    /// Opens the destination before anything is sent to a peer: a result that cannot be written is an error now.
    /// Messages call it `what`, for example "result". `None` and `-` are standard output. An existing file is
    /// replaced only with `force`, and only if it is a regular file.
    pub fn create(what: &'static str, path: Option<&Path>, force: bool) -> Result<Destination> {
        let (to, path) = match path {
            Some(path) if path != Path::new("-") => (To::File(temporary(path, force)?), path),
            _ => (To::Stream(standard_output().map_err(|e| unwritable(what, &e))?), Path::new("-")),
        };
        let sink = Sink { to, step: None };
        Ok(Destination { sink: BufWriter::with_capacity(BUFFER, sink), what, path: path.into(), force })
    }

    /// Refuses a name that [`Destination::create`] would refuse, and makes no file: for a caller that has much to do
    /// before it opens the destination.
    pub fn check(path: Option<&Path>, force: bool) -> Result<()> {
        path.filter(|path| *path != Path::new("-")).map_or(Ok(()), |path| check_name(path, force))
    }

    /// Calls `step` before every 64 KiB written and before the file gets its name. An error from it ends the writing.
    #[must_use]
    pub fn watched(mut self, step: impl Fn() -> Result<()> + Send + 'static) -> Self {
        self.sink.get_mut().step = Some(Box::new(step));
        self
    }

    /// Where to write. Buffered.
    pub fn writer(&mut self) -> &mut (dyn Write + Send) {
        &mut self.sink
    }

    /// The error for what could not be written, with the next step.
    pub fn unwritable(&self, e: &io::Error) -> Error {
        unwritable(self.what, e)
    }

    /// Writes what is buffered and gives the file its name.
    ///
    /// If another file has taken that name meanwhile, it is overwritten only with `force`. Otherwise the result is
    /// kept under the name in the message: it is complete, and another run would cost the peer's time.
    pub fn commit(self) -> Result<()> {
        self.commit_telling(|| {})
    }

    /// Like [`Destination::commit`], but calls `there` as soon as the file has its name or the stream all bytes. It may
    /// then still wait for the disk.
    pub fn commit_telling(mut self, there: impl FnOnce()) -> Result<()> {
        self.sink.flush().map_err(|e| unwritable(self.what, &e))?;
        let sink = self.sink.get_mut();
        let To::File(file) = std::mem::replace(&mut sink.to, To::Nowhere) else {
            there();
            return Ok(());
        };
        file.file.sync_all().map_err(|e| unwritable(self.what, &e))?;
        sink.step()?;
        let directory = directory(&self.path);
        if let Err(e) = file.place(directory, &self.path, self.force) {
            let (what, path, cause) = (self.what, self.path.display(), e.cause);
            return Err(Error::output(match e.kept {
                Some(kept) => format!(
                    "the {what} is complete but could not be renamed to {path}: {cause}. It is in {}; move it by hand",
                    kept.display()
                ),
                None => format!(
                    "the {what} could not be saved as {path}: {cause}; check the destination and run again"
                ),
            })
            .because(&cause));
        }
        there();
        // The file is in place. Whether its name survives a power failure is not worth failing for.
        let _ = fs::File::open(directory).and_then(|d| d.sync_all());
        Ok(())
    }
}

impl Drop for Destination {
    fn drop(&mut self) {
        // What is still buffered is dropped, and an incomplete file is removed.
        self.sink.get_mut().to = To::Nowhere;
    }
}

impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Destination")
            .field("what", &self.what)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

struct Sink {
    to: To,
    step: Option<Box<dyn Fn() -> Result<()> + Send>>,
}

enum To {
    Stream(Box<dyn Write + Send>),
    File(Temporary),
    /// Nothing more is written.
    Nowhere,
}

impl Sink {
    fn step(&self) -> Result<()> {
        self.step.as_ref().map_or(Ok(()), |step| step())
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if matches!(self.to, To::Nowhere) {
            return Ok(bytes.len());
        }
        self.step().map_err(io::Error::other)?;
        // The caller may have more than the buffer holds.
        let bytes = &bytes[..bytes.len().min(BUFFER)];
        match &mut self.to {
            To::Stream(out) => out.write(bytes),
            To::File(file) => file.file.write(bytes),
            To::Nowhere => Ok(bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.to {
            To::Stream(out) => out.flush(),
            To::File(file) => file.file.flush(),
            To::Nowhere => Ok(()),
        }
    }
}

/// Standard output; control characters are escaped if it is a terminal.
fn standard_output() -> io::Result<Box<dyn Write + Send>> {
    let out = unbuffered_output()?;
    Ok(if io::stdout().is_terminal() { Box::new(Escaped::new(out)) } else { Box::new(out) })
}

/// Without the buffer of `io::stdout`, which is flushed when the process exits: a run stopped by a signal would wait
/// for the reader again.
#[cfg(unix)]
fn unbuffered_output() -> io::Result<fs::File> {
    use std::os::fd::AsFd;
    Ok(io::stdout().as_fd().try_clone_to_owned()?.into())
}

#[cfg(not(unix))]
fn unbuffered_output() -> io::Result<io::Stdout> {
    Ok(io::stdout())
}

/// Refuses a name that a result cannot have.
fn check_name(path: &Path, force: bool) -> Result<()> {
    let refuse = |what: &str, next: &str| Err(Error::output(format!("{} {what}; {next}", path.display())));
    if path.file_name().is_none() {
        return refuse("does not name a file", "give a file name");
    }
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => refuse("is a directory", "give the name of a file in it"),
        Ok(found) if !found.is_file() => refuse("exists and is not a regular file", "choose another name"),
        Ok(_) if !force => {
            refuse("exists", concat!("choose another name, or overwrite it with ", setting!(force)))
        }
        // If its metadata cannot be read, opening the file in its directory says why.
        Ok(_) | Err(_) => Ok(()),
    }
}

/// The file for a path that may be written.
fn temporary(path: &Path, force: bool) -> Result<Temporary> {
    check_name(path, force)?;
    let directory = directory(path);
    Temporary::create(directory).map_err(|e| {
        // The library's message names the temporary file, which means nothing to the user.
        let cause = e.raw_os_error().map_or_else(|| e.to_string(), |c| io::Error::from_raw_os_error(c).to_string());
        Error::output(format!(
            "{} cannot be written: no file can be created in {}: {cause}; check that the directory exists and \
             can be written to, or choose another place",
            path.display(),
            directory.display()
        ))
        .because(&e)
    })
}

/// The directory that a path is in.
fn directory(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The error for a result, or another `what`, that could not be written.
pub(crate) fn unwritable(what: &str, e: &io::Error) -> Error {
    if let Some(ours) = Error::carried_by(e) {
        return ours;
    }
    let next = match e.kind() {
        io::ErrorKind::BrokenPipe => {
            concat!("the program that reads it stopped early; run again, with ", setting!(output, "FILE"))
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free disk space and run again",
        io::ErrorKind::FileTooLarge => "raise the file size limit (ulimit -f) and run again",
        _ => "check the destination and run again",
    };
    Error::output(format!("the {what} could not be written: {e}; {next}")).because(e)
}

#[cfg(test)]
#[path = "destination_tests.rs"]
mod tests;
