//! The cost of runs of several parties, computed from public sizes alone for the building blocks that the program uses.
//!
//! Bytes are exact; a test compares them with runs of the operations. Rounds are the longest chain of messages in which each is
//! counted as waiting for the one before: a run may take slightly fewer, but not more. Memory is counted as if all concurrent
//! steps of a party held their most at the same time.

use super::union::Public;
use super::{count, intersect, rows};
use crate::ahe::elgamal::Ciphertext;
use crate::ahe::shuffle::{self, ShuffleShape};
use crate::channel::{self, Wire};
use crate::equality::nibbles::Nibbles;
use crate::error::{Error, Result};
use crate::group::encoding;
use crate::group::ristretto255::Element;
use crate::hashing::cuckoo::CHOICES;
use crate::membership::shared::{Compared, Sizes};
use crate::operations::cost::{Memory, PartyCost, framed, grown, transfer};
use crate::oprf::bins::FromVole;
use crate::oprf::programmable::Programmed;
use crate::oprf::vole::Rr22;
use crate::vole::silent::Silent;
use crate::work::{Primitive, Work, traffic};

/// The cost of a run of several parties.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MultipartyCost {
    /// The exact bytes of the frames of the protocol: `traffic[from][to]`.
    pub traffic: Vec<Vec<u64>>,
    /// The most messages on a chain in which each waits for the one before. A run may take slightly fewer.
    pub rounds: usize,
    /// The cost of each party.
    pub parties: Vec<PartyCost>,
}

/// Bytes of an element of the group in memory.
const ELEMENT: usize = size_of::<Element>();
const CIPHERTEXT: usize = Ciphertext::SIZE;
/// Bytes that a thread holds for the batch of elements or ciphertexts that it computes.
const EACH_THREAD: usize = 320 << 10;
/// Bytes of the tables of the joint key and of the remaining parties' key.
const KEYS: usize = 120 << 10;
/// Bytes of the hash of an item, with its number while hashes are listed.
const HASHED: usize = 36;

/// The cost of a union.
///
/// # Errors
/// The errors of the run for bounds that are too large.
pub(crate) fn union(public: &Public) -> Result<MultipartyCost> {
    let (bounds, k) = (public.bounds(), public.k());
    let mut sum = Sum::new(bounds.len())?;
    sum.agree();
    let layout = public.layout();
    let mut longest = 0;
    let mut owned = vec![0; bounds.len()];
    for (owner, &bound) in bounds.iter().enumerate().skip(1) {
        let n = public.bins(owner);
        // The owner encrypts the row of each bin.
        sum.encrypt(owner, n * k);
        let encoded = n * (layout.width() + 1) + n * k * (ELEMENT + 32 + CIPHERTEXT);
        owned[owner] = placed(n, bound).max(4 * n + encoded);
        let mut rounds = 0;
        // The rows visit P_2 to the owner's predecessor, and then P_1.
        for holder in (1..owner).chain([0]) {
            let visit = Visit { owner, holder, sizes: public.sizes(owner, holder), k, returned: holder > 0 };
            let test = sum.visit(visit)?;
            rounds = rounds.max(test) + VISIT + usize::from(visit.returned);
        }
        // The rows, the ciphertexts offered in their place, and the returned rows.
        sum.hold(owner, 4 * n + n * k * (2 * CIPHERTEXT + CIPHERTEXT + 32) + grown(n * k, CIPHERTEXT));
        longest = longest.max(rounds);
    }
    let rows = public.rows()?;
    sum.shuffle(ShuffleShape::new(rows, k), rows * k);
    // P_1 holds the rows of all owners as received and as one list, and their decryptions. The items that it lacks are
    // collected and hashed.
    let all: usize = bounds.iter().skip(1).sum();
    let new = grown(all, public.max_row + 8) + 32 * all + rows * k * (encoding::PIECE + 2);
    let list = 3 * rows * k * CIPHERTEXT;
    let held = |party: usize, held: &Held| {
        let shuffled = if party == 0 { list + held.shuffle.max(new) } else { held.shuffle };
        HASHED * bounds[party] + KEYS + owned[party].max(held.visits).max(shuffled)
    };
    sum.done(AGREED + longest + bounds.len(), held)
}

