//! Compares the protocol with its definition, over the ideal and the silent VOLE; checks its messages and its refusals.

use super::*;
use crate::channel::{Channel, Observer, Unit};
use crate::error::{Error, Fault};
use crate::oprf::tests::is_an_oprf;
use crate::rng::Prng;
use crate::testing::{every_bit_is_random, parts, run_pair, split_frames};
use crate::vole::{Ideal, add, silent::Silent};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn inputs(n: usize) -> Vec<Input> {
    (0..n as u64).map(|i| Input::of_item(&i.to_le_bytes())).collect()
}

/// The protocol over the whole field, as for a sender with more inputs than a test can have.
struct Whole<P>(P);

impl<P: Oprf> Oprf for Whole<P> {
    fn receiver(&self, cx: &mut Context, inputs: &[Input], n_x: usize) -> Result<Secrets<Output>> {
        cx.exponent = 65;
        self.0.receiver(cx, inputs, n_x)
    }

    fn sender(&self, cx: &mut Context, inputs: &[Input], n_y: usize) -> Result<Secrets<Output>> {
        cx.exponent = 65;
        self.0.sender(cx, inputs, n_y)
    }
}

#[test]
fn it_is_an_oprf() {
    is_an_oprf(&Rr22::new(Ideal), FRAME);
    is_an_oprf(&Whole(Rr22::new(Ideal)), FRAME);
}

/// An input of the sender passes for one of the receiver's with probability 2^-64: over all of them at most 2^-exponent.
#[test]
fn the_field_is_halved_while_the_error_allows_it() {
    let most = |exponent| (0..=28).filter(|log_n| halved(exponent, 1 << log_n)).max();
    assert_eq!([40, 48, 60, 64].map(most), [Some(24), Some(16), Some(4), Some(0)]);
    assert!(halved(40, 0) && !halved(40, (1 << 24) + 1) && !halved(65, 0));
}

/// Counts the bytes of stages in bytes.
#[derive(Default)]
struct Bytes(AtomicUsize);

