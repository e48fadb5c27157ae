//! The receiving half of a channel: a few messages are expected, and the peer sends the input.
use crate::{byte, check, peer};
use veilset::channel::Message;
use veilset::group::curve25519::Point;

const PLAIN: Message<[u8]> = Message::new(0x11, "plain");
const NUMBERS: Message<u64> = Message::new(0x12, "numbers");
const POINTS: Message<Point> = Message::new(0x13, "points");
const BYTES: Message<[u8; 3]> = Message::new(0x14, "bytes");

/// Runs the target on an input.
pub(crate) fn run(data: &[u8]) {
    let mut says = data;
    let expected: [(u8, u8); 4] = std::array::from_fn(|_| (byte(&mut says), byte(&mut says)));
    let mut channel = peer(says);
    for (kind, n) in expected {
        let (n, rx) = (usize::from(n), &mut channel.rx);
        let got = match kind % 5 {
            0 => rx.recv_bytes(PLAIN, n).map(|bytes| assert_eq!(bytes.len(), n)),
            1 => rx.recv_bounded(PLAIN, n).map(|bytes| assert!(bytes.len() <= n)),
            2 => rx.recv(NUMBERS, n).map(|numbers| assert_eq!(numbers.len(), n)),
            3 => rx.recv(POINTS, n).map(|points| assert_eq!(points.len(), n)),
            _ => rx.recv(BYTES, n).map(|bytes| assert_eq!(bytes.len(), n)),
        };
        if let Err(e) = got {
            check(&e);
            // A run next looks for a final message from the peer.
            check(&channel.explain(e));
            break;
        }
        assert!(channel.bytes_received() <= says.len() as u64);
    }
}
