//! One party's side of a run of several: agree, compute, confirm, and open the result.
//!
//! ```text
//! to all  preamble, list     when they connect ([`crate::net::assemble`])
//! to all  hello              as between two parties; a term is the hash of the list of parties
//! to all  size               number of items, or the bound on it
//! to all  transcript         hash of the hellos and sizes of all: everybody was told the same
//! to all  go                 our side allows the run at these sizes
//!         ...                the protocol
//! to all  confirmation       a value that only this session of the two parties has
//! ```
//!
//! A party does each step with all others at once ([`Mesh`]). The session of all is a hash of what each has said. The
//! session of two of them follows from it and from the secret of their connection.

use super::agreement::{WireHello, differences, exchange_sizes, go, hellos, part, predict};
use super::estimate::Estimate;
use super::party::number;
use super::run::{Checked, Prepared, Request, RunOutcome, too_large};
use super::stages::{AGREEING, COMPUTING, CONFIRMING, OPENING};
use super::{Approval, Hello, Parties, Party, Proposal, confirm};
use crate::channel::{Account, Channel, Mesh, Message, PROTOCOL_VERSION, WireCount};
use crate::error::{Difference, Error, Result, Seat};
use crate::hash::SessionId;
use crate::many::{Many, seat};
use crate::net::{Connection, Fingerprint, Me};
use crate::operations::{Announced, Confirmed, Learned, Role, Sealed, Task};
use crate::params::MAX_SET;
use crate::protocols::{self, Choice};
use crate::rng::Prng;
use crate::speed::Speeds;
use std::num::NonZeroU8;
use std::time::{Duration, SystemTime};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

const TRANSCRIPT: Message<[u8; 32]> = Message::new(11, "to all  hash of what all parties have said");

/// We wait for a party that is alive this many times as long as the run is predicted to take. It may itself be waiting for
/// others, which may be slower than we are.
const PATIENCE: u32 = 20;

/// Our connections, and what is known of their other ends, ordered by seat.
struct Handshake {
    mesh: Mesh,
    others: Vec<Other>,
    /// Our fingerprint; `None` without TLS.
    our: Option<Fingerprint>,
    /// Our own seat.
    seat: Seat,
    /// The sessions with all parties, by number; at our own that of all. Empty until they are agreed on.
    pairs: Vec<SessionId>,
    /// The stages of the run with all.
    clock: Account,
}

/// What is known of the other end of a connection, as in [`Connection`].
struct Other {
    fingerprint: Option<Fingerprint>,
    exporter: Zeroizing<[u8; 32]>,
    wire: WireCount,
    account: Account,
}

/// Runs our side ([`super::run::run_if`]).
pub(super) fn run_if(
    connections: Vec<Connection>,
    prepared: Prepared,
    approval: &mut dyn Approval,
    rng: &mut Prng,
) -> Result<RunOutcome> {
    let began = SystemTime::now();
    let Prepared { request, set, .. } = prepared;
    let set = set.whole()?;
    let mut handshake = Handshake::new(connections, &request)?;
    let done = handshake.approved(&request, false, approval, rng).and_then(|proposal| {
        approval.begins(&proposal)?;
        handshake.be_patient(&proposal, &request)?;
        let task = request.task(&proposal, &set, None);
        handshake.clock.begin(COMPUTING);
        let (sealed, confirmed) = handshake.compute(&proposal, &task, &request, rng)?;
        Ok((proposal, sealed, confirmed))
    });
    let Handshake { mesh, others, our, clock, .. } = handshake;
    let (proposal, sealed, confirmed) = mesh.finish(done)?;
    clock.begin(OPENING);
    let learned = sealed.open(confirmed)?;
    let terms = proposal.terms();
    let Proposal { session_id, choice, parties, .. } = proposal;
    let wires = others.iter().map(|other| &other.wire);
    let bytes = (wires.clone().map(WireCount::sent).sum(), wires.map(WireCount::received).sum());
    let (messages, stages) = (Account::messages(others.iter().map(|other| &other.account)), clock.stages());
    let (why, prepared) = (None, false);
    Ok(RunOutcome {
        learned,
        session_id,
        choice,
        why,
        began,
        our,
        terms,
        parties,
        prepared,
        bytes,
        messages,
        stages,
    })
}

/// Agrees with parties that also run a check ([`super::run::check`]).
pub(super) fn check(
    connections: Vec<Connection>,
    request: &Request,
    approval: &mut dyn Approval,
    milliseconds: &dyn Fn(&Proposal) -> Result<u64>,
    rng: &mut Prng,
) -> Result<Checked> {
    let mut handshake = Handshake::new(connections, request)?;
    let checked = handshake.approved(request, true, approval, rng).and_then(|proposal| {
        let ours = milliseconds(&proposal)?;
        let their_milliseconds = handshake.mesh.each(|_, channel| predict(channel, ours))?;
        Ok(Checked { proposal, their_milliseconds })
    });
    handshake.mesh.finish(checked)
}

