//! Runs of several parties in which each party's whole view is recorded: the frames, and the inputs and outputs of the parts
//! of its protocol.

use super::count::Count;
use super::intersect::{Intersect, directed};
use super::union::{Public, Union};
use crate::ahe::elgamal::{Ciphertext, Scalar, unit};
use crate::channel::Wire;
use crate::context::Context;
use crate::equality::Equality;
use crate::equality::nibbles::Nibbles;
use crate::error::Result;
use crate::group::encoding;
use crate::group::ristretto255::{Encoding, encode};
use crate::hash::{SessionId, part};
use crate::hashed::HashedSet;
use crate::hashing::cuckoo::CuckooTable;
use crate::item::ItemSet;
use crate::many::Many;
use crate::membership::mot::{FromOt, MembershipOt};
use crate::membership::shared::{Batch, Compared, Sspmt};
use crate::okvs::Value;
use crate::operations::Confirmed;
use crate::operations::row::Layout;
use crate::oprf::Input;
use crate::oprf::bins::FromVole;
use crate::oprf::programmable::{Bounds, Opprf, Programmed};
use crate::oprf::vole::Rr22;
use crate::rng::Prng;
use crate::secret::Secrets;
use crate::testing::{run_many, split_frames};
use crate::vole::silent::Silent;
use curve25519_dalek::RistrettoPoint;
use curve25519_dalek::constants::RISTRETTO_BASEPOINT_POINT as G;
use curve25519_dalek::ristretto::CompressedRistretto;
use std::sync::{Arc, Mutex};

/// The bound on each set, and the most bytes of an item. A row is two elements.
pub(super) const BOUND: usize = 40;
pub(super) const MAX_ROW: usize = 30;
pub(super) const K: usize = 2;

// ---- The notes of a party.

/// The two rows offered for each bin.
type Offers = [Vec<Vec<u8>>; 2];

/// The inputs and outputs of the parts of a party's protocol: for each use, the other party and the values.
#[derive(Default)]
pub(super) struct Notes {
    /// Its shares in membership tests.
    pub(super) shares: Vec<(usize, Vec<bool>)>,
    /// The strings that it compares in membership tests: its w_b, or its s_b.
    pub(super) compared: Vec<(usize, Vec<u128>)>,
    /// The rows v_0 and v_1 that it offers.
    pub(super) offered: Vec<(usize, Offers)>,
    /// The rows that it receives.
    pub(super) got: Vec<(usize, Vec<Vec<u8>>)>,
    /// The values that it gets in a programmable OPRF at its items.
    pub(super) received: Vec<(usize, Vec<Value>)>,
    pub(super) programmed: Vec<(usize, Vec<Value>)>,
    /// The exponents e of the errors 2^-e of the programmable OPRFs.
    pub(super) exponents: Vec<u32>,
    /// The values of another party's function that it gets in a flawed variant.
    pub(super) evaluated: Vec<(usize, Vec<[u8; 32]>)>,
    /// Its keys for pairs in a flawed variant.
    pub(super) keys: Vec<(usize, [u8; 32])>,
}

/// The notes of a party, and the other party of each session.
pub(super) struct Log {
    sessions: Vec<(SessionId, usize)>,
    notes: Mutex<Notes>,
}

/// Sessions of a pair in which a flawed variant runs parts a second time.
pub(super) const AGAIN: [&str; 2] = ["coalition tests, before step 3(c)", "coalition tests, step 3(d)"];

impl Log {
    fn new(many: &mut Many) -> Result<Arc<Log>> {
        let (me, mut sessions) = (many.me, Vec::new());
        let pairs = many.each(|_, cx| Ok(cx.session))?;
        for (other, pair) in many.others().zip(pairs) {
            let directions = [directed(&pair, me, other), directed(&pair, other, me)];
            let all = directions.into_iter().chain(AGAIN.map(|name| part(&pair, name))).chain([pair]);
            sessions.extend(all.map(|session| (session, other)));
        }
        Ok(Arc::new(Log { sessions, notes: Mutex::default() }))
    }

    /// Returns the other party of this session.
    pub(super) fn peer(&self, cx: &Context) -> usize {
        self.sessions.iter().find(|(session, _)| *session == cx.session).unwrap().1
    }

    pub(super) fn note(&self, note: impl FnOnce(&mut Notes)) {
        note(&mut self.notes.lock().unwrap());
    }
}

