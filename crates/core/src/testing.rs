//! Utilities for the tests of all protocols: sets, runs of two or more parties, and their views. The feature `test-util`
//! exports them for the tests of other crates.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use crate::channel::clock::Moment;
use crate::channel::{Channel, Mesh, Recording, Sink, Source};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::group::Group;
use crate::group::curve25519::{Curve25519, Key, map_and_raise};
use crate::group::raised::Offline;
use crate::hash::SessionId;
use crate::hashed::HashedSet;
use crate::item::{ItemSet, Items};
use crate::many::{Many, seat};
use crate::operations::intersect::dh_psi;
use crate::operations::sum::Modulus;
use crate::operations::{ALL, Confirmed, Operation, Rows, Terms};
use crate::params::LAMBDA;
use crate::protocols::{self, CM20, Choice, DC17, KRTW19, KRTW19_PLAIN, Protocol};
use crate::rng::Prng;
use crate::secret::Secrets;
use crate::threads::Threads;
use std::collections::VecDeque;
use std::io::Read;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Instant;
#[cfg(test)]
use veilset_testing::Draw;

/// The seeds of the two parties.
pub const SEEDS: [[u8; 32]; 2] = [[101; 32], [102; 32]];

/// A session for tests in which its id does not matter.
pub const ANY_SESSION: SessionId = SessionId::of([100; 32]);

/// Sizes of the two sets at which every protocol is tested: none, one, unequal, and around one or two frames. The first
/// tier has only one of those around frames.
#[cfg(test)]
pub fn sizes(frame: usize) -> Vec<(usize, usize)> {
    let small = [(0, 0), (0, 3), (3, 0), (1, 1), (1, 40), (57, 33)];
    let frames = [(frame - 1, 2), (3, frame + 1), (2 * frame + 1, 20)];
    // The test runner names the thread of each test.
    let thread = std::thread::current();
    let mut draw = Draw::new(thread.name().unwrap_or_default());
    small.into_iter().chain(draw.some(1, frames)).collect()
}

/// Terms whose rows are large enough for the items of [`overlapping`].
pub const TERMS: Terms = Terms {
    payload: false,
    max_row: MAX_ROW,
    both: false,
    modulus: Modulus::Bits64,
    min_count: 0,
    malicious_sender: false,
    reveal_count: false,
    shared_values: false,
    several: false,
    bare: false,
    filter: None,
    shards: 0,
};
/// The maximum length of a row.
pub const MAX_ROW: usize = 3050;

