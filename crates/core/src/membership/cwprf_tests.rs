use super::*;
use crate::channel::Channel;
use crate::channel::{Recording, Sink, Source};
use crate::error::Fault;
use crate::group::curve25519::{Curve25519, Key, map_and_raise};
use crate::group::p256::{P256, P256Compressed};
use crate::group::ristretto255::Ristretto255;
use crate::item::ItemSet;
use crate::membership::Ideal;
use crate::rng::Prng;
use crate::testing::{
    Views, are_random_orders, every_bit_is_random, overlapping, parts, places, run_pair, sizes, under,
    with_frames,
};
use curve25519_dalek::constants::{ED25519_BASEPOINT_POINT, EIGHT_TORSION};
use curve25519_dalek::montgomery::MontgomeryPoint;

const SESSION: SessionId = SessionId::of([5; 32]);

fn bits_by_item<M: Mqrpmt + Sync>(m: &M, y: &ItemSet, x: &ItemSet) -> (Vec<bool>, Views) {
    let (y, x) = (&HashedSet::new(y), &HashedSet::new(x));
    let ((bits, order), views) =
        run_pair(&SESSION, |cx| m.server(cx, y, x.len()), |cx| m.client(cx, x, y.len()));
    let mut by_item = vec![false; x.len()];
    order.iter().zip(bits.iter()).for_each(|(&i, &bit)| by_item[i as usize] = bit);
    (by_item, views)
}

#[test]
fn the_bits_are_those_of_the_plain_computation() {
    for (n_y, n_x) in sizes(FRAME) {
        for overlap in [0.0, 0.5, 1.0] {
            let (y, x) = overlapping(n_y, n_x, overlap);
            let plain: std::collections::HashSet<&[u8]> = y.iter().collect();
            let expected: Vec<bool> = x.iter().map(|i| plain.contains(i)).collect();
            assert_eq!(
                bits_by_item(&CwPrf(Curve25519, GolombTags), &y, &x).0,
                expected,
                "{n_y} {n_x} {overlap}"
            );
            if n_y < 100 {
                assert_eq!(
                    bits_by_item(&CwPrf(Curve25519, BloomFilter), &y, &x).0,
                    expected,
                    "{n_y} {n_x} {overlap}"
                );
                assert_eq!(bits_by_item(&Ideal, &y, &x).0, expected);
            }
        }
    }
}

#[test]
fn the_error_is_that_of_the_whole_run_and_an_argument_of_the_set() {
    // Each bit of the exponent costs one bit of tag per element, or 1.44 bits of filter.
    let golomb = |exponent| GolombTags.make(exponent, 1000, 800).unwrap().bytes();
    let bloom = |exponent| BloomFilter.make(exponent, 1000, 800).unwrap().bytes();
    assert_eq!(golomb(48) - golomb(40), 800);
    assert!((800..1300).contains(&(bloom(48) - bloom(40))));
}

#[test]
fn message_sizes_depend_on_the_sizes_of_the_sets_only() {
    let (n_y, n_x) = (FRAME + 1, 30);
    let lengths = |overlap, long: bool| {
        let (mut y, mut x) = overlapping(n_y, n_x, overlap);
        if long {
            let stretch = |s: &ItemSet| s.iter().map(|i| [i, &[7; 1000][..]].concat()).collect::<ItemSet>();
            (y, x) = (stretch(&y), stretch(&x));
        }
        let views = bits_by_item(&CwPrf(Curve25519, GolombTags), &y, &x).1;
        let mut client = views.frames(1);
        let mut server = views.frames(0);
        // The last frames are the tags. Their length varies only with their pseudorandom values.
        let tags = server.split_off(server.len() - 2);
        assert!(tags.iter().all(|(tag, _)| *tag == 0x21));
        client.append(&mut server);
        client
    };
    let one = lengths(0.0, false);
    // 32 bytes per point, excluding the headers.
    assert_eq!(one, [(0x11, FRAME * 32), (0x11, 32), (0x12, 30 * 32)]);
    assert_eq!(one, lengths(1.0, false));
    assert_eq!(one, lengths(0.5, true));
}

