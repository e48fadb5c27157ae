use super::*;
use crate::channel::Channel;
use crate::error::Fault;
use crate::hash::SessionId;
use crate::item::ItemSet;
use crate::membership::bfv::tests::{largest, noise};
use crate::testing::{Views, overlapping, run_pair, with_frames};
use std::collections::HashSet;

const SESSION: SessionId = SessionId::of([5; 32]);

fn bits_by_item(y: &ItemSet, x: &ItemSet) -> (Vec<bool>, Views) {
    let (y, x) = (&HashedSet::new(y), &HashedSet::new(x));
    let ((bits, order), views) =
        run_pair(&SESSION, |cx| FromFhe.server(cx, y, x.len()), |cx| FromFhe.client(cx, x, y.len()));
    let mut by_item = vec![false; x.len()];
    order.iter().zip(bits.iter()).for_each(|(&i, &bit)| by_item[i as usize] = bit);
    (by_item, views)
}

#[test]
fn the_bits_are_those_of_the_plain_computation_and_the_bytes_those_of_the_formula() {
    let many = [(256, 100), (2, QUERIES), (3, QUERIES + 1)];
    let few = [(0, 0), (0, 3), (3, 0), (1, 1), (1, 40), (40, 1), (17, 30)];
    for (n_y, n_x) in few.into_iter().chain(many) {
        for overlap in if n_x < 50 && n_y < 50 { vec![0.0, 0.5, 1.0] } else { vec![0.5] } {
            let (y, x) = overlapping(n_y, n_x, overlap);
            let (bits, views) = bits_by_item(&y, &x);
            let plain: Vec<bool> = x.iter().map(|item| y.iter().any(|other| other == item)).collect();
            assert_eq!(bits, plain, "{n_y} {n_x} {overlap}");
            let (_, oprf) = comparison(n_x);
            let runs = usize::from(n_y > 0 && n_x > 0);
            let tags = n_x * Budget::new(n_y, n_x).unwrap().tag + HEADER * n_x.div_ceil(FRAME);
            let [to_client, to_server] = sends(n_y, n_x);
            let expected = [to_server + runs * (oprf.sends()[1] + tags), to_client + runs * oprf.sends()[0]];
            assert_eq!(views.0.map(|view| view.len()), expected, "{n_y} {n_x} {overlap}");
        }
    }
}

#[test]
fn the_positions_of_the_bits_carry_no_order() {
    // The first half of X matches.
    let x: ItemSet = (0..200).map(|i: u32| i.to_le_bytes()).collect();
    let y: ItemSet = (0..100).map(|i: u32| i.to_le_bytes()).collect();
    let (y, x) = (&HashedSet::new(&y), &HashedSet::new(&x));
    let run = |seed| {
        let client = |cx: &mut Context| FromFhe.client(cx.under(Prng::from_seed(&[seed; 32])), x, y.len());
        run_pair(&SESSION, |cx| FromFhe.server(cx, y, x.len()), client).0
    };
    let [(first, one), (_, two)] = [run(1), run(2)];
    let early = first[..100].iter().filter(|&&bit| bit).count();
    // 100 matches over 200 positions: mean 50, standard deviation 3.5.
    assert!((25..75).contains(&early), "{early}");
    let [one, two] = [one, two].map(|order| order.iter().map(|&i| i as usize).collect::<Vec<_>>());
    crate::testing::are_random_orders([&one, &two]);
}

