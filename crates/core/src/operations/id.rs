//! Identifiers (private-ID; CZZDL 8.2): each party learns a pseudorandom identifier for each of its items, equal for equal
//! items of both parties, and the identifiers of both sets.
//!
//! ```text
//! 1.  both     a PRF F at their own items, by the distributed OPRF: the identifiers
//! 2.  R and S  the union of their identifiers, by any protocol that computes a union
//! 3.  R->S     the union, sorted, as bare identifiers
//! ```
//!
//! Security: semi-honest, under the assumptions of the OPRF and of the union. The identifiers of items that a party does not
//! have are random to it, so the union reveals only their number. Identifiers are never compared in the clear: a value that a
//! party sends is in the union anyway, or is hidden by the union's protocol.
//!
//! Leakage: the sizes of both sets, and the number of matches to both, since it follows from the length of the list. A padded
//! set hides how many of its items are dummies, but not how many match: identifiers of dummies stay in the list.
//!
//! Identifiers mean nothing in another run: both keys are fresh. Two items have the same identifier with probability at most
//! n^2 / 2^129 for n items of both parties, which is below 2^-70 for the largest sets.
//!
//! Cost: two evaluations of the OPRF, the union of rows of 16 bytes, and 16 bytes for each item of both parties.

use super::cost::{Cost, Deal, Memory, grown};
use super::{
    Announced, Fact, Learned, Operation, OverUnion, Role, Rows, RunUnion, Sealed, Shape, Task, Terms, UNION,
    Uses,
};
use crate::assumption::Assumption;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::hashed::Dummies;
use crate::item::{ItemSet, Items};
use crate::oprf::distributed;

/// An identifier of an item: pseudorandom, and written in hexadecimal.
pub type Identifier = [u8; IDENTIFIER];
/// Bytes of an identifier.
pub const IDENTIFIER: usize = 16;

/// The result of a party of `id`.
#[derive(Clone, PartialEq, Eq)]
pub struct Identifiers {
    /// The identifiers of this party's items, in the order of its set.
    pub own: Vec<Identifier>,
    /// The identifiers of the items and dummies of both sets, sorted.
    pub all: Vec<Identifier>,
}

/// Both parties learn an identifier for each of their items, and all identifiers.
pub static ID: Operation = Operation {
    name: "id",
    summary: "Both learn random identifiers for their rows, the same for the same key",
    about: "Each party learns an identifier for each of its own rows, and the sorted list of the identifiers of both \
            sides, and so how many match. It does not learn which. Rows with the same key have the same identifier on \
            both sides, and nothing else is known of it: tables that have identifiers instead of keys can be joined \
            elsewhere. Identifiers are new in each run.",
    uses: Uses { rows: Rows::None, both: false, values: false, shares: false },
    sender_dummies: Dummies::Random,
    learns: |_, _| vec![Fact::Identifiers],
    result: |_, _| Shape::Identifiers,
    plain: |data| {
        // Not random, but with the structure of the result.
        let name = |item: &[u8]| -> Identifier {
            let mut name = Identifier::default();
            name.copy_from_slice(&blake3::hash(item).as_bytes()[..IDENTIFIER]);
            name
        };
        let [y, x] = [data.y, data.x].map(|set| set.iter().map(name).collect::<Vec<_>>());
        let mut all = [&y[..], &x[..]].concat();
        all.sort_unstable();
        all.dedup();
        [y, x].map(|own| Learned::Identifiers(Identifiers { own, all: all.clone() }))
    },
    sends_on: |_| 0,
    over_mqrpmt: None,
    over_sigma: None,
    over_union: Some(OverUnion {
        assumptions: &ASSUMPTIONS,
        rests_on: &[Assumption::Ddh, Assumption::Lpn],
        union: union_of,
        stages: 1,
        cost,
        run,
    }),
};

/// The assumptions of the distributed OPRF ([`distributed::cheapest`]).
const ASSUMPTIONS: [&str; 3] = [
    "for the identifiers: decisional Diffie-Hellman on ristretto255, AES-128 as an ideal cipher, BLAKE3 as a random oracle",
    "for the identifiers of fewer items: AES-128 as a pseudorandom permutation; an item is hidden by fewer than 128 secret bits \
     with a probability that is a share of the run's 2^-40",
    "for the identifiers of some thousand items or more: learning parity with noise, for an expand-convolute code with \
     regular noise over GF(2^64) or GF(2^128)",
];

