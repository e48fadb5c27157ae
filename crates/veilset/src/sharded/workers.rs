//! A sharded run whose shards are run by workers: two parties agree, and then many machines of each party compute.
//!
//! ```text
//! both         the key of the shards is drawn, as on one machine (sharded::run)
//! both  kept   the shards whose results are kept
//!       then in rounds, until both parties have all results:
//! both  lanes  the number of workers, and the lanes that they can run
//! both  keys   the fingerprints of the workers' keys, which are made for this round
//!       lane j: a worker of each party runs some of the missing shards, over a connection of its own
//! both  kept   the shards whose results are kept
//! both  confirmation
//! ```
//!
//! The two coordinators, which agree on the run, hold the identities, ask the policy, write the log and keep the results; their
//! connection stays open. A worker gets a [`Ticket`]: a private key that is made for one lane of one round, and the fingerprint
//! of the worker that it meets. The coordinators exchange these fingerprints over their connection. So an identity never leaves
//! its machine, a worker's stolen key is of no use after the round, and no other worker is accepted.
//!
//! *What workers show.* The sessions of the shards show the same as those on one machine ([`crate::sharded::run`]), and have
//! the same sizes. The peer also sees the number of workers, which shards each of them runs, how long that takes, and which of
//! them fail.
//!
//! *Time.* A worker closes its connection without waiting until its last results are opened, and ends no sooner than the
//! average time of a shard after that. So its end does not show how long opening takes, unless that is longer than a shard. The
//! engine shows more with the work that it does while the peer waits: it cuts the table, fetches the first rows, and hands over
//! results (docs/security/jobs.md).
//!
//! *Failures.* If a lane fails, the results that it has handed over count; its other shards run in a later round. Two rounds in
//! succession without a new result that both parties have end the run. It can be resumed if its results are kept in a folder.
//! No shard is begun more than 5 times, in one session or several: a peer may falsely say that it lacks a result, and use
//! another set each time.

use crate::channel::{Canceller, Channel, Mesh, Message, Timeouts};
use crate::error::{Error, Result, Seat};
use crate::hash::{Domain, SessionId};
use crate::net::{Endpoint, Fingerprint, Identity, Protection, establish};
use crate::operations::{Announced, Confirmed, Learned, Role, Sealed};
use crate::protocols::Choice;
use crate::rng::Prng;
use crate::secret::Secret;
use crate::session::run::Request;
use crate::session::stages::{CONFIRMING, WORKERS};
use crate::session::{Hello, Party, Proposal, confirm};
use crate::sharded::disk::Source;
use crate::sharded::engine::{Lanes, RemoteSet};
use crate::sharded::folder::secret_json;
use crate::sharded::learned;
use crate::sharded::run::{Key, Results, ShardedRun, Shards, exchange_kept, leaving, locked};
use crate::spelling::INSECURE_PLAINTEXT;
use crate::threads;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use zeroize::Zeroize;

/// The maximum number of shards of a lane in a round. All of them count as begun, and an engine may lose all results of a
/// round.
const EACH: usize = 8;
/// The number of rounds in succession without a new result that both parties have, after which the run ends.
const FRUITLESS: u32 = 2;
/// The interval at which a worker checks whether to stop.
const LOOK: Duration = Duration::from_millis(500);
/// The time for which a ticket is valid, and for which the coordinators wait for each other.
const GOOD_FOR: Duration = Duration::from_secs(7 * 86_400);

const LANES: Message<u64> =
    Message::new(0x70, "number of workers, and a bit for each lane that they can run");
const KEYS: Message<[u8]> = Message::new(0x74, "fingerprints of the workers' keys");
const LANE: Message<[u8; 32]> = Message::new(0x76, "what a lane consists of");

/// A worker's instructions and keys for its shards. It contains nothing of an identity, but is as secret as the data: anyone
/// who has it can take the worker's place, and can compute the shard of any item.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ticket {
    /// The session of the lane.
    session: [u8; 32],
    /// The number of the lane, counted from 0.
    lane: u16,
    /// The key of the shards.
    key: [u8; 32],
    /// The number of shards of the job.
    number: u32,
    /// The shards of this lane, in the order in which they run.
    shards: Vec<u32>,
    /// The worker's private key.
    seed: [u8; 32],
    /// The fingerprint of the worker that it meets.
    peer: String,
    /// The names of the protocol and the group.
    choice: (String, String),
    /// A hash of the terms of the job ([`hash_of_terms`]).
    terms: [u8; 32],
    /// The announcements of our set and of theirs: the size, and whether it is padded.
    announced: [(u64, bool); 2],
    /// The time at which it expires, in seconds since 1970.
    until: u64,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.key.zeroize();
        self.seed.zeroize();
    }
}

