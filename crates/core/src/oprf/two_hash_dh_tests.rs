use super::*;
use crate::channel::Channel;
use crate::error::Fault;
use crate::testing::{Cut, run_pair};
use std::collections::HashSet;
use std::sync::mpsc;
use std::time::Duration;

const SESSION: SessionId = SessionId::of([5; 32]);

fn hex<const N: usize>(hex: &str) -> [u8; N] {
    assert_eq!(hex.len(), 2 * N);
    std::array::from_fn(|i| u8::from_str_radix(&hex[2 * i..][..2], 16).unwrap())
}

/// RFC 9497, A.1.1.
#[test]
fn the_vectors_of_the_rfc() {
    let key = OprfKey::derive(&[0xa3; 32], &hex::<8>("74657374206b6579")).unwrap();
    let sk = hex("5ebcea5ee37023ccb9fc2d2019f9d7737be85591ae8652ffa9ef0f4d37063b0e");
    assert_eq!(*key.0.as_bytes(), sk);
    let blind = hex("64d37aed22a27f5191de1c1d69fadb899d8862b58eb4220029e036ec4c1f6706");
    let inputs: [&[u8]; 2] = [&[0], &[0x5a; 17]];
    let blinds = || Scalars::from(Secrets::from(vec![blind; 2]));
    let (blinds, blinded) = blind_with(&inputs, blinds()).unwrap();
    assert_eq!(
        blinded,
        [
            hex("609a0ae68c15a3cf6903766461307e5c8bb2f95e7e6550e1ffa2dc99e412803c"),
            hex("da27ef466870f5f15296299850aa088629945a17d1f5b7f5ff043f76b3c06418"),
        ]
    );
    let evaluated = blind_evaluate(&key, &blinded).unwrap();
    assert_eq!(
        evaluated,
        [
            hex("7ec6578ae5120958eb2db1745758ff379e77cb64fe77b0b2d8cc917ea0869c7e"),
            hex("b4cbf5a4f1eeda5a63ce7b77c7d23f461db3fcab0dd28e4e17cecb5c90d02c25"),
        ]
    );
    let outputs = [
        hex(concat!(
            "527759c3d9366f277d8c6020418d96bb393ba2afb20ff90df23fb7708264e2f3",
            "ab9135e3bd69955851de4b1f9fe8a0973396719b7912ba9ee8aa7d0b5e24bcf6"
        )),
        hex(concat!(
            "f4a74c9c592497375e796aa837e907b1a045d34306a749db9f34221f7e750cb4",
            "f2a6413a6bf6fa5e19ba6348eb673934a722a7ede2e7621306d18951e7cf2c73"
        )),
    ];
    assert_eq!(**finalize(&inputs, &blinds, &evaluated).unwrap(), outputs);
    assert_eq!(**evaluate(&key, &inputs).unwrap(), outputs);
}

#[test]
fn dh_is_an_oprf() {
    crate::oprf::tests::is_an_oprf(&TwoHashDh, FRAME);
}

#[test]
fn outputs_are_the_rfcs_hashed_for_the_session_and_keys_are_fresh() {
    let inputs: Vec<Input> = (0..3).map(|i| Input::from_bytes([i; 32])).collect();
    let ((f_y, _), views) =
        run_pair(&SESSION, |cx| TwoHashDh.receiver(cx, &inputs, 0), |cx| TwoHashDh.sender(cx, &[], 3));
    // The sender draws the key first.
    let rng = || Prng::from_seed(&crate::testing::SEEDS[1]);
    let (key, next) = {
        let mut rng = rng();
        (OprfKey::random(&mut rng), OprfKey::random(&mut rng))
    };
    let expected = |session: &SessionId, key| TwoHashDh::outputs(session, &evaluate(key, &inputs).unwrap());
    assert_eq!(*f_y, *expected(&SESSION, &key));
    assert!(*f_y != *expected(&SessionId::of([6; 32]), &key) && *f_y != *expected(&SESSION, &next));
    // 32 bytes each way per input.
    assert_eq!([views.frames(0), views.frames(1)], [vec![(0xb2, 96)], vec![(0xb1, 96)]]);
}

