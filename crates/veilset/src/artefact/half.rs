//! The offline half of a session: the points F_k(H(x)) of our own items x under a fresh key k, computed and stored before
//! connecting to the peer ([`prepare`], [`open`]).
//!
//! **One key, one session.** A key, and everything computed under it, may be used in one session with one peer, even if that
//! session fails. In a second session an item would have the same point again, so the peer could link what the two sessions
//! reveal, item by item. For example, the receiver of count or sum learns one bit for each of our points. It could run one
//! session for each j, with its items whose index has bit j set. About log2 |Y| sessions then turn numbers of matches into the
//! matches themselves. Or consider dh-psi: we raise |Y| points of the receiver's choice to our key. So one session in which we
//! are the sender tests |Y| guesses against what another session revealed.
//!
//! So a half is *spent* before the first message of the protocol is sent. Its id is entered in a [`Ledger`], which is synced to
//! disk; then the part of its file that holds the keys is overwritten, and the file is deleted. Only `Half::spend` returns the
//! key and the points, so a run cannot skip this. If the program dies in between, the half is lost. The ledger refuses a
//! restored copy of a spent half, and a half is refused without its own ledger. Restoring a file together with an older state
//! of its ledger goes unnoticed, and what was overwritten may still be on the disk, in a snapshot or in a copy
//! (docs/security/prepared-halves.md).
//!
//! **Contents.** The file contains the id of the ledger, the seed of the random dummies, a description of the basis, the key
//! and its inverse, and the points. The description consists of the normalisation, the group, the number of key columns, the
//! padding, the sizes, and a digest of the set. It lets a half of a different set be refused before connecting to the peer.
//! About the set, the length of the file reveals no more than the size that the peer is told. Hashes are not stored:
//! recomputing them takes little time. The contents are encrypted under our identity (see `sealed.rs`).
//!
//! **Order.** Points are stored in the order of the items. The run draws its permutation when it sends them, as it does
//! without a half. That costs nothing, and an order that was never written down cannot be found in a backup. Fixing the
//! permutation here would protect nothing more, since key and points are used in one session only.
//!
//! **The peer's view.** The messages of the protocol and their sizes are the same. The shorter time before them, and a hello
//! whose candidates all take halves, can show that there was a half.
//! During the run, the receiver of a union computes the points of the dummies that it inserts for the peer, since their number
//! depends on the size that the peer announces.

use super::ledger::{Ledger, Ticket};
use super::sealed::{Id, Kind, Opened, Reader, Writer};
use crate::error::{Error, Result};
use crate::group::raised::{Offline, unlucky};
use crate::group::{self, Group, InGroup, Key};
use crate::hash::{Domain, ItemHash};
use crate::hashed::{Dummies, HashedSet};
use crate::item::ItemSet;
use crate::net::Identity;
use crate::params::MAX_SET;
use crate::rng::Prng;
use crate::secret::{Secret, Secrets};
use crate::spelling::{ENCODING, KEY, NORMALIZE, PAD_TO, UNION_SENDER, command};
use crate::table::Destination;
use crate::threads::Threads;
use std::fmt;
use std::path::Path;
use zeroize::Zeroizing;

/// The kind of a prepared half.
pub(super) static HALF: Kind = Kind {
    name: "prepared half",
    made_by: command!("prepare"),
    damaged: None,
    format: 3,
    domain: "veilset 2026-11 prepared half, key of all files",
    uses: Some(1),
};

/// Number of points computed at a time.
const FRAME: usize = 1 << 13;
/// Maximum length of a stored text in bytes, longer than any that occurs.
const LONGEST_WORDS: usize = 1 << 10;

/// The basis of a half. A run that uses the half must have the same basis.
#[derive(Clone)]
pub struct Basis<'a> {
    /// Our set, in the order of its rows.
    pub set: &'a ItemSet,
    /// Number of key columns that make up an item.
    pub key_columns: usize,
    /// A description of how keys were normalised and encoded.
    pub normalisation: &'a str,
    /// The size to which the set is padded with dummies.
    pub pad_to: Option<usize>,
    /// The kind of the dummies ([`crate::operations::Operation::dummies`]).
    pub dummies: Dummies,
    /// The group of the points ([`crate::protocols::Protocol::groups`]).
    pub group: &'static str,
    /// The threads to compute on.
    pub threads: Threads,
}

/// Refuses an announced size that is less than our `n` items, or more than this version supports.
///
/// # Errors
/// [`Error::Usage`].
pub fn check_size(n: usize, announced: usize) -> Result<()> {
    if announced < n {
        return Err(Error::usage(format!(
            "{} is less than our {n} items. Use a number that no set of yours exceeds",
            PAD_TO.with(announced)
        )));
    }
    if announced > MAX_SET {
        return Err(Error::usage(format!(
            "a set of {announced} items is more than this version supports ({MAX_SET})"
        )));
    }
    Ok(())
}

impl<'a> Basis<'a> {
    /// The size of the set including its dummies.
    pub fn announced(&self) -> usize {
        self.pad_to.unwrap_or(self.set.len())
    }

