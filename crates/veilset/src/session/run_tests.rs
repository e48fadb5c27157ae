use super::*;
use crate::channel::{Channel, Recording, WireCount};
use crate::operations::sum::Modulus;
use crate::testing::{Garble, SEEDS, Shared, overlapping, split_frames};

const MAX_ROW: usize = 3000;

fn request<'a>(operation: Operation, role: Role, set: &'a ItemSet, values: &'a [i128]) -> Request<'a> {
    Request {
        operation,
        role,
        set,
        key_columns: 1,
        normalisation: "none",
        max_peer_items: 100,
        max_row: MAX_ROW,
        values,
        value_scale: 0,
        terms: Terms { modulus: Modulus::Bits64, min_count: 0 },
    }
}

fn connection(channel: Channel) -> Connection {
    Connection { channel, peer: None, our: None, exporter: [3; 32], wire: WireCount::default() }
}

/// Runs both sides; the cheat flips a bit of one frame. Returns whether the honest side got a result, and all
/// that the cheat sees: every byte it receives and how the run ends for it.
fn run_with(honest: &Request, cheat: &Request, tag: u8, at: Option<usize>) -> (bool, (Vec<u8>, String)) {
    let (ours, theirs) = Channel::pair();
    let sees = Shared::default();
    std::thread::scope(|s| {
        let cheat = s.spawn(|| {
            let (sink, source) = theirs.into_halves();
            let mut channel = Channel::from_halves(Box::new(Garble { sink, tag, at }), source);
            channel.record(Recording::to_writer(sees.clone()));
            let end = run(connection(channel), cheat, &mut Prng::from_seed(&SEEDS[1]));
            format!("{:?}", end.map(|_| ()))
        });
        let result = run(connection(ours), honest, &mut Prng::from_seed(&SEEDS[0]));
        let end = cheat.join().unwrap();
        (result.is_ok(), (sees.bytes(), end))
    })
}

#[test]
fn a_cheat_does_not_see_whether_its_lie_came_to_light() {
    let (n_y, n_x) = (7, 8);
    let (y, x) = overlapping(n_y, n_x, 0.6);
    let values = [1000; 8];
    // Four of the eight items match. A row comes to light if it is read, a sum if the values cannot have it: in
    // union it is the second byte of a row's length that becomes too large, in sum a byte of the masked sum.
    let rows = |width: usize| (0..n_x).map(|row| Some(row * width + 1)).collect::<Vec<_>>();
    for (operation, honest, tag, places, good) in [
        (Operation::Intersect, Role::Receiver, 0x41, rows(16), 4),
        (Operation::Union, Role::Receiver, 0x41, rows(MAX_ROW + 2), 4),
        (Operation::Sum, Role::Sender, 0x53, vec![None, Some(11), Some(16)], 1),
    ] {
        let receiver = request(operation, Role::Receiver, &y, &[]);
        let sender = request(operation, Role::Sender, &x, &values);
        let (honest, cheat) =
            if honest == Role::Receiver { (&receiver, &sender) } else { (&sender, &receiver) };
        let runs: Vec<_> = places.into_iter().map(|at| run_with(honest, cheat, tag, at)).collect();
        assert_eq!(runs.iter().filter(|(ok, _)| *ok).count(), good, "{operation}");
        assert!(runs.iter().all(|(_, sees)| *sees == runs[0].1), "{operation}");
        assert_eq!(runs[0].1.1, "Ok(())", "{operation}");
    }
}

#[test]
fn a_peer_with_more_items_than_we_want_is_refused() {
    let (y, x) = overlapping(3, 5, 0.5);
    let mut receiver = request(Operation::Count, Role::Receiver, &y, &[]);
    let sender = request(Operation::Count, Role::Sender, &x, &[]);
    for (most, ok) in [(5, true), (4, false)] {
        receiver.max_peer_items = most;
        assert_eq!(run_with(&receiver, &sender, 0, None).0, ok, "{most}");
    }
}

