use super::*;
use crate::ahe::elgamal::Scalar;
use crate::channel::{Channel, Recording};
use crate::error::Fault;
use crate::group::ristretto255::{self, Encoding, encode, map};
use crate::secret::Secrets;
use crate::testing::{Shared, are_random_orders, places, split_frames};
use std::collections::{HashMap, HashSet};

/// The keys of n parties, and the list before the run.
struct Start {
    n: usize,
    shape: ShuffleShape,
    /// The joint keys of the parties that remain after each party.
    keys: Vec<PublicKey>,
    list: Vec<Ciphertext>,
    /// The position of the list's first malformed ciphertext.
    malformed: Option<usize>,
    /// The messages, encoded.
    plain: Secrets<Encoding>,
}

/// A key for each party, the same on every call.
fn secret(party: usize) -> SecretKey {
    SecretKey::random(&mut Prng::from_seed(&[party as u8 + 1; 32]))
}

impl Start {
    fn new(n: usize, shape: ShuffleShape, messages: &[Element]) -> Start {
        let public: Vec<Encoding> = (0..n).map(|party| secret(party).public()).collect();
        let keys: Vec<PublicKey> =
            (0..n).map(|party| PublicKey::remaining(&public, party).unwrap()).collect();
        let list = keys[0].encrypt(messages, &mut Prng::from_seed(&[77; 32]));
        Start { n, shape, keys, list, malformed: None, plain: encode(messages) }
    }

    /// Runs all parties, each in a thread, over a ring of channels. Their randomness follows from the seed.
    fn run(&self, seed: u64) -> Ran {
        let mut ends: Vec<(Option<Channel>, Option<Channel>)> = (0..self.n).map(|_| (None, None)).collect();
        let seen: Vec<Shared> = (0..self.n).map(|_| Shared::default()).collect();
        for (party, seen) in seen.iter().enumerate() {
            let (here, mut there) = Channel::pair();
            there.record(Recording::to_writer(seen.clone()));
            ends[party].1 = Some(here);
            ends[(party + 1) % self.n].0 = Some(there);
        }
        let ends = ends.into_iter().map(|(from, to)| (from.unwrap(), to.unwrap()));
        let opened = std::thread::scope(|s| {
            let parties = ends.enumerate().map(|(party, (mut from, mut to))| {
                s.spawn(move || {
                    let mut own = [party as u8; 32];
                    own[..8].copy_from_slice(&seed.to_le_bytes());
                    let rng = &mut Prng::from_seed(&own);
                    let mut run = Shuffle { shape: self.shape, rng, threads: Threads::global() };
                    let key = &self.keys[party];
                    if party > 0 {
                        run.pass(secret(party), key, &mut from.rx, &mut to.tx).unwrap();
                        return Vec::new();
                    }
                    let malformed = run.lead(key, &self.list, &mut to.tx).unwrap();
                    assert_eq!(malformed.position(), self.malformed);
                    let (mut opened, k) = (Vec::new(), self.shape.k);
                    let take = |elements: &[Element]| {
                        assert_eq!(elements.len() % k, 0, "whole rows");
                        opened.extend_from_slice(&encode(elements));
                        Ok(())
                    };
                    run.open(secret(0), &mut from.rx, take).unwrap();
                    opened
                })
            });
            let parties: Vec<_> = parties.collect();
            parties.into_iter().map(|party| party.join().unwrap()).collect::<Vec<_>>().swap_remove(0)
        });
        let frames = seen.iter().map(|seen| split_frames(&seen.bytes())).collect();
        Ran { opened, frames }
    }

    /// The messages of a list, decrypted with the keys that remain when `party` has sent it.
    fn plain(&self, party: usize, list: &[Ciphertext]) -> Vec<Encoding> {
        let key: Scalar = (party + 1..self.n).chain([0]).map(|party| *secret(party).scalar()).sum();
        opened(list, key)
    }
}

fn opened(list: &[Ciphertext], key: Scalar) -> Vec<Encoding> {
    let mut wide = [0; 64];
    wide[..32].copy_from_slice(key.as_bytes());
    encode(&SecretKey(ristretto255::Scalar::reduced(&wide)).decrypt(list).unwrap()).to_vec()
}

/// The output of P_1, and the frames that each party sent.
struct Ran {
    opened: Vec<Encoding>,
    frames: Vec<Vec<(u16, Vec<u8>)>>,
}

impl Ran {
    /// The list that a party sent.
    fn list(&self, party: usize) -> Vec<Ciphertext> {
        let bytes: Vec<u8> = self.frames[party].iter().flat_map(|(_, body)| body).copied().collect();
        bytes.chunks(64).map(|bytes| Ciphertext::get(bytes).unwrap()).collect()
    }

