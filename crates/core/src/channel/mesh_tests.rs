use super::*;
use crate::channel::Message;
use std::sync::mpsc::Sender;

const NUMBERS: Message<u64> = Message::new(100, "numbers");

fn seat(number: u8) -> Seat {
    Seat::numbered(NonZeroU8::new(number).unwrap())
}

fn network() -> Error {
    Error::Network("gone".into())
}

/// Receives a number from this party.
fn hear(mesh: &mut Mesh, from: u8) -> Result<u64> {
    mesh.with(seat(from), |ch| Ok(ch.rx.recv(NUMBERS, 1)?[0]))
}

/// Gives up on one party because of another, and leaves the rest alone.
fn accuse(mesh: &mut Mesh, to: u8, error: &Error, whom: u8) {
    mesh.channel(seat(to)).unwrap().stopper().give_up(error, NonZeroU8::new(whom));
}

/// The meshes of four parties.
fn four() -> [Mesh; 4] {
    Mesh::in_memory(4).try_into().map_err(|_| "four").unwrap()
}

/// Keeps the mesh open until the sender is dropped, so that a party stays while the others go on.
fn stays(mesh: Mesh) -> Sender<()> {
    let (until, dropped) = mpsc::channel();
    thread::spawn(move || {
        let _ = dropped.recv();
        drop(mesh);
    });
    until
}

#[test]
fn everybody_is_connected_to_everybody_else() {
    for n in [0, Mesh::MOST, 300] {
        assert_eq!(Mesh::in_memory(n).len(), n.min(Mesh::MOST));
    }
    for n in [1, 2, 3, 8] {
        let meshes = Mesh::in_memory(n);
        let heard: Vec<_> = thread::scope(|scope| {
            let party = |mut mesh: Mesh| {
                let ours = mesh.ours().number().unwrap().get().into();
                let heard = mesh.each(|peer, ch| {
                    ch.tx.send(NUMBERS, &[ours])?;
                    let theirs = ch.rx.recv(NUMBERS, 1)?[0];
                    assert_eq!(peer, seat(theirs as u8));
                    Ok(theirs)
                });
                (ours, mesh.finish(heard).unwrap())
            };
            let parties: Vec<_> = meshes.into_iter().map(|mesh| scope.spawn(move || party(mesh))).collect();
            parties.into_iter().map(|party| party.join().unwrap()).collect()
        });
        for ((ours, heard), number) in heard.iter().zip(1..) {
            assert_eq!(*ours, number);
            let others: Vec<u64> = (1..=heard.len() as u64 + 1).filter(|other| other != ours).collect();
            assert_eq!(*heard, others);
        }
    }
}

/// Party 2 waits for party 3, party 1 for party 2, and party 4 for party 1.
fn chain(meshes: [Mesh; 3]) -> [Error; 3] {
    thread::scope(|scope| {
        let party = |(mut mesh, from): (Mesh, u8)| {
            scope.spawn(move || {
                let heard = hear(&mut mesh, from);
                mesh.finish(heard).unwrap_err()
            })
        };
        let [one, two, four] = meshes;
        [(one, 2), (two, 3), (four, 1)].map(party).map(|party| party.join().unwrap())
    })
}

#[test]
fn who_leaves_without_a_word_is_named_by_everybody() {
    let [one, two, three, four] = four();
    drop(three);
    for error in chain([one, two, four]) {
        assert!(matches!(error, Error::Network(_)), "{error:?}");
        assert!(error.to_string().contains("party 3 closed the connection"), "{error}");
    }
}

#[test]
fn who_gives_up_is_named_by_everybody_with_its_reason() {
    let reasons = [
        (Error::Output("x".into()), "it gave up because it could not write its result or log"),
        (Error::Cancelled, "it was stopped on request"),
        (Error::input("a.csv", "x", "y"), "it gave up because of its input or options"),
    ];
    for (reason, words) in reasons {
        let [one, two, three, four] = four();
        assert_eq!(three.finish(Err::<(), _>(reason.clone())), Err(reason));
        for error in chain([one, two, four]) {
            assert_eq!((error.fault(), error.seat()), (Some(Fault::GaveUp), Some(seat(3))), "{error}");
            assert!(error.to_string().starts_with(&format!("party 3: {words}")), "{error}");
        }
    }
}

#[test]
fn an_error_of_our_own_stops_everybody_and_accuses_nobody() {
    let [mut one, mut two, ..] = four();
    let error = one.with(seat(3), |_| Err::<(), _>(Error::Output("disk full".into()))).unwrap_err();
    assert_eq!(error, Error::Output("disk full".into()));
    let told = hear(&mut two, 1).unwrap_err();
    assert!(told.to_string().starts_with("party 1: it gave up because it could not write"), "{told}");
    assert!(!told.to_string().contains("it says"), "{told}");
    let unknown = two.with(seat(2), |_| Ok(())).unwrap_err();
    assert!(matches!(unknown, Error::Bug(_)), "{unknown:?}");
}

