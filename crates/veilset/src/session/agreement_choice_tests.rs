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

/// The session is that of the choice that was made, which need not be the first that both allow.
#[test]
fn the_id_binds_the_choice() {
    let [us, peer] = connections();
    let protocols: [&'static Protocol; 2] = [&CWPRF, &DH_PSI];
    let hellos = [Role::Receiver, Role::Sender].map(|role| among(role, &protocols));
    let ours = Announced { size: 3, padded: false };
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut receiver = Handshake::new(peer.into(), &hellos[0].spec).unwrap();
            receiver.meet(hellos[0].clone(), ours, &mut Prng::from_seed(&[1; 32])).unwrap();
            let choose = |_, channel: &mut Channel| {
                exchange_sizes(channel, 3)?;
                channel.tx.send(Message::<u64>::new(5, "choice"), &[1])
            };
            receiver.mesh.each(choose).unwrap();
        });
        let mut sender = Handshake::new(us.into(), &hellos[1].spec).unwrap();
        let rng = &mut Prng::from_seed(&[2; 32]);
        let (met, mut proposal) = sender.meet(hellos[1].clone(), ours, rng).unwrap();
        sender.sized(&met, &mut proposal, &|_| Ok(()), None).unwrap();
        assert_eq!(proposal.choice, Choice::of(&DH_PSI));
        let mut id_of = |choice| {
            let mut proposal = Proposal { choice, ..proposal.clone() };
            sender.bind(&met, &mut proposal, 3);
            proposal.session_id
        };
        assert_eq!(id_of(Choice::of(&DH_PSI)), proposal.session_id);
        // Another protocol in the same group, and another group.
        assert_ne!(id_of(Choice::of(&CWPRF)), proposal.session_id);
        assert_ne!(id_of(Choice { protocol: &DH_PSI, group: "another" }), proposal.session_id);
    });
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
