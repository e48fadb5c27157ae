use super::*;
use crate::sharded::set::Set;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

const ROWS: Form = Form { items: true, row: Some(40) };

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// Item and payload of a position, some of which are equal.
fn row(i: u32) -> [Vec<u8>; 2] {
    [format!("item {}", i % 300).into(), vec![7; i as usize % 20]]
}

fn push(draft: &mut Draft, positions: &[u32]) {
    let rows: Vec<_> = positions.iter().map(|&i| row(i)).collect();
    let hashes: Vec<_> = rows.iter().map(|[item, _]| ItemHash::of_item(item)).collect();
    let of = |i: usize| [&rows[i][0][..], &rows[i][1][..]];
    draft.push(positions.iter().copied(), &hashes, of).unwrap();
}

/// Position, hash, item and payload.
type Found = BTreeMap<u32, ([u8; 32], Vec<u8>, Vec<u8>)>;

/// What is in the parts.
fn found(set: &DiskSet, number: u32) -> Found {
    let of = |item: &ItemHash| u32::from(item.as_bytes()[0]) % number;
    let parts = |items: &[ItemHash], out: &mut [u32]| {
        out.iter_mut().zip(items).for_each(|(out, item)| *out = of(item));
    };
    let cut = set.cut(Threads::global(), number, parts).unwrap();
    let mut all = Found::new();
    for at in 0..number {
        let part = cut.part(at).unwrap();
        assert_eq!(cut.sizes()[at as usize], part.positions.len());
        assert!(part.positions.is_sorted());
        for (i, position) in part.positions.iter().enumerate() {
            let hash = *part.hashes[i].as_bytes();
            assert_eq!(u32::from(hash[0]) % number, at);
            let payload = if part.payloads.is_empty() { vec![] } else { part.payloads.get(i).to_vec() };
            assert!(all.insert(*position, (hash, part.items.get(i).to_vec(), payload)).is_none());
        }
    }
    all
}

#[test]
fn a_set_has_the_first_of_equal_items_and_its_parts_have_them_all() {
    let dir = folder();
    let positions: Vec<u32> = (0..1000).filter(|i| i % 7 != 3).collect();
    for form in [ROWS, Form { items: false, ..ROWS }, Form::default()] {
        let mut draft = Draft::new(dir.path(), form).unwrap();
        positions.chunks(90).for_each(|some| push(&mut draft, some));
        let (set, repeated) = draft.distinct(Threads::global()).unwrap();
        let (mut firsts, mut again) = (BTreeMap::new(), Vec::new());
        for &i in &positions {
            let first = *firsts.entry(i % 300).or_insert(i);
            if first != i {
                again.push((first, i));
            }
        }
        assert_eq!((set.len(), repeated), (firsts.len(), again));
        let expected: Found = firsts
            .values()
            .map(|&i| {
                let [item, payload] = row(i);
                let hash = *ItemHash::of_item(&item).as_bytes();
                let item = if form.items { item } else { hash.to_vec() };
                (i, (hash, item, if form.row.is_some() { payload } else { vec![] }))
            })
            .collect();
        // Dummies are in no part.
        let announced = if form.items { 900 } else { firsts.len() };
        let set = set.padded(announced, &mut Prng::from_seed(&[1; 32])).unwrap();
        assert_eq!((set.len(), set.announced()), (firsts.len(), announced));
        assert!(found(&set, 1) == expected && found(&set, 16) == expected);
    }
    assert_eq!(dir.path().read_dir().unwrap().count(), 0, "a file has a name");
}

#[test]
fn a_set_takes_the_same_room_whatever_is_behind_its_size() {
    let dir = folder();
    let lengths = |positions: std::iter::Chain<std::ops::Range<u32>, std::ops::Range<u32>>, form: Form| {
        let mut draft = Draft::new(dir.path(), form).unwrap();
        push(&mut draft, &positions.collect::<Vec<_>>());
        let (set, _) = draft.distinct(Threads::global()).unwrap();
        let set = set.padded(250, &mut Prng::from_seed(&[1; 32])).unwrap();
        // One piece for each bucket, one behind the other.
        assert_eq!(set.buckets.len(), BUCKETS);
        let mut end = 0;
        for piece in &set.buckets {
            assert_eq!(piece.at, end);
            end += piece.len;
        }
        let cut = set.cut(Threads::global(), 4, |_, of| of.fill(1)).unwrap();
        let file = cut.scratch.file.lock().unwrap().metadata().unwrap().len();
        [end, set.scratch.end, cut.scratch.end, file]
    };
    for form in [ROWS, Form::default()] {
        // None, a few, as many as there are in all, and so many of which most come again.
        for (all, again) in [(0, 0), (3, 0), (250, 0), (250, 250)] {
            let came = lengths((0..all).chain(300..300 + again), form);
            assert_eq!(came, [250 * form.width() as u64; 4], "{all} {again}");
        }
    }
}