impl Ticket {
    /// The ticket as it is sent to the worker.
    fn to_bytes(&self) -> Result<Secret<Vec<u8>>> {
        secret_json("a ticket", self, 2048 + 8 * self.shards.len())
    }

    /// Reads the ticket that a worker got.
    ///
    /// # Errors
    /// [`Error::Usage`] if the bytes are not a ticket of this version.
    pub fn of_bytes(bytes: &[u8]) -> Result<Ticket> {
        serde_json::from_slice(bytes).map_err(|_| {
            Error::Usage(
                "this is not a worker's ticket of this version. Use the same version of veilset on all machines"
                    .into(),
            )
        })
    }

    /// The number of its lane, counted from 0.
    pub fn lane(&self) -> u16 {
        self.lane
    }

    /// The shards of its lane, in the order in which they run.
    pub fn shards(&self) -> &[u32] {
        &self.shards
    }

    /// The worker's TLS identity, and the fingerprint of the worker that it expects.
    fn protection(&self) -> Result<Protection> {
        let wrong = |e| Error::usage(format!("the ticket names no worker of the other side: {e}"));
        let peer = self.peer.parse().map_err(wrong)?;
        Ok(Protection::Tls { identity: Arc::new(Identity::of_seed(&self.seed)?), peer })
    }

    /// Refuses a ticket that has expired, or whose job has other terms than this request.
    fn check(&self, request: &Request<'_>) -> Result<()> {
        if since_1970(SystemTime::now())?.as_secs() > self.until {
            return Err(Error::Usage(
                "the ticket of this worker has expired. Resume the job, which makes new ones, and check the clocks".into(),
            ));
        }
        match hash_of_terms(&request.hello(false)) == self.terms {
            true => Ok(()),
            false => Err(Error::Usage(
                "the worker was told other options than those of its ticket's job. Give all workers the same options".into(),
            )),
        }
    }
}

/// Our worker in a lane.
pub struct Lane<'a> {
    /// The coordinator's request, with an empty set.
    pub request: Request<'a>,
    /// The source of the items of its shards.
    pub source: &'a dyn Source,
    /// Takes the result of each shard as soon as it is opened.
    pub keep: &'a (dyn Fn(u32, &[u8]) -> Result<()> + Sync),
    /// The address of the peer's worker, or the address at which our worker waits for it.
    pub endpoint: &'a Endpoint,
    /// The time-outs of the connection.
    pub timeouts: Timeouts,
    /// Returns whether the worker must stop.
    pub cancelled: &'a (dyn Fn() -> bool + Sync),
    /// Takes messages for the user while the connection is established.
    pub notice: &'a dyn Fn(&str),
}

impl Lane<'_> {
    /// Runs the shards of this ticket, one after another.
    ///
    /// # Errors
    /// [`Error::Usage`] for an invalid request, or a ticket that has expired or has other terms; [`Error::Peer`] for a peer's
    /// worker that was told to compute something else; the errors of [`establish`], of the protocol, of the source, and of
    /// `keep`; [`Error::Cancelled`]. An error about the peer that is found in a result goes to `keep` in place of the result.
    pub fn run(&self, ticket: &Ticket) -> Result<()> {
        let request = &self.request;
        request.check()?;
        ticket.check(request)?;
        let connection =
            establish(self.endpoint, &ticket.protection()?, self.timeouts, self.cancelled, self.notice)?;
        let [ours, theirs] = ticket
            .announced
            .map(|(size, padded)| Announced { size: usize::try_from(size).unwrap_or(usize::MAX), padded });
        let (protocol, group) = &ticket.choice;
        let choice = Choice::named(protocol, group).map_err(Error::usage)?;
        let proposal = Proposal {
            hello: request.hello(false),
            choice,
            theirs: choice.into(),
            session_id: session_of(ticket.session, &connection.exporter),
            why: None,
            ours,
            parties: Party { seat: Seat::PEER, fingerprint: connection.peer, name: None, announced: theirs }
                .into(),
        };
        let shards = Shards {
            request,
            proposal: &proposal,
            results: &HandOver(self.keep),
            wrong: &Mutex::default(),
            source: self.source,
            key: &Key::of(ticket.key),
            numbers: &ticket.shards,
        };
        let began = Instant::now();
        let canceller = connection.channel.canceller();
        let (_, left) = stoppable(&canceller, self.cancelled, || {
            leaving(Mesh::of_two(connection.channel), |open| {
                agree(open.channel()?, ticket, &proposal)?;
                shards.run(open, &mut Prng::from_os()?)
            })
        })?;
        // We end no earlier than if one more shard had run: the time to open results after we left does not show.
        let shard = (left - began) / ticket.shards.len().max(1) as u32;
        thread::sleep((left + shard).saturating_duration_since(Instant::now()));
        Ok(())
    }
}

