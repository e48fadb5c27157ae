//! Encrypted filters made in advance ([`crate::membership::encrypted_filter`]). A receiver encrypts the filter of its set once
//! ([`build`]), and many runs with many senders use it. These runs encrypt no cell. If a sender has the public part
//! ([`export`], [`open_public`]), no cell is sent.
//!
//! A filter is made for up to `capacity` items and for senders with up to `queries` items. The two numbers determine its size,
//! and all partners learn them.
//!
//! **The owner's file** is sealed under its identity (`sealed.rs`). It contains, in this order: the head; the secrets; the
//! cells; and a digest of the head and the cells. The secrets are the number of items, a keyed digest of them and its key, the
//! secret key, and the plaintext filter, one bit for each cell. **The public part** consists of the head, the cells and the
//! digest, unsealed. Nothing in it is secret: all cells are encrypted, and only the owner has the key that decrypts them.
//!
//! **Identity.** The positions of an item follow from the seed in the head and from the owner's fingerprint. A sender computes
//! them for the peer that it is connected to. So a party cannot pass off another party's filter as its own: the sender would
//! add up other cells. Only the filter's owner can decrypt the answers of a run.
//!
//! **Repeated runs.** Each run reveals its result, and no more. Using the same filter in two runs reveals that the set is the
//! same, which is public anyway, since the digest is. [`update`] inserts items and encrypts everything afresh, under a new key.
//! A party that has both versions learns neither which cells have changed nor how many.
//!
//! **Making a filter** takes a while, and can be resumed after an interruption. Until it is complete, the file is named after
//! the output with `.part` appended. On resuming, its sealed contents are sealed again under the key of a new file, because the
//! frame that was cut off must not be sealed twice under one number.

mod make;

pub use make::{FilterDraft, FilterFile, Size, build, update};

use super::HEADS;
use super::sealed::{Kind, MAGIC, Reader};
use crate::ahe::Cipher;
use crate::error::{Error, Result};
use crate::hash::{Domain, ItemHash};
use crate::membership::encrypted_filter::{Bits, Cells, MOST_ITEMS, Seeds, Stored, digest};
use crate::net::{Fingerprint, Identity};
use crate::params::LAMBDA;
use crate::params::filter::{Contents, Filter};
use crate::paths::open_regular;
use crate::protocols::groups;
use crate::protocols::under_cipher::{UnderCipher, with_cipher};
use crate::secret::Secrets;
use crate::spelling::{ENCODING, KEY, NORMALIZE, command};
use crate::table::Destination;
use std::fmt;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// The kind of an owner's file.
static FILTER: Kind = Kind {
    name: "encrypted filter",
    made_by: command!("filter build"),
    damaged: None,
    format: 1,
    domain: "veilset 2026-11 encrypted filter, key of all files",
    uses: None,
};
/// The name of the public part in its head.
const PUBLIC: &[u8; 32] = b"public filter\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
/// Maximum length of a stored text in bytes, longer than any that occurs.
const LONGEST_WORDS: usize = 1 << 10;
/// Length of a digest in bytes.
const DIGEST: usize = 32;

/// The facts about a filter made in advance that both parties of a run state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterFacts {
    /// The digest of its public part.
    pub digest: [u8; DIGEST],
    /// The most items that the filter can have.
    pub capacity: usize,
    /// The largest set of a sender that the filter is for, in items.
    pub queries: usize,
}

impl FilterFacts {
    /// Returns the size of the filter, in a time that a peer cannot make long.
    ///
    /// # Errors
    /// A sentence, for sizes that no filter has.
    pub fn filter(&self) -> Result<Filter, String> {
        let fits = |n: &usize| (1..=MOST_ITEMS).contains(n);
        match fits(&self.capacity) && fits(&self.queries) {
            true => Ok(Filter::new(LAMBDA, self.capacity, self.queries)),
            false => Err(format!(
                "a filter for {} items and a partner's {}; the most are {MOST_ITEMS} each",
                self.capacity, self.queries
            )),
        }
    }
}