fn points(view: &[u8], tag: u16) -> Vec<[u8; 32]> {
    let mut points = Vec::new();
    for (t, body) in crate::testing::split_frames(view) {
        if t == tag {
            points.extend(body.chunks_exact(32).map(|p| <[u8; 32]>::try_from(p).unwrap()));
        }
    }
    points
}

#[test]
fn what_a_party_receives_carries_no_twist_bit() {
    let (y, x) = overlapping(300, 300, 0.5);
    let views = bits_by_item(&CwPrf(Curve25519, GolombTags), &y, &x).1;
    for (view, tag) in [(&views.0[1], 0x11), (&views.0[0], 0x12)] {
        let points = points(view, tag);
        assert_eq!(points.len(), 300);
        // With the paper's hash half of them would be on the twist (see group::curve25519).
        assert!(points.iter().all(|p| MontgomeryPoint(*p).to_edwards(0).is_some()));
    }
}

/// Replaces the second query by one that a malicious client may send.
struct Instead<F> {
    sink: Box<dyn Sink>,
    second: F,
}

impl<F: Fn([u8; 32]) -> [u8; 32] + Send> Sink for Instead<F> {
    fn send(&mut self, mut frame: Vec<u8>) -> Result<()> {
        if frame[0] == 0x12 {
            let first = <[u8; 32]>::try_from(&frame[6..38]).unwrap();
            frame[38..70].copy_from_slice(&(self.second)(first));
        }
        self.sink.send(frame)
    }
}

#[test]
fn a_client_cannot_ask_for_the_same_item_twice() {
    let (y, x) = overlapping(5, 3, 0.0);
    let twice = |second: fn([u8; 32]) -> [u8; 32]| {
        let ((result, ()), _) = run_pair(
            &SESSION,
            |cx| Ok(CwPrf(Curve25519, GolombTags).server(cx, &HashedSet::new(&y), 3)),
            |cx| {
                let (sink, source) = std::mem::replace(cx.ch, Channel::pair().0).into_halves();
                *cx.ch = Channel::from_halves(Box::new(Instead { sink, second }), source);
                // The outcome for the cheating client does not matter.
                let _ = CwPrf(Curve25519, GolombTags).client(cx, &HashedSet::new(&x), 5);
                Ok(())
            },
        );
        result.map(|bits| bits.to_vec())
    };
    let other =
        |p: [u8; 32]| (MontgomeryPoint(p).to_edwards(0).unwrap() + ED25519_BASEPOINT_POINT).to_montgomery().0;
    assert_eq!(twice(other), Ok(vec![false; 3]));
    // A different abscissa on the wire, but equal under every key: the points differ by a point of small order.
    let disguised =
        |p: [u8; 32]| (MontgomeryPoint(p).to_edwards(0).unwrap() + EIGHT_TORSION[1]).to_montgomery().0;
    for second in [(|p| p) as fn([u8; 32]) -> [u8; 32], disguised] {
        let error = twice(second).unwrap_err();
        assert!(
            matches!(&error, Error::Peer { fault: Fault::Misbehaved, what: m, .. } if m.contains("the same item twice")),
            "{error}"
        );
    }
}

#[test]
fn queries_that_meet_are_found_wherever_they_stand() {
    assert!(repeats(&[5, 5]) && repeats(&[5, 9, 5]) && repeats(&[1, 5, 9, 7, 5]));
    assert!(!repeats(&[]) && !repeats(&[5]) && !repeats(&[5, 9, 7]));
}

/// A client that does not permute its queries, so that the server sees them in the client's original order.
struct Unpermuted;
impl Mqrpmt for Unpermuted {
    fn server(&self, cx: &mut Context, y: &HashedSet, n: usize) -> Result<Secrets<bool>> {
        CwPrf(Curve25519, GolombTags).server(cx, y, n)
    }
    fn client(&self, cx: &mut Context, x: &HashedSet, n_y: usize) -> Result<Secrets<u32>> {
        // The flawed variant: a client whose permutation is the identity.
        let order = cx.rng.permutation(x.len());
        let mut inverse = vec![0; order.len()];
        order.iter().enumerate().for_each(|(j, &i)| inverse[i as usize] = j);
        let undone: ItemSet = inverse.iter().map(|&j| x.items().get(j)).collect();
        let again = Prng::from_seed(&crate::testing::SEEDS[1]);
        CwPrf(Curve25519, GolombTags).client(cx.under(again), &HashedSet::new(&undone), n_y)?;
        Ok(Secrets::from((0..x.len() as u32).collect::<Vec<_>>()))
    }
}