/// An operation, the choice of its protocol, and its terms.
pub type Kind = (&'static Operation, Choice, Terms);

/// Every combination: each operation with each protocol in each of its groups, for the receiver or both, with and
/// without payload; cm20 in both variants; share also with values. Where the count is revealed, as in a union with
/// sigma-dh, only the receiver gets the result.
pub fn kinds() -> Vec<Kind> {
    let mut kinds = Vec::new();
    for operation in ALL {
        let protocols = protocols::ALL.into_iter().filter(|p| p.computes(operation));
        for choice in protocols.flat_map(Protocol::choices) {
            for (both, payload) in [(false, false), (false, true), (true, false), (true, true)] {
                let rows = operation.uses.rows != Rows::None;
                let reveal_count = choice.protocol.offer(operation).is_some_and(|offer| offer.reveals_count);
                if (!payload || rows) && (!both || operation.uses.both && !reveal_count) {
                    let terms = Terms { both, payload, reveal_count, ..TERMS };
                    kinds.push((operation, choice, terms));
                    if choice.protocol == &CM20 {
                        kinds.push((operation, choice, Terms { malicious_sender: true, ..terms }));
                    }
                    if operation.uses.shares {
                        kinds.push((operation, choice, Terms { shared_values: true, ..terms }));
                    }
                }
            }
        }
    }
    kinds
}

/// Returns these sizes, reduced for protocols that are slow or take only small sets, so that no run takes much longer than
/// the others.
pub fn fitting((operation, choice, _): &Kind, sizes: [usize; 2]) -> [usize; 2] {
    let largest = choice.protocol.offer(operation).unwrap().largest;
    let most = if choice.protocol == &DC17 { 400 } else { usize::MAX };
    [0, 1].map(|i| sizes[i].min(largest[i] / 8).min(most))
}

/// Returns whether the protocol is KRTW19, in either form. Its union takes up to about a thousand base OTs per run.
pub fn is_krtw19(protocol: &'static Protocol) -> bool {
    [&KRTW19, &KRTW19_PLAIN].contains(&protocol)
}

/// Returns whether the protocol is available only with a feature that is not enabled by default.
pub fn is_optional(protocol: &'static Protocol) -> bool {
    protocol.name == "sigma-fhe"
}

/// Returns two sets that share about `overlap` of the smaller one. Items are binary, of up to about 40 bytes; one in a
/// thousand has 3000.
pub fn overlapping(n_y: usize, n_x: usize, overlap: f64) -> (ItemSet, ItemSet) {
    let mut rng = Prng::from_seed(&[77; 32]);
    let common = (n_y.min(n_x) as f64 * overlap).round() as usize;
    let mut item = |i: usize| {
        let mut item = format!("{i}:").into_bytes();
        item.resize(item.len() + rng.below(34) as usize, 0);
        let start = item.iter().position(|&b| b == b':').unwrap_or(0) + 1;
        rng.fill(&mut item[start..]);
        if i % 1000 == 7 {
            item.resize(3000, i as u8);
        }
        item
    };
    let all: Vec<Vec<u8>> = (0..n_y + n_x - common).map(&mut item).collect();
    // The common items are last in Y and first in X.
    (all[..n_y].iter().collect(), all[n_y - common..].iter().collect())
}

/// The bytes received by the first and by the second party, with the headers of frames.
pub struct Views(pub [Vec<u8>; 2]);

impl Views {
    /// Returns tag and length of each frame that `party` received.
    pub fn frames(&self, party: usize) -> Vec<(u16, usize)> {
        split_frames(&self.0[party]).into_iter().map(|(tag, body)| (tag, body.len())).collect()
    }
}

/// Returns tag and body of each frame of a view.
pub fn split_frames(mut view: &[u8]) -> Vec<(u16, Vec<u8>)> {
    let mut frames = Vec::new();
    while let Some((head, rest)) = view.split_at_checked(6) {
        let len = u32::from_le_bytes([head[2], head[3], head[4], head[5]]) as usize;
        frames.push((u16::from_le_bytes([head[0], head[1]]), rest[..len].to_vec()));
        view = &rest[len..];
    }
    frames
}

/// Returns the bodies of all frames with this tag, in parts of `size` bytes.
pub fn parts(view: &[u8], tag: u16, size: usize) -> Vec<Vec<u8>> {
    let frames = split_frames(view).into_iter().filter(|frame| frame.0 == tag);
    frames.flat_map(|(_, body)| body.chunks(size).map(<[u8]>::to_vec).collect::<Vec<_>>()).collect()
}

/// Raises a set with a key, given with its inverse, so that the visible values of the set are known, and equal in
/// several runs.
pub fn under(set: &mut HashedSet, (key, inverse): (Key, Key)) {
    let points = map_and_raise(set.own(), &key).unwrap();
    let points = Secrets::from(points.iter().flat_map(|p| *p.as_bytes()).collect::<Vec<_>>());
    let [key, inverse] = [key, inverse].map(|key| Secrets::from(key.as_bytes().to_vec()));
    set.take_over(Offline { group: Curve25519::NAME, key, inverse, points });
}

/// Asserts that each of the first `bits` bits is a one in about half of these hundreds of values.
pub fn every_bit_is_random(list: &[impl AsRef<[u8]>], bits: usize) {
    assert!(list.len() >= 200);
    for bit in 0..bits {
        let ones = list.iter().filter(|bytes| bytes.as_ref()[bit / 8] >> (bit % 8) & 1 == 1).count();
        // Seven standard deviations.
        let most = 3.5 * (list.len() as f64).sqrt();
        assert!((ones as f64 - list.len() as f64 / 2.0).abs() <= most, "bit {bit}: {ones} of {}", list.len());
    }
}

/// Asserts that each byte differs among these n values: a random one is the same in all with probability 256^(1 - n).
pub fn every_byte_differs(list: &[impl AsRef<[u8]>]) {
    for (at, byte) in list[0].as_ref().iter().enumerate() {
        assert!(list.iter().any(|other| other.as_ref()[at] != *byte), "byte {at}");
    }
}

/// Returns the position of each of `sent` in `known`, which contains all of them.
pub fn places<T: PartialEq>(known: &[T], sent: &[T]) -> Vec<usize> {
    sent.iter().map(|s| known.iter().position(|k| k == s).unwrap()).collect()
}

/// Asserts that two orders of 0..n are neither ascending nor equal: at most one in twenty positions is unchanged.
pub fn are_random_orders(orders: [&[usize]; 2]) {
    let n = orders[0].len();
    let stay = |pairs: &mut dyn Iterator<Item = (usize, usize)>| pairs.filter(|(a, b)| a == b).count();
    for order in orders {
        let mut sorted = order.to_vec();
        sorted.sort_unstable();
        assert!(n >= 200 && sorted.into_iter().eq(0..n));
        assert!(stay(&mut order.iter().copied().enumerate()) <= n / 20, "the order of the set shows");
    }
    let same = stay(&mut orders[0].iter().copied().zip(orders[1].iter().copied()));
    assert!(same <= n / 20, "the order is the same in both runs");
}

/// Returns the result of a protocol whose peer sends only these frames, and keeps its receiving half open.
pub fn with_frames<T>(frames: &[(u16, &[u8])], run: impl FnOnce(&mut Context) -> Result<T>) -> Result<T> {
    let (mut peer, mut ch) = Channel::pair();
    for (tag, body) in frames {
        peer.tx.send_bytes(crate::channel::Message::new(*tag, "forged"), body).unwrap();
    }
    let (sink, _listening) = peer.into_halves();
    drop(sink);
    run(&mut Context::new(&mut ch, &ANY_SESSION, &mut Prng::from_seed(&SEEDS[0])))
}

/// Flips the highest bit of the body's byte `at`, if any, in all frames whose tag has this low byte.
pub struct Garble {
    pub sink: Box<dyn Sink>,
    pub tag: u8,
    pub at: Option<usize>,
}

impl Sink for Garble {
    fn send(&mut self, mut frame: Vec<u8>) -> Result<()> {
        if let (true, Some(at)) = (frame[0] == self.tag, self.at) {
            frame[6 + at] ^= 0x80;
        }
        self.sink.send(frame)
    }
}

/// A connection that breaks after `after` more frames were sent.
pub struct Cut {
    pub sink: Box<dyn Sink>,
    pub after: usize,
}

impl Cut {
    /// The error of sending over the broken connection.
    pub fn error() -> Error {
        Error::Network("connection reset".into())
    }
}

impl Sink for Cut {
    fn send(&mut self, frame: Vec<u8>) -> Result<()> {
        self.after = self.after.checked_sub(1).ok_or_else(Cut::error)?;
        self.sink.send(frame)
    }
}

/// A recording that can be read while it grows.
#[derive(Clone, Default)]
pub struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    pub fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }
}

