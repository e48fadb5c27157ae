//! The operations: what two parties compute. One file per operation and protocol family.

use std::fmt;
use std::str::FromStr;

/// What is computed (DESIGN 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// The receiver learns which of its items the sender has.
    Intersect,
    /// The receiver learns all items of both.
    Union,
    /// The receiver learns the number of matches and the size of the union.
    Count,
    /// Both learn the number of matches; the sender learns the sum of its values over them.
    Sum,
}

/// Who learns the result of the operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Learns the result (in `sum`, the number of matches).
    Receiver,
    /// Contributes its set (in `sum`, its values too, and learns their sum).
    Sender,
}

impl Operation {
    /// All of them.
    pub const ALL: [Operation; 4] =
        [Operation::Intersect, Operation::Union, Operation::Count, Operation::Sum];

    /// The name as typed.
    pub const fn name(self) -> &'static str {
        match self {
            Operation::Intersect => "intersect",
            Operation::Union => "union",
            Operation::Count => "count",
            Operation::Sum => "sum",
        }
    }
}

impl Role {
    /// The name as typed.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Receiver => "receiver",
            Role::Sender => "sender",
        }
    }

    /// The peer's role.
    #[must_use]
    pub const fn other(self) -> Role {
        match self {
            Role::Receiver => Role::Sender,
            Role::Sender => Role::Receiver,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Operation {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        let found = Operation::ALL.into_iter().find(|o| o.name() == s);
        found.ok_or_else(|| format!("\"{s}\" is not an operation: intersect, union, count, sum"))
    }
}

impl FromStr for Role {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        let found = [Role::Receiver, Role::Sender].into_iter().find(|r| r.name() == s);
        found.ok_or_else(|| format!("\"{s}\" is not a role: receiver, sender"))
    }
}