/// A part of a protocol that records its inputs and outputs.
pub(super) struct Observed<P> {
    inner: P,
    pub(super) log: Arc<Log>,
}

impl<T> Observed<T> {
    /// Records these shares and returns them.
    pub(super) fn noted(&self, cx: &Context, shares: Vec<bool>) -> Secrets<bool> {
        self.log.note(|notes| notes.shares.push((self.log.peer(cx), shares.clone())));
        Secrets::from(shares)
    }
}

impl<T: Sspmt> Sspmt for Observed<T> {
    fn querier(
        &self,
        cx: &mut Context,
        batch: &Batch,
        table: &CuckooTable,
        items: &[Input],
    ) -> Result<Secrets<bool>> {
        let shares = self.inner.querier(cx, batch, table, items)?;
        Ok(self.noted(cx, shares.to_vec()))
    }

    fn holder(&self, cx: &mut Context, batch: &Batch, set: &[Input]) -> Result<Secrets<bool>> {
        let shares = self.inner.holder(cx, batch, set)?;
        Ok(self.noted(cx, shares.to_vec()))
    }
}

impl<E: Equality> Equality for Observed<E> {
    fn receiver(&self, cx: &mut Context, strings: &[u128], bits: u32) -> Result<Secrets<bool>> {
        self.log.note(|notes| notes.compared.push((self.log.peer(cx), strings.to_vec())));
        self.inner.receiver(cx, strings, bits)
    }

    fn sender(&self, cx: &mut Context, strings: &[u128], bits: u32) -> Result<Secrets<bool>> {
        self.log.note(|notes| notes.compared.push((self.log.peer(cx), strings.to_vec())));
        self.inner.sender(cx, strings, bits)
    }
}

/// Returns the rows that `fill` writes.
pub(super) fn filled(n: usize, width: usize, fill: impl Fn(usize, &mut [u8], &mut [u8])) -> Offers {
    let mut offers = [vec![vec![0; width]; n], vec![vec![0; width]; n]];
    let [v_0, v_1] = &mut offers;
    v_0.iter_mut().zip(v_1).enumerate().for_each(|(i, (v_0, v_1))| fill(i, v_0, v_1));
    offers
}

impl<M: MembershipOt> MembershipOt for Observed<M> {
    fn sender(
        &self,
        cx: &mut Context,
        shares: Secrets<bool>,
        width: usize,
        fill: impl Fn(usize, &mut [u8], &mut [u8]) + Sync,
    ) -> Result<()> {
        let offers = filled(shares.len(), width, &fill);
        self.log.note(|notes| notes.offered.push((self.log.peer(cx), offers)));
        self.inner.sender(cx, shares, width, fill)
    }

    fn receiver(
        &self,
        cx: &mut Context,
        shares: Secrets<bool>,
        width: usize,
        mut take: impl FnMut(&[u8]),
    ) -> Result<()> {
        let mut got = Vec::new();
        self.inner.receiver(cx, shares, width, |row| {
            got.push(row.to_vec());
            take(row);
        })?;
        self.log.note(|notes| notes.got.push((self.log.peer(cx), got)));
        Ok(())
    }
}

impl<F: Opprf> Opprf for Observed<F> {
    fn receiver(&self, cx: &mut Context, inputs: &[Input], bounds: Bounds) -> Result<Secrets<Value>> {
        let values = self.inner.receiver(cx, inputs, bounds)?;
        self.log.note(|notes| {
            notes.received.push((self.log.peer(cx), values.to_vec()));
            notes.exponents.push(cx.exponent);
        });
        Ok(values)
    }

    fn sender(
        &self,
        cx: &mut Context,
        inputs: &[Input],
        value: impl Fn(usize) -> Value + Sync,
        bounds: Bounds,
    ) -> Result<()> {
        // Only the bytes that are sent.
        let sent = |i| {
            let mut value = value(i);
            value[bounds.bytes..].fill(0);
            value
        };
        let values = (0..inputs.len()).map(sent).collect();
        self.log.note(|notes| {
            notes.programmed.push((self.log.peer(cx), values));
            notes.exponents.push(cx.exponent);
        });
        self.inner.sender(cx, inputs, value, bounds)
    }
}

// ---- Runs.

/// Membership tests that are recorded, together with the strings that they compare.
pub(super) type Tests = Observed<Compared<Programmed<FromVole<Silent>>, Observed<Nibbles>>>;