/// Does `work` over a channel, which is cancelled soon after `cancelled` returns true.
fn stoppable<T>(
    canceller: &Canceller,
    cancelled: &(dyn Fn() -> bool + Sync),
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let (ends, over) = mpsc::channel::<()>();
    thread::scope(|scope| {
        threads::start(scope, move || {
            while over.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                if cancelled() {
                    return canceller.cancel();
                }
            }
        })?;
        let done = work();
        drop(ends);
        done
    })
}

/// The time since 1970, from which the expiry of tickets is counted. Refuses a clock that is set before that.
fn since_1970(time: SystemTime) -> Result<Duration> {
    time.duration_since(UNIX_EPOCH).map_err(|_| {
        Error::Usage(
            "this machine's clock is set before 1970, so no ticket of a worker would ever expire. Set it"
                .into(),
        )
    })
}

/// The session of a lane over one connection. If a ticket is carried out twice, the two sessions differ.
fn session_of(ticket: [u8; 32], exporter: &[u8; 32]) -> SessionId {
    let session = Domain::new(&SessionId::of(ticket), "job, session of a lane's connection");
    SessionId::of(session.hash(&[exporter]))
}

/// A hash of the terms of a job, without the terms that may differ between its sessions, and the list of parties.
fn hash_of_terms(hello: &Hello) -> [u8; 32] {
    let mut hash = blake3::Hasher::new_derive_key("veilset 2026-11 job, terms of its workers");
    for term in hello.terms().iter().filter(|term| !matches!(term.key, "purpose" | "job" | "parties")) {
        hash.update(term.key.as_bytes()).update(&[0]).update(term.value.as_bytes()).update(&[0]);
    }
    *hash.finalize().as_bytes()
}

/// Makes sure that both workers of a lane were told to compute the same.
fn agree(channel: &mut Channel, ticket: &Ticket, proposal: &Proposal) -> Result<()> {
    let mut terms = blake3::Hasher::new_derive_key("veilset 2026-11 job, what a lane consists of");
    terms.update(proposal.session_id.as_bytes()).update(&ticket.terms);
    let (protocol, group) = &ticket.choice;
    terms.update(protocol.as_bytes()).update(&[0]).update(group.as_bytes()).update(&[0]);
    let mut announced = [&proposal.ours, &proposal.parties.peer().announced];
    if proposal.hello.spec.role == Role::Sender {
        announced.reverse();
    }
    for announced in announced {
        terms.update(&(announced.size as u64).to_le_bytes()).update(&[announced.padded.into()]);
    }
    terms.update(&ticket.key).update(&ticket.number.to_le_bytes());
    ticket.shards.iter().for_each(|shard| {
        terms.update(&shard.to_le_bytes());
    });
    let ours = *terms.finalize().as_bytes();
    channel.tx.send(LANE, &[ours])?;
    match channel.rx.recv(LANE, 1)?[..] == [ours] {
        true => Ok(()),
        false => Err(Error::misbehaves(
            "its worker was told to compute something else. Both sides must give all workers the options of the job",
        )),
    }
}

/// Hands results over to the coordinator.
struct HandOver<'a>(&'a (dyn Fn(u32, &[u8]) -> Result<()> + Sync));

impl Results for HandOver<'_> {
    /// Does nothing: the coordinator has recorded that the shard begins.
    fn attempt(&self, _: u32) -> Result<()> {
        Ok(())
    }

    fn keep(&self, shard: u32, learned: Result<Learned>) -> Result<()> {
        (self.0)(shard, &learned::to_bytes(learned)?)
    }
}

