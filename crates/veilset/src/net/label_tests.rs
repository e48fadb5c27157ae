use super::*;
use crate::net::tests::{connect, failed, identity, listen, seconds, start, talk, tls};
use crate::net::{Connection, Endpoint, Protection};
use std::io::Read;
use std::net::TcpListener;
use std::thread::JoinHandle;
use veilset_testing::free_address;

#[test]
fn labels_are_names_of_lanes() {
    let forty = "a".repeat(40);
    for (lane, route, name) in [
        (0, "x", "s000.x.veilset"),
        (7, "trial-2", "s007.trial-2.veilset"),
        (999, "9", "s999.9.veilset"),
        (1000, "a-b", "s1000.a-b.veilset"),
        (u16::MAX, &forty, &format!("s65535.{forty}.veilset")),
    ] {
        let label = Label::new(lane, route).unwrap();
        assert_eq!((label.as_str(), label.to_string()), (name, name.to_string()));
        assert_eq!(name.parse::<Label>().unwrap(), label);
        assert!(rustls::pki_types::DnsName::try_from(name).is_ok());
    }
}

#[test]
fn what_is_no_word_of_a_route_is_refused() {
    let long = "a".repeat(41);
    for route in ["", "-", "-a", "a-", "A", "a b", "a.b", "a_b", "\u{e9}", "a\n", "\u{1b}[2J", &long] {
        let Err(Error::Usage(what)) = Label::new(0, route) else { panic!("{route:?}") };
        assert!(what.contains("1 to 40 lower-case letters") && !what.contains(['\n', '\u{1b}']), "{what}");
        assert!(format!("s000.{route}.veilset").parse::<Label>().is_err(), "{route:?}");
    }
}

#[test]
fn what_is_no_label_is_refused() {
    for text in [
        "",
        "veilset",
        "x.veilset",
        "000.x.veilset",
        "s.x.veilset",
        "s00.x.veilset",
        "s0007.x.veilset",
        "s+07.x.veilset",
        "s65536.x.veilset",
        "s000.veilset",
        "s000..veilset",
        "s000.x.y.veilset",
        "s000.x.veilset.",
        "S000.x.veilset",
        "s000.x.example.org",
    ] {
        let Err(Error::Usage(what)) = text.parse::<Label>() else { panic!("{text:?}") };
        assert!(what.contains("Write sNNN.ROUTE.veilset"), "{what}");
    }
}

#[test]
fn a_listener_minds_its_label_and_one_without_minds_labels_only() {
    let label = Label::new(0, "x").unwrap();
    for (name, by_label, by_none) in [
        (Some("s000.x.veilset"), true, false),
        (Some("s001.x.veilset"), false, false),
        (Some("s000.y.veilset"), false, false),
        (Some("example.org"), false, true),
        (None, false, true),
    ] {
        assert_eq!(Label::is_asked_for(Some(&label), name), by_label, "{name:?}");
        assert_eq!(Label::is_asked_for(None, name), by_none, "{name:?}");
    }
}

fn label(lane: u16) -> Option<Label> {
    Some(Label::new(lane, "x").unwrap())
}

fn to(address: &str, label: Option<Label>) -> Endpoint {
    Endpoint::Connect { address: address.into(), proxy: None, label }
}

#[test]
fn who_asks_for_another_label_is_turned_away_and_the_right_one_is_let_in() {
    let (a, b, other) = (identity(), identity(), identity());
    let address = free_address();
    let served = Endpoint::Listen { address: address.clone(), label: label(0) };
    let (here, told) = start(served, tls(&a, &b), seconds(60));
    told.wait_for("listening on", 1);
    let misled: Vec<(JoinHandle<Result<Connection>>, &str, &str)> = [
        (
            label(1),
            "it asks for \"s001.x.veilset\", but \"s000.x.veilset\" is served here",
            "serve \"s001.x.veilset\"",
        ),
        (
            None,
            "it asks for no label, but \"s000.x.veilset\" is served here",
            "serves only who asks for its label",
        ),
    ]
    .into_iter()
    .map(|(label, notice, words)| {
        // A misdirected connection does not expect the key of the listener, which does not show it.
        (start(to(&address, label), tls(&b, &other), seconds(1)).0, notice, words)
    })
    .collect();
    for (run, notice, words) in misled {
        let e = failed(run.join().unwrap());
        assert!(matches!(e, Error::Network(_)), "{e:?}");
        assert!(e.to_string().contains(words), "{e}");
        assert!(
            e.to_string().contains("without proof") && e.to_string().contains("where the proxy leads"),
            "{e}"
        );
        told.wait_for(notice, 1);
    }
    let (there, _) = start(to(&address, label(0)), tls(&b, &a), seconds(60));
    talk(here.join().unwrap().unwrap(), there.join().unwrap().unwrap());
}

