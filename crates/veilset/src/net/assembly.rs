//! Making a mesh: one connection to each of the other parties of a list, in whichever order they start.
//!
//! One listener accepts all parties that connect to us, while one thread each connects to the others. The seat of a
//! connection is that of the party whose fingerprint its other end has proven in the TLS handshake, never what the
//! other end says. Of each party the first connection that proves its key is accepted, and none after it. When a party
//! is missing at the end of `connect_timeout`, or one leaves before all are here, everybody who is here is told, and the
//! error names it. Strangers can no more end or delay this than for a single [`Listener`].

use super::Identity;
use super::call::{Way, reach};
use super::connect::{Connection, Protection, Watch, Whom};
use super::listen::{LOOK, Listener, Reception, SPARE};
use super::room::HANDSHAKES;
use super::roster::{Me, Member, Roster};
use super::tls::{Failure, Keys};
use crate::channel::mesh::{Cause, channels_among, leave};
use crate::channel::{Link, Timeouts, WireCount};
use crate::error::{Error, Result};
use crate::threads;
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::num::NonZeroU8;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// Connects to all other parties of the list, or accepts their connections, within the connect time-out. Returns the
/// connections ordered by seat; [`crate::channel::Mesh::new`] takes their channels.
///
/// We listen at `listen`, HOST:PORT, or else at our address in the list, unless nobody connects to us. `cancelled` is
/// called several times a second and tells whether to give up. `notice` receives single lines for the user: where we
/// listen, who is connected, which strangers were turned away, and why a party cannot be reached yet.
///
/// # Errors
/// [`Error::Usage`] if the identity is not that of our entry. [`Error::Network`] names all parties that are missing
/// when the time is up. Another party that is not who it should be, or leaves before all are here, ends this at once,
/// and is named. No connection is left then, nor a thread that connects.
pub fn assemble(
    me: &Me,
    identity: &Arc<Identity>,
    listen: Option<&str>,
    timeouts: Timeouts,
    cancelled: &dyn Fn() -> bool,
    notice: &dyn Fn(&str),
) -> Result<Vec<Connection>> {
    me.check_identity(&identity.fingerprint())?;
    let waited_for = me.listens_for().next().is_some();
    if listen.is_some() && !waited_for {
        notice("no party of the list connects to us, so `listen` is not used");
    }
    let listener = if waited_for { Some(listener(me, listen)?) } else { None };
    assemble_at(me, identity, listener, timeouts, cancelled, notice)
}

/// Like [`assemble`], for a party that listens already, unless nobody connects to it: at our address in the list, or where
/// the other parties reach us by it.
///
/// # Errors
/// As [`assemble`]. [`Error::Bug`] if somebody connects to us and there is no listener.
pub fn assemble_at(
    me: &Me,
    identity: &Arc<Identity>,
    listener: Option<Listener>,
    timeouts: Timeouts,
    cancelled: &dyn Fn() -> bool,
    notice: &dyn Fn(&str),
) -> Result<Vec<Connection>> {
    me.check_identity(&identity.fingerprint())?;
    let watch = Watch::new(timeouts, cancelled, notice);
    let callers: Vec<_> = me.listens_for().map(Member::fingerprint).collect();
    let keys = Keys::accepting(identity, callers.into());
    let (tell, events) = mpsc::channel();
    let entrance = Entrance::open(listener, &keys, &watch)?;
    let (here, unreached) = (Vec::new(), BTreeMap::new());
    let mut assembly = Assembly { me, keys: &keys, watch: &watch, entrance, events, here, unreached };
    let stop = AtomicBool::new(false);
    let met = thread::scope(|scope| {
        let begun = me.connects_to().try_for_each(|member| {
            let (source, stop, deadline) = (me.roster().source(), &stop, watch.deadline);
            let call = Call { member, source, identity, timeouts, deadline, stop, tell: tell.clone() };
            let begun = thread::Builder::new().name("connect".into()).spawn_scoped(scope, || call.run());
            begun.map(drop).map_err(|e| threads::none(&e))
        });
        drop(tell);
        let met = begun.map_err(Cause::from).and_then(|()| assembly.meet());
        stop.store(true, Ordering::Relaxed);
        met
    });
    assembly.complete(met)
}

/// Starts to listen at `listen`, or else at our address.
fn listener(me: &Me, listen: Option<&str>) -> Result<Listener> {
    let source = me.roster().source();
    match (listen, me.own().address()) {
        (Some(address), _) => Listener::bind(address),
        (None, Some(address)) => Listener::bind(address).map_err(|e| match e {
            Error::Usage(what) => Error::usage(format!(
                "{what}. This is our \"address\" in {source}: if the other parties reach us there through another \
                 machine, say with `listen` where we listen on this one"
            )),
            e => e,
        }),
        (None, None) => Err(Error::Bug("somebody connects to us, who have no address".into())),
    }
}

/// What a thread that connects reports.
enum Event<'a> {
    /// A line for the user.
    Notice(String),
    /// How it ended.
    Ended(&'a Member, Box<Reached>),
}

