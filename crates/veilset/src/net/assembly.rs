//! Builds a mesh: one connection to each of the other parties of a list, in whichever order they start.
//!
//! One listener accepts all parties that connect to us, while a separate thread connects to each of the others. A connection
//! gets the seat of the party whose fingerprint its other end has proven in the TLS handshake, never a seat that it claims. For
//! each party, the first connection that proves its key is accepted, and none after it. If a party is missing at the end of
//! `connect_timeout`, or one leaves before all are connected, all connected parties are notified, and the error names it.
//! Strangers can end or delay this no more than they can with a single [`Listener`].
//!
//! **Lists that differ.** Two parties compare their lists as soon as they are connected ([`greet`]), without waiting for the
//! others. A party that finds a difference waits a while ([`GRACE`]) for all others, so that it sees whose list differs from
//! its own, and can notify everybody. Parties may also disagree on which of them connects. So a party that waits for another
//! one in vain calls it after a while ([`LATE`]): equal lists end that connection, different ones the run. No other outcome of
//! such a call ends the run: a party to which no party connects does not listen, and another program may be at its address.
//! An error of such a call that is not temporary is reported if the party is missing at the end.

use super::Identity;
use super::call::{Way, reach_by};
use super::connect::{Connection, Protection, Watch, Whom};
use super::greeting::greet;
use super::listen::{LOOK, Listener, Reception, SPARE};
use super::room::HANDSHAKES;
use super::roster::{Me, Member, Roster};
use super::tls::{Failure, Keys};
use crate::channel::mesh::{Cause, channels_among, leave};
use crate::channel::{Channel, Link, Stopper, Timeouts, WireCount};
use crate::error::{Error, Reason, Result, Seat};
use crate::spelling::{LISTEN, setting};
use crate::threads;
use std::collections::{BTreeMap, HashMap};
use std::net::TcpListener;
use std::num::NonZeroU8;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::{Duration, Instant};

/// How long we wait for the other parties when something is wrong with one of them. A party that starts later is not notified
/// by any party.
const GRACE: Duration = Duration::from_secs(10);
/// The maximum time for a party to send its list.
const GREETING: Duration = Duration::from_secs(10);
/// The time after which we call a party that should have called us.
const LATE: Duration = Duration::from_secs(2);

/// Where we listen for the parties that connect to us.
pub enum ListenAt<'a> {
    /// At our address in the list.
    Listed,
    /// At this address, HOST:PORT, where connections to our address in the list arrive.
    Address(&'a str),
    /// Where we listen already: at our address in the list, or where connections to it arrive.
    Open(Listener),
}