/// The cost of a count.
///
/// # Errors
/// The errors of the run for bounds that are too large.
pub(crate) fn count(bounds: &[usize]) -> Result<MultipartyCost> {
    let mut sum = Sum::new(bounds.len())?;
    sum.agree();
    let n = count::bins(bounds);
    // P_1 encrypts whether each bin is full.
    sum.encrypt(0, n);
    let (mut test, mut visits) = (0, 0);
    for holder in 1..bounds.len() {
        let visit = Visit { owner: 0, holder, sizes: count::sizes(bounds, holder), k: 1, returned: true };
        test = test.max(sum.visit(visit)?);
        visits += VISIT + 1;
    }
    // The ciphertexts offered in place of the rows, with their elements, and the returned rows.
    sum.hold(0, 4 * n + n * (2 * CIPHERTEXT + ELEMENT + CIPHERTEXT + 32) + grown(n, CIPHERTEXT));
    sum.shuffle(ShuffleShape::blinded(n), n);
    let owned = placed(n, bounds[0]).max(5 * n + n * (ELEMENT + 32 + CIPHERTEXT));
    let held = |party: usize, held: &Held| {
        let (owned, list) = if party == 0 { (owned, 2 * n * CIPHERTEXT) } else { (0, 0) };
        HASHED * bounds[party] + KEYS + owned.max(held.visits).max(list + held.shuffle)
    };
    sum.done(AGREED + test + visits + bounds.len(), held)
}

/// The cost of an intersection.
///
/// # Errors
/// The errors of the run for bounds that are too large.
pub(crate) fn intersect(bounds: &[usize]) -> Result<MultipartyCost> {
    let n = bounds.len();
    let mut sum = Sum::new(n)?;
    let opprf = Programmed(Rr22::new(Silent::default()));
    let (mut shares, mut last) = (0, 0);
    // The bytes that each party holds in its concurrent steps: first with clients, in both directions in turn; then with P_1.
    let (mut with_clients, mut with_leader) = (vec![0; n], vec![0; n]);
    for (one, other) in (0..n).flat_map(|other| (0..other).map(move |one| (one, other))) {
        // P_1 always receives; clients take turns.
        let directions = if one == 0 { vec![[one, other]] } else { vec![[one, other], [other, one]] };
        let (mut rounds, mut held) = (0, [0; 2]);
        for [receiver, sender] in directions {
            let cost = opprf.cost(intersect::exponent(n), intersect::of_pair(bounds, receiver, sender));
            let sends = cost.sends();
            sum.send(receiver, sender, sends[0]);
            sum.send(sender, receiver, sends[1]);
            rounds += cost.rounds;
            for (i, party) in [receiver, sender].into_iter().enumerate() {
                sum.work(party, cost.work()[i]);
                let at = usize::from(party == other);
                held[at] = held[at].max(cost.held[i]);
            }
        }
        let (with, longest) =
            if one == 0 { (&mut with_leader, &mut last) } else { (&mut with_clients, &mut shares) };
        with[one] += held[0];
        with[other] += held[1];
        *longest = rounds.max(*longest);
    }
    let held = |party: usize, _: &Held| {
        // The values of each pair, and their sum. A client holds its shares for others, the shares it got, its own share and
        // T.
        let lists = if party == 0 { n } else { 2 * n - 2 };
        (HASHED + 16 * lists) * bounds[party] + with_clients[party].max(with_leader[party])
    };
    sum.done(shares + last, held)
}

/// Rounds of the agreement: commitments, then their openings.
const AGREED: usize = 2;
/// Rounds of a membership OT: base OTs in both directions, and the rows.
const VISIT: usize = 3;

/// Bytes held while the items are placed in the bins: the items' bins, the table, and the search.
fn placed(bins: usize, items: usize) -> usize {
    4 * CHOICES * items + 16 * bins
}

/// A step in which another party holds an owner's rows.
#[derive(Clone, Copy)]
struct Visit {
    owner: usize,
    holder: usize,
    sizes: Sizes,
    /// The number of ciphertexts of a row.
    k: usize,
    /// Whether the holder returns the rows.
    returned: bool,
}

/// Bytes that one party holds: in its concurrent visits, and in Shuffle&Decrypt.
#[derive(Clone, Copy, Default)]
struct Held {
    visits: usize,
    shuffle: usize,
}

/// The running sum of the costs of all parties.
struct Sum {
    traffic: Vec<Vec<u64>>,
    parties: Vec<(Tally, Held)>,
}

/// The work of one party, with multiplications by tables counted separately.
#[derive(Clone, Copy, Default)]
struct Tally {
    work: Work,
    by_table: usize,
}

impl Sum {
    fn new(parties: usize) -> Result<Sum> {
        match parties > 1 {
            true => Ok(Sum {
                traffic: vec![vec![0; parties]; parties],
                parties: vec![Default::default(); parties],
            }),
            false => Err(Error::bug(format!("the cost of a run of {parties} parties"))),
        }
    }

    fn send(&mut self, from: usize, to: usize, bytes: usize) {
        self.traffic[from][to] += bytes as u64;
    }

    fn work(&mut self, party: usize, work: Work) {
        self.parties[party].0.work += work;
    }

