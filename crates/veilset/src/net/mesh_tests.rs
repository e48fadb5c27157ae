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
    mesh.with(seat(from), |link| Ok(link.channel.rx.recv(NUMBERS, 1)?[0]))
}

/// Tells one party that we give up because of another, and leaves the others alone.
fn accuse(mesh: &Mesh, to: u8, error: &Error, whom: u8) {
    let link = mesh.links().iter().find(|link| link.seat == seat(to)).unwrap();
    link.channel.stopper().give_up(error, NonZeroU8::new(whom));
}

/// The meshes of four parties.
fn four() -> [Mesh; 4] {
    Mesh::in_memory(4).try_into().map_err(|_| "four").unwrap()
}

/// Keeps its mesh until the sender is dropped, so that a party stays while the others go on.
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
    for n in [0, Roster::MOST, 300] {
        assert_eq!(Mesh::in_memory(n).len(), n.min(Roster::MOST));
    }
    for n in [1, 2, 3, 8] {
        let meshes = Mesh::in_memory(n);
        let heard: Vec<_> = thread::scope(|scope| {
            let party = |mut mesh: Mesh| {
                let ours = mesh.ours().number().unwrap().get().into();
                let heard = mesh.each(|link| {
                    link.channel.tx.send(NUMBERS, &[ours])?;
                    let theirs = link.channel.rx.recv(NUMBERS, 1)?[0];
                    assert_eq!(link.seat, seat(theirs as u8));
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
    let [mut one, two, mut three, mut four] = four();
    // Party 2 accuses party 3, which is alive.
    accuse(&two, 1, &network(), 3);
    let _stays = stays(two);
    let error = hear(&mut one, 2).unwrap_err();
    assert_eq!((error.fault(), error.seat()), (Some(Fault::GaveUp), Some(seat(2))), "{error}");
    let words = "party 2: it gave up because it has no connection with party 3, it says";
    assert!(error.to_string().starts_with(words), "{error}");
    // The others learn that this is hearsay.
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
    let [mut one, two, three, _four] = four();
    accuse(&two, 1, &network(), 3);
    accuse(&three, 1, &network(), 2);
    let error = hear(&mut one, 2).unwrap_err().to_string();
    assert!(error.starts_with("party 2: ") && error.contains("no connection with party 3"), "{error}");
    // Nor does who accuses itself, us or nobody lead us astray.
    for whom in [0, 1, 2, 9] {
        let [mut one, two, ..] = four();
        accuse(&two, 1, &network(), whom);
        assert_eq!(hear(&mut one, 2).unwrap_err().seat(), Some(seat(2)));
    }
}

#[test]
fn a_party_that_misbehaves_is_named_to_the_others() {
    // By the channel, by a protocol that knows no seats, and by one that does.
    for case in 0..3 {
        let [mut one, mut two, mut three, four] = four();
        let _stays = stays(four);
        two.with(seat(1), |link| link.channel.tx.send(NUMBERS, &[1, 2])).unwrap();
        let error = one.with(seat(2), |link| match case {
            0 => link.channel.rx.recv(NUMBERS, 1).map(drop),
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
        let error = one.each(|link| link.channel.rx.recv(NUMBERS, 1)).unwrap_err();
        [error, two.join().unwrap(), four.join().unwrap()]
    });
    for error in errors {
        assert!(error.to_string().contains("party 3 closed the connection"), "{error}");
    }
}

#[test]
fn of_two_steps_that_fail_what_we_see_is_said_and_not_what_we_hear() {
    let [mut one, two, three, four] = four();
    let _stays = stays(four);
    accuse(&two, 1, &network(), 3);
    let error = thread::scope(|scope| {
        scope.spawn(move || {
            thread::sleep(GRACE / 5);
            drop(three);
        });
        one.each(|link| link.channel.rx.recv(NUMBERS, 1)).unwrap_err()
    });
    assert!(error.to_string().contains("party 3 closed the connection"), "{error}");
    // If the party accused stays, the accusation is all there is.
    let [mut one, two, three, four] = self::four();
    let _stay = [three, four].map(stays);
    accuse(&two, 1, &network(), 3);
    let error = one.each(|link| link.channel.rx.recv(NUMBERS, 1)).unwrap_err().to_string();
    assert!(
        error.starts_with("party 2: ") && error.contains("no connection with party 3, it says"),
        "{error}"
    );
}

#[test]
fn the_last_words_are_found_behind_frames_that_nobody_read() {
    let [mut one, mut two, three, _four] = four();
    two.with(seat(1), |link| link.channel.tx.send(NUMBERS, &[1, 2, 3])).unwrap();
    accuse(&two, 1, &network(), 3);
    drop(three);
    let error = one.with(seat(2), |link| {
        loop {
            link.channel.tx.send(NUMBERS, &[1])?;
        }
    });
    let error = error.map(|never: std::convert::Infallible| never).unwrap_err();
    assert!(error.to_string().contains("party 3 closed the connection"), "{error}");
}

#[test]
fn a_panic_in_a_step_stops_everybody() {
    let [mut one, mut two, three, four] = four();
    let _stay = [three, four].map(stays);
    let error = one.each(|link| match link.seat == seat(4) {
        true => panic!("mine"),
        false => link.channel.rx.recv(NUMBERS, 1),
    });
    assert_eq!(error, Err(Error::Bug("a step with another party panicked: mine".into())));
    let told = hear(&mut two, 1).unwrap_err();
    assert!(told.to_string().contains("a defect in its program"), "{told}");
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
        one.each(|link| link.channel.rx.recv(NUMBERS, 1)).unwrap_err()
    });
    assert_eq!(error, Error::Cancelled);
    let told = hear(&mut two, 1).unwrap_err();
    assert!(told.to_string().starts_with("party 1: it was stopped on request"), "{told}");
}

#[test]
fn a_mesh_is_of_connections_ordered_by_seat() {
    let links = || four().into_iter().nth(1).unwrap().links;
    assert!(Mesh::new(seat(2), links()).is_ok());
    let mut turned = links();
    turned.swap(0, 1);
    let mut twice = links();
    twice[0].seat = seat(3);
    let mut unnumbered = links();
    unnumbered[0].seat = Seat::PEER;
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
