use super::*;
use crate::operations::{COUNT, ID, INTERSECT, SUM};
use crate::protocols::{CWPRF, DH_PSI, MPSI, VOLE};
use crate::session::{Parties, Party};
use crate::testing::{self, hello, party, proposal};

fn fingerprint(name: &str) -> Fingerprint {
    Fingerprint::of_public_key(name.as_bytes())
}

fn book(name: &str) -> Option<Fingerprint> {
    ["north", "south"].contains(&name).then(|| fingerprint(name))
}

fn policy(rules: Rules, peer: &str) -> Policy {
    for_peer(rules, book(peer)).unwrap()
}

/// The policy for a run of two.
fn for_peer(rules: Rules, peer: Option<Fingerprint>) -> Result<Policy> {
    Policy::new(rules, "p.toml", &[(Seat::PEER, peer)], &book)
}

/// The policy for a run with these parties; the first is party 2.
fn for_several(rules: Rules, parties: &Parties) -> Policy {
    let parties: Vec<_> = parties.iter().map(|party| (party.seat, party.fingerprint)).collect();
    Policy::new(rules, "p.toml", &parties, &book).unwrap()
}

/// Whether the policy was made for a run with these parties.
fn is_for(policy: &Policy, parties: &Parties) -> bool {
    policy.applied(&proposal(hello(&COUNT, Role::Receiver), 3, parties.clone())).is_some()
}

/// Judges the sizes of the parties that the policy was made for.
fn judged_sizes(policy: &Policy, proposal: &Proposal) -> Result<()> {
    policy.applied(proposal).unwrap().permits_their_sizes()
}

/// The receiver of a sum, with these changes.
fn spec(change: impl FnOnce(&mut Spec)) -> Spec {
    let mut spec = Spec::new(&SUM, Role::Receiver);
    spec.terms.min_count = 5;
    change(&mut spec);
    spec
}

/// The key of the rule that refuses, if any.
fn refused(result: Result<()>) -> Option<String> {
    let Err(Error::Refused(said)) = result else { return result.map(|()| None).unwrap() };
    assert!(said.contains("p.toml") && said.contains("Change the run"), "{said}");
    Some(said.split('"').nth(1).unwrap().into())
}

#[test]
fn each_rule_refuses_what_it_says_and_nothing_else() {
    let columns = ["a".to_string(), "b".to_string()];
    let sum = spec(|_| ());
    let sends = spec(|s| (s.role, s.sent_columns) = (Role::Sender, columns.to_vec()));
    let both = spec(|s| s.terms.both = true);
    let revealed = spec(|s| s.terms.reveal_count = true);
    let sender = spec(|s| s.role = Role::Sender);
    let count = spec(|s| s.operation = &COUNT);
    let rules = Rules::default();
    let only_count = Rules { operations: Some(vec![&COUNT]), ..rules.clone() };
    let only_sender = Rules { roles: Some(vec![Role::Sender]), ..rules.clone() };
    let minimum = |n| Rules { min_count: Some(n), ..rules.clone() };
    let may_send = |list: &[&str]| Rules {
        allowed_send_columns: Some(list.iter().map(|c| c.to_string()).collect()),
        ..rules.clone()
    };
    let not_both = Rules { both: Some(false), ..rules.clone() };
    // (rules, intent, the key that refuses)
    let cases = [
        (&rules, &sum, None),
        (&rules, &sends, None),
        (&rules, &both, None),
        (&rules, &revealed, None),
        (&only_count, &count, None),
        (&only_count, &sum, Some("operations")),
        (&only_sender, &sender, None),
        (&only_sender, &sum, Some("roles")),
        (&minimum(5), &sum, None),
        (&minimum(6), &sum, Some("min-count")),
        // For the sender and for other operations no minimum applies.
        (&minimum(6), &sender, None),
        (&minimum(6), &count, None),
        (&may_send(&["b", "a"]), &sends, None),
        (&may_send(&["a"]), &sends, Some("allowed-send-columns")),
        (&may_send(&[]), &sends, Some("allowed-send-columns")),
        (&may_send(&[]), &sum, None),
        (&not_both, &both, Some("both")),
        (&not_both, &revealed, Some("both")),
        (&not_both, &sum, None),
    ];
    for (rules, intent, key) in cases {
        let policy = policy(rules.clone(), "north");
        assert_eq!(refused(policy.permits(intent)).as_deref(), key, "{rules:?} {intent:?}");
    }
}

