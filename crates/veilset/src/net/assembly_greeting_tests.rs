use super::*;
use crate::channel::versions;

/// The final message that party `i` receives on this connection, on which it sends nothing.
fn heard(cast: &Cast, i: usize, mut silent: Connection) -> Option<Reason> {
    let ours = cast.me(i).own().number();
    silent.channel.join(Link { peer: NonZeroU8::MAX, ours, names: cast.roster().names() });
    silent.channel.departed(Instant::now() + Duration::from_secs(30)).and_then(|error| error.reason())
}

#[test]
fn a_party_that_does_not_say_its_list_delays_no_end_and_is_named() {
    // We are stopped, or the time is up, before the party's time to send its list has passed.
    let (cast, stopped) = (cast(2, None), AtomicBool::new(false));
    for cancels in [true, false] {
        let (ours, theirs) = thread::scope(|scope| {
            let party = scope.spawn(|| {
                let cancelled = || stopped.load(Ordering::Relaxed);
                // The greeting itself would wait for longer than its other end listens.
                let [connect, idle] = [if cancels { 60 } else { 2 }, 100].map(Duration::from_secs);
                let timeouts = Timeouts { connect, idle };
                error(cast.play_with(0, timeouts, None, &cancelled, &Notices::default()))
            });
            let mut silent = cast.call_silently(1, 0).unwrap();
            versions(&mut silent.channel).unwrap();
            stopped.store(cancels, Ordering::Relaxed);
            let theirs = heard(&cast, 1, silent);
            (party.join().unwrap(), theirs)
        });
        stopped.store(false, Ordering::Relaxed);
        let expected = match cancels {
            true => (Error::Cancelled, Reason::Cancelled),
            false => {
                let said = ours.to_string();
                let words = "party 2 (east) connected, but sent no list within 2 seconds";
                assert!(said.contains(words), "{said}");
                assert!(!said.contains("did not connect"), "{said}");
                (ours.clone(), Reason::Network)
            }
        };
        assert_eq!((ours, theirs), (expected.0, Some(expected.1)));
    }
}

#[test]
fn a_connection_that_is_not_needed_ends_when_all_are_here() {
    // By the list, party 2 connects to party 1. It also listens for party 3.
    let cast = cast(3, None);
    thread::scope(|scope| {
        let play = |i| {
            let cast = &cast;
            scope.spawn(move || talk(cast, i, cast.play(i, seconds(60)).unwrap()))
        };
        let second = play(1);
        let silent = cast.call_silently(0, 1).unwrap();
        let others = [0, 2].map(play);
        let meshes = others.into_iter().chain([second]).map(|party| party.join().unwrap());
        let meshes: Vec<_> = meshes.collect();
        assert_eq!(heard(&cast, 0, silent), Some(Reason::Cancelled));
        meshes.into_iter().for_each(|mesh| drop(scope.spawn(move || mesh.finish(Ok(())).unwrap())));
    });
}

#[test]
fn who_is_to_be_greeted_when_all_is_over_is_not() {
    let (mut here, mut there) = Channel::pair();
    let meeting = Meeting::default();
    let (second, third) = (seat(2).number().unwrap(), seat(3).number().unwrap());
    meeting.begin_greeting(second, &here);
    assert!(meeting.greets(second) && !meeting.greets(third));
    assert!(meeting.end_greeting());
    assert!(!meeting.greets(second));
    // A greeting that has ended no longer belongs to the meeting.
    meeting.end(&Error::network("missing"), None);
    assert_eq!(here.alive(), Ok(()));
    meeting.begin_greeting(second, &here);
    assert!(!meeting.end_greeting());
    assert!(here.alive().is_err());
    assert!(there.rx.recv(NUMBERS, 1).is_err() && here.rx.recv(NUMBERS, 1).is_err());
}
