//! The settings of a random run of two: a protocol, or the parties' own choice, and its options.

use super::case::{Terms, chance, pick};
use veilset::operations::Announced;
use veilset::planner::Preference;
use veilset::protocols::{self, Attachment, Offer, Protocol, groups};
use veilset::rng::Prng;

/// The settings of both sides. In arrays, the receiver precedes the sender.
pub struct How {
    /// The protocol; `None` if the parties pick one.
    pub protocol: Option<&'static Protocol>,
    /// Whether each party names the protocol. A party that does not allows it among others.
    names: [bool; 2],
    /// Whether a party that names no protocol says `auto`.
    says_auto: [bool; 2],
    prefer: [Preference; 2],
    /// The group; `None` for the default.
    group: Option<&'static str>,
    malicious: bool,
    shards: Option<u64>,
    /// Whether each party prepares its half.
    pub prepares: [bool; 2],
}

impl How {
    /// Returns random settings that suit these terms and sizes.
    pub fn random(rng: &mut Prng, terms: &Terms, [receiver, sender]: [Announced; 2]) -> How {
        let operation = terms.operation;
        let offer = |p: &Protocol| p.offer(operation).copied();
        let fits = |p: &&'static Protocol| {
            let sizes = [receiver.size + p.inserted(operation, sender), sender.size];
            offer(p).is_some_and(|offer| offer.takes(sizes) && offer.reveals_count == terms.reveals)
        };
        let mut all: Vec<&'static Protocol> = protocols::ALL.into_iter().filter(fits).collect();
        // In one of three runs, the parties pick a protocol.
        let protocol = if chance(rng, 3) { None } else { Some(pick(rng, &all)) };
        let picked = |p: &Protocol| {
            let terms = veilset::operations::Terms {
                payload: terms.sent > 0,
                ..veilset::operations::Terms::default()
            };
            offer(p).is_some_and(|offer| offer.may_be_picked(&terms))
        };
        // If no protocol may be picked, all remain.
        let none = !all.iter().any(|p| picked(p));
        all.retain(|p| protocol.map_or(none || picked(p), |protocol| *p == protocol));
        let groups = pick(rng, &all).groups;
        let group = chance(rng, if protocol.is_some() { 2 } else { 4 }).then(|| pick(rng, groups));
        all.retain(|p| group.is_none_or(|group| p.groups.contains(&group)));
        // Decides whether the run has a property that some of the remaining protocols offer. If so, the others are dropped.
        let mut asks = |rng: &mut Prng, one_in, property: fn(&Offer) -> bool| {
            let has = |p: &&'static Protocol| offer(p).is_some_and(|offer| property(&offer));
            let asked = all.iter().any(has) && chance(rng, one_in);
            if asked {
                all.retain(has);
            }
            asked
        };
        let malicious = asks(rng, 2, |offer| offer.malicious_sender);
        let shards = asks(rng, 3, |offer| offer.takes_with(Attachment::Shards)).then(|| 2 + rng.below(5));
        // A half is for a run in one piece.
        let prepares = [(); 2].map(|()| shards.is_none() && chance(rng, 4));
        let prepared = prepares != [false; 2]
            && all.iter().any(|p| offer(p).is_some_and(|offer| offer.takes_with(Attachment::Half)));
        let prepares = prepares.map(|prepares| prepares && prepared);
        // A party that prepares in the group of one protocol must not allow protocols in other groups.
        let alone = |at: usize| prepares[at] || protocol.is_some_and(|p| !picked(p));
        let names = [0, 1].map(|at| protocol.is_some() && (alone(at) || !chance(rng, 8)));
        let names = if names == [false; 2] { [protocol.is_some(); 2] } else { names };
        How {
            protocol,
            names,
            says_auto: [(); 2].map(|()| chance(rng, 2)),
            prefer: [(); 2].map(|()| pick(rng, &Preference::ALL)),
            group,
            malicious,
            shards,
            prepares,
        }
    }

    /// Returns a party's options for these settings.
    pub fn words(&self, party: usize) -> Vec<String> {
        let mut words = Vec::new();
        let mut say = |word: String| words.push(word);
        match self.protocol {
            Some(protocol) if self.names[party] => say(format!("--protocol={protocol}")),
            _ => {
                if self.says_auto[party] {
                    say("--protocol=auto".into());
                }
                say(format!("--prefer={}", self.prefer[party]));
            }
        }
        if let Some(shards) = self.shards {
            say(format!("--shards={shards}"));
        }
        if let Some(group) = self.group {
            say(format!("--group={group}"));
        }
        if self.malicious {
            say("--malicious-sender".into());
        }
        words
    }

    /// Returns the group in which a party prepares its half.
    pub fn group_of_half(&self) -> &'static str {
        self.group.unwrap_or(self.protocol.map_or(groups::CURVE25519, Protocol::group))
    }

    /// Returns the category of the settings.
    pub fn name(&self) -> String {
        let mut name = self.protocol.map_or("auto", |p| p.name).to_string();
        // Only one of the two names the protocol.
        if self.names[0] != self.names[1] {
            name += " or auto";
        }
        name += &self.group.map_or_else(String::new, |group| format!(" over {group}"));
        for (is, what) in [(self.malicious, " malicious"), (self.shards.is_some(), " in shards")] {
            name += if is { what } else { "" };
        }
        name
    }
}
