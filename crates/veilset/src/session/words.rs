//! What the parties of a run of several learn, in sentences: before the run, and in its report.

use super::{Parties, Party};
use crate::operations::{Announced, Numbers, Operation, Role, Terms, View};
use std::fmt;

/// Whether the run is to come or is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    Before,
    Done,
}

/// A party as messages call it: "party 3 (south)".
impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.name, self.seat.number()) {
            (Some(name), Some(_)) => write!(f, "{} ({name})", self.seat),
            (None, _) | (_, None) => self.seat.fmt(f),
        }
    }
}

/// What everybody learns in a run of several, of which we have this role and announced `ours`. `numbers` is the outcome, as
/// far as we know it.
pub(super) fn of_several(
    when: When,
    (operation, terms): (&Operation, &Terms),
    (role, ours): (Role, Announced),
    parties: &Parties,
    numbers: Option<Numbers<'_>>,
) -> Vec<String> {
    let learns = match when {
        When::Before => "would learn",
        When::Done => "learned",
    };
    let facts = |role| (operation.learns)(role, terms);
    // With one other party, what only others have is what that one has.
    let several = parties.count() > 1;
    let view = |other, numbers| View {
        other,
        several,
        other_pads: Some(parties.peer().announced.padded),
        columns: "",
        numbers,
    };
    let others = if several { "the others" } else { "the other party" };
    let sizes: Vec<_> =
        parties.iter().map(|party| format!("{party} has {} items", party.announced.words())).collect();
    let (announced, ours) = (ours, ours.words());
    let mut all = vec![format!(
        "This party {learns} that {}, and {}.",
        sizes.join(", that "),
        view(others, numbers).say(&facts(role))
    )];
    let all_others = if several { "All others" } else { "The other party" };
    let leader = parties.peer();
    all.push(match (role, several) {
        (Role::Receiver, _) => {
            format!("{all_others} {learns} that this party has {ours} items, and nothing else of it.")
        }
        (Role::Sender, false) => {
            let their = View { other_pads: Some(announced.padded), ..view("this party", None) };
            let facts = their.say(&facts(Role::Receiver));
            format!("The leader, {leader}, {learns} that this party has {ours} items, and {facts}.")
        }
        (Role::Sender, true) => {
            let facts = view(others, None).say(&facts(Role::Receiver));
            format!(
                "{all_others} {learns} that this party has {ours} items, and nothing of the result, except the leader, \
                 {leader}, which {learns} {facts}."
            )
        }
    });
    all
}
