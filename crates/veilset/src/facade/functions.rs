//! The operations.

use super::outcome::{Identifiers, Intersection, Shares, Total, Union};
use super::{Keys, Options, Outcome, Peer};
use crate::error::{Error, Result};
use crate::governance::gate::{Gate, Setup};
use crate::governance::policy::Policy;
use crate::operations::{COUNT, ID, INTERSECT, Learned, Operation, Role, SHARE, SUM, Terms, UNION};
use crate::party::{self, Ran};
use crate::planner::Preference;
use crate::rng::Prng;
use crate::session::report::LeftOut;
use crate::session::run::Request;
use crate::session::{Input, Local, Planning, Spec};
use crate::speed::Speeds;
use crate::table::Duplicates;
use crate::threads::Threads;

/// The receiver learns which of its keys the sender also has, and the sender's columns for them if it sends any. The sender
/// gets `None`, unless the result is for both ([`Options::both`]); then it learns which of its own keys match.
///
/// Each party learns how many keys the other has.
///
/// ```
/// use veilset::{Keys, Options, Peer, Role};
///
/// # fn main() -> veilset::Result<()> {
/// let options = Options::new().allow_small();          // for real data 10 keys or more are better
/// let (here, there) = Peer::pair();                    // or Peer::connect, Peer::listen
/// let outcome = std::thread::scope(|s| {
///     s.spawn(|| veilset::intersect(there, Role::Sender, &Keys::new(["bob", "cleo"])?, &options));
///     veilset::intersect(here, Role::Receiver, &Keys::new(["ann", "bob"])?, &options)
/// })?;
/// assert_eq!(outcome.result.map(|found| found.rows), Some(vec![1]));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Usage`], before the peer receives anything, if the mistake is on our side only; after that, the errors of the
/// connection and the run, for instance [`Error::Refused`] for a peer's set that is too small or too large. [`Error::Output`]
/// if the audit log cannot be opened, or the start of the run cannot be written to it; for its end see [`Outcome::logged`].
pub fn intersect(
    peer: Peer,
    role: Role,
    keys: &Keys,
    options: &Options,
) -> Result<Outcome<Option<Intersection>>> {
    run(&INTERSECT, peer, role, keys, options, |learned, sent| match learned {
        Learned::Matching(found) => Some(Intersection::of(&found, keys, sent).map(Some)),
        Learned::Nothing => Some(Ok(None)),
        _ => None,
    })
}

/// The receiver learns every key that only the sender has, in the clear, and the sender's columns for them if it sends any. The
/// sender gets `None`, unless the result is for both ([`Options::both`]).
///
/// Each party learns how many keys the other has. The receiver thus learns how many keys match.
///
/// ```
/// use veilset::{Keys, Options, Peer, Role};
///
/// # fn main() -> veilset::Result<()> {
/// let options = Options::new().allow_small();
/// let (here, there) = Peer::pair();
/// let outcome = std::thread::scope(|s| {
///     s.spawn(|| veilset::union(there, Role::Sender, &Keys::new(["bob", "cleo"])?, &options));
///     veilset::union(here, Role::Receiver, &Keys::new(["ann", "bob"])?, &options)
/// })?;
/// let new = outcome.result.map(|union| union.new).unwrap_or_default();
/// assert_eq!(new.iter().map(|key| key.text(0)).collect::<Vec<_>>(), [Some("cleo")]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The errors of [`intersect`].
pub fn union(peer: Peer, role: Role, keys: &Keys, options: &Options) -> Result<Outcome<Option<Union>>> {
    run(&UNION, peer, role, keys, options, |learned, sent| match learned {
        Learned::New(new) => Some(Union::of_new(&new, keys, sent).map(Some)),
        Learned::Union(all) => Some(Union::of_all(&all, keys).map(Some)),
        // The number of matches, if it is revealed to the sender, is in the report.
        Learned::Nothing | Learned::Matches(_) => Some(Ok(None)),
        _ => None,
    })
}

