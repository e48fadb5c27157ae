//! Compares the protocol with its definition, over the ideal and the silent VOLE; checks its messages and its refusals.

use super::*;
use crate::channel::Channel;
use crate::error::Fault;
use crate::rng::Prng;
use crate::testing::{ANY_SESSION, SEEDS, every_bit_is_random, parts, run_pair, split_frames, with_frames};
use crate::vole::VoleScalar;
use crate::vole::{self, silent::Silent};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn queries(n: usize) -> Vec<Query> {
    (0..n as u64).map(|i| query(&Input::of_item(&i.to_le_bytes()))).collect()
}

/// The values of the receiver, and the keys of the sender.
fn run<O: BinOprf + Sync>(
    protocol: &O,
    session: &SessionId,
    purpose: &'static str,
    queries: &[Query],
) -> ((Secrets<Value>, O::Keys), crate::testing::Views)
where
    O::Keys: Send,
{
    run_pair(
        session,
        |cx| protocol.receiver(cx, purpose, queries),
        |cx| protocol.sender(cx, purpose, queries.len()),
    )
}

/// Checks that both evaluate the same functions, that these are random elsewhere, and that lengths of messages depend
/// on the number of bins only.
fn is_a_bin_oprf<O: BinOprf + Sync>(protocol: &O, frame: usize)
where
    O::Keys: Send,
{
    for bins in [0, 1, 3, frame - 1, frame + 1, 2 * frame + 1] {
        let mut lengths = Vec::new();
        // The same query in all bins, or a different one in each.
        for queries in [vec![[7; 16]; bins], queries(bins)] {
            let ((values, keys), views) = run(protocol, &ANY_SESSION, "bins", &queries);
            assert_eq!(values.len(), bins);
            // From the last bin to the first.
            let point = |i: usize| BinPoint { bin: i as u32, query: queries[i] };
            let again = keys.evaluate(bins, |i| point(bins - 1 - i)).unwrap();
            assert!(again.iter().rev().eq(values.iter()), "{bins}");
            // In each bin at another query, and at the query of the next bin.
            let mut all: HashSet<Value> = values.iter().copied().collect();
            let other = |i: usize| BinPoint { bin: i as u32, query: [8; 16] };
            all.extend(keys.evaluate(bins, other).unwrap().iter());
            let next = |i: usize| BinPoint { query: queries[(i + 1) % bins], ..point(i) };
            let next = keys.evaluate(bins, next).unwrap();
            let different = bins > 1 && queries[0] != queries[1];
            all.extend(next.iter().filter(|_| different));
            assert_eq!(all.len(), if different { 3 } else { 2 } * bins, "{bins}: values that are equal");
            if all.len() >= 200 {
                every_bit_is_random(&all.into_iter().collect::<Vec<_>>(), 128);
            }
            let e = keys.evaluate(1, |_| BinPoint { bin: bins as u32, query: [7; 16] }).err();
            assert!(matches!(e, Some(Error::Bug(_))), "{bins}: {e:?}");
            lengths.push([views.frames(0), views.frames(1)]);
        }
        assert_eq!(lengths[0], lengths[1]);
    }
}

#[test]
fn the_ideal_functionality_is_one() {
    is_a_bin_oprf(&Ideal, 100);
}

#[test]
fn it_is_an_oprf_in_bins() {
    is_a_bin_oprf(&FromVole::new(vole::Ideal), FRAME);
    is_a_bin_oprf(&FromVole { vole: vole::Ideal, part: 100 }, 300);
}

/// Frames of a few bins, as each run has its own base OTs; then enough bins for the VOLE to need its code.
#[test]
fn it_is_an_oprf_in_bins_over_silent_vole() {
    is_a_bin_oprf(&FromVole::new(Silent { k: 2 }), 60);
    let queries = queries(5000);
    let ((values, keys), _) = run(&FromVole::new(Silent::default()), &ANY_SESSION, "bins", &queries);
    let point = |i: usize| BinPoint { bin: i as u32, query: queries[i] };
    assert_eq!(*values, *keys.evaluate(5000, point).unwrap());
}

/// Recomputes values and messages by definition, from the output of the ideal VOLE's sender and the messages.
#[test]
fn values_and_messages_are_those_of_the_definition() {
    let (n, session) = (70, SessionId::of([2; 32]));
    let queries = queries(n);
    let ((values, keys), views) = run(&FromVole::new(vole::Ideal), &session, "bins", &queries);
    assert_eq!(views.frames(1), [(0xc0, 16 * n)]);
    let d = split_frames(&views.0[1])[0].1.as_chunks::<16>().0.to_vec();
    let rng = &mut Prng::from_seed(&SEEDS[1]);
    let delta: Element = rng.bytes();
    let (mut a, mut b) = (vec![[0; 16]; n], vec![[0; 16]; n]);
    rng.fill(a.as_flattened_mut());
    rng.fill(b.as_flattened_mut());
    let h = Domain::new(&part(&session, "bins"), "value of an OPRF in bins");
    for bin in 0..n {
        let mut x = a[bin];
        add(&mut x, &d[bin]);
        assert_eq!(x, queries[bin], "d = x + a");
        let f = |y: Query| {
            let (mut y, mut value) = (y, [b[bin]]);
            add(&mut y, &d[bin]);
            add_multiple(&delta, &[y], &mut value);
            h.hash::<16>(&[&value[0], &(bin as u64).to_le_bytes()])
        };
        assert_eq!(values[bin], f(queries[bin]));
        assert_eq!(
            keys.evaluate(1, |_| BinPoint { bin: bin as u32, query: [3; 16] }).unwrap()[0],
            f([3; 16])
        );
    }
}