impl std::io::Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Context<'_> {
    /// Returns this context on other threads, with the default exponent [`LAMBDA`].
    pub fn on<'b>(&'b mut self, threads: &'b Threads) -> Context<'b> {
        Context { ch: self.ch, session: self.session, rng: self.rng, exponent: LAMBDA, threads }
    }

    /// Replaces the context's generator with this one.
    pub fn under(&mut self, rng: Prng) -> &mut Self {
        *self.rng = rng;
        self
    }
}

/// Runs both parties in a session, over a bounded in-memory channel with fixed seeds; returns results and views.
pub fn run_pair<A: Send, B: Send>(
    session: &SessionId,
    first: impl FnOnce(&mut Context) -> Result<A> + Send,
    second: impl FnOnce(&mut Context) -> Result<B> + Send,
) -> ((A, B), Views) {
    let (mut first, mut second) = (Some(first), Some(second));
    let (mut a, mut b) = (None, None);
    let views = run_two(session, &mut |cx| keep(&mut a, first.take().map(|first| first(cx))), &mut |cx| {
        keep(&mut b, second.take().map(|second| second(cx)))
    });
    ((a.unwrap(), b.unwrap()), views)
}

fn keep<T>(place: &mut Option<T>, result: Option<Result<T>>) -> Result<()> {
    *place = result.transpose()?;
    Ok(())
}

/// One party of a run.
type Half<'p> = &'p mut (dyn FnMut(&mut Context) -> Result<()> + Send);

/// [`run_pair`], compiled once for all of its hundreds of callers.
fn run_two(session: &SessionId, first: Half<'_>, second: Half<'_>) -> Views {
    let (mut a, mut b) = Channel::pair();
    let seen = [Shared::default(), Shared::default()];
    a.record(Recording::to_writer(seen[0].clone()));
    b.record(Recording::to_writer(seen[1].clone()));
    let results = std::thread::scope(|s| {
        let first =
            s.spawn(move || first(&mut Context::new(&mut a, session, &mut Prng::from_seed(&SEEDS[0]))));
        let second = second(&mut Context::new(&mut b, session, &mut Prng::from_seed(&SEEDS[1])));
        drop(b);
        (first.join().unwrap(), second)
    });
    match results {
        (Ok(()), Ok(())) => Views(seen.map(|s| s.bytes())),
        (a, b) => panic!("{:?} / {:?}", a.err(), b.err()),
    }
}

/// Runs all parties of a run, each on its own thread, over bounded in-memory channels with fixed seeds. Returns each
/// party's result, and for each party the bytes it received from each other.
pub fn run_many<T: Send>(
    n: usize,
    run: u8,
    step: impl Fn(&mut Many) -> Result<T> + Sync,
) -> (Vec<T>, Vec<Vec<Vec<u8>>>) {
    let mut meshes = Mesh::in_memory(n);
    let seen = vec![vec![(); n]; n].into_iter().map(|row| row.iter().map(|()| Shared::default()).collect());
    let seen: Vec<Vec<Shared>> = seen.collect();
    for (mesh, seen) in meshes.iter_mut().zip(&seen) {
        for (other, seen) in seen.iter().enumerate() {
            // A party has no channel to itself.
            if let Some(channel) = mesh.channel(seat(other)) {
                channel.record(Recording::to_writer(seen.clone()));
            }
        }
    }
    let results = run_meshes(meshes, run, step);
    (results, seen.iter().map(|row| row.iter().map(Shared::bytes).collect()).collect())
}