/// The receiver learns how many keys match. The sender gets `None`, unless the result is for both ([`Options::both`]).
///
/// Each party learns how many keys the other has.
///
/// ```
/// use veilset::{Keys, Options, Peer, Role};
///
/// # fn main() -> veilset::Result<()> {
/// let options = Options::new().both().allow_small();
/// let (here, there) = Peer::pair();
/// let outcome = std::thread::scope(|s| {
///     s.spawn(|| veilset::count(there, Role::Sender, &Keys::new(["bob", "cleo"])?, &options));
///     veilset::count(here, Role::Receiver, &Keys::new(["ann", "bob"])?, &options)
/// })?;
/// assert_eq!(outcome.result, Some(1));
/// println!("{}", outcome.report.to_text());            // what each party learned, and what it took
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The errors of [`intersect`].
pub fn count(peer: Peer, role: Role, keys: &Keys, options: &Options) -> Result<Outcome<Option<u64>>> {
    run(&COUNT, peer, role, keys, options, |learned, _| match learned {
        Learned::Matches(n) => Some(Ok(Some(n))),
        Learned::Nothing => Some(Ok(None)),
        _ => None,
    })
}

/// Both parties learn how many keys match. The sender, who has the values ([`Keys::with_values`]), also learns their sum over
/// these keys; with [`Options::min_count`] it learns neither if too few match.
///
/// Each party learns how many keys the other has.
///
/// ```
/// use veilset::{Keys, Options, Peer, Role};
///
/// # fn main() -> veilset::Result<()> {
/// let options = Options::new().allow_small();
/// let (buyers, shop) = Peer::pair();
/// let total = std::thread::scope(|s| {
///     s.spawn(|| veilset::sum(buyers, Role::Receiver, &Keys::new(["ann", "bob", "cleo"])?, &options));
///     let bought = Keys::new(["bob", "cleo", "dan"])?.with_values([1250, 300, 99])?;
///     veilset::sum(shop, Role::Sender, &bought, &options)
/// })?;
/// assert_eq!((total.result.matches, total.result.sum), (Some(2), Some(1550)));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The errors of [`intersect`].
pub fn sum(peer: Peer, role: Role, keys: &Keys, options: &Options) -> Result<Outcome<Total>> {
    run(&SUM, peer, role, keys, options, |learned, _| match learned {
        Learned::Matches(n) => Some(Ok(Total { matches: Some(n), sum: None })),
        Learned::Sum(sum) => {
            Some(Ok(Total { matches: sum.map(|sum| sum.matches), sum: sum.map(|sum| sum.sum) }))
        }
        _ => None,
    })
}

/// Both parties get secret shares of the sender's keys, or of its values if it has any ([`Keys::with_values`]), for a further
/// secure computation. The shares of a key that matches add up to the key or value, all others to zero.
///
/// Each party learns how many keys the other has. The receiver learns how many keys match, and which shares are those of
/// matches, but not of which keys. If it drops, marks or publishes positions of shares depending on that, it reveals
/// information that the shares hide.
///
/// ```
/// use veilset::{Keys, Options, Peer, Role};
///
/// # fn main() -> veilset::Result<()> {
/// let options = Options::new().allow_small();
/// let (here, there) = Peer::pair();
/// let (theirs, ours) = std::thread::scope(|s| {
///     let theirs = s.spawn(|| veilset::share(there, Role::Receiver, &Keys::new(["ann", "bob"])?, &options));
///     let valued = Keys::new(["bob", "cleo"])?.with_values([5, 7])?;
///     let ours = veilset::share(here, Role::Sender, &valued, &options)?;
///     theirs.join().unwrap().map(|theirs| (theirs.result, ours.result))
/// })?;
/// let number = |share: &[u8]| share.iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte));
/// for (i, row) in ours.rows.iter().enumerate() {
///     let sum = number(&ours.bytes[8 * i..8 * i + 8]).wrapping_add(number(&theirs.bytes[8 * i..8 * i + 8]));
///     assert_eq!(sum, if *row == Some(0) { 5 } else { 0 });       // bob matches, cleo does not
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The errors of [`intersect`].
pub fn share(peer: Peer, role: Role, keys: &Keys, options: &Options) -> Result<Outcome<Shares>> {
    run(&SHARE, peer, role, keys, options, |learned, _| match learned {
        Learned::Shares(shares) => Some(Ok(Shares::of(shares, keys))),
        _ => None,
    })
}