/// A connection, or why there is none. The inner error means that the time was up.
type Reached = Result<Result<Connection, String>>;

/// A thread that connects to one party.
struct Call<'a> {
    member: &'a Member,
    source: &'a str,
    identity: &'a Arc<Identity>,
    timeouts: Timeouts,
    deadline: Instant,
    stop: &'a AtomicBool,
    tell: Sender<Event<'a>>,
}

impl Call<'_> {
    fn run(self) {
        let Call { member, source, identity, timeouts, deadline, stop, tell } = self;
        let cancelled = || stop.load(Ordering::Relaxed);
        let notice = |text: &str| {
            let _ = tell.send(Event::Notice(text.into()));
        };
        let whom = Whom::Member(member, source);
        let watch = Watch { deadline, whom, ..Watch::new(timeouts, &cancelled, &notice) };
        let security = Protection::Tls { identity: identity.clone(), peer: member.fingerprint() };
        let reached = reach(Way::direct(member.address().unwrap_or_default()), &security, &watch);
        let _ = tell.send(Event::Ended(member, Box::new(reached)));
    }
}

/// Where the other parties connect to us.
struct Entrance<'a> {
    listener: Listener,
    reception: Reception<'a>,
    spare: Vec<TcpListener>,
}

impl<'a> Entrance<'a> {
    /// Waits at the listener, if anybody connects to us.
    fn open(listener: Option<Listener>, keys: &'a Keys, watch: &'a Watch<'a>) -> Result<Option<Self>> {
        let listener = match (listener, keys.expected().is_empty()) {
            (_, true) => return Ok(None),
            (Some(listener), false) => listener,
            (None, false) => return Err(Error::Bug("somebody connects to us, who do not listen".into())),
        };
        let reception = Reception::new(keys, watch, listener.local_addr()?, HANDSHAKES)?;
        (watch.notice)(&format!("listening on {}", reception.at));
        let spare = listener.spare(keys.expected().len());
        Ok(Some(Entrance { listener, reception, spare }))
    }
}

/// A mesh in the making.
struct Assembly<'a> {
    me: &'a Me,
    keys: &'a Keys,
    watch: &'a Watch<'a>,
    /// Until all who connect to us are here.
    entrance: Option<Entrance<'a>>,
    events: Receiver<Event<'a>>,
    here: Vec<Connection>,
    /// Why parties could not be reached in the time.
    unreached: BTreeMap<NonZeroU8, String>,
}

impl<'a> Assembly<'a> {
    /// Returns when all are here, or the time is up.
    fn meet(&mut self) -> Result<(), Cause> {
        loop {
            self.watch.check()?;
            self.enter()?;
            self.hear()?;
            self.all_stay()?;
            if self.missing().next().is_none() || self.watch.left().is_zero() {
                return Ok(());
            }
            self.hint();
        }
    }