/// Says no before or after both sides have said yes, and counts how often it was asked.
#[derive(Default)]
struct No {
    at: usize,
    asked: usize,
}

impl No {
    fn answer(&mut self) -> Result<()> {
        self.asked += 1;
        if self.asked == self.at { Err(Error::Refused("no".into())) } else { Ok(()) }
    }
}

impl Approval for No {
    fn approve(&mut self, proposal: &Proposal) -> Result<()> {
        assert_eq!((proposal.our_size, proposal.their_size), (3, 5));
        self.answer()
    }
    fn begins(&mut self, _: &Proposal) -> Result<()> {
        self.answer()
    }
}

#[test]
fn a_refusal_ends_both_sides_and_nothing_of_our_data_goes_out() {
    let (y, x) = overlapping(3, 5, 0.5);
    let receiver = request(Operation::Count, Role::Receiver, &y, &[]);
    let sender = request(Operation::Count, Role::Sender, &x, &[]);
    for (at, asked) in [(1, 1), (2, 2), (3, 2)] {
        let (ours, mut theirs) = Channel::pair();
        let sees = Shared::default();
        theirs.record(Recording::to_writer(sees.clone()));
        let mut approval = No { at, asked: 0 };
        std::thread::scope(|s| {
            let peer = s.spawn(|| run(connection(theirs), &sender, &mut Prng::from_seed(&SEEDS[1])));
            let end = run_if(connection(ours), &receiver, &mut approval, &mut Prng::from_seed(&SEEDS[0]));
            let peer = peer.join().unwrap();
            if at > 2 {
                assert!(end.is_ok() && peer.is_ok());
                return;
            }
            assert_eq!(end.unwrap_err(), Error::Refused("no".into()));
            let Error::Peer(said) = peer.unwrap_err() else { panic!("not the peer") };
            assert!(said.contains("its policy refuses this run"), "{said}");
            // All that the peer got: preamble, hello, size, and a go if we said yes at first.
            let tags: Vec<u16> = split_frames(&sees.bytes()).into_iter().map(|(tag, _)| tag).collect();
            assert_eq!(tags, [1, 2, 3, 8][..2 + at], "{at}");
        });
        assert_eq!(approval.asked, asked);
    }
}

#[test]
fn a_check_tells_both_sides_the_sizes_and_how_long_the_other_takes() {
    let (y, x) = overlapping(3, 5, 0.5);
    let receiver = request(Operation::Union, Role::Receiver, &y, &[]);
    let sender = request(Operation::Union, Role::Sender, &x, &[]);
    let (ours, theirs) = Channel::pair();
    let check_with = |channel, request: &Request<'_>, milliseconds, seed| {
        check(connection(channel), request, &mut (), &|_| milliseconds, &mut Prng::from_seed(seed))
    };
    let (here, there) = std::thread::scope(|s| {
        let there = s.spawn(|| check_with(theirs, &sender, 7, &SEEDS[1]));
        (check_with(ours, &receiver, 5, &SEEDS[0]).unwrap(), there.join().unwrap().unwrap())
    });
    assert_eq!((here.proposal.their_size, here.their_milliseconds), (5, 7));
    assert_eq!((there.proposal.their_size, there.their_milliseconds), (3, 5));
    assert!(here.proposal.hello.check);

    // Against a side that runs, it is a disagreement.
    let (ours, theirs) = Channel::pair();
    std::thread::scope(|s| {
        let there = s.spawn(|| run(connection(theirs), &sender, &mut Prng::from_seed(&SEEDS[1])));
        let here = check_with(ours, &receiver, 5, &SEEDS[0]).unwrap_err();
        for e in [here, there.join().unwrap().unwrap_err()] {
            assert!(matches!(&e, Error::Disagreement(d) if d[0].what.contains("veilset check")), "{e}");
        }
    });
}
