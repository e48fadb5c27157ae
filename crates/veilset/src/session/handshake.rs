//! The handshake of all parties, over the connections between each two of them.
//!
//! ```text
//! to all  preamble        "veilset" 0, version of the protocol; among several, sent before the list (`net/greeting.rs`)
//! to all  hello           the request, the protocols that the party allows, and a nonce: the same bytes to all
//! to all  size            announced number of items
//! R->S    choice          in a run of two: which of the common protocols; not sent if there is only one (`choosing.rs`)
//! to all  transcript      among several: a hash of everything so far, to make sure that all were told the same
//! to all  go              our side allows the run at these sizes
//!         ...             the protocol
//! to all  confirmation    a value that only this session of the two parties has
//! ```
//!
//! On each connection, a party sends such a message to all before it reads the other party's, and it ends the run for a
//! difference only after it has read all hellos. So each party sees every difference between its own request and the others.
//! After the hellos, all know the common candidates: the candidates of the receiver, or leader, that all others have too, in
//! the receiver's order.
//!
//! The session of all parties is a hash of their hellos, fingerprints and announced sizes, and of the choice. The session of
//! two parties is derived from it and from the secret of their connection. In a run of two, that is the session of the run.

use super::agreement::{Told, WireHello, differences, exchange_sizes, go, hellos, part};
use super::choosing::choose;
use super::request::Prepared;
use super::stages::AGREEING;
use super::{Approval, Hello, Parties, Party, Planning, Proposal, Spec};
use crate::artefact::filter::{FilterFacts, Head, owner};
use crate::channel::{Account, Channel, Mesh, Message, PROTOCOL_VERSION, WireCount, versions};
use crate::error::{Error, Result, Seat};
use crate::hash::SessionId;
use crate::net::{Connected, Connection, Fingerprint, Me};
use crate::operations::{Announced, Role};
use crate::params::MAX_SET;
use crate::params::filter::{Agreed, Contents};
use crate::planner::Choices;
use crate::protocols::{Attachment, Choice};
use crate::rng::Prng;
use crate::speed::Speeds;
use crate::spelling::{CAPACITY, FILTER, FOR, INSECURE_PLAINTEXT, PAD_TO, setting};
use std::time::{Duration, Instant};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

const TRANSCRIPT: Message<[u8; 32]> = Message::new(11, "to all  hash of what all parties have said");

/// A hint for failures on a connection without TLS.
const BOTH_PLAIN: &str = concat!("Were both sides run with ", setting!(insecure_plaintext), "?");

/// Our connections to all other parties of a run, and the state of the agreement over them.
pub(super) struct Handshake {
    pub(super) mesh: Mesh,
    /// The other parties, ordered by seat, without their sizes.
    parties: Parties,
    /// The remaining parts of the connections, in the same order.
    pub(super) ends: Vec<End>,
    /// Our fingerprint; `None` without TLS.
    pub(super) our: Option<Fingerprint>,
    /// The sessions with the other parties, by number; at our own number, the session of the run. Empty before the hellos,
    /// and final once the sizes and the choice are known.
    pub(super) pairs: Vec<SessionId>,
    /// Times the stages of the run.
    pub(super) clock: Account,
}

/// The parts of a [`Connection`] that remain without its channel.
pub(super) struct End {
    exporter: Zeroizing<[u8; 32]>,
    pub(super) wire: WireCount,
    pub(super) account: Account,
}

/// The facts that are known after the hellos.
pub(super) struct Met {
    /// The common candidates, in the receiver's order of preference.
    pub common: Choices,
    /// The hellos of all parties as they were sent, ordered by number.
    said: Vec<Vec<u8>>,
    /// The speeds that the receiver and the sender state.
    pub speeds: [Option<Speeds>; 2],
    /// The time from our first message until all hellos have arrived.
    pub round_trip: Duration,
}