#[test]
fn sizes_are_limited_on_both_sides() {
    let limits =
        Rules { min_our_size: Some(3), min_peer_size: Some(4), max_peer_items: Some(6), ..Rules::default() };
    let policy = for_peer(limits, None).unwrap();
    for (items, key) in [(2, Some("min-our-size")), (3, None)] {
        assert_eq!(refused(policy.permits_our_size(items)).as_deref(), key);
    }
    let sizes = [
        (3, false, Some("min-peer-size")),
        (4, false, None),
        (6, false, None),
        (7, false, Some("max-peer-items")),
        (5, true, Some("min-peer-size")),
    ];
    for (items, they_pad, key) in sizes {
        let proposal = proposal(hello(&COUNT, Role::Receiver), 3, testing::peer(items, they_pad));
        assert_eq!(refused(judged_sizes(&policy, &proposal)).as_deref(), key, "{items}");
    }
}

#[test]
fn peers_are_known_by_name_or_fingerprint() {
    let south = fingerprint("south").to_string();
    for list in [vec!["south".to_string()], vec![south.clone()], vec!["north".into(), south.to_uppercase()]] {
        let rules = Rules { peers: Some(list.clone()), ..Rules::default() };
        assert_eq!(refused(policy(rules.clone(), "south").permits(&spec(|_| ()))), None);
        // A stranger, and a peer without a fingerprint.
        let stranger = for_peer(rules.clone(), Some(fingerprint("x"))).unwrap();
        assert_eq!(refused(stranger.permits(&spec(|_| ()))).as_deref(), Some("peers"));
        assert_eq!(refused(policy(rules, "nobody").permits(&spec(|_| ()))).as_deref(), Some("peers"));
    }
    let tls_only = Rules { insecure_plaintext: Some(false), ..Rules::default() };
    assert_eq!(
        refused(policy(tls_only.clone(), "nobody").permits(&spec(|_| ()))).as_deref(),
        Some("insecure-plaintext")
    );
    assert_eq!(refused(policy(tls_only, "south").permits(&spec(|_| ()))), None);
}

#[test]
fn what_is_said_about_one_peer_counts_for_it_alone() {
    let of_south = Rules { min_count: Some(2), repeats: Some(Repeats::Refuse), ..Rules::default() };
    let rules = Rules {
        min_count: Some(9),
        roles: Some(vec![Role::Sender]),
        peer: [("south".to_string(), of_south)].into(),
        ..Rules::default()
    };
    let receiver = Rules { roles: None, ..rules.clone() };
    assert_eq!(refused(policy(receiver.clone(), "south").permits(&spec(|_| ()))), None);
    assert_eq!(refused(policy(receiver, "north").permits(&spec(|_| ()))).as_deref(), Some("min-count"));
    // Fields that a peer's rules do not set are inherited.
    assert_eq!(refused(policy(rules.clone(), "south").permits(&spec(|_| ()))).as_deref(), Some("roles"));
    assert_eq!(policy(rules.clone(), "south").repeats(), Repeats::Refuse);
    assert_eq!(policy(rules, "north").repeats(), Repeats::Warn);
    assert_eq!(refused(Policy::none().permits(&spec(|_| ()))), None);
}

#[test]
fn rules_about_somebody_unknown_or_nested_are_an_error() {
    let south = Rules { min_count: Some(2), ..Rules::default() };
    let with =
        |peer: &str, rules: Rules| Rules { peer: [(peer.to_string(), rules)].into(), ..Rules::default() };
    let twice = BTreeMap::from([
        ("south".to_string(), south.clone()),
        (fingerprint("south").to_string(), south.clone()),
    ]);
    let cases = [
        (Rules { peers: Some(vec!["suoth".into()]), ..Rules::default() }, "\"suoth\" is neither"),
        (with("suoth", south.clone()), "\"suoth\" is neither"),
        (
            with("south", Rules { peers: Some(vec![]), ..Rules::default() }),
            "\"peers\" cannot be in [peer.south]",
        ),
        (with("south", with("north", south)), "\"peer\" cannot be in [peer.south]"),
        (Rules { peer: twice, ..Rules::default() }, "are the same peer"),
    ];
    for (rules, words) in cases {
        let e = for_peer(rules, book("south")).unwrap_err();
        assert!(matches!(&e, Error::Usage(said) if said.contains(words) && said.contains("p.toml")), "{e}");
    }
}