impl fmt::Display for FilterFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FilterFacts { capacity, queries, .. } = self;
        let digest = blake3::Hash::from_bytes(self.digest).to_hex();
        write!(f, "{} (for {capacity} items and a partner's {queries})", &digest[..16])
    }
}

/// The value that binds a filter to its owner's identity.
pub(crate) fn owner(fingerprint: &Fingerprint) -> [u8; 32] {
    Domain::without_session("owner of a prepared filter").hash(&[fingerprint.as_bytes()])
}

/// The head of a filter: the public information about it, apart from its cells.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Head {
    /// The owner's fingerprint.
    pub owner: Fingerprint,
    /// The encryption, which takes the place of the group in a [`crate::protocols::Choice`].
    pub cipher: &'static str,
    /// How keys were normalised and encoded.
    pub normalisation: String,
    /// Number of key columns that make up an item.
    pub key_columns: usize,
    /// The most items that the filter can have.
    pub capacity: usize,
    /// The largest set of a sender that the filter is for, in items.
    pub queries: usize,
    pub(crate) seed: [u8; 32],
    /// The public key, encoded.
    pub(crate) key: Vec<u8>,
}

/// A source of bytes.
type Source<'s> = &'s mut dyn FnMut(&mut [u8]) -> Result<()>;

fn array<const N: usize>(from: Source<'_>) -> Result<[u8; N]> {
    let mut bytes = [0; N];
    from(&mut bytes)?;
    Ok(bytes)
}

fn number(from: Source<'_>) -> Result<u64> {
    array(from).map(u64::from_le_bytes)
}

/// Reads a number and then that many bytes; `None` if the number is above `most`.
fn bytes(from: Source<'_>, most: usize) -> Result<Option<Vec<u8>>> {
    let length = number(from)?;
    if length > most as u64 {
        return Ok(None);
    }
    let mut bytes = vec![0; length as usize];
    from(&mut bytes)?;
    Ok(Some(bytes))
}

/// The lengths of a cipher's encodings.
struct Lengths {
    key: usize,
    secret: usize,
    cell: usize,
}

impl Lengths {
    fn of(cipher: &str) -> Result<Lengths> {
        struct Those;
        impl UnderCipher for Those {
            type Output = Lengths;
            fn run<C: Cipher>(self) -> Result<Lengths> {
                Ok(Lengths { key: C::KEY, secret: C::SECRET, cell: C::CELL })
            }
        }
        with_cipher(cipher, Those)
    }
}

impl Head {
    /// The size of the filter.
    pub fn filter(&self) -> Filter {
        Filter::new(LAMBDA, self.capacity, self.queries)
    }

    /// Length of all cells in bytes.
    ///
    /// # Errors
    /// [`Error::Usage`] for an encryption that no filter has.
    pub fn cell_bytes(&self) -> Result<u64> {
        Ok(self.filter().cells * Lengths::of(self.cipher)?.cell as u64)
    }

    fn facts(&self, digest: [u8; DIGEST]) -> FilterFacts {
        FilterFacts { digest, capacity: self.capacity, queries: self.queries }
    }

    /// The head as far as it is known without the file.
    pub(crate) fn of_facts(
        owner: Fingerprint,
        cipher: &'static str,
        normalisation: &str,
        key_columns: usize,
        &FilterFacts { capacity, queries, .. }: &FilterFacts,
    ) -> Head {
        let (normalisation, seed, key) = (normalisation.into(), [0; 32], vec![]);
        Head { owner, cipher, normalisation, key_columns, capacity, queries, seed, key }
    }

    /// A hash of the filter's parameters.
    pub(crate) fn purpose(&self) -> [u8; 32] {
        let plain = Head { seed: [0; 32], key: vec![], ..self.clone() };
        Domain::without_session("purpose of a prepared filter").hash(&[&plain.encode()])
    }