#[test]
fn the_positions_of_the_bits_carry_no_order() {
    // The first half of X matches. Permuting the queries spreads the matches over all positions.
    let n = 2000;
    let y: ItemSet = (0..n / 2).map(|i: u32| i.to_le_bytes()).collect();
    let x: ItemSet = (0..n).map(|i: u32| i.to_le_bytes()).collect();
    let (y, x) = (HashedSet::new(&y), HashedSet::new(&x));
    let in_first_half = |m: &(dyn Fn(&mut Context) -> Result<Secrets<u32>> + Sync)| {
        let ((bits, _), _) =
            run_pair(&SESSION, |cx| CwPrf(Curve25519, GolombTags).server(cx, &y, n as usize), |cx| m(cx));
        bits[..n as usize / 2].iter().filter(|&&b| b).count()
    };
    let ours = in_first_half(&|cx| CwPrf(Curve25519, GolombTags).client(cx, &x, y.len()));
    // 1000 matches over 2000 positions: mean 500, standard deviation 11.2.
    assert!((440..560).contains(&ours), "{ours}");
    let flawed = in_first_half(&|cx| Unpermuted.client(cx, &x, y.len()));
    assert_eq!(flawed, 1000, "the test tells the flawed form apart");
}

#[test]
fn the_tags_carry_no_order_of_the_servers_set() {
    // The client's key and queries are fixed. The server's set comes in two orders, under the same key.
    let (y, x) = overlapping(500, 20, 0.5);
    let reversed: ItemSet = (0..500).rev().map(|i| y.get(i)).collect();
    let tags = |y: &ItemSet| {
        let views = bits_by_item(&CwPrf(Curve25519, GolombTags), y, &x).1;
        crate::testing::split_frames(&views.0[0]).into_iter().filter(|(t, _)| *t == 0x21).collect::<Vec<_>>()
    };
    assert_eq!(tags(&y), tags(&reversed));
}

#[test]
fn the_servers_points_do_not_come_in_the_order_of_its_set() {
    let (y, _) = overlapping(400, 0, 0.0);
    let all: Vec<u32> = (0..400).collect();
    let view = bits_by_item(&CwPrf(Curve25519, GolombTags), &y, &ItemSet::default()).1.0[1].clone();
    let sent = points(&view, 0x11);
    // The server's generator draws the key first.
    let k1 = Key::random(&mut Prng::from_seed(&crate::testing::SEEDS[0]));
    let unpermuted = map_and_raise(&HashedSet::new(&y).hashes(&all), &k1).unwrap();
    let stay = unpermuted.iter().zip(&sent).filter(|(p, q)| p.as_bytes() == *q).count();
    let mut both = [unpermuted.iter().map(|p| *p.as_bytes()).collect::<Vec<_>>(), sent];
    both.iter_mut().for_each(|list| list.sort_unstable());
    assert!(both[0] == both[1] && stay < 10, "{stay}");
}

/// The views of both parties in a run with these generators, and the order of the client's queries.
fn run_with(session: &SessionId, y: &HashedSet, x: &HashedSet, seed: u8) -> (Views, Vec<usize>) {
    let rng = |role: u8| Prng::from_seed(&[2 * seed + role; 32]);
    let ((_, order), views) = run_pair(
        session,
        |cx| CwPrf(Curve25519, GolombTags).server(cx.under(rng(0)), y, x.len()),
        |cx| CwPrf(Curve25519, GolombTags).client(cx.under(rng(1)), x, y.len()),
    );
    (views, order.iter().map(|&i| i as usize).collect())
}