impl Handshake {
    /// Refuses connections that are not those to the parties of the request.
    fn new(connections: Vec<Connection>, request: &Request) -> Result<Handshake> {
        let Some(me) = &request.spec.parties else {
            return Err(Error::Bug("a run of two parties over several connections".into()));
        };
        let expected = me.others().map(|member| (member.seat(), member.fingerprint()));
        let fits = |(c, (seat, fingerprint)): (&Connection, (Seat, Fingerprint))| {
            c.seat == seat && c.peer.is_none_or(|peer| peer == fingerprint)
        };
        if connections.len() != me.others().count() || !connections.iter().zip(expected).all(fits) {
            return Err(Error::Bug("connections that are not those to the parties of the run".into()));
        }
        let our = connections.first().and_then(|connection| connection.our);
        let parts = connections.into_iter().map(|connection| {
            let Connection { channel, seat, peer, exporter, wire, .. } = connection;
            let account = channel.account().clone();
            ((seat, channel), Other { fingerprint: peer, exporter, wire, account })
        });
        let (links, others) = parts.unzip();
        let mesh = Mesh::new(me.own().seat(), links)?;
        let (seat, clock) = (me.own().seat(), Account::default());
        clock.begin(AGREEING);
        Ok(Handshake { mesh, others, our, seat, pairs: Vec::new(), clock })
    }

    /// Agrees on the run, and returns when all parties allow it.
    fn approved(
        &mut self,
        request: &Request,
        check: bool,
        approval: &mut dyn Approval,
        rng: &mut Prng,
    ) -> Result<Proposal> {
        request.check()?;
        let hello = request.hello(check);
        let ours = request.input.announced();
        if ours.size > MAX_SET {
            return Err(Error::usage(format!(
                "our set of {} items is more than this version supports ({MAX_SET}). Split it",
                ours.size
            )));
        }
        // Hellos.
        let said = words(&hello, rng)?;
        let leader = seat(0);
        let met = self.mesh.each(|who, channel| meet_one(channel, &hello, &said, who, who == leader))?;
        // Nobody gives up before it has read what all others ask for. So all see every difference themselves.
        let (theirs, differences): (Vec<_>, Vec<_>) = met.into_iter().unzip();
        let differences: Vec<_> = differences.into_iter().flatten().collect();
        if !differences.is_empty() {
            return Err(Error::Disagreement(differences));
        }
        let choice = hello.spec.candidates.first;
        let parties = self.parties(request, &theirs)?;
        // A placeholder until the sizes are known.
        let session_id = SessionId::of([0; 32]);
        let common = choice.into();
        let mut proposal = Proposal { session_id, hello, choice, theirs: common, why: None, ours, parties };
        // Sizes, and whether everybody was told the same.
        let sized = self.sized(request, &mut proposal, (&said, &theirs));
        // A log must list every party that may know our size.
        if let Err(error) = sized {
            approval.refused(&proposal, &error);
            return Err(error);
        }
        approval.approve(&proposal)?;
        self.mesh.each(|_, channel| go(channel))?;
        Ok(proposal)
    }

    /// The other parties, of which the sizes are not known yet.
    fn parties(&self, request: &Request, theirs: &[HelloBytes]) -> Result<Parties> {
        let members = request.spec.parties.iter().flat_map(Me::others);
        let mut all = members.zip(&self.others).zip(theirs).map(|((member, other), said)| Party {
            seat: member.seat(),
            fingerprint: other.fingerprint,
            name: Some(member.name().into()),
            announced: Announced { size: 0, padded: said.padded },
        });
        let first = all.next().ok_or_else(|| Error::Bug("a run without other parties".into()))?;
        Ok(Parties::new(first, all.collect()))
    }

    /// Exchanges the sizes, and compares what all parties were told. The sessions follow from it.
    fn sized(
        &mut self,
        request: &Request,
        proposal: &mut Proposal,
        (said, theirs): (&HelloBytes, &[HelloBytes]),
    ) -> Result<()> {
        let ours = proposal.ours.size;
        let sizes = self.mesh.each(|_, channel| exchange_sizes(channel, ours))?;
        for (party, size) in proposal.parties.iter_mut().zip(&sizes) {
            party.announced.size = *size;
        }
        if let Some(party) = proposal.parties.iter().find(|p| p.announced.size > request.local.max_peer_items)
        {
            return Err(too_large(party, request));
        }
        let others = self.others.iter().zip(theirs).zip(&sizes);
        let mut all: Vec<_> = others.map(|((other, said), size)| (said, other.fingerprint, *size)).collect();
        let me = proposal.me();
        all.insert(me, (said, self.our, ours));
        let session = session_of_several(all.into_iter(), proposal.choice);
        proposal.session_id = session;
        let pairs = proposal.parties.iter().zip(&self.others);
        let pairs =
            pairs.map(|(party, other)| session_of_pair(&session, &other.exporter, [self.seat, party.seat]));
        self.pairs = pairs.collect();
        self.pairs.insert(me, session);
        self.mesh.each(|_, channel| same_session(channel, &session))?;
        Ok(())
    }