/// Connects to all other parties of the list, or accepts their connections, within the connect time-out. Returns the
/// connections ordered by seat; [`crate::channel::Mesh::new`] takes their channels.
///
/// Does not listen if no party connects to us. `cancelled` is called several times a second and tells whether to give up. It is
/// not called while the system resolves the name of the address to listen at. `notice` receives single lines for the user, for
/// instance our listening address, connected parties, refused strangers, and why a party cannot be reached yet.
///
/// # Errors
/// [`Error::Usage`] if the identity does not match our entry, if we cannot listen or start a thread, or if a party is connected
/// already with one that has our identity. [`Error::Cancelled`] once `cancelled` says so. [`Error::Network`] names all parties
/// that are missing when the time is up. If another party is not the expected one, has another list or leaves before all are
/// connected, this soon ends with an error that names it. Then no connection is left. The only threads left are handshakes,
/// which end in a moment, and those that wait for a name to be resolved, or a few more seconds for an address that does not
/// answer.
pub fn assemble(
    me: &Me,
    identity: &Arc<Identity>,
    listen: ListenAt<'_>,
    timeouts: Timeouts,
    cancelled: &dyn Fn() -> bool,
    notice: &dyn Fn(&str),
) -> Result<Vec<Connection>> {
    me.check_identity(&identity.fingerprint())?;
    let listener = listener(me, listen, notice)?;
    let watch = Watch::new(timeouts, cancelled, notice);
    // According to its own list, a party that we call may have to call us.
    let others: Vec<_> = match me.listens_for().next() {
        Some(_) => me.others().map(Member::fingerprint).collect(),
        None => Vec::new(),
    };
    let keys = Keys::accepting(identity, others.into());
    let (tell, events) = mpsc::channel();
    let open = |listener| Entrance::open(listener, &keys, me.listens_for().count(), &watch);
    let entrance = listener.map(open).transpose()?;
    let mut assembly = Assembly::new(me, &keys, &watch, entrance, tell, events);
    let met = thread::scope(|scope| {
        let calls = me.connects_to().map(|member| (member, Duration::ZERO));
        let late = me.listens_for().filter(|member| member.address().is_some()).map(|member| (member, LATE));
        let begun = calls.chain(late).try_for_each(|(member, after)| {
            let (meeting, deadline, tell) = (assembly.meeting.clone(), watch.deadline, assembly.tell.clone());
            let call = Call { member, me, identity, timeouts, after, deadline, meeting, tell };
            let begun = thread::Builder::new().name("connect".into()).spawn_scoped(scope, || call.run());
            begun.map(drop).map_err(|e| threads::none(&e))
        });
        let met = begun.map_err(Cause::from).and_then(|()| assembly.meet());
        assembly.end(&met);
        met
    });
    assembly.complete(met)
}

/// Starts to listen if any party connects to us.
fn listener(me: &Me, listen: ListenAt<'_>, notice: &dyn Fn(&str)) -> Result<Option<Listener>> {
    let source = me.roster().source();
    let listener = match (me.listens_at(), listen) {
        (None, ListenAt::Address(_)) => {
            notice(concat!("no party of the list connects to us, so ", setting!(listen), " is not used"));
            return Ok(None);
        }
        (None, ListenAt::Listed | ListenAt::Open(_)) => return Ok(None),
        (Some(_), ListenAt::Open(listener)) => Ok(listener),
        (Some(_), ListenAt::Address(address)) => Listener::bind(address),
        (Some(address), ListenAt::Listed) => Listener::bind(address).map_err(|e| match e {
            Error::Usage(what) => Error::usage(format!(
                "{}. This is our \"address\" in {source}: if the other parties reach us there through another \
                 machine, use {LISTEN} to say where we listen on this one",
                what.marked()
            )),
            e => e,
        }),
    };
    listener.map(Some)
}

/// State shared with the threads that connect and greet.
#[derive(Default)]
struct Meeting {
    /// Whether all parties are connected, or we have given up.
    over: AtomicBool,
    /// The connected parties, one bit for each number.
    seated: AtomicU64,
    /// The threads that compare lists, and how to stop each comparison.
    greetings: Mutex<HashMap<ThreadId, Greeting>>,
}

/// A comparison of lists in progress.
struct Greeting {
    with: NonZeroU8,
    stopper: Stopper,
}

impl Meeting {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Ends the meeting: the threads end soon, and parties being greeted are sent the reason.
    fn end(&self, why: &Error, culprit: Option<NonZeroU8>) {
        let mut greetings = self.greetings();
        self.over.store(true, Ordering::Relaxed);
        greetings.drain().for_each(|(_, greeting)| greeting.stopper.give_up(why, culprit));
    }

    /// Records that this thread begins to compare lists. If the meeting is over, gives up on the channel instead.
    fn begin_greeting(&self, with: NonZeroU8, channel: &Channel) {
        let (mut greetings, stopper) = (self.greetings(), channel.stopper());
        match self.is_over() {
            true => stopper.give_up(&Error::Cancelled, None),
            false => drop(greetings.insert(thread::current().id(), Greeting { with, stopper })),
        }
    }

    /// Whether lists are being compared with this party.
    fn greets(&self, number: NonZeroU8) -> bool {
        self.greetings().values().any(|greeting| greeting.with == number)
    }