#[test]
fn equal_inputs_are_blinded_differently() {
    let rng = &mut Prng::from_seed(&[1; 32]);
    let key = OprfKey::random(rng);
    let inputs = [[7u8; 32]; 2];
    let (blinds, blinded) = blind(&inputs, rng).unwrap();
    assert_ne!(blinded[0], blinded[1]);
    let evaluated = blind_evaluate(&key, &blinded).unwrap();
    let outputs = finalize(&inputs, &blinds, &evaluated).unwrap();
    assert!(outputs[0] == outputs[1] && **outputs == **evaluate(&key, &inputs).unwrap());
    // Answers in the wrong order give wrong outputs.
    let swapped = finalize(&inputs, &blinds, &[evaluated[1], evaluated[0]]).unwrap();
    assert!(swapped.iter().all(|output| *output != outputs[0]));
    assert!(matches!(finalize(&inputs, &blinds, &evaluated[..1]), Err(Error::Bug(_))));
    assert!(matches!(finalize(&inputs[..1], &blinds, &evaluated), Err(Error::Bug(_))));
}

/// The elements that a receiver with `n` equal inputs sends. It gets no answer.
fn blinded(n: usize, seed: u8) -> Vec<Encoding> {
    let (mut a, mut b) = Channel::pair();
    std::thread::scope(|s| {
        s.spawn(move || {
            let rng = &mut Prng::from_seed(&[seed; 32]);
            assert!(
                TwoHashDh
                    .receiver(
                        &mut Context::new(&mut b, &SESSION, rng),
                        &vec![Input::from_bytes([7; 32]); n],
                        0
                    )
                    .is_err()
            );
        });
        let all = frames(n, FRAME).flat_map(|n| a.rx.recv(BLINDED, n).unwrap()).collect();
        drop(a);
        all
    })
}

#[test]
fn blinds_are_fresh_for_every_input_in_every_frame_and_run() {
    let all = [blinded(FRAME + 1, 1), blinded(3, 2)].concat();
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), FRAME + 4);
}

#[test]
fn a_sender_that_withholds_answers_gets_no_more_elements_than_the_bound() {
    let (mut a, mut b) = Channel::pair();
    let (done, result) = mpsc::channel();
    std::thread::spawn(move || {
        let inputs = vec![Input::from_bytes([7; 32]); (AHEAD + 4) * FRAME];
        done.send(
            TwoHashDh
                .receiver(&mut Context::new(&mut b, &SESSION, &mut Prng::from_seed(&[1; 32])), &inputs, 0)
                .map(drop),
        )
    });
    // The queued frames, and the current one.
    (0..=AHEAD).for_each(|_| drop(a.rx.recv(BLINDED, FRAME).unwrap()));
    // No more arrive while it waits.
    a.set_patience(Duration::from_millis(500));
    assert!(a.rx.recv(BLINDED, FRAME).is_err());
    drop(a);
    let e = result.recv_timeout(Duration::from_secs(30)).unwrap().unwrap_err();
    assert!(e.to_string().contains("the peer closed the connection"), "{e}");
}

#[test]
fn more_frames_than_may_wait_are_answered() {
    let inputs: Vec<Input> = (0..=(AHEAD + 2) * FRAME).map(|i| Input::of_item(&i.to_le_bytes())).collect();
    let ((f_y, f_x), _) = run_pair(
        &SESSION,
        |cx| TwoHashDh.receiver(cx, &inputs, inputs.len()),
        |cx| TwoHashDh.sender(cx, &inputs, inputs.len()),
    );
    assert!(*f_y == *f_x);
}

