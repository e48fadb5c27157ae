use super::*;
use crate::artefact::ANY_KIND;
use std::sync::LazyLock;

static IDENTITY: LazyLock<Identity> = LazyLock::new(|| Identity::generate().unwrap());

/// A kind with a different name and domain.
static OTHER: Kind = Kind {
    name: "encrypted thing",
    made_by: crate::spelling::command!("other"),
    domain: "test of another kind",
    ..ANY_KIND
};

/// A file of a kind, with these contents.
fn sealed(kind: &'static Kind, identity: &Identity, seed: u8, contents: &[u8]) -> Vec<u8> {
    let mut to = Vec::new();
    let mut writer = Writer::new(&mut to, kind, identity, &mut Prng::from_seed(&[seed; 32])).unwrap();
    writer.write(contents).unwrap();
    writer.end().unwrap();
    to
}

/// Opens a file of these bytes as one of a kind, and reads all of its `length` bytes.
fn read(bytes: &[u8], kind: &'static Kind, length: usize) -> Result<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, bytes).unwrap();
    let mut reader = Reader::open(&path, kind, &IDENTITY)?;
    let mut contents = vec![0; length];
    reader.read(&mut contents)?;
    reader.end().map(|_| contents)
}

/// A file opens only as the kind that its head states, and only under its own key.
#[test]
fn a_file_of_another_kind_is_refused_and_both_are_named() {
    for (made, wanted, words) in [
        (
            &ANY_KIND,
            &OTHER,
            "it is a thing of a test, not an encrypted thing. Name one that `veilset other` made",
        ),
        (
            &OTHER,
            &ANY_KIND,
            "it is an encrypted thing, not a thing of a test. Name one that `veilset test` made",
        ),
    ] {
        let bytes = sealed(made, &IDENTITY, 1, b"contents");
        assert_eq!(read(&bytes, made, 8).unwrap(), b"contents");
        let e = read(&bytes, wanted, 8).unwrap_err().to_string();
        assert!(e.contains(words), "{e}");
        // Nor does it open with another kind's name in its head.
        let mut renamed = bytes.clone();
        renamed[12..12 + NAME].copy_from_slice(&wanted.in_head());
        for kind in [made, wanted] {
            assert!(read(&renamed, kind, 8).is_err());
        }
    }
}

#[test]
fn another_version_is_said_and_nothing_that_is_no_name_is_repeated() {
    static LATER: Kind = Kind { format: ANY_KIND.format + 1, ..ANY_KIND };
    let good = sealed(&ANY_KIND, &IDENTITY, 1, b"contents");
    let e = read(&good, &LATER, 8).unwrap_err().to_string();
    assert!(e.contains("another version of veilset (format 7.3; ours is 8.3)"), "{e}");
    assert!(e.contains("Run `veilset test` again"), "{e}");
    // A file of a different kind is reported as such, in any version.
    let e = read(&good, &OTHER, 8).unwrap_err().to_string();
    assert!(e.contains("it is a thing of a test"), "{e}");
    for name in [&b"\x1b[31m"[..], b"", b"A", b"a\0b", b"\xff"] {
        let mut bytes = good.clone();
        bytes[12..12 + NAME].fill(0);
        bytes[12..12 + name.len()].copy_from_slice(name);
        let e = read(&bytes, &ANY_KIND, 8).unwrap_err().to_string();
        assert!(e.contains("damaged") && !e.contains("it is a ") && !e.contains('\x1b'), "{e}");
    }
}

/// A truncated name could equal another kind's.
#[test]
fn the_name_of_each_kind_fits_its_place() {
    for kind in [&ANY_KIND, &OTHER, &crate::artefact::half::HALF] {
        assert_eq!(kind_in(&kind.in_head()), Some(kind.name));
    }
}

/// Nonces are frame numbers, so a key must not be used twice: not in two files, under two identities, or for two kinds.
#[test]
fn a_file_has_a_key_of_its_own() {
    static OF_ANOTHER_DOMAIN: Kind = Kind { domain: "test of another domain", ..ANY_KIND };
    let sealed =
        |kind, identity: &Identity, seed| sealed(kind, identity, seed, &[b'x'; 64])[HEAD..HEAD + 64].to_vec();
    let another = Identity::generate().unwrap();
    let all = [
        sealed(&ANY_KIND, &IDENTITY, 1),
        sealed(&ANY_KIND, &IDENTITY, 2),
        sealed(&ANY_KIND, &another, 1),
        sealed(&OF_ANOTHER_DOMAIN, &IDENTITY, 1),
    ];
    // The plaintexts are the same, so equal keystreams would give equal ciphertexts.
    for i in 0..all.len() {
        assert!(!all[..i].contains(&all[i]), "{i}");
    }
    assert_eq!(sealed(&ANY_KIND, &IDENTITY, 1), all[0], "the test would notice");
}

/// Accepts `room` bytes, then fails once; keeps the bytes it was given.
struct Full {
    room: usize,
    given: Vec<u8>,
}

impl std::io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.given.extend(bytes);
        if self.given.len() > self.room {
            self.room = usize::MAX;
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn nothing_is_sealed_twice_where_the_file_cannot_be_written() {
    let mut full = Full { room: HEAD, given: vec![] };
    let frame = [b'x'; FRAME];
    let mut writer = Writer::new(&mut full, &ANY_KIND, &IDENTITY, &mut Prng::from_os().unwrap()).unwrap();
    writer.write(&frame).unwrap();
    assert!(matches!(writer.write(&frame), Err(Error::Output(e)) if e.contains(ANY_KIND.name)));
    // A caller that continues despite the error.
    writer.write(&frame).unwrap();
    writer.write(&frame).unwrap();
    writer.end().unwrap();
    assert_eq!(full.given.len(), HEAD + FRAME + 2 * (FRAME + TAG));
    let [first, second] = [0, FRAME].map(|at| &full.given[HEAD + at..][..FRAME]);
    assert!(first != second && first != frame && second != frame);
}

/// A reader that does not know the length in advance refuses it too.
#[test]
fn a_file_that_was_cut_between_frames_is_refused() {
    let whole = sealed(&ANY_KIND, &IDENTITY, 1, &[b'x'; 2 * FRAME]);
    for (frames, sound) in [(2, true), (1, false)] {
        let cut = &whole[..HEAD + frames * (FRAME + TAG)];
        assert_eq!(read(cut, &ANY_KIND, frames * FRAME).is_ok(), sound, "{frames}");
    }
    // Nor may anything be left over.
    for (length, sound) in [(2 * FRAME, true), (2 * FRAME - 1, false), (FRAME, false), (0, false)] {
        assert_eq!(read(&whole, &ANY_KIND, length).is_ok(), sound, "{length}");
    }
}
