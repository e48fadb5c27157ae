use super::*;
use crate::error::Error;
use crate::rng::Prng;
use crate::testing::{ANY_SESSION, Views, every_bit_is_random, parts, run_pair};
use std::collections::HashSet;

/// Random shares of these bits, for S and for R.
pub(crate) fn shares(bits: &[bool], seed: u8) -> [Secrets<bool>; 2] {
    let mut rng = Prng::from_seed(&[seed; 32]);
    let ours: Vec<bool> = bits.iter().map(|_| rng.below(2) == 1).collect();
    let theirs: Vec<bool> = bits.iter().zip(&ours).map(|(bit, ours)| bit ^ ours).collect();
    [Secrets::from(ours), Secrets::from(theirs)]
}

/// Row v_0 or v_1 of keyword i.
fn row(i: usize, which: usize, width: usize) -> Vec<u8> {
    (0..width).map(|at| (i * 7 + at * 3) as u8 ^ if which == 1 { 0x5a } else { 0 }).collect()
}

/// The rows that R gets for keywords of which those that `is_member` marks are in X, and the views of both parties.
fn run(
    protocol: &(impl MembershipOt + Sync),
    is_member: &[bool],
    width: usize,
    row: impl Fn(usize, usize, usize) -> Vec<u8> + Sync,
) -> (Vec<Vec<u8>>, Views) {
    let [s, r] = shares(is_member, 9);
    let ((got, ()), views) = run_pair(
        &ANY_SESSION,
        |cx| {
            let mut got = Vec::new();
            protocol.receiver(cx, r, width, |row| got.push(row.to_vec()))?;
            Ok(got)
        },
        |cx| {
            protocol.sender(cx, s, width, |i, v_0, v_1| {
                v_0.copy_from_slice(&row(i, 0, width));
                v_1.copy_from_slice(&row(i, 1, width));
            })
        },
    );
    (got, views)
}

/// Checks that R gets v_0 of the keywords in X and v_1 of the others. Every protocol must pass it.
fn is_a_membership_ot(protocol: &(impl MembershipOt + Sync), frame: usize) {
    for (n, width) in [(0, 8), (1, 1), (40, 33), (frame - 1, 16), (frame + 1, 16), (3, 70_000)] {
        for part in [1, 2, 3] {
            // All, every other one, and two of three.
            let is_member: Vec<bool> = (0..n).map(|i| part == 1 || i % part != 0).collect();
            let (got, _) = run(protocol, &is_member, width, row);
            let expected: Vec<_> =
                is_member.iter().enumerate().map(|(i, is)| row(i, usize::from(!is), width)).collect();
            assert!(got == expected, "{n} {width} {part}");
        }
    }
}

#[test]
fn the_ideal_functionality_is_one() {
    is_a_membership_ot(&Ideal, 60);
}

#[test]
fn it_is_a_membership_ot() {
    is_a_membership_ot(&FromOt::default(), FRAME);
}

/// With keywords and a set, as in Figure 2: the polarity of Figure 2, not of Figure 3.
#[test]
fn keywords_in_the_set_get_the_first_row() {
    let set: HashSet<&str> = ["bob", "cleo"].into();
    let is_member = ["ann", "bob", "cleo", "dan"].map(|keyword| set.contains(keyword));
    let (got, _) = run(&FromOt::default(), &is_member, 1, |_, which, _| vec![which as u8]);
    assert_eq!(got, [[1], [0], [0], [1]]);
}

#[test]
fn bytes_are_as_counted() {
    for (n, width, k) in [(0, 5, 6), (1, 64, 6), (300, 64, 8), (FRAME + 1, 17, 2), (9, 70_000, 6)] {
        let protocol = FromOt { k };
        let (_, views) = run(&protocol, &vec![true; n], width, row);
        assert_eq!((views.0[1].len(), views.0[0].len()), protocol.traffic(n, width), "{n} {width} {k}");
    }
}

#[test]
fn rows_of_no_bytes_are_refused() {
    let (mut ch, _peer) = crate::channel::Channel::pair();
    let mut rng = Prng::from_seed(&[1; 32]);
    let mut cx = Context::new(&mut ch, &ANY_SESSION, &mut rng);
    let (of_r, of_s) = (
        FromOt::default().receiver(&mut cx, Secrets::zeros(1), 0, |_| ()),
        FromOt::default().sender(&mut cx, Secrets::zeros(1), 0, |_, _, _| ()),
    );
    assert!(matches!((of_r, of_s), (Err(Error::Bug(_)), Err(Error::Bug(_)))));
    assert_eq!(cx.ch.bytes_sent(), 0);
}

/// With rows of zeros, the messages to R are random and equally long, whether the keywords are in X or not.
#[test]
fn both_rows_are_random_to_the_receiver() {
    let zeros = |_: usize, _: usize, width: usize| vec![0; width];
    let views = [true, false].map(|is| run(&FromOt::default(), &[is; 600], 16, zeros).1);
    for view in &views {
        let rows = parts(&view.0[0], 0x37, 16);
        assert_eq!(rows.len(), 1200);
        rows.chunks(600).for_each(|half| every_bit_is_random(half, 128));
        assert_eq!(rows.iter().collect::<HashSet<_>>().len(), 1200);
    }
    assert_eq!(views[0].frames(0), views[1].frames(0));
}

/// The row that R does not get appears neither in the messages to R nor in its output.
#[test]
fn of_each_pair_one_row_arrives_and_not_the_other() {
    let is_member: Vec<bool> = (0..300).map(|i| i % 3 == 0).collect();
    let distinct = |i: usize, which: usize, _: usize| {
        let mut row = vec![0xa5; 20];
        row[..8]
            .copy_from_slice(&((2 * i + which + 1) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
        row
    };
    let (got, views) = run(&FromOt::default(), &is_member, 20, distinct);
    for (i, is) in is_member.iter().enumerate() {
        let other = distinct(i, usize::from(*is), 20);
        assert!(!got.contains(&other));
        assert!(views.0[0].windows(8).all(|bytes| *bytes != other[..8]), "{i}");
    }
}

/// R's choices are its shares. For all choices, the messages to S are random and equally long.
#[test]
fn what_the_sender_sees_does_not_depend_on_the_receivers_shares() {
    let view = |share: bool| {
        let rows = |_: usize, v_0: &mut [u8], v_1: &mut [u8]| (v_0[0], v_1[0]) = (1, 2);
        let (_, views) = run_pair(
            &ANY_SESSION,
            |cx| FromOt::default().receiver(cx, Secrets::from(vec![share; 2000]), 4, |_| ()),
            |cx| FromOt::default().sender(cx, Secrets::zeros(2000), 4, rows),
        );
        views
    };
    let views = [view(false), view(true)];
    for view in &views {
        every_bit_is_random(&parts(&view.0[1], 0x34, 16), 128);
    }
    assert_eq!(views[0].frames(1), views[1].frames(1));
}
