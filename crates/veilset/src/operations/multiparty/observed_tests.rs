//! Runs of several parties of which everything that a party sees can be looked at, and checks of what all parties but
//! one see together. A check says what is wrong, so that tests can have it fail.

use super::count::Count;
use super::intersect::{Intersect, directed};
use super::union::{Public, Union};
use crate::ahe::elgamal::{Ciphertext, Encoding, Scalar, unit};
use crate::channel::Wire;
use crate::context::Context;
use crate::equality::Equality;
use crate::equality::nibbles::Nibbles;
use crate::error::Result;
use crate::group::encoding;
use crate::group::ristretto255::encode;
use crate::hash::{ItemHash, SessionId, part};
use crate::hashed::Hashed;
use crate::hashing::cuckoo::Table;
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
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex};

/// What is wrong with what a coalition sees.
pub(super) type Check = std::result::Result<(), String>;

/// The bound on each set, and the most bytes of an item. A row is two elements.
pub(super) const BOUND: usize = 40;
pub(super) const MAX_ROW: usize = 30;
const K: usize = 2;

// ---- What a party notes.

/// Both rows of each bin.
type Offers = [Vec<Vec<u8>>; 2];

/// What a party has of the parts of its protocol: for each use, the other party and the values.
#[derive(Default)]
pub(super) struct Notes {
    /// Its shares in membership tests.
    pub(super) shares: Vec<(usize, Vec<bool>)>,
    /// What it compares in them: its w_b, or its s_b.
    pub(super) compared: Vec<(usize, Vec<u128>)>,
    /// The rows v_0 and v_1 that it offers.
    pub(super) offered: Vec<(usize, Offers)>,
    /// The rows that it gets.
    pub(super) got: Vec<(usize, Vec<Vec<u8>>)>,
    /// What it gets in a programmable OPRF at its items, and what it programs.
    pub(super) received: Vec<(usize, Vec<Value>)>,
    pub(super) programmed: Vec<(usize, Vec<Value>)>,
    /// What it gets from another party's function in a flawed variant.
    pub(super) evaluated: Vec<(usize, Vec<[u8; 32]>)>,
    /// Its keys of pairs in a flawed variant.
    pub(super) keys: Vec<(usize, [u8; 32])>,
}

/// The notes of a party, and who is at the other end of a session.
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

    /// The other party of this session.
    pub(super) fn peer(&self, cx: &Context) -> usize {
        self.sessions.iter().find(|(session, _)| *session == cx.session).unwrap().1
    }

    pub(super) fn note(&self, note: impl FnOnce(&mut Notes)) {
        note(&mut self.notes.lock().unwrap());
    }
}

/// A part of a protocol whose party notes what goes in and what comes out.
pub(super) struct Observed<P> {
    inner: P,
    pub(super) log: Arc<Log>,
}

impl<T> Observed<T> {
    /// These shares, noted.
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
        table: &Table,
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

/// The rows that `fill` writes.
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
        self.log.note(|notes| notes.received.push((self.log.peer(cx), values.to_vec())));
        Ok(values)
    }

    fn sender(
        &self,
        cx: &mut Context,
        inputs: &[Input],
        value: impl Fn(usize) -> Value + Sync,
        bounds: Bounds,
    ) -> Result<()> {
        // As far as they are sent.
        let sent = |i| {
            let mut value = value(i);
            value[bounds.bytes..].fill(0);
            value
        };
        let values = (0..inputs.len()).map(sent).collect();
        self.log.note(|notes| notes.programmed.push((self.log.peer(cx), values)));
        self.inner.sender(cx, inputs, value, bounds)
    }
}

// ---- Runs.

/// Membership tests that are observed, and what they compare.
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

/// The generator of a party in a run. Its first draw is the secret key.
pub(super) fn generator(number: u8, party: usize) -> Prng {
    Prng::from_seed(&[number, party as u8, 1, 55].repeat(8).try_into().unwrap())
}