impl Observer for Bytes {
    fn stage(&self, _: &'static str, _: Unit, _: usize) {}

    fn advance(&self, unit: Unit, amount: usize, _: usize) {
        if unit == Unit::Bytes {
            self.0.fetch_add(amount, Ordering::Relaxed);
        }
    }
}

/// The progress that users see is in the unit in which nearly everything is sent.
#[test]
fn progress_covers_what_the_receiver_sends() {
    let all = inputs(3000);
    for exponent in [40, 65] {
        let protocol = Rr22::new(Silent::default());
        let seen = Arc::new(Bytes::default());
        run_pair(
            &SessionId::of([1; 32]),
            |cx| {
                cx.exponent = exponent;
                cx.ch.observe(seen.clone());
                protocol.receiver(cx, &all, all.len())
            },
            |cx| {
                cx.exponent = exponent;
                protocol.sender(cx, &all, all.len())
            },
        );
        let (unit, total) = protocol.cost(exponent, all.len(), all.len()).progress;
        let seen = seen.0.load(Ordering::Relaxed);
        assert!(unit == Unit::Bytes && (total * 3 / 4..=total).contains(&seen), "{seen} of {total}");
    }
}

/// Frames of a few inputs, as each run has its own base OTs.
#[test]
fn it_is_an_oprf_over_silent_vole() {
    is_an_oprf(&Rr22::new(Silent { k: 2 }), 100);
    is_an_oprf(&Whole(Rr22::new(Silent { k: 2 })), 100);
}

/// Enough inputs for the VOLE to need its code, in both fields.
#[test]
fn both_have_the_same_function_over_the_code() {
    let all = inputs(6000);
    let (y, x) = (&all[..5000], &all[2000..]);
    for exponent in [40, 65] {
        assert_eq!(halved(exponent, x.len()), exponent == 40, "the field");
        let protocol = Rr22::new(Silent::default());
        let ((f_y, f_x), _) = run_pair(
            &SessionId::of([1; 32]),
            |cx| {
                cx.exponent = exponent;
                protocol.receiver(cx, y, x.len())
            },
            |cx| {
                cx.exponent = exponent;
                protocol.sender(cx, x, y.len())
            },
        );
        assert_eq!(f_y[2000..], f_x[..3000], "{exponent}");
    }
}

/// A function over several parts of the VOLE, without the code and with it.
#[test]
fn it_is_an_oprf_over_parts_of_a_vole() {
    is_an_oprf(&Rr22 { vole: Ideal, part: 100 }, 300);
    let (protocol, all) = (Rr22 { vole: Silent { k: 2 }, part: 5000 }, inputs(9000));
    let (y, x) = (&all[..9000], &all[8990..]);
    let ((f_y, f_x), views) = run_pair(
        &SessionId::of([1; 32]),
        |cx| protocol.receiver(cx, y, x.len()),
        |cx| protocol.sender(cx, x, y.len()),
    );
    assert_eq!(f_y[8990..], f_x[..]);
    // A + P of one part precedes the corrections of the next. The last part is short and needs no code.
    assert_eq!(views.frames(0).iter().map(|f| f.0).collect::<Vec<_>>()[1..], [0x91, 0x92].repeat(2));
    let mut tags: Vec<u16> = views.frames(1).iter().map(|f| f.0).filter(|tag| *tag != 0x36).collect();
    tags.dedup();
    // The seed precedes the first part of A + P.
    let part = [0x34, 0x99];
    assert_eq!(tags, [&[0x32, 0x33, 0x35, 0x34, 0x98, 0x99][..], &part, &part].concat());
}

/// A VOLE that counts the elements requested of its sender, and does nothing else.
#[derive(Clone, Default)]
struct Counting(Arc<AtomicUsize>);

impl Vole for Counting {
    type Receiver = Ideal;
    type Sender = Counting;

    fn receiver(&self, _: &mut Context, _: &'static str) -> Result<Ideal> {
        Ok(Ideal)
    }

    fn sender(&self, _: &mut Context, _: &'static str) -> Result<Counting> {
        Ok(self.clone())
    }
}

impl Sender for Counting {
    fn delta(&self) -> &Value {
        &[1; 16]
    }

