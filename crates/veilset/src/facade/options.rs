//! What a run is asked for beside its keys.

use super::Stop;
use crate::assumption::Assumption;
use crate::channel::Timeouts;
use crate::error::{Error, Result};
use crate::operations::sum::Modulus;
use crate::operations::{Operation, Role, Terms};
use crate::params::MAX_SET;
use crate::planner::{self, Choices};
use crate::protocols::{self, Choice};
use crate::spelling::{ASSUME, PROTOCOL, RECEIVE_COLUMNS, SHARDS, plain};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What gets a line for the user.
type Show = dyn Fn(&str) + Send + Sync;

/// How a run is made. Each method says whether both sides must agree on it; what differs is refused and named, before anything
/// of the data is sent.
///
/// ```
/// use std::time::Duration;
/// use veilset::Options;
///
/// let options = Options::new().pad_to(10_000).both().connect_timeout(Duration::from_secs(3600));
/// ```
#[derive(Clone)]
#[must_use]
pub struct Options {
    pub(super) protocol: Option<String>,
    pub(super) group: Option<String>,
    pub(super) assume: Vec<String>,
    pub(super) terms: Terms,
    pub(super) scale: u32,
    pub(super) pad_to: Option<usize>,
    pub(super) max_peer_items: usize,
    pub(super) received: Vec<String>,
    pub(super) allow_small: bool,
    pub(super) audit_log: Option<PathBuf>,
    pub(super) timeouts: Timeouts,
    pub(super) threads: Option<usize>,
    pub(super) stop: Option<Stop>,
    notices: Option<Arc<Show>>,
}

impl Default for Options {
    fn default() -> Self {
        Options::new()
    }
}

impl Options {
    /// What fits most runs: the protocol is picked by speed of those that both sides allow, only the receiver gets the result,
    /// rows that are sent have at most 64 bytes, no audit log is kept, and a peer that learns something of our rows
    /// must announce 10 keys or more.
    pub fn new() -> Options {
        Options {
            protocol: None,
            group: None,
            assume: Vec::new(),
            terms: Terms { max_row: 64, ..Terms::default() },
            scale: 0,
            pad_to: None,
            max_peer_items: MAX_SET,
            received: Vec::new(),
            allow_small: false,
            audit_log: None,
            timeouts: Timeouts::default(),
            threads: None,
            stop: None,
            notices: None,
        }
    }

    /// Allows this protocol only, by the name that the program uses, for instance `vole`. Otherwise one is picked of those
    /// that both sides allow.
    pub fn protocol(mut self, name: &str) -> Self {
        self.protocol = Some(name.into());
        self
    }

    /// Computes in this group: `curve25519`, `p256` or `p256-compressed` (protocols `dh` and `dh-psi`). On both sides.
    pub fn group(mut self, name: &str) -> Self {
        self.group = Some(name.into());
        self
    }