    fn digest(&self) -> blake3::Hasher {
        let contents = Contents { purpose: self.purpose(), digest: [0; DIGEST] };
        digest(&contents, &self.seed, &self.key)
    }

    fn seeds(&self) -> Seeds {
        Seeds::of_owner(&owner(&self.owner), &self.seed, &self.key)
    }

    /// Whether the heads differ at most in the values drawn for each filter.
    fn alike(&self, other: &Head) -> bool {
        *self == Head { seed: self.seed, key: self.key.clone(), ..other.clone() }
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend(FILTER.format.to_le_bytes());
        out.extend(HEADS.to_le_bytes());
        out.extend(PUBLIC);
        for words in [&self.owner.to_string(), self.cipher, &self.normalisation] {
            out.extend((words.len() as u64).to_le_bytes());
            out.extend(words.as_bytes());
        }
        for number in [self.key_columns, self.capacity, self.queries] {
            out.extend((number as u64).to_le_bytes());
        }
        out.extend(self.seed);
        out.extend((self.key.len() as u64).to_le_bytes());
        out.extend(&self.key);
        out
    }

    /// Reads a head. `wrong` turns the description of a defect into an error.
    fn read(from: Source<'_>, wrong: &dyn Fn(&str) -> Error) -> Result<Head> {
        if array::<8>(from)? != *MAGIC {
            return Err(wrong("it is not a public filter"));
        }
        let versions: [u8; 4] = array(from)?;
        if array::<32>(from)? != *PUBLIC {
            return Err(wrong("it is not a public filter"));
        }
        if versions[..] != [FILTER.format.to_le_bytes(), HEADS.to_le_bytes()].concat() {
            return Err(wrong("it is of another version of veilset"));
        }
        let damaged = || wrong("it is damaged");
        let mut words = || -> Result<String> {
            let bytes = bytes(from, LONGEST_WORDS)?.ok_or_else(damaged)?;
            let words = String::from_utf8(bytes).map_err(|_| damaged())?;
            // These texts are shown to users, and may come from anyone.
            if words.chars().any(char::is_control) { Err(damaged()) } else { Ok(words) }
        };
        let owner = words()?.parse().map_err(|_| damaged())?;
        let cipher = words()?;
        let ciphers = groups::CIPHERS.iter().map(|(_, cipher)| *cipher);
        let cipher = ciphers.into_iter().find(|name| **name == cipher).ok_or_else(damaged)?;
        let normalisation = words()?;
        let mut size = || Ok(usize::try_from(number(from)?).unwrap_or(usize::MAX));
        let (key_columns, capacity, queries) = (size()?, size()?, size()?);
        FilterFacts { digest: [0; DIGEST], capacity, queries }.filter().map_err(|_| damaged())?;
        let seed = array(from)?;
        let length = Lengths::of(cipher)?.key;
        let key = bytes(from, length)?.filter(|key| key.len() == length).ok_or_else(damaged)?;
        Ok(Head { owner, cipher, normalisation, key_columns, capacity, queries, seed, key })
    }
}

/// The secrets of a filter.
struct Inside {
    /// Number of items.
    items: usize,
    digest_key: [u8; 32],
    /// The sum of one pseudorandom number for each item, under `digest_key`. It does not depend on their order, and items can
    /// be added to it.
    digest: [u64; 4],
    /// The secret key.
    secret: Secrets<u8>,
    bits: Bits,
}

/// Adds items to a digest of a set.
fn digest_with<'i>(
    mut digest: [u64; 4],
    key: &[u8; 32],
    items: impl IntoIterator<Item = &'i ItemHash>,
) -> [u64; 4] {
    for item in items {
        let hash = blake3::keyed_hash(key, item.as_bytes());
        for (sum, word) in digest.iter_mut().zip(hash.as_bytes().as_chunks::<8>().0) {
            *sum = sum.wrapping_add(u64::from_le_bytes(*word));
        }
    }
    digest
}