    /// Has every channel wait as long as the run may take.
    fn be_patient(&mut self, proposal: &Proposal, request: &Request) -> Result<()> {
        let work = Estimate::of(proposal, false, &Speeds::built_in(request.local.threads.count()))?.work;
        self.mesh.be_patient(work.saturating_mul(PATIENCE).min(Duration::from_secs(7 * 24 * 3600)));
        Ok(())
    }

    /// Computes the result, and confirms the end with everybody.
    fn compute<'a>(
        &mut self,
        proposal: &Proposal,
        task: &Task<'a>,
        request: &Request,
        rng: &mut Prng,
    ) -> Result<(Sealed<'a, Learned>, Confirmed)> {
        let bounds = proposal.bounds();
        let mut many = Many {
            me: proposal.me(),
            mesh: &mut self.mesh,
            pairs: self.pairs.clone(),
            session: proposal.session_id,
            rng,
            threads: &request.local.threads,
        };
        let sealed = protocols::run_multiparty(proposal.choice.protocol, task, &mut many, &bounds)?;
        self.clock.begin(CONFIRMING);
        let pairs = &self.pairs;
        let confirmed = self.mesh.each(|seat, channel| match pairs.get(number(seat)) {
            Some(session) => confirm(channel, session),
            None => Err(Error::bug(format!("no session with {seat}"))),
        })?;
        let confirmed = confirmed.into_iter().next();
        Ok((sealed, confirmed.ok_or_else(|| Error::Bug("a run without other parties".into()))?))
    }
}

/// What another party of a run of several has said of itself.
struct HelloBytes {
    /// Its hello as it came.
    hello: Vec<u8>,
    /// Whether it pads its set.
    padded: bool,
}

/// Our own words in a run of several: the hello, with a nonce, as it is sent to all others.
fn words(hello: &Hello, rng: &mut Prng) -> Result<HelloBytes> {
    Ok(HelloBytes { hello: WireHello::new(hello, rng.bytes()).to_bytes()?, padded: hello.padded })
}

/// Compares everything in `hello`, of which `ours` is what we say to all, with what another party of a run of several
/// says: `who`, which leads, by the list, or does not. There is one candidate.
fn meet_one(
    channel: &mut Channel,
    hello: &Hello,
    ours: &HelloBytes,
    who: Seat,
    leads: bool,
) -> Result<(HelloBytes, Vec<Difference>)> {
    let (bytes, theirs) = hellos(channel, &ours.hello)?;
    let candidates = theirs.candidates()?;
    let common = candidates.contains(hello.spec.candidates.first);
    let role = Role::multiparty(leads);
    let mut differences = differences(hello, &theirs, &candidates, !common, role)?;
    differences.iter_mut().for_each(|difference| difference.who = who);
    Ok((HelloBytes { hello: bytes, padded: theirs.padded }, differences))
}

/// The session's id of a run of several: a hash of what each party has said, who it is, and the size that it announced,
/// in the order of the parties, and of the choice.
fn session_of_several<'s>(
    parties: impl ExactSizeIterator<Item = (&'s HelloBytes, Option<Fingerprint>, usize)>,
    choice: Choice,
) -> SessionId {
    let mut hasher = blake3::Hasher::new_derive_key("veilset 2026-11 session id, several parties");
    part(&mut hasher, &PROTOCOL_VERSION.to_le_bytes());
    part(&mut hasher, &(parties.len() as u64).to_le_bytes());
    for (said, fingerprint, size) in parties {
        part(&mut hasher, &said.hello);
        part(&mut hasher, fingerprint.as_ref().map_or(&[], |f| &f.as_bytes()[..]));
        part(&mut hasher, &(size as u64).to_le_bytes());
    }
    part(&mut hasher, choice.protocol.name.as_bytes());
    part(&mut hasher, choice.group.as_bytes());
    SessionId::of(*hasher.finalize().as_bytes())
}

/// The session of two parties within a run of several, from the secret of their connection.
fn session_of_pair(session: &SessionId, exporter: &[u8; 32], mut seats: [Seat; 2]) -> SessionId {
    seats.sort_unstable();
    let mut hasher = blake3::Hasher::new_derive_key("veilset 2026-11 session id, two of several parties");
    part(&mut hasher, session.as_bytes());
    part(&mut hasher, exporter);
    part(&mut hasher, &seats.map(|seat| seat.number().map_or(0, NonZeroU8::get)));
    SessionId::of(*hasher.finalize().as_bytes())
}

/// Makes sure that another party of a run of several was told the same as we by everybody.
fn same_session(channel: &mut Channel, session: &SessionId) -> Result<()> {
    let ours = blake3::derive_key("veilset 2026-11 what all parties have said", session.as_bytes());
    channel.tx.send(TRANSCRIPT, &[ours])?;
    match channel.rx.recv(TRANSCRIPT, 1)?.first() {
        Some(theirs) if bool::from(ours.ct_eq(theirs)) => Ok(()),
        _ => Err(Error::misbehaves(
            "it was told other requests or sizes than we were: one of the parties tells the others different things",
        )),
    }
}

#[cfg(test)]
#[path = "several_tests.rs"]
mod tests;