    /// The positions, in the list that a party received, of the rows that it sent. The messages are distinct.
    fn order(&self, start: &Start, party: usize) -> Vec<usize> {
        let before = match party {
            0 => start.plain.to_vec(),
            _ => start.plain(party - 1, &self.list(party - 1)),
        };
        let places: HashMap<Encoding, usize> = before.into_iter().enumerate().map(|(i, m)| (m, i)).collect();
        start.plain(party, &self.list(party)).iter().map(|message| places[message]).collect()
    }
}

/// Uniform elements.
fn uniform(n: usize) -> Vec<Element> {
    let mut rng = Prng::from_seed(&[5; 32]);
    map(&(0..n).map(|_| rng.bytes()).collect::<Vec<_>>()).to_vec()
}

fn sorted(rows: &[Encoding], k: usize) -> Vec<&[Encoding]> {
    let mut rows: Vec<&[Encoding]> = rows.chunks(k).collect();
    rows.sort_unstable();
    rows
}

#[test]
fn the_leader_gets_all_rows_and_they_stay_whole() {
    for n in 2..=5 {
        for (k, sizes) in [(1, &[0, 1, 2, 40][..]), (3, &[0, 1, 40])] {
            for &rows in sizes {
                // A third of the rows are empty, and one row occurs twice.
                let mut messages = uniform(rows * k);
                for row in messages.chunks_mut(k).step_by(3) {
                    row.fill(Element::IDENTITY);
                }
                if rows > 4 {
                    messages.copy_within(k..2 * k, 2 * k);
                }
                let start = Start::new(n, ShuffleShape::new(rows, k), &messages);
                let ran = start.run(1);
                assert_eq!(sorted(&ran.opened, k), sorted(&start.plain, k), "{n} {rows} {k}");
            }
        }
    }
}

#[test]
fn lists_of_a_frame_and_about_that_come_through_and_frames_are_full() {
    for (k, rows) in [(1, FRAME - 1), (1, FRAME + 1), (3, FRAME / 3), (3, FRAME / 3 + 1), (FRAME + 1, 2)] {
        let shape = ShuffleShape::new(rows, k);
        // All rows consist of the same ten elements, which are fast to make.
        let few = uniform(10);
        let messages: Vec<Element> = (0..rows * k).map(|i| few[i % 10]).collect();
        let start = Start::new(2, shape, &messages);
        let ran = start.run(1);
        assert_eq!(sorted(&ran.opened, k), sorted(&start.plain, k), "{rows} {k}");
        let per_frame = (FRAME / k).max(1);
        for frames in &ran.frames {
            let lengths = frames.iter().map(|(tag, body)| (*tag, body.len()));
            let expected = crate::channel::frames(rows, per_frame).map(|rows| (0xd0, 64 * k * rows));
            assert!(lengths.eq(expected));
            let bytes: usize = frames.iter().map(|(_, body)| 6 + body.len()).sum();
            assert_eq!(bytes, shape.traffic());
        }
    }
    assert_eq!((ShuffleShape::new(7, 0), ShuffleShape::new(0, 2).traffic()), (ShuffleShape::new(7, 1), 0));
}

/// A party's input and output, and the outputs of two runs, have nothing in common.
#[test]
fn every_list_is_fresh() {
    let start = Start::new(4, ShuffleShape::new(60, 3), &uniform(180));
    let [first, second] = [1, 2].map(|seed| start.run(seed));
    let lists = [&first, &second].into_iter().flat_map(|ran| (0..4).map(|party| ran.list(party)));
    let parts: Vec<Encoding> = lists.chain([start.list.clone()]).flatten().flat_map(|c| c.0).collect();
    assert_eq!(parts.len(), 9 * 180 * 2);
    assert_eq!(parts.iter().collect::<HashSet<_>>().len(), parts.len());
}

#[test]
fn every_party_permutes_the_list_in_an_order_of_its_own_and_another_one_in_each_run() {
    let start = Start::new(4, ShuffleShape::new(400, 1), &uniform(400));
    let orders = [1, 2].map(|seed| {
        let ran = start.run(seed);
        [0, 1, 2, 3].map(|party| ran.order(&start, party))
    });
    for party in 0..4 {
        are_random_orders([&orders[0][party], &orders[1][party]]);
        are_random_orders([&orders[0][party], &orders[0][(party + 1) % 4]]);
    }
}