    /// The parties that are not here.
    fn missing(&self) -> impl Iterator<Item = &'a Member> {
        self.me.others().filter(move |member| !self.here.iter().any(|link| link.seat == member.seat()))
    }

    /// Accepts one of those who connect to us, if one has proven its key.
    fn enter(&mut self) -> Result<()> {
        let Some(entrance) = &mut self.entrance else { return Ok(()) };
        let Some(secured) = entrance.reception.round(&entrance.listener) else { return Ok(()) };
        entrance.spare.truncate(entrance.spare.len().saturating_sub(SPARE));
        let connection = Connection::secured(secured, self.keys, self.watch.timeouts)?;
        self.seat(connection)?;
        if !self.missing().any(|member| self.me.listens_for().any(|caller| caller == member)) {
            self.entrance = None;
        }
        Ok(())
    }

    /// Listens to the threads that connect: for a moment, if we do not wait for anybody else.
    fn hear(&mut self) -> Result<()> {
        let wait = if self.entrance.is_some() { Duration::ZERO } else { LOOK.min(self.watch.left()) };
        match self.events.recv_timeout(wait) {
            Ok(event) => self.note(event)?,
            Err(RecvTimeoutError::Timeout) => return Ok(()),
            Err(RecvTimeoutError::Disconnected) => {
                thread::sleep(wait);
                return Ok(());
            }
        }
        while let Ok(event) = self.events.try_recv() {
            self.note(event)?;
        }
        Ok(())
    }

    fn note(&mut self, event: Event<'a>) -> Result<()> {
        match event {
            Event::Notice(text) => (self.watch.notice)(&text),
            Event::Ended(member, reached) => match (*reached)? {
                Ok(connection) => self.seat(connection)?,
                Err(cause) => {
                    self.unreached.insert(member.number(), cause);
                }
            },
        }
        Ok(())
    }

    /// Gives a connection the seat of the party whose fingerprint its other end has proven.
    fn seat(&mut self, mut connection: Connection) -> Result<()> {
        let proven = connection.peer;
        let Some(member) = self.missing().find(|member| Some(member.fingerprint()) == proven) else {
            return Err(Error::Bug("a connection of a party that is not missing".into()));
        };
        let (ours, names) = (self.me.own().number(), self.me.roster().names());
        connection.channel.join(Link { peer: member.number(), ours, names });
        connection.seat = member.seat();
        connection.peer_name = Some(member.name().into());
        self.here.push(connection);
        (self.watch.notice)(&format!("{member} is connected"));
        Ok(())
    }

    /// Fails if one of those who are here has left.
    fn all_stay(&mut self) -> Result<(), Cause> {
        let left = |(at, link): (usize, &Connection)| link.channel.alive().err().map(|error| (at, error));
        let Some((at, error)) = self.here.iter().enumerate().find_map(left) else { return Ok(()) };
        let mut links: Vec<_> = self.here.iter_mut().map(|link| (link.seat, &mut link.channel)).collect();
        let (seat, channel) = &mut links[at];
        let cause = Cause::of(*seat, channel, error);
        Err(Cause::find(&mut links, BTreeMap::from([(at, cause)]), at))
    }

    fn hint(&self) {
        let Some(at) = self.entrance.as_ref().map(|entrance| entrance.reception.at) else { return };
        self.watch.hint(|| {
            let callers = together(&self.callers());
            format!("{callers} did not connect to {at} yet; still waiting. {MISSING}. Check firewalls")
        });
    }

    /// The missing parties that connect to us.
    fn callers(&self) -> Vec<&'a Member> {
        let connects = |member: &&Member| self.me.listens_for().any(|caller| caller == *member);
        self.missing().filter(connects).collect()
    }

    /// Returns the connections if all are here. Otherwise tells those who are, and says what is the matter.
    fn complete(mut self, mut met: Result<(), Cause>) -> Result<Vec<Connection>> {
        // All threads have ended: what they had to say at last.
        for event in self.events.try_iter().collect::<Vec<_>>() {
            // Those that we have stopped are no errors.
            if let Err(error) = self.note(event)
                && error != Error::Cancelled
                && met.is_ok()
            {
                met = Err(error.into());
            }
        }
        let first = self.missing().next();
        let cause = match (met, first) {
            (Ok(()), None) => {
                self.here.sort_by_key(|link| link.seat);
                return Ok(self.here);
            }
            (Ok(()), Some(first)) => Cause::failure_of(first.number(), Error::network(self.who_is_missing())),
            (Err(cause), _) => cause,
        };
        leave(self.here.into_iter().map(|link| link.channel).collect(), Some(&cause));
        Err(cause.error)
    }

    /// Names all who are missing, and says what we know about each.
    fn who_is_missing(&self) -> String {
        let (within, callers) = (self.watch.within(), self.callers());
        let mut parts = Vec::new();
        if let (Some(entrance), false) = (&self.entrance, callers.is_empty()) {
            let at = entrance.reception.at;
            let turned_away = self.turned_away(entrance).unwrap_or_default();
            parts.push(format!("{} did not connect to {at} {within}{turned_away}", together(&callers)));
        }
        for member in self.missing().filter(|member| !callers.contains(member)) {
            let address = member.address().unwrap_or_default();
            let cause = self.unreached.get(&member.number());
            let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
            parts.push(format!("{member} cannot be reached at {address} {within}{cause}"));
        }
        let source = self.me.roster().source();
        format!(
            "{}. {MISSING}. All parties need the same list, {source}. Check the addresses there and firewalls, then run \
             again",
            parts.join("; ")
        )
    }

    /// Who connected that is nobody we wait for.
    fn turned_away(&self, entrance: &Entrance<'a>) -> Option<String> {
        let (from, failure) = entrance.reception.last.as_ref()?;
        let ours = match failure {
            Failure::Unwanted => format!(", {}", self.keys.ours),
            _ => String::new(),
        };
        Some(format!(" (a connection from {from} was turned away: {failure}{ours})"))
    }
}

/// A possible cause if parties are absent.
const MISSING: &str = "A program may have stopped before it was ready (because of its input or options, say): ask the \
                       parties that are missing what theirs printed";

/// Parties in a message: "party 2 (east), party 3 (south) and party 4 (west)".
fn together(members: &[&Member]) -> String {
    let names: Vec<_> = members.iter().map(|member| member.to_string()).collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        Some((only, _)) => only.clone(),
        None => String::new(),
    }
}

/// Connections among all parties of a list within this process, without protection: for tests and benchmarks. Of each
/// party those to all others, in their order. The channels are those of [`crate::channel::Channel::pair`].
pub fn in_memory(roster: &Roster) -> Vec<Vec<Connection>> {
    let connection =
        |(seat, channel)| Connection { seat, ..Connection::unprotected(channel, WireCount::default()) };
    let all = channels_among(roster.names()).into_iter();
    all.map(|links| links.into_iter().map(connection).collect()).collect()
}

#[cfg(test)]
#[path = "assembly_tests.rs"]
mod tests;
