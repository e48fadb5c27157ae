use super::super::sealed::{FRAME, HEAD};
use super::*;
use crate::aead::TAG;
use crate::ahe::elgamal::lists::ElGamal;
use crate::hashed::HashedSet;
use crate::item::ItemSet;
use crate::membership::encrypted_filter::frame;
use crate::rng::Prng;
use crate::threads::Threads;
use std::cell::Cell;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::LazyLock;
use veilset_testing::Draw;

#[path = "run_tests.rs"]
mod runs;

static IDENTITY: LazyLock<Identity> = LazyLock::new(|| Identity::generate().unwrap());

/// `n` items from number `from` on.
fn items(from: usize, n: usize) -> ItemSet {
    (from..from + n).map(|i| format!("\u{3}{i:03}")).collect()
}

fn draft(set: &ItemSet) -> FilterDraft<'_> {
    FilterDraft { set, key_columns: 1, normalisation: "none", threads: Threads::global() }
}

fn of([capacity, queries]: [usize; 2]) -> Size {
    Size { cipher: groups::RISTRETTO255, capacity, queries }
}

/// A folder for filters.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Builds a filter, stopping at `stop` finished cells. Returns its path and the first number of cells reported.
    fn build_until(
        &self,
        name: &str,
        draft: &FilterDraft<'_>,
        size: [usize; 2],
        stop: u64,
    ) -> Result<(PathBuf, u64)> {
        let (path, first, rng) = (self.path(name), Cell::new(None), &mut Prng::from_os().unwrap());
        let step = |done: u64, _: u64| {
            first.set(first.get().or(Some(done)));
            if done >= stop { Err(Error::Cancelled) } else { Ok(()) }
        };
        build(draft, of(size), &IDENTITY, FilterFile { path: &path, force: false }, &step, rng)?;
        Ok((path, first.get().unwrap()))
    }

    fn build(&self, name: &str, set: &ItemSet, size: [usize; 2]) -> PathBuf {
        self.build_until(name, &draft(set), size, u64::MAX).unwrap().0
    }

    fn export(&self, path: &Path, name: &str) -> PathBuf {
        let to = self.path(name);
        let mut output = Destination::create("public filter", Some(&to), true).unwrap();
        export(path, &IDENTITY, &mut output, &|_| Ok(())).unwrap();
        output.commit().unwrap();
        to
    }

    fn update(&self, path: &Path, set: &ItemSet) -> Result<usize> {
        update(path, &draft(set), &IDENTITY, &|_, _| Ok(()), &mut Prng::from_os().unwrap())
    }
}

fn open_public(path: &Path) -> Result<Opened> {
    super::open_public(path, &|_| Ok(()))
}

fn about(path: &Path) -> Result<About> {
    super::about(path, &|| Err(Error::Bug("no identity".into())), &|_| Ok(()))
}

fn about_ours(path: &Path) -> Result<About> {
    super::about(path, &|| Identity::load(IDENTITY_FILE.path().join("id.pem")), &|_| Ok(()))
}

/// A folder with a file of the identity.
static IDENTITY_FILE: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    IDENTITY.save(folder.path().join("id.pem")).unwrap();
    folder
});

fn open_ours(path: &Path, draft: &FilterDraft<'_>) -> Result<Opened> {
    open(path, &IDENTITY, draft, HashedSet::new(draft.set).own())
}

/// All cells of a public part, and the head.
fn cells(path: &Path) -> (Head, Vec<u8>) {
    let Opened { head, stored, .. } = open_public(path).unwrap();
    let mut cells = vec![0; head.cell_bytes().unwrap() as usize];
    let mut from = stored.cells().unwrap();
    from.read(&mut cells).unwrap();
    from.end().unwrap();
    (head, cells)
}

/// The filter in the clear: which cells encrypt 0.
fn decrypted(path: &Path, public: &Path) -> Vec<bool> {
    let owned = Owned::open(path, &IDENTITY).unwrap();
    let owner = ElGamal::restore(&owned.inside.secret).unwrap();
    let (head, cells) = cells(public);
    let key = ElGamal::key(&head.key, &head.seeds().positions).unwrap_or_else(|_| panic!("a key"));
    let numbers: Vec<u32> = (0..head.filter().cells as u32).collect();
    let (list, malformed) = ElGamal::load(&head.seeds().first_parts, &numbers, &cells);
    assert_eq!(malformed.position(), None);
    let fresh = ElGamal::combine(&key, None, None, &list, &mut Prng::from_seed(&[1; 32]));
    ElGamal::are_zero(&ElGamal::open(&owner, &fresh).unwrap()).to_vec()
}