/// The union of the identifiers of items and dummies.
fn union_of(deal: &Deal) -> Deal {
    let all = |announced: Announced| Announced { padded: false, ..announced };
    let (receiver, sender) = (all(deal.receiver), all(deal.sender));
    Deal { operation: &UNION, terms: TERMS, receiver, sender, ..*deal }
}

/// The terms of the union of the identifiers.
const TERMS: Terms = Terms {
    payload: false,
    max_row: IDENTIFIER,
    both: true,
    modulus: super::sum::Modulus::Bits64,
    min_count: 0,
    malicious_sender: false,
    reveal_count: false,
    shared_values: false,
    several: false,
    bare: true,
    filter: None,
    shards: 0,
};

/// The cost of the OPRF and of the union.
fn cost(deal: &Deal, union: Cost) -> Cost {
    let [n_y, n_x] = [deal.receiver.size, deal.sender.size];
    let oprf = distributed::cost(deal.terms.exponent(), n_y, n_x);
    let memory = |i: usize| {
        let (own, union) = ([n_y, n_x][i], union.memory[i]);
        // The identifiers with their hashes: with F and an order while they are made, and later together with the union. Then
        // the list, together with the result of the union.
        let (made, list) = ((56 + 24) * own, 56 * own + grown(n_y + n_x, 24) + 16 * (n_y + n_x) + 16 * own);
        Memory {
            held: (oprf.held[i].max(made).max(list) as u64).max(union.held + 56 * own as u64),
            each_thread: (oprf.each_thread[i] as u64).max(union.each_thread),
        }
    };
    let memory = [0, 1].map(memory);
    Cost { steps: [oprf.steps, union.steps].concat(), rounds: oprf.rounds + union.rounds, memory }
}

/// Runs one party.
fn run<'a>(
    union: &RunUnion<'a, '_>,
    task: &Task<'a>,
    cx: &mut Context,
    n: usize,
) -> Result<Sealed<'a, Learned>> {
    let set = task.set;
    let (n_y, n_x) = if task.role == Role::Receiver { (set.len(), n) } else { (n, set.len()) };
    let (unit, total) = distributed::cost(cx.exponent, n_y, n_x).progress;
    cx.ch.stage("identifying", unit, total);
    // 1. Evaluate F at our items, then at our dummies.
    let oprf = distributed::cheapest(cx.exponent, n_y, n_x);
    let f = match task.role {
        Role::Receiver => distributed::receiver(&*oprf, cx, set.own(), n)?,
        Role::Sender => distributed::sender(&*oprf, cx, set.own(), n)?,
    };
    let identifiers = identifiers(&f, cx)?;
    drop(f);
    let identified = cx.threads.run(|| set.identify(identifiers))?;
    // 2. and 3. The union, which the receiver sends on.
    let inner = Task {
        operation: &UNION,
        role: task.role,
        group: task.group,
        set: identified,
        values: &[],
        payloads: const { &Items::new() },
        terms: TERMS,
        filter: None,
    };
    let learned = union(&inner, cx, n)?;
    let (identifiers, items) = (identified.items(), set.items().len());
    Ok(learned.and_then(move |learned| {
        let of = |items: &Items, all: &mut Vec<Identifier>| {
            all.reserve_exact(items.len());
            all.extend(items.iter().filter_map(|item| Identifier::try_from(item).ok()));
        };
        let mut all = Vec::new();
        match learned {
            Learned::New(new) => {
                all.reserve_exact(identifiers.len() + new.items.len());
                of(identifiers, &mut all);
                of(&new.items, &mut all);
            }
            Learned::Union(union) => of(&union, &mut all),
            other => return Err(Error::bug(format!("a union gave {other:?}"))),
        }
        all.sort_unstable();
        let own = identifiers.iter().take(items).filter_map(|item| item.try_into().ok()).collect();
        Ok(Learned::Identifiers(Identifiers { own, all }))
    }))
}