#[test]
fn rules_for_one_peer_alone_are_rules() {
    let rules: Rules = Rules {
        peer: [("south".to_string(), Rules { both: Some(false), ..Rules::default() })].into(),
        ..Rules::default()
    };
    let with = |fingerprint| Parties::from(Party { fingerprint, ..testing::peer(5, false) });
    let policy = for_peer(rules, Some(fingerprint("x"))).unwrap();
    assert!(is_for(&policy, &with(Some(fingerprint("x")))));
    assert!(!is_for(&policy, &with(book("south"))) && !is_for(&policy, &with(None)));
    let none = for_peer(Rules::default(), Some(fingerprint("x"))).unwrap();
    assert!(is_for(&none, &with(book("south"))) && is_for(&Policy::none(), &with(None)));
}

#[test]
fn a_run_of_several_is_allowed_if_it_is_allowed_with_each() {
    let of_south = Rules {
        operations: Some(vec![&COUNT]),
        min_our_size: Some(3),
        max_peer_items: Some(6),
        repeats: Some(Repeats::Refuse),
        ..Rules::default()
    };
    let rules = Rules {
        min_peer_size: Some(5),
        repeats: Some(Repeats::Allow),
        peer: [("south".to_string(), of_south)].into(),
        ..Rules::default()
    };
    let with = |north, south| Parties::of([party(2, "north", north), party(3, "south", south)]).unwrap();
    let both = with(9, 6);
    let policy = for_several(rules.clone(), &both);
    assert!(is_for(&policy, &both) && is_for(&policy, &with(5, 5)));
    let count = spec(|s| s.operation = &COUNT);
    policy.permits(&count).unwrap();
    let said = policy.permits(&spec(|_| ())).unwrap_err().to_string();
    assert!(said.contains("refuses this run with party 3 by \"operations\": sum is not among"), "{said}");
    policy.permits_our_size(3).unwrap();
    assert_eq!(refused(policy.permits_our_size(2)).as_deref(), Some("min-our-size"));
    // (the sizes of the sets, and the words that name the party and the reason)
    let sizes = [
        ((9, 6), None),
        ((4, 6), Some("run with party 2 by \"min-peer-size\": party 2's set has 4 items")),
        ((9, 4), Some("run with party 3 by \"min-peer-size\": party 3's set has 4 items")),
        // A rule about one party applies to it alone.
        ((7, 7), Some("run with party 3 by \"max-peer-items\": party 3's set has 7 items")),
    ];
    for ((north, south), words) in sizes {
        let proposal = proposal(hello(&COUNT, Role::Receiver), 3, with(north, south));
        let said = judged_sizes(&policy, &proposal).map_err(|e| e.to_string());
        assert_eq!(said.is_ok(), words.is_none(), "{said:?}");
        assert!(said.is_ok() || said.is_err_and(|said| said.contains(words.unwrap_or_default())));
    }
    // The strictest rule counts, wherever the party is in the list.
    assert_eq!(policy.repeats(), Repeats::Refuse);
    let turned = Parties::of([party(2, "south", 6), party(3, "north", 9)]).unwrap();
    assert_eq!(for_several(rules.clone(), &turned).repeats(), Repeats::Refuse);
    let others = Parties::of([party(2, "north", 6), party(3, "x", 9), party(4, "y", 9)]).unwrap();
    assert_eq!(for_several(rules.clone(), &others).repeats(), Repeats::Allow);
    // One party that is not listed is enough for a refusal.
    let listed = Rules { peers: Some(vec!["south".into()]), ..Rules::default() };
    let said = for_several(listed, &both).permits(&count).unwrap_err().to_string();
    assert!(
        said.contains(&format!("party 2 {} is not among the allowed peers", fingerprint("north"))),
        "{said}"
    );
    // Rules for fewer, more or other parties are rules for a different run, and rules for no parties allow nothing.
    let three = Parties::of([party(2, "north", 9), party(3, "south", 6), party(4, "x", 9)]).unwrap();
    for other in [&turned, &others, &three, &Parties::from(party(2, "north", 9))] {
        assert!(!is_for(&policy, other) && !is_for(&for_several(rules.clone(), other), &both));
    }
    assert!(!is_for(&Policy::new(rules, "p.toml", &[], &book).unwrap(), &both));
}

#[test]
fn what_the_rules_for_one_peer_do_not_say_is_what_is_said_about_all() {
    let all = Rules {
        operations: Some(vec![&COUNT]),
        roles: Some(vec![Role::Sender]),
        peers: Some(vec!["north".into()]),
        min_our_size: Some(1),
        min_peer_size: Some(2),
        max_peer_items: Some(3),
        min_count: Some(4),
        insecure_plaintext: Some(false),
        allowed_send_columns: Some(vec![]),
        both: Some(false),
        assumptions: Some(vec![Assumption::Lpn]),
        protocols: Some(vec![&VOLE]),
        malicious_sender: Some(true),
        repeats: Some(Repeats::Refuse),
        max_filter_runs: Some(5),
        peer: BTreeMap::new(),
    };
    assert_eq!(Rules::default().over(all.clone()), all);
    assert_eq!(all.clone().over(Rules::default()), all);
}