/// Has workers run all shards whose results one party or the other lacks, confirms the end, and leaves. Returns the result of
/// all shards together. When it is opened, the workers get the result of each shard too.
pub(crate) fn run<'s>(
    sharded: &'s ShardedRun<'_>,
    spread: &'s RemoteSet,
    mut mesh: Mesh,
    rng: &mut Prng,
) -> Result<(Sealed<'s, Learned>, Confirmed)> {
    let peer = sharded.proposal.parties.peer();
    let confirmed = mesh.with(peer.seat, |channel| match peer.fingerprint {
        Some(_) => rounds(sharded, spread, channel, rng),
        None => Err(Error::usage(format!("workers need TLS. Omit {INSECURE_PLAINTEXT}"))),
    });
    let confirmed = mesh.finish(confirmed)?;
    let each = |shard: u32, learned: &Learned| {
        spread.workers.result(shard, &learned::to_bytes(Ok(learned.clone()))?)
    };
    Ok((sharded.whole(each), confirmed))
}

/// Has workers run shards, round by round, until both parties have all results, and confirms the end.
fn rounds(
    sharded: &ShardedRun<'_>,
    spread: &RemoteSet,
    channel: &mut Channel,
    rng: &mut Prng,
) -> Result<Confirmed> {
    let (key, kept) = sharded.begin(channel, rng)?;
    // No message of the protocol goes over this connection, so we wait as long as tickets are valid, unless the peer is gone.
    channel.set_patience(GOOD_FOR);
    channel.account().begin(WORKERS);
    spread.workers.cut(key.bytes())?;
    let mut both = exchange_kept(channel, &kept)?;
    let (kept, mut fruitless) = (Mutex::new(kept), 0);
    for number in 0u32.. {
        let lacking: Vec<u32> = (0..sharded.number()).filter(|&shard| !both[shard as usize]).collect();
        if lacking.is_empty() {
            break;
        }
        let round = Round { sharded, spread, key: &key, number };
        let failed = round.run(&lacking, channel, &kept, rng)?;
        let now = exchange_kept(channel, &locked(&kept))?;
        fruitless = if grown(&both, &now)? { 0 } else { fruitless + 1 };
        if fruitless == FRUITLESS {
            return Err(Error::refused(format!(
                "no worker completed a shard: {}. Mend it, then run again",
                failed.unwrap_or_else(|| "those of the other side failed".into())
            )));
        }
        both = now;
    }
    channel.account().begin(CONFIRMING);
    confirm(channel, &sharded.proposal.session_id)
}

/// Whether both parties have more results than before. Refuses a peer that no longer has a result that it had: it could have
/// shards run again with another set.
fn grown(before: &[bool], now: &[bool]) -> Result<bool> {
    if before.iter().zip(now).any(|(before, now)| *before && !now) {
        return Err(Error::misbehaves(
            "it does not have the result of a shard any more which it said that it keeps. Find out why, and begin a new job",
        ));
    }
    Ok(before != now)
}

/// A round, in which each lane runs some shards.
struct Round<'a> {
    sharded: &'a ShardedRun<'a>,
    spread: &'a RemoteSet,
    key: &'a Key,
    number: u32,
}