#[test]
fn an_accusation_is_repeated_as_one() {
    let [mut one, mut two, mut three, mut four] = four();
    // Party 2 accuses party 3, which is alive.
    accuse(&mut two, 1, &network(), 3);
    let _stays = stays(two);
    let error = hear(&mut one, 2).unwrap_err();
    assert_eq!((error.fault(), error.seat()), (Some(Fault::GaveUp), Some(seat(2))), "{error}");
    let words = "party 2: it gave up because it has no connection with party 3, it says";
    assert!(error.to_string().starts_with(words), "{error}");
    // The others learn that this is an accusation.
    let told = hear(&mut three, 1).unwrap_err();
    assert!(
        told.to_string().starts_with("party 1: it gave up because it was told of a problem with us"),
        "{told}"
    );
    let _three = stays(three);
    let told = hear(&mut four, 1).unwrap_err();
    let words = "party 1: it gave up because it was told of a problem with party 3, it says";
    assert!(told.to_string().starts_with(words), "{told}");
}

#[test]
fn two_that_accuse_each_other_are_both_named() {
    let [mut one, mut two, mut three, _four] = four();
    accuse(&mut two, 1, &network(), 3);
    accuse(&mut three, 1, &network(), 2);
    let error = hear(&mut one, 2).unwrap_err().to_string();
    assert!(error.starts_with("party 2: ") && error.contains("no connection with party 3"), "{error}");
    // An accusation of itself, of us or of a seat without a party does not mislead us.
    for whom in [0, 1, 2, 9] {
        let [mut one, mut two, ..] = four();
        accuse(&mut two, 1, &network(), whom);
        assert_eq!(hear(&mut one, 2).unwrap_err().seat(), Some(seat(2)));
    }
}

#[test]
fn a_party_that_misbehaves_is_named_to_the_others() {
    // Detected by the channel, by a protocol without seats, and by one with seats.
    for case in 0..3 {
        let [mut one, mut two, mut three, four] = four();
        let _stays = stays(four);
        two.with(seat(1), |ch| ch.tx.send(NUMBERS, &[1, 2])).unwrap();
        let error = one.with(seat(2), |ch| match case {
            0 => ch.rx.recv(NUMBERS, 1).map(drop),
            1 => Err(Error::misbehaves("wrong")),
            _ => Err(Error::misbehaves("wrong").by(seat(2))),
        });
        let error = error.unwrap_err();
        assert_eq!((error.fault(), error.seat()), (Some(Fault::Misbehaved), Some(seat(2))), "{error}");
        let told = hear(&mut two, 1).unwrap_err();
        assert!(
            told.to_string().starts_with("party 1: it gave up because it found our messages wrong"),
            "{told}"
        );
        let _two = stays(two);
        let told = hear(&mut three, 1).unwrap_err();
        let words = "party 1: it gave up because it found the messages of party 2 wrong, it says";
        assert!(told.to_string().starts_with(words), "{told}");
    }
}

#[test]
fn one_step_that_fails_stops_those_with_all_others() {
    let [mut one, mut two, three, mut four] = four();
    drop(three);
    let errors = thread::scope(|scope| {
        let [two, four] = [&mut two, &mut four].map(|mesh| scope.spawn(move || hear(mesh, 1).unwrap_err()));
        // The others send nothing and wait for us.
        let error = one.each(|_, ch| ch.rx.recv(NUMBERS, 1)).unwrap_err();
        [error, two.join().unwrap(), four.join().unwrap()]
    });
    for error in errors {
        assert!(error.to_string().contains("party 3 closed the connection"), "{error}");
    }
}

#[test]
fn of_two_steps_that_fail_what_we_see_is_said_and_not_what_we_hear() {
    let [mut one, mut two, three, four] = four();
    let _stays = stays(four);
    accuse(&mut two, 1, &network(), 3);
    let error = thread::scope(|scope| {
        scope.spawn(move || {
            thread::sleep(GRACE / 5);
            drop(three);
        });
        one.each(|_, ch| ch.rx.recv(NUMBERS, 1)).unwrap_err()
    });
    assert!(error.to_string().contains("party 3 closed the connection"), "{error}");
    // If the accused stays, the accusation is the only information.
    let [mut one, mut two, three, four] = self::four();
    let _stay = [three, four].map(stays);
    accuse(&mut two, 1, &network(), 3);
    let error = one.each(|_, ch| ch.rx.recv(NUMBERS, 1)).unwrap_err().to_string();
    assert!(
        error.starts_with("party 2: ") && error.contains("no connection with party 3, it says"),
        "{error}"
    );
}

