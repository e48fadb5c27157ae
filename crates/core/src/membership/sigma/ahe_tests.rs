use super::*;
use crate::ahe::elgamal::uniform;
use crate::error::Fault;
use crate::hash::SessionId;
use crate::item::ItemSet;
use crate::membership::permuted::{MqrpmtStar, PermuteThenTest, PermutedMqpmt, cardinality};
use crate::membership::sigma::{
    self,
    tests::{is_a_sigma_mqpmt, plain},
};
use crate::testing::{Views, overlapping, parts, run_pair, with_frames};
use curve25519_dalek::{
    RistrettoPoint, constants::RISTRETTO_BASEPOINT_POINT as G, ristretto::CompressedRistretto,
};
use std::collections::HashSet;

const SESSION: SessionId = SessionId::of([5; 32]);

#[test]
fn it_is_a_sigma_mqpmt() {
    is_a_sigma_mqpmt(&SigmaAhe, 60);
}

#[test]
fn results_at_the_limit_and_over_several_frames_are_those_of_the_plain_computation() {
    // With 256 items in Y, a query takes 16 KiB, and a frame has 16.
    for (n_y, n_x) in [(MOST_Y, 40), (MOST_Y - 1, 17), (200, 16), (2, MOST_X)] {
        let (y, x) = overlapping(n_y, n_x, 0.5);
        let expected = plain(&y, &x);
        let matches = expected.iter().filter(|bit| **bit).count();
        let (y, x) = (&HashedSet::new(&y), &HashedSet::new(&x));
        let test = &PermuteThenTest(SigmaAhe);
        let (((), bits), _) = run_pair(
            &SESSION,
            |cx| PermutedMqpmt::server(test, cx, y, n_x),
            |cx| PermutedMqpmt::client(test, cx, x, n_y),
        );
        assert_eq!(cardinality(&bits, n_y), Ok(matches), "{n_y} {n_x}");
        let ((e, (order, count)), _) = run_pair(
            &SESSION,
            |cx| MqrpmtStar::server(test, cx, y, n_x),
            |cx| MqrpmtStar::client(test, cx, x, n_y),
        );
        let mut by_item = vec![false; n_x];
        order.iter().zip(e.iter()).for_each(|(&i, &bit)| by_item[i as usize] = bit);
        assert_eq!((by_item, count), (expected, matches), "{n_y} {n_x}");
    }
}

#[test]
fn larger_sets_are_refused_before_anything_is_sent() {
    let set: ItemSet = (0..MOST_X as u32 + 1).map(|i| i.to_le_bytes()).collect();
    let few: ItemSet = ["a"].iter().collect();
    let refused = |set: &ItemSet, run: fn(&mut Context, &HashedSet) -> Result<()>| {
        let mut sent = 0;
        let end = with_frames(&[], |cx| {
            let end = run(cx, &HashedSet::new(set));
            sent = cx.ch.bytes_sent();
            end
        });
        assert!(matches!(&end, Err(Error::Usage(what)) if what.contains("at most 256 and 4096")), "{end:?}");
        assert_eq!(sent, 0);
    };
    refused(&set, |cx, set| sigma::client(&SigmaAhe, cx, set, 1).map(drop));
    refused(&few, |cx, set| sigma::client(&SigmaAhe, cx, set, MOST_Y + 1).map(drop));
    refused(&set, |cx, set| sigma::server(&SigmaAhe, cx, set, 1));
    refused(&few, |cx, set| sigma::server(&SigmaAhe, cx, set, MOST_X + 1));
    refused(&few, |cx, set| sigma::server(&SigmaAhe, cx, set, 1 << 28));
}

#[test]
fn the_polynomial_vanishes_at_the_items_of_y_only() {
    let rng = &mut Prng::from_seed(&[4; 32]);
    let at = |f: &[Scalar], x: Scalar| f.iter().rev().fold(Scalar::ZERO, |value, c| value * x + c);
    assert_eq!(*with_roots(&[]), [Scalar::ONE, Scalar::ZERO]);
    for n in [1, 2, 3, 40] {
        let roots: Vec<Scalar> = (0..n).map(|_| *unit(rng)).collect();
        let f = with_roots(&roots);
        assert!(f.len() == n + 1 && f[n] == Scalar::ONE);
        assert!(roots.iter().all(|root| at(&f, *root) == Scalar::ZERO));
        let x = *unit(rng);
        assert_eq!(at(&f, x), roots.iter().map(|root| x - root).product());
    }
}

