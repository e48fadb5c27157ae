//! Compact sets of public sizes that follow from the first bytes of the input.
use crate::{byte, check, peer};
use veilset::channel::{Channel, Sink};
use veilset::compact_set::CompactSet;
use veilset::compact_set::bloom::Bloom;
use veilset::compact_set::golomb::Golomb;
use veilset::threads::Threads;

/// Records the bytes that are sent.
struct Tap(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl Sink for Tap {
    fn send(&mut self, frame: Vec<u8>) -> veilset::error::Result<()> {
        self.0.lock().unwrap().extend(frame);
        Ok(())
    }
}

/// Digests of all tags of `bits` bits.
fn all(bits: u32) -> Vec<u128> {
    (0..1u128 << bits).map(|tag| tag.checked_shl(128 - bits).unwrap_or(0)).collect()
}

/// Tests tags of so few bits that all of them can be queried: a set without repetition has one encoding.
fn tags(elements: usize, says: &[u8]) {
    let bits = 4 + elements.max(1).next_power_of_two().trailing_zeros();
    let set = Golomb::new(4, 1, elements).unwrap();
    let digests = all(bits);
    let found = match set.test(&mut peer(says).rx, Threads::global(), &digests) {
        Err(e) => return check(&e),
        Ok(found) => found,
    };
    assert_eq!(found.len(), digests.len());
    let members: Vec<u128> = digests.iter().zip(found.iter()).filter(|(_, f)| **f).map(|(d, _)| *d).collect();
    assert!(members.len() <= elements);
    if members.len() == elements {
        let sent = std::sync::Arc::default();
        let mut channel = Channel::from_halves(
            Box::new(Tap(std::sync::Arc::clone(&sent))),
            Channel::pair().0.into_halves().1,
        );
        set.send(&mut channel.tx, Threads::global(), members.into()).unwrap();
        let sent = sent.lock().unwrap();
        // Heartbeats may come before the one frame.
        let mut said = says;
        while let Some(behind) = said.strip_prefix(&[0, 0xff, 0, 0, 0, 0]) {
            said = behind;
        }
        assert!(said.starts_with(&sent), "{sent:x?}");
    }
}

/// Runs the target on an input.
pub(crate) fn run(data: &[u8]) {
    let mut says = data;
    let (kind, a, b, c) = (byte(&mut says), byte(&mut says), byte(&mut says), byte(&mut says));
    let queries: Vec<u128> =
        (0..c).map(|i| u128::from(i).wrapping_mul(0x9e37_79b9_7f4a_7c15) << 64).collect();
    // One set in eight has about as many elements as a frame, or a few more.
    let elements = if a < 32 { 8190 + usize::from(a) } else { usize::from(a) - 32 };
    match kind % 3 {
        0 => tags(usize::from(a) % 65, says),
        1 => {
            let set = Golomb::new(u32::from(b % 60), queries.len(), elements);
            if let Err(e) = set.and_then(|set| set.test(&mut peer(says).rx, Threads::global(), &queries)) {
                check(&e);
            }
        }
        _ => match Bloom::new(u32::from(b % 44), queries.len(), usize::from(a)).test(
            &mut peer(says).rx,
            Threads::global(),
            &queries,
        ) {
            Ok(found) => assert_eq!(found.len(), queries.len()),
            Err(e) => check(&e),
        },
    }
}