fn keys(seed: u8) -> (Key, Key) {
    Key::with_inverse(&mut Prng::from_seed(&[seed; 32]))
}

fn known(set: &HashedSet, (key, _): (Key, Key)) -> Vec<Vec<u8>> {
    map_and_raise(set.own(), &key).unwrap().iter().map(|p| p.as_bytes().to_vec()).collect()
}

#[test]
fn both_send_in_random_order_and_another_one_in_each_run() {
    let (y, x) = overlapping(300, 250, 0.5);
    let (mut y, mut x) = (HashedSet::new(&y), HashedSet::new(&x));
    under(&mut y, keys(7));
    under(&mut x, keys(8));
    let (known_y, known_x) = (known(&y, keys(7)), known(&x, keys(8)));
    let [first, second] = [1, 2].map(|seed| {
        let (views, order) = run_with(&SESSION, &y, &x, seed);
        let queries = places(&known_x, &parts(&views.0[0], 0x12, 32));
        assert_eq!(queries, order, "the client knows what it asked for");
        (queries, places(&known_y, &parts(&views.0[1], 0x11, 32)))
    });
    are_random_orders([&first.0, &second.0]);
    are_random_orders([&first.1, &second.1]);
}

#[test]
fn the_keys_of_both_are_fresh_in_each_run() {
    let (y, x) = overlapping(50, 40, 0.5);
    let (y, x) = (HashedSet::new(&y), HashedSet::new(&x));
    let [first, second] = [1, 2].map(|seed| run_with(&SESSION, &y, &x, seed).0.0);
    for (party, tag) in [(1, 0x11), (0, 0x12)] {
        let [first, second] = [&first, &second].map(|view| parts(&view[party], tag, 32));
        assert!(first.iter().all(|point| !second.contains(point)), "{tag:#x}");
    }
}

/// The keys are the same, which never happens in practice, so that only the session differs.
#[test]
fn omega_of_one_session_means_nothing_in_another() {
    let (y, x) = overlapping(50, 40, 0.5);
    let (mut y, mut x) = (HashedSet::new(&y), HashedSet::new(&x));
    under(&mut y, keys(7));
    under(&mut x, keys(8));
    let [here, there] = [SESSION, SessionId::of([6; 32])].map(|session| run_with(&session, &y, &x, 1).0.0);
    assert!(here[1] == there[1]);
    let omega = |view: &[u8]| crate::testing::split_frames(view).pop().unwrap();
    assert_eq!([&here, &there].map(|view| omega(&view[0]).0), [0x21; 2]);
    assert!(omega(&here[0]) != omega(&there[0]));
}

/// Tags take up to 96 bits of a digest. With shorter digests, queries of large sets could be found wrongly.
#[test]
fn digests_are_of_full_width() {
    let (y, _) = overlapping(400, 0, 0.0);
    let y = HashedSet::new(&y);
    let (mut a, mut b) = Channel::pair();
    a.tx.send(Messages::<Curve25519>::Y_K1, &map_and_raise(y.own(), &keys(7).0).unwrap()).unwrap();
    let digests = raise_digests::<Curve25519>(
        &mut b.rx,
        Threads::global(),
        Messages::<Curve25519>::Y_K1,
        400,
        &keys(8).0,
        &SESSION,
    )
    .unwrap();
    every_bit_is_random(&digests.iter().map(|digest| digest.to_le_bytes()).collect::<Vec<_>>(), 128);
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let (y, x) = overlapping(1000, 700, 0.5);
    let (y, x) = (HashedSet::new(&y), HashedSet::new(&x));
    let views = |threads| {
        let threads = Threads::new(threads).unwrap();
        let protocol = CwPrf(Curve25519, GolombTags);
        let (_, views) = run_pair(
            &SESSION,
            |cx| protocol.server(&mut cx.on(&threads), &y, x.len()),
            |cx| protocol.client(&mut cx.on(&threads), &x, y.len()),
        );
        views.0
    };
    assert_eq!(views(1), views(3));
}

