//! The first messages between two parties of a mesh, sent as soon as they are connected: the versions that they speak, and
//! their lists of the parties, which must be the same.
//!
//! Each sends its list before it reads the other one, so both see every difference. The list is no secret from a party on it:
//! all have the same list, or the run ends here. It is compared before all parties are connected, because parties whose lists
//! differ may never all find each other.

use super::roster::{Member, Roster};
use crate::channel::{Channel, Message, versions};
use crate::error::{Difference, Error, Result, Seat, shown};
use crate::json;
use crate::spelling::setting;
use serde::{Deserialize, Serialize};

const LIST: Message<[u8]> = Message::new(0x10, "list of the parties: JSON");
/// The first message of a party without a list: its hello.
const NO_LIST: u16 = 2;
/// Maximum length of a list in bytes, more than the longest list that [`Roster::new`] accepts needs.
const MAX_LIST: usize = 1 << 16;

/// A party's entry in a list. The leader comes first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    name: String,
    fingerprint: String,
    address: Option<String>,
}

impl Line {
    fn of(member: &Member) -> Line {
        Line {
            name: member.name().into(),
            fingerprint: member.fingerprint().to_string(),
            address: member.address().map(Into::into),
        }
    }

    fn place(&self) -> String {
        match &self.address {
            Some(address) => format!("{} at {address}", self.name),
            None => format!("{} without an address", self.name),
        }
    }
}

/// Exchanges versions and lists with the party at the other end.
///
/// # Errors
/// [`Error::Disagreement`] if the lists are not the same.
pub(crate) fn greet(channel: &mut Channel, roster: &Roster) -> Result<()> {
    versions(channel)?;
    let ours: Vec<_> = roster.members().iter().map(Line::of).collect();
    let bytes = json::made("a list of parties", serde_json::to_vec(&ours))?;
    channel.tx.send_bytes(LIST, &bytes)?;
    let theirs = channel.rx.recv_bounded(LIST, MAX_LIST);
    let theirs = theirs.map_err(|error| match channel.rx.unexpected() {
        Some(NO_LIST) => Error::Disagreement(vec![listed("a list", "none")]),
        _ => error,
    })?;
    let wrong = |what: &str| Error::misbehaves(format!("its list of the parties {what}"));
    let theirs: Vec<Line> = serde_json::from_slice(&theirs)
        .map_err(|e| wrong(&format!("does not fit this version ({})", shown(&e.to_string()))))?;
    if theirs.len() > Roster::MOST {
        return Err(wrong(&format!(
            "has too many parties: {}, at most {} can be",
            theirs.len(),
            Roster::MOST
        )));
    }
    let differences = differences(&ours, &theirs);
    match (differences.is_empty(), ours == theirs) {
        (true, true) => Ok(()),
        (true, false) => Err(wrong("has a party twice")),
        (false, _) => Err(Error::Disagreement(differences)),
    }
}

/// The error of a party without a list for what the other party sent in place of its hello, if that is a list.
pub(crate) fn has_list(channel: &Channel, error: Error) -> Error {
    match channel.rx.unexpected() == Some(LIST.tag()) {
        true => Error::Disagreement(vec![listed("none", "a list")]),
        false => error,
    }
}

fn listed(ours: &str, theirs: &str) -> Difference {
    let what = concat!("list of the parties (", setting!(parties), ")");
    Difference::new(Seat::PEER, "parties", what, ours.into(), theirs.into())
}