impl Round<'_> {
    /// Has workers run these shards, or as many of them as one round takes. Returns the first reason why a lane failed, if any
    /// did.
    fn run(
        &self,
        lacking: &[u32],
        channel: &mut Channel,
        kept: &Mutex<Vec<bool>>,
        rng: &mut Prng,
    ) -> Result<Option<String>> {
        let Round { sharded, spread, .. } = self;
        let tickets = self.tickets(lacking, channel, rng)?;
        let given: BTreeSet<u32> = tickets.iter().flat_map(Ticket::shards).copied().collect();
        given.iter().try_for_each(|&shard| sharded.keep.attempt(shard))?;
        let seat = sharded.proposal.parties.peer().seat;
        let keep = |shard: u32, bytes: &[u8]| {
            let learned = learned::of_bytes(bytes)?.map_err(|error| error.by(seat));
            if !given.contains(&shard) {
                return Err(Error::usage(format!("a worker returned shard {shard}, which it was not given")));
            }
            // If a shard ran again because the other party lacked its result, we keep the result that we had.
            if std::mem::replace(&mut locked(kept)[shard as usize], true) {
                return Ok(());
            }
            if let Err(error) = &learned {
                locked(sharded.wrong).get_or_insert(error.clone());
            }
            sharded.keep.keep(shard, learned)
        };
        let tickets: Vec<_> = tickets.iter().map(Ticket::to_bytes).collect::<Result<_>>()?;
        Ok(spread.workers.run(&tickets, &keep)?.into_iter().flatten().next())
    }

    /// Agrees with the peer on the lanes of this round and on the keys of their workers. Returns our ticket for each lane.
    fn tickets(&self, lacking: &[u32], channel: &mut Channel, rng: &mut Prng) -> Result<Vec<Ticket>> {
        let proposal = self.sharded.proposal;
        let ours = words(&self.spread.workers.lanes());
        channel.tx.send(LANES, &ours)?;
        let theirs = channel.rx.recv(LANES, ours.len())?;
        let lanes = common(&ours, &theirs);
        if lanes.is_empty() {
            return Err(Error::Refused(
                "there are no lanes that workers of both sides can run now. Start workers, then run again"
                    .into(),
            ));
        }
        let lanes = &lanes[..lanes.len().min(lacking.len())];
        let seeds: Vec<Secret<[u8; 32]>> = lanes.iter().map(|_| Secret::new(rng.bytes())).collect();
        let (mut fingerprints, mut length) = (Vec::new(), 0);
        for seed in &seeds {
            let fingerprint = Identity::of_seed(seed)?.fingerprint();
            length = fingerprint.as_bytes().len();
            fingerprints.extend_from_slice(fingerprint.as_bytes());
        }
        channel.tx.send_bytes(KEYS, &fingerprints)?;
        let theirs = channel.rx.recv_bytes(KEYS, fingerprints.len())?;
        let peers = theirs.chunks_exact(length).map(Fingerprint::of_bytes).collect::<Option<Vec<_>>>();
        let peers = peers.ok_or_else(|| Error::misbehaves("it sent fingerprints that are none"))?;
        let session = Domain::new(&proposal.session_id, "job, session of a lane");
        let until = since_1970(SystemTime::now())? + GOOD_FOR;
        let of = |at: usize| lacking.iter().copied().skip(at).step_by(lanes.len()).take(EACH).collect();
        let tickets =
            seeds.iter().zip(peers).zip(lanes).enumerate().map(|(at, ((seed, peer), &lane))| Ticket {
                session: session.numbered(u64::from(self.number) << 16 | u64::from(lane)).hash(&[]),
                lane,
                key: *self.key.bytes(),
                number: self.sharded.number(),
                shards: of(at),
                seed: **seed,
                peer: peer.to_string(),
                choice: (proposal.choice.protocol.name.into(), proposal.choice.group.into()),
                terms: hash_of_terms(&proposal.hello),
                announced: [proposal.ours, proposal.parties.peer().announced]
                    .map(|announced| (announced.size as u64, announced.padded)),
                until: until.as_secs(),
            });
        Ok(tickets.collect())
    }
}

/// The number of workers, and a bit for each lane that they can run, as sent to the peer.
fn words(lanes: &Lanes) -> [u64; 1 + Lanes::MOST / 64] {
    let mut words = [0; 1 + Lanes::MOST / 64];
    words[0] = lanes.at_once as u64;
    match &lanes.places {
        None => words[1..].fill(u64::MAX),
        Some(places) => places
            .iter()
            .map(|&lane| usize::from(lane))
            .filter(|lane| *lane < Lanes::MOST)
            .for_each(|lane| words[1 + lane / 64] |= 1 << (lane % 64)),
    }
    words
}

/// The lanes of a round: lanes that both sides can run, and at most as many as each side can run at the same time.
fn common(ours: &[u64], theirs: &[u64]) -> Vec<u16> {
    let both = |at: usize| ours.get(at).copied().unwrap_or(0) & theirs.get(at).copied().unwrap_or(0);
    let at_once = ours.first().min(theirs.first()).copied().unwrap_or(0);
    let lanes = (0u16..).take(Lanes::MOST);
    let lanes = lanes.filter(|lane| both(1 + usize::from(lane / 64)) >> (lane % 64) & 1 == 1);
    lanes.take(usize::try_from(at_once).unwrap_or(usize::MAX)).collect()
}

#[cfg(test)]
#[path = "workers_tests.rs"]
mod tests;
