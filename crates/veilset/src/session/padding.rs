//! Padding (KRTW19 2.5; DESIGN 2): a set is filled up with dummies to a size that was settled before, so that
//! the peer learns a bound instead of the size.
//!
//! Dummies are in a domain of their own ([`crate::item::is_dummy`]). Random ones match nothing. In union the
//! sender's are from a public list that the receiver inserts into its set: others would be delivered, and show
//! how many there are.

use super::run::Request;
use crate::error::{Error, Result};
use crate::item::{ItemSet, Items, LISTED_DUMMY, is_dummy};
use crate::operations::{Operation, Role};
use crate::params::MAX_SET;
use crate::rng::Prng;
use std::borrow::Cow;

/// What takes part in the protocol.
pub(super) struct Padded<'a> {
    pub(super) set: Cow<'a, ItemSet>,
    pub(super) values: Cow<'a, [i128]>,
    pub(super) payloads: Cow<'a, Items>,
    /// The size of the peer's set in the protocol.
    pub(super) theirs: usize,
}

/// Fills our set up; the peer's has `theirs` items, dummies among them if `they_pad`. Takes a copy of what it
/// fills up.
pub(super) fn pad<'a>(
    request: &Request<'a>,
    theirs: usize,
    they_pad: bool,
    rng: &mut Prng,
) -> Result<Padded<'a>> {
    let mut padded = Padded {
        set: Cow::Borrowed(request.set),
        values: Cow::Borrowed(request.values),
        payloads: Cow::Borrowed(request.payloads),
        theirs,
    };
    if request.pad_to.is_none() && !they_pad && !request.terms.both {
        return Ok(padded);
    }
    if request.set.iter().any(is_dummy) {
        return Err(Error::Usage("an item of ours begins like a dummy: it is no encoding of a key".into()));
    }
    let dummies = request.announced() - request.set.len();
    let union = request.operation == Operation::Union;
    if dummies > 0 {
        padded.set = Cow::Owned(match (union, request.role) {
            (true, Role::Sender) => request.set.with_listed_dummies(dummies as u32),
            _ => request.set.with_random_dummies(dummies, rng),
        });
        if request.operation == Operation::Sum && request.role == Role::Sender {
            padded.values.to_mut().resize(padded.set.len(), 0);
        }
        if !request.sent_columns.is_empty() && request.role == Role::Sender {
            (0..dummies).for_each(|_| padded.payloads.to_mut().push(&[]));
        }
    }
    if union && request.role == Role::Receiver && they_pad {
        padded.set = Cow::Owned(padded.set.with_listed_dummies(theirs as u32));
    }
    if union && request.role == Role::Sender && request.pad_to.is_some() {
        padded.theirs += request.announced();
    }
    Ok(padded)
}

/// Refuses to pad to less than there is, and rows that cannot hold a dummy.
pub(super) fn check(request: &Request) -> Result<()> {
    let Some(to) = request.pad_to else { return Ok(()) };
    let n = request.set.len();
    if to < n {
        return Err(Error::Usage(format!(
            "--pad-to {to} is less than our {n} items. Use a number that no set of yours exceeds"
        )));
    }
    if to > MAX_SET {
        return Err(Error::Usage(format!("--pad-to {to} is more than this version supports ({MAX_SET})")));
    }
    if request.operation == Operation::Union && request.terms.max_row < LISTED_DUMMY {
        return Err(Error::Usage(format!(
            "with --pad-to a row has at least {LISTED_DUMMY} bytes. Use a larger --max-row on both sides"
        )));
    }
    Ok(())
}
