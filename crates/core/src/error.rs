//! Errors, classified by who is at fault. Messages name the cause and the next step.

use crate::spelling::{command, plain, unmarked};
use std::num::NonZeroU8;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::{fmt, io};

/// The result type of this library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error, classified by the party at fault.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A defect of our input data, of a half or filter made in advance, or of a result that a job keeps. Unless the run is
    /// cut into shards or uses a filter, the peer received at most the size of the data.
    Input(Box<InputError>),
    /// Wrong use on our side, for instance of options, the identity file or addresses. Also a thread that the system does not
    /// start.
    Usage(Description),
    /// Our result, or another file that we keep, could not be written or used.
    Output(Description),
    /// Our own limits or policy, or the state of our job, forbid the run. Unless it is cut into shards or uses a filter, the
    /// peer received at most the size of the data.
    Refused(Description),
    /// We and another party were asked for different operations or terms; only the requests were exchanged.
    Disagreement(Vec<Difference>),
    /// Another party of the run broke the protocol or gave up, or a party is not the expected one or does not expect us.
    Peer {
        /// The party that the error is about.
        who: Seat,
        /// The kind of fault.
        fault: Fault,
        /// A description of the fault, and of the next step.
        what: String,
        /// The party's own reason, if it gave up and stated one.
        reason: Option<Reason>,
    },
    /// The connection was not made, was closed or cut off, or timed out.
    Network(Description),
    /// Our side was asked to stop.
    Cancelled,
    /// A bug in veilset.
    Bug(Description),
}

/// A description of the event and of the next step, in sentences, with the underlying error of the operating system, if
/// there is one.
#[derive(Clone, PartialEq, Eq)]
pub struct Description {
    text: String,
    marked: String,
    cause: Option<Cause>,
}

impl fmt::Debug for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Description").field("text", &self.text).field("cause", &self.cause).finish()
    }
}

impl Deref for Description {
    type Target = str;
    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Description {
    /// Returns the text with the marks of [`crate::spelling`], for front ends and for embedding in other messages.
    #[cfg_attr(not(feature = "unstable"), doc(hidden))]
    pub fn marked(&self) -> &str {
        &self.marked
    }
}

impl<T: Into<String>> From<T> for Description {
    fn from(text: T) -> Description {
        let marked = text.into();
        Description { text: plain(&marked), marked, cause: None }
    }
}

/// An error of the operating system. Two are equal if their kinds and texts are equal.
#[derive(Debug, Clone)]
struct Cause(Arc<io::Error>);

impl PartialEq for Cause {
    fn eq(&self, other: &Cause) -> bool {
        self.0.kind() == other.0.kind() && self.0.to_string() == other.0.to_string()
    }
}

impl Eq for Cause {}

impl From<&io::Error> for Cause {
    fn from(e: &io::Error) -> Cause {
        let copy = match e.raw_os_error() {
            Some(code) => io::Error::from_raw_os_error(code),
            None => io::Error::new(e.kind(), e.to_string()),
        };
        Cause(Arc::new(copy))
    }
}

/// A party of a run, in most cases another than ours. Displayed as "the peer" in a run of two, and otherwise as "party 3",
/// for instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seat(Which);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Which {
    Peer,
    Numbered(NonZeroU8),
    Somebody,
}

impl Seat {
    /// The other party in a run of two.
    pub const PEER: Seat = Seat(Which::Peer);
    /// One of the other parties in a run of several, where it is unknown which.
    pub const SOMEBODY: Seat = Seat(Which::Somebody);

    /// A party in a run of several. Numbers start at 1, and a party has the same number on all sides.
    pub const fn numbered(number: NonZeroU8) -> Seat {
        Seat(Which::Numbered(number))
    }

    /// Returns the party's number; `None` in a run of two, and for [`Seat::SOMEBODY`].
    pub const fn number(self) -> Option<NonZeroU8> {
        match self.0 {
            Which::Numbered(number) => Some(number),
            Which::Peer | Which::Somebody => None,
        }
    }
}

impl From<Option<NonZeroU8>> for Seat {
    fn from(number: Option<NonZeroU8>) -> Seat {
        number.map_or(Seat::PEER, Seat::numbered)
    }
}

