//! The parties of a mesh: a list that is the same for all of them.
//!
//! ```toml
//! leader = "north"
//!
//! [[party]]
//! name = "north"
//! fingerprint = "a5dwh-2s9e4-w3tmf-xa39z-z8ttd-ch6ws-jjk7s-2y6j3"
//! address = "north.example.org:7001" # where it listens; omitted by a party that only connects
//! ```
//!
//! The leader is party 1; the others follow in the order of the file. If both parties of a pair have an address, the one whose
//! fingerprint comes first listens and the other connects; otherwise the one without an address connects. So each party needs
//! one port at most, and a party behind a firewall needs none. The order of the list does not decide: if it did, two parties
//! whose lists differ in it could both wait for the other, and never learn of the difference.
//!
//! A front end reads the file into [`Listed`]; [`Roster::new`] checks it, and [`Roster::me`] finds our own entry.

use super::Fingerprint;
use super::connect::Address;
use crate::channel::{Mesh, Names};
use crate::error::{Error, Result, Seat, shown};
use crate::hash::Domain;
use crate::spelling::{IDENTITY, command};
use serde::{Deserialize, Deserializer, de};
use std::fmt;
use std::num::NonZeroU8;

/// Maximum length of a name, in characters.
const LONGEST_NAME: usize = 64;
/// Maximum length of an address, in characters: a host of 255, two brackets, a colon and a port.
const LONGEST_ADDRESS: usize = 263;

/// The list as written in its file. The keys in the file are the names of the fields, with hyphens.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Listed {
    /// The name of the leader, which is party 1.
    pub leader: String,
    /// The parties, in the order of the file.
    #[serde(default)]
    pub party: Vec<ListedParty>,
}

/// A party's entry in the file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ListedParty {
    /// The name by which all parties know it.
    pub name: String,
    /// The fingerprint of the party's identity.
    #[serde(deserialize_with = "parsed")]
    pub fingerprint: Fingerprint,
    /// The address where it listens, as HOST:PORT; `None` if it only connects.
    pub address: Option<String>,
}

fn parsed<'de, D: Deserializer<'de>>(from: D) -> Result<Fingerprint, D::Error> {
    String::deserialize(from)?.parse().map_err(de::Error::custom)
}

/// A checked list of parties, in the order of their numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roster {
    members: Vec<Member>,
    source: String,
}

/// A party of a list. It is displayed as "party 3 (south)", for instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    number: NonZeroU8,
    name: String,
    fingerprint: Fingerprint,
    address: Option<String>,
}

/// A list of parties, and our entry in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Me {
    roster: Roster,
    /// The index of our entry among the members.
    own: usize,
}

impl Roster {
    /// The largest number of parties.
    pub const MOST: usize = Mesh::MOST;

    /// Checks the list that was read from the file `source`.
    ///
    /// # Errors
    /// [`Error::Usage`] if there are fewer than two parties or more than [`Roster::MOST`], or if two have the same name,
    /// fingerprint or address. Also if a name or an address is malformed, if the leader is not listed, or if two parties have
    /// no address, so that neither can connect to the other.
    pub fn new(listed: Listed, source: &str) -> Result<Roster> {
        let members = numbered(listed).map_err(|what| wrong(source, &what))?;
        Ok(Roster { members, source: source.into() })
    }

    /// Returns all parties, in the order of their numbers.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Returns the name of the file that the list was read from, for messages.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns a hash of everything that must be the same for all parties: their order, names, fingerprints and addresses.
    pub fn digest(&self) -> [u8; 32] {
        let mut bytes = vec![self.members.len() as u8];
        for Member { name, fingerprint, address, .. } in &self.members {
            // An address is never empty.
            let address = address.as_deref().unwrap_or_default();
            for part in [name.as_bytes(), fingerprint.as_bytes().as_slice(), address.as_bytes()] {
                bytes.extend((part.len() as u64).to_le_bytes());
                bytes.extend(part);
            }
        }
        Domain::without_session("the list of the parties of a mesh").hash(&[&bytes])
    }

    /// Returns the list with the party of this name as ours.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is no such party.
    pub fn me(self, name: &str) -> Result<Me> {
        match self.members.iter().position(|member| member.name == name) {
            Some(own) => Ok(Me { roster: self, own }),
            None => {
                let names = self.members.iter().map(|member| format!("\"{}\"", member.name));
                let what = format!(
                    "there is no party \"{}\" among {}. Give our own name in that list, or correct the list for all parties",
                    shown(name),
                    names.collect::<Vec<_>>().join(", ")
                );
                Err(wrong(&self.source, &what))
            }
        }
    }

    /// The names, for messages about the channels.
    pub(super) fn names(&self) -> Names {
        self.members.iter().map(|member| member.name.clone()).collect()
    }
}

fn wrong(source: &str, what: &str) -> Error {
    Error::usage(format!("the list of parties {source}: {what}"))
}

/// Checks the parties and numbers them. The error states the problem and the remedy.
fn numbered(listed: Listed) -> Result<Vec<Member>, String> {
    let Listed { leader, party } = listed;
    match party.len() {
        n @ (0 | 1) => {
            return Err(format!(
                "it has too few [[party]] tables ({n}): at least 2 are needed. Add the others"
            ));
        }
        n if n > Roster::MOST => {
            return Err(format!("it has {n} parties, more than the maximum of {}. Omit some", Roster::MOST));
        }
        _ => {}
    }
    party.iter().try_for_each(well_formed)?;
    for (i, one) in party.iter().enumerate() {
        party[..i].iter().try_for_each(|other| distinct(other, one))?;
    }
    if !party.iter().any(|party| party.name == leader) {
        return Err(format!(
            "the leader, \"{}\", is not among the parties. Correct \"leader\", or add the party",
            shown(&leader)
        ));
    }
    let (first, others): (Vec<_>, Vec<_>) = party.into_iter().partition(|party| party.name == leader);
    let numbers = (1..=u8::MAX).filter_map(NonZeroU8::new);
    let members = first.into_iter().chain(others).zip(numbers);
    let members = members.map(|(ListedParty { name, fingerprint, address }, number)| Member {
        number,
        name,
        fingerprint,
        address,
    });
    Ok(members.collect())
}

