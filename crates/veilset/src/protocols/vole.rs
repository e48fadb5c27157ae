//! `vole`: a multi-point OPRF from vector OLE (RR22).

use super::{BASE_OTS, Offer, Protocol, SEMI_HONEST, groups};
use crate::error::Result;
use crate::okvs;
use crate::operations::INTERSECT;
use crate::operations::cost::{Cost, Deal, Traffic, Work, framed, tags_and_rows};
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
    // Its matching is over at once; then the columns that travel.
    stages: |_, terms| 1 + usize::from(terms.payload),
    cost,
    run: |task, cx, n| super::over_oprf(task, &Rr22::new(Silent::default()), cx, n),
};

/// The VOLE, the seed and A + P; then the tags.
fn cost(deal: &Deal) -> Result<Cost> {
    let (n_y, n_x) = VOLE.sizes(deal);
    let tags = tags_and_rows(deal, n_x, oprf::tag_bytes(&deal.terms, n_x, n_y)?);
    let m = okvs::size(n_y);
    let (there, back) = Silent::default().traffic(vole::parts(m));
    let store = framed(1, 1, size_of::<okvs::Seed>()) + framed(m, vole::FRAME, 16);
    let traffic =
        deal.sent_on() + Traffic { to_sender: there as u64 + store, to_receiver: back as u64 + tags };
    let work = Work { base_ots: extension::WIDTH, vole_items: n_y + n_x, ..Work::default() };
    Ok(Cost { traffic, receiver: work, sender: work })
}
