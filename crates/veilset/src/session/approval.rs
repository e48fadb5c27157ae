//! Where our side is asked whether a run may take place: after both agreed on the terms and know the sizes,
//! before anything else about the data is said.

use super::{Fingerprint, Hello};
use crate::error::Result;

/// What both sides agreed on, to be allowed or refused.
#[derive(Debug, Clone)]
pub struct Proposal {
    /// All terms, as our side asked for them; the peer asked for the same.
    pub hello: Hello,
    /// Names this session.
    pub session_id: [u8; 32],
    /// The peer's fingerprint, proven; none without TLS.
    pub peer: Option<Fingerprint>,
    /// Number of items in our set, as the peer was told: padding included.
    pub our_size: usize,
    /// Number of items in the peer's set, or the bound it is padded to.
    pub their_size: usize,
    /// Whether it is padded.
    pub they_pad: bool,
}

/// Decides about a run. `()` allows everything.
pub trait Approval {
    /// Whether our side allows it. The peer waits for the answer. Best refused with
    /// [`Error::Refused`](crate::error::Error::Refused): of any error the peer is told the kind only.
    fn approve(&mut self, proposal: &Proposal) -> Result<()>;

    /// Both sides have allowed it; when this returns, messages about the data go out. An error still keeps ours
    /// from being sent. It is not called for a check.
    fn begins(&mut self, _: &Proposal) -> Result<()> {
        Ok(())
    }
}

impl Approval for () {
    fn approve(&mut self, _: &Proposal) -> Result<()> {
        Ok(())
    }
}
