use super::super::Listener;
use super::super::tests::{identity, seconds, tls};
use super::*;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;
use veilset_testing::free_address;

/// The outcome of one attempt at each of these addresses, as if one host had them all, within this number of seconds.
fn tried(addresses: &[SocketAddr], security: &Protection, within: u64) -> Result<(bool, Vec<String>)> {
    let watch = Watch::new(seconds(within), &|| false, &|_| ());
    let keys = security.keys(None).unwrap();
    let caller = Caller::new(Way::direct("host.example:7000"), keys.as_ref(), &watch).unwrap();
    Ok(caller.try_all(addresses)?.map_or_else(|tried| (false, tried.causes), |_| (true, Vec::new())))
}

#[test]
fn every_address_of_a_host_has_its_share_of_the_time() {
    let [ours, theirs, other] = [identity(), identity(), identity()];
    let security = tls(&ours, &theirs);
    // A silent address, an unused one, and a stranger's.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = free_address().parse().unwrap();
    let silent = silent.local_addr().map(|at| (silent, at)).unwrap();
    let serve = |by: &std::sync::Arc<super::super::Identity>| {
        let listener = Listener::bind("127.0.0.1:0").unwrap();
        let (at, security) = (listener.local_addr(), tls(by, &ours));
        (at, thread::spawn(move || listener.accept(&security, seconds(20), &|| false, &|_| ())))
    };
    let (stranger, _) = serve(&other);
    let (peer, accepted) = serve(&theirs);
    let begun = Instant::now();
    // A third of six seconds goes to the silent one, and then the peer is reached.
    assert_eq!(tried(&[silent.1, nobody, peer], &security, 6).unwrap(), (true, Vec::new()));
    assert!(begun.elapsed() >= Duration::from_secs(1) && begun.elapsed() < Duration::from_secs(5));
    accepted.join().unwrap().unwrap();
    // Each address that was tried is named.
    let (found, causes) = tried(&[silent.1, nobody], &security, 2).unwrap();
    assert!(!found && causes.len() == 2, "{causes:?}");
    assert!(
        causes[0].contains(&silent.1.to_string()) && causes[1].contains(&nobody.to_string()),
        "{causes:?}"
    );
    // A stranger at one address does not keep us from the peer at another. If no address leads to the peer, the stranger is
    // reported.
    let (peer, accepted) = serve(&theirs);
    assert!(tried(&[stranger, peer], &security, 10).unwrap().0);
    accepted.join().unwrap().unwrap();
    let (stranger, _) = serve(&other);
    let e = tried(&[stranger, nobody], &security, 10).unwrap_err();
    assert!(e.to_string().contains(&other.fingerprint().to_string()), "{e}");
}

#[test]
fn a_call_that_nobody_answers_ends_when_we_are_to_stop() {
    let begun = Arc::new(AtomicBool::new(false));
    let stopped = || begun.load(Ordering::Relaxed);
    let watch = Watch::new(seconds(60), &stopped, &|_| ());
    let caller = Caller::new(Way::direct("host.example:7000"), None, &watch).unwrap();
    let (answer, answered) = mpsc::channel::<()>();
    let begins = begun.clone();
    let silence = move || {
        begins.store(true, Ordering::Relaxed);
        answered.recv_timeout(Duration::from_secs(10)).is_ok()
    };
    assert_eq!(caller.wait(silence), Err(Error::Cancelled));
    drop(answer);
    begun.store(false, Ordering::Relaxed);
    assert_eq!(caller.wait(|| 7), Ok(7));
    let panicked: Result<()> = caller.wait(|| panic!("no answer"));
    assert!(matches!(panicked, Err(Error::Bug(_))), "{panicked:?}");
}
