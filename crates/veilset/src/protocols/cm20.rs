//! `cm20`: a multi-point OPRF from oblivious transfer (CM20).

use super::{BASE_OTS, Offer, Protocol, SEMI_HONEST, groups};
use crate::error::Result;
use crate::operations::INTERSECT;
use crate::operations::cost::{Cost, Deal, Memory, PartyCost, Traffic, Work, held_for_tags, tags_and_rows};
use crate::operations::intersect::oprf;
use crate::oprf::multi_point::{self, MultiPoint};

/// A multi-point OPRF from oblivious transfer ([`crate::oprf::multi_point`]).
pub static CM20: Protocol = Protocol {
    name: "cm20",
    summary: "private set intersection from oblivious transfer, on request against a malicious sender",
    groups: &[groups::RISTRETTO255],
    offers: &[Offer { malicious_sender: true, ..Offer::of(&INTERSECT) }],
    assumptions: |terms| {
        let mut all = vec![
            SEMI_HONEST,
            BASE_OTS,
            "AES-128 as a pseudorandom permutation, BLAKE3 as a random oracle (so that it is 128-Hamming correlation \
             robust)",
            "an item of the sender's is hidden by fewer than 128 secret bits with probability at most 2^-40 over all of \
             them",
        ];
        if terms.malicious_sender {
            all[0] = "the receiver follows the protocol (semi-honest); a sender that deviates (malicious) learns no \
                      more, if it evaluates BLAKE3 at most 2^64 times, and nothing binds it to its true set";
        }
        all
    },
    // Matching and comparing, then the columns that are sent along.
    stages: |_, terms| 2 + usize::from(terms.payload),
    cost,
    run: |task, cx, n| {
        let oprf = MultiPoint { malicious_sender: task.terms.malicious_sender };
        super::over_oprf(task, &oprf, cx, n)
    },
};

/// Base OTs, the key and the columns; then the tags.
fn cost(deal: &Deal) -> Result<Cost> {
    let (n_y, n_x) = CM20.sizes(deal);
    let tags = tags_and_rows(deal, n_x, oprf::tag_bytes(&deal.terms, n_x, n_y)?);
    let protocol = MultiPoint { malicious_sender: deal.terms.malicious_sender };
    let matrix = protocol.matrix(n_x, n_y);
    let (there, back) = protocol.traffic(n_y, n_x);
    let traffic = deal.sent_on() + Traffic { to_sender: there as u64, to_receiver: back as u64 + tags };
    let work = |n: usize| Work { base_ots: matrix.width, matrix_bits: n * matrix.width, ..Work::default() };
    // The base OTs there and back, the columns directly behind them; then the tags and the bits. With an empty set on
    // either side there are only tags.
    let columns = if n_y > 0 && n_x > 0 { 2 } else { 0 };
    let rounds = columns + usize::from(n_x > 0) * (1 + usize::from(deal.terms.both));
    let [for_tags, to_make_tags] = held_for_tags(deal, n_y, n_x);
    // First 32-byte values with pieces of their rows, then the values with their tags.
    let held = |n: usize, tags: usize| multi_point::SETUP * matrix.width + 32 * n + tags.max(20 * n);
    // Per thread: a group of columns in `forms` forms, one byte per row each, and the blocks of a chunk.
    let each_thread = |n: usize, forms| match columns {
        0 => 0,
        _ => (forms * matrix.height + 32 * n.min(multi_point::CHUNK)) as u64,
    };
    let memory = |n, tags, forms| Memory { held: held(n, tags) as u64, each_thread: each_thread(n, forms) };
    Ok(Cost {
        traffic,
        rounds,
        receiver: PartyCost { work: work(n_y), memory: memory(n_y, for_tags, 5) },
        sender: PartyCost { work: work(n_x), memory: memory(n_x, to_make_tags, 3) },
    })
}