impl Inside {
    /// Whether the filter has exactly these items.
    fn is_of(&self, items: &[ItemHash]) -> bool {
        self.items == items.len() && self.digest == digest_with([0; 4], &self.digest_key, items)
    }

    /// Length of the secrets of the filter with this head, in bytes.
    fn length(head: &Head) -> Result<u64> {
        let secret = Lengths::of(head.cipher)?.secret as u64;
        Ok(8 + 32 + 32 + secret + 8 * head.filter().cells.div_ceil(64))
    }

    fn encode(&mut self) -> Secrets<u8> {
        let words = self.bits.words();
        let mut out = Secrets::with_capacity(8 + 32 + 32 + self.secret.len() + 8 * words.len());
        out.extend(&(self.items as u64).to_le_bytes());
        out.extend(&self.digest_key);
        self.digest.iter().for_each(|word| out.extend(&word.to_le_bytes()));
        out.extend(&self.secret);
        words.iter().for_each(|word| out.extend(&word.to_le_bytes()));
        out
    }

    fn read(file: &mut Reader, head: &Head) -> Result<Inside> {
        let items = file.number()?;
        if items > head.capacity as u64 {
            return Err(file.damaged());
        }
        let digest_key = file.array()?;
        let mut digest = [0; 4];
        digest.iter_mut().try_for_each(|word| file.number().map(|read| *word = read))?;
        let mut secret = Secrets::zeros(Lengths::of(head.cipher)?.secret);
        file.read(&mut secret)?;
        let mut bits = Bits::none(head.filter());
        bits.words().iter_mut().try_for_each(|word| file.number().map(|read| *word = read))?;
        Ok(Inside { items: items as usize, digest_key, digest, secret, bits })
    }
}

/// An owner's file, read up to the cells.
struct Owned {
    file: Reader,
    head: Head,
    inside: Inside,
}

impl Owned {
    fn open(path: &Path, identity: &Identity) -> Result<Owned> {
        Owned::read(Reader::open(path, &FILTER, identity)?)
    }

    fn read(mut file: Reader) -> Result<Owned> {
        let damaged = file.damaged();
        let head = Head::read(&mut |out| file.read(out), &|_| damaged.clone())?;
        let inside = Inside::read(&mut file, &head)?;
        Ok(Owned { file, head, inside })
    }

    /// Refuses keys that differ in form from this filter's.
    fn check(&self, draft: &FilterDraft<'_>) -> Result<()> {
        let Head { normalisation, key_columns, .. } = &self.head;
        let other = |what: String| Err(self.file.other(what));
        if normalisation != draft.normalisation {
            return other(format!(
                "it was made of keys normalised as {normalisation}, but this run has {} ({NORMALIZE}, {ENCODING})",
                draft.normalisation
            ));
        }
        if *key_columns != draft.key_columns {
            return other(format!(
                "it was made of {key_columns} key columns, but this run has {} ({KEY})",
                draft.key_columns
            ));
        }
        Ok(())
    }
}

/// A filter opened for a run: the facts that both parties state, and our side's part of it.
pub struct Opened {
    /// The public head of the filter.
    pub head: Head,
    /// The facts that both parties state.
    pub facts: FilterFacts,
    pub(crate) stored: Stored,
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Opened({})", self.facts)
    }
}

/// Opens our own filter, for a run as the receiver with the set of `draft`, whose hashes are `items`.
///
/// # Errors
/// [`Error::Input`], naming the file, if it does not exist, is damaged, is not a filter, or belongs to another identity,
/// version or set, or to another number of key columns or another normalisation.
pub(crate) fn open(
    path: &Path,
    identity: &Identity,
    draft: &FilterDraft<'_>,
    items: &[ItemHash],
) -> Result<Opened> {
    let owned = Owned::open(path, identity)?;
    owned.check(draft)?;
    let Owned { mut file, head, inside } = owned;
    if !inside.is_of(items) {
        let what = match inside.items == items.len() {
            true => "it was made of other keys than the input now has".into(),
            false => format!("it was made of {} keys, but the input has {}", inside.items, items.len()),
        };
        let next = concat!(
            "Insert new keys with ",
            command!("filter update"),
            ", or make another with ",
            command!("filter build")
        );
        return Err(Error::input(path, what, next));
    }
    let facts = head.facts(file.tail()?);
    let (seed, key, secret) = (head.seed, head.key.clone(), Some(inside.secret));
    let stored = Stored::new(seed, key, secret, Box::new(OwnCells(file)));
    Ok(Opened { head, facts, stored })
}