impl From<Seat> for Option<NonZeroU8> {
    fn from(seat: Seat) -> Self {
        seat.number()
    }
}

impl fmt::Display for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Which::Peer => f.write_str("the peer"),
            Which::Numbered(number) => write!(f, "party {number}"),
            Which::Somebody => f.write_str("one of the other parties"),
        }
    }
}

/// The action of another party that ended the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// The party sent something that an honest party does not send, except with negligible probability.
    Misbehaved,
    /// The party announced that it stops. This does not violate the protocol.
    GaveUp,
    /// The party is not the expected one, or does not expect us. Do not blame the expected party for what this one did.
    Stranger,
}

impl Fault {
    /// All kinds of fault.
    pub const ALL: &[Fault] = &[Fault::Misbehaved, Fault::GaveUp, Fault::Stranger];

    /// Returns a name for logs: one word, stable across versions.
    pub const fn name(self) -> &'static str {
        match self {
            Fault::Misbehaved => "misbehaved",
            Fault::GaveUp => "gave-up",
            Fault::Stranger => "stranger",
        }
    }
}

/// The reason that another party states for giving up. It reveals only the kind of reason, and no more about its data or
/// policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The party's user stopped it.
    Cancelled,
    /// The party's input or options are wrong.
    Input,
    /// The party was asked for a different operation or different terms.
    Disagreement,
    /// The party found messages of ours, or of another party, invalid.
    Messages,
    /// The party's connection with us or with another party failed.
    Network,
    /// The party could not write its result, its log or another file.
    Output,
    /// The party's program has a bug.
    Bug,
    /// The party's policy or its limits refuse the run.
    Refused,
    /// The party was notified that another party gave up, or found that some party misbehaves without knowing which.
    Told,
}

impl Reason {
    /// All reasons.
    pub const ALL: [Reason; 9] = [
        Reason::Cancelled,
        Reason::Input,
        Reason::Disagreement,
        Reason::Messages,
        Reason::Network,
        Reason::Output,
        Reason::Bug,
        Reason::Refused,
        Reason::Told,
    ];

    /// Returns a name for programs: one word, stable across versions.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::Cancelled => "cancelled",
            Reason::Input => "input",
            Reason::Disagreement => "disagreement",
            Reason::Messages => "messages",
            Reason::Network => "network",
            Reason::Output => "output",
            Reason::Bug => "bug",
            Reason::Refused => "refused",
            Reason::Told => "told",
        }
    }
}

/// The party at fault for an error, which is able to act on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Culprit {
    /// Our side: its data, its options, its disk, its limits, or a request to stop.
    Us,
    /// Another party of the run broke the protocol or gave up.
    Peer(Seat),
    /// A party that is not the expected one, or does not expect us.
    Stranger,
    /// No single party: the requests differ, or the network failed.
    Nobody,
    /// veilset has a bug.
    Veilset,
}

/// A defect of the input data, and its location.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InputError {
    /// The file as the user named it, `-` for standard input; or words for data that come from no file.
    pub file: String,
    /// The row's position in the file.
    pub row: Option<Place>,
    /// The name of the column.
    pub column: Option<String>,
    /// A description of the defect. It may contain the marks of [`crate::spelling`], which messages show as backquotes.
    pub what: String,
    /// The next step for the user, which may contain these marks too.
    pub next: String,
    cause: Option<Cause>,
}

/// The position of a row in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The line on which the row starts, counted from 1, including the header.
    Line(u64),
    /// The row's number, counted from 1, in a file that has no lines.
    Row(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line(n) => write!(f, "line {n}"),
            Place::Row(n) => write!(f, "row {n}"),
        }
    }
}

/// A point on which we and another party differ.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// The other party.
    pub who: Seat,
    /// The key of the term in which they differ, stable across versions: "max_row".
    pub term: &'static str,
    /// The term's name in messages: one of our settings ([`crate::spelling`]), or a description.
    pub what: &'static str,
    /// Our value of the term.
    pub ours: String,
    /// The other party's value of the term.
    pub theirs: String,
}

