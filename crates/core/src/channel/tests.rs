use super::*;
use crate::error::Fault;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

const NUMBERS: Message<u64> = Message::new(1, "numbers");
const BYTES: Message<[u8]> = Message::new(2, "bytes");

fn tcp_pair(timeouts: Timeouts) -> (Channel, Channel, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let a = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let b = listener.accept().unwrap().0;
    let raw = a.try_clone().unwrap();
    let channel = |s| over(ByteStream::plain(s, &WireCount::default()).unwrap(), timeouts).unwrap();
    (channel(a), channel(b), raw)
}

fn exchange(mut a: Channel, mut b: Channel) {
    let n = 300_000; // more than two pipes hold, so that a missing duplex would deadlock
    let run = |ch: &mut Channel, own: u64| {
        let ((), got) = ch
            .duplex(
                |tx| frames(n, 1000).try_for_each(|k| tx.send(NUMBERS, &vec![own; k])),
                |rx| {
                    let mut all = Vec::new();
                    for k in frames(n, 1000) {
                        all.extend(rx.recv(NUMBERS, k)?);
                    }
                    Ok(all)
                },
            )
            .unwrap();
        assert!(got.len() == n && got.iter().all(|&v| v == 3 - own));
        assert_eq!(ch.bytes_sent(), 300 * 8006);
        assert_eq!(ch.bytes_received(), 300 * 8006);
    };
    std::thread::scope(|s| {
        s.spawn(|| run(&mut a, 1));
        run(&mut b, 2);
    });
    a.close();
    b.close();
}

#[test]
fn both_directions_at_once_in_memory_and_over_a_socket() {
    let (a, b) = Channel::pair();
    exchange(a, b);
    let (a, b, _) = tcp_pair(Timeouts::default());
    exchange(a, b);
    let (a, b) = Channel::pair();
    let fast = Network { bandwidth: 1e10, round_trip: Duration::from_millis(2) };
    exchange(a.emulate(fast).unwrap(), b.emulate(fast).unwrap());
}

#[test]
fn a_wrong_frame_names_what_was_expected_and_what_came() {
    // (sent tag, sent length, part of the error message)
    let cases = [
        (2u16, 16usize, "message 0x2 of 16 bytes came"),
        (1, 8, "message 0x1 of 8 bytes came"),
        (1, 24, "message 0x1 of 24 bytes came"),
        (1, 0, "message 0x1 of 0 bytes came"),
    ];
    for (tag, len, words) in cases {
        let (mut a, mut b) = Channel::pair();
        a.tx.send_bytes(Message::new(tag, "forged"), &vec![0; len]).unwrap();
        let e = b.rx.recv(NUMBERS, 2).unwrap_err();
        assert!(matches!(e, Error::Peer { fault: Fault::Misbehaved, .. }), "{e:?}");
        assert!(e.to_string().contains(words), "{e}");
        assert!(e.to_string().contains("message 0x1 \"numbers\" of 16 bytes was expected"), "{e}");
    }
}

#[test]
fn a_bounded_frame_may_be_shorter_but_not_longer() {
    for (len, ok) in [(0, true), (5, true), (6, false)] {
        let (mut a, mut b) = Channel::pair();
        a.tx.send_bytes(BYTES, &vec![1; len]).unwrap();
        assert_eq!(b.rx.recv_bounded(BYTES, 5).is_ok(), ok);
    }
}

#[test]
fn a_length_of_four_gigabytes_allocates_nothing() {
    let (a, mut b) = Channel::pair();
    let (mut sink, _source) = a.into_halves();
    sink.send(header(1, u32::MAX as usize).unwrap().to_vec()).unwrap();
    assert!(matches!(b.rx.recv(NUMBERS, 1), Err(Error::Peer { fault: Fault::Misbehaved, .. })));
}