    /// Records that this thread has compared lists. Returns whether it finished before the meeting was over.
    fn end_greeting(&self) -> bool {
        self.greetings().remove(&thread::current().id()).is_some()
    }

    fn greetings(&self) -> MutexGuard<'_, HashMap<ThreadId, Greeting>> {
        self.greetings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn seat(&self, number: NonZeroU8) {
        self.seated.fetch_or(Self::bit(number), Ordering::Relaxed);
    }

    fn is_seated(&self, number: NonZeroU8) -> bool {
        self.seated.load(Ordering::Relaxed) & Self::bit(number) != 0
    }

    /// A roster has at most [`Roster::MOST`] parties.
    fn bit(number: NonZeroU8) -> u64 {
        1 << (number.get() % 64)
    }
}

/// The report of a thread that connects or greets.
enum Event {
    /// A line for the user.
    Notice(String),
    /// The outcome for the party with this number.
    Ended(NonZeroU8, Box<Reached>),
}

/// The outcome of greeting a party. The inner error says why the party could not be reached.
type Reached = Result<Result<Greeted, String>>;

/// A connection to another party, and the outcome of comparing the lists.
struct Greeted {
    connection: Connection,
    /// `None` if the meeting was over before the lists were compared.
    lists: Option<Result<(), Cause>>,
    /// Whether this connection is made in the direction that our list determines.
    wanted: bool,
}

/// Compares the lists over a connection whose other end has proven the key of `member`.
fn greeted(me: &Me, member: &Member, mut connection: Connection, wanted: bool, meeting: &Meeting) -> Greeted {
    let (ours, names) = (me.own().number(), me.roster().names());
    connection.channel.join(Link { peer: member.number(), ours, names });
    connection.seat = member.seat();
    connection.peer_name = Some(member.name().into());
    let channel = &mut connection.channel;
    let patience = channel.limit_patience(GREETING);
    // In tests, the idle time-out determines the limit.
    #[cfg(test)]
    channel.set_patience(patience / 2);
    meeting.begin_greeting(member.number(), channel);
    let lists = greet(channel, me.roster());
    let in_time = meeting.end_greeting();
    let lists = in_time.then(|| lists.map_err(|error| Cause::of(member.seat(), channel, error)));
    channel.set_patience(patience);
    Greeted { connection, lists, wanted }
}

/// A thread that connects to one party.
struct Call<'a> {
    member: &'a Member,
    me: &'a Me,
    identity: &'a Arc<Identity>,
    timeouts: Timeouts,
    /// The delay before calling. If it is not zero, the call serves only to compare the lists.
    after: Duration,
    deadline: Instant,
    meeting: Arc<Meeting>,
    tell: Sender<Event>,
}

impl Call<'_> {
    fn run(self) {
        let Call { member, me, identity, timeouts, after, deadline, meeting, tell } = self;
        let wanted = after.is_zero();
        let begins = Instant::now() + after;
        let came = || !wanted && meeting.is_seated(member.number());
        let cancelled = || meeting.is_over() || came();
        while Instant::now() < begins {
            if cancelled() || Instant::now() >= deadline {
                return;
            }
            thread::sleep(LOOK);
        }
        let notice = |text: &str| {
            if wanted {
                let _ = tell.send(Event::Notice(text.into()));
            }
        };
        let whom = Whom::Member(member, me.roster());
        let watch = Watch { deadline, whom, ..Watch::new(timeouts, &cancelled, &notice) };
        let address = member.address().unwrap_or_default();
        // Another party of the list may be there; then we compare the lists with it.
        let others = me.others().map(Member::fingerprint).collect();
        let (keys, security) = (
            Keys::accepting(identity, others),
            Protection::Tls { identity: identity.clone(), peer: member.fingerprint() },
        );
        let reached = reach_by(Way::direct(address), &security, Some(keys), &watch);
        let reached = reached.map(|reached| {
            reached.map(|link| {
                let other = me.others().find(|other| Some(other.fingerprint()) == link.peer);
                match other.filter(|other| *other != member) {
                    None => greeted(me, member, link, wanted, &meeting),
                    Some(other) => {
                        let mut greeted = greeted(me, other, link, wanted, &meeting);
                        if let Some(Ok(())) = greeted.lists {
                            let wrong = Cause::failure_of(member.number(), is_another(me, member, other));
                            greeted.lists = Some(Err(wrong));
                        }
                        greeted
                    }
                }
            })
        });
        let _ = match reached {
            // The party is connected, or there is no news: we wait for it to call us.
            _ if came() => Ok(()),
            Ok(Err(_)) | Err(Error::Cancelled) if !wanted => Ok(()),
            // Reported only if the party is missing at the end.
            Err(error) if !wanted => {
                let cause = Ok(Err(error.marked()));
                tell.send(Event::Ended(member.number(), Box::new(cause)))
            }
            reached => tell.send(Event::Ended(member.number(), Box::new(reached))),
        };
    }
}