/// The next party knows the rows, so an order derived from them would not be secret.
#[test]
fn an_order_is_that_of_the_generator_whatever_the_rows_are() {
    let n = 300;
    let start = Start::new(2, ShuffleShape::new(n, 1), &uniform(n));
    let orders = [1, 2].map(|seed| {
        let (mut here, mut there) = Channel::pair();
        let rng = &mut Prng::from_seed(&[seed; 32]);
        let mut run = Shuffle { shape: start.shape, rng, threads: Threads::global() };
        run.send(std::slice::from_ref(&start.list), &mut here.tx).unwrap();
        let sent: Vec<Ciphertext> = there.rx.recv(LIST, n).unwrap();
        let order = places(&start.list, &sent);
        let drawn = Prng::from_seed(&[seed; 32]).permutation(n);
        assert!(order.iter().zip(drawn.iter()).all(|(place, drawn)| *place == *drawn as usize));
        order
    });
    are_random_orders([&orders[0], &orders[1]]);
}

/// An order within frames would reveal in which frame a row was.
#[test]
fn orders_are_over_the_whole_list() {
    let start = Start::new(2, ShuffleShape::new(FRAME + 1500, 1), &uniform(FRAME + 1500));
    let ran = start.run(1);
    for party in 0..2 {
        // Of the 1500 rows after the first frame, 402 are expected in the last 1500 places, with a standard deviation of 15.
        let stayed = ran.order(&start, party)[FRAME..].iter().filter(|i| **i >= FRAME).count();
        assert!((300..500).contains(&stayed), "{stayed}");
    }
}

/// The position of each of four rows after the shuffle, over many runs.
#[test]
fn all_orders_of_few_rows_come_up() {
    let start = Start::new(2, ShuffleShape::new(4, 1), &uniform(4));
    let mut seen: [HashMap<Vec<usize>, u32>; 2] = Default::default();
    for seed in 0..240 {
        let ran = start.run(seed);
        for (party, seen) in seen.iter_mut().enumerate() {
            *seen.entry(ran.order(&start, party)).or_default() += 1;
        }
    }
    for seen in seen {
        // 23 degrees of freedom: a value above 70 has probability 1e-6; orders that never occur are counted too.
        let unseen = 10.0 * (24 - seen.len()) as f64;
        let chi2: f64 = unseen + seen.values().map(|&c| (f64::from(c) - 10.0).powi(2) / 10.0).sum::<f64>();
        assert!(chi2 < 70.0, "chi-squared {chi2}");
    }
}

/// The parties whose keys remain can decrypt a sent list together, but no proper subset of them can.
#[test]
fn a_list_is_under_the_keys_that_remain() {
    let start = Start::new(4, ShuffleShape::new(12, 1), &uniform(12));
    let ran = start.run(1);
    let known = sorted(&start.plain, 1);
    for party in 0..4 {
        let list = ran.list(party);
        assert_eq!(sorted(&start.plain(party, &list), 1), known, "{party}");
        let remaining: Vec<usize> = (party + 1..4).chain([0]).collect();
        for missing in &remaining {
            // All other keys, with and without the removed ones.
            for without in [&[0, 1, 2, 3][..], &remaining[..]] {
                let keys = without.iter().filter(|key| *key != missing);
                let key: Scalar = keys.map(|party| *secret(*party).scalar()).sum();
                assert!(opened(&list, key).iter().all(|plain| !start.plain.contains(plain)));
            }
        }
    }
    assert_eq!(sorted(&ran.opened, 1), known);
}

#[test]
fn a_blinded_list_shows_which_rows_are_the_identity_and_nothing_else() {
    let mut messages = uniform(50);
    messages.iter_mut().step_by(5).for_each(|message| *message = Element::IDENTITY);
    // Equal messages, which must differ afterwards.
    messages.copy_within(11..15, 1);
    let start = Start::new(3, ShuffleShape::blinded(50), &messages);
    let zeros = |list: &[Encoding]| list.iter().filter(|message| **message == [0; 32]).count();
    let (mut seen, mut runs) = (HashSet::new(), 0);
    for seed in [1, 2] {
        let ran = start.run(seed);
        // P_1 does not blind; each of the others does.
        assert_eq!(sorted(&start.plain(0, &ran.list(0)), 1), sorted(&start.plain, 1));
        for party in [1, 2] {
            let plain = start.plain(party, &ran.list(party));
            assert_eq!(zeros(&plain), 10);
            seen.extend(plain.into_iter().filter(|message| *message != [0; 32]));
            runs += 1;
        }
        assert_eq!(zeros(&ran.opened), 10);
        assert!(ran.opened.iter().all(|message| *message == [0; 32] || !start.plain.contains(message)));
    }
    assert_eq!(seen.len(), 40 * runs);
    assert!(start.plain.iter().all(|message| !seen.contains(message)));
}