fn sets() -> (ItemSet, ItemSet) {
    overlapping(5, 40, 0.4)
}

fn run_with(session: &SessionId, y: &HashedSet, x: &HashedSet, seeds: [u8; 2]) -> (Vec<bool>, Views) {
    let rng = |role: usize| Prng::from_seed(&[seeds[role]; 32]);
    let (((), bits), views) = run_pair(
        session,
        |cx| sigma::server(&SigmaAhe, cx.under(rng(0)), y, x.len()),
        |cx| sigma::client(&SigmaAhe, cx.under(rng(1)), x, y.len()),
    );
    (bits.to_vec(), views)
}

fn point(bytes: &[u8]) -> RistrettoPoint {
    CompressedRistretto(bytes.try_into().unwrap()).decompress().unwrap()
}

/// The first and second parts of the ciphertexts in these messages.
fn points(views: &Views, party: usize, tag: u16) -> Vec<[RistrettoPoint; 2]> {
    let ciphertexts = parts(&views.0[party], tag, 64);
    ciphertexts.iter().map(|bytes| [point(&bytes[..32]), point(&bytes[32..])]).collect()
}

/// The client's knowledge in a run with this seed, with a right guess of Y.
struct Guess {
    f: Secrets<Scalar>,
    items: Secrets<Scalar>,
    sk: Scalar,
    rng: Prng,
}

impl Guess {
    fn new(y: &HashedSet, x: &HashedSet, seed: u8) -> Guess {
        let domain = Domain::new(&SESSION, "Sigma-mqPMT from AHE, an item as a scalar");
        let of = |set: &HashedSet| scalars(&domain, &set.hashes(&(0..set.len() as u32).collect::<Vec<_>>()));
        let mut rng = Prng::from_seed(&[seed; 32]);
        let sk = *unit(&mut rng);
        Guess { f: with_roots(&of(y)), items: of(x), sk, rng: rng.split() }
    }

    fn at(&self, i: usize) -> Scalar {
        self.f.iter().rev().fold(Scalar::ZERO, |value, c| value * self.items[i] + c)
    }

    /// Computes from a response that does not match: r G; and r c_1 A_1 + r c_2 A_2 + ..., the first part that it would have
    /// without fresh randomness, from the randomness of the query.
    fn says(&self, i: usize, [first, second]: [RistrettoPoint; 2]) -> [RistrettoPoint; 2] {
        let r_g = (second - first * self.sk) * self.at(i).invert();
        let mut rng = self.rng.fork(i as u64);
        let randomness: Scalar = self.f[1..].iter().map(|c| c * *uniform(&mut rng)).sum();
        [r_g, r_g * randomness]
    }
}

/// The client knows the randomness of its queries. If the first part of a response followed from it, it would show whether Y
/// was guessed right.
#[test]
fn responses_do_not_show_whether_a_guess_of_y_is_right() {
    let (y, x) = sets();
    let (y, x) = (HashedSet::new(&y), HashedSet::new(&x));
    let (bits, views) = run_with(&SESSION, &y, &x, [1, 2]);
    let guess = Guess::new(&y, &x, 2);
    assert_eq!(parts(&views.0[0], 0x19, 32), [(G * guess.sk).compress().0.to_vec()]);
    let (queries, responses) = (points(&views, 0, 0x1a), points(&views, 1, 0x1b));
    let r = Scalar::from(1u64 << 40);
    for i in (0..40).filter(|i| !bits[*i]) {
        let [_, stale] = guess.says(i, responses[i]);
        assert_ne!(responses[i][0], stale);
        // The test recognises the form without fresh randomness.
        let part = |part: usize| -> RistrettoPoint {
            let query = queries[5 * i..5 * i + 5].iter();
            query.zip(&guess.f[1..]).map(|(parts, c)| parts[part] * (c * r)).sum()
        };
        let flawed = [part(0), part(1) + G * (guess.f[0] * r)];
        assert_eq!(guess.says(i, flawed), [G * r, flawed[0]]);
    }
}

#[test]
fn each_response_is_masked_by_a_factor_and_randomness_of_its_own() {
    let (y, x) = sets();
    let (y, x) = (HashedSet::new(&y), HashedSet::new(&x));
    let guess = Guess::new(&y, &x, 2);
    let mut seen = Vec::new();
    for seed in [1, 3] {
        let (bits, views) = run_with(&SESSION, &y, &x, [seed, 2]);
        let responses = points(&views, 1, 0x1b);
        for i in (0..40).filter(|i| !bits[*i]) {
            let [r_g, stale] = guess.says(i, responses[i]);
            seen.extend([r_g, responses[i][0] - stale].map(|point| point.compress().0));
        }
    }
    let distinct: HashSet<[u8; 32]> = seen.iter().copied().collect();
    // r G and t G of each response in both runs, where t is its fresh randomness; no r or t is 0 or 1.
    assert!(seen.len() > 120 && distinct.len() == seen.len());
    assert!(!distinct.contains(&[0; 32]) && !distinct.contains(&G.compress().0));
}