/// A client that queries 0 in every slot, and returns all it sees: the values in all slots of each response, the noise, and the
/// second halves.
fn curious(y: &HashedSet, n_x: usize, seed: u8) -> (Vec<Vec<u64>>, Vec<u128>, Vec<Element>) {
    let (mut a, b) = Channel::pair();
    // The server sees the end of the channel when this side is done.
    std::thread::scope(move |s| {
        let mut b = b;
        s.spawn(move || {
            let mut rng = Prng::from_seed(&[seed; 32]);
            FromFhe.server(&mut Context::new(&mut a, &SESSION, &mut rng), y, n_x).map(drop)
        });
        let bfv = Bfv::new().unwrap();
        let rng = &mut Prng::from_seed(&[77; 32]);
        let mut cx = Context::new(&mut b, &SESSION, rng);
        let key = bfv.secret_key(cx.rng).unwrap();
        let public_key = bfv.public_key(&key, &bfv.uniform(&[6; 32], 0).unwrap(), cx.rng).unwrap();
        cx.ch.tx.send_bytes(PUBLIC_KEY, &[&[6; 32][..], &bfv.write(&public_key)].concat()).unwrap();
        let batches = n_x.div_ceil(QUERIES);
        for batch in 0..batches {
            send_powers(&mut cx, &bfv, (&key, &[6; 32]), &slots(&[]), y.len(), batch).unwrap();
        }
        let (mut values, mut noises, mut halves) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..batches {
            let z = cx.ch.rx.recv_bytes(RESPONSE, 2 * POLYNOMIAL).unwrap();
            let (c0, c1) = z.split_at(POLYNOMIAL);
            let z = [c0, c1].map(|half| bfv.read("response", half).unwrap());
            let v = bfv.decrypt(&key, &z).unwrap();
            noises.push(noise(&bfv, &key, &z, &v));
            values.push(v.to_vec());
            halves.push(z[1].clone());
        }
        (values, noises, halves)
    })
}

/// The client knows that f(0) is the same in all slots of a component. All that it sees must be masked, even in slots without a
/// query, with different masks in each slot, response and run.
#[test]
fn all_slots_have_masks_of_their_own() {
    let y: ItemSet = (0..3).map(|i: u32| i.to_le_bytes()).collect();
    let y = &HashedSet::new(&y);
    // The second response has one query.
    let (mut seen, mut differences, mut n) = (HashSet::new(), HashSet::new(), 0);
    for seed in [1, 2] {
        for values in curious(y, QUERIES + 1, seed).0 {
            n += values.len();
            let low = values.iter().filter(|v| **v < PLAIN / 2).count();
            assert!(low.abs_diff(QUERIES) < 320, "{low}: masks that are not uniform");
            // With one mask for both components, the difference would be the same for all queries.
            let pairs = values[..QUERIES].iter().zip(&values[QUERIES..]);
            differences.extend(pairs.map(|(first, second)| (first + PLAIN - second) % PLAIN));
            seen.extend(values);
        }
    }
    // Two of 2^15 are equal with probability 2^-11; the seeds are fixed.
    assert_eq!((seen.len(), n), (n, 8 * QUERIES), "masks are used twice");
    assert_eq!(differences.len(), n / 2, "a query has one mask");
}

#[test]
fn responses_are_flooded_and_their_second_halves_say_nothing_about_the_set() {
    let y: ItemSet = (0..3).map(|i: u32| i.to_le_bytes()).collect();
    let y = &HashedSet::new(&y);
    let (_, noises, halves) = curious(y, QUERIES + 1, 1);
    let flood = Budget::new(3, QUERIES + 1).unwrap().flood;
    for noise in noises {
        assert!((1 << (flood - 1)..1 << (flood + 1)).contains(&noise), "{noise}: not flooded");
    }
    // A client that guesses Y computes the sum of its own second halves, weighted with the coefficients.
    let bfv = Bfv::new().unwrap();
    let (mut ch, _) = Channel::pair();
    let rng = &mut Prng::from_seed(&[1; 32]);
    let f = polynomial(&bfv, &components(&Context::new(&mut ch, &SESSION, rng), &bfv, y));
    for (batch, half) in halves.iter().enumerate() {
        let mut guessed = bfv.nothing();
        for k in 1..=3 {
            let a = bfv.uniform(&[6; 32], numbered(batch, k)).unwrap();
            *guessed += &*bfv.multiply(a, &bfv.constant(f[k]).unwrap());
        }
        guessed.change_representation(fhe_math::rq::Representation::PowerBasis);
        *guessed -= &**half;
        assert_eq!(largest(&bfv, &guessed), u128::MAX, "a guess of the set can be tested");
    }
}