    /// Picks only protocols that rest on these hard problems and no others: `ddh`, `lpn`, `dcr`.
    pub fn assume<'a>(mut self, problems: impl IntoIterator<Item = &'a str>) -> Self {
        self.assume = problems.into_iter().map(str::to_string).collect();
        self
    }

    /// Gives both parties the result of intersect, union or count. On both sides.
    pub fn both(mut self) -> Self {
        self.terms.both = true;
        self
    }

    /// Pads our set to this size with dummies, which the peer learns instead of the real one.
    pub fn pad_to(mut self, size: usize) -> Self {
        self.pad_to = Some(size);
        self
    }

    /// Accepts sets of the peer of at most this size, which determines our time and memory. Otherwise 2^26.
    pub fn max_peer_items(mut self, most: usize) -> Self {
        self.max_peer_items = most;
        self
    }

    /// Accepts small sets: where the peer learns something of our rows, it may announce fewer than 10 keys. With so few it asks
    /// about each of them.
    pub fn allow_small(mut self) -> Self {
        self.allow_small = true;
        self
    }

    /// The bytes of the longest row that is sent, plus 1 to 3 for each column: in a union the key and the columns sent, in an
    /// intersection the columns sent, in a share the key. All rows travel at this width. On both sides; otherwise 64.
    pub fn max_row(mut self, bytes: usize) -> Self {
        self.terms.max_row = bytes;
        self
    }

    /// The columns that the sender sends with its keys, by the sender's names and in its order; for the receiver.
    pub fn receive_columns<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.received = names.into_iter().map(Into::into).collect();
        self
    }

    /// The decimal places of values: they are in units of 10^-`places`. On both sides of sum and share; otherwise 0.
    pub fn scale(mut self, places: u32) -> Self {
        self.scale = places;
        self
    }

    /// Adds up modulo 2^128 instead of 2^64. On both sides of sum.
    pub fn modulus_128(mut self) -> Self {
        self.terms.modulus = Modulus::Bits128;
        self
    }

    /// Withholds count and sum from the sender if fewer keys match. On both sides of sum.
    pub fn min_count(mut self, least: u64) -> Self {
        self.terms.min_count = least;
        self
    }

    /// Protects the receiver of an intersection from a sender that deviates from the protocol. On both sides.
    pub fn malicious_sender(mut self) -> Self {
        self.terms.malicious_sender = true;
        self
    }

    /// Tells the sender of a union how many keys match. On both sides.
    pub fn reveal_count_to_sender(mut self) -> Self {
        self.terms.reveal_count = true;
        self
    }

    /// Cuts an intersection or a union into this many shards, which run one after another and take less memory. On both sides.
    pub fn shards(mut self, number: u32) -> Self {
        self.terms.shards = number;
        self
    }

    /// Keeps an audit log in this file: two lines of JSON for each run. From it repeated runs on changed sets are noticed.
    /// Without one they are not.
    pub fn audit_log(mut self, file: impl Into<PathBuf>) -> Self {
        self.audit_log = Some(file.into());
        self
    }

    /// How long to try to meet the peer; otherwise ten minutes.
    pub fn connect_timeout(mut self, time: Duration) -> Self {
        self.timeouts.connect = time;
        self
    }

    /// How long the peer may be silent, 1 second or more; otherwise one minute.
    pub fn idle_timeout(mut self, time: Duration) -> Self {
        self.timeouts.idle = time;
        self
    }

    /// Computes on this many threads of its own. Otherwise on those that all of the program shares.
    pub fn threads(mut self, number: usize) -> Self {
        self.threads = Some(number);
        self
    }

    /// Stops the run when this is stopped.
    pub fn stop(mut self, stop: &Stop) -> Self {
        self.stop = Some(stop.clone());
        self
    }

    /// Gets lines for the person in front of the program: where we listen, which strangers were turned away, what is worth a
    /// warning. Otherwise nobody sees them.
    pub fn notices(mut self, show: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.notices = Some(Arc::new(show));
        self
    }

    pub(super) fn say(&self, line: &str) {
        if let Some(notices) = &self.notices {
            notices(&plain(line));
        }
    }

    /// The choices that they allow, and whether one of them is picked.
    pub(super) fn choices(&self, operation: &'static Operation, terms: &Terms) -> Result<(Choices, bool)> {
        let usage = |name: String| Error::usage(name);
        let assume = self.assume.iter().map(|name| name.parse::<Assumption>().map_err(usage));
        let assume = assume.collect::<Result<Vec<_>>>()?;
        let assume = (!assume.is_empty()).then_some(&assume[..]);
        let group = self.group.as_deref().map(|name| protocols::groups::named(name).map_err(usage));
        let group = group.transpose()?;
        let Some(name) = &self.protocol else {
            let acceptable = |assume| planner::acceptable(operation, terms, group, assume);
            let all = planner::pickable(acceptable(assume), operation, terms, &|_| Ok(()))?;
            let all = all.ok_or_else(|| planner::nothing(&acceptable(None), operation, assume))?;
            return Ok((all, true));
        };
        let protocol = protocols::named(name).map_err(usage)?;
        let choice = Choice { protocol, group: group.unwrap_or(protocol.group()) };
        match choice.beyond(operation, assume) {
            Some(one) => Err(Error::usage(format!(
                "{operation} by {protocol} rests on {one}, which {ASSUME} leaves out. Add it, or omit {PROTOCOL}"
            ))),
            None => Ok((Choices { first: choice, others: Vec::new() }, false)),
        }
    }

    /// Refuses what the operation or the role has no use for.
    pub(super) fn check(&self, operation: &Operation, role: Role) -> Result<()> {
        let usage = |what: String| Err(Error::usage(what));
        if role == Role::Sender && !self.received.is_empty() {
            return usage(format!(
                "{RECEIVE_COLUMNS} is for the receiver. The sender has its columns with its keys"
            ));
        }
        let cut =
            protocols::ALL.iter().filter_map(|protocol| protocol.offer(operation)).any(|offer| offer.shards);
        if self.terms.shards > 0 && !cut {
            return usage(format!("{SHARDS} is not for {operation}. Omit it"));
        }
        Ok(())
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Options { protocol, group, assume, terms, scale, pad_to, max_peer_items, .. } = self;
        let mut all = f.debug_struct("Options");
        all.field("protocol", protocol).field("group", group).field("assume", assume).field("terms", terms);
        all.field("scale", scale).field("pad_to", pad_to).field("max_peer_items", max_peer_items);
        all.finish_non_exhaustive()
    }
}
