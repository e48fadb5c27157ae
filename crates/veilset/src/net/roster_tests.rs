use super::*;

fn fingerprint(name: &str) -> Fingerprint {
    Fingerprint::of_public_key(name.as_bytes())
}

fn party(name: &str, address: Option<&str>) -> ListedParty {
    ListedParty { name: name.into(), fingerprint: fingerprint(name), address: address.map(Into::into) }
}

/// Parties that all listen, except the last.
fn listed(names: &[&str]) -> Listed {
    let address = |i| (i + 1 < names.len()).then(|| format!("host{i}.example.org:7000"));
    let party = names.iter().enumerate().map(|(i, name)| party(name, address(i).as_deref())).collect();
    Listed { leader: names.first().unwrap_or(&"nobody").to_string(), party }
}

fn roster(names: &[&str]) -> Roster {
    Roster::new(listed(names), "parties.toml").unwrap()
}

/// The error about this list, which mentions its file.
fn refused(listed: Listed) -> String {
    let e = Roster::new(listed, "parties.toml").unwrap_err();
    assert!(matches!(e, Error::Usage(_)), "{e:?}");
    assert!(e.to_string().starts_with("the list of parties parties.toml: "), "{e}");
    e.to_string()
}

fn names<'a>(members: impl Iterator<Item = &'a Member>) -> Vec<&'a str> {
    members.map(Member::name).collect()
}

#[test]
fn the_leader_is_party_one_and_the_others_follow_in_order() {
    let list = Listed { leader: "south".into(), ..listed(&["north", "east", "south", "west"]) };
    let roster = Roster::new(list, "parties.toml").unwrap();
    assert_eq!(names(roster.members().iter()), ["south", "north", "east", "west"]);
    for (member, number) in roster.members().iter().zip(1..) {
        assert_eq!(member.number().get(), number);
        assert_eq!(member.seat().number(), Some(member.number()));
        assert_eq!(member.to_string(), format!("party {number} ({})", member.name()));
        assert_eq!(member.fingerprint(), fingerprint(member.name()));
    }
    let addresses: Vec<_> = roster.members().iter().map(|member| member.address().is_some()).collect();
    assert_eq!(addresses, [true, true, true, false]);
}