#[test]
fn what_is_on_the_disk_says_nothing() {
    let dir = folder();
    let on_disk = |scratch: &Scratch| {
        let mut bytes = Vec::new();
        let mut file = scratch.file.lock().unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        file.read_to_end(&mut bytes).unwrap();
        bytes
    };
    // Blocks of the same text, in two files.
    let mut blocks = HashSet::new();
    for _ in 0..2 {
        let mut scratch = Scratch::create(dir.path()).unwrap();
        for _ in 0..3 {
            let mut text = vec![b'x'; 64];
            let extents = scratch.append(&mut text, [32, 0, 32]).unwrap();
            assert_eq!(*scratch.read(&extents).unwrap(), [b'x'; 64]);
        }
        let bytes = on_disk(&scratch);
        assert_eq!(bytes.len(), 3 * 64);
        blocks.extend(bytes.chunks(32).map(<[u8]>::to_vec));
    }
    assert_eq!(blocks.len(), 2 * 3 * 2);
    let mut scratch = Scratch::create(dir.path()).unwrap();
    scratch.append(&mut [0; 3 << 12], [3 << 12]).unwrap();
    let blocks: HashSet<Vec<u8>> = on_disk(&scratch).chunks(16).map(<[u8]>::to_vec).collect();
    assert_eq!(blocks.len(), 3 << 8);
    let mut draft = Draft::new(dir.path(), ROWS).unwrap();
    push(&mut draft, &(0..300).collect::<Vec<_>>());
    let (set, _) = draft.distinct(Threads::global()).unwrap();
    let set = set.padded(300, &mut Prng::from_seed(&[1; 32])).unwrap();
    let cut = set.cut(Threads::global(), 3, |_, of| of.fill(1)).unwrap();
    for scratch in [&set.scratch, &cut.scratch] {
        let bytes = on_disk(scratch);
        assert!(bytes.len() > 10_000 && !bytes.windows(4).any(|some| some == b"item"));
        let hash = ItemHash::of_item(&row(5)[0]);
        assert!(!bytes.windows(8).any(|some| some == &hash.as_bytes()[..8]));
    }
}

#[test]
fn sums_are_of_items_and_payloads_wherever_the_set_is() {
    let dir = folder();
    let set: ItemSet = (0..700).map(|i| format!("item {i}")).collect();
    let payloads: Items = (0..700).map(|i| vec![i as u8; i % 9]).collect();
    let on_disk = Distinct::of(&set, &payloads, dir.path(), ROWS).unwrap();
    let on_disk = on_disk.padded(800, &mut Prng::from_seed(&[1; 32])).unwrap();
    let sum = |set: Set<'_>, payloads: &Items| {
        set.digest(payloads, Threads::global(), &[1; 32], |position, hash, payload, to| {
            to.extend_from_slice(&position.to_le_bytes());
            to.extend_from_slice(hash);
            to.extend_from_slice(payload);
        })
    };
    let expected = sum((&set).into(), &payloads).unwrap();
    let none = Items::new();
    assert_eq!(sum(Set::Disk(&on_disk.into()), &none).unwrap(), expected);
    assert_ne!(sum((&set).into(), &none).unwrap(), expected);
    let less: ItemSet = (0..699).map(|i| format!("item {i}")).collect();
    assert_ne!(sum((&less).into(), &payloads).unwrap(), expected);
}

#[test]
fn rows_that_are_too_long_and_folders_that_are_missing_are_refused() {
    let dir = folder();
    let mut draft = Draft::new(dir.path(), ROWS).unwrap();
    let hash = [ItemHash::of_item(b"a")];
    assert!(draft.push(0..1, &hash, |_| [&[0; 20], &[0; 20]]).is_ok());
    assert!(matches!(draft.push(1..2, &hash, |_| [&[0; 20], &[0; 21]]), Err(Error::Bug(_))));
    let missing = dir.path().join("missing");
    let refused = Draft::new(&missing, ROWS).err().unwrap();
    assert!(matches!(&refused, Error::Output(m) if m.contains("missing")), "{refused}");
}

#[test]
fn hashes_that_begin_alike_are_told_apart() {
    let dir = folder();
    // Several in each bucket, and each twice with others between them.
    let hash = |i: u32| {
        let mut bytes = [7; 32];
        bytes[28..].copy_from_slice(&(i % 900).to_le_bytes());
        ItemHash::from_bytes(bytes)
    };
    let hashes: Vec<_> = (0..1800).map(hash).collect();
    let mut draft = Draft::new(dir.path(), Form::default()).unwrap();
    draft.push(0..1800, &hashes, |_| [&[][..]; 2]).unwrap();
    let (set, repeated) = draft.distinct(Threads::global()).unwrap();
    assert_eq!(set.len(), 900);
    assert!(repeated.into_iter().eq((0..900).map(|i| (i, i + 900))));
    let set = set.padded(900, &mut Prng::from_seed(&[1; 32])).unwrap();
    assert!(found(&set, 1).into_keys().eq(0..900));
}

