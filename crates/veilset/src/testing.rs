//! What the tests of all protocols share: sets, runs of two parties, and what each of them saw.

use crate::channel::{Channel, Recording, Sink};
use crate::error::{Error, Result};
use crate::item::ItemSet;
use crate::rng::Prng;
use std::sync::{Arc, Mutex};

/// The seeds of the two parties.
pub(crate) const SEEDS: [[u8; 32]; 2] = [[101; 32], [102; 32]];

/// Sizes of the two sets that every protocol is tested at: none, one, unequal, around a frame, several.
pub(crate) fn sizes(frame: usize) -> Vec<(usize, usize)> {
    vec![
        (0, 0),
        (0, 3),
        (3, 0),
        (1, 1),
        (1, 40),
        (57, 33),
        (frame - 1, 2),
        (3, frame + 1),
        (2 * frame + 1, 20),
    ]
}

/// Two sets of which about `overlap` of the smaller is in common; items of all lengths up to 40 bytes, some
/// binary, and one of 3000 bytes in each.
pub(crate) fn overlapping(n_y: usize, n_x: usize, overlap: f64) -> (ItemSet, ItemSet) {
    let mut rng = Prng::from_seed(&[77; 32]);
    let common = (n_y.min(n_x) as f64 * overlap).round() as usize;
    let mut item = |i: usize| {
        let mut item = format!("{i}:").into_bytes();
        item.resize(item.len() + rng.below(34) as usize, 0);
        let start = item.iter().position(|&b| b == b':').unwrap_or(0) + 1;
        rng.fill(&mut item[start..]);
        if i % 1000 == 7 {
            item.resize(3000, i as u8);
        }
        item
    };
    let all: Vec<Vec<u8>> = (0..n_y + n_x - common).map(&mut item).collect();
    // The common items stand last in Y and first in X.
    (all[..n_y].iter().collect(), all[n_y - common..].iter().collect())
}

/// The bytes each party received, frames with their headers: of the first party and of the second.
pub(crate) struct Views(pub(crate) [Vec<u8>; 2]);

impl Views {
    /// Tag and length of each frame that `party` received.
    pub(crate) fn frames(&self, party: usize) -> Vec<(u16, usize)> {
        split_frames(&self.0[party]).into_iter().map(|(tag, body)| (tag, body.len())).collect()
    }
}

/// Tag and body of each frame of a view.
pub(crate) fn split_frames(mut view: &[u8]) -> Vec<(u16, Vec<u8>)> {
    let mut frames = Vec::new();
    while let Some((head, rest)) = view.split_at_checked(6) {
        let len = u32::from_le_bytes([head[2], head[3], head[4], head[5]]) as usize;
        frames.push((u16::from_le_bytes([head[0], head[1]]), rest[..len].to_vec()));
        view = &rest[len..];
    }
    frames
}

/// Flips the highest bit of a byte of the bodies of the frames with this tag.
pub(crate) struct Garble {
    pub(crate) sink: Box<dyn Sink>,
    pub(crate) tag: u8,
    pub(crate) at: Option<usize>,
}

impl Sink for Garble {
    fn send(&mut self, mut frame: Vec<u8>) -> Result<()> {
        if let (true, Some(at)) = (frame[0] == self.tag, self.at) {
            frame[6 + at] ^= 0x80;
        }
        self.sink.send(frame)
    }
}

/// A connection that breaks when so many more frames were sent.
pub(crate) struct Cut {
    pub(crate) sink: Box<dyn Sink>,
    pub(crate) after: usize,
}

impl Cut {
    /// What it says then.
    pub(crate) fn error() -> Error {
        Error::Network("connection reset".into())
    }
}

impl Sink for Cut {
    fn send(&mut self, frame: Vec<u8>) -> Result<()> {
        self.after = self.after.checked_sub(1).ok_or_else(Cut::error)?;
        self.sink.send(frame)
    }
}

/// A recording to look at.
#[derive(Clone, Default)]
pub(crate) struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }
}

impl std::io::Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Runs both parties over a bounded in-memory channel with fixed seeds; returns results and views.
pub(crate) fn run_pair<A: Send, B: Send>(
    first: impl FnOnce(&mut Channel, &mut Prng) -> Result<A> + Send,
    second: impl FnOnce(&mut Channel, &mut Prng) -> Result<B> + Send,
) -> ((A, B), Views) {
    let (mut a, mut b) = Channel::pair();
    let seen = [Shared::default(), Shared::default()];
    a.record(Recording::to_writer(seen[0].clone()));
    b.record(Recording::to_writer(seen[1].clone()));
    let results = std::thread::scope(|s| {
        let first = s.spawn(move || first(&mut a, &mut Prng::from_seed(&SEEDS[0])));
        let second = second(&mut b, &mut Prng::from_seed(&SEEDS[1]));
        drop(b);
        (first.join().unwrap(), second)
    });
    let views = Views(seen.map(|s| s.bytes()));
    match results {
        (Ok(a), Ok(b)) => ((a, b), views),
        (a, b) => panic!("{:?} / {:?}", a.err(), b.err()),
    }
}