#[test]
fn a_peer_that_leaves_is_noticed_and_one_that_gives_up_is_quoted() {
    let (a, mut b) = Channel::pair();
    drop(a);
    assert!(matches!(b.rx.recv(NUMBERS, 1), Err(Error::Network(_))));

    let (a, mut b, _) = tcp_pair(Timeouts::default());
    a.abort(&Error::Output("disk full".into()));
    a.close();
    let e = b.rx.recv(NUMBERS, 1).unwrap_err();
    assert!(e.to_string().contains("could not write its result"), "{e}");
    assert!(!e.to_string().contains("disk full"));
}

#[test]
fn who_gives_up_is_not_blamed_whatever_the_reason() {
    let peers = Fault::ALL.iter().map(|&fault| Error::peer(fault, "wrong"));
    let others = [
        Error::input("a.csv", "wrong", "Mend it"),
        Error::Usage("wrong".into()),
        Error::Output("full".into()),
        Error::Refused("no".into()),
        Error::Disagreement(Vec::new()),
        Error::Network("gone".into()),
        Error::Cancelled,
        Error::Bug("wrong".into()),
    ];
    for error in peers.chain(others) {
        let (a, mut b) = Channel::pair();
        a.abort(&error);
        let told = b.rx.recv(NUMBERS, 1).unwrap_err();
        assert_eq!(told.fault(), Some(Fault::GaveUp), "{error:?}: {told}");
        assert!(told.to_string().starts_with("the peer: it "), "{told}");
    }
    // Unknown reasons of later versions are valid reasons. An abort of another length is not.
    for (body, fault) in [(&[0][..], Fault::GaveUp), (&[200], Fault::GaveUp), (&[], Fault::Misbehaved)] {
        let (mut a, mut b) = Channel::pair();
        a.tx.send_bytes(Message::new(ABORT, "forged"), body).unwrap();
        assert_eq!(b.rx.recv(NUMBERS, 1).unwrap_err().fault(), Some(fault), "{body:?}");
    }
}

#[test]
fn what_the_peer_said_before_it_left_is_found_behind_unread_frames() {
    let (mut a, mut b) = Channel::pair();
    a.tx.send(NUMBERS, &[1, 2]).unwrap();
    a.abort(&Error::Cancelled);
    a.close();
    let error = b.tx.send(NUMBERS, &[1]).unwrap_err();
    assert!(matches!(error, Error::Network(_)), "{error:?}");
    assert!(b.explain(error).to_string().contains("stopped on request"));
}

#[test]
fn a_silent_peer_is_given_up_but_a_living_one_is_not() {
    let timeouts = Timeouts { idle: Duration::from_secs(1), ..Timeouts::default() };
    // Alive: it sends nothing for longer than the time-out, but its heartbeats arrive.
    let (mut a, mut b, _) = tcp_pair(timeouts);
    let waiting = std::thread::spawn(move || b.rx.recv(NUMBERS, 1));
    std::thread::sleep(Duration::from_millis(2500));
    a.tx.send(NUMBERS, &[5]).unwrap();
    assert_eq!(waiting.join().unwrap().unwrap(), [5]);
    // Silent: an open socket that sends only half a header.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut mute = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    mute.write_all(&[1, 0, 8]).unwrap();
    let socket = listener.accept().unwrap().0;
    let mut c = over(ByteStream::plain(socket, &WireCount::default()).unwrap(), timeouts).unwrap();
    let e = c.rx.recv(NUMBERS, 1).unwrap_err();
    assert!(e.to_string().contains("`idle_timeout`"), "{e}");
    // Writing to it fails as well, although the channel never reads.
    let e = loop {
        if let Err(e) = c.tx.send(NUMBERS, &[0; 10_000]) {
            break e;
        }
    };
    assert!(matches!(e, Error::Network(_)));
}