#[test]
fn pieces_of_any_length_are_read_as_they_were_and_share_no_pad() {
    let dir = folder();
    let mut scratch = Scratch::create(dir.path()).unwrap();
    let lengths = [17, 0, 40, (1 << 12) + 3, 1, 33, (2 << 12) + 16];
    let text: Vec<u8> = (0..lengths.iter().sum::<usize>()).map(|i| (i % 251) as u8).collect();
    let extents = scratch.append(&mut text.clone(), lengths).unwrap();
    assert_eq!(*scratch.read(&extents).unwrap(), text);
    let mut start = 0;
    for (extent, len) in extents.iter().zip(lengths) {
        assert_eq!(*scratch.read(&[*extent]).unwrap(), text[start..start + len]);
        start += len;
    }
    // What zeros become is the pad.
    let mut zeros = vec![0; text.len()];
    let extents = scratch.append(&mut zeros, lengths).unwrap();
    let mut start = 0;
    let mut blocks = HashSet::new();
    let mut n = 0;
    for Extent { at, len, .. } in extents {
        assert_eq!(at, (text.len() + start) as u64);
        let pad = &zeros[start..start + len as usize];
        n += pad.chunks_exact(16).len();
        blocks.extend(pad.chunks_exact(16).map(<[u8]>::to_vec));
        start += len as usize;
    }
    assert_eq!(blocks.len(), n);
}

/// The next piece is at the same place.
#[test]
fn where_there_is_nothing_no_nonce_is_used() {
    let dir = folder();
    let mut scratch = Scratch::create(dir.path()).unwrap();
    let extents = scratch.append(&mut [1; 32], [0, 16, 0, 0, 16, 0]).unwrap();
    for extent in extents {
        assert_eq!(extent.len == 0, extent.tag == [0; 16], "{} {}", extent.at, extent.len);
    }
}

/// Changes what is in a file, without the knowledge of who wrote it.
fn meddle(scratch: &Scratch, change: impl FnOnce(&mut Vec<u8>)) {
    let mut file = scratch.file.lock().unwrap();
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0)).unwrap();
    file.read_to_end(&mut bytes).unwrap();
    change(&mut bytes);
    file.set_len(0).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    file.write_all(&bytes).unwrap();
}

type Change<'c> = &'c dyn Fn(&mut Vec<u8>);

#[test]
fn what_a_disk_changes_is_not_believed() {
    let dir = folder();
    let swap = |bytes: &mut Vec<u8>| {
        let (a, b) = bytes.split_at_mut(48);
        a.swap_with_slice(&mut b[..48]);
    };
    let changes: [(&str, Change); 6] = [
        ("a bit", &|bytes| bytes[60] ^= 4),
        ("the first bit", &|bytes| bytes[0] ^= 128),
        ("the last bit", &|bytes| *bytes.last_mut().unwrap() ^= 1),
        ("zeros", &|bytes| bytes[48..96].fill(0)),
        ("other pieces", &swap),
        ("an end", &|bytes| bytes.truncate(140)),
    ];
    for (what, change) in changes {
        let mut scratch = Scratch::create(dir.path()).unwrap();
        let extents = scratch.append(&mut [b'x'; 3 * 48], [48, 48, 0, 48]).unwrap();
        assert_eq!(*scratch.read(&extents).unwrap(), [b'x'; 3 * 48]);
        meddle(&scratch, change);
        let refused = scratch.read(&extents).err().unwrap_or_else(|| panic!("{what} is believed"));
        let place = dir.path().display().to_string();
        let said = |m: &str| m.contains(&place) && m.contains("disk");
        assert!(matches!(&refused, Error::Output(m) if said(m)), "{what}: {refused}");
    }
}

#[test]
fn a_set_of_which_a_bit_is_changed_is_of_no_use_at_any_step() {
    let dir = folder();
    let flip = |scratch: &Scratch| meddle(scratch, |bytes| bytes[1000] ^= 1);
    let draft = || {
        let mut draft = Draft::new(dir.path(), ROWS).unwrap();
        push(&mut draft, &(0..600).collect::<Vec<_>>());
        (0..BUCKETS).for_each(|bucket| draft.flush(bucket).unwrap());
        draft
    };
    let distinct = || draft().distinct(Threads::global()).unwrap().0;
    let stored = || distinct().padded(300, &mut Prng::from_seed(&[1; 32])).unwrap();
    let cut = |set: &DiskSet| set.cut(Threads::global(), 1, |_, of| of.fill(0));
    let refused = |what: &str, done: Result<()>| {
        let told = matches!(&done, Err(Error::Output(m)) if m.contains("other bytes than were written"));
        assert!(told, "{what}: {done:?}");
    };
    let set = draft();
    flip(&set.scratch);
    refused("made distinct", set.distinct(Threads::global()).map(|_| ()));
    let set = distinct();
    flip(&set.draft.scratch);
    refused("padded", set.padded(300, &mut Prng::from_seed(&[1; 32])).map(|_| ()));
    let set = stored();
    flip(&set.scratch);
    refused("cut", cut(&set).map(|_| ()));
    let digest =
        Set::Disk(&Arc::new(set)).digest(&Items::new(), Threads::global(), &[1; 32], |_, _, _, _| ());
    refused("summed", digest.map(|_| ()));
    let parts = cut(&stored()).unwrap();
    flip(&parts.scratch);
    refused("read", parts.part(0).map(|_| ()));
}
