//! The address book.

use crate::common::{Ended, RECEIVER, SENDER, World, csv, listen, run};
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

fn peer(world: &World, words: &[&str]) -> Ended {
    run(world.veilset().arg("peer").args(words))
}

#[test]
fn peers_are_added_listed_and_removed() {
    let world = World::new();
    let [r, s] = &world.fingerprints;
    assert_eq!(peer(&world, &["list"]).good(), "");
    peer(&world, &["add", "south.b", s, "host.example.org:7000"]).good();
    peer(&world, &["add", "north", &r.to_uppercase()]).good();
    let path = world.home("peers.toml");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
    let expected = format!("north    {r}\nsouth.b  {s}  host.example.org:7000\n");
    assert_eq!(peer(&world, &["list"]).good(), expected);
    // Another order gives the same file.
    peer(&world, &["add", "south.b", s, "host.example.org:7000", "--book", "other.toml"]).good();
    peer(&world, &["add", "north", r, "--book", "other.toml"]).good();
    assert_eq!(world.read("other.toml"), std::fs::read_to_string(&path).unwrap());
    // An entry is replaced only with `--force`.
    peer(&world, &["add", "north", s]).bad(2, &["already has \"north\"", r, "--force"]);
    peer(&world, &["add", "other", s]).bad(2, &["already has this fingerprint, as \"south.b\""]);
    peer(&world, &["add", "north", r, "[::1]:7", "--force"]).good();
    assert!(peer(&world, &["list"]).good().contains(&format!("{r}  [::1]:7\n")));
    peer(&world, &["remove", "noth"]).bad(2, &["no peer of this name", "did you mean \"north\"?"]);
    peer(&world, &["remove", "north"]).good();
    assert_eq!(peer(&world, &["list"]).good().lines().count(), 1);
    let names: Vec<_> = std::fs::read_dir(path.parent().unwrap()).unwrap().collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[test]
fn of_changes_at_the_same_time_none_is_lost() {
    let world = World::new();
    let names: Vec<String> = (0..8).map(|i| format!("peer-{i}")).collect();
    let identity = |name: &String| {
        let words = ["identity", "new", "--output"];
        run(world.veilset().args(words).arg(format!("{name}.pem"))).good().trim().to_string()
    };
    let fingerprints: Vec<String> = names.iter().map(identity).collect();
    let add = |i: usize| world.veilset().args(["peer", "add", &names[i], &fingerprints[i]]).spawn().unwrap();
    let all: Vec<_> = (0..names.len()).map(add).collect();
    all.into_iter().for_each(|mut child| assert!(child.wait().unwrap().success()));
    assert_eq!(peer(&world, &["list"]).good().lines().count(), names.len());
    // Half of the peers are removed, while others are added.
    let change = |i: usize| match i % 2 {
        0 => world.veilset().args(["peer", "remove", &names[i]]).spawn().unwrap(),
        _ => world
            .veilset()
            .args(["peer", "add", &names[i], &fingerprints[i], "host:7", "--force"])
            .spawn()
            .unwrap(),
    };
    let all: Vec<_> = (0..names.len()).map(change).collect();
    all.into_iter().for_each(|mut child| assert!(child.wait().unwrap().success()));
    let left = peer(&world, &["list"]).good();
    assert_eq!((left.lines().count(), left.matches("host:7").count()), (4, 4), "{left}");
}

#[test]
fn a_change_waits_for_who_has_the_lock_and_not_for_the_dead() {
    let world = World::new();
    let s = &world.fingerprints[1];
    peer(&world, &["add", "a", s]).good();
    let book = world.home("peers.toml");
    let holder = File::open(&book).unwrap();
    holder.lock().unwrap();
    let mut waits = world.veilset().args(["peer", "remove", "a"]).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(waits.try_wait().unwrap(), None);
    // The lock belongs to an open file, which the system closes when a process dies.
    drop(holder);
    assert!(waits.wait().unwrap().success());
    assert_eq!(peer(&world, &["list"]).good(), "");
}

#[test]
fn our_own_fingerprint_is_nobodys() {
    let world = World::new();
    let [r, s] = &world.fingerprints;
    let words = ["our own fingerprint", "r.pem", "veilset identity show", "--identity"];
    peer(&world, &["add", "me", r, "--identity", "r.pem"]).bad(2, &words);
    peer(&world, &["add", "me", r, "--identity", "none.pem"]).bad(2, &["there is no identity at none.pem"]);
    assert!(!world.home("peers.toml").exists());
    peer(&world, &["add", "south", s, "--identity", "r.pem"]).good();
    // Without a default identity, our own fingerprint is unknown; with one, it is refused.
    peer(&world, &["add", "me", r]).good();
    std::fs::copy(world.path("s.pem"), world.home("identity.pem")).unwrap();
    peer(&world, &["add", "south", s, "--force"]).bad(2, &["our own fingerprint", "identity.pem"]);
    peer(&world, &["add", "south", s, "--force", "--identity", "r.pem"]).good();
}

#[test]
fn what_cannot_be_an_entry_is_refused() {
    let world = World::new();
    let own = world.fingerprints[0].clone();
    let long = "x".repeat(65);
    let cases: [(&[&str], &[&str]); 11] = [
        (&["add", "", &own], &["cannot be a peer's name", "hyphens"]),
        (&["add", &long, &own], &["1 to 64 letters"]),
        (&["add", "a b", &own], &["\"a b\" cannot be a peer's name"]),
        (&["add", "é", &own], &["cannot be a peer's name"]),
        (&["add", &own, "x"], &["because it is a fingerprint", "veilset peer add NAME"]),
        (&["add", "a", "x"], &["1 letters", "veilset identity show"]),
        (&["add", "a", &own, "host"], &["the port is missing"]),
        (&["add", "a", &own, "http://host:7"], &["give HOST:PORT without http://"]),
        (&["add", "a", &own, "host:0"], &["nobody listens at port 0"]),
        (&["add", "a", &own, "ho\"st:1"], &["is not an address"]),
        (&["list", "--book", "none.toml"], &["none.toml", "--book"]),
    ];
    for (arguments, words) in cases {
        peer(&world, arguments).bad(2, words);
    }
    assert!(!world.home("peers.toml").exists());
    // The file was edited by hand.
    for (text, words) in [
        ("[a]\n", "fingerprint"),
        ("[a]\nfingerprint = \"x\"\n", "line 2"),
        ("[a]\nfingerprint = \"FP\"\nport = 3\n", "unknown field `port`"),
        ("[\"a b\"]\nfingerprint = \"FP\"\n", "cannot be a peer's name"),
        ("[a]\nfingerprint = \"FP\"\naddress = \"x\"\n", "the port is missing"),
        ("garbage", "line 1"),
    ] {
        world.write("bad.toml", text.replace("FP", &own));
        peer(&world, &["list", "--book", "bad.toml"]).bad(2, &["bad.toml cannot be used", words]);
    }
}

#[test]
fn a_peer_is_run_with_by_its_name_and_its_address() {
    let world = World::new();
    let file = world.write("f.csv", csv(0..5));
    let [r, s] = &world.fingerprints;
    peer(&world, &["add", "south", s]).good();
    let (receiver, address) = listen(world.party(RECEIVER, "count", &file, &["--peer", "south"]));
    peer(&world, &["add", "north", r, &address]).good();
    let sender = run(&mut world.party(SENDER, "count", &file, &["--peer", "north"]));
    sender.good();
    assert_eq!(receiver.end().good(), "matches,union_size\n5,5\n");

    let party = |name: &str| run(&mut world.party(RECEIVER, "count", &file, &["--peer", name]));
    party("south").bad(2, &["--listen HOST:PORT", "--connect HOST:PORT", "veilset peer add"]);
    party("suoth")
        .bad(2, &["no peer of this name", "did you mean \"south\"? Add it", "veilset peer add suoth"]);
}