impl Difference {
    /// Returns a difference from the party at this seat.
    #[cfg_attr(not(feature = "unstable"), doc(hidden))]
    pub fn new(
        who: Seat,
        term: &'static str,
        what: &'static str,
        ours: String,
        theirs: String,
    ) -> Difference {
        Difference { who, term, what, ours, theirs }
    }
}

impl Error {
    /// Returns an error for wrong use on our side; `text` describes the remedy.
    #[cfg_attr(not(feature = "unstable"), doc(hidden))]
    pub fn usage(text: impl Into<String>) -> Self {
        Error::Usage(text.into().into())
    }

    /// Returns an error for output that could not be written; `text` names it, the reason and the next step.
    #[cfg_attr(not(feature = "unstable"), doc(hidden))]
    pub fn output(text: impl Into<String>) -> Self {
        Error::Output(text.into().into())
    }

    /// Returns an error for a run that we refuse; `text` states the reason, and the change that would be needed.
    #[cfg_attr(not(feature = "unstable"), doc(hidden))]
    pub fn refused(text: impl Into<String>) -> Self {
        Error::Refused(text.into().into())
    }

    /// Returns an error for a failed connection; `text` describes the failure and the next step.
    #[cfg_attr(not(feature = "unstable"), doc(hidden))]
    pub fn network(text: impl Into<String>) -> Self {
        Error::Network(text.into().into())
    }

    /// Returns an error for a bug in veilset, described by `text`.
    #[cfg_attr(not(feature = "unstable"), doc(hidden))]
    pub fn bug(text: impl Into<String>) -> Self {
        Error::Bug(text.into().into())
    }

    /// Attaches the underlying error of the operating system, except to a disagreement, an error about another party, and
    /// a cancellation, which have none.
    #[must_use]
    #[cfg_attr(not(feature = "unstable"), doc(hidden))]
    pub fn because(mut self, cause: &io::Error) -> Self {
        let place = match &mut self {
            Error::Input(e) => &mut e.cause,
            Error::Usage(d) | Error::Output(d) | Error::Refused(d) | Error::Network(d) | Error::Bug(d) => {
                &mut d.cause
            }
            Error::Disagreement(_) | Error::Peer { .. } | Error::Cancelled => return self,
        };
        *place = Some(cause.into());
        self
    }

    /// Appends a sentence to an error about another party, the connection, a policy, a disk or a bug.
    #[must_use]
    #[cfg_attr(not(feature = "unstable"), doc(hidden))]
    pub fn and(mut self, sentence: &str) -> Self {
        match &mut self {
            Error::Peer { what, .. } => *what = format!("{what}. {sentence}"),
            Error::Network(d) | Error::Refused(d) | Error::Output(d) | Error::Bug(d) => {
                d.marked = format!("{}. {sentence}", d.marked);
                d.text = plain(&d.marked);
            }
            Error::Input(_) | Error::Usage(_) | Error::Disagreement(_) | Error::Cancelled => {}
        }
        self
    }

    /// Returns an error for a peer that sent data veilset cannot have sent; `what` describes it.
    #[cfg_attr(not(feature = "unstable"), doc(hidden))]
    pub fn misbehaves(what: impl fmt::Display) -> Self {
        let next = concat!(
            "It runs another program or misbehaves: compare what ",
            command!("--version"),
            " prints there and here"
        );
        Error::peer(Fault::Misbehaved, format!("{what}. {next}"))
    }

    /// Returns an error like that of [`Error::misbehaves`] for cases in which the peer must not learn whether we
    /// noticed, because that depends on our secrets.
    #[cfg_attr(not(feature = "unstable"), doc(hidden))]
    pub fn misbehaves_unseen(what: impl fmt::Display) -> Self {
        let next = "It runs another program or misbehaves. Whether this was noticed can tell it something \
                    about your data: do not tell any other party, and do not run with it again before you know why";
        Error::peer(Fault::Misbehaved, format!("{what}. {next}"))
    }

