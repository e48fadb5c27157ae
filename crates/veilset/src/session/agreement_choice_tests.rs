//! Which of the protocols that both allow is chosen.

use super::*;

fn among(role: Role, protocols: &[&'static Protocol]) -> Hello {
    let candidates: Vec<_> = protocols.iter().map(|protocol| Choice::of(protocol)).collect();
    let mut hello = hello(role);
    (hello.spec.operation, hello.spec.candidates) = (&INTERSECT, testing::choices(&candidates));
    hello
}

#[test]
fn the_receivers_favourite_among_what_both_allow_is_chosen() {
    // What the receiver and the sender allow, what is chosen, and whether a message says so.
    let cases: [(&[&'static Protocol], &[&'static Protocol], &'static Protocol, bool); 5] = [
        (&[&CWPRF], &[&CWPRF], &CWPRF, false),
        (&[&CM20, &CWPRF, &VOLE], &[&VOLE, &CWPRF], &CWPRF, true),
        (&[&VOLE, &CWPRF], &[&CWPRF, &VOLE], &VOLE, true),
        (&[&CM20, &CWPRF], &[&CWPRF, &VOLE], &CWPRF, false),
        (&[&DH_PSI], &[&VOLE, &DH_PSI, &CWPRF], &DH_PSI, false),
    ];
    for (receiver, sender, chosen, said) in cases {
        let mut ends = connections();
        let seen = tags_after_hello(&mut ends);
        let hellos = (among(Role::Receiver, receiver), among(Role::Sender, sender));
        let [a, b] = both(&hellos.0, &hellos.1, [1, 2], ends).map(Result::unwrap);
        assert_eq!(
            (a.choice, b.choice, a.session_id),
            (Choice::of(chosen), Choice::of(chosen), b.session_id)
        );
        assert_eq!(tags(&seen[1]).contains(&5), said, "{chosen}");
        assert!(!tags(&seen[0]).contains(&5), "the sender chooses nothing");
    }
}

#[test]
fn nothing_in_common_ends_the_run_before_any_size() {
    let mut ends = connections();
    let seen = tags_after_hello(&mut ends);
    let (receiver, sender) =
        (among(Role::Receiver, &[&CM20, &VOLE]), among(Role::Sender, &[&CWPRF, &DH_PSI]));
    let differences = both(&receiver, &sender, [1, 2], ends).map(Result::unwrap_err);
    let (ours, theirs) = ("cm20, vole", "dh, dh-psi");
    for (e, (ours, theirs)) in differences.into_iter().zip([(ours, theirs), (theirs, ours)]) {
        let (ours, theirs) = (ours.into(), theirs.into());
        let expected =
            Difference::new(Seat::PEER, "protocol", crate::spelling::PROTOCOL.marked(), ours, theirs);
        assert_eq!(e, Error::Disagreement(vec![expected]));
    }
    assert_eq!(seen.each_ref().map(tags), [[1, 2], [1, 2]]);
}

#[test]
fn a_choice_that_was_not_offered_is_refused() {
    let common = [Choice::of(&CWPRF), Choice::of(&VOLE)];
    for (index, good) in [(0, true), (1, true), (2, false), (u64::MAX, false)] {
        let got = with_frames(&[(5, &index.to_le_bytes())], |cx| {
            super::super::super::choosing::receive(cx.ch, &testing::choices(&common))
        });
        match got {
            Ok(choice) => assert!(good && choice == common[index as usize]),
            Err(e) => assert!(!good && matches!(e, Error::Peer { fault: Fault::Misbehaved, .. }), "{e:?}"),
        }
    }
}