#[test]
fn a_peer_that_does_not_get_on_is_given_up_after_the_patience_that_the_message_states() {
    // The peer sends nothing, half a header, or half a frame; or it reads nothing.
    for sent in [&[][..], &[1, 0, 8], &[1, 0, 8, 0, 0, 0, 5]] {
        let (a, mut b) = Channel::pair();
        b.set_patience(Duration::from_millis(500));
        let (mut sink, _source) = a.into_halves();
        sink.send(sent.to_vec()).unwrap();
        let e = b.rx.recv(NUMBERS, 1).unwrap_err();
        assert!(
            e.to_string()
                .contains("for 0.5 seconds (the limit here; as a rule it is ten times `idle_timeout`)"),
            "{e}"
        );
    }
    let (mut a, _b) = Channel::pair();
    a.set_patience(Duration::from_millis(500));
    let e = loop {
        if let Err(e) = a.tx.send(NUMBERS, &[0; 10_000]) {
            break e;
        }
    };
    assert!(
        e.to_string().contains("for 0.5 seconds (the limit here; as a rule it is ten times `idle_timeout`)"),
        "{e}"
    );
}

#[test]
fn over_a_socket_the_patience_is_ten_times_the_idle_time_out() {
    let (a, b, _) = tcp_pair(Timeouts { idle: Duration::from_secs(7), ..Timeouts::default() });
    for ch in [a, b] {
        assert_eq!(ch.rx.patience, Some(Duration::from_secs(70)));
    }
}

#[test]
fn a_peer_that_sends_single_bytes_does_not_multiply_our_memory() {
    let (mut a, _b) = Channel::pair();
    a.set_patience(Duration::from_millis(50));
    let (mut sink, _source) = a.into_halves();
    let chunks = (0..).take_while(|_| sink.send(vec![0]).is_ok()).count();
    assert!(chunks < pipe::CAPACITY / 50, "{chunks}");
}

/// A peer that sends this many heartbeats, a thousand a second, and then leaves.
struct Alive(usize);

impl Source for Alive {
    fn recv(&mut self, out: &mut [u8], _: Option<Instant>) -> Result<()> {
        std::thread::sleep(Duration::from_millis(1));
        self.0 = self.0.checked_sub(1).ok_or_else(|| Error::Network("it has left".into()))?;
        out.copy_from_slice(&header(HEARTBEAT, 0)?);
        Ok(())
    }
}

#[test]
fn a_peer_that_says_only_that_it_is_alive_is_given_up() {
    let (sink, _source) = Channel::pair().0.into_halves();
    let mut a = Channel::from_halves(sink, Box::new(Alive(5000)));
    a.set_patience(Duration::from_millis(100));
    let e = a.rx.recv(NUMBERS, 1).unwrap_err();
    assert!(e.to_string().contains("is alive but did nothing for the run for 0.1 seconds"), "{e}");
}

/// Sends heartbeats over the socket as fast as possible until sending fails.
fn flood(mut socket: TcpStream) -> std::thread::JoinHandle<()> {
    let heartbeats = header(HEARTBEAT, 0).unwrap().repeat(1000);
    std::thread::spawn(move || while socket.write_all(&heartbeats).is_ok() {})
}

/// A channel and the socket at its other end.
fn channel_and_socket() -> (Channel, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let far = ByteStream::plain(listener.accept().unwrap().0, &WireCount::default()).unwrap();
    (over(far, Timeouts::default()).unwrap(), socket)
}

#[test]
fn the_last_frame_arrives_although_bytes_of_the_peer_were_not_read() {
    let (mut a, mut socket) = channel_and_socket();
    let flooding = flood(socket.try_clone().unwrap());
    let closing = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        // More than the peer's system buffers while the peer does not read.
        a.tx.send(NUMBERS, &[7; 125_000]).unwrap();
        let start = Instant::now();
        a.close();
        start.elapsed()
    });
    std::thread::sleep(Duration::from_millis(800));
    let mut got = Vec::new();
    socket.read_to_end(&mut got).unwrap();
    assert!(got.ends_with(&[7, 0, 0, 0, 0, 0, 0, 0].repeat(125_000)), "{}", got.len());
    // The peer closes here, which ends the wait.
    socket.shutdown(std::net::Shutdown::Both).unwrap();
    assert!(closing.join().unwrap() < stream::CLOSE_WITHIN);
    flooding.join().unwrap();
}

