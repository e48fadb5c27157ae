//! The options of a run.

use super::Stop;
use crate::assumption::Assumption;
use crate::channel::Timeouts;
use crate::error::{Error, Result};
use crate::operations::sum::Modulus;
use crate::operations::{Operation, Role, Terms};
use crate::params::MAX_SET;
use crate::planner::{self, Choices};
use crate::protocols::{self, Attachment, Choice};
use crate::spelling::{ASSUME, PROTOCOL, RECEIVE_COLUMNS, SHARDS, plain};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Receives each line for the user.
type Show = dyn Fn(&str) + Send + Sync;

/// The options of a run. If both sides must agree on an option, its method says so; a difference is refused and named before
/// anything that depends on the data is sent.
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
    /// Returns options that fit most runs. Of the protocols that both sides allow, one is picked that takes under a second or
    /// about as long as the fastest. Only the receiver gets the result of intersect, union or count. Rows that are sent have at
    /// most 64 bytes, and no audit log is kept. A peer that learns something about our rows must announce 10 keys or more.
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

    /// Allows only this protocol, under the name that the program uses, for instance `vole`. Without this option, one is picked
    /// among the protocols that both sides allow.
    pub fn protocol(mut self, name: &str) -> Self {
        self.protocol = Some(name.into());
        self
    }

    /// Computes in this group: `curve25519`, `ristretto255`, `p256` or `p256-compressed` (the last two: protocols `dh` and
    /// `dh-psi`). Must be the same on both sides.
    pub fn group(mut self, name: &str) -> Self {
        self.group = Some(name.into());
        self
    }

    /// Picks only protocols that assume no hard problems other than these: `ddh`, `lpn`, `rlwe`, `dcr`. An empty list, like
    /// the default, allows all.
    pub fn assume<'a>(mut self, problems: impl IntoIterator<Item = &'a str>) -> Self {
        self.assume = problems.into_iter().map(str::to_string).collect();
        self
    }

    /// Gives both parties the result of intersect, union or count. Must be set on both sides.
    pub fn both(mut self) -> Self {
        self.terms.both = true;
        self
    }

    /// Pads our set with dummies to this size, which the peer learns instead of the real one.
    pub fn pad_to(mut self, size: usize) -> Self {
        self.pad_to = Some(size);
        self
    }

    /// Accepts sets of at most this size from the peer; the size determines our time and memory. By default 2^28.
    pub fn max_peer_items(mut self, most: usize) -> Self {
        self.max_peer_items = most;
        self
    }

    /// Accepts small sets from a peer that learns something about our rows: it may announce fewer than 10 keys. So small a set
    /// amounts to asking about each of its keys.
    pub fn allow_small(mut self) -> Self {
        self.allow_small = true;
        self
    }

    /// Sets the width to which all sent rows are padded. It must hold the bytes of the longest row, plus 1 to 3 for each
    /// column. A row is the key and the columns sent in a union, the columns sent in an intersection, and the key in a share.
    /// Must be the same on both sides; by default 64.
    pub fn max_row(mut self, bytes: usize) -> Self {
        self.terms.max_row = bytes;
        self
    }

    /// For the receiver: names the columns that the sender sends with its keys, as the sender does and in the sender's order.
    pub fn receive_columns<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.received = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the number of decimal places of values, which are in units of 10^-`places`. Must be the same on both sides of sum
    /// and share; by default 0.
    pub fn scale(mut self, places: u32) -> Self {
        self.scale = places;
        self
    }

    /// Computes the sum modulo 2^128 instead of 2^64. Must be the same on both sides of sum.
    pub fn modulus_128(mut self) -> Self {
        self.terms.modulus = Modulus::Bits128;
        self
    }

    /// Withholds the count and the sum from the sender if fewer keys than this match. Must be the same on both sides of sum.
    pub fn min_count(mut self, least: u64) -> Self {
        self.terms.min_count = least;
        self
    }

    /// Keeps a sender of an intersection that deviates from the protocol from changing which keys match, other than by its choice
    /// of a set. Covers neither columns that are sent nor what the sender learns with [`Options::both`]. Must be set on both
    /// sides.
    pub fn malicious_sender(mut self) -> Self {
        self.terms.malicious_sender = true;
        self
    }

    /// Reveals to the sender of a union how many keys match. Must be set on both sides.
    pub fn reveal_count_to_sender(mut self) -> Self {
        self.terms.reveal_count = true;
        self
    }

    /// Cuts an intersection or a union into this many shards, which run one after another and take less memory. Must be the
    /// same on both sides.
    pub fn shards(mut self, number: u32) -> Self {
        self.terms.shards = number;
        self
    }

    /// Keeps an audit log in this file: a line of JSON when a run starts, and one when it ends; only one if it ends before it
    /// starts and the peer may know our size. The log is needed to notice repeated runs on changed sets.
    pub fn audit_log(mut self, file: impl Into<PathBuf>) -> Self {
        self.audit_log = Some(file.into());
        self
    }

    /// Sets how long to try to connect to the peer, or to wait for its connection; by default ten minutes.
    pub fn connect_timeout(mut self, time: Duration) -> Self {
        self.timeouts.connect = time;
        self
    }

    /// Sets how long the peer may be silent, 1 second or more; by default one minute.
    pub fn idle_timeout(mut self, time: Duration) -> Self {
        self.timeouts.idle = time;
        self
    }

    /// Computes on this many threads of the run's own; 0 is one per processor. By default a run uses the threads that the whole
    /// program shares.
    pub fn threads(mut self, number: usize) -> Self {
        self.threads = Some(number);
        self
    }

    /// Stops the run on [`Stop::stop`].
    pub fn stop(mut self, stop: &Stop) -> Self {
        self.stop = Some(stop.clone());
        self
    }

    /// Passes lines for the user to `show`: our listening address, refused connections from strangers, why the peer cannot be
    /// reached yet, and warnings. By default they are discarded.
    pub fn notices(mut self, show: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.notices = Some(Arc::new(show));
        self
    }

    pub(super) fn say(&self, line: &str) {
        if let Some(notices) = &self.notices {
            notices(&plain(line));
        }
    }

    /// The choices that these options allow, and whether one of them remains to be picked.
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

    /// Refuses columns to receive if we are the sender, and shards for an operation that no protocol computes in shards.
    pub(super) fn check(&self, operation: &Operation, role: Role) -> Result<()> {
        let usage = |what: String| Err(Error::usage(what));
        if role == Role::Sender && !self.received.is_empty() {
            return usage(format!(
                "{RECEIVE_COLUMNS} is for the receiver. The sender has its columns with its keys"
            ));
        }
        let cut = protocols::ALL
            .iter()
            .filter_map(|protocol| protocol.offer(operation))
            .any(|offer| offer.takes_with(Attachment::Shards));
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