#[test]
fn the_last_words_are_found_behind_frames_that_nobody_read() {
    let [mut one, mut two, three, _four] = four();
    two.with(seat(1), |ch| ch.tx.send(NUMBERS, &[1, 2, 3])).unwrap();
    accuse(&mut two, 1, &network(), 3);
    drop(three);
    let error = one.with(seat(2), |ch| {
        loop {
            ch.tx.send(NUMBERS, &[1])?;
        }
    });
    let error = error.map(|never: std::convert::Infallible| never).unwrap_err();
    assert!(error.to_string().contains("party 3 closed the connection"), "{error}");
}

#[test]
fn a_panic_in_a_step_stops_everybody() {
    let [mut one, mut two, three, four] = four();
    let _stay = [three, four].map(stays);
    let error = one.each(|peer, ch| match peer == seat(4) {
        true => panic!("mine"),
        false => ch.rx.recv(NUMBERS, 1),
    });
    assert_eq!(error, Err(Error::Bug("a step with another party panicked: mine".into())));
    let told = hear(&mut two, 1).unwrap_err();
    assert!(told.to_string().contains("a defect in its program"), "{told}");
}

#[test]
fn steps_with_some_have_their_inputs_and_their_order() {
    let [mut one, mut two, _three, mut four] = four();
    for (other, number) in [(&mut two, 2), (&mut four, 4)] {
        other.with(seat(1), |ch| ch.tx.send(NUMBERS, &[number])).unwrap();
    }
    let inputs = vec![(seat(4), 40), (seat(2), 20)];
    let heard = one.each_with(inputs, |peer, input, ch| Ok((peer, input, ch.rx.recv(NUMBERS, 1)?[0])));
    assert_eq!(heard.unwrap(), [(seat(4), 40, 4), (seat(2), 20, 2)]);
    let wrong = [
        (&[seat(1)][..], "to which there is no connection"),
        (&[seat(5)], "to which there is no connection"),
        (&[Seat::PEER], "to which there is no connection"),
        (&[seat(2), seat(3), seat(2)], "two steps with party 2 at once"),
    ];
    for (seats, words) in wrong {
        let inputs = seats.iter().map(|&seat| (seat, ())).collect();
        let refused = one.each_with(inputs, |_, (), _| Ok(())).unwrap_err();
        assert!(matches!(&refused, Error::Bug(what) if what.contains(words)), "{refused}");
    }
}

#[test]
fn a_step_that_fails_is_told_at_once_to_those_without_one() {
    let [mut one, mut two, three, mut four] = four();
    drop(three);
    let (tell, until) = mpsc::channel();
    let errors = thread::scope(|scope| {
        let steps = scope.spawn(|| {
            one.each_with(vec![(seat(2), Some(until)), (seat(3), None)], |_, until, ch| match until {
                // Ends only once party 4 was notified.
                Some(until) => {
                    until.recv_timeout(Duration::from_secs(30)).unwrap();
                    Ok(())
                }
                None => ch.rx.recv(NUMBERS, 1).map(drop),
            })
        });
        let told = hear(&mut four, 1).unwrap_err();
        tell.send(()).unwrap();
        [told, steps.join().unwrap().unwrap_err(), hear(&mut two, 1).unwrap_err()]
    });
    for error in errors {
        assert!(error.to_string().contains("party 3 closed the connection"), "{error}");
    }
}

/// The error of two steps of party 1: the step with party 2 waits for a number from the step with party 3, which fails
/// for this reason. The step with party 2 notices first.
fn failed_behind_a_queue(one: &mut Mesh, reason: impl FnOnce(&mut Channel) -> Error + Send) -> Error {
    let (put, take) = queue::queue::<u64>(1);
    let inputs = vec![(seat(2), (Some(take), None)), (seat(3), (None, Some((put, reason))))];
    let steps = one.each_with(inputs, |_, (take, put), ch| match (take, put) {
        (Some(take), _) => take.take(),
        (_, Some((put, reason))) => {
            drop(put);
            thread::sleep(GRACE / 5);
            Err(reason(ch))
        }
        _ => Ok(0),
    });
    steps.unwrap_err()
}

