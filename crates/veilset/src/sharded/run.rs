//! A job: the run on one set, cut into shards that are run one after another over one connection.
//!
//! ```text
//! R->S  commitment      to a seed                    } only where the job begins: a job that is resumed has its key
//! S->R  seed            of the sender                }
//! R->S  seed            of the receiver, opened      }
//! both  kept            the shards whose results are kept
//!       then for each shard that one side or the other lacks:
//! both    the protocol, on the items that the key puts into this shard, padded to a bound
//! both    confirmation
//! ```
//!
//! A keyed hash puts each item into a shard. The key is drawn by both when both sets are fixed, so nobody can choose items
//! that crowd one shard. All shards of a side are padded to the same bound ([`crate::params::shards`]), which follows from the
//! announced size. A shard that is larger ends the job; that has probability at most 2^-40.
//!
//! *What a job shows.* The sizes of all messages follow from the announced sizes. The receiver of an intersection learns the
//! items that match, and computes itself which of them are in which shard. Of all other items it learns only how many a
//! shard has at most. The receiver of a union gets the sender's new items, by shard. All other rows look the same to it,
//! whether they match or are dummies: the dummies match too, because it inserts them
//! ([`Dummies::Listed`](crate::hashed::Dummies)), or count as the bottom item
//! ([`InBins`](crate::membership::InBins)). So a job shows what one run shows, and no more. In count and sum each shard
//! would show a number: P of them where one run shows one. So they are refused.
//!
//! *Time.* A result is opened and kept while the next shards run, and that of the last after the end was confirmed: so its time
//! does not show, unless it takes longer than two shards. All hashes and dummies that the announced size has are cut and
//! copied, whatever is behind them. Only the items of the first shard are copied while the peer waits.
//!
//! *What is wrong with a result* is kept in its place, and told when the job is complete and the peer has left. Otherwise a peer
//! would see in whether the job goes on which of its rows were read. A union's new items must belong to their shard, and there
//! cannot be more of them, or more matches, than the peer announced items.

use crate::channel::{Channel, Message};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::hash::{Domain, ItemHash, SessionId};
use crate::hashed::HashedSet;
use crate::item::Items;
use crate::net::{Connection, Fingerprint};
use crate::operations::intersect::Matching;
use crate::operations::union::rows::New;
use crate::operations::{Announced, Confirmed, Learned, Operation, Role, Sealed, Task};
pub use crate::params::shards::bound;
use crate::protocols::{self, Choice, Protocol};
use crate::rng::Prng;
use crate::secret::{Secret, Secrets};
use crate::session::run::{Request, finish};
use crate::session::stages::{BETWEEN, CONFIRMING, CUTTING, SETUP};
use crate::session::{Party, Proposal, Spec, confirm};
use crate::sharded::disk::{DiskSet, Source};
use crate::sharded::folder::Attempts;
use crate::spelling::{MAX_PEER_ITEMS, PAD_TO, PROTOCOL, SHARDS};
use crate::threads;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, ScopedJoinHandle};

/// The shards that a job has under way at most: one makes its set, one runs, the others open and keep their results.
const AT_ONCE: usize = 4;

/// The most shards of a job.
pub const MAX_SHARDS: u32 = 1 << 14;

const COMMITMENT: Message<[u8; 32]> = Message::new(12, "R->S  commitment to a seed of the job's key");
const SEED: Message<[u8; 32]> = Message::new(13, "seed of the job's key");
const KEPT: Message<[u8]> = Message::new(14, "the shards whose results are kept");

/// Items of a result that are hashed at a time.
const BATCH: usize = 1 << 9;

/// The key of the hash that puts items into shards. Both sides know it, and nobody else.
pub struct Key(Secret<[u8; 32]>);

impl Key {
    /// The key with these bytes.
    pub(crate) fn of(bytes: [u8; 32]) -> Key {
        Key(Secret::new(bytes))
    }