/// The differences between the lists. None is merely a consequence of another one.
fn differences(ours: &[Line], theirs: &[Line]) -> Vec<Difference> {
    let mut all = Vec::new();
    let mut differ = |what, ours: &str, theirs: &str| {
        let (ours, theirs) = (ours.into(), shown(theirs));
        all.push(Difference::new(Seat::PEER, "parties", what, ours, theirs));
    };
    let named = |line: &Line| format!("{} for {}", line.name, line.fingerprint);
    let keyed = |line: &Line| format!("{} for {}", line.fingerprint, line.name);
    if let ([our, ..], [their, ..]) = (ours, theirs)
        && our.name != their.name
        && our.fingerprint != their.fingerprint
    {
        differ(concat!("leader in the list of parties (", setting!(parties), ")"), &our.name, &their.name);
    }
    for our in ours {
        let same_key = theirs.iter().find(|their| their.fingerprint == our.fingerprint);
        let same_name = theirs.iter().find(|their| their.name == our.name);
        let their = match (same_key, same_name) {
            (Some(their), _) => their,
            (None, Some(their)) => {
                differ(
                    concat!("fingerprint in the list of parties (", setting!(parties), ")"),
                    &keyed(our),
                    &keyed(their),
                );
                their
            }
            (None, None) => {
                differ(concat!("a party of the list (", setting!(parties), ")"), &our.name, "none");
                continue;
            }
        };
        if our.name != their.name {
            differ(
                concat!("name in the list of parties (", setting!(parties), ")"),
                &named(our),
                &named(their),
            );
        }
        if our.address != their.address {
            let theirs = Line { name: our.name.clone(), ..their.clone() };
            differ(
                concat!("address in the list of parties (", setting!(parties), ")"),
                &our.place(),
                &theirs.place(),
            );
        }
    }
    let is_in = |lines: &[Line], one: &Line| {
        lines.iter().any(|line| line.name == one.name || line.fingerprint == one.fingerprint)
    };
    for their in theirs.iter().filter(|their| !is_in(ours, their)) {
        differ(concat!("a party of the list (", setting!(parties), ")"), "none", &their.name);
    }
    // The order of the parties on both lists. A difference about the leader was already reported.
    let leader =
        |line: &Line| [ours, theirs].iter().any(|lines| lines.first().is_some_and(|l| l.name == line.name));
    let order = |lines: &[Line], others: &[Line]| -> Vec<String> {
        let both = lines.iter().filter(|line| others.iter().any(|other| other.name == line.name));
        both.filter(|line| !leader(line)).map(|line| line.name.clone()).collect()
    };
    let (our, their) = (order(ours, theirs), order(theirs, ours));
    if our != their {
        differ(
            concat!("order of the list of parties (", setting!(parties), ")"),
            &our.join(", "),
            &their.join(", "),
        );
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Fault;
    use crate::net::tests::identity;
    use crate::net::{Listed, ListedParty};
    use crate::spelling::plain;
    use std::thread;

    /// Our error for a party whose list has `lines` lines, the first two of which are ours.
    fn greeted_with(lines: usize) -> Error {
        let party = |name: &str| ListedParty {
            name: name.into(),
            fingerprint: identity().fingerprint(),
            address: Some(format!("{name}:1")),
        };
        let listed = Listed { leader: "north".into(), party: ["north", "south"].map(party).into() };
        let roster = Roster::new(listed, "parties.toml").unwrap();
        let ours = roster.members().iter().map(Line::of);
        let more = (0..lines).map(|i| line(&format!("p{i} f{i} -")));
        let theirs: Vec<_> = ours.chain(more).take(lines).collect();
        let (mut here, mut there) = Channel::pair();
        thread::scope(|scope| {
            scope.spawn(move || {
                versions(&mut there).unwrap();
                there.tx.send_bytes(LIST, &serde_json::to_vec(&theirs).unwrap()).unwrap();
                there.rx.recv_bounded(LIST, MAX_LIST).unwrap();
            });
            greet(&mut here, &roster).unwrap_err()
        })
    }

    #[test]
    fn a_list_with_more_parties_than_there_can_be_is_misbehaviour() {
        assert!(matches!(greeted_with(Roster::MOST), Error::Disagreement(_)));
        for lines in [Roster::MOST + 1, 1000] {
            let error = greeted_with(lines);
            assert_eq!(error.fault(), Some(Fault::Misbehaved), "{error}");
            let words = format!("its list of the parties has too many parties: {lines}, at most 32 can be");
            assert!(error.to_string().contains(&words), "{error}");
        }
    }

    fn line(text: &str) -> Line {
        let [name, fingerprint, address] = *text.split(' ').collect::<Vec<_>>() else { panic!("{text}") };
        let address = (address != "-").then(|| address.into());
        Line { name: name.into(), fingerprint: fingerprint.into(), address }
    }

    /// The differences between "north n a:1, south s b:1, east e -, west w c:1" and this list: the name, ours and theirs.
    fn differing(theirs: &str) -> Vec<String> {
        let lines = |text: &str| text.split(", ").map(line).collect::<Vec<_>>();
        let ours = lines("north n a:1, south s b:1, east e -, west w c:1");
        let differences = differences(&ours, &lines(theirs));
        let words = |d: Difference| {
            assert_eq!((d.term, d.who), ("parties", Seat::PEER));
            let what = plain(d.what);
            assert!(what.contains("(`parties`)"));
            let what = what.replace(" in the list of parties (`parties`)", "");
            format!("{what}: {} / {}", d.ours, d.theirs)
        };
        differences.into_iter().map(words).collect()
    }

    #[test]
    fn each_difference_is_named_and_no_consequence_of_it() {
        let party = "a party of the list (`parties`)";
        let order = "order of the list of parties (`parties`)";
        for (theirs, expected) in [
            ("north n a:1, south s b:1, east e -, west w c:1", vec![]),
            ("south s b:1, north n a:1, east e -, west w c:1", vec!["leader: north / south".into()]),
            (
                "north n a:1, west w c:1, south s b:1, east e -",
                vec![format!("{order}: south, east, west / west, south, east")],
            ),
            (
                "north n a:1, south s b:2, east e d:1, west w -",
                vec![
                    "address: south at b:1 / south at b:2".into(),
                    "address: east without an address / east at d:1".into(),
                    "address: west at c:1 / west without an address".into(),
                ],
            ),
            (
                "north n a:1, south x b:1, east e -, west w c:1",
                vec!["fingerprint: s for south / x for south".into()],
            ),
            (
                "north n a:1, southern s b:1, east e -, west w c:1",
                vec!["name: south for s / southern for s".into()],
            ),
            (
                "north n a:1, south e b:1, east s -, west w c:1",
                vec![
                    "name: south for s / east for s".into(),
                    "address: south at b:1 / south without an address".into(),
                    "name: east for e / south for e".into(),
                    "address: east without an address / east at b:1".into(),
                ],
            ),
            ("north n a:1, south s b:1, east e -", vec![format!("{party}: west / none")]),
            ("north n a:1, south s b:1, up u d:1, east e -, west w c:1", vec![format!("{party}: none / up")]),
            // Text from the peer is escaped.
            ("u\u{1b}p u d:1, south s b:1, east e -, west w c:1", {
                let leader = "leader: north / u\\u{1b}p".to_string();
                vec![leader, format!("{party}: north / none"), format!("{party}: none / u\\u{{1b}}p")]
            }),
        ] {
            assert_eq!(differing(theirs), expected, "{theirs}");
        }
    }
}
