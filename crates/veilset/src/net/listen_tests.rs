use super::*;
use crate::net::{Endpoint, Identity, establish};
use std::io::{Read, Write};
use std::thread;

/// Forwards what one socket receives to the other, until one of them ends.
fn hand_on(mut from: &TcpStream, mut to: &TcpStream) {
    let mut bytes = [0u8; 4096];
    while let Ok(n @ 1..) = from.read(&mut bytes)
        && to.write_all(&bytes[..n]).is_ok()
    {}
}

#[test]
fn a_flood_from_another_address_does_not_cut_off_a_peer_that_is_slow() {
    let (a, b) = (Arc::new(Identity::generate().unwrap()), Arc::new(Identity::generate().unwrap()));
    let timeouts = Timeouts { connect: Duration::from_secs(20), idle: Duration::from_secs(20) };
    // The peer connects through a relay that delays its answer to our first messages.
    let (ours, way) = (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let [at, by] = [&ours, &way].map(|listener| listener.local_addr().unwrap());
    let security = Protection::Tls { identity: b.clone(), peer: a.fingerprint() };
    let connecting = thread::spawn(move || {
        establish(&Endpoint::connect(by.to_string()), &security, timeouts, &|| false, &|_| ()).is_ok()
    });
    let peer = way.accept().unwrap().0;
    let onward = TcpStream::connect(at).unwrap();
    let mut hello = [0u8; 4096];
    let n = (&peer).read(&mut hello).unwrap();
    (&onward).write_all(&hello[..n]).unwrap();

    let keys = Keys::new(&a, b.fingerprint());
    let notices = std::cell::RefCell::new(Vec::new());
    let notice = |text: &str| notices.borrow_mut().push(text.to_owned());
    let watch = Watch::new(timeouts, &|| false, &notice);
    const MOST: usize = 4;
    let mut reception = Reception::new(&keys, &watch, at, MOST).unwrap();
    reception.receive(ours.accept().unwrap().0, "192.0.2.1:1".parse().unwrap());
    // Before its answer arrives, many strangers connect from elsewhere and send nothing.
    let strangers: Vec<TcpStream> = (0..50)
        .map(|_| {
            let stranger = TcpStream::connect(at).unwrap();
            reception.receive(ours.accept().unwrap().0, "192.0.2.2:2".parse().unwrap());
            stranger
        })
        .collect();
    thread::scope(|scope| {
        scope.spawn(|| hand_on(&peer, &onward));
        scope.spawn(|| hand_on(&onward, &peer));
        let secured = (0..1000).find_map(|_| reception.peer());
        let connected = secured.is_some() && connecting.join().unwrap();
        // Evicted connections see the end of the stream. Only as many as fit in addition to the peer are still in their
        // handshake.
        let open = |stranger: &&TcpStream| {
            stranger.set_nonblocking(true).unwrap();
            let read = (&mut &**stranger).read(&mut [0]);
            read.is_err_and(|e| e.kind() == ErrorKind::WouldBlock)
        };
        let open = strangers.iter().filter(open).count();
        for socket in [&peer, &onward] {
            socket.shutdown(Shutdown::Both).unwrap();
        }
        assert!(connected, "the peer was cut off");
        assert!(open < MOST, "{open}");
    });
    assert!(notices.borrow().iter().any(|n| n.contains("192.0.2.2:2") && n.contains("make room")));
    assert!(!notices.borrow().iter().any(|n| n.contains("192.0.2.1:1")));
}

#[test]
fn where_no_more_files_may_be_open_one_of_those_here_leaves() {
    let (a, b) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let ours = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = ours.local_addr().unwrap();
    let timeouts = Timeouts { connect: Duration::from_secs(20), idle: Duration::from_secs(20) };
    let keys = Keys::new(&a, b.fingerprint());
    let watch = Watch::new(timeouts, &|| false, &|_| ());
    let mut reception = Reception::new(&keys, &watch, at, HANDSHAKES).unwrap();
    let mut strangers = [(); 2].map(|()| {
        let stranger = TcpStream::connect(at).unwrap();
        reception.receive(ours.accept().unwrap().0, "192.0.2.1:1".parse().unwrap());
        stranger
    });
    for _ in 0..3 {
        reception.make_room();
    }
    // Both connections see the end of the stream long before their handshake would time out.
    for stranger in &mut strangers {
        stranger.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        assert_eq!(stranger.read(&mut [0]).unwrap(), 0);
    }
    for (code, too_many) in [(23, true), (24, true), (11, false)] {
        assert_eq!(too_many_files(&std::io::Error::from_raw_os_error(code)), too_many);
    }
}
