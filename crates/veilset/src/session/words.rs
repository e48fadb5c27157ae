//! Sentences that state what the parties of a run learn: before the run, and in its report.

use super::{Parties, Party, Spec};
use crate::operations::{Announced, Numbers, Role, View};
use std::fmt;

/// A party as messages name it: "party 3 (south)", or "the peer" in a run of two.
impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.name, self.seat.number()) {
            (Some(name), Some(_)) => write!(f, "{} ({name})", self.seat),
            (None, _) | (_, None) => self.seat.fmt(f),
        }
    }
}

/// The facts about a run that determine what its parties learn.
pub(super) struct Learning<'a> {
    pub(super) spec: &'a Spec,
    /// Our announcement.
    pub(super) ours: Announced,
    pub(super) parties: &'a Parties,
}

impl Learning<'_> {
    /// Returns a sentence about what we learn, and one about what the others learn. `learn` is the verb, which tells whether
    /// the run is planned or done. The numbers are our outcome and, in a run of two, the peer's, as far as we know them.
    pub(super) fn sentences(&self, learn: &str, [ours, theirs]: [Option<Numbers<'_>>; 2]) -> Vec<String> {
        let Spec { operation, role, terms, .. } = self.spec;
        let (several, peer) = (self.parties.count() > 1, self.parties.peer());
        let columns = self.spec.sent_columns.join(", ");
        let facts = |of: Role, other: &str, other_pads, numbers| {
            let columns = if of == Role::Receiver { columns.as_str() } else { "" };
            let view = View { other, several, other_pads: Some(other_pads), columns, numbers };
            view.say(&(operation.learns)(of, terms))
        };
        let others = if several { "the others".into() } else { peer.to_string() };
        let has = |party: &Party| format!("{party} has {} items", party.announced.words());
        let sizes: Vec<_> = self.parties.iter().map(has).collect();
        let we = format!(
            "This party {learn} that {}, and {}.",
            sizes.join(", that "),
            facts(*role, &others, peer.announced.padded, ours)
        );
        let size = format!("{learn} that this party has {} items", self.ours.words());
        let they = match (several, role) {
            (false, _) => {
                let facts = facts(role.other(), "this party", self.ours.padded, theirs);
                format!("{} {size}, and {facts}.", capitalised(&others))
            }
            (true, Role::Receiver) => format!("All others {size}, and nothing else of it."),
            (true, Role::Sender) => {
                let facts = facts(Role::Receiver, &others, peer.announced.padded, None);
                format!(
                    "All others {size}, and nothing of the result, except the leader, {peer}, which {learn} {facts}."
                )
            }
        };
        vec![we, they]
    }
}

/// Returns the sentence with a capital letter at its start.
fn capitalised(words: &str) -> String {
    let (first, rest) = words.split_at(words.chars().next().map_or(0, char::len_utf8));
    first.to_uppercase() + rest
}