/// Tag and body of each frame.
type Frames = Vec<(u16, Vec<u8>)>;

/// A run, and all that its parties have seen.
pub(super) struct Run<T> {
    pub(super) number: u8,
    pub(super) sets: Vec<ItemSet>,
    /// The frames: [to][from].
    pub(super) frames: Vec<Vec<Frames>>,
    pub(super) notes: Vec<Notes>,
    /// What the leader has in the end.
    pub(super) leader: T,
}

/// Runs all parties with these sets. No two runs of a test may have the same number.
pub(super) fn run<T: Send>(
    number: u8,
    sets: &[ItemSet],
    party: impl Fn(&mut Many, &Hashed, Parts) -> Result<Option<T>> + Sync,
) -> Run<Option<T>> {
    let (results, views) = run_many(sets.len(), number, |many| {
        let log = Log::new(many)?;
        *many.rng = generator(number, many.me);
        let result = party(many, &Hashed::new(&sets[many.me]), Parts::new(log.clone()))?;
        let notes = std::mem::take(&mut *log.notes.lock().unwrap());
        Ok((result, notes))
    });
    let (mut results, notes): (Vec<Option<T>>, Vec<Notes>) = results.into_iter().unzip();
    let frames = views.iter().map(|from| from.iter().map(|view| split_frames(view)).collect()).collect();
    Run { number, sets: sets.to_vec(), frames, notes, leader: results.swap_remove(0) }
}

/// What is public about the unions here.
pub(super) fn public(parties: usize) -> Public {
    Public { bounds: vec![BOUND; parties], max_row: MAX_ROW }
}

/// What the leader of a union gets: what only others have, sorted; or what went wrong at the end.
pub(super) type New = std::result::Result<Vec<Vec<u8>>, String>;

/// A union over these parts.
pub(super) fn union_of<T: Sspmt + Sync, M: MembershipOt + Sync>(
    many: &mut Many,
    set: &Hashed,
    (tests, transfer): (T, M),
) -> Result<Option<New>> {
    let public = public(many.parties());
    let sealed = Union { tests, transfer }.run(many, set, &public)?;
    Ok(sealed.map(|sealed| {
        let mut new: Vec<Vec<u8>> = match sealed.open(Confirmed(())) {
            Ok(new) => new.iter().map(<[u8]>::to_vec).collect(),
            Err(error) => return Err(error.to_string()),
        };
        new.sort();
        Ok(new)
    }))
}

pub(super) fn union(number: u8, sets: &[ItemSet]) -> Run<Option<New>> {
    run(number, sets, |many, set, parts| union_of(many, set, (parts.tests, parts.transfer)))
}

pub(super) fn count(number: u8, sets: &[ItemSet]) -> Run<Option<u64>> {
    run(number, sets, |many, set, parts| {
        let count = Count { tests: parts.tests, transfer: parts.transfer };
        let sealed = count.run(many, set, &vec![BOUND; many.parties()])?;
        sealed.map(|sealed| sealed.open(Confirmed(()))).transpose()
    })
}

pub(super) fn intersect(number: u8, sets: &[ItemSet]) -> Run<Option<Vec<bool>>> {
    run(number, sets, |many, set, parts| {
        let sealed = Intersect { opprf: parts.opprf }.run(many, set, &vec![BOUND; many.parties()])?;
        sealed.map(|sealed| sealed.open(Confirmed(()))).transpose()
    })
}

// ---- Keys and ciphertexts.

impl<T> Run<T> {
    pub(super) fn parties(&self) -> usize {
        self.sets.len()
    }

    /// All but one.
    pub(super) fn coalition(&self, honest: usize) -> impl Iterator<Item = usize> + use<T> {
        (0..self.parties()).filter(move |party| *party != honest)
    }

