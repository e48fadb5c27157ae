//! The first message of a connection: the protocol version of each side.

use super::{Channel, Message, PROTOCOL_VERSION};
use crate::error::{Difference, Error, Fault, Result, Seat};

/// The first message of a connection. Its format is the same in all versions, so that any two can recognise each other.
pub const PREAMBLE: Message<[u8]> = Message::new(1, "preamble: magic, version");
const MAGIC: &[u8; 8] = b"veilset\0";

/// Exchanges the protocol versions, which must be equal.
pub fn versions(channel: &mut Channel) -> Result<()> {
    channel.tx.send_bytes(PREAMBLE, &preamble(PROTOCOL_VERSION))?;
    let theirs = channel.rx.recv_bytes(PREAMBLE, MAGIC.len() + 2)?;
    same_version(&theirs)
}

/// Returns the body of the first message in this version.
pub fn preamble(version: u16) -> Vec<u8> {
    [&MAGIC[..], &version.to_le_bytes()].concat()
}

fn same_version(theirs: &[u8]) -> Result<()> {
    let version = match theirs.strip_prefix(MAGIC) {
        Some(&[a, b]) => u16::from_le_bytes([a, b]),
        _ => {
            let what = "it is not veilset. Check the address and the port";
            return Err(Error::peer(Fault::Misbehaved, what));
        }
    };
    match version == PROTOCOL_VERSION {
        true => Ok(()),
        false => Err(Error::Disagreement(vec![Difference {
            who: Seat::PEER,
            term: "protocol_version",
            what: "version of the protocol (the older side needs a newer veilset)",
            ours: PROTOCOL_VERSION.to_string(),
            theirs: version.to_string(),
        }])),
    }
}