    /// Returns an error for a peer that announced that it stops; `what` gives its reason, as far as it stated one.
    #[cfg_attr(not(feature = "unstable"), doc(hidden))]
    pub fn gave_up(reason: Option<Reason>, what: impl fmt::Display) -> Self {
        let what = format!("{what}. Ask the other party for the cause, then run again");
        Error::Peer { who: Seat::PEER, fault: Fault::GaveUp, what, reason }
    }

    /// Returns an error for a peer that is not the expected one, or does not expect us; `what` describes its identity
    /// and the next step.
    #[cfg_attr(not(feature = "unstable"), doc(hidden))]
    pub fn stranger(what: impl fmt::Display) -> Self {
        Error::peer(Fault::Stranger, what)
    }

    /// Returns an error about the peer; `what` must include the next step.
    #[cfg_attr(not(feature = "unstable"), doc(hidden))]
    pub fn peer(fault: Fault, what: impl fmt::Display) -> Self {
        Error::Peer { who: Seat::PEER, fault, what: what.to_string(), reason: None }
    }

    /// Attributes an error about another party to the party at this seat.
    #[must_use]
    #[cfg_attr(not(feature = "unstable"), doc(hidden))]
    pub fn by(mut self, seat: Seat) -> Self {
        match &mut self {
            Error::Peer { who, .. } => *who = seat,
            Error::Disagreement(differences) => differences.iter_mut().for_each(|d| d.who = seat),
            _ => {}
        }
        self
    }

    /// Returns the seat of the other party that the error is about, if it is about exactly one.
    pub fn seat(&self) -> Option<Seat> {
        match self.seats()[..] {
            [seat] => Some(seat),
            _ => None,
        }
    }

    /// Returns the seats of all other parties that the error is about.
    pub fn seats(&self) -> Vec<Seat> {
        match self {
            Error::Peer { who, .. } => vec![*who],
            Error::Disagreement(differences) => {
                let mut seats: Vec<_> = differences.iter().map(|difference| difference.who).collect();
                seats.sort_unstable();
                seats.dedup();
                seats
            }
            _ => Vec::new(),
        }
    }

    /// Returns the party at fault.
    ///
    /// ```
    /// # use veilset_core as veilset;
    /// use veilset::error::{Culprit, Error};
    ///
    /// assert_eq!(Error::usage("a key is empty. Leave it out").culprit(), Culprit::Us);
    /// assert_eq!(Error::network("the peer does not answer").culprit(), Culprit::Nobody);
    /// ```
    pub const fn culprit(&self) -> Culprit {
        match self {
            Error::Input(_) | Error::Usage(_) | Error::Output(_) | Error::Refused(_) | Error::Cancelled => {
                Culprit::Us
            }
            Error::Peer { fault: Fault::Stranger, .. } => Culprit::Stranger,
            Error::Peer { who, .. } => Culprit::Peer(*who),
            Error::Disagreement(_) | Error::Network(_) => Culprit::Nobody,
            Error::Bug(_) => Culprit::Veilset,
        }
    }

    /// Returns the fault of the other party that the error is about, if any.
    pub const fn fault(&self) -> Option<Fault> {
        match self {
            Error::Peer { fault, .. } => Some(*fault),
            _ => None,
        }
    }

    /// Returns the reason that the other party stated for giving up, if any.
    pub const fn reason(&self) -> Option<Reason> {
        match self {
            Error::Peer { reason, .. } => *reason,
            _ => None,
        }
    }

    /// Returns the error of this library that a reader or writer wrapped in an I/O error with
    /// [`std::io::Error::other`].
    pub fn carried_by(e: &std::io::Error) -> Option<Error> {
        e.get_ref().and_then(|e| e.downcast_ref::<Error>()).cloned()
    }

