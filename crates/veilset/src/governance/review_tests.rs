use super::*;
use crate::governance::gate::{Gate, Setup};
use crate::governance::policy::Policy;
use crate::hash::SessionId;
use crate::item::ItemSet;
use crate::operations::{COUNT, INTERSECT, Role, SUM};
use crate::protocols::{CWPRF, DC17};
use crate::session::run::Request;
use crate::session::{Approval, Party};
use crate::testing::{self, hello};

fn us() -> Option<Fingerprint> {
    Some(Fingerprint::of_public_key(b"us"))
}

fn peer(name: &[u8], size: usize, padded: bool) -> Party {
    Party { fingerprint: Some(Fingerprint::of_public_key(name)), ..testing::peer(size, padded) }
}

fn columns() -> Columns {
    Columns { key: vec!["mail".into()], values: None }
}

fn proposed() -> Proposal {
    testing::proposal(hello(&COUNT, Role::Receiver), 12, peer(b"them", 50, false))
}

#[test]
fn a_run_like_its_check_is_permitted() {
    let review = Review::of(
        us(),
        columns(),
        &Proposal { hello: crate::session::Hello { check: true, ..proposed().hello }, ..proposed() },
    );
    let name = Path::new("c.json");
    review.permits(name, us(), &proposed()).unwrap();
    // The session is a different one, and a resumed job is the one that was checked.
    let mut other = Proposal { session_id: SessionId::of([9; 32]), ..proposed() };
    other.hello.job = Some(SessionId::of([8; 32]));
    review.permits(name, us(), &other).unwrap();
    assert_eq!(review.choice().unwrap(), proposed().choice);
}

#[test]
fn everything_that_differs_from_the_check_is_refused_and_named() {
    let name = Path::new("c.json");
    let review = Review::of(us(), columns(), &proposed());
    let refused = |our: Option<Fingerprint>, proposal: &Proposal, parts: &[&str]| match review
        .permits(name, our, proposal)
    {
        Err(Error::Refused(said)) => {
            for part in parts.iter().chain(&["c.json", "check it again", &review.time]) {
                assert!(said.contains(part), "{said}: {part}");
            }
        }
        other => panic!("{parts:?}: {other:?}"),
    };
    refused(None, &proposed(), &["our identity: none, in the check "]);
    let with = |party: Party| testing::proposal(hello(&COUNT, Role::Receiver), 12, party);
    refused(us(), &with(peer(b"others", 50, false)), &["the peer's identity"]);
    refused(us(), &with(peer(b"them", 51, false)), &["the size of the peer's set: 51, in the check 50"]);
    refused(
        us(),
        &with(peer(b"them", 50, true)),
        &["the size of the peer's set: at most 50, in the check 50"],
    );
    let larger = testing::proposal(hello(&COUNT, Role::Receiver), 13, peer(b"them", 50, false));
    refused(us(), &larger, &["the size of our set: 13, in the check 12"]);
    refused(
        us(),
        &Proposal { choice: Choice::of(&DC17), ..proposed() },
        &["`protocol`: dc17, in the check "],
    );
    // All terms in the list of the agreement.
    let mut seen = Vec::new();
    let sum = testing::proposal(hello(&SUM, Role::Receiver), 12, peer(b"them", 50, false));
    let review = Review::of(us(), columns(), &sum);
    let refused = |our, proposal: &Proposal, part: &str| match review.permits(name, our, proposal) {
        Err(Error::Refused(said)) => assert!(said.contains(part), "{said}: {part}"),
        other => panic!("{part}: {other:?}"),
    };
    for (key, hello) in testing::changed_terms(&sum.hello) {
        let changed = Proposal { hello, ..sum.clone() };
        let term = changed.terms().into_iter().find(|term| term.key == key).unwrap();
        match key {
            "purpose" => review.permits(name, us(), &changed).unwrap(),
            // Resuming makes no difference, but the shards do.
            "job" => refused(us(), &changed, "`shards`: 2, in the check 0"),
            _ => refused(
                us(),
                &changed,
                &format!("{}: {}, in the check ", crate::spelling::plain(term.words), term.value),
            ),
        }
        seen.push(key);
    }
    for term in sum.hello.terms() {
        assert!(seen.contains(&term.key), "{} was not changed", term.key);
    }
}

#[test]
fn a_file_comes_back_as_it_was_written_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.json");
    let review = Review::of(us(), columns(), &proposed());
    let line = review.to_line().unwrap() + "\n";
    std::fs::write(&path, &line).unwrap();
    assert_eq!(Review::load(&path).unwrap(), review);
    let unusable = |why: &str| match Review::load(&path) {
        Err(Error::Usage(said)) => assert!(said.contains("c.json") && said.contains(why), "{said}"),
        other => panic!("{other:?}"),
    };
    for bit in 0..8 * (line.len() - 1) {
        let mut bytes = line.clone().into_bytes();
        bytes[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&path, bytes).unwrap();
        unusable("damaged");
    }
    for text in ["", "{}", "null", &line[..line.len() / 2], &"x".repeat(1 << 21)] {
        std::fs::write(&path, text).unwrap();
        unusable("damaged");
    }
    // A file of another format.
    let other = Review { veilset_check: 2, ..review };
    std::fs::write(&path, other.to_line().unwrap()).unwrap();
    unusable("damaged, or was not written by a check of this version");
    std::fs::remove_file(&path).unwrap();
    unusable("No such file");
}

#[test]
fn a_gate_holds_a_run_to_its_check() {
    let set: ItemSet = (0..12).map(|i| i.to_string()).collect();
    let request = Request::new(&COUNT, Role::Receiver, &set);
    let (policy, name) = (Policy::none(), Path::new("c.json"));
    let asked = |review: &Review| {
        let setup = Setup { checked: Some((review, name)), ..Setup::new(&policy, &|_| ()) };
        Gate::new(&request, setup).unwrap().approve(&proposed())
    };
    asked(&Review::of(None, columns(), &proposed())).unwrap();
    let other = testing::proposal(hello(&INTERSECT, Role::Receiver), 12, peer(b"them", 50, false));
    let said = asked(&Review::of(None, columns(), &other)).unwrap_err().to_string();
    assert!(said.contains("operation: count, in the check intersect"), "{said}");
    let said = asked(&Review::of(None, columns(), &Proposal { choice: Choice::of(&CWPRF), ..proposed() }));
    assert_eq!(said.is_ok(), proposed().choice == Choice::of(&CWPRF));
}

#[test]
fn other_columns_of_ours_are_refused_and_named() {
    let review = Review::of(us(), columns(), &proposed());
    let name = Path::new("c.json");
    review.permits_columns(name, &columns()).unwrap();
    let key = |all: &[&str]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
    for (other, said) in [
        (Columns { key: key(&["number"]), values: None }, "our key: number, in the check mail"),
        (Columns { key: key(&["mail", "name"]), values: None }, "our key: mail, name, in the check mail"),
        (
            Columns { key: key(&["mail"]), values: Some("cost".into()) },
            "our key: mail with the values cost, in the check mail",
        ),
    ] {
        let refused = review.permits_columns(name, &other).unwrap_err();
        assert!(matches!(&refused, Error::Refused(text) if text.contains(said)), "{refused}");
    }
}
