//! `sigma-ahe`: permute, then test, over a Sigma-mqPMT from additively homomorphic encryption (CZZDL 7, B.2), and OT
//! extension.

use super::sigma::{self, Moves};
use crate::ahe::elgamal::{Ciphertext, FRESH};
use crate::channel::{HEADER, Wire};
use crate::error::Result;
use crate::membership::sigma::ahe::{MOST_X, MOST_Y, SigmaAhe, powers};
use crate::membership::sigma::{Sizes, per_frame};
use crate::operations::cost::framed;
use crate::operations::{COUNT, UNION};
use crate::protocols::{Assumption, Offer, Protocol, Runs, SEMI_HONEST, Unasked, deviating, groups};
use crate::work::{Primitive, Step, Work};

/// Permute, then test, over a Sigma-mqPMT from AHE, and OT extension ([`crate::membership::sigma::ahe`]).
pub static SIGMA_AHE: Protocol = Protocol {
    name: "sigma-ahe",
    summary: "membership tests of small sets from additively homomorphic encryption, as by sigma-dh",
    when: "the same on homomorphic encryption, to compare with; sigma-dh costs far less",
    groups: &[groups::RISTRETTO255],
    ciphers: &[],
    offers: &[
        // In a union the receiver is the server, in a count the sender.
        Offer {
            unasked: Unasked::No,
            reveals_count: true,
            inserts_list: true,
            largest: [MOST_Y, MOST_X],
            ..Offer::of(&UNION, 5, deviating::PERMUTED_UNION)
        },
        Offer {
            unasked: Unasked::No,
            largest: [MOST_X, MOST_Y],
            ..Offer::of(&COUNT, 4, deviating::PERMUTED_COUNT)
        },
    ],
    rests_on: |_| &[Assumption::Ddh],
    probes: &[],
    assumptions: |_, _| {
        vec![
            SEMI_HONEST,
            "decisional Diffie-Hellman on ristretto255",
            "BLAKE3 as a random oracle (and, for a union, AES-128 as an ideal cipher)",
        ]
    },
    runs: Runs::Two {
        stages: sigma::stages,
        cost: |deal| sigma::cost(&SIGMA_AHE, deal, moves),
        run: |task, cx, n| match task.group {
            groups::RISTRETTO255 => sigma::run(SigmaAhe, task, cx, n),
            _ => Err(SIGMA_AHE.refuse_group(task.group)),
        },
    },
};

fn moves(_: &str, Sizes { n_y, n_x }: Sizes) -> Result<Moves> {
    let powers = powers(n_y);
    let (query, responses) = (powers * Ciphertext::SIZE, per_frame(Ciphertext::SIZE));
    // The key, if there are queries.
    let key = if n_x > 0 { HEADER + 32 } else { 0 };
    let to_server = key as u64 + framed(n_x, per_frame(query), query);
    let to_client = framed(n_x, responses, Ciphertext::SIZE);
    // The client encrypts with its secret key, using two multiplications; it tests a response with one.
    let raised = |n: usize| Work::of(Primitive::Ristretto255, n);
    // The server combines queries as they arrive. It sends no response before all are complete, since they are permuted.
    let steps = vec![
        Step::of(raised(n_x * (2 * powers + FRESH)), raised(n_x * 2 * powers + usize::from(n_x > 0)))
            .sends(0, to_server),
        Step::of(Work::default(), raised(n_x)).sends(to_client, 0),
    ];
    let order = 4 * n_x;
    // A frame of queries in two forms, or one of responses in two forms, with two elements for each while they are
    // tested. The server keeps all responses, and the multiples of the key.
    let (frame, tested) = (n_x.min(per_frame(query)) * query, n_x.min(responses));
    let held = [
        (2 * frame).max(2 * Ciphertext::SIZE * tested) + Ciphertext::SIZE * n_x + TABLE + order,
        (2 * frame).max(TESTED * tested) + n_x + order,
    ];
    let each_thread = [COMBINED, ENCRYPTED].map(|each| powers * each);
    let rounds = if n_x > 0 { 2 } else { 0 };
    Ok(Moves { steps, rounds, held, each_thread, order })
}

/// Bytes of the multiples of a public key.
const TABLE: usize = 60 << 10;
/// Bytes for a response while it is tested: the received and the parsed form, its parts, and the elements.
const TESTED: usize = 2 * 64 + 2 * 32 + 2 * 160;
/// Bytes for a ciphertext of a query while the response is computed: its parts, elements, and weights, which are copied.
const COMBINED: usize = 2 * 32 + 2 * 160 + 2 * 32 + 2 * 32;
/// Bytes for a ciphertext while it is encrypted: the message, exponents, elements, parts, and the ciphertext.
const ENCRYPTED: usize = 32 + 2 * 32 + 2 * 160 + 2 * 32 + 64;
