//! The offline half of a session: F_k(H(x)) of our own set under a fresh key, computed and kept before the peer is
//! met ([`prepare`], [`open`]).
//!
//! **One key, one session.** A key, and everything computed under it, may meet one peer in one session, even in one
//! that fails: in a second one an item has the same point again, so that what the two sessions show is joined item by
//! item. A receiver of count or sum has a bit for each of our points; if it takes part with the set of those of its
//! items whose index has bit j set, for each j, about log2 |Y| numbers of matches become the matches themselves. And a
//! receiver of dh-psi has |Y| points of its choice raised by our key, so one session in which we are its sender tests as
//! many guesses against what another one showed.
//!
//! So a half is *spent* before the first message of the protocol goes out: its id goes into a [`Ledger`], which is synced
//! to the disk, then its file is overwritten where the keys are, and deleted. Key and points are to be had from
//! `Half::spend` alone, so a run cannot forget it. Where the program dies in between, the half is lost; whoever restores
//! a copy of the file is refused by the ledger, and the half is refused where its ledger is not. Not noticed is a file
//! that comes back together with its ledger, or an older state of that (SECURITY.md).
//!
//! **What is in it.** The id of the ledger, the seed of random dummies, a digest of the set with what decides about the
//! items' encoding, so that a half of another set is refused before the peer is met, the key and the one that takes it
//! off, and the points. So its length says no more than the size that the peer is told. Hashes are not in it: they are
//! made again, which takes little time. All of it is encrypted under our identity (see `sealed.rs`).
//!
//! **The order.** Points stand in the order of the items, and each run draws its permutation when it sends them, as
//! it does without a half: that costs nothing, and an order that was never written down cannot be found in a backup.
//! One that were fixed here would protect nothing more, as key and points meet one session only.
//!
//! **What the peer sees.** The same messages, of the same sizes; that the time before them is shorter, so that there
//! was a half. The receiver of a union computes the points of the dummies it inserts for the peer when it runs, since
//! their number is the peer's word.

use super::ledger::{Ledger, Ticket};
use super::sealed::{Id, Kind, Opened, Reader, Writer};
use crate::channel::Wire;
use crate::error::{Error, Result};
use crate::group::curve25519::Curve25519;
use crate::group::raised::{Offline, unlucky};
use crate::group::ristretto255::Ristretto255;
use crate::group::{Group, Key};
use crate::hash::{Domain, ItemHash};
use crate::hashed::{Dummies, Hashed};
use crate::item::ItemSet;
use crate::net::Identity;
use crate::params::MAX_SET;
use crate::rng::Prng;
use crate::secret::{Secret, Secrets};
use crate::table::Destination;
use crate::threads::Threads;
use std::fmt;
use std::path::Path;
use zeroize::Zeroizing;

/// A file of a half.
pub(super) static HALF: Kind = Kind {
    name: "prepared half",
    made_by: "veilset prepare",
    format: 3,
    domain: "veilset 2026-11 prepared half, key of all files",
    uses: 1,
};

/// Points computed at a time.
const FRAME: usize = 1 << 13;
/// More than any words for how keys came to be.
const LONGEST_WORDS: usize = 1 << 10;

/// What a half is made from. A run that uses it has to have the same.
#[derive(Clone, Copy)]
pub struct Basis<'a> {
    /// Our set, in the order of its rows.
    pub set: &'a ItemSet,
    /// Number of key columns an item is made of.
    pub key_columns: usize,
    /// How the bytes of a key came to be, in words.
    pub normalisation: &'a str,
    /// The size that the set is filled up to with dummies.
    pub pad_to: Option<usize>,
    /// The kind of its dummies ([`crate::operations::Operation::dummies`]).
    pub dummies: Dummies,
    /// The group of the points ([`crate::protocols::Protocol::groups`]).
    pub group: &'static str,
    /// What it is made on.
    pub threads: &'a Threads,
}

