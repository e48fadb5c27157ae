//! A sharded run: the sets are cut into shards, and the shards run one after another over one connection.
//!
//! ```text
//! R->S  commitment      to a seed                    } only if the run begins here: a resumed run has its key
//! S->R  seed            of the sender                }
//! R->S  seed            of the receiver, opened      }
//! both  kept            the shards whose results are kept
//!       then for each shard whose result one party or the other lacks:
//! both    the protocol, on the items that the key puts into this shard, padded to a bound
//! both    confirmation
//! both  confirmation    of the whole run
//! ```
//!
//! A keyed hash puts each item into a shard. The parties draw the key together once both sets are fixed, so neither can choose
//! items that crowd one shard. All shards of a party are padded to the same bound ([`crate::params::shards`]), which follows
//! from the announced size and the number of shards. A larger shard ends the run; the probability that there is one is at most
//! 2^-40.
//!
//! *What a sharded run shows.* The sizes of all messages follow from the announced sizes and the terms. The receiver of an
//! intersection learns which of its items match, and can compute the shard of each. About the sender's other items it learns
//! only the bound on their number in a shard. The receiver of a union gets the sender's new items, and can compute the shard of
//! each. All other rows look the same to it, whether they belong to matching items or to dummies: the dummies match too,
//! because the receiver inserts them into its own set ([`Dummies::Listed`](crate::hashed::Dummies)), or they count as the
//! bottom item ([`InBins`](crate::membership::InBins)). So the results of all shards together show no more than the result of
//! one run. In any other operation each shard would show a number of matches, and one run shows only their total. So these
//! operations are refused.
//!
//! *Time.* A result is opened and kept while the next shards run, and the connection is closed without waiting for the last
//! results. So the peer waits for this work only if it takes longer than three shards do. The times to cut the set and to
//! compute the dummies of a shard follow from the announced size. The time to read the items of a shard depends on their
//! number, but the peer waits only for the items of the first shard: the others are read while a shard runs.
//!
//! *An error about the peer in a result* is kept in place of the result, and reported after the connection is closed. Otherwise
//! the peer would learn, from whether the run goes on, which of its rows were read. The new items of a union must belong to
//! their shard. There cannot be more new items, or more matches, than items that the peer announced.

use crate::channel::{Channel, Mesh, Message};
use crate::context::Context;
use crate::error::{Error, Result, Seat};
use crate::hash::{Domain, ItemHash, SessionId};
use crate::hashed::HashedSet;
use crate::item::Items;
use crate::net::Fingerprint;
use crate::operations::intersect::Matching;
use crate::operations::{Announced, Confirmed, Learned, Operation, Role, Sealed, Task};
pub use crate::params::shards::bound;
use crate::protocols::{self, Attachment, Choice, Protocol};
use crate::rng::Prng;
use crate::secret::{Secret, Secrets};
use crate::session::run::Request;
use crate::session::stages::{BETWEEN, CONFIRMING, CUTTING, SETUP};
use crate::session::{Party, Proposal, Spec, confirm};
use crate::sharded::disk::{DiskSet, Part, Source};
use crate::sharded::folder::Attempts;
use crate::spelling::{MAX_PEER_ITEMS, PAD_TO, PROTOCOL, SHARDS};
use crate::threads::{self, joined};
use std::collections::BTreeMap;
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ScopedJoinHandle};
use std::time::Instant;

/// The maximum number of shards that run, or whose results are being opened and kept, while another shard is loaded.
const AT_ONCE: usize = 4;

/// The maximum number of shards.
pub const MAX_SHARDS: u32 = 1 << 14;

const COMMITMENT: Message<[u8; 32]> = Message::new(12, "R->S  commitment to a seed of the job's key");
const SEED: Message<[u8; 32]> = Message::new(13, "seed of the job's key");
const KEPT: Message<[u8]> = Message::new(14, "the shards whose results are kept");

/// The number of items of a result that are hashed at a time.
const BATCH: usize = 1 << 9;

/// The key of the hash that puts items into shards. Only the two parties and their workers know it.
pub struct Key(Secret<[u8; 32]>);

impl Key {
    /// The key with these bytes.
    pub(crate) fn of(bytes: [u8; 32]) -> Key {
        Key(Secret::new(bytes))
    }