/// The error that a party, either the leader at the end or another one, returns for these frames from its predecessor.
fn told(shape: ShuffleShape, frames: &[(u16, &[u8])], leader: bool) -> Error {
    let (mut before, mut from) = Channel::pair();
    for (tag, body) in frames {
        before.tx.send_bytes(Message::new(*tag, "forged"), body).unwrap();
    }
    let (sink, _listening) = before.into_halves();
    drop(sink);
    let (mut to, _after) = Channel::pair();
    let rng = &mut Prng::from_seed(&[1; 32]);
    let rest = PublicKey::joint(&[secret(1).public()]).unwrap();
    let mut run = Shuffle { shape, rng, threads: Threads::global() };
    let said = match leader {
        true => run.open(secret(0), &mut from.rx, |_| Ok(())),
        false => run.pass(secret(0), &rest, &mut from.rx, &mut to.tx),
    };
    assert_eq!(to.bytes_sent(), 0, "nothing is passed on");
    said.unwrap_err()
}

#[test]
fn what_no_honest_party_sends_is_refused() {
    let start = Start::new(2, ShuffleShape::new(5, 3), &uniform(15));
    let good: Vec<u8> = start.list.iter().flat_map(|c| c.as_ref().to_vec()).collect();
    let (mut odd, mut high) = ([0; 32], [0xff; 32]);
    (odd[0], high[31]) = (1, 0x7f);
    for leader in [false, true] {
        for forged in [[0; 32], [0xff; 32], odd, high] {
            for at in [0, 1, 7, 28, 29] {
                let mut bad = good.clone();
                bad[32 * at..][..32].copy_from_slice(&forged);
                let said = told(start.shape, &[(0xd0, &bad)], leader);
                assert_eq!(said.fault(), Some(Fault::Misbehaved));
                let place = format!("ciphertext {} of row {} of", at / 2 % 3, at / 6);
                assert!(said.to_string().contains(&place), "{said}");
            }
        }
        // Frames with another length or tag, and a party that has left.
        let more = [&good[..], &good[..64]].concat();
        for (tag, body) in
            [(0xd0, &good[64..]), (0xd0, &good[1..]), (0xd0, &more[..]), (0xd0, &[][..]), (0xd1, &good[..])]
        {
            let said = told(start.shape, &[(tag, body)], leader);
            assert_eq!(said.fault(), Some(Fault::Misbehaved), "{said}");
        }
        assert!(matches!(told(start.shape, &[], leader), Error::Network(_)));
        // A row in a later frame.
        let row = start.list[..1].repeat(FRAME).iter().flat_map(|c| c.as_ref().to_vec()).collect::<Vec<u8>>();
        let mut bad = row.clone();
        bad[64 * 9..][..32].fill(0);
        let said = told(ShuffleShape::new(3, FRAME), &[(0xd0, &row), (0xd0, &row), (0xd0, &bad)], leader);
        assert!(said.to_string().contains("ciphertext 9 of row 2 of"), "{said}");
    }
}

#[test]
fn the_leader_does_not_begin_with_another_list_than_was_announced() {
    let start = Start::new(2, ShuffleShape::new(5, 3), &uniform(15));

    let begin = |list: &[Ciphertext]| {
        let (mut to, after) = Channel::pair();
        let rng = &mut Prng::from_seed(&[1; 32]);
        let mut run = Shuffle { shape: start.shape, rng, threads: Threads::global() };
        let said = run.lead(&start.keys[0], list, &mut to.tx);
        (said, to.bytes_sent(), after)
    };
    for list in [&start.list[1..], &start.list[..0], &start.list.repeat(2)[..]] {
        let (said, sent, _) = begin(list);
        assert!(matches!(said, Err(Error::Bug(_))) && sent == 0);
    }
}

/// The leader's rows depend on its set, so the others must not learn that it has a malformed one.
#[test]
fn in_place_of_what_is_no_ciphertext_comes_nothing_and_the_leader_knows_which_it_is() {
    for (rows, k) in [(5, 3), (FRAME + 9, 1)] {
        let few = uniform(15);
        let messages: Vec<Element> = (0..rows * k).map(|i| few[i % 15]).collect();
        let mut start = Start::new(3, ShuffleShape::new(rows, k), &messages);
        let honest = start.run(1);
        // One part of a ciphertext, and both parts of the last three.
        let at = rows * k - 4;
        start.list[at].0[1] = [0xff; 32];
        start.list[at + 1..].fill(Ciphertext::default());
        start.malformed = Some(at);
        let ran = start.run(1);
        let mut expected = start.plain.to_vec();
        expected[at..].fill([0; 32]);
        assert_eq!(sorted(&ran.opened, k), sorted(&expected, k));
        let lengths = |ran: &Ran| -> Vec<Vec<(u16, usize)>> {
            let of =
                |frames: &Vec<(u16, Vec<u8>)>| frames.iter().map(|(tag, body)| (*tag, body.len())).collect();
            ran.frames.iter().map(of).collect()
        };
        assert_eq!(lengths(&ran), lengths(&honest));
        let list = ran.list(0);
        assert_eq!(list.iter().flat_map(|c| c.0).collect::<HashSet<_>>().len(), 2 * list.len());
    }
}
