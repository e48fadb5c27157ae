//! The abort message: the reason why a party gives up and, in a mesh, the party that caused it.
//!
//! Its first byte is the reason. A mesh is the connections of all parties of a list with all others. On a channel of a
//! mesh ([`Link`]), a second byte is the number of the party that caused the failure, or 0. On other channels there is no
//! second byte. The sender's claim is not verified, and a party that lies can accuse any other. So our error names the source
//! of a claim, and our own observations take precedence ([`super::Mesh`]).

use crate::error::{Error, Fault, Reason, Seat};
use std::num::NonZeroU8;
use std::sync::Arc;

impl Reason {
    /// The code of this reason in an abort message.
    pub(super) const fn code(self) -> u8 {
        match self {
            Reason::Cancelled => 1,
            Reason::Input => 2,
            Reason::Disagreement => 3,
            Reason::Messages => 4,
            Reason::Network => 5,
            Reason::Output => 6,
            Reason::Bug => 7,
            Reason::Refused => 8,
            // Used in a mesh only.
            Reason::Told => 9,
        }
    }

    /// The reason with this code; `None` if the code is unknown.
    fn decoded(code: u8) -> Option<Reason> {
        Reason::ALL.into_iter().find(|reason| reason.code() == code)
    }

    /// The reason for giving up because of this error.
    pub(super) fn of(error: &Error) -> Reason {
        match error {
            Error::Cancelled => Reason::Cancelled,
            Error::Input(_) | Error::Usage(_) => Reason::Input,
            Error::Disagreement(_) => Reason::Disagreement,
            Error::Peer { .. } => Reason::Messages,
            Error::Network(_) => Reason::Network,
            Error::Output(_) => Reason::Output,
            Error::Bug(_) => Reason::Bug,
            Error::Refused(_) => Reason::Refused,
        }
    }

    /// The reason in a mesh, where the receiver is not always the party that the error is about.
    pub(super) fn in_mesh(error: &Error) -> Reason {
        match error.fault() {
            // A reported failure is not passed on as our own observation.
            Some(Fault::GaveUp) => Reason::Told,
            Some(Fault::Stranger) => Reason::Network,
            // One of several misbehaves, and nobody can say which.
            Some(Fault::Misbehaved) if error.seat() == Some(Seat::SOMEBODY) => Reason::Told,
            Some(Fault::Misbehaved) | None => Reason::of(error),
        }
    }

    /// The error on our side for a peer that gives up with this code.
    pub(super) fn received(code: u8) -> Error {
        let reason = Reason::decoded(code);
        Error::gave_up(reason, format_args!("it {}", description(reason)))
    }
}

fn description(reason: Option<Reason>) -> &'static str {
    match reason {
        Some(Reason::Cancelled) => "was stopped on request",
        Some(Reason::Input) => "gave up because of its input or options",
        Some(Reason::Disagreement) => "gave up because the parties ask for different things",
        Some(Reason::Messages) => "gave up because it found our messages wrong",
        Some(Reason::Network) => "gave up because of the network",
        Some(Reason::Output) => "gave up because it could not write its result or log",
        Some(Reason::Bug) => "gave up because of a defect in its program",
        // The peer's limits are confidential: only its operators may disclose which one applied.
        Some(Reason::Refused) => "gave up because its policy refuses this run",
        Some(Reason::Told) | None => "gave up without a known reason",
    }
}

/// The names of the parties of a mesh, in the order of their numbers. The name of an unnamed party is empty.
#[derive(Debug, Clone)]
pub struct Names(Arc<[String]>);

impl FromIterator<String> for Names {
    fn from_iter<I: IntoIterator<Item = String>>(names: I) -> Names {
        Names(names.into_iter().collect())
    }
}

impl Names {
    /// The name of the party with this number; `None` if there is no such party.
    fn get(&self, number: NonZeroU8) -> Option<&str> {
        self.0.get(usize::from(number.get()) - 1).map(String::as_str)
    }