    /// The bytes of the key.
    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Writes to `out` the shard of each of these items. `number` is the number of shards.
    pub(crate) fn shards(&self, items: &[ItemHash], number: u32, out: &mut [u32]) {
        let mut hashes = Secrets::zeros(items.len());
        Domain::under(&self.0).hash_all(items.iter().map(|item| &item[..]), &mut hashes);
        for (out, [a, b, c, d, e, f, g, h, ..]) in out.iter_mut().zip(hashes.iter().copied()) {
            let hash = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
            // The probability of a shard differs from 1 / `number` by less than 2^-64, which is negligible next to 2^-40.
            *out = ((u128::from(hash) * u128::from(number)) >> 64) as u32;
        }
    }
}

/// Draws the key with the peer. The key is random if either party's seed is: the receiver commits to its seed before it sees
/// the sender's, and the sender sees the receiver's only after it has sent its own.
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

/// A sharded run that began in an earlier session.
pub struct Begun {
    /// The id of the session in which it began, which names the run.
    pub session: SessionId,
    /// The key of the shards.
    pub key: Key,
    /// The fingerprint of the peer; `None` without TLS.
    pub peer: Option<Fingerprint>,
    /// The protocol and the group of the run.
    pub choice: Choice,
    /// The peer's announcement.
    pub theirs: Announced,
    /// For each shard, whether its result is kept.
    pub kept: Vec<bool>,
}

impl Begun {
    /// Refuses a peer other than the one with which the run began, and a peer that announces something else than it did then.
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

/// Takes the results of shards. Shards begin in order, but their results may come in any order. An error ends the run.
pub trait Results: Sync {
    /// Records that a shard is about to run, before any message of it is sent. Refuses a shard that was begun too often.
    fn attempt(&self, shard: u32) -> Result<()>;
    /// Keeps the result of a shard, with the positions that the [`Source`] gave to its items; or the error found in the result,
    /// of which the peer must not learn.
    fn keep(&self, shard: u32, learned: Result<Learned>) -> Result<()>;
}

/// Keeps the state and the results of a sharded run.
pub trait Keep: Results {
    /// The run, if it began in an earlier session.
    fn begun(&self) -> Option<&Begun>;
    /// Records that the run begins, and its key.
    fn begin(&self, proposal: &Proposal, key: &Key) -> Result<()>;
    /// Returns the result of a shard, or the error that was kept in its place.
    fn take(&self, shard: u32) -> Result<Learned>;
}

/// Keeps results in memory: a run that breaks off must begin again.
#[derive(Default)]
pub struct InMemory {
    results: Mutex<BTreeMap<u32, Result<Learned>>>,
    attempts: Attempts,
}

impl Results for InMemory {
    fn attempt(&self, shard: u32) -> Result<()> {
        self.attempts.add(shard)
    }

    fn keep(&self, shard: u32, learned: Result<Learned>) -> Result<()> {
        locked(&self.results).insert(shard, learned);
        Ok(())
    }
}

impl Keep for InMemory {
    fn begun(&self) -> Option<&Begun> {
        None
    }

    fn begin(&self, _: &Proposal, _: &Key) -> Result<()> {
        Ok(())
    }

    fn take(&self, shard: u32) -> Result<Learned> {
        let kept = locked(&self.results).remove(&shard);
        kept.unwrap_or_else(|| Err(Error::bug(format!("the result of shard {shard} was not kept"))))
    }
}

/// A sharded run that both parties have allowed.
pub(crate) struct ShardedRun<'a> {
    /// Our request.
    pub request: &'a Request<'a>,
    /// The agreement.
    pub proposal: &'a Proposal,
    /// Keeps the results.
    pub keep: &'a dyn Keep,
    /// The first error that was found in a result.
    pub wrong: &'a Mutex<Option<Error>>,
}

/// Shards that run over one connection.
pub(crate) struct Shards<'a> {
    /// Our request.
    pub request: &'a Request<'a>,
    /// The agreement.
    pub proposal: &'a Proposal,
    /// Takes the results.
    pub results: &'a dyn Results,
    /// The first error that was found in a result.
    pub wrong: &'a Mutex<Option<Error>>,
    /// The source of the items.
    pub source: &'a dyn Source,
    /// The key that puts items into shards.
    pub key: &'a Key,
    /// The numbers of the shards, in the order in which they run.
    pub numbers: &'a [u32],
}

