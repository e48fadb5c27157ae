//! Runs between a party that uses the library and one that runs the program.

use crate::common::{RECEIVER, SENDER, Words, World, listen};
use std::collections::BTreeSet;
use std::path::Path;
use veilset::{Identity, Keys, Options, Outcome, Peer, Result, Role};

/// Runs a party of the library against the program, which listens in the other role. Returns the party's outcome, and the
/// program's standard output.
fn meets<T>(
    world: &World,
    operation: &str,
    file: &Path,
    more: Words,
    role: Role,
    party: impl FnOnce(Peer, Role) -> Result<Outcome<T>>,
) -> (Outcome<T>, String) {
    let (ours, theirs) = match role {
        Role::Receiver => (RECEIVER, SENDER),
        Role::Sender => (SENDER, RECEIVER),
    };
    let (program, address) = listen(world.party(theirs, operation, file, more));
    let identity = Identity::load(world.path(["r.pem", "s.pem"][ours])).unwrap();
    let peer = Peer::connect(address, identity, world.fingerprints[theirs].parse().unwrap());
    let outcome = party(peer, role);
    let ended = program.end();
    match outcome {
        Ok(outcome) => (outcome, ended.good()),
        Err(error) => panic!("{error}\n{}", ended.err),
    }
}

fn small() -> Options {
    Options::new().allow_small()
}

/// Returns the lines after the header.
fn rows(csv: &str) -> BTreeSet<String> {
    csv.lines().skip(1).map(str::to_string).collect()
}

fn set<const N: usize>(rows: [&str; N]) -> BTreeSet<String> {
    rows.map(str::to_string).into()
}

/// Every operation, in both roles, with an automatic choice of protocol; keys with commas, quotes and letters beyond ASCII.
#[test]
fn a_party_of_the_library_meets_one_of_the_program_in_every_operation() {
    let world = World::new();
    let csv = "id,cost\n\"a,b\",1\n\"a \"\"b\"\"\",20\nç,300\nd,4000\n";
    let file = world.write("f.csv", csv);
    let keys = || Keys::new(["x", "ç", "a,b", "ç"]).unwrap();
    for role in Role::ALL {
        let (outcome, out) = meets(&world, "intersect", &file, &[], role, |peer, role| {
            veilset::intersect(peer, role, &keys(), &small())
        });
        match role {
            Role::Receiver => assert_eq!((outcome.result.unwrap().rows, out.as_str()), (vec![1, 2], "")),
            Role::Sender => assert_eq!((outcome.result, rows(&out)), (None, set(["\"a,b\",1", "ç,300"]))),
        }
        let (outcome, out) = meets(&world, "union", &file, &["--both"], role, |peer, role| {
            veilset::union(peer, role, &keys(), &small().both())
        });
        let new: BTreeSet<String> =
            outcome.result.unwrap().new.iter().map(|key| key.text(0).unwrap().into()).collect();
        assert_eq!(new, set(["a \"b\"", "d"]));
        match role {
            // The program, as the sender of a union, gets the keys of the union, without its own other columns.
            Role::Receiver => assert_eq!(rows(&out), set(["\"a \"\"b\"\"\"", "\"a,b\"", "d", "x", "ç"])),
            Role::Sender => {
                assert_eq!(rows(&out), set(["\"a \"\"b\"\"\",20", "\"a,b\",1", "d,4000", "x,", "ç,300"]));
            }
        }
        let (outcome, out) = meets(&world, "count", &file, &[], role, |peer, role| {
            veilset::count(peer, role, &keys(), &small())
        });
        match role {
            Role::Receiver => assert_eq!((outcome.result, out.as_str()), (Some(2), "")),
            Role::Sender => assert_eq!((outcome.result, out.as_str()), (None, "matches,union_size\n2,5\n")),
        }
        let (outcome, out) =
            meets(&world, "id", &file, &[], role, |peer, role| veilset::id(peer, role, &keys(), &small()));
        let hex = |id: &[u8; 16]| id.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let ids = outcome.result;
        assert_eq!((ids.rows[1] == ids.rows[3], ids.all.len()), (true, 5));
        for (row, key) in [(1, "ç,300"), (2, "\"a,b\",1")] {
            assert!(rows(&out).contains(&format!("{key},{}", hex(&ids.rows[row]))), "{out}");
        }
    }
    // The values of either side.
    let (outcome, out) = meets(&world, "sum", &file, &["--scale", "1"], Role::Sender, |peer, role| {
        let valued = Keys::new(["ç", "d", "e"])?.with_values([15, -5, 1])?;
        veilset::sum(peer, role, &valued, &small().scale(1))
    });
    assert_eq!((outcome.result.sum, out.as_str()), (Some(10), "matches\n2\n"));
    assert_eq!(outcome.report.result.sum.unwrap().get(), "1.0");
    let (outcome, out) = meets(&world, "sum", &file, &["--values", "cost"], Role::Receiver, |peer, role| {
        veilset::sum(peer, role, &keys(), &small())
    });
    assert_eq!((outcome.result.matches, out.as_str()), (Some(2), "matches,sum,below_minimum\n2,301,false\n"));
    let (outcome, out) =
        meets(&world, "share", &file, &["--values", "cost"], Role::Receiver, |peer, role| {
            veilset::share(peer, role, &keys(), &small())
        });
    let shared: BTreeSet<u64> = out
        .lines()
        .skip(1)
        .zip(0..)
        .map(|(line, i)| {
            let theirs = line.split_once(',').unwrap().1;
            // Shares are numbers of 16 digits.
            let theirs = u64::from_str_radix(theirs, 16).unwrap();
            theirs.wrapping_add(u64::from_le_bytes(outcome.result.get(i).unwrap().try_into().unwrap()))
        })
        .collect();
    assert_eq!(shared, [0, 1, 300].into());
}