impl<'a> Basis<'a> {
    /// The size of the set with its dummies.
    pub fn announced(&self) -> usize {
        self.pad_to.unwrap_or(self.set.len())
    }

    /// Refuses sizes that no protocol takes.
    ///
    /// # Errors
    /// [`Error::Usage`].
    pub fn check(&self) -> Result<()> {
        let (n, announced) = (self.set.len(), self.announced());
        if announced < n {
            return Err(Error::Usage(format!(
                "`pad_to={announced}` is less than our {n} items. Use a number that no set of yours exceeds"
            )));
        }
        if announced > MAX_SET {
            return Err(Error::Usage(format!(
                "a set of {announced} items is more than this version supports ({MAX_SET})"
            )));
        }
        Ok(())
    }

    /// The set, hashed and padded.
    pub(crate) fn hashed(&self, rng: &mut Prng) -> Hashed<'a> {
        self.threads.run(|| match (self.pad_to, self.dummies) {
            (None, _) => Hashed::new(self.set),
            (Some(to), Dummies::Listed) => Hashed::padded_from_list(self.set, to),
            (Some(to), Dummies::Random) => Hashed::padded(self.set, to, rng),
        })
    }

    /// Whether it is padded, and whether from the list.
    fn padding(&self) -> [bool; 2] {
        let padded = self.pad_to.is_some();
        [padded, padded && self.dummies == Dummies::Listed]
    }

    /// What a half says of its basis: lengths before what they are of, numbers little-endian.
    fn describe(&self, items: &[ItemHash]) -> Result<Vec<u8>> {
        let words = self.normalisation.as_bytes();
        if words.len() > LONGEST_WORDS {
            return Err(Error::Bug("the words for how keys came to be are too long".into()));
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

    /// Refuses a half of another basis than ours, whose items hash to `items`.
    fn compare(&self, file: &mut Reader, items: &[ItemHash]) -> Result<()> {
        let (words, group) = (file.words(LONGEST_WORDS)?, file.words(LONGEST_WORDS)?);
        let columns = file.number()?;
        let [padded, listed] = file.array::<2>()?.map(|b| b == 1);
        let (announced, n) = (file.number()?, file.number()?);
        let made_of: [u8; 32] = file.array()?;
        let other = |what: String| Err(file.other(what));
        if words != self.normalisation {
            return other(format!(
                "it was prepared with keys as {words}, and this run has them as {} (`normalize`, `encoding`)",
                self.normalisation
            ));
        }
        if group != self.group {
            return other(format!("it was prepared in the group {group}, and this run is in {}", self.group));
        }
        if columns != self.key_columns as u64 {
            return other(format!(
                "it was prepared with {columns} key columns, and this run has {} (`key`)",
                self.key_columns
            ));
        }
        let pad_to = |to: Option<u64>| to.map_or("no `pad_to`".into(), |to| format!("`pad_to={to}`"));
        let (theirs, ours) = (padded.then_some(announced), self.pad_to.map(|to| to as u64));
        if theirs != ours {
            return other(format!(
                "it was prepared with {}, and this run has {}",
                pad_to(theirs),
                pad_to(ours)
            ));
        }
        if [padded, listed] != self.padding() {
            return other(match listed {
                true => "its dummies are those for the sender of a union, and this run's have to be others (it was \
                         prepared with `union_sender`)"
                    .into(),
                false => "its dummies are not those for the sender of a union (it was prepared without \
                          `union_sender`)"
                    .into(),
            });
        }
        if n != items.len() as u64 {
            return other(format!("it was prepared for {n} keys, and the input now has {}", items.len()));
        }
        match made_of == digest(items) {
            true => Ok(()),
            false => {
                other("it was prepared for other keys than the input has now, or for another order".into())
            }
        }
    }
}

fn digest(items: &[ItemHash]) -> [u8; 32] {
    Domain::without_session("prepared half, digest of a set").hash_items(items)
}

/// Computes a half for a ledger, which is made if it is not there, and writes it to `output`, which the caller commits.
/// `step` hears how many points were computed since it was called last, and fails if it is not to go on. Takes 32 bytes
/// of memory for each item and dummy.
///
/// # Errors
/// [`Error::Usage`] for sizes that no protocol takes, [`Error::Output`], those of `step`.
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
    (in_group(basis.group)?.write)(&made, file, rng)
}