    /// Its bytes.
    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The shards of these items.
    pub(crate) fn shards(&self, items: &[ItemHash], number: u32, out: &mut [u32]) {
        let mut hashes = Secrets::zeros(items.len());
        Domain::under(&self.0).hash_all(items.iter().map(|item| &item[..]), &mut hashes);
        for (out, [a, b, c, d, e, f, g, h, ..]) in out.iter_mut().zip(hashes.iter().copied()) {
            let hash = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
            // A multiple of 2^-64 of more or less: nothing, beside 2^-40.
            *out = ((u128::from(hash) * u128::from(number)) >> 64) as u32;
        }
    }
}

/// Draws the key. Each side's seed alone makes it random: the receiver's is fixed before it sees the sender's, which sees
/// it only after it has sent its own.
fn draw(channel: &mut Channel, role: Role, session: &SessionId, rng: &mut Prng) -> Result<Key> {
    let ours: [u8; 32] = rng.bytes();
    let commitment = |seed: &[u8; 32]| Domain::new(session, "job, commitment to a seed").hash::<32>(&[seed]);
    let (receiver, sender) = match role {
        Role::Receiver => {
            channel.tx.send(COMMITMENT, &[commitment(&ours)])?;
            let theirs = channel.rx.recv(SEED, 1)?[0];
            channel.tx.send(SEED, &[ours])?;
            (ours, theirs)
        }
        Role::Sender => {
            let committed = channel.rx.recv(COMMITMENT, 1)?[0];
            channel.tx.send(SEED, &[ours])?;
            let theirs = channel.rx.recv(SEED, 1)?[0];
            if commitment(&theirs) != committed {
                return Err(Error::misbehaves("it shows another seed of the job's key than it committed to"));
            }
            (theirs, ours)
        }
    };
    Ok(Key::of(Domain::new(session, "job, key of the shards").hash(&[&receiver, &sender])))
}

/// What is known of a job that began in an earlier session.
pub struct Begun {
    /// The session that it began in, which names it.
    pub session: SessionId,
    /// Its key.
    pub key: Key,
    /// Whom it is with; `None` without TLS.
    pub peer: Option<Fingerprint>,
    /// How it is computed.
    pub choice: Choice,
    /// What the peer announced about its set.
    pub theirs: Announced,
    /// The shards whose results are kept.
    pub kept: Vec<bool>,
}

impl Begun {
    /// Refuses a peer that is not the one that the job began with, or whose set is not.
    pub(crate) fn check(&self, peer: &Party) -> Result<()> {
        if self.peer != peer.fingerprint {
            return Err(Error::Refused("the job began with another peer. Begin a new job".into()));
        }
        if self.theirs == peer.announced {
            return Ok(());
        }
        let (then, now) = (self.theirs.words(), peer.announced.words());
        Err(Error::refused(format!(
            "the job began with {then} items of {}, and now there are {now}. A job goes on with the same sets only: let the \
             other party use the input and {PAD_TO} of then, or begin a new job on both sides",
            peer.seat
        )))
    }
}

/// Keeps what a job must not lose. Shards begin in their order; results may come in another. An error ends the job.
pub trait Keep: Sync {
    /// What is known of the job, if it began before.
    fn begun(&self) -> Option<&Begun>;
    /// The job begins.
    fn begin(&self, proposal: &Proposal, key: &Key) -> Result<()>;
    /// A shard is about to run: nothing of it was sent yet. Refuses one that was begun too often.
    fn attempt(&self, shard: u32) -> Result<()>;
    /// Keeps the result of a shard, whose positions are those of our whole set; or what is wrong with it, which the peer must
    /// not learn.
    fn keep(&self, shard: u32, learned: Result<Learned>) -> Result<()>;
    /// Returns what was kept, or what is wrong with it.
    fn take(&self, shard: u32) -> Result<Learned>;
}

/// Keeps results in memory: a job that breaks off has to begin again.
#[derive(Default)]
pub struct InMemory {
    results: Mutex<Vec<Option<Result<Learned>>>>,
    attempts: Attempts,
}

impl Keep for InMemory {
    fn begun(&self) -> Option<&Begun> {
        None
    }

    fn begin(&self, _: &Proposal, _: &Key) -> Result<()> {
        Ok(())
    }