/// The connection and the random generator, which only one shard uses at a time.
struct Turn<'t> {
    open: &'t mut Open,
    rng: &'t mut Prng,
}

impl ShardedRun<'_> {
    /// Runs all shards of this set whose results one party or the other lacks, confirms the end, and leaves. Returns the result
    /// of all shards together. If it fails, an error in [`ShardedRun::wrong`] matters more. The peer must not learn of that
    /// one.
    pub(crate) fn run(
        &self,
        set: &DiskSet,
        mesh: Mesh,
        rng: &mut Prng,
    ) -> Result<(Sealed<'_, Learned>, Confirmed)> {
        let number = self.number();
        let (confirmed, _) = leaving(mesh, |open| {
            let (key, kept) = self.begin(open.channel()?, rng)?;
            open.channel()?.account().begin(CUTTING);
            let cut =
                set.cut(&self.request.local.threads, number, |items, of| key.shards(items, number, of))?;
            let size = bound(self.proposal.ours.size, number);
            cut.sizes().iter().try_for_each(|&items| fits(items, size))?;
            let kept = exchange_kept(open.channel()?, &kept)?;
            let numbers: Vec<u32> = (0..number).filter(|&shard| !kept[shard as usize]).collect();
            let ShardedRun { request, proposal, keep, wrong } = *self;
            let (results, source, key, numbers) = (keep, &cut, &key, &*numbers);
            Shards { request, proposal, results, wrong, source, key, numbers }.run(open, rng)
        })?;
        Ok((self.whole(|_, _| Ok(())), confirmed))
    }

    /// Draws and records the key if the run begins here. Returns the key and, for each shard, whether we keep its result.
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

    /// The result of all shards together, to be opened when the peer has left. `each` is called with the result of each shard.
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

    /// The number of shards.
    pub(crate) fn number(&self) -> u32 {
        self.proposal.hello.spec.terms.shards
    }
}

impl Shards<'_> {
    /// Runs the shards one after another, confirms the end, and leaves. Returns the time at which we left.
    ///
    /// The shards form a pipeline: this thread loads a shard while the one before runs on a thread of its own. That thread then
    /// opens and keeps the result while the next shards run.
    pub(crate) fn run(&self, open: &mut Open, rng: &mut Prng) -> Result<(Confirmed, Instant)> {
        let dummies = &rng.split();
        let first = Turn { open, rng };
        thread::scope(|scope| {
            // Joins the threads in order. The room in the channel limits how many others are not joined yet.
            let (running, ran) = mpsc::sync_channel(AT_ONCE - 1);
            let keeper = threads::start(scope, || {
                ran.into_iter().try_for_each(|shard: ScopedJoinHandle<_>| joined(shard.join()))
            })?;
            // If a thread has failed, its error is reported instead.
            let failed = || Error::Bug("a shard that ended without a word".into());
            let each = move || {
                let (over, mut turn) = mpsc::sync_channel(1);
                over.send(first).map_err(|_| failed())?;
                for &number in self.numbers {
                    let shard = Loaded::new(self, number, dummies)?;
                    let now = turn.recv().map_err(|_| failed())?;
                    let over;
                    (over, turn) = mpsc::sync_channel(1);
                    let thread = threads::start(scope, move || self.run_one(&shard, now, &over))?;
                    running.send(thread).map_err(|_| failed())?;
                }
                // The end is confirmed and the connection closed without waiting until the last results are opened.
                let Turn { open, .. } = turn.recv().map_err(|_| failed())?;
                open.channel()?.account().begin(CONFIRMING);
                let confirmed = confirm(open.channel()?, &self.proposal.session_id)?;
                open.close()?;
                Ok((confirmed, Instant::now()))
            };
            let left = each();
            joined(keeper.join()).and(left)
        })
    }

    /// Runs a shard, passes the connection on to the next one, and then opens and keeps the result.
    fn run_one<'t>(&self, shard: &Loaded, turn: Turn<'t>, over: &SyncSender<Turn<'t>>) -> Result<()> {
        self.results.attempt(shard.number)?;
        let channel = turn.open.channel()?;
        channel.account().begin(SETUP);
        let (sealed, confirmed) = shard.run(self, channel, turn.rng)?;
        channel.account().begin(BETWEEN);
        // There is no receiver if the run has failed elsewhere, for instance because an earlier result could not be kept.
        let _ = over.send(turn);
        let learned = sealed.open(confirmed).and_then(|learned| shard.in_whole(learned, self.key));
        let seat = self.proposal.parties.peer().seat;
        let learned = learned.map_err(|error| error.by(seat)).inspect_err(|error| {
            locked(self.wrong).get_or_insert(error.clone());
        });
        self.results.keep(shard.number, learned)
    }
}