/// The factors also differ from the ones of the previous frame of queries.
#[test]
fn factors_of_different_frames_are_different() {
    let (y, x) = overlapping(MOST_Y, 20, 0.0);
    let (y, x) = (HashedSet::new(&y), HashedSet::new(&x));
    let (guess, views) = (Guess::new(&y, &x, 2), run_with(&SESSION, &y, &x, [1, 2]).1);
    assert_eq!(views.frames(0).iter().filter(|frame| frame.0 == 0x1a).count(), 2);
    let responses = points(&views, 1, 0x1b);
    let factors = (0..20).map(|i| guess.says(i, responses[i])[0].compress().0);
    assert_eq!(factors.collect::<HashSet<_>>().len(), 20);
}

#[test]
fn keys_and_queries_are_fresh_in_each_run_and_each_ciphertext_is() {
    let (y, x) = sets();
    let (y, x) = (HashedSet::new(&y), HashedSet::new(&x));
    let [first, second] = [2, 3].map(|seed| run_with(&SESSION, &y, &x, [1, seed]).1);
    let [here, there] = [&first, &second].map(|views| parts(&views.0[0], 0x19, 32));
    assert!(here.len() == 1 && here != there);
    let halves = [&first, &second].map(|views| parts(&views.0[0], 0x1a, 32));
    let distinct: HashSet<&Vec<u8>> = halves.iter().flatten().collect();
    assert_eq!(distinct.len(), 2 * 2 * 5 * 40);
}

/// The seeds are equal, which never happens in practice, so that only the session differs.
#[test]
fn queries_of_one_session_mean_nothing_in_another() {
    let (y, x) = sets();
    let (y, x) = (HashedSet::new(&y), HashedSet::new(&x));
    let [here, there] = [SESSION, SessionId::of([6; 32])].map(|session| run_with(&session, &y, &x, [1, 2]));
    assert!(here.0 == there.0 && parts(&here.1.0[0], 0x19, 32) == parts(&there.1.0[0], 0x19, 32));
    let second =
        |views: &Views| parts(&views.0[0], 0x1a, 64).iter().map(|c| c[32..].to_vec()).collect::<HashSet<_>>();
    assert!(second(&here.1).is_disjoint(&second(&there.1)));
}

#[test]
fn what_is_no_ciphertext_or_key_is_refused_by_both_sides() {
    let set: ItemSet = ["a"].iter().collect();
    let set = HashedSet::new(&set);
    let good = G.compress().0;
    let mut one = [0u8; 32];
    one[0] = 1;
    let refused = |end: Result<()>| {
        assert!(matches!(end, Err(Error::Peer { fault: Fault::Misbehaved, .. })), "{end:?}");
    };
    let server = |key: &[u8], query: &[u8]| {
        with_frames(&[(0x19, key), (0x1a, query)], |cx| sigma::server(&SigmaAhe, cx, &set, 1))
    };
    let client = |response: &[u8]| {
        with_frames(&[(0x1b, response)], |cx| sigma::client(&SigmaAhe, cx, &set, 1).map(drop))
    };
    assert_eq!((server(&good, &[good; 2].concat()), client(&[good; 2].concat())), (Ok(()), Ok(())));
    for forged in [one, [0; 32], [0xff; 32]] {
        refused(server(&forged, &[good; 2].concat()));
        for pair in [[forged, good], [good, forged]] {
            refused(server(&good, &pair.concat()));
            refused(client(&pair.concat()));
        }
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let (y, x) = overlapping(30, 200, 0.5);
    let (y, x) = (HashedSet::new(&y), HashedSet::new(&x));
    let views = |threads| {
        let threads = Threads::new(threads).unwrap();
        let test = PermuteThenTest(SigmaAhe);
        let (_, views) = run_pair(
            &SESSION,
            |cx| MqrpmtStar::server(&test, &mut cx.on(&threads), &y, x.len()),
            |cx| MqrpmtStar::client(&test, &mut cx.on(&threads), &x, y.len()),
        );
        views.0
    };
    assert!(views(1) == views(3));
}
