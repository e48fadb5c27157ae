//! Recordings: what a party received, kept so that the party can be rerun alone.

use super::{Channel, Sink, Source};
use crate::error::{Error, Result};
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::time::Instant;

/// A recording of every frame that a party received, in memory or on disk.
pub struct Recording(Box<dyn Write + Send>);

impl Recording {
    /// Records into a new file.
    pub fn to_file(path: &Path) -> Result<Self> {
        let file = File::create(path)
            .map_err(|e| Error::output(format!("cannot record to {}: {e}", path.display())).because(&e))?;
        Ok(Recording(Box::new(BufWriter::with_capacity(1 << 18, file))))
    }

    /// Records into any writer.
    pub fn to_writer(writer: impl Write + Send + 'static) -> Self {
        Recording(Box::new(writer))
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.0
            .write_all(bytes)
            .map_err(|e| Error::output(format!("cannot write the recording: {e}")).because(&e))
    }
}

/// A channel that receives what was recorded in `path` and discards what is sent.
pub fn replay(path: &Path) -> Result<Channel> {
    let file = File::open(path).map_err(|e| {
        Error::output(format!("cannot open the recording {}: {e}", path.display())).because(&e)
    })?;
    Ok(replay_from(BufReader::with_capacity(1 << 18, file)))
}

/// A channel that receives what was recorded and discards what is sent.
pub fn replay_from(recorded: impl Read + Send + 'static) -> Channel {
    Channel::from_halves(Box::new(Drain), Box::new(Replay(recorded)))
}

/// Discards what is sent.
struct Drain;

impl Sink for Drain {
    fn send(&mut self, _: Vec<u8>) -> Result<()> {
        Ok(())
    }
}

struct Replay<R>(R);

impl<R: Read + Send> Source for Replay<R> {
    fn recv(&mut self, out: &mut [u8], _: Option<Instant>) -> Result<()> {
        self.0
            .read_exact(out)
            .map_err(|e| Error::network(format!("the recording ended early: {e}")).because(&e))
    }
}