    fn attempt(&self, shard: u32) -> Result<()> {
        self.attempts.add(shard)
    }

    fn keep(&self, shard: u32, learned: Result<Learned>) -> Result<()> {
        let mut all = locked(&self.results);
        let at = shard as usize;
        if all.len() <= at {
            all.resize_with(at + 1, || None);
        }
        all[at] = Some(learned);
        Ok(())
    }

    fn take(&self, shard: u32) -> Result<Learned> {
        let kept = locked(&self.results).get_mut(shard as usize).and_then(Option::take);
        kept.unwrap_or_else(|| Err(Error::bug(format!("the result of shard {shard} was not kept"))))
    }
}

/// A job that both sides have allowed.
pub(crate) struct ShardedRun<'a> {
    /// Our side of it.
    pub request: &'a Request<'a>,
    /// What was agreed on.
    pub proposal: &'a Proposal,
    /// What keeps its results.
    pub keep: &'a dyn Keep,
    /// What is wrong with the first result that cannot be opened.
    pub wrong: &'a Mutex<Option<Error>>,
}

impl ShardedRun<'_> {
    /// Runs all shards of this set that one side or the other lacks, confirms the end, and leaves. Returns what all of them show
    /// together. If it fails, [`ShardedRun::wrong`] may say what matters more, and what the peer must not know.
    pub(crate) fn run(
        &self,
        set: &DiskSet,
        connection: Connection,
        rng: &mut Prng,
    ) -> Result<(Sealed<'_, Learned>, Confirmed)> {
        let number = self.number();
        let confirmed = leaving(connection, |open| {
            let (key, ran) = self.begin(open.channel()?, rng)?;
            open.channel()?.account().begin(CUTTING);
            let cut =
                set.cut(&self.request.local.threads, number, |items, of| key.shards(items, number, of))?;
            let size = bound(self.proposal.ours.size, number);
            cut.sizes().iter().try_for_each(|&items| fits(items, size))?;
            let ran = exchange_kept(open.channel()?, &ran)?;
            let lacking: Vec<u32> = (0..number).filter(|&shard| !ran[shard as usize]).collect();
            self.run_all((&cut, &key), size, &lacking, (open, rng), &mut || ())
        })?;
        Ok((self.whole(|_, _| Ok(())), confirmed))
    }

    /// Draws the key, if the job begins here. Returns it, and the shards whose results are kept.
    pub(crate) fn begin(&self, channel: &mut Channel, rng: &mut Prng) -> Result<(Key, Vec<bool>)> {
        let kept = vec![false; self.number() as usize];
        match self.keep.begun() {
            Some(begun) => {
                let kept = (0..kept.len()).map(|shard| begun.kept.get(shard).is_some_and(|kept| *kept));
                Ok((Key::of(*begun.key.bytes()), kept.collect()))
            }
            None => {
                let key = draw(channel, self.request.spec.role, &self.proposal.session_id, rng)?;
                self.keep.begin(self.proposal, &key)?;
                Ok((key, kept))
            }
        }
    }

    /// What all shards show together, to be opened when the peer has left. `each` sees the result of each.
    pub(crate) fn whole<'s>(
        &'s self,
        each: impl Fn(u32, &Learned) -> Result<()> + Send + 's,
    ) -> Sealed<'s, Learned> {
        let most = [self.proposal.ours.size, self.proposal.parties.peer().announced.size];
        Sealed::new(move || {
            let all = (0..self.number()).map(|shard| {
                let learned = self.keep.take(shard)?;
                each(shard, &learned)?;
                Ok(learned)
            });
            merged(all, most)
        })
    }

    pub(crate) fn number(&self) -> u32 {
        self.proposal.hello.spec.terms.shards
    }

    /// Runs these shards, confirms the end, and leaves: then `left` is called.
    pub(crate) fn run_all(
        &self,
        (source, key): (&dyn Source, &Key),
        size: usize,
        shards: &[u32],
        (open, rng): (&mut Open, &mut Prng),
        left: &mut dyn FnMut(),
    ) -> Result<Confirmed> {
        let dummies = &rng.split();
        let baton = &Mutex::new((open, rng));
        // Each shard has a thread: it makes its set while the shard before it runs, and opens its result while others run.
        thread::scope(|scope| {
            let mut turn: Option<mpsc::Receiver<()>> = None;
            let mut under_way = VecDeque::new();
            for &shard in shards {
                let (over, next) = mpsc::channel();
                let (begins, begun) = mpsc::channel();
                let turn = turn.replace(next);
                under_way.push_back(threads::start(scope, move || {
                    let part = Part::new(self, (source, shard), size, dummies)?;
                    // Without an answer, the shard before has failed, and says why.
                    if turn.is_some_and(|turn| turn.recv().is_err()) {
                        return Ok(());
                    }
                    let _ = begins.send(());
                    self.keep.attempt(shard)?;
                    let (sealed, confirmed) = {
                        let mut baton = locked(baton);
                        let (open, rng) = &mut *baton;
                        let ch = open.channel()?;
                        ch.account().begin(SETUP);
                        let run = part.run(self, ch, rng)?;
                        ch.account().begin(BETWEEN);
                        run
                    };
                    let _ = over.send(());
                    let seat = self.proposal.parties.peer().seat;
                    let learned =
                        sealed.open(confirmed).and_then(|learned| part.in_whole(learned, (key, shard)));
                    let learned = learned.map_err(|error| error.by(seat)).inspect_err(|error| {
                        locked(self.wrong).get_or_insert(error.clone());
                    });
                    self.keep.keep(shard, learned)
                })?);
                if under_way.len() > AT_ONCE {
                    under_way.pop_front().map_or(Ok(()), joined)?;
                }
                // It has its turn, so the next may make its set; or one before it has failed.
                if begun.recv().is_err() {
                    break;
                }
            }
            // The end is confirmed, and the connection closed, before the last result is opened and kept.
            let confirmed = match turn.is_none_or(|turn| turn.recv().is_ok()) {
                true => {
                    let open = &mut *locked(baton).0;
                    open.channel()?.account().begin(CONFIRMING);
                    let confirmed = confirm(open.channel()?, &self.proposal.session_id)?;
                    open.close();
                    left();
                    Some(confirmed)
                }
                // One of them says why.
                false => None,
            };
            under_way.into_iter().try_for_each(joined)?;
            confirmed.ok_or_else(|| Error::Bug("a shard that ended without a word".into()))
        })
    }
}