/// Checks an entry by itself.
fn well_formed(party: &ListedParty) -> Result<(), String> {
    let ListedParty { name, address, .. } = party;
    let named = name.trim() == name && !name.is_empty() && name.chars().count() <= LONGEST_NAME;
    if !named || !printable(name) {
        return Err(format!(
            "\"{}\" cannot be a party's name: use 1 to {LONGEST_NAME} printable characters, without quotation marks, \
             and without spaces at the ends",
            shown(name)
        ));
    }
    let Some(address) = address else { return Ok(()) };
    if !printable(address) {
        return Err(format!(
            "\"{}\" is not an address of \"{name}\": it has a character that an address cannot have. Write HOST:PORT",
            shown(address)
        ));
    }
    if address.chars().count() > LONGEST_ADDRESS {
        return Err(format!(
            "the \"address\" of \"{name}\" has more than {LONGEST_ADDRESS} characters, too many for an address. Write HOST:PORT"
        ));
    }
    let parsed = Address::parse_of(address, &format!("\"{name}\"'s"), name);
    parsed.map(drop).map_err(|e| format!("the \"address\" of \"{name}\": {}", e.marked()))
}

/// Whether a terminal shows the text as it is, and our messages can put it between quotation marks.
fn printable(text: &str) -> bool {
    text.chars().all(|c| c == '\'' || c.escape_debug().eq([c]))
}

/// Checks that two entries differ where they must, and that one of them can connect to the other.
fn distinct(one: &ListedParty, other: &ListedParty) -> Result<(), String> {
    let (a, b) = (&one.name, &other.name);
    if a == b {
        return Err(format!("two parties are called \"{a}\". Give each a name of its own"));
    }
    if one.fingerprint.is(&other.fingerprint) {
        return Err(format!(
            "\"{a}\" and \"{b}\" have the same \"fingerprint\". Ask both what {} prints: each needs \
             an identity of its own",
            command!("identity show")
        ));
    }
    if one.address.is_none() && other.address.is_none() {
        return Err(format!(
            "neither \"{a}\" nor \"{b}\" has an \"address\", so they cannot connect to each other. Add the address of \
             one of them"
        ));
    }
    match &one.address {
        Some(address) if one.address == other.address => Err(format!(
            "\"{a}\" and \"{b}\" have the same \"address\", {address}. Give each an address of its own"
        )),
        Some(_) | None => Ok(()),
    }
}

impl Member {
    /// Returns the party's seat in the run.
    pub fn seat(&self) -> Seat {
        Seat::numbered(self.number)
    }

    /// Returns the party's number: 1 for the leader.
    pub fn number(&self) -> NonZeroU8 {
        self.number
    }

    /// Returns the party's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the fingerprint that the party must prove.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Returns the address where the party listens; `None` if it only connects.
    pub fn address(&self) -> Option<&str> {
        self.address.as_deref()
    }

    /// Whether it connects to the other party, which listens.
    fn connects_to(&self, other: &Member) -> bool {
        match (&self.address, &other.address) {
            (Some(_), Some(_)) => other.fingerprint.as_bytes() < self.fingerprint.as_bytes(),
            (None, Some(_)) => true,
            // A roster has no two parties without an address.
            (Some(_), None) | (None, None) => false,
        }
    }
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "party {} ({})", self.number, self.name)
    }
}

impl Me {
    /// Returns the list.
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// Returns our entry.
    pub fn own(&self) -> &Member {
        &self.roster.members[self.own]
    }

    /// Whether we are the leader.
    pub fn leads(&self) -> bool {
        self.own == 0
    }

    /// Iterates over all other parties, in the order of their numbers.
    pub fn others(&self) -> impl Iterator<Item = &Member> {
        let own = self.own().number;
        self.roster.members.iter().filter(move |member| member.number != own)
    }

    /// Iterates over the parties that we connect to.
    pub fn connects_to(&self) -> impl Iterator<Item = &Member> {
        let own = self.own();
        self.others().filter(move |other| own.connects_to(other))
    }

    /// Iterates over the parties that connect to us.
    pub fn listens_for(&self) -> impl Iterator<Item = &Member> {
        let own = self.own();
        self.others().filter(move |other| other.connects_to(own))
    }

    /// Returns our address in the list if any party connects to it.
    pub fn listens_at(&self) -> Option<&str> {
        self.own().address().filter(|_| self.listens_for().next().is_some())
    }

    /// Refuses an identity that does not match our entry.
    ///
    /// # Errors
    /// [`Error::Usage`] if the fingerprint in our entry differs from `ours`.
    pub fn check_identity(&self, ours: &Fingerprint) -> Result<()> {
        let Member { name, fingerprint, .. } = self.own();
        if fingerprint.is(ours) {
            return Ok(());
        }
        let other = self.others().find(|member| member.fingerprint.is(ours));
        let other =
            other.map_or("that of no party there".into(), |other| format!("that of \"{}\"", other.name));
        Err(wrong(
            &self.roster.source,
            &format!(
                "\"{name}\" has the fingerprint {fingerprint}, but our identity has {ours}, which is {other}. Give \
                 our own name or the identity of \"{name}\" ({IDENTITY}), or correct the list for all parties"
            ),
        ))
    }
}

#[cfg(test)]
#[path = "roster_tests.rs"]
mod tests;