/// The error if another party of the list is at the address of `member`.
fn is_another(me: &Me, member: &Member, other: &Member) -> Error {
    Whom::Member(member, me.roster()).stranger(format!(
        "the party at {}, the address of {}, is {other} by its identity. Correct the addresses of both in {}, for all \
         parties, or ask {} where it listens",
        member.address().unwrap_or_default(),
        member.name(),
        me.roster().source(),
        member.name()
    ))
}

/// The listener for the parties that connect to us.
struct Entrance<'a> {
    listener: Listener,
    reception: Reception<'a>,
    spare: Vec<TcpListener>,
}

impl<'a> Entrance<'a> {
    /// Opens the entrance for this number of parties.
    fn open(listener: Listener, keys: &'a Keys, callers: usize, watch: &'a Watch<'a>) -> Result<Self> {
        let reception = Reception::new(keys, watch, listener.local_addr(), HANDSHAKES)?;
        (watch.notice)(&format!("listening on {}", reception.at));
        let spare = listener.spare(callers);
        Ok(Entrance { listener, reception, spare })
    }
}

/// A mesh in the making.
struct Assembly<'a> {
    me: &'a Me,
    keys: &'a Keys,
    watch: &'a Watch<'a>,
    /// `None` if no party connects to us.
    entrance: Option<Entrance<'a>>,
    meeting: Arc<Meeting>,
    tell: Sender<Event>,
    events: Receiver<Event>,
    /// The connections to the parties, including parties with a problem.
    here: Vec<Connection>,
    /// The threads that greet parties that connect to us.
    greeting: Vec<JoinHandle<()>>,
    /// Connections on which the lists were not compared before the meeting was over.
    late: Vec<(NonZeroU8, Connection)>,
    /// Why parties could not be reached in time, or the outcome of a call to a party that should call us.
    unreached: BTreeMap<NonZeroU8, String>,
    /// The problems with parties, in the order in which we noticed them.
    wrong: Vec<(NonZeroU8, Cause)>,
    /// Until when we wait for the others after the first problem.
    until: Option<Instant>,
}

impl<'a> Assembly<'a> {
    fn new(
        me: &'a Me,
        keys: &'a Keys,
        watch: &'a Watch<'a>,
        entrance: Option<Entrance<'a>>,
        tell: Sender<Event>,
        events: Receiver<Event>,
    ) -> Self {
        Assembly {
            me,
            keys,
            watch,
            entrance,
            meeting: Arc::default(),
            tell,
            events,
            here: Vec::new(),
            greeting: Vec::new(),
            late: Vec::new(),
            unreached: BTreeMap::new(),
            wrong: Vec::new(),
            until: None,
        }
    }