#[test]
fn points_of_low_order_are_refused_by_both_sides() {
    let mut one = [0u8; 32];
    one[0] = 1;
    let set: ItemSet = ["a"].iter().collect();
    let set = HashedSet::new(&set);
    for (tag, server) in [(0x12u16, true), (0x11, false)] {
        for forged in [one, [0; 32], [0xff; 32]] {
            let e = with_frames(&[(tag, &forged)], |cx| match server {
                true => CwPrf(Curve25519, GolombTags).server(cx, &set, 1).map(|_| ()),
                false => CwPrf(Curve25519, GolombTags).client(cx, &set, 1).map(|_| ()),
            });
            let e = e.unwrap_err();
            assert!(matches!(e, Error::Peer { fault: Fault::Misbehaved, .. }), "{e}");
        }
    }
}

#[test]
fn what_is_no_element_of_ristretto255_or_its_identity_is_refused_by_both_sides() {
    let set: ItemSet = ["a"].iter().collect();
    let set = HashedSet::new(&set);
    let protocol = CwPrf(Ristretto255, GolombTags);
    let mut negative = [0; 32];
    negative[0] = 1;
    for (tag, server) in [(0x12u16, true), (0x11, false)] {
        for forged in [[0; 32], negative, [0xff; 32]] {
            let e = with_frames(&[(tag, &forged)], |cx| match server {
                true => protocol.server(cx, &set, 1).map(|_| ()),
                false => protocol.client(cx, &set, 1).map(|_| ()),
            });
            let e = e.unwrap_err();
            assert!(
                matches!(e, Error::Peer { fault: Fault::Misbehaved, .. })
                    && e.to_string().contains("of ristretto255"),
                "{e}"
            );
        }
    }
}

#[test]
fn what_is_no_point_of_p256_is_refused_by_both_sides() {
    fn refuses<G: Group>(forged: &[&[u8]]) {
        let set: ItemSet = ["a"].iter().collect();
        let (set, protocol) = (HashedSet::new(&set), CwPrf(G::default(), GolombTags));
        for (tag, server) in [(0x12u16, true), (0x11, false)] {
            for forged in forged {
                let e = with_frames(&[(tag, forged)], |cx| match server {
                    true => protocol.server(cx, &set, 1).map(|_| ()),
                    false => protocol.client(cx, &set, 1).map(|_| ()),
                });
                let e = e.unwrap_err();
                assert!(matches!(e, Error::Peer { fault: Fault::Misbehaved, .. }), "{} {e}", G::NAME);
            }
        }
    }
    // Encodings that are not canonical or not on the curve, among them zeros, as which the identity might be sent.
    refuses::<P256>(&[&[0xff; 64], &[0; 64], &[5; 64]]);
    let (mut one, mut four) = ([0; 32], [0; 32]);
    (one[31], four[31]) = (1, 4);
    refuses::<P256Compressed>(&[&[0xff; 32], &one, &four]);
}

#[test]
fn a_transport_of_its_own_can_carry_a_run() {
    // The tools of a hostile-peer test: a sink that forwards and an in-memory recording.
    struct Forward(Box<dyn Sink>);
    impl Sink for Forward {
        fn send(&mut self, frame: Vec<u8>) -> Result<()> {
            self.0.send(frame)
        }
    }
    let (a, b) = Channel::pair();
    let (sink, source): (Box<dyn Sink>, Box<dyn Source>) = a.into_halves();
    let mut a = Channel::from_halves(Box::new(Forward(sink)), source);
    let mut b = b;
    b.record(Recording::to_writer(Vec::new()));
    let (y, x) = overlapping(10, 10, 0.5);
    let (y, x) = (HashedSet::new(&y), HashedSet::new(&x));
    std::thread::scope(|s| {
        s.spawn(|| {
            CwPrf(Curve25519, GolombTags)
                .client(&mut Context::new(&mut a, &SESSION, &mut Prng::from_seed(&[1; 32])), &x, 10)
                .unwrap()
        });
        let bits = CwPrf(Curve25519, GolombTags)
            .server(&mut Context::new(&mut b, &SESSION, &mut Prng::from_seed(&[2; 32])), &y, 10)
            .unwrap();
        assert_eq!(bits.iter().filter(|&&b| b).count(), 5);
    });
}