impl Handshake {
    /// Wraps the connections. Refuses connections that do not lead to exactly the parties of the request.
    pub(super) fn new(connected: Connected, spec: &Spec) -> Result<Handshake> {
        let connections = match connected {
            Connected::Peer(connection) => vec![*connection],
            Connected::Parties(connections) => connections,
        };
        let several = spec.several();
        let (mut links, mut parties, mut ends, mut our) = (Vec::new(), Vec::new(), Vec::new(), None);
        let mut fits = true;
        let mut listed = spec.parties.iter().flat_map(Me::others);
        for connection in connections {
            let Connection { channel, seat, peer: fingerprint, peer_name: name, our: ours, exporter, wire } =
                connection;
            let member = listed.next();
            fits &= match member {
                None => seat == Seat::PEER,
                Some(member) => {
                    seat == member.seat() && fingerprint.is_none_or(|proven| proven == member.fingerprint())
                }
            };
            let name = member.map(|member| member.name().into()).or(name);
            // In a run of two, even one with a list, the other party is the peer.
            let seat = if several { seat } else { Seat::PEER };
            ends.push(End { exporter, wire, account: channel.account().clone() });
            links.push((seat, channel));
            parties.push(Party { seat, fingerprint, name, announced: Announced { size: 0, padded: false } });
            our = ours;
        }
        fits &= listed.next().is_none() && (several || parties.len() == 1);
        // In a run of two, the account of the channel is used, because it also times the stages of the protocol.
        let clock = if let [end] = &ends[..] { end.account.clone() } else { Account::default() };
        let parties = Parties::of(parties).filter(|_| fits);
        let parties = parties
            .ok_or_else(|| Error::Bug("connections that are not those to the parties of the run".into()))?;
        clock.begin(AGREEING);
        let ours = spec.parties.as_ref().filter(|_| several).map_or(Seat::PEER, |me| me.own().seat());
        Ok(Handshake { mesh: Mesh::new(ours, links)?, parties, ends, our, pairs: Vec::new(), clock })
    }

    /// Agrees on the run, and returns once all parties have allowed it.
    pub(super) fn approved(
        &mut self,
        prepared: &Prepared,
        check: bool,
        approval: &mut dyn Approval,
        rng: &mut Prng,
    ) -> Result<Proposal> {
        let request = prepared.request();
        request.check()?;
        let (met, mut proposal) = self.meet(prepared.hello(check), request.input.announced(), rng)?;
        prepared.check_owner(self.our, self.parties.peer().fingerprint)?;
        // A log must list every party that may know our size.
        let (accepts, planning) = (|proposal: &_| prepared.check_parties(proposal), request.local.planning);
        if let Err(error) = self.sized(&met, &mut proposal, &accepts, planning.as_ref()) {
            approval.refused(&proposal, &error);
            return Err(error);
        }
        approval.approve(&proposal)?;
        self.mesh.each(|_, channel| go(channel))?;
        Ok(proposal)
    }

    /// Agrees on everything in `hello`. The sizes and the choice are not known yet.
    pub(super) fn meet(
        &mut self,
        mut hello: Hello,
        ours: Announced,
        rng: &mut Prng,
    ) -> Result<(Met, Proposal)> {
        if ours.size > MAX_SET {
            return Err(Error::usage(format!(
                "our set of {} items is more than this version supports ({MAX_SET}). Split it",
                ours.size
            )));
        }
        let our_bytes = WireHello::new(&hello, rng.bytes()).to_bytes()?;
        let start = Instant::now();
        // No step fails for a difference, so all hellos are read, and every difference is reported.
        let (two, plain) = (self.parties.count() == 1, self.our.is_none());
        let told = self.mesh.each(|who, channel| {
            // Two different versions understand nothing else of each other. Without TLS, these are the first bytes that show
            // which protocol the peer speaks. Several have compared versions before their lists; two time this exchange.
            if two {
                versions(channel).map_err(|e| if plain { e.and(BOTH_PLAIN) } else { e })?;
            }
            // After an exchange of versions, the peer's hello answers our version, so this takes a round trip.
            let told = hellos(channel, &our_bytes)?;
            let differences = differences(&hello, &told, who)?;
            Ok((told, differences))
        })?;
        let round_trip = start.elapsed();
        let (told, differences): (Vec<Told>, Vec<_>) = told.into_iter().unzip();
        let differences: Vec<_> = differences.into_iter().flatten().collect();
        let Hello { spec: Spec { operation, role, ref candidates, .. }, .. } = hello;
        let of_peer = told.first().map_or(candidates, |peer| &peer.candidates);
        let of_receiver = if role == Role::Receiver { candidates } else { of_peer };
        let by_all = |choice: &Choice| {
            candidates.contains(*choice) && told.iter().all(|one| one.candidates.contains(*choice))
        };
        let common = of_receiver.kept(by_all).filter(|_| differences.is_empty());
        let Some(common) = common else { return Err(Error::Disagreement(differences)) };
        let mut parties = self.parties.clone();
        for (party, one) in parties.iter_mut().zip(&told) {
            party.announced.padded = one.hello.padded;
            if one.hello.shared_values && !(operation.uses.shares && role == Role::Receiver) {
                let what = "its hello has values to be shared, which only the sender of share has";
                return Err(Error::misbehaves(what).by(party.seat));
            }
            hello.spec.terms.shared_values |= one.hello.shared_values;
        }
        let speeds = told.first().and_then(|peer| peer.speeds);
        let speeds = if role == Role::Receiver { [hello.speeds, speeds] } else { [speeds, hello.speeds] };
        let theirs = if told.len() == 1 { of_peer.clone() } else { common.clone() };
        let filter = match told.first() {
            Some(peer) => {
                self.filter(&hello, peer, of_receiver).map_err(|error| error.by(parties.peer().seat))?
            }
            None => None,
        };
        let mut said: Vec<_> = told.into_iter().map(|one| one.said).collect();
        said.insert(hello.spec.number(), our_bytes);
        let (facts, agreed) = filter.clone().unzip();
        hello.filter = facts;
        hello.spec.terms.filter = agreed.or(hello.spec.terms.filter);
        let (session_id, choice) = (SessionId::of([0; 32]), common.first);
        let mut proposal = Proposal { session_id, hello, choice, theirs, why: None, ours, parties };
        let met = Met { common, said, speeds, round_trip };
        self.bind(&met, &mut proposal, 0);
        Ok((met, proposal))
    }