    /// Returns the kind of the error, for logs: one word, stable across versions.
    pub const fn kind(&self) -> &'static str {
        match self {
            Error::Input(_) => "input",
            Error::Usage(_) => "usage",
            Error::Output(_) => "output",
            Error::Refused(_) => "refused",
            Error::Disagreement(_) => "disagreement",
            Error::Peer { .. } => "peer",
            Error::Network(_) => "network",
            Error::Cancelled => "cancelled",
            Error::Bug(_) => "bug",
        }
    }

    /// Returns an input error about a whole file.
    #[cfg_attr(not(feature = "unstable"), doc(hidden))]
    pub fn input(file: impl AsRef<Path>, what: impl Into<String>, next: impl Into<String>) -> Self {
        Error::Input(Box::new(InputError {
            file: file.as_ref().display().to_string(),
            row: None,
            column: None,
            what: what.into(),
            next: next.into(),
            cause: None,
        }))
    }

    /// Locates an input error at a row.
    #[must_use]
    #[cfg_attr(not(feature = "unstable"), doc(hidden))]
    pub fn at(mut self, row: Place) -> Self {
        if let Error::Input(e) = &mut self {
            e.row = Some(row);
        }
        self
    }

    /// Locates an input error at a column.
    #[must_use]
    #[cfg_attr(not(feature = "unstable"), doc(hidden))]
    pub fn at_column(mut self, column: impl Into<String>) -> Self {
        if let Error::Input(e) = &mut self {
            e.column = Some(column.into());
        }
        self
    }
}

/// The message, with backquotes for the marks of [`crate::spelling`].
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&plain(&self.marked()))
    }
}

impl Error {
    /// Returns the message for a front end, in which the names of settings and commands are marked
    /// ([`crate::spelling`]).
    pub fn marked(&self) -> String {
        match self {
            Error::Input(e) => {
                let row = e.row.map(|row| format!(", {row}")).unwrap_or_default();
                let column = e.column.as_ref().map(|column| format!(", column \"{}\"", unmarked(column)));
                format!("{}{row}{}: {}. {}", unmarked(&e.file), column.unwrap_or_default(), e.what, e.next)
            }
            Error::Usage(d) | Error::Output(d) | Error::Refused(d) => d.marked.clone(),
            Error::Disagreement(differences) => differing(differences),
            Error::Peer { who, what, .. } => format!("{who}: {what}"),
            Error::Network(d) => format!("network: {}", d.marked),
            Error::Cancelled => "stopped on request".into(),
            Error::Bug(d) => {
                format!("this is a defect in veilset, please report it (see SECURITY.md): {}", d.marked)
            }
        }
    }
}

/// The differing terms, with the parties' values. Values that several parties share are given once.
fn differing(differences: &[Difference]) -> String {
    // In a run of two there is one other party, and it has no number.
    let two = differences.iter().all(|difference| difference.who == Seat::PEER);
    let (sides, whom) = if two { ("two sides", "the other party") } else { ("parties", "all parties") };
    let mut text = format!("the {sides} ask for different things:");
    let mut rest: Vec<_> = differences.iter().collect();
    while let Some(first) = rest.first().copied() {
        let like = |d: &Difference| d.what == first.what && d.ours == first.ours && d.theirs == first.theirs;
        let who: Vec<_> = rest.extract_if(.., |d| like(d)).map(|d| d.who.to_string()).collect();
        let whose = match who.split_last() {
            Some((last, others)) if !others.is_empty() => format!("that of {} and {last}", others.join(", ")),
            _ => format!("{}'s", first.who),
        };
        let (ours, theirs) = (unmarked(&first.ours), unmarked(&first.theirs));
        text += &format!("\n  {}: ours is {ours}, {whose} is {theirs}", first.what);
    }
    text + &format!("\nSettle with {whom} which value it should be; nothing of the data was sent.")
}

impl std::error::Error for Error {
    /// The underlying error, in most cases of the operating system, if any: an [`io::Error`]. The message already says what
    /// matters of it.
    ///
    /// ```
    /// use std::error::Error;
    /// use std::io::{self, ErrorKind};
    ///
    /// # use veilset_core as veilset;
    /// let why = io::Error::from(ErrorKind::NotFound);
    /// let error = veilset::error::Error::usage("ann.pem is missing").because(&why);
    /// let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>()).unwrap();
    /// assert_eq!(cause.kind(), ErrorKind::NotFound);
    /// ```
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let cause = match self {
            Error::Input(e) => e.cause.as_ref(),
            Error::Usage(d) | Error::Output(d) | Error::Refused(d) | Error::Network(d) | Error::Bug(d) => {
                d.cause.as_ref()
            }
            Error::Disagreement(_) | Error::Peer { .. } | Error::Cancelled => None,
        };
        cause.map(|Cause(cause)| &**cause as _)
    }
}

