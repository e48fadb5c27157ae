//! Intersection from an OPRF (CM20, Figure 3, step 3; any multi-point OPRF will do). S sends F(x) for each of
//! its items. R has F(y) for its own items, and finds the values in common.
//!
//! Security and assumptions: the OPRF's. Leakage: |X| to R, |Y| to S, the matches to R. Cost in addition to the OPRF: tags of
//! (40 + log2 |X| |Y|) bits for X, or (104 + log2 |Y|) bits against a malicious sender. With payload, tags of at least 128
//! bits and one row per x.
//!
//! A malicious sender can choose its set after it has seen R's message, which reveals nothing about Y. It can
//! also send fewer items than it announced, and any payloads.
//!
//! Departures from CM20: S sends exactly |X| tags and sorts them; otherwise their order would reveal the order of X. With
//! payload, tags and row keys are domain-separated hashes of the values, because R sees the tag of every x.

use super::Matching;
use super::tags::{self, Coding, LONGEST, Tags};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::hash::{Domain, SessionId};
use crate::hashed::HashedSet;
use crate::item::Items;
use crate::operations::{Sealed, Terms};
use crate::oprf::{Oprf, Output};
use crate::ot::Pad;
use crate::params::matrix;
use crate::secret::Secrets;
use rayon::prelude::*;

/// Returns the encoding of the tags. False matches of tags are the only kind of undetected error. With payload, no two tags
/// of X may be equal.
pub(crate) fn coding(terms: &Terms, n_x: usize, n_y: usize) -> Result<Coding> {
    let bits = matrix::tag_bits(terms.exponent(), n_x, n_y, terms.malicious_sender);
    match bits <= LONGEST {
        true => Ok(Coding::new(if terms.payload { bits.max(128) } else { bits }, n_x)),
        false => Err(Error::usage(format!("{n_x} and {n_y} items need tags of more than {LONGEST} bits"))),
    }
}

/// The number of values whose tags are hashed at once: 8 KiB.
const BATCH: usize = 1 << 8;

/// Returns the tags of the values. A tag is a prefix of the value or, with payload, of its hash, since the key of the row is
/// derived from the value too. It looks random to a party that does not have the item.
fn tags_of(session: &SessionId, values: &[Output], coding: Coding, payload: bool) -> Tags {
    let mut tags = Tags::new(coding, values.len());
    if !payload {
        tags.fill(0, values);
        return tags;
    }
    let domain = Domain::new(session, "intersection by OPRF, tag");
    for (frame, values) in values.chunks(tags::FRAME).enumerate() {
        let mut hashes = Secrets::<Output>::zeros(values.len());
        let batches = hashes.par_chunks_mut(BATCH).zip(values.par_chunks(BATCH));
        batches.for_each(|(hashes, values)| domain.hash_all(values.iter().map(|value| &value[..]), hashes));
        tags.fill(frame * tags::FRAME, &hashes);
    }
    tags
}

/// Returns the function that derives the key of a row from a value.
fn padder(session: &SessionId) -> impl Fn(&Output) -> Pad + Sync + use<> {
    let domain = Domain::new(session, "intersection by OPRF, key of a row");
    move |value| domain.hash(&[value])
}

/// Runs the receiver R with set `y`; the sender's set has `n_x` items.
pub(crate) fn receiver<'a>(
    protocol: &impl Oprf,
    cx: &mut Context,
    y: &HashedSet,
    n_x: usize,
    terms: &Terms,
) -> Result<Sealed<'a, Matching>> {
    let coding = coding(terms, n_x, y.len())?;
    let values = protocol.receiver(cx, y.own(), n_x)?;
    let own = cx.threads.run(|| tags_of(&cx.session, &values, coding, terms.payload));
    let pads = match terms.payload {
        true => {
            let pads = values.par_iter().map(padder(&cx.session));
            Secrets::from(cx.threads.run(|| pads.collect::<Vec<_>>()))
        }
        false => Secrets::zeros(0),
    };
    drop(values);
    tags::receiver(cx, own, pads, (|i| i, y.items().len()), n_x, terms)
}

/// Runs the sender S with set `x` and, if agreed, a payload per item, none longer than a row. The receiver's set
/// has `n_y` items. Returns the matches if both get them.
pub(crate) fn sender<'a>(
    protocol: &impl Oprf,
    cx: &mut Context,
    x: &HashedSet,
    payloads: &Items,
    n_y: usize,
    terms: &Terms,
) -> Result<Option<Sealed<'a, Matching>>> {
    let coding = coding(terms, x.len(), n_y)?;
    tags::check(payloads, terms)?;
    let mut values = protocol.sender(cx, x.own(), n_y)?;
    let own = cx.threads.run(|| tags_of(&cx.session, &values, coding, terms.payload));
    if !terms.payload {
        values = Secrets::zeros(0);
    }
    let pad = padder(&cx.session);
    let keys = |positions: &[u32]| {
        let keys = positions.par_iter().map(|&i| pad(&values[i as usize]));
        Secrets::from(keys.collect::<Vec<_>>())
    };
    tags::sender(cx, own, keys, (payloads, x.items().len()), n_y, terms)
}

#[cfg(test)]
#[path = "oprf_tests.rs"]
mod tests;