/// The list as read from a format other than TOML.
#[test]
fn the_keys_of_the_file_are_known_ones() {
    let key = fingerprint("north");
    let file = |more: &str| {
        format!(r#"{{"leader": "north", "party": [{{"name": "north", "fingerprint": "{key}"{more}}}]}}"#)
    };
    let read = |text: &str| serde_json::from_str::<Listed>(text).map_err(|e| e.to_string());
    assert_eq!(read(&file("")).unwrap().party, [party("north", None)]);
    let with = read(&file(r#", "address": "example.org:7000""#)).unwrap();
    assert_eq!(with.party, [party("north", Some("example.org:7000"))]);
    assert!(read(&file(r#", "port": 7000"#)).unwrap_err().contains("unknown field `port`"));
    assert!(read(r#"{"leader": "north", "partys": []}"#).unwrap_err().contains("unknown field `partys`"));
    assert!(read(r#"{"party": []}"#).unwrap_err().contains("missing field `leader`"));
    let typo = file("").replace(&key.to_string(), "abc");
    assert!(read(&typo).unwrap_err().contains("40 letters"), "{typo}");
}

#[test]
fn a_list_that_cannot_be_used_says_why_and_what_to_do() {
    let three = || listed(&["north", "east", "south"]);
    let with = |change: &dyn Fn(&mut Listed)| {
        let mut listed = three();
        change(&mut listed);
        refused(listed)
    };
    let named = |name: &str| with(&|listed| listed.party[1].name = name.into());
    let at = |address: &str| with(&|listed| listed.party[1].address = Some(address.into()));
    let many: Vec<String> = (0..33).map(|i| format!("p{i}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let cases = [
        (refused(listed(&[])), "it has too few [[party]] tables (0): at least 2 are needed"),
        (refused(listed(&["north"])), "it has too few [[party]] tables (1)"),
        (refused(listed(&many)), "it has 33 parties, more than the maximum of 32"),
        (named(""), "\"\" cannot be a party's name: use 1 to 64 printable characters"),
        (named(&"x".repeat(65)), "cannot be a party's name"),
        (named(" east"), "\" east\" cannot be a party's name"),
        (named("east\u{1b}[2J"), "\"east\\u{1b}[2J\" cannot be a party's name"),
        (named("e\u{202e}ast"), "\"e\\u{202e}ast\" cannot be a party's name"),
        (named("e\"ast"), "\"e\"ast\" cannot be a party's name"),
        (named("north"), "two parties are called \"north\""),
        (
            with(&|listed| listed.party[1].fingerprint = fingerprint("north")),
            "\"north\" and \"east\" have the same \"fingerprint\"",
        ),
        (at("host0.example.org:7000"), "\"north\" and \"east\" have the same \"address\""),
        (
            at("example.org"),
            "the \"address\" of \"east\": \"example.org\" is not an address: the port is missing",
        ),
        (at("example.org:0"), "\"example.org:0\" is not \"east\"'s address: nobody listens at port 0"),
        (at("exa\nmple.org:7"), "\"exa\\nmple.org:7\" is not an address of \"east\""),
        (at(&format!("{}:7", "x".repeat(262))), "the \"address\" of \"east\" has more than 263 characters"),
        (with(&|listed| listed.leader = "west".into()), "the leader, \"west\", is not among the parties"),
        (
            with(&|listed| listed.party[0].address = None),
            "neither \"north\" nor \"south\" has an \"address\", so they cannot connect to each other",
        ),
    ];
    for (error, words) in cases {
        assert!(error.contains(words), "{error}\n{words}");
        assert!(error.chars().all(|c| !c.is_control() && c != '\u{202e}'), "{error:?}");
    }
    // Lists that are barely accepted.
    roster(&["north", "east"]);
    roster(&many[..32]);
    roster(&[&"x".repeat(64), "Østfold-3 (St. Mary's)"]);
}

#[test]
fn our_entry_has_our_name_and_our_fingerprint() {
    let roster = roster(&["north", "east", "south"]);
    let me = roster.clone().me("east").unwrap();
    assert_eq!((me.own().name(), me.own().number().get()), ("east", 2));
    assert_eq!(names(me.others()), ["north", "south"]);
    assert_eq!(*me.roster(), roster);
    assert_eq!(me.check_identity(&fingerprint("east")), Ok(()));
    let of_list = |e: Error| {
        assert!(matches!(e, Error::Usage(_)), "{e:?}");
        assert!(e.to_string().starts_with("the list of parties parties.toml: "), "{e}");
        e.to_string()
    };
    let e = of_list(roster.clone().me("west\u{1b}").unwrap_err());
    assert!(e.contains("no party \"west\\u{1b}\" among \"north\", \"east\", \"south\""), "{e}");
    let refused = |identity: &str| of_list(me.check_identity(&fingerprint(identity)).unwrap_err());
    let e = refused("south");
    assert!(e.contains("which is that of \"south\""), "{e}");
    let e = refused("nobody");
    assert!(e.contains("which is that of no party there"), "{e}");
    for name in ["east", "nobody"] {
        assert!(e.contains(&fingerprint(name).to_string()), "{e}");
    }
    assert!(e.contains("(`identity`), or correct the list"), "{e}");
    let leads = |name: &str| roster.clone().me(name).unwrap().leads();
    assert_eq!(["north", "east", "south"].map(leads), [true, false, false]);
}

#[test]
fn of_two_parties_one_connects_to_the_other() {
    let all = ["one", "two", "three", "four", "five"];
    // The party without an address, if there is one, and the leader.
    for (silent, leader) in [(None, 0), (Some(0), 0), (Some(2), 0), (Some(4), 3)] {
        let mut list = listed(&all);
        for (i, party) in list.party.iter_mut().enumerate() {
            party.address = (silent != Some(i)).then(|| format!("host{i}:7000"));
        }
        list.leader = all[leader].into();
        let roster = Roster::new(list, "parties.toml").unwrap();
        let me = |member: &Member| roster.clone().me(member.name()).unwrap();
        for a in roster.members() {
            for b in roster.members().iter().filter(|b| *b != a) {
                let listens = me(b).listens_for().any(|other| other == a);
                assert_eq!(me(a).connects_to().any(|other| other == b), listens);
                let back = me(b).connects_to().any(|other| other == a);
                assert!(listens != back, "{a} {b}");
                // The listening party has an address, and the lower fingerprint if both have one.
                assert!(!listens || b.address().is_some());
                let first = b.fingerprint().as_bytes() < a.fingerprint().as_bytes();
                assert!(!listens || a.address().is_none() || first);
            }
            assert_eq!(me(a).connects_to().count() + me(a).listens_for().count(), 4);
        }
    }
}

#[test]
fn the_digest_tells_lists_apart() {
    let same = roster(&["north", "east", "south"]);
    assert_eq!(
        same.digest(),
        Roster::new(listed(&["north", "east", "south"]), "another file").unwrap().digest()
    );
    let changes: [&dyn Fn(&mut Listed); 8] = [
        &|listed| listed.leader = "east".into(),
        &|listed| listed.party.swap(1, 2),
        &|listed| listed.party.truncate(2),
        &|listed| listed.party[2].name = "west".into(),
        &|listed| listed.party[2].fingerprint = fingerprint("x"),
        &|listed| listed.party[1].address = Some("elsewhere:7000".into()),
        &|listed| listed.party[2].address = Some("elsewhere:7000".into()),
        // Text cannot move between fields unnoticed.
        &|listed| {
            listed.party[1].name = "0east".into();
            listed.party[0].address = Some("host0.example.org:700".into());
        },
    ];
    let mut seen = std::collections::HashSet::from([same.digest()]);
    for change in changes {
        let mut list = listed(&["north", "east", "south"]);
        change(&mut list);
        assert!(seen.insert(Roster::new(list, "parties.toml").unwrap().digest()));
    }
}
