//! Small sets of other parties.

use super::super::policy::Rules;
use super::tests::peer;
use super::*;
use crate::item::ItemSet;
use crate::operations::{COUNT, ID, INTERSECT, SHARE, SUM, UNION};
use crate::protocols::{self, Choice};
use crate::session::{Parties, Party};
use crate::testing;

/// For all operations, roles and terms: a small set of the peer is refused exactly when the peer learns something about our
/// rows.
#[test]
fn a_small_set_is_refused_where_our_rows_show() {
    let set: ItemSet = ["a"].iter().collect();
    // (operation, role, both, whether the sender learns the count, whether our rows are exposed)
    let cases = [
        (&INTERSECT, Role::Sender, false, false, true),
        (&INTERSECT, Role::Receiver, false, false, false),
        (&INTERSECT, Role::Receiver, true, false, true),
        (&UNION, Role::Sender, false, false, true),
        (&UNION, Role::Receiver, false, false, false),
        (&UNION, Role::Receiver, false, true, true),
        (&UNION, Role::Receiver, true, false, true),
        (&COUNT, Role::Sender, false, false, true),
        (&COUNT, Role::Receiver, false, false, false),
        (&COUNT, Role::Receiver, true, false, true),
        (&SUM, Role::Sender, false, false, true),
        (&SUM, Role::Receiver, false, false, true),
        (&SHARE, Role::Sender, false, false, true),
        (&SHARE, Role::Receiver, false, false, false),
        (&ID, Role::Sender, false, false, true),
        (&ID, Role::Receiver, false, false, true),
    ];
    let asked = |(operation, role, both, told): (&'static Operation, _, _, _),
                 size,
                 padded,
                 rules: Rules,
                 allow_small| {
        let request = Request::new(operation, role, &set);
        let mut hello = request.hello(false);
        (hello.spec.terms.both, hello.spec.terms.reveal_count) = (both, told);
        let party = Party { fingerprint: Some(peer()), ..testing::peer(size, padded) };
        let proposal = testing::proposal(hello, 1, party);
        let policy = Policy::new(rules, "p.toml", &[(Seat::PEER, Some(peer()))], &|_| None).unwrap();
        let mut gate = Gate::new(&request, Setup { allow_small, ..Setup::new(&policy, &|_| ()) }).unwrap();
        gate.approve(&proposal).map_err(|e| e.to_string())
    };
    let floor = |said: std::result::Result<(), String>| match said {
        Ok(()) => false,
        Err(said) => {
            assert!(said.contains("fewer than 10 are refused") && said.contains("`allow_small`"), "{said}");
            assert!(said.contains("\"min-peer-size\""), "{said}");
            true
        }
    };
    let none = Rules::default;
    let least = |least| Rules { min_peer_size: Some(least), ..Rules::default() };
    for (operation, role, both, told, exposed) in cases {
        let case = (operation, role, both, told);
        for size in [0, 1, 9] {
            assert_eq!(
                floor(asked(case, size, false, none(), false)),
                exposed,
                "{operation} {role} {both} {size}"
            );
            assert_eq!(
                floor(asked(case, size, true, none(), false)),
                exposed,
                "{operation} {role} {both} {size}"
            );
            assert!(!floor(asked(case, size, false, none(), true)), "{operation} {role} {both} {size}");
            // A rule takes precedence in both directions, and also if nothing of ours is exposed.
            asked(case, size, false, least(0), false).unwrap();
            asked(case, size, true, least(0), false).unwrap();
            assert!(asked(case, size, true, least(1), true).unwrap_err().contains("by \"min-peer-size\""));
            assert!(asked(case, size, false, least(20), true).unwrap_err().contains("by \"min-peer-size\""));
        }
        assert!(!floor(asked(case, SMALL_SET, false, none(), false)));
        assert!(
            asked(case, SMALL_SET, false, least(20), false).unwrap_err().contains("by \"min-peer-size\"")
        );
    }
}

/// Only the leader learns the result.
#[test]
fn a_small_set_of_the_leader_is_refused_by_all_others() {
    let set: ItemSet = ["a"].iter().collect();
    let me = testing::parties(3);
    for (seat, sizes, refused) in
        [(1, [9, 50], Some("party 1")), (1, [50, 9], None), (2, [9, 50], Some("party 1")), (0, [9, 9], None)]
    {
        let role = Role::multiparty(seat == 0);
        let request = Request::new(&INTERSECT, role, &set).with(|r| r.spec.parties = Some(me[seat].clone()));
        let request = request
            .with(|r| r.spec.candidates = Choice::of(protocols::multiparty_for(&INTERSECT).unwrap()).into());
        let others: Vec<_> = me[seat]
            .others()
            .zip(sizes)
            .map(|(member, size)| Party {
                seat: member.seat(),
                fingerprint: Some(member.fingerprint()),
                ..testing::peer(size, false)
            })
            .collect();
        let (first, rest) = others.split_first().unwrap();
        let parties = Parties::of([first.clone()].into_iter().chain(rest.iter().cloned())).unwrap();
        let proposal = testing::proposal(request.hello(false), 1, parties);
        let policy = Policy::none();
        let said = Gate::new(&request, Setup::new(&policy, &|_| ())).unwrap().approve(&proposal);
        match refused {
            Some(who) => {
                let said = said.unwrap_err().to_string();
                assert!(said.starts_with(who) && said.contains("announces a set of 9"), "{said}");
            }
            None => said.unwrap(),
        }
    }
}
