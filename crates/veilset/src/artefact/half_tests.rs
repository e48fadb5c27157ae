use super::*;
use crate::aead::TAG;
use crate::artefact::sealed::{FRAME as CONTENTS, HEAD};
use crate::group::curve25519::{Curve25519, Key, Point, map_and_raise};
use crate::group::p256::{P256, P256Compressed};
use crate::group::raised::Raised;
use crate::group::ristretto255::Ristretto255;
use crate::group::{Key as _, Point as _};
use crate::protocols::groups;
use std::path::PathBuf;
use std::sync::{Barrier, LazyLock};

#[path = "run_tests.rs"]
mod runs;
#[path = "spend_tests.rs"]
mod spend;

static IDENTITY: LazyLock<Identity> = LazyLock::new(|| Identity::generate().unwrap());

/// A folder with a ledger.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn ledger(&self) -> Ledger {
        Ledger::at(self.path("state/ledger"))
    }

    /// Prepares a half with this name.
    fn prepare(&self, name: &str, basis: &Basis) -> PathBuf {
        let path = self.path(name);
        let mut output = Destination::create("prepared half", Some(&path), false).unwrap();
        let rng = &mut Prng::from_os().unwrap();
        prepare(basis, &self.ledger(), &IDENTITY, &mut output, &|_| Ok(()), rng).unwrap();
        output.commit().unwrap();
        path
    }

    fn open<'a>(&self, path: &Path, basis: &Basis<'a>) -> Result<(HashedSet<'a>, Half)> {
        open(path, &self.ledger(), &IDENTITY, basis)
    }

    /// Asserts that the file is refused by an error that names it, and returns the message.
    fn refused(&self, path: &Path, basis: &Basis) -> String {
        let Err(Error::Input(e)) = self.open(path, basis) else { panic!("not refused for what it is") };
        assert_eq!(e.file, path.display().to_string());
        Error::Input(e).to_string()
    }
}

/// Spends a half whose file has not moved.
fn spend(half: Half) -> Result<Offline> {
    half.spend(&|| Ok(()), &mut |text| panic!("{text}"))
}

fn basis(set: &ItemSet) -> Basis<'_> {
    Basis {
        set,
        key_columns: 1,
        normalisation: "none",
        pad_to: None,
        dummies: Dummies::Random,
        group: groups::CURVE25519,
        threads: Threads::global().clone(),
    }
}

/// `n` items from number `from` on.
fn items(from: usize, n: usize) -> ItemSet {
    (from..from + n).map(|i| format!("\u{3}{i:03}")).collect()
}

