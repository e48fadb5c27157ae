use super::*;

fn room(most: usize, seed: u8) -> Room<&'static str> {
    Room::new(most, Prng::from_seed(&[seed; 32]))
}

fn at(text: &str) -> SocketAddr {
    format!("{text}:7000").parse().unwrap()
}

#[test]
fn no_more_are_in_the_room_than_it_holds() {
    let mut room = room(HANDSHAKES, 1);
    let mut left = 0;
    for i in 0..1000 {
        let (_, displaced) = room.enter(at(&format!("192.0.2.{}", i % 200)), "");
        left += usize::from(displaced.is_some());
        assert!(room.comers.len() <= HANDSHAKES);
    }
    assert_eq!(left, 1000 - HANDSHAKES);
    let (id, _) = room.enter(at("192.0.2.1"), "last");
    assert_eq!(room.leave(id), Some((at("192.0.2.1"), "last")));
    assert_eq!(room.leave(id), None, "no id comes twice");
}

#[test]
fn a_flood_from_one_host_displaces_nobody_from_another_one() {
    // (the flood's addresses by number, the peer's)
    type Address = fn(u32) -> String;
    let cases: [(Address, &str); 4] = [
        (|_| "192.0.2.1".into(), "192.0.2.2"),
        // IPv4 addresses as seen by a listener on an IPv6 socket.
        (|_| "[::ffff:192.0.2.1]".into(), "[::ffff:192.0.2.2]"),
        // One host has all addresses of a /64.
        (|i| format!("[2001:db8::{i:x}]"), "[2001:db8:0:1::1]"),
        (|i| format!("192.0.2.{}", 1 + i % 2), "192.0.2.3"),
    ];
    for (flood, peer) in cases {
        let mut room = room(8, 1);
        let (id, _) = room.enter(at(peer), "peer");
        for i in 0..500 {
            room.enter(at(&flood(i)), "flood");
        }
        assert_eq!(room.leave(id), Some((at(peer), "peer")));
    }
}

#[test]
fn a_flood_from_the_peers_own_host_leaves_it_a_chance() {
    // The room is full. The peer connects, and so do 200 more before its handshake ends.
    let mut through = 0;
    for trial in 0..100 {
        let mut room = room(HANDSHAKES, trial);
        let flood = |room: &mut Room<&'static str>, n| {
            for _ in 0..n {
                room.enter(at("192.0.2.1"), "flood");
            }
        };
        flood(&mut room, HANDSHAKES);
        let (id, _) = room.enter(at("192.0.2.1"), "peer");
        flood(&mut room, 200);
        through += usize::from(room.leave(id).is_some());
    }
    // (1 - 1/128)^200 is 21%.
    assert!((10..35).contains(&through), "{through} of 100");
}
