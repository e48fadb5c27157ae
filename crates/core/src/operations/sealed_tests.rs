use super::*;
use crate::error::Fault;
use std::thread;

#[test]
fn both_confirm_the_end() {
    let (mut a, mut b) = Channel::pair();
    let there = thread::spawn(move || confirm(&mut b, &SessionId::of([1; 32])));
    confirm(&mut a, &SessionId::of([1; 32])).unwrap();
    there.join().unwrap().unwrap();
}

#[test]
fn an_end_that_the_peer_does_not_confirm_is_an_error() {
    // The peer leaves early, stops, confirms a different session, or sends something else.
    let (mut a, b) = Channel::pair();
    drop(b);
    assert!(matches!(confirm(&mut a, &SessionId::of([1; 32])), Err(Error::Network(_))));

    let (mut a, b) = Channel::pair();
    b.abort(&Error::Output("disk full".into()));
    let e = confirm(&mut a, &SessionId::of([1; 32])).unwrap_err();
    assert!(a.explain(e).to_string().contains("could not write its result"));

    let (mut a, mut b) = Channel::pair();
    let there = thread::spawn(move || confirm(&mut b, &SessionId::of([2; 32])));
    assert!(matches!(
        confirm(&mut a, &SessionId::of([1; 32])),
        Err(Error::Peer { fault: Fault::Misbehaved, .. })
    ));
    assert!(matches!(there.join().unwrap(), Err(Error::Peer { fault: Fault::Misbehaved, .. })));

    let (mut a, mut b) = Channel::pair();
    b.tx.send_bytes(CONFIRMATION, &[1; 31]).unwrap();
    assert!(matches!(
        confirm(&mut a, &SessionId::of([1; 32])),
        Err(Error::Peer { fault: Fault::Misbehaved, .. })
    ));
}