/// A connection that may have been closed already.
pub(crate) struct Open(Option<Connection>);

impl Open {
    /// Its channel, for which there is only one use at a time.
    pub(crate) fn channel(&mut self) -> Result<&mut Channel> {
        let connection =
            self.0.as_mut().ok_or_else(|| Error::Bug("a job whose connection is closed".into()))?;
        Ok(&mut connection.channel)
    }

    /// Closes it: the peer does not see what comes after.
    pub(crate) fn close(&mut self) {
        if let Some(connection) = self.0.take() {
            connection.channel.close();
        }
    }
}

/// Does something over a connection, and closes it, after telling the peer if something went wrong.
pub(crate) fn leaving<T>(connection: Connection, work: impl FnOnce(&mut Open) -> Result<T>) -> Result<T> {
    let mut open = Open(Some(connection));
    let done = work(&mut open);
    match open.0 {
        Some(connection) => finish(connection, done),
        None => done,
    }
}

/// Refuses a shard that is larger than it may be.
pub(crate) fn fits(items: usize, size: usize) -> Result<()> {
    match items <= size {
        true => Ok(()),
        false => Err(Error::Refused(
            "a shard of our set is larger than its bound, which by chance happens with probability 2^-40. Begin the \
             job again"
                .into(),
        )),
    }
}