    /// Returns the number of parties.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// The party with this number as messages name it: "party 3 (south)".
    pub fn full(&self, number: NonZeroU8) -> String {
        match self.get(number) {
            None | Some("") => format!("party {number}"),
            Some(name) => format!("party {number} ({name})"),
        }
    }
}

/// The position of a channel in a mesh.
#[derive(Debug, Clone)]
pub struct Link {
    /// The number of the party at the other end.
    pub peer: NonZeroU8,
    /// Our own number.
    pub ours: NonZeroU8,
    /// The names of all parties.
    pub names: Names,
}

impl Link {
    /// Returns the error on our side for an abort message of the party at the other end, and the number of the party
    /// that it accuses; `None` if that is itself or us, or no party of the run.
    pub(super) fn received(&self, [code, accused]: [u8; 2]) -> (Error, Option<NonZeroU8>) {
        let accused = NonZeroU8::new(accused).filter(|&number| number != self.peer);
        let accused = accused.filter(|&number| self.names.get(number).is_some());
        let it = self.names.get(self.peer).filter(|name| !name.is_empty()).unwrap_or("it");
        let reason = Reason::decoded(code);
        let what = match accused {
            None => {
                format!("{it} {}. Ask {} for the cause, then run again", description(reason), self.called())
            }
            Some(number) if number == self.ours => {
                let why = because(reason, "us", "our messages");
                format!(
                    "{it} gave up because {why}, it says. Ask {} for the cause, then run again",
                    self.called()
                )
            }
            Some(number) => {
                let whom = self.names.full(number);
                let why = because(reason, &whom, &format!("the messages of {whom}"));
                format!("{it} gave up because {why}, it says. Ask both parties for the cause, then run again")
            }
        };
        let error = Error::Peer { who: Seat::PEER, fault: Fault::GaveUp, what, reason };
        (error.by(Seat::numbered(self.peer)), accused.filter(|&number| number != self.ours))
    }
}

impl Link {
    /// The party at the other end as messages name it where its number is already given.
    fn called(&self) -> &str {
        self.names.get(self.peer).filter(|name| !name.is_empty()).unwrap_or("that party")
    }
}