/// The cells of our own file.
struct OwnCells(Reader);

impl Cells for OwnCells {
    fn read(&mut self, out: &mut [u8]) -> Result<()> {
        self.0.read(out)
    }

    fn end(mut self: Box<Self>) -> Result<()> {
        self.0.array::<DIGEST>()?;
        self.0.end().map(drop)
    }
}

/// Opens the public part of a peer's filter, for a run as the sender.
///
/// # Errors
/// [`Error::Input`], naming the file, if it does not exist, is not a public filter, is only the beginning of one, has another
/// version, or was changed. To check this, all of it is read once here, and again by the run, before the run answers. Also the
/// errors of `step`, which is called with the number of bytes read since its last call.
pub fn open_public(path: &Path, step: &dyn Fn(usize) -> Result<()>) -> Result<Opened> {
    let next = concat!("Ask its owner for it again (", command!("filter export"), ")");
    let unreadable = |e: std::io::Error| {
        Error::input(path, format!("the public filter cannot be read: {e}"), next).because(&e)
    };
    let mut file = open_regular(path).map_err(unreadable)?;
    let length = file.metadata().map_err(unreadable)?.len();
    let mut digest = [0; DIGEST];
    let end = length.saturating_sub(DIGEST as u64);
    let ended = file.seek(SeekFrom::Start(end)).and_then(|_| file.read_exact(&mut digest));
    let begins = ended.and_then(|()| file.seek(SeekFrom::Start(0)));
    begins.map_err(|_| Error::input(path, "it is not a public filter", next))?;
    let mut file = BufReader::with_capacity(1 << 16, file);
    let not_one = || Error::input(path, "it is not a public filter", next);
    let head = Head::read(&mut |out| file.read_exact(out).map_err(|_| not_one()), &|what| {
        Error::input(path, what, next)
    })?;
    let expected = head.encode().len() as u64 + head.cell_bytes()? + DIGEST as u64;
    if length != expected {
        let what =
            format!("it has {length} bytes, and should have {expected}: only a part of a public filter");
        return Err(Error::input(path, what, next));
    }
    let facts = head.facts(digest);
    let cells = |file| {
        let changed = Error::input(path, CHANGED, next);
        Box::new(PublicCells { file, hasher: head.digest(), digest, changed })
    };
    let again = file.get_ref().try_clone().map_err(unreadable)?;
    read_all(cells(file), &head, step)?;
    let mut file = BufReader::with_capacity(1 << 16, again);
    file.seek(SeekFrom::Start(head.encode().len() as u64)).map_err(unreadable)?;
    let cells = cells(file);
    let stored = Stored::new(head.seed, head.key.clone(), None, cells);
    Ok(Opened { head, facts, stored })
}

const CHANGED: &str = "the public filter is damaged, or was changed";

/// The cells of a public part.
struct PublicCells {
    file: BufReader<File>,
    hasher: blake3::Hasher,
    digest: [u8; DIGEST],
    changed: Error,
}

impl Cells for PublicCells {
    fn read(&mut self, out: &mut [u8]) -> Result<()> {
        self.file.read_exact(out).map_err(|_| self.changed.clone())?;
        self.hasher.update(out);
        Ok(())
    }

    fn end(self: Box<Self>) -> Result<()> {
        match self.hasher.finalize() == self.digest {
            true => Ok(()),
            false => Err(self.changed),
        }
    }
}

