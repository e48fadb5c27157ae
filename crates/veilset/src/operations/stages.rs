//! How many stages a run has.

use super::{Operation, Protocol, Terms};

/// The number of stages that a run announces to an [`crate::channel::Observer`], one after the other, in either role.
pub const fn stages(protocol: Protocol, operation: Operation, terms: &Terms) -> usize {
    match protocol {
        // Matching and comparing; then rows are transferred or values summed.
        Protocol::Dh => match operation {
            Operation::Count => 2,
            Operation::Intersect | Operation::Union | Operation::Sum => 3,
        },
        // Matching and comparing, then the columns that travel.
        Protocol::DhPsi | Protocol::Cm20 => 2 + terms.payload as usize,
        // Its matching is over at once.
        Protocol::Vole => 1 + terms.payload as usize,
        // Matching, then rows are transferred.
        Protocol::Krtw19 | Protocol::Krtw19Plain => 2,
    }
}