/// Number of characters of the peer's text that we show to our user.
const SHOWN: usize = 160;

/// Text from the peer or from another source that we do not trust, shortened and escaped for a terminal. Marks are escaped
/// too. Quotes and backslashes stay as they are: values that a peer sends for messages have theirs escaped already.
pub fn shown(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars().take(SHOWN) {
        match c {
            '"' | '\'' | '\\' => escaped.push(c),
            c => escaped.extend(c.escape_debug()),
        }
    }
    if text.chars().nth(SHOWN).is_some() {
        escaped.push_str("...");
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_error_names_file_row_column_and_next_step() {
        let e = Error::input("a.csv", "the key is empty", "Fill it in").at(Place::Line(7)).at_column("mail");
        assert_eq!(e.to_string(), "a.csv, line 7, column \"mail\": the key is empty. Fill it in");
        let e = Error::input("a.parquet", "the key is empty", "Fill it in").at(Place::Row(7));
        assert_eq!(e.to_string(), "a.parquet, row 7: the key is empty. Fill it in");
    }

    #[test]
    fn text_of_a_peer_is_escaped_once() {
        let cases = [
            (r#""c,\"d\"", "it's", "a\\b""#, r#""c,\"d\"", "it's", "a\\b""#),
            ("\u{1b}[2J\n", "\\u{1b}[2J\\n"),
            ("\u{202e}\t", "\\u{202e}\\t"),
            ("\u{fdd0}key\u{fdd1}", "\\u{fdd0}key\\u{fdd1}"),
        ];
        for (text, expected) in cases {
            assert_eq!(shown(text), expected);
        }
        assert_eq!(shown(&"a".repeat(SHOWN + 1)), "a".repeat(SHOWN) + "...");
    }

    #[test]
    fn an_error_about_another_party_names_its_seat() {
        let three = Seat::numbered(NonZeroU8::new(3).unwrap());
        let error = Error::peer(Fault::GaveUp, "it stopped");
        assert_eq!((error.to_string(), error.seat()), ("the peer: it stopped".into(), Some(Seat::PEER)));
        let error = error.by(three);
        assert_eq!((error.to_string(), error.seat()), ("party 3: it stopped".into(), Some(three)));
        assert_eq!((Error::Cancelled.by(three).seat(), Seat::PEER.number()), (None, None));
    }

    #[test]
    fn an_error_keeps_what_the_operating_system_said() {
        use std::error::Error as _;
        let source = |error: &Error| Some(error.source()?.downcast_ref::<io::Error>()?.kind());
        let full = io::Error::from(io::ErrorKind::StorageFull);
        for error in [Error::output("x"), Error::network("x"), Error::usage("x"), Error::input("a", "b", "c")]
        {
            assert_eq!(source(&error), None);
            let because = error.clone().because(&full);
            assert_eq!(source(&because), Some(io::ErrorKind::StorageFull));
            assert_eq!(error.to_string(), because.to_string());
            assert!(error != because && because == error.because(&full));
        }
        assert_eq!(Error::Cancelled.because(&full), Error::Cancelled);
        // An error code of the operating system is kept.
        let code = io::Error::from_raw_os_error(13);
        let because = Error::output("x").because(&code);
        assert_eq!(because.source().unwrap().to_string(), code.to_string());
    }

    #[test]
    fn a_disagreement_shows_both_values() {
        let e = Error::Disagreement(vec![Difference {
            who: Seat::PEER,
            term: "operation",
            what: "operation",
            ours: "union".into(),
            theirs: "count".into(),
        }]);
        assert!(e.to_string().contains("operation: ours is union, the peer's is count"));
        let three = Seat::numbered(NonZeroU8::new(3).unwrap());
        let e = e.by(three);
        assert!(e.to_string().contains("ours is union, party 3's is count"));
        assert_eq!(e.seat(), Some(three));
    }
}