#[test]
fn keys_seeds_and_queries_are_fresh_in_each_run() {
    let (y, x) = overlapping(2, 3, 0.5);
    let (y, x) = (&HashedSet::new(&y), &HashedSet::new(&x));
    let [first, second] = [1, 2].map(|seed| {
        let client = |cx: &mut Context| FromFhe.client(cx.under(Prng::from_seed(&[seed; 32])), x, y.len());
        let views = run_pair(&SESSION, |cx| FromFhe.server(cx, y, x.len()), client).1;
        crate::testing::split_frames(&views.0[0])
    });
    // The key and two powers: none is in both runs, nor are its first bytes, which in the key are the seed.
    for ((tag, one), (_, two)) in first.iter().zip(&second).take(3) {
        assert!(matches!(tag, 0x2c | 0x2d) && one[..32] != two[..32] && one[32..] != two[32..], "{tag:#x}");
    }
    // Within one run, the encrypted powers differ too.
    assert_ne!(first[1].1, first[2].1);
}

#[test]
fn the_polynomial_is_zero_at_the_items_and_components_are_independent() {
    let bfv = Bfv::new().unwrap();
    let y: ItemSet = (0..300).map(|i: u32| i.to_le_bytes()).collect();
    let y = &HashedSet::new(&y);
    let of = |session| {
        let (mut ch, _) = Channel::pair();
        let rng = &mut Prng::from_seed(&[1; 32]);
        components(&Context::new(&mut ch, session, rng), &bfv, y)
    };
    let roots = of(&SESSION);
    let t = bfv.plain();
    let f = polynomial(&bfv, &roots[..20]);
    let at = |j: usize, x: u64| f.iter().rev().fold(0, |value, c| t.add(t.mul(value, x), c[j]));
    for (i, root) in roots.iter().take(40).enumerate() {
        for j in [0, 1] {
            assert_eq!(at(j, root[j]) == 0, i < 20, "{i} {j}");
        }
    }
    assert_eq!((f.len(), f[20]), (21, [1, 1]));
    for j in [0, 1] {
        let bytes: Vec<[u8; 8]> = roots.iter().map(|root| root[j].to_le_bytes()).collect();
        crate::testing::every_bit_is_random(&bytes, 39);
    }
    let all: HashSet<u64> = roots.iter().chain(&*of(&SessionId::of([6; 32]))).flatten().copied().collect();
    assert_eq!(all.len(), 1200, "components are not of one session, or not independent");
}

/// A query that shares only one component with items of the server matches none of them.
#[test]
fn both_values_and_their_position_are_compared() {
    let masks: Vec<Components> = (0..50).map(|i| [i, 7]).collect();
    let mut values = masks.clone();
    values[3][0] += 1;
    values[4][1] += 1;
    values.swap(5, 6);
    values[7] = [7 + PLAIN, 7];
    let (bits, _) = run_pair(&SESSION, |cx| compare(cx, &masks, 7), |cx| reveal(cx, &values, 7));
    let different: Vec<usize> = (0..50).filter(|&i| !bits.0[i]).collect();
    assert_eq!(different, [3, 4, 5, 6, 7]);
}

#[test]
fn the_comparison_takes_the_fewest_bytes() {
    let bytes = |n| comparison(n).1.sends().iter().sum::<usize>();
    for n in [1, 100, 4096, 1 << 16, 1 << 20] {
        let (cm20, vole) =
            (MultiPoint::default().cost(40, n, n), Rr22::new(Silent::default()).cost(40, n, n));
        let [cm20, vole] = [cm20, vole].map(|cost| cost.sends().iter().sum::<usize>());
        assert_eq!(bytes(n), cm20.min(vole), "{n}");
    }
}

#[test]
fn forged_messages_are_refused() {
    let y: ItemSet = (0..2).map(|i: u32| i.to_le_bytes()).collect();
    let server = |frames: &[(u16, &[u8])]| {
        let e = with_frames(frames, |cx| FromFhe.server(cx, &HashedSet::new(&y), 3)).unwrap_err();
        (e.fault(), e.to_string())
    };
    let client = |frames: &[(u16, &[u8])]| {
        let e = with_frames(frames, |cx| FromFhe.client(cx, &HashedSet::new(&y), 1)).unwrap_err();
        (e.fault(), e.to_string())
    };
    let (key, power) = (vec![0; SEED + POLYNOMIAL], vec![0; POLYNOMIAL]);
    let large = |of: &[u8]| [&of[..of.len() - 7], &[0xff; 7]].concat();
    let short = |of: &[u8]| of[1..].to_vec();
    let long = |of: &[u8]| [of, &[0]].concat();
    let refused = |(fault, said): (Option<Fault>, String), words: &str| {
        assert!(fault == Some(Fault::Misbehaved) && said.contains(words), "{said}");
    };
    refused(
        server(&[(0x2c, &large(&key))]),
        "public key has a residue that is not below its modulus: expected",
    );
    refused(server(&[(0x2c, &key), (0x2d, &power), (0x2d, &large(&power))]), "query has a residue");
    refused(client(&[(0x2e, &large(&[0; 2 * POLYNOMIAL]))]), "response has a residue");
    for change in [short, long] {
        refused(server(&[(0x2c, &change(&key))]), "172064");
        refused(server(&[(0x2c, &key), (0x2d, &change(&power))]), "172032");
        refused(client(&[(0x2e, &change(&[0; 2 * POLYNOMIAL]))]), "344064");
    }
}

