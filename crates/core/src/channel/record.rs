//! Recordings of all frames that a party received, from which the party can be rerun alone.

use super::{Channel, Sink, Source};
use crate::error::{Error, Result};
use std::io::{Read, Write};
use std::time::Instant;

/// A recording of every frame that a party received.
pub struct Recording(Box<dyn Write + Send>);

impl Recording {
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

/// Returns a channel that receives the recorded frames and discards sent ones.
pub fn replay(recorded: impl Read + Send + 'static) -> Channel {
    Channel::from_halves(Box::new(Drain), Box::new(Replay(recorded)))
}

/// A sink that discards all frames.
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