    /// Returns when each party is connected or has a problem, or the time is up.
    fn meet(&mut self) -> Result<(), Cause> {
        loop {
            self.watch.check()?;
            self.enter()?;
            self.hear()?;
            if self.wrong.is_empty()
                && let Err((number, cause)) = self.all_stay()
            {
                match cause.error.reason() {
                    // We may notice it ourselves when the others connect. A party that was refused because of its list has no
                    // connection, and the party that refused it learns of anything only from us.
                    Some(Reason::Disagreement | Reason::Told | Reason::Network) => {
                        self.is_amiss(number, cause)
                    }
                    _ => return Err(cause),
                }
            }
            let waits = self.missing().any(|member| !self.is_wrong(member)) || self.may_say_more();
            let over = self.until.is_some_and(|until| Instant::now() >= until);
            if !waits || over || self.watch.left().is_zero() {
                return Ok(());
            }
            self.hint();
        }
    }

    /// Fails if there is a problem with a party. Differing lists are the most informative cause.
    fn verdict(&mut self) -> Result<(), Cause> {
        let (mut differences, mut differing) = (Vec::new(), Vec::new());
        for (number, cause) in &self.wrong {
            if let Error::Disagreement(found) = &cause.error {
                differences.extend(found.iter().cloned());
                differing.push(*number);
            }
        }
        // Sorted by party, not by order of arrival.
        differences.sort_by_key(|difference| difference.who);
        match (&differing[..], self.wrong.is_empty()) {
            ([], true) => Ok(()),
            ([], false) => Err(self.wrong.remove(0).1),
            ([number], _) => Err(Cause::failure_of(*number, Error::Disagreement(differences))),
            // No single party is to blame for this.
            _ => Err(Cause::from(Error::Disagreement(differences))),
        }
    }