    /// Adds the encryption or re-randomisation of `ciphertexts` ciphertexts.
    fn encrypt(&mut self, party: usize, ciphertexts: usize) {
        self.parties[party].0.by_table += 2 * ciphertexts;
    }

    fn hold(&mut self, party: usize, bytes: usize) {
        self.parties[party].1.visits += bytes;
    }

    /// Adds the agreement: all parties send each other a commitment, then a seed, a key and a hash (`setup.rs`).
    fn agree(&mut self) {
        let bytes = framed(1, 1, 32) + framed(3, 3, 32);
        for (from, to) in self.traffic.iter_mut().enumerate() {
            to.iter_mut().enumerate().filter(|(to, _)| *to != from).for_each(|(_, sent)| *sent += bytes);
        }
    }

    /// Adds a membership test for each bin of the owner, and the transfer of its rows. Returns the rounds up to the shares.
    fn visit(&mut self, visit: Visit) -> Result<usize> {
        let Visit { owner, holder, sizes, k, returned } = visit;
        let (n, k) = (sizes.bins, sizes.bins * k);
        let opprf = Programmed(FromVole::new(Silent::default()));
        let test = Compared { opprf, equality: Nibbles::default() }.cost(sizes)?;
        // Both rows of each OT.
        let rows = transfer(n, 2 * visit.k * CIPHERTEXT, None);
        let back = if returned { framed(k, rows::FRAME, CIPHERTEXT) as usize } else { 0 };
        let number = framed(1, 1, size_of::<u64>()) as usize;
        let (tests, offered) = (traffic(&test.steps), rows.step.traffic);
        self.send(owner, holder, number + (tests.to_sender + offered.to_receiver) as usize);
        self.send(holder, owner, (tests.to_receiver + offered.to_sender) as usize + back);
        // The owner encrypts the ciphertexts that it offers in place of its rows.
        self.encrypt(owner, k);
        for (i, party) in [owner, holder].into_iter().enumerate() {
            self.encrypt(party, if returned { k } else { 0 });
            let tests: Work = test.steps.iter().map(|step| step.work[i]).sum();
            self.work(party, tests + rows.step.work[i]);
        }
        let frames = 4 * k.min(rows::FRAME) * CIPHERTEXT;
        self.hold(owner, test.held[0].max(n + rows.held[1] + frames));
        self.hold(holder, test.held[1].max(n + rows.held[0] + frames + grown(k, CIPHERTEXT)));
        // The owner sends the number of the try, and then the holder begins.
        Ok(1 + test.rounds)
    }

    /// Adds Shuffle&Decrypt of this list.
    fn shuffle(&mut self, shape: ShuffleShape, ciphertexts: usize) {
        let parties = self.parties.len();
        let frames = ciphertexts.min(shuffle::FRAME) * (2 * CIPHERTEXT + 2 * ELEMENT + 64);
        for party in 0..parties {
            self.send(party, (party + 1) % parties, shape.traffic());
            // All parties re-randomise and multiply by their keys; in a count, the clients also multiply by a fresh scalar.
            self.encrypt(party, ciphertexts);
            let multiplications = if shape.is_blinded() && party > 0 { 3 } else { 1 };
            self.work(party, Work::of(Primitive::Ristretto255, multiplications * ciphertexts));
            self.parties[party].1.shuffle = (CIPHERTEXT + 4) * ciphertexts + frames;
        }
    }

    /// Returns the costs. `held` computes the bytes that a party holds from the bytes of its parts.
    fn done(self, rounds: usize, held: impl Fn(usize, &Held) -> usize) -> Result<MultipartyCost> {
        let Sum { traffic, parties, .. } = self;
        let party = |(party, (tally, parts)): (usize, &(Tally, Held))| {
            let mut work = tally.work;
            // Two multiplications by tables, with the encoding, take as long as one without a table.
            work += Work::of(Primitive::Ristretto255, tally.by_table.div_ceil(2));
            let each_thread = if tally.by_table > 0 { EACH_THREAD as u64 } else { 0 };
            let memory = Memory { each_thread, ..Memory::held(held(party, parts)) };
            let to = || traffic[party].iter().copied();
            let from = || traffic.iter().map(|to| to[party]);
            let in_flight = to().chain(from()).map(|bytes| bytes.min(channel::CAPACITY as u64)).sum();
            PartyCost { sent: to().sum(), received: from().sum(), rounds, work, memory, in_flight }
        };
        let parties = parties.iter().enumerate().map(party).collect();
        Ok(MultipartyCost { traffic, rounds, parties })
    }
}

#[cfg(test)]
#[path = "cost_tests.rs"]
mod tests;