/// Both parties get a random identifier for each of their rows, equal where the keys are equal, and the list of the identifiers
/// of all keys and dummies of both.
///
/// Each party learns how many keys the other has, and so how many match.
///
/// ```
/// use veilset::{Keys, Options, Peer, Role};
///
/// # fn main() -> veilset::Result<()> {
/// let options = Options::new().allow_small();
/// let (here, there) = Peer::pair();
/// let (theirs, ours) = std::thread::scope(|s| {
///     let theirs = s.spawn(|| veilset::id(there, Role::Sender, &Keys::new(["bob", "cleo"])?, &options));
///     let ours = veilset::id(here, Role::Receiver, &Keys::new(["ann", "bob"])?, &options)?;
///     theirs.join().unwrap().map(|theirs| (theirs.result, ours.result))
/// })?;
/// assert_eq!(ours.rows[1], theirs.rows[0]);            // bob's
/// assert_eq!((ours.all.len(), ours.all == theirs.all), (3, true));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The errors of [`intersect`].
pub fn id(peer: Peer, role: Role, keys: &Keys, options: &Options) -> Result<Outcome<Identifiers>> {
    run(&ID, peer, role, keys, options, |learned, _| match learned {
        Learned::Identifiers(identifiers) => Some(Ok(Identifiers::of(identifiers, keys))),
        _ => None,
    })
}

/// Runs our side. `result` turns what was learned and the number of columns received into the result; it returns `None` if the
/// operation does not give such a result.
fn run<T>(
    operation: &'static Operation,
    peer: Peer,
    role: Role,
    keys: &Keys,
    options: &Options,
    result: impl FnOnce(Learned, usize) -> Option<Result<T>>,
) -> Result<Outcome<T>> {
    let Ran { outcome, mut report, logged, .. } = learn(operation, peer, role, keys, options)?;
    let result = result(outcome.learned, options.received.len());
    let result =
        result.unwrap_or_else(|| Err(Error::bug(format!("{operation} gave what it does not give"))))?;
    let duplicates = keys.repeated() as u64;
    report.leave_out(LeftOut { duplicates, ..LeftOut::default() }, Duplicates::First);
    Ok(Outcome { result, report, logged })
}

fn learn(
    operation: &'static Operation,
    peer: Peer,
    role: Role,
    keys: &Keys,
    options: &Options,
) -> Result<Ran> {
    peer.check()?;
    options.check(operation, role)?;
    let Keys { set, values, payloads, sent_columns, .. } = keys;
    let terms = Terms {
        payload: !sent_columns.is_empty() || !options.received.is_empty(),
        shared_values: operation.uses.shares && !values.is_empty(),
        ..options.terms
    };
    match (operation.uses.has_values(role, &terms), values.is_empty()) {
        (true, true) if !set.is_empty() => {
            return Err(Error::usage(format!(
                "the sender of {operation} has values. Add them with Keys::with_values"
            )));
        }
        (false, false) => {
            return Err(Error::usage(format!(
                "the {role} of {operation} has no values. Use keys without any"
            )));
        }
        _ => {}
    }
    if role == Role::Receiver && !sent_columns.is_empty() {
        return Err(Error::Usage("columns are for the sender to send. Use keys without any".into()));
    }
    let (candidates, picks) = options.choices(operation, &terms)?;
    let threads = options.threads.map_or_else(|| Ok(Threads::global().clone()), Threads::new)?;
    threads.check()?;
    let planning = Planning { speeds: Speeds::built_in(threads.count()), prefer: Preference::Time };
    let sent_columns = if role == Role::Sender { sent_columns } else { &options.received }.clone();
    let value_scale = options.scale;
    let request = Request {
        spec: Spec { candidates, sent_columns, value_scale, terms, ..Spec::new(operation, role) },
        input: Input {
            key_columns: keys.columns,
            normalisation: &keys.compared,
            pad_to: options.pad_to,
            payloads,
            values,
            ..set.into()
        },
        local: Local { planning: picks.then_some(planning), max_peer_items: options.max_peer_items, threads },
    };
    request.check()?;
    let (policy, identity) = (Policy::none(), peer.identity());
    let warn = |text: &str| options.say(text);
    let setup = Setup {
        audit_log: options.audit_log.as_deref(),
        identity: identity.as_deref(),
        allow_small: options.allow_small,
        ..Setup::new(&policy, &warn)
    };
    let mut rng = Prng::from_os()?;
    // Everything whose time depends on our data happens before the peer receives anything.
    let prepared = request.prepare(&mut rng)?;
    let mut gate = Gate::new(&request, setup)?;
    let connected = peer.meet(options)?;
    party::run(connected, prepared, Some(&mut gate), &mut rng)
}
