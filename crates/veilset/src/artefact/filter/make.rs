//! Making a filter, and inserting items into it.

use super::super::sealed::{HEAD, MAGIC, Reader, Writer};
use super::{DIGEST, FILTER, Head, Inside, Owned, digest_with};
use crate::ahe::Cipher;
use crate::error::{Error, Result};
use crate::hash::{ItemHash, SessionId};
use crate::hashed::HashedSet;
use crate::item::ItemSet;
use crate::membership::encrypted_filter::{Bits, MOST_ITEMS, frame};
use crate::net::Identity;
use crate::params::filter::Filter;
use crate::places::{beside, same_file, sync_parent};
use crate::protocols::groups;
use crate::protocols::under_cipher::{UnderCipher, with_cipher};
use crate::rng::Prng;
use crate::secret::Secrets;
use crate::spelling::{CAPACITY, CIPHER, command, setting};
use crate::table::Destination;
use crate::threads::Threads;
use std::fs::{File, OpenOptions, TryLockError, rename};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The contents of a filter, and how to make it.
#[derive(Clone, Copy)]
pub struct FilterDraft<'a> {
    /// Our set.
    pub set: &'a ItemSet,
    /// Number of key columns that make up an item.
    pub key_columns: usize,
    /// A description of how keys were normalised and encoded.
    pub normalisation: &'a str,
    /// The threads to compute on.
    pub threads: &'a Threads,
}

/// The size of a filter, and its encryption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// The encryption, which takes the place of the group in a [`crate::protocols::Choice`].
    pub cipher: &'static str,
    /// The most items that the filter can have.
    pub capacity: usize,
    /// The largest number of items of a sender that the filter is made for.
    pub queries: usize,
}

impl<'a> FilterDraft<'a> {
    fn hashed(&self) -> HashedSet<'a> {
        self.threads.run(|| HashedSet::new(self.set))
    }
}

/// The contents of a filter that precede the cells: the head and the secrets.
struct Contents {
    head: Head,
    inside: Inside,
}

impl Contents {
    /// The contents under a fresh key.
    fn keyed(mut self, rng: &mut Prng) -> Result<Contents> {
        struct Key<'r>(SessionId, &'r mut Prng);
        impl UnderCipher for Key<'_> {
            type Output = (Secrets<u8>, Vec<u8>);
            fn run<C: Cipher>(self) -> Result<Self::Output> {
                let Key(seed, rng) = self;
                let owner = C::generate(rng);
                Ok((C::save(&owner), C::public(&owner, &seed, rng)))
            }
        }
        // The seed of the positions does not depend on the key.
        let seed = self.head.seeds().positions;
        (self.inside.secret, self.head.key) = with_cipher(self.head.cipher, Key(seed, rng))?;
        Ok(self)
    }

    /// Inserts the items that are not in the filter yet, and returns their number. An item whose positions are all set already
    /// counts as being in it.
    fn insert(&mut self, items: &[ItemHash]) -> usize {
        let (seeds, filter) = (self.head.seeds(), self.head.filter());
        let known = self.inside.bits.insert(items, &seeds, filter);
        let new = || items.iter().zip(known.iter()).filter(|(_, known)| !**known).map(|(item, _)| item);
        self.inside.digest = digest_with(self.inside.digest, &self.inside.digest_key, new());
        let inserted = new().count();
        self.inside.items += inserted;
        inserted
    }
}

/// Where a filter goes.
#[derive(Debug, Clone, Copy)]
pub struct FilterFile<'o> {
    /// Its file.
    pub path: &'o Path,
    /// Whether an existing file is replaced.
    pub force: bool,
}

/// Makes the filter of a set at `output`. An existing file is replaced only with `force`. If making the same filter was
/// interrupted before, this resumes it. `step` is called with the numbers of cells done so far and in total. An error from it
/// stops the work, and the finished part is kept.
///
/// # Errors
/// [`Error::Usage`] for sizes and encryptions that no filter has, and for more items than `capacity`; [`Error::Input`] if
/// another filter was begun under this name, if its `.part` is damaged or not a filter of ours, or if another program is making
/// it; [`Error::Output`]; and the errors of `step`.
pub fn build(
    draft: &FilterDraft<'_>,
    Size { cipher, capacity, queries }: Size,
    identity: &Identity,
    output @ FilterFile { path, force }: FilterFile<'_>,
    step: &dyn Fn(u64, u64) -> Result<()>,
    rng: &mut Prng,
) -> Result<()> {
    if !groups::CIPHERS.iter().any(|(_, name)| *name == cipher) {
        return Err(Error::usage(format!(
            "there are no filters encrypted by {cipher}. Use another {CIPHER}"
        )));
    }
    let n = draft.set.len();
    if n > capacity {
        return Err(Error::usage(format!(
            "{} is less than our {n} items. Use a number that the set will not exceed",
            CAPACITY.with(capacity)
        )));
    }
    if capacity > MOST_ITEMS || queries > MOST_ITEMS {
        return Err(Error::usage(format!("a filter is for at most {MOST_ITEMS} items of either party")));
    }
    Destination::check(Some(path), force)?;
    let hashed = draft.hashed();
    let head = Head {
        owner: identity.fingerprint(),
        cipher,
        normalisation: draft.normalisation.into(),
        key_columns: draft.key_columns,
        capacity: capacity.max(1),
        queries: queries.max(1),
        seed: rng.bytes(),
        key: vec![],
    };
    let inside = Inside {
        items: 0,
        digest_key: rng.bytes(),
        digest: [0; 4],
        secret: Secrets::zeros(0),
        bits: Bits::none(head.filter()),
    };
    let new = Contents { head, inside };
    let same = |head: &Head, inside: &Inside| head.alike(&new.head) && inside.is_of(hashed.own());
    let part = Part::open(path, identity, &same)?;
    let contents = match &part.begun {
        Some(_) => new,
        None => {
            let mut new = new.keyed(rng)?;
            draft.threads.run(|| new.insert(hashed.own()));
            // An item whose positions were all set by others was not counted.
            (new.inside.items, new.inside.digest) =
                (n, digest_with([0; 4], &new.inside.digest_key, hashed.own()));
            new
        }
    };
    make(contents, part, By { identity, threads: draft.threads, step, rng }, output)
}