    /// Checks the sizes ([`check_size`]).
    ///
    /// # Errors
    /// [`Error::Usage`].
    pub fn check(&self) -> Result<()> {
        check_size(self.set.len(), self.announced())
    }

    /// The set, hashed and padded.
    pub(crate) fn hashed(&self, rng: &mut Prng) -> HashedSet<'a> {
        self.threads.run(|| match (self.pad_to, self.dummies) {
            (None, _) => HashedSet::new(self.set),
            (Some(to), Dummies::Listed) => HashedSet::padded_from_list(self.set, to),
            (Some(to), Dummies::Random) => HashedSet::padded(self.set, to, rng),
        })
    }

    /// Whether the set is padded, and whether with listed dummies.
    fn padding(&self) -> [bool; 2] {
        let padded = self.pad_to.is_some();
        [padded, padded && self.dummies == Dummies::Listed]
    }

    /// The description of the basis that a half contains: texts prefixed with their lengths, numbers little-endian.
    fn describe(&self, items: &[ItemHash]) -> Result<Vec<u8>> {
        let words = self.normalisation.as_bytes();
        if words.len() > LONGEST_WORDS {
            return Err(Error::Bug("the description of the normalisation is too long".into()));
        }
        let mut out = vec![];
        out.extend((words.len() as u32).to_le_bytes());
        out.extend(words);
        out.extend((self.group.len() as u32).to_le_bytes());
        out.extend(self.group.as_bytes());
        out.extend((self.key_columns as u64).to_le_bytes());
        out.extend(self.padding().map(u8::from));
        out.extend((self.announced() as u64).to_le_bytes());
        out.extend((self.set.len() as u64).to_le_bytes());
        out.extend(digest(items));
        Ok(out)
    }

    /// Refuses a half whose basis differs from ours; `items` are the hashes of our items.
    fn compare(&self, file: &mut Reader, items: &[ItemHash]) -> Result<()> {
        let (words, group) = (file.words(LONGEST_WORDS)?, file.words(LONGEST_WORDS)?);
        let columns = file.number()?;
        let [padded, listed] = file.array::<2>()?.map(|b| b == 1);
        let (announced, n) = (file.number()?, file.number()?);
        let made_of: [u8; 32] = file.array()?;
        let other = |what: String| Err(file.other(what));
        if words != self.normalisation {
            return other(format!(
                "it was prepared with keys normalised as {words}, but this run has {} ({NORMALIZE}, \
                 {ENCODING})",
                self.normalisation
            ));
        }
        if group != self.group {
            return other(format!("it was prepared in the group {group}, but this run uses {}", self.group));
        }
        if columns != self.key_columns as u64 {
            return other(format!(
                "it was prepared with {columns} key columns, but this run has {} ({KEY})",
                self.key_columns
            ));
        }
        let pad_to = |to: Option<u64>| to.map_or(format!("no {PAD_TO}"), |to| PAD_TO.with(to));
        let (theirs, ours) = (padded.then_some(announced), self.pad_to.map(|to| to as u64));
        if theirs != ours {
            return other(format!(
                "it was prepared with {}, but this run has {}",
                pad_to(theirs),
                pad_to(ours)
            ));
        }
        if [padded, listed] != self.padding() {
            return other(match listed {
                true => format!(
                    "its dummies are those for the sender of a union, but this run needs different ones \
                         (it was prepared with {UNION_SENDER})"
                ),
                false => format!(
                    "its dummies are not those for the sender of a union (it was prepared without \
                          {UNION_SENDER})"
                ),
            });
        }
        if n != items.len() as u64 {
            return other(format!("it was prepared for {n} keys, but the input now has {}", items.len()));
        }
        match made_of == digest(items) {
            true => Ok(()),
            false => other(
                "it was prepared for different keys than the input now has, or for a different \
                     order"
                    .into(),
            ),
        }
    }
}

fn digest(items: &[ItemHash]) -> [u8; 32] {
    Domain::without_session("prepared half, digest of a set").hash_items(items)
}

/// Computes a half and writes it to `output`, which the caller commits. Creates the ledger if it does not exist. `step`
/// is called with the number of points computed since its last call; an error from it stops the work. Takes 32 bytes of
/// memory for each item and dummy if the set is padded, and otherwise memory that does not grow with it, in every group.
///
/// # Errors
/// [`Error::Usage`] for sizes or a group that no half can have, and for a ledger that others can change; [`Error::Output`];
/// [`Error::Bug`] for an unlucky point; and the errors of `step`.
pub fn prepare(
    basis: &Basis,
    ledger: &Ledger,
    identity: &Identity,
    output: &mut Destination,
    step: &dyn Fn(usize) -> Result<()>,
    rng: &mut Prng,
) -> Result<()> {
    basis.check()?;
    let ledger = ledger.id_or_new(rng, &|| step(0))?;
    let seed = Secret::new(rng.bytes());
    let set = basis.hashed(&mut Prng::from_seed(&seed));
    let file = Writer::new(output.writer(), &HALF, identity, rng)?;
    let made = Made { basis, ledger, seed: &seed, set: &set, step };
    group::with(basis.group, Write { made: &made, file, rng }).unwrap_or_else(|| Err(unknown(basis.group)))
}

