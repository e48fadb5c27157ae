//! Properties of every VOLE, in both fields.

use super::*;
use crate::hash::SessionId;
use crate::testing::{Views, every_bit_is_random, run_pair};
use std::collections::HashSet;

/// The receiver's output.
pub(crate) struct Received<S: VoleScalar> {
    pub(crate) a: Secrets<S>,
    pub(crate) c: Secrets<Element>,
}

/// The sender's output.
pub(crate) struct SenderOutput {
    pub(crate) delta: Element,
    pub(crate) b: Secrets<Element>,
}

/// Generates the next elements, and keeps A.
pub(crate) fn received<S: VoleScalar>(
    receiver: &mut impl Receiver,
    cx: &mut Context,
    n: usize,
) -> Result<Received<S>> {
    let mut a = Secrets::zeros(0);
    let c = receiver.next(cx, n, |_, all| {
        a = all;
        Ok(())
    })?;
    Ok(Received { a, c })
}

/// Generates vectors of these lengths in sequence, with parties seeded as in [`run_pair`].
pub(crate) fn run_vole<S: VoleScalar>(
    protocol: &(impl Vole + Sync),
    session: &SessionId,
    purpose: &'static str,
    lengths: &[usize],
) -> (Vec<(Received<S>, SenderOutput)>, Views) {
    let ((all, sent), views) = run_pair(
        session,
        |cx| {
            let mut receiver = protocol.receiver(cx, purpose)?;
            lengths.iter().map(|&n| received(&mut receiver, cx, n)).collect::<Result<Vec<_>>>()
        },
        |cx| {
            let mut sender = protocol.sender(cx, purpose)?;
            let sent = |&n: &usize| Ok(SenderOutput { b: sender.next::<S>(cx, n)?, delta: *sender.delta() });
            lengths.iter().map(sent).collect::<Result<Vec<_>>>()
        },
    );
    (all.into_iter().zip(sent).collect(), views)
}

/// Asserts that the parties' vectors satisfy the definition of a VOLE, with random elements and a single Delta.
pub(crate) fn is_a_vole<S: VoleScalar>(protocol: &(impl Vole + Sync), lengths: &[usize]) -> Views {
    let (vectors, views) = run_vole::<S>(protocol, &SessionId::of([6; 32]), "a", lengths);
    let (mut all, mut scalars) = (HashSet::new(), HashSet::new());
    for ((received, sent), &n) in vectors.iter().zip(lengths) {
        assert_eq!((received.a.len(), received.c.len(), sent.b.len()), (n, n, n));
        let mut expected = sent.b.clone();
        S::add_multiple(&sent.delta, &received.a, &mut expected);
        assert_eq!(*received.c, *expected, "{n}");
        assert_eq!(sent.delta, vectors[0].1.delta);
        assert_ne!(sent.delta[..8], sent.delta[8..], "the lanes of Delta");
        let a: Vec<Vec<u8>> = received.a.iter().map(bytes).collect();
        if n >= 200 {
            [&received.c, &sent.b].iter().for_each(|list| {
                every_bit_is_random(list, 128);
                lanes_are_independent(list);
            });
            every_bit_is_random(&a, S::BITS);
        }
        scalars.extend(a);
        all.extend(received.c.iter().chain(sent.b.iter()).copied());
    }
    let n = lengths.iter().sum::<usize>();
    assert_eq!((scalars.len(), all.len()), (n, 2 * n), "elements that are equal");
    views
}

/// The bytes of a scalar.
pub(crate) fn bytes<S: VoleScalar>(a: &S) -> Vec<u8> {
    let mut bytes = Vec::new();
    a.put(&mut bytes);
    bytes
}

/// The sum of the lanes is as random as each lane.
fn lanes_are_independent(list: &[Element]) {
    let sum = |e: &Element| -> [u8; 8] { std::array::from_fn(|i| e[i] ^ e[8 + i]) };
    every_bit_is_random(&list.iter().map(sum).collect::<Vec<_>>(), 64);
}

#[test]
fn the_ideal_functionality_is_one() {
    for lengths in [&[0][..], &[1], &[100, 7], &[300]] {
        is_a_vole::<Element>(&Ideal, lengths);
        is_a_vole::<Half>(&Ideal, lengths);
    }
}