/// What a half is in a group.
struct InGroup {
    /// The group's name.
    name: &'static str,
    /// Bytes of a key.
    key: usize,
    /// Bytes of a point.
    point: usize,
    /// Writes one.
    write: fn(&Made, Writer, &mut Prng) -> Result<()>,
}

impl InGroup {
    const fn of<G: Group>() -> InGroup {
        InGroup {
            name: G::NAME,
            key: G::Key::BYTES,
            point: G::Point::SIZE,
            write: |made, file, rng| made.write::<G>(file, rng),
        }
    }
}

/// The groups in which half of a run can be prepared.
static GROUPS: [InGroup; 2] = [InGroup::of::<Curve25519>(), InGroup::of::<Ristretto255>()];

fn in_group(name: &str) -> Result<&'static InGroup> {
    let none = || Error::Usage(format!("{name} is not a group in which half of a run can be prepared"));
    GROUPS.iter().find(|group| group.name == name).ok_or_else(none)
}

/// What a half is written from.
struct Made<'m> {
    basis: &'m Basis<'m>,
    ledger: Id,
    seed: &'m [u8; 32],
    set: &'m Hashed<'m>,
    step: &'m dyn Fn(usize) -> Result<()>,
}

impl Made<'_> {
    /// Writes it, with points of a group under a fresh key.
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

/// A half that was read and is sound, and is not spent yet.
pub struct Half {
    file: Opened,
    ticket: Ticket,
    ledger: Ledger,
    offline: Offline,
}

/// Reads a half for a set: the set with the dummies of the half, and what it holds, to be spent. Takes 64 bytes of
/// memory for each item and dummy.
///
/// # Errors
/// [`Error::Input`], naming the file: there is none, it is no half or damaged, of another identity, version or
/// basis, of another ledger, or it was spent. [`Error::Output`] if the ledger cannot be used, or the file not be
/// deleted when it is spent.
pub fn open<'a>(
    path: &Path,
    ledger: &Ledger,
    identity: &Identity,
    basis: &Basis<'a>,
) -> Result<(Hashed<'a>, Half)> {
    basis.check()?;
    let mut file = Reader::open(path, &HALF, identity)?;
    let ticket = Ticket { kind: &HALF, file: file.id(), ledger: file.array()? };
    ledger.check(&ticket, path)?;
    let seed = Secret::new(file.array()?);
    let hashed = basis.hashed(&mut Prng::from_seed(&seed));
    basis.compare(&mut file, &hashed.own()[..basis.set.len()])?;
    let group = in_group(basis.group)?;
    let (mut key, mut inverse) = (Secrets::zeros(group.key), Secrets::zeros(group.key));
    file.read(&mut key)?;
    file.read(&mut inverse)?;
    // Our own size: that of the file is the same, or this was refused.
    let mut points = Secrets::zeros(basis.announced() * group.point);
    file.read(&mut points)?;
    let file = file.end()?;
    file.can_be_destroyed()?;
    let offline = Offline { group: group.name, key, inverse, points };
    Ok((hashed, Half { file, ticket, ledger: ledger.clone(), offline }))
}

impl Half {
    /// Spends the half, unless `stop` fails: it is in the ledger and its file is overwritten and gone, all on the disk,
    /// when this returns what was in it. Of several processes that have copies of one half, one succeeds. `warn` hears
    /// of another file that has its name and was left.
    ///
    /// # Errors
    /// [`Error::Input`] if it was spent meanwhile, [`Error::Output`] if the ledger cannot be written or the file not
    /// deleted, those of `stop`.
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