    /// The bodies of all frames with this tag from one party to another, in parts of `size` bytes.
    pub(super) fn parts(&self, to: usize, from: usize, tag: u16, size: usize) -> Vec<Vec<u8>> {
        let frames = self.frames[to][from].iter().filter(|frame| frame.0 == tag);
        frames.flat_map(|(_, body)| body.chunks_exact(size).map(<[u8]>::to_vec)).collect()
    }

    fn ciphertexts(&self, to: usize, from: usize, tag: u16) -> Vec<Ciphertext> {
        self.parts(to, from, tag, Ciphertext::SIZE)
            .iter()
            .map(|bytes| Ciphertext::get(bytes).unwrap())
            .collect()
    }

    /// The secret key of a party; it is the one whose public key the party has shown.
    pub(super) fn key(&self, party: usize) -> Scalar {
        let key = *unit(&mut generator(self.number, party));
        let other = (party + 1) % self.parties();
        assert_eq!(self.parts(other, party, OPENING, 32)[1], (G * key).compress().0);
        key
    }

    /// The sum of the secret keys of these parties.
    fn sum_of_keys(&self, parties: impl Iterator<Item = usize>) -> Scalar {
        parties.map(|party| self.key(party)).sum()
    }

    /// The parties whose keys a list is under that this party has sent in Shuffle&Decrypt.
    fn remaining(&self, sender: usize) -> impl Iterator<Item = usize> + use<T> {
        std::iter::once(0).chain(sender + 1..self.parties())
    }

    /// The list that a party has sent in Shuffle&Decrypt.
    fn list(&self, sender: usize) -> Vec<Ciphertext> {
        self.ciphertexts((sender + 1) % self.parties(), sender, LIST)
    }

    /// The list that P_1 begins with, or one that holds the same elements in the same order.
    fn first_list(&self) -> Vec<Ciphertext> {
        let leader = &self.notes[0];
        match leader.got.is_empty() {
            // A union: the rows of all owners, in their order.
            false => {
                let mut got: Vec<_> = leader.got.iter().collect();
                got.sort_by_key(|(peer, _)| *peer);
                got.iter().flat_map(|(_, rows)| rows.iter().flat_map(|row| of_row(row))).collect()
            }
            // A count: what the last party has returned.
            true => self.ciphertexts(0, self.parties() - 1, RETURNED),
        }
    }
}

const OPENING: u16 = 0xd9;
const RETURNED: u16 = 0xdb;
const LIST: u16 = 0xd0;
const CORRECTIONS: u16 = 0x34;

fn of_row(row: &[u8]) -> Vec<Ciphertext> {
    row.chunks_exact(Ciphertext::SIZE).map(|bytes| Ciphertext::get(bytes).unwrap()).collect()
}

fn points(ciphertext: &Ciphertext) -> [RistrettoPoint; 2] {
    let point = |part: &[u8]| CompressedRistretto(part.try_into().unwrap()).decompress().unwrap();
    let (first, second) = ciphertext.as_ref().split_at(32);
    [point(first), point(second)]
}

/// c2 less the multiple of c1 by this key.
pub(super) fn opened(ciphertext: &Ciphertext, key: &Scalar) -> Encoding {
    let [first, second] = points(ciphertext);
    (second - first * key).compress().0
}