#[test]
fn larger_sets_are_refused_before_anything_is_sent() {
    let y: ItemSet = (0..257).map(|i: u32| i.to_le_bytes()).collect();
    let e = with_frames(&[], |cx| FromFhe.server(cx, &HashedSet::new(&y), 3)).unwrap_err();
    assert!(matches!(e, Error::Usage(_)) && e.to_string().contains("at most 256"), "{e}");
    let e = with_frames(&[], |cx| FromFhe.client(cx, &HashedSet::new(&y), 257)).unwrap_err();
    assert!(matches!(e, Error::Usage(_)), "{e}");
}

/// Two ciphertexts with the same second half or the same error would show the difference of their plaintexts.
#[test]
fn errors_and_second_halves_are_fresh_in_each_ciphertext() {
    let numbers: HashSet<u64> =
        (0..256).flat_map(|batch| (1..=256).map(move |k| numbered(batch, k))).collect();
    assert!(numbers.len() == 1 << 16 && !numbers.contains(&0), "0 is that of the public key");
    let bfv = Bfv::new().unwrap();
    let key = bfv.secret_key(&mut Prng::from_seed(&[1; 32])).unwrap();
    let sends = |cx: &mut Context| {
        (0..2).try_for_each(|batch| send_powers(cx, &bfv, (&key, &[6; 32]), &slots(&[]), 3, batch))
    };
    let receives = |cx: &mut Context| (0..6).map(|_| cx.ch.rx.recv_bytes(POWER, POLYNOMIAL)).collect();
    let ((_, sent), _): ((_, Vec<Vec<u8>>), _) = run_pair(&SESSION, sends, receives);
    // In encryptions of 0, only the error is left.
    let errors = sent.iter().enumerate().map(|(i, c0)| {
        let a = bfv.uniform(&[6; 32], numbered(i / 3, 1 + i % 3)).unwrap();
        bfv.phase(&key, &[bfv.read("query", c0).unwrap(), a])
    });
    let errors: Vec<Element> = errors.collect();
    assert!(errors.iter().all(|e| (1..=20).contains(&largest(&bfv, e))));
    for (i, one) in errors.iter().enumerate() {
        for other in &errors[..i] {
            assert_ne!(**one, **other, "the errors of two ciphertexts are the same");
        }
    }
}

/// Otherwise equal pairs would be one input of the OPRF, which takes distinct inputs.
#[test]
fn equal_pairs_at_other_positions_are_other_inputs_and_so_are_those_of_other_sessions() {
    let of = |session| {
        let (mut ch, _) = Channel::pair();
        let rng = &mut Prng::from_seed(&[1; 32]);
        inputs(&Context::new(&mut ch, session, rng), &[[3, 4]; 100]).to_vec()
    };
    let all: HashSet<[u8; 32]> =
        [of(&SESSION), of(&SessionId::of([6; 32]))].concat().iter().map(|input| *input.as_bytes()).collect();
    assert_eq!(all.len(), 200);
}

/// The bytes that both parties receive under fixed seeds. A change makes a new version of the protocol.
#[test]
fn wire_bytes_are_pinned() {
    let (y, x) = overlapping(5, 7, 0.5);
    let (_, views) = bits_by_item(&y, &x);
    let hashes = views.0.map(|view| blake3::hash(&view).to_hex()[..16].to_string());
    assert_eq!(hashes, ["9f18f57f89aa9a19", "077a80d7469171b2"]);
}