/// A party's parts of the protocols.
pub(super) struct Parts {
    pub(super) tests: Tests,
    pub(super) transfer: Observed<FromOt>,
    pub(super) opprf: Observed<Programmed<Rr22<Silent>>>,
    pub(super) log: Arc<Log>,
}

impl Parts {
    fn new(log: Arc<Log>) -> Parts {
        let equality = Observed { inner: Nibbles::default(), log: log.clone() };
        let tests = Compared { opprf: Programmed(FromVole::new(Silent::default())), equality };
        Parts {
            tests: Observed { inner: tests, log: log.clone() },
            transfer: Observed { inner: FromOt::default(), log: log.clone() },
            opprf: Observed { inner: Programmed(Rr22::new(Silent::default())), log: log.clone() },
            log,
        }
    }
}

/// Returns the generator of a party in a run. Its first draw is the secret key.
pub(super) fn generator(number: u8, party: usize) -> Prng {
    Prng::from_seed(&[number, party as u8, 1, 55].repeat(8).try_into().unwrap())
}

/// The tag and body of each frame.
type Frames = Vec<(u16, Vec<u8>)>;

/// A run, and the views of its parties.
pub(super) struct Run<T> {
    pub(super) number: u8,
    pub(super) sets: Vec<ItemSet>,
    /// The frames, indexed by receiver and then sender.
    pub(super) frames: Vec<Vec<Frames>>,
    pub(super) notes: Vec<Notes>,
    /// The leader's result.
    pub(super) leader: T,
}

/// Runs all parties with these sets. Their generators follow from the number, so no two runs of a test may have the same one.
/// The sessions of the run and of the pairs are the same in all runs: values that follow from them alone do not count as
/// fresh.
pub(super) fn run<T: Send>(
    number: u8,
    sets: &[ItemSet],
    party: impl Fn(&mut Many, &HashedSet, Parts) -> Result<Option<T>> + Sync,
) -> Run<Option<T>> {
    let (results, views) = run_many(sets.len(), 1, |many| {
        let log = Log::new(many)?;
        *many.rng = generator(number, many.me);
        let result = party(many, &HashedSet::new(&sets[many.me]), Parts::new(log.clone()))?;
        let notes = std::mem::take(&mut *log.notes.lock().unwrap());
        Ok((result, notes))
    });
    let (mut results, notes): (Vec<Option<T>>, Vec<Notes>) = results.into_iter().unzip();
    let frames = views.iter().map(|from| from.iter().map(|view| split_frames(view)).collect()).collect();
    Run { number, sets: sets.to_vec(), frames, notes, leader: results.swap_remove(0) }
}

/// The public parameters of the unions in these tests.
pub(super) fn public(parties: usize) -> Public {
    Public::new(vec![BOUND; parties], MAX_ROW)
}

/// The result of the leader of a union: the sorted items that only others have, or the error at the end.
pub(super) type New = std::result::Result<Vec<Vec<u8>>, String>;

/// Runs one party of a union over these parts.
pub(super) fn union_of<T: Sspmt + Sync, M: MembershipOt + Sync>(
    many: &mut Many,
    set: &HashedSet,
    (tests, transfer): (T, M),
) -> Result<Option<New>> {
    let public = public(many.parties());
    let sealed = Union { tests, transfer }.run(many, set, &public)?;
    Ok(match sealed.open(Confirmed::for_tests()) {
        Ok(new) => new.map(|new| {
            let mut new: Vec<Vec<u8>> = new.iter().map(<[u8]>::to_vec).collect();
            new.sort();
            Ok(new)
        }),
        Err(error) => Some(Err(error.to_string())),
    })
}

pub(super) fn union(number: u8, sets: &[ItemSet]) -> Run<Option<New>> {
    run(number, sets, |many, set, parts| union_of(many, set, (parts.tests, parts.transfer)))
}

pub(super) fn count(number: u8, sets: &[ItemSet]) -> Run<Option<u64>> {
    run(number, sets, |many, set, parts| {
        let count = Count { tests: parts.tests, transfer: parts.transfer };
        let sealed = count.run(many, set, &vec![BOUND; many.parties()])?;
        sealed.open(Confirmed::for_tests())
    })
}

pub(super) fn intersect(number: u8, sets: &[ItemSet]) -> Run<Option<Vec<bool>>> {
    run(number, sets, |many, set, parts| {
        let sealed = Intersect { opprf: parts.opprf }.run(many, set, &vec![BOUND; many.parties()])?;
        sealed.open(Confirmed::for_tests())
    })
}