/// The positions of these items.
fn expected(head: &Head, set: &ItemSet) -> Vec<bool> {
    let mut bits = Bits::none(head.filter());
    bits.insert(HashedSet::new(set).own(), &head.seeds(), head.filter());
    let words = bits.words();
    (0..head.filter().cells as usize).map(|at| words[at / 64] >> (at % 64) & 1 == 1).collect()
}

#[test]
fn a_filter_holds_the_positions_of_its_items_and_what_it_is_for() {
    let place = Place::new();
    for (n, size) in [(0, [1, 1]), (1, [1, 1]), (7, [20, 9])] {
        let set = items(0, n);
        let path = place.build(&format!("{n}"), &set, size);
        let public = place.export(&path, &format!("{n}.public"));
        let (head, _) = cells(&public);
        assert_eq!([head.capacity, head.queries], size);
        assert_eq!(head.filter(), Filter::new(40, size[0], size[1]));
        assert_eq!((head.owner, head.cipher), (IDENTITY.fingerprint(), "ristretto255"));
        assert_eq!(decrypted(&path, &public), expected(&head, &set));
        // The owner and any other party see the same head.
        let ours = about_ours(&path).unwrap();
        let theirs = about(&public).unwrap();
        assert_eq!((ours.items, theirs.items), (Some(n), None));
        assert_eq!((&ours.head, &ours.facts), (&theirs.head, &theirs.facts));
        let opened = open_ours(&path, &draft(&set)).unwrap();
        assert_eq!(opened.facts, ours.facts);
        assert!(is_public(&public) && !is_public(&path) && !is_public(&place.path("none")));
        // The part is gone, and other users cannot read the secrets.
        assert!(!place.path(&format!("{n}.part")).exists());
        #[cfg(unix)]
        assert_eq!(
            std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions()) & 0o077,
            0
        );
    }
}

#[test]
fn what_is_drawn_for_a_filter_is_drawn_afresh() {
    let (place, set) = (Place::new(), items(0, 3));
    let made: Vec<_> = ["a", "b"]
        .map(|name| {
            let path = place.build(name, &set, [3, 3]);
            let Owned { head, inside, .. } = Owned::open(&path, &IDENTITY).unwrap();
            (head, inside, cells(&place.export(&path, "public")).1)
        })
        .into_iter()
        .collect();
    let [a, b] = &made[..] else { panic!("two") };
    assert_ne!(a.0.seed, b.0.seed);
    assert_ne!(a.0.key, b.0.key);
    assert_ne!(a.1.digest_key, b.1.digest_key);
    assert_ne!(a.1.digest, b.1.digest);
    assert_ne!(a.1.secret[..], b.1.secret[..]);
    let chunks = |cells: &[u8]| -> HashSet<Vec<u8>> { cells.chunks(32).map(<[u8]>::to_vec).collect() };
    assert!(chunks(&a.2).is_disjoint(&chunks(&b.2)));
}

/// 27,000 cells take four frames of cells, and more than three sealed ones.
#[test]
fn an_interrupted_filter_is_gone_on_with() {
    let (place, set) = (Place::new(), items(0, 300));
    let size = [400, 100];
    let frame = frame::<ElGamal>() as u64;
    let stopped = place.build_until("f", &draft(&set), size, 3 * frame);
    assert_eq!(stopped.err(), Some(Error::Cancelled));
    let part = place.path("f.part");
    assert!(part.exists() && !place.path("f").exists());
    let begun = std::fs::read(&part).unwrap();
    let head_of_part = Owned::read(Reader::open_part(&part, &FILTER, &IDENTITY).unwrap()).unwrap().head;
    // It is not taken for another set or size, or for other keys.
    let other = items(1, 300);
    let fewer = items(0, 299);
    let trimmed = FilterDraft { normalisation: "trim", ..draft(&set) };
    let columns = FilterDraft { key_columns: 2, ..draft(&set) };
    for (draft, size) in [
        (draft(&other), size),
        (draft(&fewer), size),
        (trimmed, size),
        (columns, size),
        (draft(&set), [401, 100]),
        (draft(&set), [400, 101]),
    ] {
        let Err(Error::Input(e)) = place.build_until("f", &draft, size, u64::MAX) else { panic!("taken") };
        assert_eq!(e.file, part.display().to_string());
        assert!(Error::Input(e).to_string().contains("the beginning of another filter"));
    }
    assert_eq!(std::fs::read(&part).unwrap(), begun);
    // Stopped again at once, it has lost nothing.
    let again = place.build_until("f", &draft(&set), size, frame);
    assert_eq!(again.err(), Some(Error::Cancelled));
    let (path, first) = place.build_until("f", &draft(&set), size, u64::MAX).unwrap();
    assert!(first > 0 && first <= 3 * frame, "{first}");
    let public = place.export(&path, "public");
    let (head, _) = cells(&public);
    assert_eq!(head, head_of_part);
    assert_eq!(decrypted(&path, &public), expected(&head, &set));
    // The key and number of a frame that was cut off were not used again.
    let whole = std::fs::read(&path).unwrap();
    assert_ne!(whole[..HEAD], begun[..HEAD]);
    assert_ne!(whole[HEAD..HEAD + FRAME + TAG], begun[HEAD..HEAD + FRAME + TAG]);
    assert!(!part.exists());
}