    /// Returns the receiver's filter in a run of two, if it was made in advance. The receiver must then have a single
    /// candidate, which can use it.
    fn filter(
        &self,
        hello: &Hello,
        peer: &Told,
        candidates: &Choices,
    ) -> Result<Option<(FilterFacts, Agreed)>> {
        let (receiver, sender, fingerprint) = match hello.spec.role {
            Role::Receiver => (&hello.filter, &peer.filter, self.our),
            Role::Sender => (&peer.filter, &hello.filter, self.parties.peer().fingerprint),
        };
        // A filter that only the sender has is a difference, for which the run has ended.
        let Some(facts) = receiver else { return Ok(None) };
        let Choice { protocol, group } = candidates.first;
        let offer = protocol.offer(hello.spec.operation).filter(|_| candidates.others.is_empty());
        let uses = offer.is_some_and(|offer| offer.takes_with(Attachment::Filter));
        let filter = facts.filter().map_err(|what| Error::misbehaves(format!("its hello has {what}")))?;
        match fingerprint {
            Some(fingerprint) if uses => {
                let (normalisation, columns) = (&hello.normalisation, hello.key_columns);
                let head = Head::of_facts(fingerprint, group, normalisation, columns, facts);
                let purpose = head.purpose();
                let contents = Some(Contents { purpose, digest: facts.digest });
                let owner = Some(owner(&fingerprint));
                Ok(Some((facts.clone(), Agreed { filter, owner, contents, held: sender.is_some() })))
            }
            None if uses => Err(Error::usage(format!(
                "a filter that was made in advance is bound to the identity of its owner, and this run has no TLS. Omit \
                 {FILTER}, or {INSECURE_PLAINTEXT}"
            ))),
            _ => Err(Error::misbehaves("its hello has a filter and a protocol that uses none")),
        }
    }

    /// Exchanges the sizes, asks `accepts`, settles on a candidate, derives the sessions, and checks the limits. Among
    /// several, also checks that all parties were told the same.
    pub(super) fn sized(
        &mut self,
        met: &Met,
        proposal: &mut Proposal,
        accepts: &dyn Fn(&Proposal) -> Result<()>,
        planning: Option<&Planning>,
    ) -> Result<()> {
        let ours = proposal.ours.size;
        let sizes = self.mesh.each(|_, channel| exchange_sizes(channel, ours))?;
        for (party, size) in proposal.parties.iter_mut().zip(sizes) {
            party.announced.size = size;
        }
        // A run that is refused from here on has one name for all.
        self.bind(met, proposal, ours);
        accepts(proposal)?;
        // Several need no choice: the leader's first common candidate is the same for all.
        if proposal.parties.count() == 1 && !met.common.others.is_empty() {
            let chosen = |channel: &mut Channel| choose(channel, proposal, met, planning);
            let picked = self.mesh.with(proposal.parties.peer().seat, chosen)?;
            (proposal.choice, proposal.why) = (picked.choice, picked.why);
            self.bind(met, proposal, ours);
        }
        within_limits(proposal)?;
        // A single other party cannot tell different things to different parties.
        if proposal.parties.count() > 1 {
            self.mesh.each(|_, channel| same_session(channel, &proposal.session_id))?;
        }
        Ok(())
    }