/// Reads all cells, and checks them.
fn read_all(mut cells: Box<dyn Cells>, head: &Head, step: &dyn Fn(usize) -> Result<()>) -> Result<()> {
    let (mut left, mut buffer) = (head.cell_bytes()?, vec![0; 1 << 18]);
    while left > 0 {
        let now = &mut buffer[..left.min(1 << 18) as usize];
        cells.read(now)?;
        step(now.len())?;
        left -= now.len() as u64;
    }
    cells.end()
}

/// Passes all cells of an owner's file to `take`, and checks that they are the original ones.
fn all_cells(
    owned: Owned,
    path: &Path,
    take: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<(Head, FilterFacts)> {
    let Owned { mut file, head, .. } = owned;
    let (mut hasher, mut left) = (head.digest(), head.cell_bytes()?);
    let mut buffer = vec![0; 1 << 18];
    while left > 0 {
        let now = &mut buffer[..left.min(1 << 18) as usize];
        file.read(now)?;
        hasher.update(now);
        take(now)?;
        left -= now.len() as u64;
    }
    let digest = file.array()?;
    file.end()?;
    match hasher.finalize() == digest {
        true => {
            let facts = head.facts(digest);
            Ok((head, facts))
        }
        false => Err(FILTER.damaged(path)),
    }
}

/// Writes the public part of our own filter to `output`, which the caller commits. `step` is called with the number of
/// bytes written since its last call; an error from it stops the work.
///
/// # Errors
/// [`Error::Input`], naming the file, if it does not exist, is damaged, is not a filter, or belongs to another identity or
/// version; [`Error::Output`]; and the errors of `step`.
pub fn export(
    path: &Path,
    identity: &Identity,
    output: &mut Destination,
    step: &dyn Fn(usize) -> Result<()>,
) -> Result<FilterFacts> {
    let owned = Owned::open(path, identity)?;
    let write = |output: &mut Destination, bytes: &[u8]| {
        output.writer().write_all(bytes).map_err(|e| output.unwritable(&e))?;
        step(bytes.len())
    };
    write(output, &owned.head.encode())?;
    let (_, facts) = all_cells(owned, path, &mut |cells| write(output, cells))?;
    write(output, &facts.digest)?;
    Ok(facts)
}

/// A description of a filter's file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct About {
    /// The public head of the filter.
    pub head: Head,
    /// The facts that both parties of a run state.
    pub facts: FilterFacts,
    /// Number of items; `None` if the file is a public part.
    pub items: Option<usize>,
}

/// Describes and checks a file, which is either our own filter or the public part of any. `identity` is called unless the file
/// begins like a public part. `step` is as in [`open_public`].
///
/// # Errors
/// The errors of [`export`] except [`Error::Output`], and the errors of [`open_public`], `identity` and `step`.
pub fn about(
    path: &Path,
    identity: &dyn Fn() -> Result<Identity>,
    step: &dyn Fn(usize) -> Result<()>,
) -> Result<About> {
    if !is_public(path) {
        let owned = Owned::open(path, &identity()?)?;
        let items = Some(owned.inside.items);
        let (head, facts) = all_cells(owned, path, &mut |cells| step(cells.len()))?;
        return Ok(About { head, facts, items });
    }
    let Opened { head, facts, .. } = open_public(path, step)?;
    Ok(About { head, facts, items: None })
}

/// Whether a file begins like the public part of a filter.
pub fn is_public(path: &Path) -> bool {
    let mut begin = [0; 8 + 2 + 2 + PUBLIC.len()];
    let is_file = path.metadata().is_ok_and(|found| found.is_file());
    is_file
        && File::open(path).and_then(|mut file| file.read_exact(&mut begin)).is_ok()
        && begin[..8] == *MAGIC
        && begin[12..] == *PUBLIC
}

#[cfg(test)]
mod tests;
