//! The agreement, against a peer that sends the input: preamble, hello, size.
//!
//! If the first byte is 0, the input is the peer's stream. Otherwise it is only its hello, put in a frame of the right length
//! after the right preamble, so that the JSON is mutated and not the frames.
use crate::{byte, check, peer};
use veilset::channel::{PROTOCOL_VERSION, WireCount};
use veilset::error::Result;
use veilset::item::ItemSet;
use veilset::net::Connection;
use veilset::operations::{Role, UNION};
use veilset::protocols::{CWPRF, Choice, KRTW19};
use veilset::session::run::{Request, check as check_run};
use veilset::session::{Approval, Proposal};

/// Checks what a run would be allowed on.
struct Bounded;

impl Approval for Bounded {
    fn approve(&mut self, proposal: &Proposal) -> Result<()> {
        assert!(proposal.parties.peer().announced.size <= veilset::params::MAX_SET);
        Ok(())
    }
}

/// Runs the target on an input.
pub(crate) fn run(data: &[u8]) {
    let mut data = data;
    let whole = byte(&mut data) == 0;
    let frame = |tag: u8, body: &[u8]| [&[tag, 0], &(body.len() as u32).to_le_bytes()[..], body].concat();
    let stream = match whole {
        true => data.to_vec(),
        false => [
            frame(1, &[&b"veilset\0"[..], &PROTOCOL_VERSION.to_le_bytes()].concat()),
            frame(2, data),
            frame(3, &5u64.to_le_bytes()),
        ]
        .concat(),
    };
    let connection = Connection::unprotected(peer(&stream), WireCount::default());
    let mut rng = veilset_core::hazmat::seeded(&[1; 32]);
    let set = ItemSet::default();
    let request = Request::new(&UNION, Role::Receiver, &set).with(|r| {
        r.spec.candidates = Choice::of(&CWPRF).into();
        r.spec.candidates.others = vec![Choice::of(&KRTW19)];
        r.spec.sent_columns = vec!["note".into()];
    });
    let prepared = request.prepare(&mut rng).unwrap();
    if let Err(e) = check_run(connection, &prepared, &mut Bounded, &|_| Ok(0), &mut rng) {
        check(&e);
    }
}