/// S's view is freshly masked in every bin and every run, for all queries.
#[test]
fn queries_are_masked_by_a() {
    let sent = |queries: &[Query], seed: u8| {
        let (_, views) = run_pair(
            &ANY_SESSION,
            |cx| {
                let cx = cx.under(Prng::from_seed(&[seed; 32]));
                FromVole::new(Silent { k: 2 }).receiver(cx, "bins", queries)
            },
            |cx| FromVole::new(Silent { k: 2 }).sender(cx, "bins", queries.len()),
        );
        parts(&views.0[1], 0xc0, 16)
    };
    let same = vec![[0; 16]; 300];
    let runs = [sent(&same, 1), sent(&same, 2), sent(&queries(300), 3)];
    runs.iter().for_each(|d| every_bit_is_random(d, 128));
    assert_eq!(runs.concat().iter().collect::<HashSet<_>>().len(), 900);
    assert!(runs[2].iter().all(|d| !queries(300).iter().any(|query| query[..] == d[..])));
}

/// The same element of a VOLE in two bins, and in two sessions or for two purposes.
#[test]
fn values_follow_from_session_purpose_bin_and_element() {
    let f = |session: u8, purpose, bin: usize, element: Element| {
        let mut value = [[0; 16]];
        let h = oracle(&SessionId::of([session; 32]), purpose);
        hash(&h, std::iter::once((bin, element)), &mut value);
        value[0]
    };
    let changed = |place: usize| {
        let mut element = [5; 16];
        element[place] ^= 1;
        f(1, "bins", 0, element)
    };
    let mut all = vec![f(1, "bins", 0, [5; 16]), f(2, "bins", 0, [5; 16]), f(1, "others", 0, [5; 16])];
    all.extend([1, 255, 256, 1 << 16, 1 << 24].map(|bin| f(1, "bins", bin, [5; 16])));
    all.extend([0, 7, 8, 15].map(changed));
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
}

/// With equal randomness, another session or purpose has another VOLE.
#[test]
fn the_vole_belongs_to_the_session_and_the_purpose() {
    let sums = |session: u8, purpose| {
        let (protocol, session) = (FromVole::new(Silent { k: 2 }), SessionId::of([session; 32]));
        parts(&run(&protocol, &session, purpose, &queries(60)).1.0[1], 0x33, 16)
    };
    let all = [sums(1, "bins"), sums(2, "bins"), sums(1, "others")];
    assert!(!all[0].is_empty());
    assert_eq!(all.concat().iter().collect::<HashSet<_>>().len(), 3 * all[0].len());
}

#[test]
fn a_query_is_a_half_of_full_width() {
    every_bit_is_random(&queries(400), 128);
    let item = Input::of_item(b"a");
    assert_eq!(query(&item)[..], item[..16]);
}

/// A VOLE that counts the elements requested of its sender, and does nothing else.
#[derive(Clone, Default)]
struct Counting(Arc<AtomicUsize>);

impl Vole for Counting {
    type Receiver = vole::Ideal;
    type Sender = Counting;

    fn receiver(&self, _: &mut Context, _: &'static str) -> Result<vole::Ideal> {
        Ok(vole::Ideal)
    }

    fn sender(&self, _: &mut Context, _: &'static str) -> Result<Counting> {
        Ok(self.clone())
    }
}

impl Sender for Counting {
    fn delta(&self) -> &Element {
        &[1; 16]
    }

    fn next<S: VoleScalar>(&mut self, _: &mut Context, n: usize) -> Result<Secrets<Element>> {
        self.0.fetch_add(n, Ordering::Relaxed);
        Ok(Secrets::zeros(n))
    }
}

#[test]
fn the_sender_expands_a_part_for_what_has_come_and_no_more() {
    // 100 million bins are announced; `come` frames arrive.
    for come in [0, 1, 3] {
        let protocol = FromVole { vole: Counting::default(), part: FRAME };
        let (mut peer, mut ch) = Channel::pair();
        std::thread::scope(|s| {
            s.spawn(move || (0..come).for_each(|_| peer.tx.send(D, &vec![[7; 16]; FRAME]).unwrap()));
            let mut rng = Prng::from_seed(&[2; 32]);
            let cx = &mut Context::new(&mut ch, &ANY_SESSION, &mut rng);
            let e = protocol.sender(cx, "bins", 100_000_000).err();
            assert!(matches!(e, Some(Error::Network(_))), "{e:?}");
        });
        assert_eq!(protocol.vole.0.load(Ordering::Relaxed), (come + 1) * FRAME);
    }
}

#[test]
fn messages_of_another_length_or_kind_are_refused() {
    let n = 200;
    let forge = |tag, length| (tag, vec![7; length]);
    let forgeries = [0, 16 * n - 1, 16 * n - 16, 16 * n + 1, 16 * n + 16].map(|length| forge(0xc0, length));
    for (tag, body) in forgeries.into_iter().chain([forge(0x80, 16 * n)]) {
        let e = with_frames(&[(tag, &body)], |cx| FromVole::new(vole::Ideal).sender(cx, "bins", n))
            .err()
            .unwrap();
        let named = e.to_string().contains("queries of bins");
        assert!(matches!(e, Error::Peer { fault: Fault::Misbehaved, .. }) && named, "{e}");
    }
}