/// The elements of rows with these items.
fn encoded<'a>(items: impl Iterator<Item = &'a [u8]>) -> Vec<Encoding> {
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

// ---- Checks.

/// All that is wrong.
fn all(checks: impl IntoIterator<Item = Check>) -> Check {
    let wrong: Vec<String> = checks.into_iter().filter_map(Check::err).collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
}

fn fail<T>(what: impl Into<String>) -> std::result::Result<T, String> {
    Err(what.into())
}

/// Adds all of these to what was seen, of which none may come twice.
fn distinct<T: Eq + std::hash::Hash>(
    what: &str,
    seen: &mut HashSet<T>,
    more: impl IntoIterator<Item = T>,
) -> Check {
    match more.into_iter().all(|value| seen.insert(value)) {
        true => Ok(()),
        false => fail(format!("equal: {what}")),
    }
}

/// That each of these bits is one in about half of the list. By Hoeffding's bound a fair bit fails with a probability
/// of 2 e^-32, or 2^-45.
fn fair(what: &str, list: &[impl AsRef<[u8]>], bits: std::ops::Range<usize>) -> Check {
    if list.len() < 200 {
        return fail(format!("only {} of {what}", list.len()));
    }
    for bit in bits {
        let ones = list.iter().filter(|bytes| bytes.as_ref()[bit / 8] >> (bit % 8) & 1 == 1).count();
        let most = 4.0 * (list.len() as f64).sqrt();
        if (ones as f64 - list.len() as f64 / 2.0).abs() > most {
            return fail(format!("frequency: bit {bit} of {what}, {ones} of {}", list.len()));
        }
    }
    Ok(())
}

/// That lengths and tags of all frames are the same in all runs.
pub(super) fn lengths<T>(runs: &[Run<T>]) -> Check {
    let of = |run: &Run<T>| -> Vec<Vec<Vec<(u16, usize)>>> {
        let of_one =
            |frames: &Vec<(u16, Vec<u8>)>| frames.iter().map(|(tag, body)| (*tag, body.len())).collect();
        run.frames.iter().map(|from| from.iter().map(of_one).collect()).collect()
    };
    match runs.iter().all(|run| of(run) == of(&runs[0])) {
        true => Ok(()),
        false => fail("lengths"),
    }
}

/// That no block of 16 bytes is sent twice, in one run or in several. What a party tells all others alike is its
/// commitment, and its seed and key. All other frames go from an honest party to the coalition, or are the coalition's
/// own: with one honest party, there are no others.
pub(super) fn wire<T>(runs: &[Run<T>]) -> Check {
    let (mut seen, mut twice) = (HashSet::new(), BTreeSet::new());
    for (tag, body) in runs.iter().flat_map(|run| run.frames.iter().flatten().flatten()) {
        for block in body.as_chunks::<16>().0 {
            // In the malicious form of the OT extension, the choices of an extra group are u_0, so c_0 is 0 there.
            let extra = *tag == CORRECTIONS && *block == [0; 16];
            if ![0xd8, OPENING].contains(tag) && !extra && !seen.insert(block) {
                twice.insert(*tag);
            }
        }
    }
    match twice.is_empty() {
        true => Ok(()),
        false => fail(format!("equal: blocks of messages {twice:#x?}")),
    }
}

/// What is compared with an honest party, w_b or s_b, and what its function gives: each random and different from all
/// others.
pub(super) fn compared<T>(runs: &[Run<T>], honest: usize) -> Check {
    let (mut seen, mut all, mut values) = (HashSet::new(), Vec::new(), HashSet::new());
    for run in runs {
        for party in run.coalition(honest) {
            for (_, strings) in run.notes[party].compared.iter().filter(|(peer, _)| *peer == honest) {
                distinct("compared strings", &mut seen, strings.iter().copied())?;
                all.extend(strings.iter().map(|string| string.to_le_bytes()));
            }
            for (_, got) in run.notes[party].evaluated.iter().filter(|(peer, _)| *peer == honest) {
                distinct("values of an honest party's function", &mut values, got.iter().copied())?;
            }
        }
    }
    // Strings have at least as many random bits.
    fair("compared strings", &all, 0..40)
}

/// That a coalition's shares are random, all of them, those of members, and those of others; and so is what is opened
/// for equality.
pub(super) fn shares<T>(runs: &[Run<T>], honest: usize) -> Check {
    let (mut all, mut split) = (Vec::new(), [Vec::new(), Vec::new()]);
    for run in runs {
        for party in run.coalition(honest) {
            let with = |of: usize, peer: usize| {
                let notes = run.notes[of].shares.iter().filter(move |note| note.0 == peer);
                notes.flat_map(|note| note.1.iter().copied())
            };
            for (own, theirs) in with(party, honest).zip(with(honest, party)) {
                all.push([u8::from(own)]);
                split[usize::from(own ^ theirs)].push([u8::from(own)]);
            }
        }
    }
    fair("shares", &all, 0..1)?;
    for (which, shares) in ["shares of others", "shares of members"].into_iter().zip(&split) {
        if shares.len() >= 200 {
            fair(which, shares, 0..1)?;
        }
    }
    for (tag, what) in [(0xe0, "tables"), (0xe1, "bits opened"), (0xe2, "bits opened by the sender")] {
        let bytes = runs.iter().flat_map(|run| {
            let from_honest = run.coalition(honest).flat_map(|to| run.parts(to, honest, tag, 1));
            from_honest.collect::<Vec<_>>()
        });
        let bytes: Vec<Vec<u8>> = bytes.collect();
        // Some parties are the sender only, or the receiver.
        if !bytes.is_empty() {
            fair(what, &bytes, 0..8)?;
        }
    }
    Ok(())
}

/// That the ciphertexts that a coalition receives look fresh to it. It knows its own, and all secret keys but one.
pub(super) fn ciphertexts<T>(runs: &[Run<T>], honest: usize) -> Check {
    let mut bytes = Vec::new();
    for run in runs {
        let n = run.parties();
        let missing = run.sum_of_keys(run.coalition(honest));
        // Under the joint key of all.
        let mut closed = Vec::new();
        let mut own = Vec::new();
        let mut received = Vec::new();
        for party in run.coalition(honest) {
            let notes = &run.notes[party];
            let got = notes.got.iter().filter(|(peer, _)| *peer == honest);
            closed.extend(got.flat_map(|(_, rows)| rows.iter().flat_map(|row| of_row(row))));
            closed.extend(run.ciphertexts(party, honest, RETURNED));
            let offered = notes.offered.iter().flat_map(|(_, offers)| offers.iter().flatten());
            own.extend(offered.flat_map(|row| of_row(row)));
            own.extend((0..n).flat_map(|to| run.ciphertexts(to, party, RETURNED)));
            own.extend(run.list(party));
        }
        match honest {
            0 => closed.extend(run.list(0)),
            _ => received.extend(run.list(honest)),
        }
        received.extend(closed.iter().copied());
        // Both parts of each are different from all others: from those that came, and from those that went.
        let parts = |list: &[Ciphertext]| -> Vec<Encoding> {
            list.iter().flat_map(|c| c.as_ref().as_chunks::<32>().0.to_vec()).collect()
        };
        let mut seen: HashSet<Encoding> = parts(&own).into_iter().collect();
        distinct("parts of ciphertexts", &mut seen, parts(&received))?;
        bytes.extend(parts(&received));
        // Under all keys of the coalition, a message under the key that is missing is like none that it knows.
        seen.extend([[0; 32], G.compress().0]);
        let items = run.coalition(honest).flat_map(|party| run.sets[party].iter()).collect::<BTreeSet<_>>();
        seen.extend(encoded(items.into_iter()));
        let opened: Vec<Encoding> = closed.iter().map(|c| opened(c, &missing)).collect();
        distinct("ciphertexts under the keys of the coalition", &mut seen, opened.iter().copied())?;
        bytes.extend(opened);
    }
    // The lowest and the highest bit of an encoding are 0.
    fair("parts of ciphertexts", &bytes, 1..255)
}

/// The elements that a coalition with P_1 sees when an honest client has passed the list on, in rows of `k`.
fn passed_on<T>(run: &Run<T>, honest: usize, k: usize) -> Vec<Vec<Encoding>> {
    let key = run.sum_of_keys(run.remaining(honest));
    let all: Vec<Encoding> = run.list(honest).iter().map(|c| opened(c, &key)).collect();
    let mut rows: Vec<Vec<Encoding>> = all.chunks(k).map(<[_]>::to_vec).collect();
    rows.sort();
    rows
}

/// That what passed an honest client of a union is a function of the result: a row for each item of the union outside
/// X_1, and nothing in all others. The same in all runs, in which the result is the same.
pub(super) fn rows_follow_from_the_result<T>(runs: &[Run<T>], honest: usize) -> Check {
    if honest == 0 {
        return Ok(());
    }
    for run in runs {
        let new = run.sets[1..].iter().flat_map(|set| set.iter());
        let new: BTreeSet<&[u8]> = new.filter(|item| !run.sets[0].iter().any(|own| own == *item)).collect();
        let rows = passed_on(run, honest, K);
        let live: Vec<_> = rows.iter().filter(|row| **row != [[0; 32]; K]).cloned().collect();
        let mut expected: Vec<_> = encoded(new.into_iter()).chunks(K).map(<[_]>::to_vec).collect();
        expected.sort();
        if live.len() != expected.len() {
            return fail(format!("rows: {} where the result has {}", live.len(), expected.len()));
        }
        if live != expected {
            return fail("rows: others than the result has");
        }
    }
    Ok(())
}

/// That what passed an honest client of a count is the identity for each item of all, and otherwise an element that is
/// equal to no other and to no multiple of the generator that P_1 knows.
pub(super) fn others_are_unknown<T>(runs: &[Run<T>], honest: usize, known: &[Encoding]) -> Check {
    if honest == 0 {
        return Ok(());
    }
    for run in runs {
        let rows = passed_on(run, honest, 1).concat();
        let all = run.sets[0]
            .iter()
            .filter(|item| run.sets[1..].iter().all(|set| set.iter().any(|other| other == *item)));
        let identities = rows.iter().filter(|row| **row == [0; 32]).count();
        if identities != all.count() {
            return fail(format!("rows: {identities} of the identity"));
        }
        let mut seen: HashSet<Encoding> = known.iter().copied().chain([G.compress().0]).collect();
        distinct("opened elements", &mut seen, rows.into_iter().filter(|row| *row != [0; 32]))?;
    }
    Ok(())
}

/// That a party permutes the rows: of those that can be told apart, with all keys, half or more are elsewhere. `k`
/// ciphertexts are a row.
pub(super) fn permuted<T>(runs: &[Run<T>], party: usize, k: usize) -> Check {
    let (mut stayed, mut known) = (0, 0);
    for run in runs {
        let (before, key) = match party {
            0 => (run.first_list(), run.sum_of_keys(0..run.parties())),
            _ => (run.list(party - 1), run.sum_of_keys(run.remaining(party - 1))),
        };
        let places = |list: &[Ciphertext], key: &Scalar| -> HashMap<Encoding, Vec<usize>> {
            let mut places = HashMap::<_, Vec<usize>>::new();
            for (at, row) in list.chunks(k).enumerate() {
                places.entry(opened(&row[0], key)).or_default().push(at);
            }
            places
        };
        let before = places(&before, &key);
        let after = places(&run.list(party), &run.sum_of_keys(run.remaining(party)));
        // Of a count, only where the identities are can be told; of a union, each row but these.
        let told = before.iter().filter(|(element, _)| (**element == [0; 32]) == (k == 1));
        let stays: Vec<bool> = told.map(|(element, at)| after.get(element) == Some(at)).collect();
        (stayed, known) = (stayed + stays.iter().filter(|stays| **stays).count(), known + stays.len());
    }
    match 2 * stayed <= known {
        true => Ok(()),
        false => fail(format!("order: {stayed} of {known} rows stay")),
    }
}

/// All that is checked of a union, in runs that differ in what the result does not say.
pub(super) fn union_is_private<T>(runs: &[Run<T>], honest: usize) -> Check {
    all([
        lengths(runs),
        wire(runs),
        compared(runs, honest),
        shares(runs, honest),
        ciphertexts(runs, honest),
        rows_follow_from_the_result(runs, honest),
        permuted(runs, honest, K),
    ])
}

/// All that is checked of a count. `known` are elements that P_1 would recognise.
pub(super) fn count_is_private<T>(runs: &[Run<T>], honest: usize, known: &[Encoding]) -> Check {
    all([
        lengths(runs),
        wire(runs),
        compared(runs, honest),
        shares(runs, honest),
        ciphertexts(runs, honest),
        others_are_unknown(runs, honest, known),
        permuted(runs, honest, 1),
    ])
}

/// A value as a number, to look for sums that are 0.
fn number(value: &[u8]) -> u128 {
    let mut wide = [0; 16];
    wide[..value.len()].copy_from_slice(value);
    u128::from_le_bytes(wide)
}

/// How many of these are sums of others.
fn dependent(values: &[u128]) -> usize {
    let mut basis: Vec<u128> = Vec::new();
    for value in values {
        let rest = basis.iter().fold(*value, |rest, own| rest.min(rest ^ own));
        if rest != 0 {
            basis.push(rest);
            basis.sort_unstable_by(|a, b| b.cmp(a));
        }
    }
    values.len() - basis.len()
}

/// The value of a pair's key at an item, in a flawed variant.
pub(super) fn of_pair(key: &[u8; 32], item: &ItemHash) -> Value {
    crate::hash::Domain::without_session("coalition tests, zero share").hash(&[key, item.as_bytes()])
}

/// All that is checked of an intersection. At each item, of what the coalition has there, no sums are 0 but those that
/// it has made itself, and one for each item of the result.
pub(super) fn intersection_is_private<T>(runs: &[Run<T>], honest: usize) -> Check {
    let sums = runs.iter().flat_map(|run| {
        let items: BTreeSet<&[u8]> = run.coalition(honest).flat_map(|party| run.sets[party].iter()).collect();
        items.into_iter().map(|item| at_item(run, honest, item)).find(Check::is_err)
    });
    all([lengths(runs), wire(runs), values(runs, honest)].into_iter().chain(sums))
}

/// That what a coalition gets from an honest party in programmable OPRFs is random, and different everywhere.
fn values<T>(runs: &[Run<T>], honest: usize) -> Check {
    let (mut seen, mut bytes) = (HashSet::new(), Vec::new());
    for run in runs {
        for party in run.coalition(honest) {
            for (_, values) in run.notes[party].received.iter().filter(|(peer, _)| *peer == honest) {
                distinct("values of a programmable OPRF", &mut seen, values.iter().copied())?;
                // Values have at least as many random bytes.
                bytes.extend(values.iter().flat_map(|value| &value[..5]).map(|byte| [*byte]));
            }
        }
    }
    // The leader programs nothing.
    match honest {
        0 => Ok(()),
        _ => fair("values of a programmable OPRF", &bytes, 0..8),
    }
}

fn at_item<T>(run: &Run<T>, honest: usize, item: &[u8]) -> Check {
    let place = |party: usize| run.sets[party].iter().position(|own| own == item);
    let (mut values, mut made) = (Vec::new(), 0);
    for party in run.coalition(honest) {
        let notes = &run.notes[party];
        if let Some(at) = place(party) {
            // What another of the coalition has programmed there is known as that.
            let from = |peer: usize| peer == honest || place(peer).is_none();
            let received = notes.received.iter().filter(|(peer, _)| from(*peer));
            values.extend(received.map(|(_, values)| number(&values[at])));
            values.extend(notes.programmed.iter().map(|(_, values)| number(&values[at])));
            // T_j(x) is the sum of what a client has.
            made += usize::from(party > 0);
        }
        let keys = notes.keys.iter().filter(|(peer, _)| *peer == honest || *peer > party);
        values.extend(keys.map(|(_, key)| number(&of_pair(key, &ItemHash::of_item(item)))));
    }
    let all = (0..run.parties()).all(|party| place(party).is_some());
    let expected = made + usize::from(honest > 0 && all);
    match dependent(&values) == expected {
        true => Ok(()),
        false => fail(format!("sums: {} at an item where {expected} are known", dependent(&values))),
    }
}