#[test]
fn columns_normalisation_and_keys_of_several_columns_are_those_of_the_program() {
    let world = World::new();
    let file = world.write("f.csv", "last,first,city\nDoe ,JANE,Rome\nRoe,Rick,Oslo\n");
    let options = ["--key", "last,first", "--normalize", "nfc,trim,casefold"];
    let keys = || {
        Keys::builder().normalize("trim,casefold,nfc").build_columns([["doe", "Jane"], ["Poe", "P"]]).unwrap()
    };
    let more = [&options[..], &["--send-columns", "city"]].concat();
    let (outcome, _) = meets(&world, "intersect", &file, &more, Role::Receiver, |peer, role| {
        veilset::intersect(peer, role, &keys(), &small().receive_columns(["city"]))
    });
    let found = outcome.result.unwrap();
    assert_eq!((found.rows, found.columns[0].text(0)), (vec![0], Some("Rome")));
    let more = [&options[..], &["--receive-columns", "age"]].concat();
    let (_, out) = meets(&world, "union", &file, &more, Role::Sender, |peer, role| {
        veilset::union(peer, role, &keys().with_columns(["age"], [["30"], ["40"]])?, &small())
    });
    assert_eq!(rows(&out), set(["Doe ,JANE,Rome,", "Roe,Rick,Oslo,", "poe,p,,40"]));
}

/// Differences are named on both sides.
#[test]
fn what_differs_from_the_program_is_refused_and_named() {
    let world = World::new();
    let file = world.write("f.csv", "id\na\n");
    let (program, address) = listen(world.party(RECEIVER, "count", &file, &["--both"]));
    let identity = Identity::load(world.path("s.pem")).unwrap();
    let peer = Peer::connect(address, identity, world.fingerprints[RECEIVER].parse().unwrap());
    let error = veilset::count(peer, Role::Sender, &Keys::new(["a"]).unwrap(), &small()).unwrap_err();
    assert!(matches!(&error, veilset::Error::Disagreement(all) if all[0].term == "output"), "{error}");
    program.end().bad(4, &["--both", "ours is both"]);
}