#[test]
fn closing_ends_in_time_although_the_peer_does_not_close() {
    // The peer reads nothing, so our last frames cannot leave. It is silent, or it floods us.
    let close = |floods: bool| {
        let (mut a, socket) = channel_and_socket();
        let flooding = floods.then(|| flood(socket.try_clone().unwrap()));
        a.set_patience(Duration::from_millis(100));
        while a.tx.send(NUMBERS, &[7; 100_000]).is_ok() {}
        let start = Instant::now();
        a.close();
        assert!(start.elapsed() < stream::CLOSE_WITHIN + Duration::from_secs(1));
        // No thread of ours keeps running: the flood ends because its data is not read.
        flooding.into_iter().for_each(|f| f.join().unwrap());
        drop(socket);
    };
    std::thread::scope(|s| {
        s.spawn(|| close(false));
        close(true);
    });
}

#[test]
fn a_socket_is_closed_when_close_returns_even_if_the_peer_does_not_close() {
    let (a, mut socket) = channel_and_socket();
    a.close();
    // A write to a socket that is closed, and not only shut down, fails.
    let mut told = || {
        std::thread::sleep(Duration::from_millis(1));
        socket.write_all(&[0]).is_err()
    };
    assert!((0..50).any(|_| told()));
}

#[test]
fn two_that_close_at_about_the_same_time_wait_for_nothing() {
    let (a, b, _) = tcp_pair(Timeouts::default());
    let start = Instant::now();
    let there = std::thread::spawn(|| b.close());
    a.close();
    there.join().unwrap();
    assert!(start.elapsed() < stream::CLOSE_WITHIN / 3);
    // Nor does a party that gives up wait for a peer that is busy.
    let (a, _b, _) = tcp_pair(Timeouts::default());
    let start = Instant::now();
    a.abort(&Error::Cancelled);
    a.close();
    assert!(start.elapsed() < stream::CLOSE_WITHIN / 3);
}

#[test]
fn heartbeats_that_piled_up_while_we_were_busy_are_taken_and_a_flood_is_not() {
    let at_once = HEARTBEATS_AT_ONCE as usize;
    // A minute has 120 heartbeats; many can arrive at once after this machine slept.
    let cases = [(0, 100, true), (0, at_once, true), (60, at_once + 239, true), (60, at_once + 500, false)];
    for (busy, heartbeats, ok) in cases {
        let (a, mut b) = Channel::pair();
        b.rx.began = Instant::now().checked_sub(Duration::from_secs(busy)).unwrap();
        let (mut sink, _source) = a.into_halves();
        sink.send(header(HEARTBEAT, 0).unwrap().repeat(heartbeats)).unwrap();
        sink.send([&header(1, 8).unwrap()[..], &[5, 0, 0, 0, 0, 0, 0, 0]].concat()).unwrap();
        match b.rx.recv(NUMBERS, 1) {
            Ok(got) => assert!(ok && got == [5]),
            Err(e) => {
                assert!(
                    !ok && matches!(e, Error::Peer { fault: Fault::Misbehaved, .. })
                        && e.to_string().contains("heartbeats"),
                    "{e}"
                )
            }
        }
    }
    // A real peer: its heartbeats queue up while we compute for longer than the idle time-out.
    let timeouts = Timeouts { idle: Duration::from_secs(1), ..Timeouts::default() };
    let (mut a, mut b, _) = tcp_pair(timeouts);
    std::thread::sleep(Duration::from_millis(1600));
    a.tx.send(NUMBERS, &[5]).unwrap();
    assert_eq!(b.rx.recv(NUMBERS, 1).unwrap(), [5]);
    assert!(b.rx.heartbeats >= 2, "{}", b.rx.heartbeats);
    // A flood at the speed of the network ends long before the patience does.
    let (mut c, socket) = channel_and_socket();
    let flooding = flood(socket);
    let start = Instant::now();
    let e = c.rx.recv(NUMBERS, 1).unwrap_err();
    assert!(matches!(e, Error::Peer { fault: Fault::Misbehaved, .. }), "{e:?}");
    assert!(start.elapsed() < Duration::from_secs(10));
    drop(c);
    flooding.join().unwrap();
}