#[test]
fn only_the_protocols_of_the_policy_run() {
    let text =
        r#"{"protocols": ["dh-psi", "mpsu", "sigma-fhe"], "peer": {"south": {"protocols": ["vole"]}}}"#;
    let rules: Rules = serde_json::from_str(text).unwrap();
    let all = rules.protocols.clone().unwrap();
    assert_eq!(
        all.iter().filter(|one| one.name != "sigma-fhe").map(|one| one.name).collect::<Vec<_>>(),
        ["dh-psi", "mpsu"]
    );
    for (peer, allowed, refused) in [("north", &DH_PSI, &VOLE), ("south", &VOLE, &DH_PSI)] {
        let policy = policy(rules.clone(), peer);
        policy.permits_choice(&INTERSECT, Choice::of(allowed)).unwrap();
        let error = policy.permits_choice(&INTERSECT, Choice::of(refused)).unwrap_err().to_string();
        assert!(error.contains("\"protocols\"") && error.contains(allowed.name), "{error}");
    }
}

/// The rules for each party must allow each assumption of a choice.
#[test]
fn what_a_protocol_rests_on_must_be_allowed() {
    let with = |assumptions: &[Assumption]| {
        policy(Rules { assumptions: Some(assumptions.to_vec()), ..Rules::default() }, "north")
    };
    let [ddh, both, none] = [&[Assumption::Ddh][..], &[Assumption::Lpn, Assumption::Ddh], &[]].map(with);
    let vole = |policy: &Policy| policy.permits_choice(&INTERSECT, Choice::of(&VOLE));
    let dh = |policy: &Policy| policy.permits_choice(&INTERSECT, Choice::of(&DH_PSI));
    assert_eq!((vole(&both), dh(&both), dh(&ddh), vole(&Policy::none())), (Ok(()), Ok(()), Ok(()), Ok(())));
    for refuses in [vole(&ddh), vole(&none), dh(&none)] {
        assert_eq!(refused(refuses).as_deref(), Some("assumptions"));
    }
    assert!(vole(&ddh).unwrap_err().to_string().contains("intersect by vole rests on lpn"));
    // Identifiers assume everything that their union does, and the assumptions of their construction.
    assert!(ddh.permits_choice(&ID, Choice::of(&CWPRF)).is_err());
    let parties = Parties::of([party(2, "north", 9), party(3, "south", 9)]).unwrap();
    let south = Rules { assumptions: Some(vec![Assumption::Ddh]), ..Rules::default() };
    let rules = Rules { peer: [("south".to_string(), south)].into(), ..Rules::default() };
    let several = for_several(rules, &parties);
    let said = several.permits_choice(&INTERSECT, Choice::of(&MPSI)).unwrap_err().to_string();
    assert!(said.contains("party 3") && said.contains("rests on lpn"), "{said}");
}

#[test]
fn a_receiver_is_made_secure_where_the_policy_wants_it() {
    let policy = policy(Rules { malicious_sender: Some(true), ..Rules::default() }, "north");
    let asked = spec(|s| (s.operation, s.terms.malicious_sender) = (&INTERSECT, true));
    assert_eq!(policy.permits(&asked), Ok(()));
    assert_eq!(policy.permits(&spec(|s| s.role = Role::Sender)), Ok(()));
    let not = spec(|s| s.operation = &INTERSECT);
    assert_eq!(refused(policy.permits(&not)).as_deref(), Some("malicious-sender"));
}

/// A peer's filter may hold more items than the peer announces.
#[test]
fn the_capacity_of_a_filter_counts_as_the_size_of_its_owner() {
    let policy = for_peer(Rules { max_peer_items: Some(10), ..Rules::default() }, None).unwrap();
    let with = |role, capacity| {
        let filter = Some(crate::artefact::filter::FilterFacts { digest: [0; 32], capacity, queries: 5 });
        let hello = crate::session::Hello { filter, ..hello(&COUNT, role) };
        judged_sizes(&policy, &proposal(hello, 3, testing::peer(5, false)))
    };
    assert_eq!(with(Role::Sender, 10), Ok(()));
    let said = with(Role::Sender, 11).unwrap_err().to_string();
    assert!(said.contains("filter is for 11 items, more than 10"), "{said}");
    // Our own filter does not count as another party's set.
    assert_eq!(with(Role::Receiver, 11), Ok(()));
}
