//! `mpsu`, `mpsi` and `mpsi-ca`: union, intersection and its size among several parties, secure against any coalition of
//! all but one (GNT23 4, corrected, for the union; the others on the same parts).

use super::{Assumption, BASE_OTS, Offer, Protocol, Runs, deviating, groups};
use crate::equality::nibbles::Nibbles;
use crate::item::Items;
use crate::membership::mot::FromOt;
use crate::membership::shared::Compared;
use crate::operations::intersect::Matching;
use crate::operations::multiparty::{cost, count, intersect, union};
use crate::operations::union::rows::New;
use crate::operations::{COUNT, INTERSECT, Learned, Sealed, Terms, UNION};
use crate::oprf::bins::FromVole;
use crate::oprf::programmable::Programmed;
use crate::oprf::vole::Rr22;
use crate::vole::silent::Silent;

const ALL_BUT_ONE: &str = "all parties follow the protocol (semi-honest), and any of them but one may put together what \
                           they see: nothing binds a party to its true set or choices";
const LPN: &str =
    "learning parity with noise, for an expand-convolute code with regular noise over GF(2^64) or GF(2^128)";
const HASHES: &str = "AES-128 as an ideal cipher, BLAKE3 as a random oracle";
const DDH: &str = "decisional Diffie-Hellman on ristretto255";

/// Union of several parties ([`crate::operations::multiparty::union`]).
pub static MPSU: Protocol = Protocol {
    name: "mpsu",
    summary: "union of several parties, from membership tests with shared output and ElGamal under a joint key",
    when: "three parties or more",
    groups: &[groups::RISTRETTO255],
    ciphers: &[],
    offers: &[Offer::of(&UNION, 0, deviating::MULTIPARTY_UNION)],
    rests_on: |_| &[Assumption::Ddh, Assumption::Lpn],
    probes: &[],
    assumptions: |_, _| vec![ALL_BUT_ONE, DDH, LPN, HASHES],
    runs: Runs::Multiparty {
        cost: |terms, bounds| cost::union(&public(terms, bounds)),
        run: |task, many, bounds| {
            let union = union::Union { tests: tests(), transfer: FromOt::default() };
            let new = union.run(many, task.set, &public(&task.terms, bounds))?;
            Ok(for_the_leader(new, |items| Learned::New(New { items, payloads: Items::new() })))
        },
    },
};

/// Intersection of several parties ([`crate::operations::multiparty::intersect`]).
pub static MPSI: Protocol = Protocol {
    name: "mpsi",
    summary: "intersection of several parties, from shares of zero by programmable OPRFs from VOLE",
    when: "three parties or more",
    groups: &[groups::RISTRETTO255],
    ciphers: &[],
    offers: &[Offer::of(&INTERSECT, 0, deviating::MULTIPARTY_INTERSECT)],
    rests_on: |_| &[Assumption::Ddh, Assumption::Lpn],
    probes: &[],
    assumptions: |_, _| vec![ALL_BUT_ONE, BASE_OTS, LPN, HASHES],
    runs: Runs::Multiparty {
        cost: |_, bounds| cost::intersect(bounds),
        run: |task, many, bounds| {
            let intersect = intersect::Intersect { opprf: Programmed(Rr22::new(Silent::default())) };
            let of_all = intersect.run(many, task.set, bounds)?;
            Ok(for_the_leader(of_all, |of_all| {
                let positions = (0..).zip(of_all).filter_map(|(i, of_all)| of_all.then_some(i));
                Learned::Matching(Matching { positions: positions.collect(), payloads: Items::new() })
            }))
        },
    },
};

/// Size of the intersection of several parties ([`crate::operations::multiparty::count`]).
pub static MPSI_CA: Protocol = Protocol {
    name: "mpsi-ca",
    summary: "size of the intersection of several parties, from the parts of mpsu",
    when: "three parties or more",
    groups: &[groups::RISTRETTO255],
    ciphers: &[],
    offers: &[Offer::of(&COUNT, 0, deviating::MULTIPARTY_COUNT)],
    rests_on: |_| &[Assumption::Ddh, Assumption::Lpn],
    probes: &[],
    assumptions: |_, _| vec![ALL_BUT_ONE, DDH, LPN, HASHES],
    runs: Runs::Multiparty {
        cost: |_, bounds| cost::count(bounds),
        run: |task, many, bounds| {
            let count = count::Count { tests: tests(), transfer: FromOt::default() };
            Ok(for_the_leader(count.run(many, task.set, bounds)?, Learned::Matches))
        },
    },
};

/// The membership test with shared output.
fn tests() -> Compared<Programmed<FromVole<Silent>>, Nibbles> {
    Compared { opprf: Programmed(FromVole::new(Silent::default())), equality: Nibbles::default() }
}

/// The public parameters of a union.
fn public(terms: &Terms, bounds: &[usize]) -> union::Public {
    union::Public::new(bounds.to_vec(), terms.max_row)
}

/// The leader's result; all others learn nothing.
fn for_the_leader<'a, T: 'a>(
    result: Sealed<'a, Option<T>>,
    learned: impl FnOnce(T) -> Learned + Send + 'a,
) -> Sealed<'a, Learned> {
    result.map(|result| result.map_or(Learned::Nothing, learned))
}