/// Describes a reason that the party `whom` caused; `messages` names that party's messages.
fn because(reason: Option<Reason>, whom: &str, messages: &str) -> String {
    match reason {
        Some(Reason::Messages) => format!("it found {messages} wrong"),
        Some(Reason::Network) => format!("it has no connection with {whom}"),
        Some(Reason::Told) => format!("it was told of a problem with {whom}"),
        Some(Reason::Disagreement) if whom == "us" => "it and we ask for different things".into(),
        Some(Reason::Disagreement) => {
            format!("it and {whom} ask for different things, or have different lists of parties")
        }
        _ => format!("of {whom}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::{ABORT, Channel, Message, header};

    const NUMBERS: Message<u64> = Message::new(1, "numbers");

    fn number(n: u8) -> NonZeroU8 {
        NonZeroU8::new(n).unwrap()
    }

    fn link(ours: u8, peer: u8) -> Link {
        let names = ["north", "east", "south"].map(String::from).into_iter().collect();
        Link { peer: number(peer), ours: number(ours), names }
    }

    /// The channels of parties 1 and 2 of three.
    fn pair() -> (Channel, Channel) {
        let (mut one, mut two) = Channel::pair();
        one.join(link(1, 2));
        two.join(link(2, 1));
        (one, two)
    }

    #[test]
    fn who_gives_up_says_why_and_because_of_whom() {
        let three = Seat::numbered(number(3));
        let one = Seat::numbered(number(1));
        let cases = [
            (
                Error::misbehaves("x").by(three),
                "east gave up because it found the messages of party 3 (south) wrong",
            ),
            (
                Error::stranger("x").by(three),
                "east gave up because it has no connection with party 3 (south)",
            ),
            (
                Error::gave_up(None, "x").by(three),
                "east gave up because it was told of a problem with party 3 (south)",
            ),
            (Error::misbehaves("x").by(one), "east gave up because it found our messages wrong"),
            // On this channel the peer is party 1.
            (Error::misbehaves("x"), "east gave up because it found our messages wrong"),
            (Error::Network("x".into()), "east gave up because of the network"),
            (Error::Output("x".into()), "east gave up because it could not write its result"),
            (Error::Cancelled, "east was stopped on request"),
            (Error::Refused("x".into()), "east gave up because its policy refuses this run"),
        ];
        for (error, words) in cases {
            let (mut ours, theirs) = pair();
            theirs.abort(&error);
            let told = ours.rx.recv(NUMBERS, 1).unwrap_err();
            assert!(told.to_string().starts_with(&format!("party 2: {words}")), "{told}");
            assert!(told.to_string().contains("for the cause, then run again"), "{told}");
            assert_eq!((told.fault(), told.seat()), (Some(Fault::GaveUp), Some(Seat::numbered(number(2)))));
            assert_eq!(told.reason() == Some(Reason::Refused), matches!(error, Error::Refused(_)), "{told}");
            let accused = (error.seat() == Some(three)).then(|| number(3));
            assert_eq!(ours.accuses(), accused, "{error:?}");
        }
    }

    #[test]
    fn who_is_accused_is_a_party_of_the_run_and_not_the_accuser() {
        for (accused, expected) in [(0, None), (1, None), (2, None), (3, Some(3)), (4, None), (255, None)] {
            for code in [0, 4, 5, 9, 200] {
                let (error, found) = link(1, 2).received([code, accused]);
                assert_eq!(found, expected.map(number), "{code} {accused}");
                assert_eq!(error.to_string().contains("it says"), [1, 3].contains(&accused), "{error}");
            }
        }
        // A party without a name.
        let link = Link { names: vec![String::new(); 3].into_iter().collect(), ..link(1, 2) };
        let (error, _) = link.received([5, 3]);
        assert!(
            error.to_string().starts_with("party 2: it gave up because it has no connection with party 3,")
        );
    }

    #[test]
    fn the_last_message_has_two_bytes_in_a_mesh_and_one_elsewhere() {
        for mesh in [false, true] {
            let (ours, mut theirs) = if mesh { pair() } else { Channel::pair() };
            ours.abort(&Error::Cancelled);
            let frame = if mesh { vec![1, 0xff, 2, 0, 0, 0, 1, 0] } else { vec![1, 0xff, 1, 0, 0, 0, 1] };
            let mut bytes = vec![0; frame.len()];
            theirs.rx.source.recv(&mut bytes, None).unwrap();
            assert_eq!(bytes, frame);
            // The other party may have a list of the parties, or none. An abort of another length is an unexpected message.
            for len in 0..4 {
                let (ours, mut theirs) = if mesh { pair() } else { Channel::pair() };
                let (mut sink, _source) = ours.into_halves();
                sink.send([&header(ABORT, len).unwrap()[..], &[1, 3, 0, 0][..len]].concat()).unwrap();
                let gave_up = matches!(len, 1 | 2);
                let fault = theirs.rx.recv(NUMBERS, 1).unwrap_err().fault();
                assert_eq!(fault, Some(if gave_up { Fault::GaveUp } else { Fault::Misbehaved }), "{len}");
            }
        }
    }

    #[test]
    fn errors_on_a_channel_of_a_mesh_name_the_party_at_its_other_end() {
        let (ours, mut theirs) = pair();
        let (mut sink, source) = ours.into_halves();
        sink.send(header(1, 9).unwrap().to_vec()).unwrap();
        assert_eq!(theirs.rx.recv(NUMBERS, 1).unwrap_err().seat(), Some(Seat::numbered(number(1))));
        drop((sink, source));
        for error in [theirs.rx.recv(NUMBERS, 1).unwrap_err(), theirs.tx.send(NUMBERS, &[1]).unwrap_err()] {
            assert!(error.to_string().contains("party 1 (north) closed the connection"), "{error}");
        }
    }
}
