//! Shared helpers of the session tests: hellos, parties, proposals.

pub(crate) use veilset_core::testing::*;

use crate::error::Seat;
use crate::item::ItemSet;
use crate::net::{Fingerprint, Listed, ListedParty, Me, Roster};
use crate::operations::sum::Modulus;
use crate::operations::{Announced, COUNT, Operation, Role};
use crate::planner::Choices;
use crate::protocols::Choice;
use crate::session::run::Request;
use crate::session::{Hello, Parties, Party, Proposal};
use std::num::NonZeroU8;

/// The hello of a plain request.
pub(crate) fn hello(operation: &'static Operation, role: Role) -> Hello {
    Request::new(operation, role, &ItemSet::default()).hello(false)
}

/// The other party of a two-party run without TLS, which announced this size.
pub(crate) fn peer(size: usize, padded: bool) -> Party {
    let announced = Announced { size, padded };
    Party { seat: Seat::PEER, fingerprint: None, name: None, announced }
}

/// The party with this number and name in a run of three or more, with a fingerprint made from the name.
pub(crate) fn party(number: u8, name: &str, size: usize) -> Party {
    Party {
        seat: Seat::numbered(NonZeroU8::new(number).unwrap()),
        fingerprint: Some(Fingerprint::of_public_key(name.as_bytes())),
        name: Some(name.into()),
        ..peer(size, false)
    }
}

/// For each of `n` parties, called a, b, c and so on: the list, and its own entry.
pub(crate) fn parties(n: usize) -> Vec<Me> {
    parties_called(n, "")
}

/// For each of `n` parties, whose names begin with `prefix`: the list, and its own entry.
pub(crate) fn parties_called(n: usize, prefix: &str) -> Vec<Me> {
    let names: Vec<_> = (b'a'..).take(n).map(|letter| format!("{prefix}{}", char::from(letter))).collect();
    let party = |(i, name): (usize, &String)| ListedParty {
        name: name.clone(),
        fingerprint: Fingerprint::of_public_key(&[i as u8]),
        address: Some(format!("{name}.example.org:7000")),
    };
    let listed = Listed { leader: names[0].clone(), party: names.iter().enumerate().map(party).collect() };
    let roster = Roster::new(listed, "parties.toml").unwrap();
    names.iter().map(|name| roster.clone().me(name).unwrap()).collect()
}

/// These choices, of which there is at least one.
pub(crate) fn choices(all: &[Choice]) -> Choices {
    Choices { first: all[0], others: all[1..].to_vec() }
}

/// The proposal after this hello, with the first of its candidates, for our set of this size.
pub(crate) fn proposal(hello: Hello, size: usize, parties: impl Into<Parties>) -> Proposal {
    Proposal {
        choice: hello.spec.candidates.first,
        theirs: hello.spec.candidates.clone(),
        session_id: ANY_SESSION,
        why: None,
        ours: Announced { size, padded: hello.padded },
        parties: parties.into(),
        hello,
    }
}

/// Variants of this hello of a sum, each with one of its terms changed, and the key of that term.
pub(crate) fn changed_terms(hello: &Hello) -> Vec<(&'static str, Hello)> {
    type Change = (&'static str, fn(&mut Hello));
    let changes: [Change; 15] = [
        ("operation", |h| h.spec.operation = &COUNT),
        ("purpose", |h| h.check = !h.check),
        ("parties", |h| h.spec.parties = parties_called(2, "z").pop()),
        ("output", |h| h.spec.terms.both = !h.spec.terms.both),
        ("key_columns", |h| h.key_columns += 1),
        ("normalisation", |h| h.normalisation += "trim"),
        ("max_row", |h| h.spec.terms.max_row += 1),
        ("sent_columns", |h| h.spec.sent_columns.push("another".into())),
        ("min_count", |h| h.spec.terms.min_count += 1),
        ("value_scale", |h| h.spec.value_scale += 1),
        ("modulus_bits", |h| h.spec.terms.modulus = Modulus::Bits128),
        ("malicious_sender", |h| h.spec.terms.malicious_sender = !h.spec.terms.malicious_sender),
        ("reveal_count_to_sender", |h| h.spec.terms.reveal_count = !h.spec.terms.reveal_count),
        ("shards", |h| h.spec.terms.shards += 2),
        ("job", |h| (h.spec.terms.shards, h.job) = (2, Some(ANY_SESSION))),
    ];
    let changed = |(key, change): Change| {
        let mut hello = hello.clone();
        change(&mut hello);
        (key, hello)
    };
    changes.into_iter().map(changed).collect()
}
