//! The agreement, against a peer that sends the input: preamble, hello, size.
//!
//! If the first byte is 0, the input is the peer's stream. Otherwise it is only its hello, put in a frame of the right length
//! after the right preamble, so that the JSON is mutated and not the frames.
use crate::{byte, check, peer};
use veilset::channel::WireCount;
use veilset::item::ItemSet;
use veilset::net::Connection;
use veilset::operations::{Role, UNION};
use veilset::protocols::{CWPRF, Choice, KRTW19};
use veilset::session::run::Request;
use veilset::session::{Hello, agree};

fn hello(role: Role) -> Hello {
    let (set, alternatives) = (ItemSet::default(), [Choice::of(&KRTW19)]);
    let request = Request::new(&UNION, role, &set).with(|r| {
        r.spec.candidates = Choice::of(&CWPRF).into();
        r.spec.candidates.others = alternatives.to_vec();
        r.spec.sent_columns = ["note".into()].to_vec();
    });
    request.hello(false)
}

/// Runs the target on an input.
pub(crate) fn run(data: &[u8]) {
    let mut data = data;
    let whole = byte(&mut data) == 0;
    let frame = |tag: u8, body: &[u8]| [&[tag, 0], &(body.len() as u32).to_le_bytes()[..], body].concat();
    let stream = match whole {
        true => data.to_vec(),
        false => [frame(1, b"veilset\0\x01\0"), frame(2, data), frame(3, &5u64.to_le_bytes())].concat(),
    };
    let mut connection = Connection::unprotected(peer(&stream), WireCount::default());
    let mut rng = veilset_core::hazmat::seeded(&[1; 32]);
    match agree(&mut connection, &hello(Role::Receiver), 3, &mut rng) {
        Ok(agreement) => assert!(agreement.their_size <= veilset::params::MAX_SET),
        Err(e) => check(&e),
    }
}