    /// The parties that are not connected.
    fn missing(&self) -> impl Iterator<Item = &'a Member> {
        self.me.others().filter(move |member| !self.here.iter().any(|link| link.seat == member.seat()))
    }

    /// Whether lists are still being compared with a party that has a problem other than a known difference. A difference
    /// may be its cause: the party may have left one of two connections with us because it found one on the other.
    fn may_say_more(&self) -> bool {
        let unsaid = |cause: &Cause| !matches!(cause.error, Error::Disagreement(_));
        self.wrong.iter().any(|(number, cause)| unsaid(cause) && self.meeting.greets(*number))
    }

    fn is_wrong(&self, member: &Member) -> bool {
        self.wrong.iter().any(|(number, _)| *number == member.number())
    }

    /// Greets a party that connects to us, if one has proven its key.
    fn enter(&mut self) -> Result<()> {
        let Some(entrance) = &mut self.entrance else { return Ok(()) };
        let Some(secured) = entrance.reception.round(&entrance.listener) else { return Ok(()) };
        entrance.spare.truncate(entrance.spare.len().saturating_sub(SPARE));
        let connection = Connection::secured(secured, self.keys, self.watch.timeouts)?;
        let proven = connection.peer;
        let Some(member) = self.me.others().find(|member| Some(member.fingerprint()) == proven) else {
            return Err(Error::Bug("a connection of a party that is not on the list".into()));
        };
        let wanted = self.me.listens_for().any(|caller| caller == member);
        let (me, member, tell) = (self.me.clone(), member.clone(), self.tell.clone());
        let meeting = self.meeting.clone();
        let greeting = move || {
            let greeted = greeted(&me, &member, connection, wanted, &meeting);
            let _ = tell.send(Event::Ended(member.number(), Box::new(Ok(Ok(greeted)))));
        };
        let begun = thread::Builder::new().name("greet".into()).spawn(greeting);
        self.greeting.retain(|thread| !thread.is_finished());
        self.greeting.push(begun.map_err(|e| threads::none(&e))?);
        Ok(())
    }

    /// Handles reports of the threads that connect and greet. Waits a moment for them unless we also listen for connections.
    fn hear(&mut self) -> Result<()> {
        let wait = if self.entrance.is_some() { Duration::ZERO } else { LOOK.min(self.watch.left()) };
        // Never disconnected, since we hold a sender ourselves.
        if let Ok(event) = self.events.recv_timeout(wait) {
            self.note(event)?;
        }
        while let Ok(event) = self.events.try_recv() {
            self.note(event)?;
        }
        Ok(())
    }

    fn note(&mut self, event: Event) -> Result<()> {
        match event {
            Event::Notice(text) => (self.watch.notice)(&text),
            Event::Ended(number, reached) => match *reached {
                Ok(Ok(greeted)) => self.seat(number, greeted),
                Ok(Err(cause)) => {
                    self.unreached.insert(number, cause);
                }
                // The party there is not the expected one, or does not expect us.
                Err(error) if error.seat().is_some() => {
                    self.is_amiss(number, Cause::failure_of(number, error));
                }
                Err(error) => return Err(error),
            },
        }
        Ok(())
    }

    /// Records a problem with this party.
    fn is_amiss(&mut self, number: NonZeroU8, cause: Cause) {
        if self.until.is_none() {
            self.until = Some(Instant::now() + GRACE);
            let who = self.me.roster().names().full(number);
            (self.watch.notice)(&format!(
                "the run cannot begin because of {who}; waiting up to {} seconds for the others, so that they learn of it too",
                GRACE.as_secs()
            ));
        }
        self.wrong.push((number, cause));
    }

    /// Records the connection to this party, and the outcome of comparing the lists, unless another connection counts.
    fn seat(&mut self, number: NonZeroU8, Greeted { connection, lists, wanted }: Greeted) {
        let taken = self.here.iter().any(|link| link.seat == connection.seat);
        let Some(lists) = lists else {
            self.late.push((number, connection));
            return;
        };
        match lists {
            // According to our list, another connection counts.
            Err(cause) if !wanted && !matches!(cause.error, Error::Disagreement(_)) => {
                self.unreached.insert(number, cause.error.marked());
                return;
            }
            Err(cause) => {
                // Another party may be at the address of this one.
                let number = cause.error.seat().and_then(Seat::number).unwrap_or(number);
                match self.wrong.iter_mut().find(|(other, _)| *other == number) {
                    None => self.is_amiss(number, cause),
                    // A difference of lists is the most informative cause.
                    Some((_, known)) if matches!(cause.error, Error::Disagreement(_)) => *known = cause,
                    Some(_) => {}
                }
            }
            // The lists are the same, and according to them the other one of us connects; or the party is here already.
            Ok(()) if !wanted || taken => return,
            Ok(()) => (self.watch.notice)(&format!("{} is connected", self.me.roster().names().full(number))),
        }
        if let Some(number) = connection.seat.number() {
            self.meeting.seat(number);
        }
        self.here.push(connection);
    }

    /// Fails if a connected party has left.
    fn all_stay(&mut self) -> Result<(), (NonZeroU8, Cause)> {
        let left = |(at, link): (usize, &Connection)| link.channel.alive().err().map(|error| (at, error));
        let Some((at, error)) = self.here.iter().enumerate().find_map(left) else { return Ok(()) };
        let mut links: Vec<_> = self.here.iter_mut().map(|link| (link.seat, &mut link.channel)).collect();
        let (seat, channel) = &mut links[at];
        let number = seat.number().unwrap_or(NonZeroU8::MIN);
        let cause = Cause::of(*seat, channel, error);
        Err((number, Cause::find(&mut links, BTreeMap::from([(at, cause)]), at)))
    }

    fn hint(&self) {
        let Some(at) = self.entrance.as_ref().map(|entrance| entrance.reception.at) else { return };
        self.watch.hint(|| {
            let callers = together(&self.callers());
            format!("still waiting for {callers} to connect to {at}. {MISSING}. Check firewalls")
        });
    }

    /// The missing parties that connect to us.
    fn callers(&self) -> Vec<&'a Member> {
        let connects = |member: &&Member| self.me.listens_for().any(|caller| caller == *member);
        self.missing().filter(connects).collect()
    }

    /// Ends all threads. Parties being greeted are sent the reason.
    fn end(&self, met: &Result<(), Cause>) {
        let is_difference = |cause: &&Cause| matches!(cause.error, Error::Disagreement(_));
        let mut wrong = self.wrong.iter().map(|(_, cause)| cause);
        let wrong = wrong.clone().find(is_difference).or_else(|| wrong.next());
        match (met.as_ref().err().or(wrong), self.missing().next()) {
            (Some(cause), _) => self.meeting.end(&cause.error, cause.culprit),
            // The time is up.
            (None, Some(first)) => self.meeting.end(&Error::network("missing"), Some(first.number())),
            // These connections are not needed.
            (None, None) => self.meeting.end(&Error::Cancelled, None),
        }
    }

    /// Returns the connections if all parties are connected and there is no problem. Otherwise notifies the connected ones,
    /// and returns the cause.
    fn complete(mut self, mut met: Result<(), Cause>) -> Result<Vec<Connection>> {
        // The threads that connect have ended.
        for thread in std::mem::take(&mut self.greeting) {
            threads::joined(thread.join());
        }
        // The last reports of all threads.
        for event in self.events.try_iter().collect::<Vec<_>>() {
            // Threads that we stopped do not count as errors.
            if let Err(error) = self.note(event)
                && error != Error::Cancelled
                && met.is_ok()
            {
                met = Err(error.into());
            }
        }
        if met.is_ok() {
            met = self.verdict();
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
        let late = self.late.into_iter().map(|(_, link)| link);
        leave(self.here.into_iter().chain(late).map(|link| link.channel).collect(), Some(&cause));
        Err(cause.error)
    }

    /// Names all missing parties, with the known cause for each.
    fn who_is_missing(&self) -> String {
        let within = self.watch.within();
        let is_late = |member: &&Member| self.late.iter().any(|(number, _)| *number == member.number());
        let late: Vec<_> = self.missing().filter(is_late).collect();
        let callers: Vec<_> = self.callers().into_iter().filter(|member| !is_late(member)).collect();
        let mut parts = Vec::new();
        if !late.is_empty() {
            parts.push(format!("{} connected, but sent no list {within}", together(&late)));
        }
        if let (Some(entrance), false) = (&self.entrance, callers.is_empty()) {
            let at = entrance.reception.at;
            let turned_away = self.turned_away(entrance).unwrap_or_default();
            parts.push(format!("{} did not connect to {at} {within}{turned_away}", together(&callers)));
            for member in callers.iter() {
                let Some(cause) = self.unreached.get(&member.number()) else { continue };
                let address = member.address().unwrap_or_default();
                parts.push(format!("our call to {member} at {address} failed too: {cause}"));
            }
        }
        for member in self.missing().filter(|member| !callers.contains(member) && !late.contains(member)) {
            let address = member.address().unwrap_or_default();
            let cause = self.unreached.get(&member.number());
            let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
            parts.push(format!("{member} could not be reached at {address} {within}{cause}"));
        }
        let source = self.me.roster().source();
        format!(
            "{}. {MISSING}. All parties need the same list, {source}. Check the addresses in it and the firewalls, \
             then run again",
            parts.join("; ")
        )
    }

    /// Describes the last connection that was refused because of a key, or else the last one that was refused.
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

/// Makes unprotected connections among all parties of a list within this process, for tests and benchmarks. Returns each
/// party's connections to all others, in their order. The channels are made with [`crate::channel::Channel::pair`].
pub fn in_memory(roster: &Roster) -> Vec<Vec<Connection>> {
    let connection =
        |(seat, channel)| Connection { seat, ..Connection::unprotected(channel, WireCount::default()) };
    let all = channels_among(roster.names()).into_iter();
    all.map(|links| links.into_iter().map(connection).collect()).collect()
}

#[cfg(test)]
#[path = "assembly_tests.rs"]
mod tests;