#[test]
fn cancelling_wakes_both_halves_and_tells_the_peer() {
    let (mut a, mut b) = Channel::pair();
    let canceller = a.canceller();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        canceller.cancel();
    });
    let e = a
        .duplex(
            |tx| loop {
                tx.send(NUMBERS, &[0; 10_000])?;
            },
            |rx| rx.recv(NUMBERS, 1),
        )
        .map(|(r, _): (std::convert::Infallible, _)| r)
        .unwrap_err();
    assert_eq!(e, Error::Cancelled);
    let e = loop {
        if let Err(e) = b.rx.recv(NUMBERS, 10_000) {
            break e;
        }
    };
    assert!(e.to_string().contains("stopped on request"), "{e}");
    // Consequences do not replace it: the end of the connection, and the abort of a peer that was notified.
    assert_eq!(a.explain(Error::Network("it left".into())), Error::Cancelled);
    assert_eq!(a.explain(Error::peer(Fault::GaveUp, "it was told")), Error::Cancelled);
    let wrong = Error::misbehaves("wrong");
    assert_eq!(a.explain(wrong.clone()), wrong);
    // The peer was not stopped itself.
    let (mut a, mut b) = Channel::pair();
    a.canceller().cancel();
    let told = b.rx.recv(NUMBERS, 1).unwrap_err();
    assert_eq!(b.explain(told.clone()), told);
    assert_eq!(a.explain(Error::Network("it left".into())), Error::Cancelled);
}

#[test]
fn who_is_stopped_says_so_though_the_peer_left_first() {
    let (mut a, b) = Channel::pair();
    drop(b);
    a.canceller().cancel();
    // The reason that ended the pipes first.
    let error = a.rx.recv(NUMBERS, 1).unwrap_err();
    assert!(matches!(error, Error::Network(_)), "{error:?}");
    assert_eq!(a.explain(error), Error::Cancelled);
}

#[test]
fn the_first_error_of_a_duplex_step_wins_and_stops_the_other_half() {
    let (mut a, _b) = Channel::pair();
    let e = a.duplex(|_| Err::<(), _>(Error::Bug("mine".into())), |rx| rx.recv(NUMBERS, 1)).unwrap_err();
    assert_eq!(e, Error::Bug("mine".into()));
    let (mut a, _b) = Channel::pair();
    let e = a
        .duplex(
            |tx| loop {
                tx.send(NUMBERS, &[0; 10_000])?;
            },
            |_| Err::<(), _>(Error::Bug("mine".into())),
        )
        .map(|(r, ()): (std::convert::Infallible, _)| r)
        .unwrap_err();
    assert_eq!(e, Error::Bug("mine".into()));
}

#[test]
fn a_panic_in_one_half_of_a_duplex_step_stops_the_other_and_the_peer_is_told() {
    for producer in [true, false] {
        let (mut a, mut b) = Channel::pair();
        let e = a
            .duplex(
                |tx| match producer {
                    true => panic!("mine, {}", 1),
                    false => loop {
                        tx.send(NUMBERS, &[0; 10_000])?;
                    },
                },
                |rx| match producer {
                    true => rx.recv(NUMBERS, 1),
                    false => panic!("mine, 1"),
                },
            )
            .map(|(r, _): (std::convert::Infallible, _)| r)
            .unwrap_err();
        assert_eq!(e, Error::Bug("half of a duplex step panicked: mine, 1".into()));
        let e = loop {
            if let Err(e) = b.rx.recv(NUMBERS, 10_000) {
                break e;
            }
        };
        assert!(e.to_string().contains("a defect in its program"), "{e}");
    }
}

#[test]
fn what_one_half_of_a_duplex_step_causes_in_the_other_does_not_hide_the_cause() {
    // As in a step whose halves are connected with a queue: the other half sees only that the queue has ended.
    let gone = || Error::Network("gone".into());
    let (mut a, _b) = Channel::pair();
    let (lock, seen) = std::sync::mpsc::channel::<()>();
    let e = a
        .duplex(
            |_| {
                drop(lock);
                std::thread::sleep(Duration::from_millis(100));
                Err::<(), _>(Error::Output("disk full".into()))
            },
            |_| seen.recv().map_err(|_| gone()),
        )
        .unwrap_err();
    assert_eq!(e, Error::Output("disk full".into()));
}