pub(crate) fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn joined(thread: ScopedJoinHandle<'_, Result<()>>) -> Result<()> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Exchanges which results are kept. Returns which shards both sides have.
pub(crate) fn exchange_kept(channel: &mut Channel, ours: &[bool]) -> Result<Vec<bool>> {
    let bytes: Vec<u8> = ours.iter().map(|&kept| kept.into()).collect();
    channel.tx.send_bytes(KEPT, &bytes)?;
    let theirs = channel.rx.recv_bytes(KEPT, ours.len())?;
    if theirs.iter().any(|&kept| kept > 1) {
        return Err(Error::misbehaves("it says neither that it has a shard's result nor that it lacks it"));
    }
    Ok(ours.iter().zip(theirs).map(|(&ours, theirs)| ours && theirs == 1).collect())
}

/// The session of a shard's run.
fn session_of(job: &SessionId, shard: u32) -> SessionId {
    SessionId::of(Domain::new(job, "job, session of a shard").numbered(u64::from(shard)).hash(&[]))
}

/// A shard of our set.
struct Part {
    /// The session of its run.
    session: SessionId,
    /// The number of shards.
    number: u32,
    /// What results call its items, ascending.
    positions: Vec<u32>,
    set: HashedSet<'static>,
    payloads: Items,
    /// What the peer's shard looks like from here.
    theirs: Announced,
}

impl Part {
    fn new(
        job: &ShardedRun<'_>,
        (source, shard): (&dyn Source, u32),
        size: usize,
        dummies: &Prng,
    ) -> Result<Part> {
        let (&Spec { operation, role, .. }, threads) = (&job.request.spec, &job.request.local.threads);
        let session = session_of(&job.proposal.session_id, shard);
        let theirs = job.proposal.parties.peer().announced.size;
        let theirs = Announced { size: bound(theirs, job.number()), padded: true };
        let rng = &mut dummies.fork(u64::from(shard));
        let crate::sharded::disk::Part { positions, hashes, items, payloads } = source.part(shard)?;
        let kind = operation.dummies(role);
        let mut set = threads.run(|| HashedSet::part(items, &hashes, kind, size, rng));
        if role == Role::Receiver {
            set.insert_listed(job.proposal.choice.protocol.inserted(operation, theirs));
        }
        let payloads = if !job.request.spec.sends().is_empty() { payloads } else { Items::new() };
        Ok(Part { session, number: job.number(), positions, set, payloads, theirs })
    }

    fn run(
        &self,
        job: &ShardedRun<'_>,
        ch: &mut Channel,
        rng: &mut Prng,
    ) -> Result<(Sealed<'_, Learned>, Confirmed)> {
        let (&Spec { operation, role, .. }, threads) = (&job.request.spec, &job.request.local.threads);
        let (choice, terms) = (job.proposal.choice, job.proposal.hello.spec.terms);
        let (set, payloads) = (&self.set, &self.payloads);
        let task =
            Task { operation, role, group: choice.group, set, values: &[], payloads, terms, filter: None };
        let mut cx = Context { ch, session: self.session, rng, exponent: terms.exponent(), threads };
        let sealed = protocols::run(choice.protocol, &task, &mut cx, self.theirs)?;
        Ok((sealed, confirm(cx.ch, &self.session)?))
    }

    /// What was learned, with positions in our whole set. Refuses items that are not of this shard.
    fn in_whole(&self, learned: Learned, (key, shard): (&Key, u32)) -> Result<Learned> {
        let items = match &learned {
            Learned::New(new) => &new.items,
            Learned::Union(items) => items,
            _ => &Items::new(),
        };
        let (mut hashes, mut shards) = (Secrets::zeros(BATCH), [0; BATCH]);
        for first in (0..items.len()).step_by(BATCH) {
            let n = BATCH.min(items.len() - first);
            ItemHash::of_items((first..first + n).map(|i| items.get(i)), &mut hashes[..n]);
            key.shards(&hashes[..n], self.number, &mut shards[..n]);
            if shards[..n].iter().any(|of| *of != shard) {
                return Err(Error::misbehaves_unseen("it sent an item that is not of this shard"));
            }
        }
        Ok(match learned {
            Learned::Matching(Matching { positions, payloads }) => {
                let positions = positions.iter().map(|&i| self.positions[i as usize]).collect();
                Learned::Matching(Matching { positions, payloads })
            }
            other => other,
        })
    }
}

/// What all shards show together, as one run would. There are at most so many of our items, and of theirs.
fn merged(parts: impl Iterator<Item = Result<Learned>>, [ours, theirs]: [usize; 2]) -> Result<Learned> {
    /// Makes a result of positions, items and payloads.
    type Form = fn(Vec<u32>, Items, Items) -> Learned;
    let (mut positions, mut items, mut payloads) = (Vec::new(), Items::new(), Items::new());
    let mut form: Option<Form> = None;
    let append = |all: &mut Items, part: &Items| part.iter().for_each(|item| all.push(item));
    for part in parts {
        form = Some(match part? {
            Learned::Nothing => |_, _, _| Learned::Nothing,
            Learned::Matching(part) => {
                positions.extend(part.positions);
                append(&mut payloads, &part.payloads);
                |positions, _, payloads| {
                    let mut order: Vec<u32> = (0..positions.len() as u32).collect();
                    order.sort_unstable_by_key(|&i| positions[i as usize]);
                    let payloads = if payloads.is_empty() { payloads } else { payloads.chosen(&order) };
                    let positions = order.iter().map(|&i| positions[i as usize]).collect();
                    Learned::Matching(Matching { positions, payloads })
                }
            }
            Learned::New(part) => {
                append(&mut items, &part.items);
                append(&mut payloads, &part.payloads);
                |_, items, payloads| Learned::New(New { items, payloads })
            }
            Learned::Union(part) => {
                append(&mut items, &part);
                |_, items, _| {
                    let mut order: Vec<u32> = (0..items.len() as u32).collect();
                    order.sort_unstable_by_key(|&i| items.get(i as usize));
                    Learned::Union(items.chosen(&order))
                }
            }
            other => return Err(Error::bug(format!("a shard with {other:?}"))),
        });
    }
    let form = form.ok_or_else(|| Error::Bug("a job without shards".into()))?;
    let learned = form(positions, items, payloads);
    let (n, most) = match &learned {
        Learned::Matching(matching) => (matching.positions.len(), theirs),
        Learned::New(new) => (new.items.len(), theirs),
        Learned::Union(items) => (items.len(), ours + theirs),
        _ => (0, 0),
    };
    match n <= most {
        true => Ok(learned),
        false => Err(Error::misbehaves_unseen(format!(
            "it announced {theirs} items, and {n} of them match or are new: it must have sent other items in some shards"
        ))),
    }
}

/// Refuses a peer whose shards have more items and dummies in all than we accept.
pub(crate) fn check_peer(peer: &Party, request: &Request) -> Result<()> {
    let (number, announced) = (request.spec.terms.shards, peer.announced.size);
    let all = if number == 0 { 0 } else { number as usize * bound(announced, number) };
    match all <= request.local.max_peer_items {
        true => Ok(()),
        false => Err(Error::refused(format!(
            "in {number} shards {}'s set of {announced} items has up to {all} with dummies, but {MAX_PEER_ITEMS} is {}. \
             Raise it, or use fewer shards",
            peer.seat, request.local.max_peer_items
        ))),
    }
}

/// Refuses what cannot be cut into shards.
pub(crate) fn check(number: u32, operation: &Operation, protocol: &Protocol) -> Result<()> {
    let wrong = |what: String| Err(Error::usage(what));
    if !(2..=MAX_SHARDS).contains(&number) {
        return wrong(format!("{} is not possible. Use 2 to {MAX_SHARDS}, or omit it", SHARDS.with(number)));
    }
    let cuts = |p: &Protocol| p.offer(operation).is_some_and(|offer| offer.shards);
    if cuts(protocol) {
        return Ok(());
    }
    let those = protocols::names(cuts);
    wrong(match those.is_empty() {
        true => format!(
            "{operation} cannot be cut into shards: each would show a number, where one run shows one. Omit {SHARDS}"
        ),
        false => {
            format!(
                "{} does not run in shards. Omit {SHARDS}, or use one of {those}",
                PROTOCOL.with(protocol)
            )
        }
    })
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