/// Writes a half in a group.
struct Write<'m, 'w> {
    made: &'m Made<'m>,
    file: Writer<'w>,
    rng: &'m mut Prng,
}

impl InGroup for Write<'_, '_> {
    type Output = Result<()>;
    fn run<G: Group>(self) -> Result<()> {
        self.made.write::<G>(self.file, self.rng)
    }
}

fn unknown(group: &str) -> Error {
    Error::usage(format!("{group} is not a group in which a half can be prepared"))
}

/// The data that a half is written from.
struct Made<'m> {
    basis: &'m Basis<'m>,
    ledger: Id,
    seed: &'m [u8; 32],
    set: &'m HashedSet<'m>,
    step: &'m dyn Fn(usize) -> Result<()>,
}

impl Made<'_> {
    /// Writes the half, with points of the group `G` under a fresh key.
    fn write<G: Group>(&self, mut file: Writer, rng: &mut Prng) -> Result<()> {
        let Made { basis, set, .. } = *self;
        let (key, inverse) = G::Key::with_inverse(rng);
        file.write(&self.ledger)?;
        file.write(self.seed)?;
        file.write(&basis.describe(&set.own()[..basis.set.len()])?)?;
        file.write(key.as_bytes())?;
        file.write(inverse.as_bytes())?;
        for hashes in set.own().chunks(FRAME) {
            let points = basis.threads.run(|| G::map_and_raise(hashes, &key)).map_err(unlucky)?;
            let points = Zeroizing::new(points);
            points.iter().try_for_each(|point| file.write(point.as_ref()))?;
            (self.step)(points.len())?;
        }
        file.end()
    }
}

/// A half that was read and found intact, and is not spent yet.
pub struct Half {
    file: Opened,
    ticket: Ticket,
    ledger: Ledger,
    offline: Offline,
}

/// Reads a half. Returns the set of `basis`, hashed and padded with the dummies of the half, and the half itself, ready
/// to be spent. Takes the length of a point in memory for each item and dummy, and 32 bytes more if the set is padded.
///
/// # Errors
/// [`Error::Input`], naming the file, if it cannot be read, is damaged or not a half, or was spent before, or if its identity,
/// version, basis or ledger is a different one. [`Error::Usage`] for sizes that [`check_size`] refuses, and for a ledger that
/// others can change. [`Error::Output`] if the ledger cannot be used, or the file could not be deleted once spent.
pub fn open<'a>(
    path: &Path,
    ledger: &Ledger,
    identity: &Identity,
    basis: &Basis<'a>,
) -> Result<(HashedSet<'a>, Half)> {
    basis.check()?;
    let mut file = Reader::open(path, &HALF, identity)?;
    let ticket = Ticket { kind: &HALF, file: file.id(), ledger: file.array()? };
    ledger.check(&ticket, path)?;
    let seed = Secret::new(file.array()?);
    let hashed = basis.hashed(&mut Prng::from_seed(&seed));
    basis.compare(&mut file, &hashed.own()[..basis.set.len()])?;
    let group = group::facts(basis.group).ok_or_else(|| unknown(basis.group))?;
    let (mut key, mut inverse) = (Secrets::zeros(group.key), Secrets::zeros(group.key));
    file.read(&mut key)?;
    file.read(&mut inverse)?;
    // Uses our own size; a file of any other size was refused above.
    let mut points = Secrets::zeros(basis.announced() * group.point);
    file.read(&mut points)?;
    let file = file.end()?;
    file.can_be_destroyed()?;
    let offline = Offline { group: group.name, key, inverse, points };
    Ok((hashed, Half { file, ticket, ledger: ledger.clone(), offline }))
}

impl Half {
    /// Spends the half, unless `stop` fails, and returns its contents. By then the half is entered in the ledger, the
    /// part of its file with the keys is overwritten, and the file is deleted, all synced to disk. If several processes have
    /// copies of one half, only one succeeds. A file whose head has changed is left alone, and one that has lost its name is
    /// not deleted, nor is another one of that name; in these cases `warn` is called.
    ///
    /// # Errors
    /// [`Error::Input`] if the half was spent, or the ledger replaced, meanwhile; [`Error::Usage`] for a ledger that others can
    /// change; [`Error::Output`] if the ledger cannot be written or the file cannot be deleted; and the errors of `stop`.
    pub(crate) fn spend(self, stop: &dyn Fn() -> Result<()>, warn: &mut dyn FnMut(&str)) -> Result<Offline> {
        self.ledger.enter(&self.ticket, &self.file.name, stop)?;
        self.file.destroy(warn)?;
        Ok(self.offline)
    }
}

impl fmt::Debug for Half {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Half({})", self.file.name.display())
    }
}

#[cfg(test)]
#[path = "half_tests.rs"]
mod tests;