#[test]
fn a_listener_without_a_label_turns_those_away_who_ask_for_one() {
    let (a, b) = (identity(), identity());
    let listening = listen(tls(&a, &b), seconds(1));
    let (there, notices) = start(to(&listening.address, label(1)), tls(&b, &a), seconds(1));
    let e = failed(listening.run.join().unwrap());
    let words = "it asks for \"s001.x.veilset\", but no label is served here";
    assert!(matches!(e, Error::Network(_)) && e.to_string().contains(words), "{e:?}");
    let e = failed(there.join().unwrap());
    // The listener may be gone before the time is up.
    assert!(e.to_string().contains("does not serve \"s001.x.veilset\""), "{e}");
    assert_eq!(notices.count("does not serve \"s001.x.veilset\""), 1);
}

#[test]
fn a_label_stands_in_the_first_message_and_takes_tls() {
    let (a, b) = (identity(), identity());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (run, _) = start(to(&address, label(12)), tls(&b, &a), seconds(1));
    let mut hello = [0; 2048];
    let n = listener.accept().unwrap().0.read(&mut hello).unwrap();
    let name = b"s012.x.veilset";
    assert!(hello[..n].windows(name.len()).any(|part| part == name));
    drop(listener);
    failed(run.join().unwrap());

    let address = String::from("127.0.0.1:0");
    for endpoint in [Endpoint::Listen { address, label: label(0) }, to("127.0.0.1:7", label(0))] {
        let e = failed(start(endpoint, Protection::InsecurePlaintext, seconds(1)).0.join().unwrap());
        assert!(matches!(e, Error::Usage(_)) && e.to_string().contains("`insecure_plaintext`"), "{e:?}");
    }
    // Two parties without a label connect as before.
    let listening = listen(tls(&a, &b), seconds(20));
    let there = connect(&listening.address, &tls(&b, &a), seconds(20)).unwrap();
    talk(listening.run.join().unwrap().unwrap(), there);
}

/// `scripts/proxy-test` runs the proxy, and sets the addresses of all parties in the environment.
#[test]
#[ignore = "needs HAProxy: scripts/proxy-test"]
fn behind_a_proxy_each_label_leads_to_its_worker() {
    let variable = |name: &str| std::env::var(name).unwrap();
    let (entrance, route) = (variable("ENTRANCE"), variable("ROUTE"));
    let label = |lane| Some(Label::new(lane, &route).unwrap());
    // The coordinator expects no name, and its connection stays open while workers connect.
    let places = [("COORDINATOR", None), ("WORKER0", label(0)), ("WORKER1", label(1))];
    let listeners = places.map(|(place, label)| {
        let (ours, theirs) = (identity(), identity());
        let endpoint = Endpoint::Listen { address: variable(place), label: label.clone() };
        let (run, notices) = start(endpoint, tls(&ours, &theirs), seconds(60));
        notices.wait_for("listening on", 1);
        (run, notices, label, ours, theirs)
    });
    // The label of an absent worker leads to the coordinator, which does not serve it.
    let (stranger, nobody) = (identity(), identity());
    let (run, _) = start(to(&entrance, label(2)), tls(&stranger, &nobody), seconds(2));
    let e = failed(run.join().unwrap());
    let words = format!("does not serve \"s002.{route}.veilset\"");
    assert!(matches!(e, Error::Network(_)) && e.to_string().contains(&words), "{e:?}");
    let words = format!("it asks for \"s002.{route}.veilset\", but no label is served here");
    listeners[0].1.wait_for(&words, 1);
    let connected = listeners.map(|(run, _, label, ours, theirs)| {
        let there = start(to(&entrance, label), tls(&theirs, &ours), seconds(60)).0;
        (run.join().unwrap().unwrap(), there.join().unwrap().unwrap())
    });
    connected.into_iter().for_each(|(here, there)| talk(here, there));
    // Once the coordinator has its connection, no listener is left to report that.
    let (run, _) = start(to(&entrance, label(2)), tls(&stranger, &nobody), seconds(2));
    let e = failed(run.join().unwrap()).to_string();
    assert!(e.contains(&format!("is \"s002.{route}.veilset\" served there?")), "{e}");
}