/// Returns the identifiers, which are values of F, as a set.
fn identifiers(f: &[Identifier], cx: &Context) -> Result<ItemSet> {
    let mut items = Items::with_capacity(f.len(), f.len() * IDENTIFIER);
    f.iter().for_each(|f| items.push(f));
    let distinct = cx.threads.run(|| ItemSet::keep_first(items));
    match distinct.duplicates.is_empty() {
        true => Ok(distinct.set),
        false => {
            Err(Error::misbehaves("two of our items have the same identifier, which has probability 2^-70"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::SessionId;
    use crate::hashed::HashedSet;
    use crate::membership::Ideal;
    use crate::operations::Confirmed;
    use crate::rng::Prng;
    use crate::testing::{Views, every_bit_is_random, overlapping, parts, run_pair};
    use std::collections::HashSet;

    /// Runs both parties over the ideal membership test, with these seeds.
    fn run_with(y: &ItemSet, x: &ItemSet, seeds: [u8; 2]) -> ([Identifiers; 2], Views) {
        let party = |role, set: &ItemSet, n, cx: &mut Context| {
            let task = Task {
                operation: &ID,
                role,
                group: "any",
                set: &HashedSet::new(set),
                values: &[],
                payloads: &Items::new(),
                terms: Terms::default(),
                filter: None,
            };
            let over = UNION.over_mqrpmt.as_ref().unwrap();
            match run(&|task, cx, n| (over.run)(&Ideal, task, cx, n), &task, cx, n)?
                .open(Confirmed::for_tests())
            {
                Ok(Learned::Identifiers(identifiers)) => Ok(identifiers),
                other => panic!("{other:?}"),
            }
        };
        let [r, s] = seeds.map(|seed| Prng::from_seed(&[seed; 32]));
        let ((ours, theirs), views) = run_pair(
            &SessionId::of([5; 32]),
            |cx| party(Role::Receiver, y, x.len(), cx.under(r)),
            |cx| party(Role::Sender, x, y.len(), cx.under(s)),
        );
        ([ours, theirs], views)
    }

    #[test]
    fn identifiers_are_random_and_others_in_each_run() {
        let (y, x) = overlapping(300, 200, 0.5);
        let runs = [[1, 2], [3, 4]].map(|seeds| run_with(&y, &x, seeds).0);
        let mut all = HashSet::<Identifier>::new();
        for [ours, theirs] in &runs {
            assert!(ours.all == theirs.all && ours.all.len() == 400);
            assert!(ours.own.iter().chain(&theirs.own).collect::<HashSet<_>>().len() == 400);
            all.extend(&ours.all);
        }
        assert_eq!(all.len(), 800);
        every_bit_is_random(&all.into_iter().collect::<Vec<_>>(), 8 * IDENTIFIER);
    }

    /// The union runs on identifiers, and the receiver sends it on as a sorted list.
    #[test]
    fn the_union_is_of_identifiers_and_comes_back_as_a_sorted_list_of_them() {
        const LIST: u16 = 0x73;
        const ASK: u16 = 0x7001;
        let (y, x) = overlapping(30, 20, 0.5);
        let ([ours, theirs], views) = run_with(&y, &x, [1, 2]);
        let list = parts(&views.0[1], LIST, IDENTIFIER);
        let (identifiers, rest) = list.split_at(ours.all.len());
        assert!(identifiers.iter().eq(ours.all.iter().map(|id| id.to_vec()).collect::<Vec<_>>().iter()));
        // The list has a row for every possible identifier.
        assert!(rest.len() == 10 && rest.iter().all(|empty| *empty == [0; IDENTIFIER]));
        // The ideal test is queried for the hashes of the sender's identifiers, in another order.
        let asked = parts(&views.0[0], ASK, 32);
        let hashes: Vec<Vec<u8>> =
            theirs.own.iter().map(|id| crate::hash::ItemHash::of_item(id).to_vec()).collect();
        assert_ne!(asked, hashes);
        assert_eq!(asked.iter().collect::<HashSet<_>>(), hashes.iter().collect::<HashSet<_>>());
    }

    #[test]
    fn items_with_the_same_identifier_are_refused() {
        let (mut channel, _other) = crate::channel::Channel::pair();
        let mut rng = Prng::from_seed(&[1; 32]);
        let cx = Context::new(&mut channel, &SessionId::of([5; 32]), &mut rng);
        let (one, mut other) = ([1; IDENTIFIER], [1; IDENTIFIER]);
        other[IDENTIFIER - 1] = 2;
        assert!(identifiers(&[one, other], &cx).is_ok());
        let refused = identifiers(&[one, other, one], &cx).err().unwrap().to_string();
        assert!(refused.contains("the same identifier"), "{refused}");
    }
}