#[test]
fn the_frames_that_were_written_are_kept() {
    let (place, set) = (Place::new(), items(0, 300));
    let size = [400, 100];
    place.build_until("f", &draft(&set), size, 3 * frame::<ElGamal>() as u64).unwrap_err();
    let part = place.path("f.part");
    let begun = std::fs::read(&part).unwrap();
    // A file cut within a frame, or with zeros in place of bytes that never reached the disk: everything before that counts.
    let mut torn = begun.clone();
    let at = HEAD + FRAME + TAG + 1000;
    torn[at..].fill(0);
    let mut draw = Draw::new("frames of a filter");
    for (contents, most) in draw.some(1, [(&begun[..at], 1), (&torn[..], 1), (&begun[..], 2)]) {
        std::fs::write(&part, contents).unwrap();
        let (path, first) = place.build_until("f", &draft(&set), size, u64::MAX).unwrap();
        let cells = (most * FRAME / 32) as u64;
        assert!(first > 0 && first <= cells, "{first}");
        let public = place.export(&path, "public");
        assert_eq!(
            decrypted(&path, &public),
            expected(&super::about(&public, &|| panic!(), &|_| Ok(())).unwrap().head, &set)
        );
        std::fs::remove_file(path).unwrap();
    }
    // A file that is not the beginning of our filter is not replaced.
    let stranger = Identity::generate().unwrap();
    let other = place.path("other");
    let (draft_of, rng) = (draft(&set), &mut Prng::from_os().unwrap());
    build(&draft_of, of(size), &stranger, FilterFile { path: &other, force: false }, &|_, _| Ok(()), rng)
        .unwrap();
    for contents in [b"id,cost\n1,2\n".to_vec(), vec![7; 10_000], std::fs::read(&other).unwrap()] {
        std::fs::write(&part, &contents).unwrap();
        refused(place.build_until("f", &draft(&set), size, u64::MAX), &part);
        assert_eq!(std::fs::read(&part).unwrap(), contents);
    }
    // A file that lacks some of the secrets counts as empty.
    for length in draw.some(1, [0, HEAD - 1, HEAD, HEAD + 100, HEAD + FRAME]) {
        std::fs::write(&part, &begun[..length]).unwrap();
        let (path, _) = place.build_until("f", &draft(&set), size, u64::MAX).unwrap();
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn two_programs_do_not_make_one_filter() {
    let (place, set) = (Place::new(), items(0, 3));
    let second = Cell::new(None);
    let path = place.path("f");
    let step = |_, _| {
        second.set(Some(place.build_until("f", &draft(&set), [3, 3], u64::MAX).map(drop)));
        Ok(())
    };
    build(
        &draft(&set),
        of([3, 3]),
        &IDENTITY,
        FilterFile { path: &path, force: false },
        &step,
        &mut Prng::from_os().unwrap(),
    )
    .unwrap();
    let said = second.take().unwrap().unwrap_err().to_string();
    assert!(said.contains("another program is making this filter"), "{said}");
    // An existing file is not replaced.
    let said = place.build_until("f", &draft(&set), [3, 3], u64::MAX).unwrap_err().to_string();
    assert!(said.contains("exists"), "{said}");
}

#[test]
fn an_update_inserts_what_is_new_and_encrypts_everything_afresh() {
    let (place, set) = (Place::new(), items(0, 5));
    let path = place.build("f", &set, [8, 3]);
    let before = place.export(&path, "before");
    // Two of the items are in it already.
    assert_eq!(place.update(&path, &items(3, 4)), Ok(2));
    let after = place.export(&path, "after");
    let all = items(0, 7);
    let ((old, old_cells), (new, new_cells)) = (cells(&before), cells(&after));
    assert_eq!(decrypted(&path, &after), expected(&new, &all));
    // The positions are the same; the key, the first parts and all cells are new.
    assert_eq!((old.seed, old.seeds().positions), (new.seed, new.seeds().positions));
    assert_ne!(old.key, new.key);
    assert_ne!(old.seeds().first_parts, new.seeds().first_parts);
    assert!(old_cells.chunks(32).zip(new_cells.chunks(32)).all(|(old, new)| old != new));
    let chunks = |cells: &[u8]| -> HashSet<Vec<u8>> { cells.chunks(32).map(<[u8]>::to_vec).collect() };
    assert!(chunks(&old_cells).is_disjoint(&chunks(&new_cells)));
    open_ours(&path, &draft(&all)).unwrap();
    assert_eq!(about_ours(&path).unwrap().items, Some(7));
    // More items than fit are refused.
    let kept = std::fs::read(&path).unwrap();
    let said = place.update(&path, &items(7, 2)).unwrap_err().to_string();
    assert!(said.contains("7 items and room for 8, and 2 of the input are new: too many by 1"), "{said}");
    assert_eq!(std::fs::read(&path).unwrap(), kept);
    assert_eq!(place.update(&path, &items(6, 2)), Ok(1));
    open_ours(&path, &draft(&items(0, 8))).unwrap();
    // Inserting nothing new is not an error: the owner may want another key.
    assert_eq!(place.update(&path, &items(0, 0)), Ok(0));
}

#[test]
fn an_interrupted_update_is_gone_on_with_and_the_filter_is_there_until_then() {
    let (place, set) = (Place::new(), items(0, 300));
    let path = place.build("f", &set, [400, 100]);
    let before = std::fs::read(&path).unwrap();
    let (more, rng) = (items(300, 50), &mut Prng::from_os().unwrap());
    let stop = |done: u64, _: u64| if done > 20_000 { Err(Error::Cancelled) } else { Ok(()) };
    let stopped = update(&path, &draft(&more), &IDENTITY, &stop, rng);
    assert_eq!(stopped, Err(Error::Cancelled));
    assert_eq!(std::fs::read(&path).unwrap(), before);
    let begun = Owned::read(Reader::open_part(&place.path("f.part"), &FILTER, &IDENTITY).unwrap()).unwrap();
    // It is not resumed with other items.
    let said = place.update(&path, &items(300, 51)).unwrap_err().to_string();
    assert!(said.contains("the beginning of another filter"), "{said}");
    assert_eq!(place.update(&path, &more), Ok(50));
    let public = place.export(&path, "public");
    let (head, _) = cells(&public);
    assert_eq!(head, begun.head);
    assert_eq!(decrypted(&path, &public), expected(&head, &items(0, 350)));
}

fn refused(result: Result<impl fmt::Debug>, path: &Path) -> String {
    match result {
        Err(Error::Input(e)) => {
            assert_eq!(e.file, path.display().to_string());
            Error::Input(e).to_string()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_filter_of_something_else_is_refused() {
    let (place, set) = (Place::new(), items(0, 5));
    let path = place.build("f", &set, [8, 3]);
    let (other, fewer) = (items(1, 5), items(0, 4));
    for (draft, words) in [
        (draft(&other), "of other keys than the input now has"),
        (draft(&fewer), "made of 5 keys, but the input has 4"),
        (FilterDraft { normalisation: "trim", ..draft(&set) }, "normalised as none, but this run has trim"),
        (FilterDraft { key_columns: 2, ..draft(&set) }, "made of 1 key columns, but this run has 2"),
    ] {
        let said = refused(open_ours(&path, &draft), &path);
        assert!(said.contains(words), "{said}");
    }
    let stranger = Identity::generate().unwrap();
    let said = refused(open(&path, &stranger, &draft(&set), HashedSet::new(&set).own()), &path);
    assert!(said.contains("under another identity"), "{said}");
    let public = place.export(&path, "public");
    assert!(refused(open_ours(&public, &draft(&set)), &public).contains("it is a public filter"));
    assert!(refused(open_public(&path), &path).contains("not a public filter"));
    let none = place.path("none");
    assert!(refused(open_ours(&none, &draft(&set)), &none).contains("there is no such encrypted filter"));
    assert!(refused(open_public(&none), &none).contains("cannot be read"));
    // The order of the rows does not matter.
    let backwards: ItemSet = (0..5).rev().map(|i| format!("\u{3}{i:03}")).collect();
    open_ours(&path, &draft(&backwards)).unwrap();
    for cipher in [groups::PAILLIER_1024, groups::P256, "none"] {
        let (to, rng) = (place.path("g"), &mut Prng::from_os().unwrap());
        let size = Size { cipher, ..of([5, 1]) };
        let wrong =
            build(&draft(&set), size, &IDENTITY, FilterFile { path: &to, force: false }, &|_, _| Ok(()), rng);
        assert!(matches!(wrong, Err(Error::Usage(_))), "{cipher}");
    }
    for size in [[4, 1], [MOST_ITEMS + 1, 1], [5, MOST_ITEMS + 1]] {
        let wrong = place.build_until("g", &draft(&set), size, u64::MAX);
        assert!(matches!(wrong, Err(Error::Usage(_))));
    }
}

#[test]
fn files_that_were_changed_are_refused() {
    let (place, set) = (Place::new(), items(0, 5));
    let path = place.build("f", &set, [5, 3]);
    let public = place.export(&path, "public");
    let spoiled = place.path("spoiled");
    // Our own file: each byte is authenticated.
    let good = std::fs::read(&path).unwrap();
    for at in [0, 9, 11, 20, 50, HEAD - 1, HEAD, HEAD + 400, good.len() - 1] {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        std::fs::write(&spoiled, bytes).unwrap();
        refused(open_ours(&spoiled, &draft(&set)), &spoiled);
    }
    for length in [0, 10, HEAD, HEAD + 30, good.len() - 1] {
        std::fs::write(&spoiled, &good[..length]).unwrap();
        refused(open_ours(&spoiled, &draft(&set)), &spoiled);
    }
    // The public part: each byte is covered by the digest.
    let good = std::fs::read(&public).unwrap();
    let head = cells(&public).0.encode().len();
    for at in 0..head {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        std::fs::write(&spoiled, bytes).unwrap();
        assert!(about(&spoiled).is_err(), "byte {at}");
    }
    for at in [head, head + 1000, good.len() - 33, good.len() - 32, good.len() - 1] {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        std::fs::write(&spoiled, bytes).unwrap();
        refused(open_public(&spoiled), &spoiled);
        assert!(refused(about(&spoiled), &spoiled).contains("is damaged, or was changed"));
    }
    for length in [0, 31, 60, head, good.len() - 1] {
        std::fs::write(&spoiled, &good[..length]).unwrap();
        refused(open_public(&spoiled), &spoiled);
    }
    std::fs::write(&spoiled, [&good[..], &[0]].concat()).unwrap();
    assert!(refused(open_public(&spoiled), &spoiled).contains("should have"));
    refused(open_public(place.0.path()), place.0.path());
}

/// Heads with impossible sizes, for which no memory is allocated.
#[test]
fn sizes_that_no_filter_has_are_refused() {
    for (capacity, queries) in
        [(0, 1), (1, 0), (MOST_ITEMS + 1, 1), (1, MOST_ITEMS + 1), (usize::MAX, usize::MAX)]
    {
        assert!(FilterFacts { digest: [0; 32], capacity, queries }.filter().is_err());
    }
    let facts = FilterFacts { digest: [0xab; 32], capacity: 10, queries: 20 };
    assert_eq!(facts.filter(), Ok(Filter::new(40, 10, 20)));
    assert_eq!(facts.to_string(), "abababababababab (for 10 items and a partner's 20)");
}

/// Under another owner, a filter has other positions; under another key, other first parts.
#[test]
fn positions_are_of_the_owner_and_first_parts_of_the_key() {
    let mut seen = HashSet::new();
    let keys: Vec<Vec<u8>> = (0..40).map(|at| (0..40).map(|i| u8::from(i == at)).collect()).collect();
    let flipped = |at| std::array::from_fn(|i| u8::from(i == at));
    for at in 0..=32 {
        for (owner, seed) in [(flipped(at), [7; 32]), ([7; 32], flipped(at))] {
            let seeds = Seeds::of_owner(&owner, &seed, &keys[0]);
            seen.extend([*seeds.positions.as_bytes(), *seeds.first_parts.as_bytes()]);
        }
    }
    let of_key = |key: &Vec<u8>| Seeds::of_owner(&[7; 32], &[8; 32], key);
    seen.extend(keys.iter().map(|key| *of_key(key).first_parts.as_bytes()));
    assert_eq!(seen.len(), 4 * 33 + 40);
    assert!(keys.iter().all(|key| of_key(key).positions == of_key(&keys[0]).positions));
    let owners = [b"a", b"b"].map(|key| owner(&Fingerprint::of_public_key(key)));
    assert_ne!(owners[0], owners[1]);
}