/// Inserts items into a filter, and encrypts all of it afresh under a new key. Returns how many were not in it before; with the
/// error probability of the filter, a new item is taken for one that was. Resumes an interrupted update, as [`build`] does.
///
/// # Errors
/// The errors of [`build`], and [`Error::Input`] for a file that cannot be opened, for keys in a form other than its own, and
/// for more items than it has room for.
pub fn update(
    path: &Path,
    draft: &FilterDraft<'_>,
    identity: &Identity,
    step: &dyn Fn(u64, u64) -> Result<()>,
    rng: &mut Prng,
) -> Result<usize> {
    Destination::check(Some(path), true)?;
    let owned = Owned::open(path, identity)?;
    owned.check(draft)?;
    let Owned { head, inside, .. } = owned;
    let (capacity, before) = (head.capacity, inside.items);
    let mut new = Contents { head, inside };
    let hashed = draft.hashed();
    let inserted = draft.threads.run(|| new.insert(hashed.own()));
    if new.inside.items > capacity {
        let what = format!(
            "it has {before} items and room for {capacity}, and {inserted} of the input are new: too many by {}",
            new.inside.items - capacity
        );
        let next = concat!("Make a larger one with ", command!("filter build"), " and ", setting!(capacity));
        return Err(Error::input(path, what, next));
    }
    let old = new.head.key.clone();
    let same = |head: &Head, inside: &Inside| {
        head.alike(&new.head)
            && head.seed == new.head.seed
            && head.key != old
            && inside.items == new.inside.items
            && inside.digest == new.inside.digest
    };
    let part = Part::open(path, identity, &same)?;
    let contents = if part.begun.is_some() { new } else { new.keyed(rng)? };
    let output = FilterFile { path, force: true };
    make(contents, part, By { identity, threads: draft.threads, step, rng }, output)?;
    Ok(inserted)
}