// ---- Keys and ciphertexts.

impl<T> Run<T> {
    pub(super) fn parties(&self) -> usize {
        self.sets.len()
    }

    /// The parties of the coalition: all but the honest one.
    pub(super) fn coalition(&self, honest: usize) -> impl Iterator<Item = usize> + use<T> {
        (0..self.parties()).filter(move |party| *party != honest)
    }

    /// Returns the bodies of all frames with this tag from one party to another, in parts of `size` bytes.
    pub(super) fn parts(&self, to: usize, from: usize, tag: u16, size: usize) -> Vec<Vec<u8>> {
        let frames = self.frames[to][from].iter().filter(|frame| frame.0 == tag);
        frames.flat_map(|(_, body)| body.chunks_exact(size).map(<[u8]>::to_vec)).collect()
    }

    pub(super) fn ciphertexts(&self, to: usize, from: usize, tag: u16) -> Vec<Ciphertext> {
        self.parts(to, from, tag, Ciphertext::SIZE)
            .iter()
            .map(|bytes| Ciphertext::get(bytes).unwrap())
            .collect()
    }

    /// Returns the secret key of a party, which must match the public key that it opened.
    pub(super) fn key(&self, party: usize) -> Scalar {
        let key = *unit(&mut generator(self.number, party));
        let other = (party + 1) % self.parties();
        assert_eq!(self.parts(other, party, OPENING, 32)[1], (G * key).compress().0);
        key
    }

    /// Returns the sum of the secret keys of these parties.
    pub(super) fn sum_of_keys(&self, parties: impl Iterator<Item = usize>) -> Scalar {
        parties.map(|party| self.key(party)).sum()
    }

    /// Returns the parties whose keys still encrypt the list that this party sent in Shuffle&Decrypt.
    pub(super) fn remaining(&self, sender: usize) -> impl Iterator<Item = usize> + use<T> {
        std::iter::once(0).chain(sender + 1..self.parties())
    }

    /// Returns the list that a party sent in Shuffle&Decrypt.
    pub(super) fn list(&self, sender: usize) -> Vec<Ciphertext> {
        self.ciphertexts((sender + 1) % self.parties(), sender, LIST)
    }

    /// Returns the initial list of P_1, or one that holds the same elements in the same order.
    pub(super) fn first_list(&self) -> Vec<Ciphertext> {
        let leader = &self.notes[0];
        match leader.got.is_empty() {
            // A union: the rows of all owners, in their order.
            false => {
                let mut got: Vec<_> = leader.got.iter().collect();
                got.sort_by_key(|(peer, _)| *peer);
                got.iter().flat_map(|(_, rows)| rows.iter().flat_map(|row| of_row(row))).collect()
            }
            // A count: the ciphertexts that the last party returned.
            true => self.ciphertexts(0, self.parties() - 1, RETURNED),
        }
    }
}

pub(super) const OPENING: u16 = 0xd9;
pub(super) const RETURNED: u16 = 0xdb;
pub(super) const LIST: u16 = 0xd0;
pub(super) const CORRECTIONS: u16 = 0x34;

pub(super) fn of_row(row: &[u8]) -> Vec<Ciphertext> {
    row.chunks_exact(Ciphertext::SIZE).map(|bytes| Ciphertext::get(bytes).unwrap()).collect()
}

fn points(ciphertext: &Ciphertext) -> [RistrettoPoint; 2] {
    let point = |part: &[u8]| CompressedRistretto(part.try_into().unwrap()).decompress().unwrap();
    let (first, second) = ciphertext.as_ref().split_at(32);
    [point(first), point(second)]
}

/// Returns c2 - key * c1, encoded.
pub(super) fn opened(ciphertext: &Ciphertext, key: &Scalar) -> Encoding {
    let [first, second] = points(ciphertext);
    (second - first * key).compress().0
}

/// Returns the elements of rows with these items.
pub(super) fn encoded<'a>(items: impl Iterator<Item = &'a [u8]>) -> Vec<Encoding> {
    let layout = Layout::<1>::new(MAX_ROW);
    assert_eq!(encoding::points(layout.width()), K);
    let mut rows = Vec::new();
    let mut n = 0;
    for item in items {
        let mut row = vec![0; layout.width()];
        layout.write([item], &mut row);
        rows.extend(row);
        n += 1;
    }
    encode(&encoding::encode(&rows, layout.width(), &vec![true; n])).to_vec()
}