    fn next<S: VoleScalar>(&mut self, _: &mut Context, n: usize) -> Result<Secrets<Value>> {
        self.0.fetch_add(n, Ordering::Relaxed);
        Ok(Secrets::zeros(n))
    }
}

#[test]
fn the_sender_expands_a_part_for_what_has_come_and_no_more() {
    // 100 million inputs are announced; `come` frames of A + P arrive.
    let asked = |protocol: Rr22<Counting>, come: usize| {
        let (mut peer, mut ch) = Channel::pair();
        std::thread::scope(|s| {
            s.spawn(move || {
                peer.tx.send(SEED, &[[7; 16]]).unwrap();
                (0..come).for_each(|_| peer.tx.send_bytes(A_P, &[7; 8 * FRAME]).unwrap());
            });
            let rng = &mut Prng::from_seed(&[2; 32]);
            let e = protocol
                .sender(&mut Context::new(&mut ch, &SessionId::of([0; 32]), rng), &inputs(3), 100_000_000)
                .err();
            assert!(matches!(e, Some(Error::Network(_))), "{e:?}");
        });
        protocol.vole.0.load(Ordering::Relaxed)
    };
    for come in [0, 1, 3] {
        assert_eq!(asked(Rr22::new(Counting::default()), come), 1 << 21);
        let small = Rr22 { vole: Counting::default(), part: FRAME };
        assert_eq!(asked(small, come), (come + 1) * FRAME);
    }
}

/// S's view is freshly masked in every run, and does not reveal the inputs from which it was computed.
#[test]
fn what_is_sent_is_masked_by_a() {
    let (all, session) = (inputs(260), SessionId::of([2; 32]));
    let (y, x) = (&all[..250], &all[240..]);
    let protocol = Rr22::new(Silent { k: 2 });
    let sent = |seed: u8| {
        let (_, views) = run_pair(
            &session,
            |cx| protocol.receiver(cx.under(Prng::from_seed(&[seed; 32])), y, x.len()),
            |cx| protocol.sender(cx, x, y.len()),
        );
        let frames = split_frames(&views.0[1]);
        let body = |tag| frames.iter().find(|f| f.0 == tag).unwrap().1.clone();
        let seed: Seed = body(0x98).try_into().unwrap();
        (seed, body(0x99).as_chunks::<8>().0.to_vec())
    };
    let [one, other] = [1, 2].map(sent);
    assert_ne!(one.0, other.0);
    assert!(one.1.iter().all(|element| !other.1.contains(element)));
    for (seed, vector) in [&one, &other] {
        every_bit_is_random(vector, 64);
        let vector: Vec<Value> = vector.iter().map(widened).collect();
        let values = BandRows::new(seed, y, vector.len()).unwrap().decode(&vector).unwrap();
        let targets: Vec<Value> = y.iter().map(|y| widened(&Half::first(&target(y)))).collect();
        assert!(values.iter().all(|value| *value != [0; 16] && !targets.contains(value)));
    }
}

/// The same VOLE value at two inputs, the same input with two values, and both in two sessions.
#[test]
fn outputs_follow_from_session_value_and_input() {
    let all = inputs(2);
    let f = |session: u8, value: u8, inputs: &[Input]| {
        hashed(&SessionId::of([session; 32]), Secrets::from(vec![[value; 16]; 2]), inputs, |_, _| ()).to_vec()
    };
    let outputs = [f(1, 1, &all), f(2, 1, &all), f(1, 2, &all)].concat();
    assert_eq!(outputs.iter().collect::<std::collections::HashSet<_>>().len(), 6);
    // Both halves of an input matter, and both halves of a value.
    let changed = [0, 31].map(|place| {
        let mut bytes = *all[0].as_bytes();
        bytes[place] ^= 1;
        Input::from_bytes(bytes)
    });
    assert!(f(1, 1, &changed).iter().all(|output| !outputs.contains(output)));
    let values = |place: usize| {
        let mut value = [1; 16];
        value[place] ^= 1;
        hashed(&SessionId::of([1; 32]), Secrets::from(vec![value]), &all[..1], |_, _| ())[0]
    };
    assert!([0, 7, 15].map(values).iter().all(|output| !outputs.contains(output)));
    assert_eq!(all.iter().map(target).collect::<std::collections::HashSet<_>>().len(), 2);
}

/// Two inputs with the same target would have the same value of the VOLE.
#[test]
fn targets_are_of_full_width() {
    every_bit_is_random(&inputs(400).iter().map(target).collect::<Vec<_>>(), 128);
}

/// With equal randomness, another session has another VOLE.
#[test]
fn the_vole_belongs_to_the_session() {
    let (all, protocol) = (inputs(60), Rr22::new(Silent { k: 2 }));
    let sums = |session: u8| {
        let session = SessionId::of([session; 32]);
        let (_, views) =
            run_pair(&session, |cx| protocol.receiver(cx, &all, 60), |cx| protocol.sender(cx, &all, 60));
        parts(&views.0[1], 0x33, 16)
    };
    assert!(sums(1).iter().zip(sums(2)).all(|(a, b)| *a != b));
}

/// A scalar, followed by zeros.
fn widened(first: &Half) -> Value {
    let mut value = [0; 16];
    value[..8].copy_from_slice(first);
    value
}

/// Recomputes outputs and messages by definition, from the output of the ideal VOLE's sender and the messages.
#[test]
fn outputs_and_messages_are_those_of_the_definition() {
    by_definition::<Half>(&Rr22::new(Ideal), widened);
    by_definition::<Element>(&Whole(Rr22::new(Ideal)), |element| *element);
}

/// `value` gives the element of the key-value store whose first bytes are a scalar.
fn by_definition<S: VoleScalar + std::fmt::Debug + PartialEq>(
    protocol: &(impl Oprf + Sync),
    value: impl Fn(&S) -> Value,
) {
    let (all, session) = (inputs(60), SessionId::of([2; 32]));
    let (y, x) = (&all[..40], &all[30..]);
    let ((f_y, f_x), views) =
        run_pair(&session, |cx| protocol.receiver(cx, y, x.len()), |cx| protocol.sender(cx, x, y.len()));
    let m = okvs::size(y.len());
    assert_eq!(views.frames(1), [(0x98, 16), (0x99, S::SIZE * m)]);
    let frames = split_frames(&views.0[1]);
    let seed: Seed = frames[0].1[..].try_into().unwrap();
    let a_p: Vec<S> = frames[1].1.chunks(S::SIZE).map(|bytes| S::get(bytes).unwrap()).collect();
    let rng = &mut Prng::from_seed(&crate::testing::SEEDS[1]);
    let delta: Value = rng.bytes();
    let a = S::random(m, rng);
    let mut b = vec![[0; 16]; m];
    rng.fill(b.as_flattened_mut());
    let mut p: Vec<Value> = a_p.iter().map(&value).collect();
    p.iter_mut().zip(a.iter()).for_each(|(p, a)| add(p, &value(a)));
    let (mut c, mut k) = (b.clone(), b);
    S::add_multiple(&delta, &a, &mut c);
    S::add_multiple(&delta, &a_p, &mut k);
    let h = Domain::new(&session, "RR22 OPRF value");
    let decode = |vector: &[Value], input: &Input| {
        BandRows::new(&seed, &[*input], m).unwrap().decode(vector).unwrap()[0]
    };
    for (y, f) in y.iter().zip(f_y.iter()) {
        assert_eq!(S::first(&decode(&p, y)), S::first(&target(y)));
        assert_eq!(*f, h.hash::<32>(&[&decode(&c, y), y]));
    }
    for (x, f) in x.iter().zip(f_x.iter()) {
        let mut value = [decode(&k, x)];
        S::add_multiple(&delta, &[S::first(&target(x))], &mut value);
        assert_eq!(*f, h.hash::<32>(&[&value[0], x]));
    }
}

#[test]
fn messages_of_another_length_or_kind_are_refused() {
    // A receiver that has run the ideal VOLE sends these instead of its seed and A + P.
    let m = okvs::size(200);
    let good = [(0x98, vec![7; 16]), (0x99, vec![7; 8 * m])];
    let mut forgeries = Vec::new();
    for (i, name) in [(0, "seed of the key-value store"), (1, "A + P")] {
        let bytes = good[i].1.len();
        for length in [0, bytes - 1, bytes - 16, bytes + 1, bytes + 16] {
            let mut forged = good.clone();
            forged[i].1.resize(length, 7);
            forgeries.push((forged, name));
        }
        let mut forged = good.clone();
        forged[i].0 ^= 0x40;
        forgeries.push((forged, name));
    }
    for (forged, name) in forgeries {
        let (mut a, mut b) = Channel::pair();
        for (tag, bytes) in &forged {
            a.tx.send_bytes(Message::new(*tag, "forged"), bytes).unwrap();
        }
        let (session, rng) = (SessionId::of([0; 32]), &mut Prng::from_seed(&[2; 32]));
        let e =
            Rr22::new(Ideal).sender(&mut Context::new(&mut b, &session, rng), &inputs(3), 200).err().unwrap();
        assert!(
            matches!(e, Error::Peer { fault: Fault::Misbehaved, .. }) && e.to_string().contains(name),
            "{name}: {e}"
        );
    }
}