#[test]
fn the_key_is_another_in_every_run() {
    let inputs: Vec<Input> = (0..3).map(|i| Input::from_bytes([i; 32])).collect();
    let run = |seed| {
        let ((f_y, _), _) = run_pair(
            &SESSION,
            |cx| TwoHashDh.receiver(cx, &inputs, 0),
            |cx| TwoHashDh.sender(cx.under(Prng::from_seed(&[seed; 32])), &[], 3),
        );
        f_y
    };
    assert!(run(1).iter().zip(run(2).iter()).all(|(a, b)| a != b));
}

#[test]
fn what_cut_the_connection_is_what_is_reported() {
    // The answer arrives before the question, so that one half waits for the blinds of the other.
    let (mut a, b) = Channel::pair();
    a.tx.send(EVALUATED, &[[1; 32]; 3]).unwrap();
    let (sink, source) = b.into_halves();
    let mut b = Channel::from_halves(Box::new(Cut { sink, after: 0 }), source);
    let result = TwoHashDh.receiver(
        &mut Context::new(&mut b, &SESSION, &mut Prng::from_seed(&[1; 32])),
        &[Input::from_bytes([7; 32]); 3],
        0,
    );
    assert_eq!(result.err(), Some(Cut::error()));
}

#[test]
fn inputs_of_any_length_up_to_65535_bytes() {
    let rng = &mut Prng::from_seed(&[1; 32]);
    let key = OprfKey::random(rng);
    let inputs: Vec<Vec<u8>> = [0, 1, 127, 128, 129, 65_535].iter().map(|&n| vec![7; n]).collect();
    let (blinds, blinded) = blind(&inputs, rng).unwrap();
    let outputs = finalize(&inputs, &blinds, &blind_evaluate(&key, &blinded).unwrap()).unwrap();
    assert_eq!(**outputs, **evaluate(&key, &inputs).unwrap());
    let long = [vec![7u8; 65_536]];
    assert!(matches!(blind(&long, rng), Err(Error::Usage(_))));
    assert!(matches!(evaluate(&key, &long), Err(Error::Usage(_))));
    assert!(matches!(OprfKey::derive(&[1; 32], &long[0]), Err(Error::Usage(_))));
}

#[test]
fn the_identity_of_our_own_is_an_error() {
    assert!(matches!(blind_with(&[b"a"], Scalars::from(Secrets::zeros(1))), Err(Error::Bug(_))));
    assert!(matches!(evaluate(&OprfKey(Scalar::reduced(&[0; 64])), &[b"a"]), Err(Error::Bug(_))));
}

#[test]
fn what_is_not_an_element_or_the_identity_or_of_another_length_is_refused() {
    let inputs = [1, 2].map(|i| Input::from_bytes([i; 32]));
    let good = blind(&inputs[..1], &mut Prng::from_seed(&[3; 32])).unwrap().1[0];
    let mut odd = good;
    odd[31] |= 0x80;
    for (tag, receives) in [(0xb1, false), (0xb2, true)] {
        let forged: [(u16, &[Encoding]); 7] = [
            (tag, &[good, [0; 32]]),
            (tag, &[[0xff; 32], good]),
            (tag, &[good, odd]),
            (tag, &[good]),
            (tag, &[good, good, good]),
            (tag, &[]),
            (tag ^ 3, &[good, good]),
        ];
        for (tag, elements) in forged {
            let (mut a, mut b) = Channel::pair();
            a.tx.send(Message::new(tag, "forged"), elements).unwrap();
            let rng = &mut Prng::from_seed(&[1; 32]);
            let e = match receives {
                true => TwoHashDh.receiver(&mut Context::new(&mut b, &SESSION, rng), &inputs, 1),
                false => TwoHashDh.sender(&mut Context::new(&mut b, &SESSION, rng), &inputs, 2),
            };
            let e = e.unwrap_err();
            assert!(
                matches!(&e, Error::Peer { fault: Fault::Misbehaved, what, .. } if what.contains("DH OPRF")),
                "{e}"
            );
        }
    }
}
