use super::*;
use crate::channel::{Channel, Recording, WireCount};
use crate::operations::sum::Modulus;
use crate::testing::{Garble, SEEDS, Shared, overlapping};

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