/// A group's name, and a check of the points that a half provides for a set.
type InGroup = (&'static str, fn(&HashedSet, &[u8]) -> bool);

/// Whether these are points of the group `G`, and equal to the points that a run computes under the same key.
fn of_group<G: Group>(hashed: &HashedSet, key: &[u8]) -> bool {
    let Ok(raised) = Raised::<G>::new(hashed, &mut Prng::from_seed(&[1; 32])) else { return false };
    let computed = G::map_and_raise(&hashed.hashes(&[3, 0]), &G::Key::of_ours(key).unwrap());
    assert!(raised.points(&[3, 0]).unwrap() == computed.unwrap());
    true
}

/// The points of a half are meaningless in another group.
#[test]
fn a_half_is_of_its_group() {
    const GROUPS: [InGroup; 4] = [
        (groups::CURVE25519, of_group::<Curve25519>),
        (groups::P256, of_group::<P256>),
        (groups::P256_COMPRESSED, of_group::<P256Compressed>),
        (groups::RISTRETTO255, of_group::<Ristretto255>),
    ];
    let place = Place::new();
    let set = items(0, 5);
    let in_group = |group| Basis { group, ..basis(&set) };
    for (made, _) in GROUPS {
        let path = place.prepare(made, &in_group(made));
        for (wanted, _) in GROUPS.into_iter().filter(|(wanted, _)| *wanted != made) {
            let e = place.open(&path, &in_group(wanted)).err().unwrap().to_string();
            assert!(e.contains(&format!("prepared in the group {made},")), "{e}");
        }
        let (mut hashed, half) = place.open(&path, &in_group(made)).unwrap();
        let offline = spend(half).unwrap();
        let key = offline.key.to_vec();
        hashed.take_over(offline);
        let of: Vec<&str> =
            GROUPS.into_iter().filter(|(_, is)| is(&hashed, &key)).map(|group| group.0).collect();
        assert_eq!(of, [made]);
    }
    let none = in_group("p384");
    let e = place.open(&place.prepare("last", &in_group(groups::P256)), &none);
    assert!(matches!(e, Err(Error::Input(_))));
    let mut output = Destination::create("prepared half", Some(&place.path("none")), false).unwrap();
    let e =
        prepare(&none, &place.ledger(), &IDENTITY, &mut output, &|_| Ok(()), &mut Prng::from_seed(&[1; 32]));
    assert!(matches!(&e, Err(Error::Usage(what)) if what.contains("p384")), "{e:?}");
}

#[test]
fn nothing_is_prepared_for_fewer_items_than_there_are() {
    let place = Place::new();
    let set = items(0, 3);
    let basis = Basis { pad_to: Some(2), ..basis(&set) };
    let mut output = Destination::create("prepared half", Some(&place.path("half")), false).unwrap();
    let result =
        prepare(&basis, &place.ledger(), &IDENTITY, &mut output, &|_| Ok(()), &mut Prng::from_seed(&[1; 32]));
    assert!(matches!(&result, Err(Error::Usage(what)) if what.contains("`pad_to=2`")), "{result:?}");
}

#[test]
fn what_was_prepared_is_what_comes_back() {
    let place = Place::new();
    let (random, listed) = (Dummies::Random, Dummies::Listed);
    for (n, pad_to, dummies) in [
        (0, None, random),
        (0, Some(3), random),
        (1, None, listed),
        (5, Some(5), random),
        (5, Some(9), listed),
    ] {
        let set = items(0, n);
        let basis = Basis { pad_to, dummies, ..basis(&set) };
        let path = place.prepare("half", &basis);
        let (hashed, half) = place.open(&path, &basis).unwrap();
        assert_eq!(
            (hashed.len(), format!("{half:?}")),
            (pad_to.unwrap_or(n), format!("Half({})", path.display()))
        );
        let Offline { group, key, inverse, points } = spend(half).unwrap();
        assert_eq!(group, groups::CURVE25519);
        let [key, inverse] = [key, inverse].map(|bytes| Key::of_ours(&bytes).unwrap());
        let points: Vec<_> = points.chunks(32).map(|p| Point::of_ours(p).unwrap()).collect();
        assert_eq!(points, map_and_raise(hashed.own(), &key).unwrap());
        let other = Key::random(&mut Prng::from_seed(&[1; 32]));
        let raise = crate::group::curve25519::raise;
        let off = raise(&raise(&points, &other).unwrap(), &inverse).unwrap();
        assert_eq!(off, map_and_raise(hashed.own(), &other).unwrap());
        assert_eq!(hashed.dummies(), pad_to.map(|_| dummies));
        if dummies == listed {
            assert_eq!(hashed.own(), HashedSet::padded_from_list(&set, hashed.len()).own());
        }
    }
    let set = items(0, 3);
    let halves = ["a", "b"].map(|name| place.prepare(name, &basis(&set)));
    let [a, b] = halves.map(|path| place.open(&path, &basis(&set)).unwrap().1);
    assert!(a.ticket.file != b.ticket.file && a.offline.key[..] != b.offline.key[..]);
}

#[test]
fn random_dummies_are_others_in_each_half() {
    let (place, set) = (Place::new(), items(0, 3));
    let basis = Basis { pad_to: Some(30), ..basis(&set) };
    let halves = ["a", "b"].map(|name| place.open(&place.prepare(name, &basis), &basis).unwrap().0);
    let dummies: std::collections::HashSet<_> =
        halves.iter().flat_map(|hashed| hashed.own()[3..].to_vec()).collect();
    assert_eq!(dummies.len(), 2 * 27);
}

#[test]
fn a_half_is_private_and_no_other_file_is_overwritten() {
    use std::os::unix::fs::PermissionsExt;
    let (place, set) = (Place::new(), items(0, 3));
    let path = place.prepare("half", &basis(&set));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
    let e = Destination::create("prepared half", Some(&path), false).unwrap_err().to_string();
    assert!(e.contains("exists") && e.contains("`force`"), "{e}");
    // A stopped preparation leaves nothing behind.
    let mut output = Destination::create("prepared half", Some(&place.path("other")), false).unwrap();
    let (rng, stop) = (&mut Prng::from_os().unwrap(), |_| Err(Error::Cancelled));
    let stopped = prepare(&basis(&set), &place.ledger(), &IDENTITY, &mut output, &stop, rng);
    assert_eq!(stopped.unwrap_err(), Error::Cancelled);
    drop(output);
    let mut names: Vec<_> =
        std::fs::read_dir(place.0.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["half", "state"]);
}

#[test]
fn the_length_of_the_file_follows_from_the_size_that_the_peer_is_told() {
    let place = Place::new();
    let length_in = |group, n, pad_to, dummies| {
        let set = items(0, n);
        let basis = Basis { pad_to, dummies, group, ..basis(&set) };
        let path = place.prepare(&format!("{group} {n} {pad_to:?} {dummies:?}"), &basis);
        std::fs::metadata(path).unwrap().len()
    };
    let length = |n, pad_to, dummies| length_in(groups::CURVE25519, n, pad_to, dummies);
    let all = length(9, None, Dummies::Random);
    for n in 0..=9 {
        for dummies in [Dummies::Listed, Dummies::Random] {
            assert_eq!(length(n, Some(9), dummies), all, "{n}");
        }
    }
    assert_eq!(length(0, None, Dummies::Random) + 9 * 32, all);
    for (group, point) in [(groups::P256, 64), (groups::P256_COMPRESSED, 32)] {
        let [none, nine] = [0, 9].map(|n| length_in(group, n, None, Dummies::Random));
        assert_eq!(none + 9 * point, nine, "{group}");
    }
}

#[test]
fn how_far_it_is_is_told() {
    let (place, set) = (Place::new(), items(0, FRAME + 5));
    let mut output = Destination::create("prepared half", Some(&place.path("half")), false).unwrap();
    let told = std::cell::RefCell::new(vec![]);
    let step = |n| {
        told.borrow_mut().push(n);
        Ok(())
    };
    let rng = &mut Prng::from_os().unwrap();
    prepare(&basis(&set), &place.ledger(), &IDENTITY, &mut output, &step, rng).unwrap();
    assert_eq!(*told.borrow(), [FRAME, 5]);
}

#[test]
fn a_file_that_was_changed_is_refused() {
    let (place, set) = (Place::new(), items(0, 2));
    let basis = Basis { pad_to: Some(3), ..basis(&set) };
    let path = place.prepare("half", &basis);
    let good = std::fs::read(&path).unwrap();
    let forged = place.path("forged");
    let refused = |bytes: &[u8]| {
        std::fs::write(&forged, bytes).unwrap();
        place.refused(&forged, &basis)
    };
    for at in 0..good.len() {
        for bit in [1, 0x20, 0x80] {
            let mut bytes = good.clone();
            bytes[at] ^= bit;
            let e = refused(&bytes);
            assert!(at < HEAD || e.contains("is damaged"), "{at}: {e}");
        }
    }
    for length in 0..good.len() {
        refused(&good[..length]);
    }
    for more in [1, TAG, TAG + 1, good.len()] {
        refused(&[&good[..], &good[..more]].concat());
    }
    let another = std::fs::read(place.prepare("another", &basis)).unwrap();
    // The head of one half with the contents of another.
    refused(&[&good[..HEAD], &another[HEAD..]].concat());
    refused(&[0; 1000]);
    for name in ["none", "", "."] {
        let e = place.refused(&place.path(name), &basis);
        assert!(e.contains("Check"), "{e}");
    }
    place.open(&path, &basis).unwrap();
}

#[test]
fn frames_that_change_places_are_refused() {
    let (place, set) = (Place::new(), items(0, 3 * CONTENTS / 32));
    let basis = basis(&set);
    let path = place.prepare("half", &basis);
    let good = std::fs::read(&path).unwrap();
    let frames: Vec<&[u8]> = good[HEAD..].chunks(CONTENTS + TAG).collect();
    assert_eq!(frames.len(), 4);
    for order in
        [&[1, 0, 2, 3][..], &[0, 2, 1, 3], &[0, 1, 3], &[0, 1, 2], &[0], &[0, 1, 2, 2, 3], &[0, 1, 2, 3, 3]]
    {
        let frames: Vec<u8> = order.iter().flat_map(|&i| frames[i]).copied().collect();
        std::fs::write(&path, [&good[..HEAD], &frames].concat()).unwrap();
        assert!(place.refused(&path, &basis).contains("is damaged"), "{order:?}");
    }
    std::fs::write(&path, &good).unwrap();
    place.open(&path, &basis).unwrap();
}

#[test]
fn a_half_of_something_else_is_refused_and_says_of_what() {
    let place = Place::new();
    let (set, more, other) = (items(0, 4), items(0, 5), items(1, 4));
    let reversed: ItemSet = set.iter().collect::<Vec<_>>().into_iter().rev().collect();
    let plain = basis(&set);
    let padded = Basis { pad_to: Some(6), ..plain.clone() };
    let cases = [
        (
            plain.clone(),
            Basis { normalisation: "trim", ..plain.clone() },
            "keys normalised as none, but this run has trim",
        ),
        (plain.clone(), Basis { key_columns: 2, ..plain.clone() }, "with 1 key columns, but this run has 2"),
        (plain.clone(), padded.clone(), "with no `pad_to`, but this run has `pad_to=6`"),
        (
            plain.clone(),
            Basis { pad_to: Some(4), ..plain.clone() },
            "with no `pad_to`, but this run has `pad_to=4`",
        ),
        (padded.clone(), plain.clone(), "with `pad_to=6`, but this run has no `pad_to`"),
        (
            padded.clone(),
            Basis { pad_to: Some(7), ..plain.clone() },
            "with `pad_to=6`, but this run has `pad_to=7`",
        ),
        (
            padded.clone(),
            Basis { dummies: Dummies::Listed, ..padded.clone() },
            "prepared without `union_sender`",
        ),
        (
            Basis { dummies: Dummies::Listed, ..padded.clone() },
            padded.clone(),
            "prepared with `union_sender`",
        ),
        (plain.clone(), Basis { set: &more, ..plain.clone() }, "for 4 keys, but the input now has 5"),
        (plain.clone(), Basis { set: &other, ..plain.clone() }, "for different keys"),
        (plain.clone(), Basis { set: &reversed, ..plain.clone() }, "for different keys"),
    ];
    for (i, (made, wanted, words)) in cases.into_iter().enumerate() {
        let path = place.prepare(&i.to_string(), &made);
        let e = place.refused(&path, &wanted);
        assert!(e.contains(words) && e.contains("Run `veilset prepare` again"), "{e}");
        // The refused half is not spent.
        place.open(&path, &made).unwrap();
    }
    // Without dummies, their kind makes no difference.
    let path = place.prepare("plain", &plain);
    place.open(&path, &Basis { dummies: Dummies::Listed, ..plain.clone() }).unwrap();
    let another = Identity::generate().unwrap();
    let e = open(&path, &place.ledger(), &another, &plain).err().unwrap().to_string();
    for words in [IDENTITY.fingerprint(), another.fingerprint()].map(|f| f.to_string()) {
        assert!(e.contains(&words) && e.contains("`identity`"), "{e}");
    }
}