/// The path of a filter until it is complete.
fn part_of(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

/// The unfinished file of a filter, locked against other programs that make it.
struct Part {
    path: PathBuf,
    /// The locked file, which may be empty.
    file: File,
    /// The file's contents, if they are the beginning of the requested filter.
    begun: Option<Owned>,
}

impl Part {
    fn open(output: &Path, identity: &Identity, same: &dyn Fn(&Head, &Inside) -> bool) -> Result<Part> {
        let path = part_of(output);
        let refuse = |what: &str, next: &str| Err(Error::input(&path, what, next));
        if path.symlink_metadata().is_ok_and(|found| !found.is_file()) {
            return refuse(
                "it is not a regular file, and the filter would be made there",
                "Give another output",
            );
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path).map_err(|e| unwritten(&path, &e))?;
        match file.try_lock() {
            Ok(()) if has_name(&file, &path) => {}
            Ok(()) | Err(TryLockError::WouldBlock) => {
                return refuse(
                    "another program is making this filter",
                    "Wait for it, or give another output",
                );
            }
            Err(TryLockError::Error(e)) => return Err(unwritten(&path, &e)),
        }
        let begun = Part::read(&path, &file, identity)?;
        if begun.as_ref().is_some_and(|Owned { head, inside, .. }| !same(head, inside)) {
            return refuse(
                "it is the beginning of another filter",
                "Delete it, or give the input and the options that it was begun with",
            );
        }
        Ok(Part { path, file, begun })
    }

    /// Reads the contents; `None` if the file ends before the last secret, so that nothing can be resumed.
    fn read(path: &Path, file: &File, identity: &Identity) -> Result<Option<Owned>> {
        let mut begin = Vec::new();
        let read = file.take(HEAD as u64 + 1).read_to_end(&mut begin);
        read.map_err(|e| unwritten(path, &e))?;
        let ours = begin.iter().zip(MAGIC).all(|(here, ours)| here == ours);
        if begin.len() <= HEAD && ours {
            return Ok(None);
        }
        let mut reader = Reader::open_part(path, &FILTER, identity)?;
        if reader.left() == 0 {
            return Ok(None);
        }
        let damaged = reader.damaged();
        let head = Head::read(&mut |out| reader.read(out), &|_| damaged.clone())?;
        if reader.left() < Inside::length(&head)? {
            return Ok(None);
        }
        let inside = Inside::read(&mut reader, &head)?;
        Ok(Some(Owned { file: reader, head, inside }))
    }
}

/// Whether the file still has its name.
fn has_name(file: &File, path: &Path) -> bool {
    let named = path.symlink_metadata();
    file.metadata().is_ok_and(|found| named.is_ok_and(|named| same_file(&named, &found)))
}

/// The error for a part that cannot be read or written.
fn unwritten(part: &Path, e: &io::Error) -> Error {
    Error::output(format!(
        "the filter could not be written to {}: {e}. Free disk space, or check that you can write there; then the same \
         command goes on where it stopped",
        part.display()
    ))
    .because(e)
}

/// Writes the contents of the part, or else the new contents, and encrypts the missing cells.
fn make(
    new: Contents,
    part: Part,
    by: By<'_>,
    FilterFile { path: output, force }: FilterFile<'_>,
) -> Result<()> {
    let By { identity, threads, step, rng } = by;
    // The lock is held until the filter has its name.
    let Part { path: part, file: _lock, begun } = part;
    let (contents, begun) = match begun {
        Some(Owned { file, head, inside }) => (Contents { head, inside }, Some(file)),
        None => (new, None),
    };
    let failed = |e: &io::Error| unwritten(&part, e);
    let new = beside(&part).map_err(|e| failed(&e))?;
    let mut file = new.as_file().try_clone().map_err(|e| failed(&e))?;
    // Another program that finds the file under the part's name can then tell that it is being made.
    file.try_lock().map_err(|e| failed(&io::Error::other(e.to_string())))?;
    let cipher = contents.head.cipher;
    let named = || new.persist(&part).map(drop).map_err(|e| failed(&e.error));
    with_cipher(cipher, Make { contents, begun, identity, file: &mut file, named, threads, step, rng })?;
    file.sync_all().map_err(|e| failed(&e))?;
    Destination::check(Some(output), force)?;
    if !has_name(&file, &part) {
        return Err(failed(&io::Error::other("it was moved or replaced")));
    }
    rename(&part, output).and_then(|()| sync_parent(output)).map_err(|e| failed(&e))
}

/// What makes a filter.
struct By<'b> {
    identity: &'b Identity,
    threads: &'b Threads,
    step: &'b dyn Fn(u64, u64) -> Result<()>,
    rng: &'b mut Prng,
}

struct Make<'m, N> {
    contents: Contents,
    begun: Option<Reader>,
    identity: &'m Identity,
    file: &'m mut File,
    /// Gives the file its name, once it holds the old contents.
    named: N,
    threads: &'m Threads,
    step: &'m dyn Fn(u64, u64) -> Result<()>,
    rng: &'m mut Prng,
}

impl<N: FnOnce() -> Result<()>> UnderCipher for Make<'_, N> {
    type Output = ();

    fn run<C: Cipher>(self) -> Result<()> {
        let Make {
            contents: Contents { head, mut inside },
            begun,
            identity,
            file,
            named,
            threads,
            step,
            rng,
        } = self;
        let Filter { cells, .. } = head.filter();
        let damaged = || Error::Bug("the secret key of a filter is not one".into());
        let owner = threads.run(|| C::restore(&inside.secret)).ok_or_else(damaged)?;
        let (seeds, mut hasher) = (head.seeds(), head.digest());
        let mut to = Writer::new(file, &FILTER, identity, rng)?;
        to.write(&head.encode())?;
        to.write(&inside.encode())?;
        let mut done = 0;
        if let Some(mut from) = begun {
            let mut bytes = vec![0; C::CELL * frame::<C>()];
            while done < cells {
                let there = (from.left() / C::CELL as u64).min(cells - done).min(frame::<C>() as u64);
                let bytes = &mut bytes[..there as usize * C::CELL];
                if there == 0 || from.read(bytes).is_err() {
                    break;
                }
                hasher.update(bytes);
                to.write(bytes)?;
                done += there;
                step(done, cells)?;
            }
        }
        named()?;
        while done < cells {
            let n = (cells - done).min(frame::<C>() as u64) as usize;
            let made = threads.run(|| inside.bits.encrypted::<C>(&owner, &seeds, (done as usize, n), rng));
            hasher.update(&made);
            to.write(&made)?;
            done += n as u64;
            step(done, cells)?;
        }
        let digest: [u8; DIGEST] = *hasher.finalize().as_bytes();
        to.write(&digest)?;
        to.end()
    }
}
