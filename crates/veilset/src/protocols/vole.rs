//! `vole`: a multi-point OPRF from vector OLE (RR22).

use super::{BASE_OTS, Offer, Protocol, SEMI_HONEST, groups};
use crate::error::Result;
use crate::okvs;
use crate::operations::INTERSECT;
use crate::operations::cost::{
    Cost, Deal, Memory, PartyCost, SETUP, Traffic, Work, held_for_tags, tags_and_rows,
};
use crate::operations::intersect::oprf;
use crate::oprf::vole::{self, Rr22};
use crate::ot::extension;
use crate::vole::silent::Silent;

/// A multi-point OPRF from vector OLE ([`crate::oprf::vole`]).
pub static VOLE: Protocol = Protocol {
    name: "vole",
    summary: "private set intersection from vector oblivious linear evaluation, the fastest for large sets",
    groups: &[groups::RISTRETTO255],
    offers: &[Offer::of(&INTERSECT)],
    assumptions: |_| {
        vec![
            SEMI_HONEST,
            BASE_OTS,
            "AES-128 as an ideal cipher, BLAKE3 as a random oracle",
            "learning parity with noise, for an expand-convolute code with regular noise over GF(2^128)",
        ]
    },
    // Matching is immediate; then the columns that are sent along.
    stages: |_, terms| 1 + usize::from(terms.payload),
    cost,
    run: |task, cx, n| super::over_oprf(task, &Rr22::new(Silent::default()), cx, n),
};

/// The VOLE, the seed and A + P; then the tags.
fn cost(deal: &Deal) -> Result<Cost> {
    let (n_y, n_x) = VOLE.sizes(deal);
    let tags = tags_and_rows(deal, n_x, oprf::tag_bytes(&deal.terms, n_x, n_y)?);
    let m = okvs::size(n_y);
    let (there, back) = Rr22::new(Silent::default()).traffic(n_y);
    let traffic = deal.sent_on() + Traffic { to_sender: there as u64, to_receiver: back as u64 + tags };
    let work = Work { base_ots: extension::WIDTH, vole_items: n_y + n_x, ..Work::default() };
    // The base OTs there and back, and the further rounds of the VOLE, with A + P directly behind; then tags and bits.
    let rounds = 2
        + Silent::default().rounds(vole::parts(m))
        + usize::from(n_x > 0) * (1 + usize::from(deal.terms.both));
    let [for_tags, to_make_tags] = held_for_tags(deal, n_y, n_x);
    let [vole_r, vole_s] = Silent::default().held(vole::parts(m));
    // First P and the rows of the receiver's items, during the VOLE and while C is assembled; then values and tags.
    let (c, k) = if m > vole::PART { (16 * m, 48 * m) } else { (0, 0) };
    let receiver = (16 * m + 24 * n_y + vole_r + c).max(32 * m + 88 * n_y).max(32 * n_y + for_tags);
    // K doubles where it grows.
    let sender = (24 * n_x + vole_s + k).max(16 * m + 88 * n_x).max(32 * n_x + to_make_tags);
    let party = |bytes| PartyCost { work, memory: Memory::held(SETUP + bytes) };
    Ok(Cost { traffic, rounds, receiver: party(receiver), sender: party(sender) })
}