/// A peer that always has more bytes: frames of four gigabytes, a thousand reads a second.
struct Endless;

impl Source for Endless {
    fn recv(&mut self, out: &mut [u8], _: Option<Instant>) -> Result<()> {
        std::thread::sleep(Duration::from_millis(1));
        out.fill(0xff);
        Ok(())
    }
}

#[test]
fn a_frame_without_end_does_not_hold_up_who_looks_for_the_last_words() {
    let (sink, _source) = Channel::pair().0.into_halves();
    let mut b = Channel::from_halves(sink, Box::new(Endless));
    let start = Instant::now();
    let error = Error::Network("broken".into());
    assert_eq!(b.explain(error.clone()), error);
    assert!(start.elapsed() < stream::EXPLAIN_WITHIN + Duration::from_secs(1));
}

#[test]
fn a_recording_replays_what_was_received() {
    let recording = crate::testing::Shared::default();
    let (mut a, mut b) = Channel::pair();
    b.record(Recording::to_writer(recording.clone()));
    a.tx.send(NUMBERS, &[1, 2, 3]).unwrap();
    a.tx.send_bytes(BYTES, b"xyz").unwrap();
    let seen = (b.rx.recv(NUMBERS, 3).unwrap(), b.rx.recv_bytes(BYTES, 3).unwrap());
    drop(b);
    let mut alone = replay(std::io::Cursor::new(recording.bytes()));
    alone.tx.send(NUMBERS, &[9]).unwrap();
    assert_eq!((alone.rx.recv(NUMBERS, 3).unwrap(), alone.rx.recv_bytes(BYTES, 3).unwrap()), seen);
    assert!(alone.rx.recv(NUMBERS, 1).is_err());
}

#[test]
fn an_emulated_network_is_as_slow_as_it_says() {
    let (a, b) = Channel::pair();
    let slow = Network { bandwidth: 8e6, round_trip: Duration::from_millis(100) };
    let (mut a, mut b) = (a.emulate(slow).unwrap(), b.emulate(slow).unwrap());
    let start = Instant::now();
    a.tx.send(NUMBERS, &[0; 25_000]).unwrap(); // 200 kB at 1 MB/s
    b.rx.recv(NUMBERS, 25_000).unwrap();
    // A sleep is never too short, so this bound holds on a busy machine too.
    assert!(start.elapsed() >= Duration::from_millis(249));
    b.tx.send(NUMBERS, &[0]).unwrap();
    a.rx.recv(NUMBERS, 1).unwrap();
    assert!(start.elapsed() >= Duration::from_millis(299));
}

#[test]
fn an_emulated_network_hides_no_cause() {
    let (a, _b) = Channel::pair();
    let below = a.canceller();
    let mut a = a.emulate(Network::LAN).unwrap();
    below.cancel();
    let e = loop {
        if let Err(e) = a.tx.send(NUMBERS, &[0; 10_000]) {
            break e;
        }
    };
    assert_eq!(e, Error::Cancelled);
}

#[test]
fn networks_are_parsed() {
    assert_eq!("lan".parse(), Ok(Network::LAN));
    assert_eq!("wan".parse(), Ok(Network::WAN));
    let n: Network = "400Mbps,40ms".parse().unwrap();
    assert!((n.bandwidth - 4e8).abs() < 1.0 && n.round_trip == Duration::from_millis(40));
    for bad in [
        "",
        "fast",
        "400,40",
        "0Mbps,1ms",
        "-1Mbps,1ms",
        "1Mbps",
        "NaNMbps,1ms",
        "1Mbps,infs",
        "1e-9kbps,1ms",
        "1Mbps,1e9s",
    ] {
        assert!(bad.parse::<Network>().is_err(), "{bad}");
    }
}

#[test]
fn frames_cover_everything() {
    for (n, expected) in [(0, vec![]), (1, vec![1]), (3, vec![3]), (4, vec![3, 1]), (6, vec![3, 3])] {
        assert_eq!(frames(n, 3).collect::<Vec<_>>(), expected);
    }
}
