//! Checks of a request that are made before there is a peer: for terms that contradict each other or do not fit the data.

use super::{Request, Spec};
use crate::artefact;
use crate::error::{Error, Result};
use crate::spelling::{
    BOTH, FILTER, MALICIOUS_SENDER, MAX_ROW, MODULUS, PAD_TO, PARTIES, PREPARED, PROTOCOL,
    REVEAL_COUNT_TO_SENDER, SCALE, SHARDS, setting,
};

use crate::operations::{self, Role, Rows, Terms, share, sum};
use crate::protocols::{self, Attachment, Choice, Offer, Protocol};
use crate::sharded::run as shards;
use crate::sharded::set::Set;

impl Request<'_> {
    /// Makes the checks that need no peer. A half or a filter made in advance needs [`Request::check_prepared`] or
    /// [`Request::check_filter`] in addition.
    ///
    /// # Errors
    /// [`Error::Usage`] if the terms contradict each other, the data does not fit them, or the threads to compute on cannot
    /// be started. [`Error::Bug`] if parts of the request do not belong together.
    pub fn check(&self) -> Result<()> {
        let wrong = |what: String| Err(Error::usage(what));
        let Spec { operation, ref terms, .. } = self.spec;
        let payload = !self.spec.sent_columns.is_empty();
        self.local.threads.check()?;
        self.check_parties()?;
        for Choice { protocol, group } in self.candidates().iter() {
            if !protocol.works_in().any(|name| name == group) {
                return Err(protocol.refuse_group(group));
            }
            let Some(offer) = protocol.offer(operation) else {
                let those = protocols::names(|p| p.computes(operation));
                return wrong(format!(
                    "{} cannot compute {operation}. Omit it, or use one of {those}",
                    PROTOCOL.with(protocol)
                ));
            };
            if terms.malicious_sender && !offer.malicious_sender {
                let those = protocols::names(|p| p.offers.iter().any(|offer| offer.malicious_sender));
                return wrong(format!(
                    "{MALICIOUS_SENDER} requires {} and does not work with {protocol}. Omit \
                     {PROTOCOL}",
                    PROTOCOL.with(those)
                ));
            }
            self.check_revealed(protocol, offer)?;
            let ours = match terms.shards {
                0 => self.announced(),
                number => {
                    shards::check(number, operation, protocol)?;
                    shards::bound(self.announced(), number)
                }
            };
            let sizes = if self.spec.role == Role::Receiver { [ours, 0] } else { [0, ours] };
            protocol.check_sizes(operation, sizes).map_err(Error::usage)?;
        }
        if terms.shards > 0 && self.spec.several() {
            return wrong(format!("jobs in shards are of two parties. Omit {SHARDS}, or {PARTIES}"));
        }
        if terms.both && terms.reveal_count {
            return wrong(format!(
                "{REVEAL_COUNT_TO_SENDER} is pointless with {BOTH}: the result, which the sender then gets, shows how \
                 many items match. Omit one of them on both sides"
            ));
        }
        if terms.both && !operation.uses.both {
            return wrong(format!(
                "{BOTH} is not for {operation}, in which each side has its own result. Omit it"
            ));
        }
        if payload && operation.uses.rows == Rows::None {
            let those = operations::ALL.into_iter().filter(|o| o.uses.rows != Rows::None).map(|o| o.name);
            return wrong(format!(
                "columns can be sent in {} only, not in {operation}",
                those.collect::<Vec<_>>().join(" and ")
            ));
        }
        artefact::check_size(self.input.set.len(), self.announced())?;
        self.check_rows()?;
        match operation.uses.shares {
            true if self.input.values.iter().all(|value| share::fits(*value)) => Ok(()),
            true => wrong(format!("a value does not fit 64 bits. Use a smaller {SCALE}")),
            false if sum::fits(terms.modulus, self.announced(), self.input.values) => Ok(()),
            false => wrong(format!(
                "with {} values, including the dummies of {PAD_TO}, the sum could overflow. Use \
                 {} on both sides, or a smaller {SCALE}",
                self.announced(),
                MODULUS.with(128)
            )),
        }
    }

    /// Refuses protocols and terms that are not for this number of parties.
    fn check_parties(&self) -> Result<()> {
        let wrong = |what: String| Err(Error::usage(what));
        let operation = self.spec.operation;
        if !self.spec.several() {
            return match self.candidates().iter().find(|choice| choice.protocol.is_multiparty()) {
                Some(Choice { protocol, .. }) => wrong(format!(
                    "{} is for several parties. Name them with {PARTIES}, or omit {PROTOCOL}",
                    PROTOCOL.with(protocol)
                )),
                None => Ok(()),
            };
        }
        let Some(protocol) = protocols::multiparty_for(operation) else {
            let those = operations::ALL.into_iter().filter(|o| protocols::multiparty_for(o).is_some());
            let those: Vec<_> = those.map(|o| o.name).collect();
            return wrong(format!(
                "{operation} is for two parties only. Omit {PARTIES}, or use {}",
                those.join(", ")
            ));
        };
        if self.candidates().iter().any(|choice| choice.protocol != protocol) {
            return wrong(format!(
                "{operation} of several parties is computed by {protocol} only. Omit {PROTOCOL}"
            ));
        }
        let Terms { both, malicious_sender, reveal_count, .. } = self.spec.terms;
        let not_offered = [
            (
                both,
                concat!(
                    setting!(both),
                    " is for two parties: of several, the leader alone learns the result"
                ),
            ),
            (
                malicious_sender,
                concat!(
                    setting!(malicious_sender),
                    " is for two parties: several are assumed to follow the protocol"
                ),
            ),
            (
                reveal_count,
                concat!(
                    setting!(reveal_count_to_sender),
                    " is for two parties: of several, only the leader learns anything"
                ),
            ),
            (
                !self.spec.sent_columns.is_empty(),
                "columns are sent between two parties only: they would show whose they are",
            ),
        ];
        match not_offered.into_iter().find(|(asked, _)| *asked) {
            Some((_, why)) => wrong(format!("{why}. Omit it, or {PARTIES}")),
            None => Ok(()),
        }
    }

    /// Refuses an offer that does not reveal the count to the sender as requested, or reveals it without a request.
    fn check_revealed(&self, protocol: &Protocol, offer: &Offer) -> Result<()> {
        let operation = self.spec.operation;
        let those = protocols::names(|p| p.offer(operation).is_some_and(|offer| offer.reveals_count));
        let wrong = match (self.spec.terms.reveal_count, offer.reveals_count) {
            (true, true) | (false, false) => return Ok(()),
            (true, false) if those.is_empty() => {
                format!("{REVEAL_COUNT_TO_SENDER} is not for {operation}. Omit it")
            }
            (true, false) => format!(
                "{REVEAL_COUNT_TO_SENDER} requires {} and does not work with {protocol}. Omit {PROTOCOL}",
                PROTOCOL.with(those)
            ),
            (false, true) => format!(
                "by {} the sender of {operation} learns how many items match. Agree to that with \
                 {REVEAL_COUNT_TO_SENDER} on both sides, or use another protocol",
                PROTOCOL.with(protocol)
            ),
        };
        Err(Error::usage(wrong))
    }

    /// Refuses data or a role that does not belong to this run, which is a bug, and rows that are longer than the agreed
    /// maximum.
    fn check_rows(&self) -> Result<()> {
        let terms = self.spec.agreed_terms();
        let Terms { payload, max_row, .. } = terms;
        let keys_travel = self.spec.operation.uses.items_in_rows(self.spec.role, &terms);
        let payloads = self.input.payloads;
        let sends = !self.spec.sends().is_empty();
        let unfit = match self.input.set {
            Set::Memory(set) if sends && payloads.len() != set.len() => {
                "payloads that do not belong to the items"
            }
            Set::Disk(_) | Set::Workers(_) if terms.shards == 0 => {
                "a set that is not in memory, for a run in one piece"
            }
            Set::Disk(stored) if stored.form() != self.spec.form() => "a set on disk of another form",
            Set::Disk(stored) if stored.announced() != self.announced() => {
                "a set on disk that is not padded as it is announced"
            }
            _ if self
                .spec
                .parties
                .as_ref()
                .is_some_and(|me| self.spec.role != Role::multiparty(me.leads())) =>
            {
                "a role that is not that of our place in the list of parties"
            }
            _ => "",
        };
        if !unfit.is_empty() {
            return Err(Error::Bug(unfit.into()));
        }
        // The rows of a set on disk were checked before they were written, and workers check their own rows.
        let Set::Memory(set) = self.input.set else { return Ok(()) };
        let key = |i| if keys_travel { set.get(i).len() } else { 0 };
        let sent = |i| if payloads.is_empty() { 0 } else { payloads.get(i).len() };
        match (0..set.len()).map(|i| key(i) + sent(i)).max() {
            Some(longest) if longest > max_row && (keys_travel || payload) => Err(Error::usage(format!(
                "one of our rows takes {longest} bytes, but {MAX_ROW} is {max_row}. Use a larger value on \
                 both sides"
            ))),
            _ => Ok(()),
        }
    }

    /// Refuses a run in shards, which cannot use anything that was prepared in advance.
    fn check_in_one_piece(&self) -> Result<()> {
        match self.spec.terms.shards {
            0 => Ok(()),
            _ => Err(Error::usage(format!(
                "a job in shards cannot use what was prepared. Omit {PREPARED}, {FILTER} or {SHARDS}"
            ))),
        }
    }

    /// Refuses a run in shards, and candidates that cannot use a filter made in advance.
    ///
    /// # Errors
    /// [`Error::Usage`] if the run or a candidate cannot use a filter.
    pub fn check_filter(&self) -> Result<()> {
        self.check_in_one_piece()?;
        let those = protocols::names(|p| p.offers.iter().any(|offer| offer.takes_with(Attachment::Filter)));
        let uses = |choice: Choice| choice.protocol.attaches(self.spec.operation, Attachment::Filter);
        match self.candidates().iter().all(uses) {
            true => Ok(()),
            false => Err(Error::usage(format!(
                "{FILTER} is for {those} only, and no other protocol may be allowed. Omit {FILTER} or {PROTOCOL}"
            ))),
        }
    }

    /// Refuses a run in shards, candidates that cannot use a prepared half, and candidates in different groups.
    ///
    /// # Errors
    /// [`Error::Usage`] if the run or a candidate cannot use a half.
    pub fn check_prepared(&self) -> Result<()> {
        self.check_in_one_piece()?;
        let first = self.spec.candidates.first.group;
        for Choice { protocol, group } in self.candidates().iter() {
            if !protocol.attaches(self.spec.operation, Attachment::Half) {
                return Err(Error::usage(format!(
                    "{} cannot use a prepared half. Omit {PREPARED} or {PROTOCOL}",
                    PROTOCOL.with(protocol)
                )));
            }
            // The points of a half are all in one group.
            if group != first {
                return Err(Error::usage(format!(
                    "a half is prepared in one group, but the allowed protocols work in {first} and {group}. \
                     Allow only one"
                )));
            }
        }
        Ok(())
    }
}