/// The connection of a run of two, which may be closed before the run returns.
pub(crate) struct Open(Option<Mesh>);

impl Open {
    /// The channel to the peer.
    pub(crate) fn channel(&mut self) -> Result<&mut Channel> {
        let channel = self.0.as_mut().and_then(Mesh::only);
        channel.ok_or_else(|| Error::Bug("a job whose connection is closed".into()))
    }

    /// Closes the connection: the peer sees nothing of the work that follows.
    fn close(&mut self) -> Result<()> {
        self.0.take().map_or(Ok(()), |mesh| mesh.finish(Ok(())))
    }
}

/// Does `work` over a connection. Then closes the connection unless `work` has; if `work` failed, tells the peer first.
pub(crate) fn leaving<T>(mesh: Mesh, work: impl FnOnce(&mut Open) -> Result<T>) -> Result<T> {
    let mut open = Open(Some(mesh));
    let done = work(&mut open);
    match open.0 {
        Some(mut mesh) => {
            let seat = mesh.seats().next().unwrap_or(Seat::PEER);
            let done = mesh.with(seat, |_| done);
            mesh.finish(done)
        }
        None => done,
    }
}

/// Refuses a shard that is larger than its bound.
fn fits(items: usize, size: usize) -> Result<()> {
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

/// Exchanges which results are kept. Returns, for each shard, whether both parties keep its result.
pub(crate) fn exchange_kept(channel: &mut Channel, ours: &[bool]) -> Result<Vec<bool>> {
    let bytes: Vec<u8> = ours.iter().map(|&kept| kept.into()).collect();
    channel.tx.send_bytes(KEPT, &bytes)?;
    let theirs = channel.rx.recv_bytes(KEPT, ours.len())?;
    if theirs.iter().any(|&kept| kept > 1) {
        return Err(Error::misbehaves("it says neither that it has a shard's result nor that it lacks it"));
    }
    Ok(ours.iter().zip(theirs).map(|(&ours, theirs)| ours && theirs == 1).collect())
}

/// The session of a shard, derived from the session of the whole run.
fn session_of(job: &SessionId, shard: u32) -> SessionId {
    SessionId::of(Domain::new(job, "job, session of a shard").numbered(u64::from(shard)).hash(&[]))
}

/// A shard of our set, with its dummies.
struct Loaded {
    /// The number of the shard.
    number: u32,
    /// The number of shards of the whole run.
    shards: u32,
    /// The session of the shard.
    session: SessionId,
    /// The positions that the [`Source`] gave to its items, ascending.
    positions: Vec<u32>,
    set: HashedSet<'static>,
    payloads: Items,
    /// The size of the peer's shard, dummies included.
    theirs: Announced,
}

impl Loaded {
    /// Loads a shard, and adds its dummies.
    fn new(of: &Shards<'_>, number: u32, dummies: &Prng) -> Result<Loaded> {
        let Shards { request, proposal, .. } = of;
        let (&Spec { operation, role, .. }, threads) = (&request.spec, &request.local.threads);
        let shards = proposal.hello.spec.terms.shards;
        let session = session_of(&proposal.session_id, number);
        let [size, theirs] =
            [proposal.ours, proposal.parties.peer().announced].map(|set| bound(set.size, shards));
        let theirs = Announced { size: theirs, padded: true };
        let rng = &mut dummies.fork(u64::from(number));
        let Part { positions, hashes, items, payloads } = of.source.part(number)?;
        fits(positions.len(), size)?;
        let kind = operation.dummies(role);
        let mut set = threads.run(|| HashedSet::part(items, &hashes, kind, size, rng));
        if role == Role::Receiver {
            set.insert_listed(proposal.choice.protocol.inserted(operation, theirs));
        }
        let payloads = if !request.spec.sends().is_empty() { payloads } else { Items::new() };
        Ok(Loaded { number, shards, session, positions, set, payloads, theirs })
    }

    fn run(
        &self,
        of: &Shards<'_>,
        ch: &mut Channel,
        rng: &mut Prng,
    ) -> Result<(Sealed<'_, Learned>, Confirmed)> {
        let (&Spec { operation, role, .. }, threads) = (&of.request.spec, &of.request.local.threads);
        let (choice, terms) = (of.proposal.choice, of.proposal.hello.spec.terms);
        let (set, payloads) = (&self.set, &self.payloads);
        let task =
            Task { operation, role, group: choice.group, set, values: &[], payloads, terms, filter: None };
        let mut cx = Context { ch, session: self.session, rng, exponent: terms.exponent(), threads };
        let sealed = protocols::run(choice.protocol, &task, &mut cx, self.theirs)?;
        Ok((sealed, confirm(cx.ch, &self.session)?))
    }

    /// Returns the result with the positions that the [`Source`] gave. Refuses items that do not belong to this shard.
    fn in_whole(&self, learned: Learned, key: &Key) -> Result<Learned> {
        let items = match &learned {
            Learned::New(new) => &new.items,
            Learned::Union(items) => items,
            _ => &Items::new(),
        };
        let (mut hashes, mut shards) = (Secrets::zeros(BATCH), [0; BATCH]);
        for first in (0..items.len()).step_by(BATCH) {
            let n = BATCH.min(items.len() - first);
            ItemHash::of_items((first..first + n).map(|i| items.get(i)), &mut hashes[..n]);
            key.shards(&hashes[..n], self.shards, &mut shards[..n]);
            if shards[..n].iter().any(|of| *of != self.number) {
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

/// Merges the results of all shards. Positions ascend, and the items of [`Learned::Union`] are sorted, as in the result of one
/// run. Refuses more matches or new items than `theirs`, and a union of more items than `ours` and `theirs` together.
fn merged(parts: impl Iterator<Item = Result<Learned>>, [ours, theirs]: [usize; 2]) -> Result<Learned> {
    let append = |all: &mut Items, part: &Items| part.iter().for_each(|item| all.push(item));
    let mut all = Learned::Nothing;
    for part in parts {
        match (&mut all, part?) {
            (_, Learned::Nothing) => {}
            (Learned::Matching(all), Learned::Matching(part)) => {
                all.positions.extend(part.positions);
                append(&mut all.payloads, &part.payloads);
            }
            (Learned::New(all), Learned::New(part)) => {
                append(&mut all.items, &part.items);
                append(&mut all.payloads, &part.payloads);
            }
            (Learned::Union(all), Learned::Union(part)) => append(all, &part),
            (Learned::Nothing, part @ (Learned::Matching(_) | Learned::New(_) | Learned::Union(_))) => {
                all = part
            }
            (_, other) => return Err(Error::bug(format!("a shard with {other:?}"))),
        }
    }
    let (n, most) = match &mut all {
        Learned::Matching(Matching { positions, payloads }) => {
            let mut order: Vec<u32> = (0..positions.len() as u32).collect();
            order.sort_unstable_by_key(|&i| positions[i as usize]);
            *positions = order.iter().map(|&i| positions[i as usize]).collect();
            if !payloads.is_empty() {
                *payloads = payloads.chosen(&order);
            }
            (positions.len(), theirs)
        }
        Learned::New(new) => (new.items.len(), theirs),
        Learned::Union(items) => {
            let mut order: Vec<u32> = (0..items.len() as u32).collect();
            order.sort_unstable_by_key(|&i| items.get(i as usize));
            *items = items.chosen(&order);
            (items.len(), ours + theirs)
        }
        _ => (0, 0),
    };
    match n <= most {
        true => Ok(all),
        false => Err(Error::misbehaves_unseen(format!(
            "it announced {theirs} items, and {n} of them match or are new: it must have sent other items in some shards"
        ))),
    }
}

/// Refuses a peer whose padded shards have more items and dummies in total than we accept.
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

/// Refuses an impossible number of shards, and an operation or a protocol that does not run in shards.
pub(crate) fn check(number: u32, operation: &Operation, protocol: &Protocol) -> Result<()> {
    let wrong = |what: String| Err(Error::usage(what));
    if !(2..=MAX_SHARDS).contains(&number) {
        return wrong(format!("{} is not possible. Use 2 to {MAX_SHARDS}, or omit it", SHARDS.with(number)));
    }
    let cuts = |p: &Protocol| p.attaches(operation, Attachment::Shards);
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