#[test]
fn a_queue_that_ended_does_not_hide_the_reason() {
    let [mut one, mut two, three, mut four] = four();
    let _stays = stays(three);
    let full = Error::Output("disk full".into());
    assert_eq!(failed_behind_a_queue(&mut one, |_| full.clone()), full);
    for other in [&mut two, &mut four] {
        let told = hear(other, 1).unwrap_err();
        assert!(told.to_string().starts_with("party 1: it gave up because it could not write"), "{told}");
    }
    // An accusation does not hide our own observation of the accused: party 2, accused by party 3.
    let [mut one, two, mut three, four] = self::four();
    accuse(&mut three, 1, &network(), 2);
    drop(two);
    let _stay = [three, four].map(stays);
    let error = failed_behind_a_queue(&mut one, |ch| ch.rx.recv(NUMBERS, 1).unwrap_err());
    assert!(error.to_string().contains("party 2 closed the connection"), "{error}");
    // Without a cause it is a bug.
    let [mut one, _two, _three, _four] = self::four();
    let error = failed_behind_a_queue(&mut one, |_| queue::consequence());
    assert!(matches!(&error, Error::Bug(what) if what.contains("ended before the other")), "{error}");
}

#[test]
fn what_passes_by_us_is_its_senders_fault_and_what_does_not_leave_us_the_receivers() {
    let pass = |mesh: &mut Mesh, from: u8, to: u8| {
        mesh.between(seat(from), seat(to), |rx, tx| tx.send(NUMBERS, &rx.recv(NUMBERS, 1)?))
    };
    let send = |mesh: &mut Mesh, to: u8, numbers: &[u64]| {
        mesh.with(seat(to), |ch| ch.tx.send(NUMBERS, numbers)).unwrap();
    };
    // From one party to another, and to the same one.
    let [mut one, mut two, mut three, mut four] = four();
    send(&mut two, 1, &[7]);
    pass(&mut one, 2, 3).unwrap();
    assert_eq!(hear(&mut three, 1), Ok(7));
    send(&mut two, 1, &[9]);
    pass(&mut one, 2, 2).unwrap();
    assert_eq!(hear(&mut two, 1), Ok(9));
    assert!(matches!(pass(&mut one, 2, 1), Err(Error::Bug(_))));
    // A wrong message, detected by the channel.
    send(&mut two, 1, &[1, 2]);
    let error = pass(&mut one, 2, 3).unwrap_err();
    assert_eq!((error.fault(), error.seat()), (Some(Fault::Misbehaved), Some(seat(2))), "{error}");
    let _stay = stays(two);
    for other in [&mut three, &mut four] {
        let told = hear(other, 1).unwrap_err();
        let words = "party 1: it gave up because it found the messages of party 2 wrong, it says";
        assert!(told.to_string().starts_with(words), "{told}");
    }
    // Detected by a protocol.
    let [mut one, two, three, four] = self::four();
    let _stay = [two, three, four].map(stays);
    let error = one.between(seat(2), seat(3), |_, _| Err::<(), _>(Error::misbehaves("wrong"))).unwrap_err();
    assert_eq!(error.seat(), Some(seat(2)));
    // Of the two parties, the one that left is at fault; all others are told.
    for gone in [2, 3] {
        let [mut one, two, three, mut four] = self::four();
        let [mut stayed, left] = if gone == 2 { [three, two] } else { [two, three] };
        if gone == 3 {
            send(&mut stayed, 1, &[7]);
        }
        drop(left);
        let error = pass(&mut one, 2, 3).unwrap_err();
        for error in [error, hear(&mut stayed, 1).unwrap_err(), hear(&mut four, 1).unwrap_err()] {
            assert!(error.to_string().contains(&format!("party {gone} closed the connection")), "{error}");
        }
    }
}

#[test]
fn a_run_can_be_stopped_from_outside() {
    let [mut one, mut two, three, four] = four();
    let _stay = [three, four].map(stays);
    let canceller = one.canceller();
    let error = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(50));
            canceller.cancel();
        });
        one.each(|_, ch| ch.rx.recv(NUMBERS, 1)).unwrap_err()
    });
    assert_eq!(error, Error::Cancelled);
    let told = hear(&mut two, 1).unwrap_err();
    assert!(told.to_string().starts_with("party 1: it was stopped on request"), "{told}");
}

#[test]
fn a_mesh_is_of_channels_ordered_by_seat() {
    let links = || four().into_iter().nth(1).unwrap().links;
    assert!(Mesh::new(seat(2), links()).is_ok());
    let mut turned = links();
    turned.swap(0, 1);
    let mut twice = links();
    twice[0].0 = seat(3);
    let mut unnumbered = links();
    unnumbered[0].0 = Seat::PEER;
    let wrong = [
        (seat(2), turned),
        (seat(2), twice),
        (seat(2), unnumbered),
        (seat(3), links()),
        (Seat::PEER, links()),
    ];
    for (ours, links) in wrong {
        assert!(matches!(Mesh::new(ours, links), Err(Error::Bug(_))));
    }
}