    /// Derives the sessions from everything that was said so far; `ours` is our size once it was said, and 0 before.
    pub(super) fn bind(&mut self, met: &Met, proposal: &mut Proposal, ours: usize) {
        let me = proposal.hello.spec.number();
        let mut who: Vec<_> =
            proposal.parties.iter().map(|party| (party.fingerprint, party.announced.size)).collect();
        who.insert(me, (self.our, ours));
        let all = who.into_iter().zip(&met.said).map(|((fingerprint, size), hello)| Said {
            hello,
            fingerprint,
            size,
        });
        let session = session_of_all(all, proposal.choice);
        let others = (0..met.said.len()).filter(|number| *number != me);
        let pairs =
            others.zip(&self.ends).map(|(other, end)| session_of_pair(&session, &end.exporter, [me, other]));
        self.pairs = pairs.collect();
        proposal.session_id = if let [pair] = &self.pairs[..] { *pair } else { session };
        self.pairs.insert(me, proposal.session_id);
    }
}

/// Refuses sets that are larger than this version, the protocol or a filter made in advance supports, counting the dummies
/// that the protocol inserts.
pub(super) fn within_limits(proposal: &Proposal) -> Result<()> {
    let (protocol, deal) = proposal.deal();
    let (n_receiver, n_sender) = protocol.sizes(&deal);
    if n_receiver.max(n_sender) > MAX_SET {
        return Err(Error::refused(format!(
            "with dummies the sets have {n_receiver} and {n_sender} items, more than this version supports \
             ({MAX_SET}). Agree on smaller values for {PAD_TO}"
        )));
    }
    protocol.check_sizes(deal.operation, [n_receiver, n_sender]).map_err(Error::refused)?;
    if proposal.parties.count() > 1 {
        proposal.cost().map_err(|error| Error::refused(error.marked()))?;
    }
    let Some(FilterFacts { capacity, queries, .. }) = proposal.hello.filter else { return Ok(()) };
    if n_receiver > capacity {
        return Err(Error::refused(format!(
            "the receiver has {n_receiver} items, and its filter is for {capacity}. Use a filter that was made with a \
             larger {CAPACITY}"
        )));
    }
    if n_sender > queries {
        return Err(Error::refused(format!(
            "the sender has {n_sender} items, and the receiver's filter is for {queries}. Use a filter that was made with \
             a larger {FOR}"
        )));
    }
    Ok(())
}

/// The data of one party that the session binds.
struct Said<'a> {
    /// The party's hello exactly as sent.
    hello: &'a [u8],
    fingerprint: Option<Fingerprint>,
    /// The announced size; 0 until it is known.
    size: usize,
}

/// Returns the session of all parties: a hash of the version, of the number of parties, of each party's hello, fingerprint
/// and size, ordered by number, and of the choice. Each part is prefixed with its length, so that no two different sessions
/// have the same input.
fn session_of_all<'s>(parties: impl ExactSizeIterator<Item = Said<'s>>, choice: Choice) -> SessionId {
    let mut hasher = blake3::Hasher::new_derive_key("veilset 2026-11 session id");
    part(&mut hasher, &PROTOCOL_VERSION.to_le_bytes());
    part(&mut hasher, &(parties.len() as u64).to_le_bytes());
    for Said { hello, fingerprint, size } in parties {
        part(&mut hasher, hello);
        part(&mut hasher, fingerprint.as_ref().map_or(&[], |f| &f.as_bytes()[..]));
        part(&mut hasher, &(size as u64).to_le_bytes());
    }
    part(&mut hasher, choice.protocol.name.as_bytes());
    part(&mut hasher, choice.group.as_bytes());
    SessionId::of(*hasher.finalize().as_bytes())
}

/// Returns the session of the two parties with these numbers, derived from the session of all and the secret of their
/// connection.
fn session_of_pair(session: &SessionId, exporter: &[u8; 32], mut numbers: [usize; 2]) -> SessionId {
    numbers.sort_unstable();
    let mut hasher = blake3::Hasher::new_derive_key("veilset 2026-11 session id, two parties");
    part(&mut hasher, session.as_bytes());
    part(&mut hasher, exporter);
    part(&mut hasher, &numbers.map(|number| number as u8));
    SessionId::of(*hasher.finalize().as_bytes())
}

/// Checks that the other party of this channel was told the same by all parties as we were.
fn same_session(channel: &mut Channel, session: &SessionId) -> Result<()> {
    let ours = blake3::derive_key("veilset 2026-11 what all parties have said", session.as_bytes());
    channel.tx.send(TRANSCRIPT, &[ours])?;
    match channel.rx.recv(TRANSCRIPT, 1)?.first() {
        Some(theirs) if bool::from(ours.ct_eq(theirs)) => Ok(()),
        // The liar may be any of the others.
        _ => Err(Error::misbehaves(
            "it was told other requests or sizes than we were: one of the parties tells the others different things",
        )
        .by(Seat::SOMEBODY)),
    }
}

#[cfg(test)]
#[path = "handshake_tests.rs"]
mod tests;