/// Runs all parties of a run over these meshes, as [`run_many`] does. Returns each party's result.
pub fn run_meshes<T: Send>(
    meshes: Vec<Mesh>,
    run: u8,
    step: impl Fn(&mut Many) -> Result<T> + Sync,
) -> Vec<T> {
    let n = meshes.len();
    let party = |me: usize, mut mesh: Mesh| {
        let session = SessionId::of([run; 32]);
        let pairs = (0..n).map(|other| match other == me {
            true => session,
            false => SessionId::of(
                [run, 1, me.min(other) as u8, me.max(other) as u8].repeat(8).try_into().unwrap(),
            ),
        });
        let (pairs, threads) = (pairs.collect(), Threads::global());
        let rng = &mut Prng::from_seed(&[run, me as u8].repeat(16).try_into().unwrap());
        let result = step(&mut Many { me, mesh: &mut mesh, pairs, session, rng, exponent: LAMBDA, threads });
        mesh.finish(result)
    };
    let results = std::thread::scope(|s| {
        let parties = meshes.into_iter().enumerate().map(|(me, mesh)| {
            s.spawn({
                let party = &party;
                move || party(me, mesh)
            })
        });
        let parties: Vec<_> = parties.collect();
        parties.into_iter().map(|party| party.join().unwrap()).collect::<Vec<_>>()
    });
    let results = results.into_iter().enumerate().map(|(me, result)| match result {
        Ok(result) => result,
        Err(error) => panic!("party {me}: {error}"),
    });
    results.collect()
}

/// A transport that counts the rounds of its messages with logical clocks (`channel/clock.rs`). Both parties must run
/// on new threads.
pub struct Rounds(Arc<Mutex<Moment>>);

impl Rounds {
    /// Returns two connected channels, and the counter of their rounds.
    pub fn pair() -> (Rounds, [Channel; 2]) {
        let latest = Arc::<Mutex<Moment>>::default();
        let [there, back] = [(); 2].map(|()| mpsc::channel());
        let end = |to, from| {
            let sink = Stamping { to, latest: latest.clone() };
            Channel::from_halves(Box::new(sink), Box::new(Stamped { from, frame: VecDeque::new() }))
        };
        let channels = [end(there.0, back.1), end(back.0, there.1)];
        (Rounds(latest), channels)
    }

    /// Returns the number of rounds until the last message arrived.
    pub fn count(&self) -> usize {
        self.0.lock().unwrap().rounds()
    }
}

struct Stamping {
    to: mpsc::Sender<(Vec<u8>, Moment)>,
    latest: Arc<Mutex<Moment>>,
}

impl Sink for Stamping {
    fn send(&mut self, frame: Vec<u8>) -> Result<()> {
        let comes = Moment::now().next();
        let mut latest = self.latest.lock().unwrap();
        *latest = comes.max(*latest);
        self.to.send((frame, comes)).map_err(|_| Error::Network("the other party has left".into()))
    }
}

struct Stamped {
    from: mpsc::Receiver<(Vec<u8>, Moment)>,
    frame: VecDeque<u8>,
}

impl Source for Stamped {
    fn recv(&mut self, mut out: &mut [u8], _: Option<Instant>) -> Result<()> {
        while !out.is_empty() {
            if self.frame.is_empty() {
                let come = self.from.recv().map_err(|_| Error::Network("the other party has left".into()));
                let (frame, moment) = come?;
                moment.reach();
                self.frame = frame.into();
            }
            let n = self.frame.read(out).unwrap();
            out = &mut out[n..];
        }
        Ok(())
    }
}

/// Runs the receiver of dh-psi over Curve25519 on its own. Returns the positions of the matches.
pub fn dh_psi_receiver(cx: &mut Context, y: &HashedSet, n_x: usize, terms: &Terms) -> Result<Vec<u32>> {
    let matching = dh_psi::receiver::<Curve25519>(cx, y, n_x, terms)?;
    matching.open(Confirmed::for_tests()).map(|matching| matching.positions)
}

/// Runs the sender of dh-psi over Curve25519 on its own.
pub fn dh_psi_sender(
    cx: &mut Context,
    x: &HashedSet,
    payloads: &Items,
    n_y: usize,
    terms: &Terms,
) -> Result<()> {
    dh_psi::sender::<Curve25519>(cx, x, payloads, n_y, terms).map(|_| ())
}
