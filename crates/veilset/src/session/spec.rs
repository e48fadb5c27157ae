//! The computation of a run.

use super::party::number;
use crate::error::{Result, Seat};
use crate::net::Me;
use crate::operations::{Operation, Role, Rows, Shape, Terms, Uses};
use crate::planner::Choices;
use crate::protocols::{self, Choice};
use crate::sharded::disk::Form;

/// The computation of a run. All parties must want the same, with three exceptions. Two parties have opposite roles; among
/// several only the leader is the receiver. At least one of the candidates must be common. Only the sender of share decides
/// what is shared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// The operation to compute.
    pub operation: &'static Operation,
    /// Our role in the operation. Among several parties, the leader is the receiver, and all others are senders.
    pub role: Role,
    /// The protocols that we allow, each with its group. The receiver's order decides, unless the receiver plans.
    pub candidates: Choices,
    /// For intersect and union: the columns sent with the sender's items, by the sender's names.
    pub sent_columns: Vec<String>,
    /// For sum and share: the decimal places of the values.
    pub value_scale: u32,
    /// The other terms. [`Spec::agreed_terms`] derives `payload` and `several` from `sent_columns` and `parties`, regardless
    /// of their values here.
    pub terms: Terms,
    /// The list of parties, and our place in it; `None` in a run of two without a list.
    pub parties: Option<Me>,
}

impl Spec {
    /// Returns a plain run of two parties by the default protocol, in which the result is not sent on to the sender. Rows
    /// have at most 64 bytes.
    pub fn new(operation: &'static Operation, role: Role) -> Spec {
        Spec {
            operation,
            role,
            candidates: Choice::of(protocols::default_for(operation, &Terms::default())).into(),
            sent_columns: Vec::new(),
            value_scale: 0,
            terms: Terms { max_row: 64, ..Terms::default() },
            parties: None,
        }
    }

    /// Returns the same run among the parties of a list, with the role that follows from the list. If there are several, the
    /// only candidate is the protocol for several parties, if the operation has one.
    #[must_use]
    pub fn among(self, parties: Me) -> Spec {
        let spec = Spec { role: Role::multiparty(parties.leads()), parties: Some(parties), ..self };
        let protocol = protocols::multiparty_for(spec.operation).filter(|_| spec.several());
        let candidates = protocol.map_or(spec.candidates, |protocol| Choice::of(protocol).into());
        Spec { candidates, ..spec }
    }

    /// Whether this is a run of several parties. A list of two parties makes a run of two.
    pub fn several(&self) -> bool {
        self.parties.as_ref().is_some_and(|me| me.others().count() > 1)
    }

    /// Returns our number. In a run of two, the receiver is 0 and the sender 1; among several, the number is our place in the
    /// list, counted from 0.
    pub(super) fn number(&self) -> usize {
        let listed = self.parties.as_ref().filter(|_| self.several());
        listed.map_or(self.role as usize, |me| number(me.own().seat()))
    }

    /// Returns the role that the party at this seat must have.
    pub(super) fn role_of(&self, other: Seat) -> Role {
        if self.several() { Role::multiparty(number(other) == 0) } else { self.role.other() }
    }

    /// Removes the candidates that `permitted` refuses, unless it refuses all.
    ///
    /// # Errors
    /// If all are refused: the error of the first candidate.
    pub fn restrict(&mut self, mut permitted: impl FnMut(Choice) -> Result<()>) -> Result<()> {
        let mut wrong = None;
        let kept = self.candidates.kept(|choice| match permitted(*choice) {
            Ok(()) => true,
            Err(why) => {
                wrong.get_or_insert(why);
                false
            }
        });
        match kept {
            Some(kept) => {
                self.candidates = kept;
                Ok(())
            }
            None => wrong.map_or(Ok(()), Err),
        }
    }

    /// Returns the names of our columns that are sent.
    pub fn sends(&self) -> &[String] {
        if self.role == Role::Sender { &self.sent_columns } else { &[] }
    }

    /// Whether our items have values.
    pub fn has_values(&self) -> bool {
        self.operation.uses.has_values(self.role, &self.terms)
    }

    /// Returns the form of our result.
    pub fn shape(&self) -> Shape {
        (self.operation.result)(self.role, &self.agreed_terms())
    }

    /// Returns the form of our items on disk, for a run in shards.
    pub fn form(&self) -> Form {
        let terms = self.agreed_terms();
        let items = self.operation.uses.items_in_rows(self.role, &terms);
        let row = (items || !self.sends().is_empty()).then_some(terms.max_row);
        Form { items, row }
    }

    /// Returns the computation as it is agreed on: terms that the operation does not use are 0 or their default.
    pub(super) fn agreed(&self) -> Spec {
        let Uses { values, shares, .. } = self.operation.uses;
        let value_scale = if values || shares { self.value_scale } else { 0 };
        Spec { terms: self.agreed_terms(), value_scale, ..self.clone() }
    }

    /// Returns the terms as they are agreed on: those that the operation does not use are 0 or their default.
    pub fn agreed_terms(&self) -> Terms {
        let Terms {
            max_row, both, modulus, min_count, malicious_sender, reveal_count, shared_values, ..
        } = self.terms;
        let payload = !self.sent_columns.is_empty();
        let Uses { rows, values, shares, .. } = self.operation.uses;
        let rows = rows == Rows::Items || payload || shares;
        Terms {
            payload,
            max_row: if rows { max_row } else { 0 },
            both,
            modulus: if values { modulus } else { Default::default() },
            min_count: if values { min_count } else { 0 },
            malicious_sender,
            reveal_count,
            shared_values: shares && shared_values && self.role == Role::Sender,
            several: self.several(),
            bare: false,
            filter: self.terms.filter,
            shards: self.terms.shards,
        }
    }
}
