use super::*;
use crate::channel::Channel;
use crate::channel::Sink;
use crate::error::Fault;
use crate::hash::SessionId;
use crate::item::ItemSet;
use crate::membership::Ideal;
use crate::operations::Confirmed;
use crate::rng::Prng;
use crate::testing::{Views, overlapping, parts, run_pair};
use std::collections::HashSet;

const SESSION: SessionId = SessionId::of([6; 32]);
const MODULI: [Modulus; 2] = [Modulus::Bits64, Modulus::Bits128];

fn run_with(modulus: Modulus, y: &ItemSet, x: &ItemSet, values: &[i128], seed: u8) -> (Option<Sum>, Views) {
    let terms = Terms { modulus, ..Terms::default() };
    let (y, x) = (HashedSet::new(y), HashedSet::new(x));
    let rng = |role: u8| Prng::from_seed(&[2 * seed + role; 32]);
    let ((_, sum), views) = run_pair(
        &SESSION,
        |cx| receiver(&Ideal, cx.under(rng(0)), &y, x.len(), &terms)?.open(Confirmed::for_tests()),
        |cx| sender(&Ideal, cx.under(rng(1)), &x, values, y.len(), &terms)?.open(Confirmed::for_tests()),
    );
    (sum, views)
}

/// If a mask were short, constant or reused, differences of values would show. Here all values are equal.
#[test]
fn what_travels_for_each_row_is_uniform_modulo_q() {
    let (y, x) = overlapping(200, 200, 0.5);
    for (modulus, tag) in MODULI.into_iter().zip([0x51, 0x52]) {
        let size = modulus.bits() as usize / 8;
        let [first, second] = [1, 2].map(|seed| run_with(modulus, &y, &x, &[5; 200], seed).1);
        let all = [parts(&first.0[0], tag, size), parts(&second.0[0], tag, size)].concat();
        // At each four-byte position, two of 400 parts are equal with probability 2e-5.
        for at in (0..size).step_by(4) {
            let words: HashSet<&[u8]> = all.iter().map(|d| &d[at..at + 4]).collect();
            assert_eq!(words.len(), 400, "{modulus:?}, byte {at}");
        }
    }
}

#[test]
fn the_receiver_sends_on_a_sum_that_it_cannot_read() {
    let (y, x) = overlapping(20, 20, 0.5);
    for modulus in MODULI {
        let results = [1, 2].map(|seed| {
            let (sum, views) = run_with(modulus, &y, &x, &[5; 20], seed);
            assert_eq!(sum, Some(Sum { matches: 10, sum: 50 }));
            let [result] = parts(&views.0[1], 0x53, 25).try_into().unwrap();
            assert!(result[9..17] != 50u64.to_le_bytes());
            // Bits above the modulus could reveal to S which masks R has added up.
            assert!(modulus == Modulus::Bits128 || result[17..] == [0; 8]);
            result
        });
        for at in (9..9 + modulus.bits() as usize / 8).step_by(4) {
            assert_ne!(results[0][at..at + 4], results[1][at..at + 4], "{modulus:?}, byte {at}");
        }
    }
}

/// Sends this result instead of the receiver's.
struct Instead {
    sink: Box<dyn Sink>,
    result: Vec<u8>,
}

impl Sink for Instead {
    fn send(&mut self, mut frame: Vec<u8>) -> Result<()> {
        if frame[0] == 0x53 {
            frame[6..].copy_from_slice(&self.result);
        }
        self.sink.send(frame)
    }
}

#[test]
fn results_that_are_not_possible_are_refused() {
    let (y, x) = overlapping(9, 5, 0.6);
    let result = |told: u8, matches: u64, masked: u128| {
        [&[told][..], &matches.to_le_bytes(), &masked.to_le_bytes()].concat()
    };
    let ends = |min_count, result: Vec<u8>| {
        let terms = Terms { min_count, ..Terms::default() };
        let (y, x) = (HashedSet::new(&y), HashedSet::new(&x));
        let result = &result;
        run_pair(
            &SESSION,
            |cx| {
                let (sink, source) = std::mem::replace(cx.ch, Channel::pair().0).into_halves();
                let instead = Instead { sink, result: result.clone() };
                *cx.ch = Channel::from_halves(Box::new(instead), source);
                receiver(&Ideal, cx, &y, 5, &terms).map(|_| ())
            },
            |cx| Ok(sender(&Ideal, cx, &x, &[1; 5], 9, &terms).map(|_| ())),
        )
        .0
        .1
    };
    // Whether the sum is possible is checked later.
    for (min_count, result, good) in [
        (0, result(1, 0, 1), true),
        (2, result(1, 2, 1), true),
        (2, result(1, 5, 1), true),
        (2, result(0, 0, 0), true),
        (0, result(0, 0, 0), false),
        (2, result(1, 1, 1), false),
        (2, result(1, 6, 1), false),
        (2, result(2, 3, 1), false),
        (2, result(0, 1, 0), false),
        (2, result(0, 0, 1), false),
        (2, result(1, 3, 1 << 64), false),
    ] {
        let end = ends(min_count, result.clone());
        assert_eq!(end.is_ok(), good, "{min_count} {result:?}");
        assert!(good || matches!(end, Err(Error::Peer { fault: Fault::Misbehaved, .. })), "{end:?}");
    }
}
