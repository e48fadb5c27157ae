//! Base OTs over ristretto255: endemic OT (MR19: "Endemic Oblivious Transfer", Masny and Rindal, CCS 2019),
//! with the Diffie-Hellman key agreement.
//!
//! Security: malicious receivers and senders, DDH, random oracles into the group and into keys. Each party
//! may influence its own output ("endemic"), which OT extension allows. Leakage: none. Cost: 96 bytes and 5 multiplications
//! an OT in all. A fresh key pair of the sender per OT costs 128 multiplications and spares an assumption.
//!
//! The receiver picks one of its two group elements uniformly, the other is then fixed by the hash of the
//! first; so it can know the discrete logarithm behind at most one of the two keys.

use super::Pad;
use crate::channel::{Channel, Message, Wire};
use crate::error::Result;
use crate::hash::{Domain, SessionId, part};
use crate::rng::Prng;
use crate::secret::{Secret, Secrets};
use curve25519_dalek::constants::RISTRETTO_BASEPOINT_TABLE as G;
use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::IsIdentity;
use subtle::{Choice, ConditionallySelectable};

const R: Message<[Element; 2]> = Message::new(0x31, "R->S  base OT r_0, r_1");
const B: Message<Element> = Message::new(0x32, "S->R  base OT b G");

/// A group element on the wire: canonical and not the identity.
#[derive(Clone, Copy)]
struct Element {
    point: RistrettoPoint,
    bytes: [u8; 32],
}

impl From<RistrettoPoint> for Element {
    fn from(point: RistrettoPoint) -> Self {
        Element { point, bytes: point.compress().to_bytes() }
    }
}

impl Wire for Element {
    const SIZE: usize = 32;
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes);
    }
    fn get(bytes: &[u8]) -> Result<Self, &'static str> {
        let bytes = <[u8; 32]>::get(bytes)?;
        let point = CompressedRistretto(bytes).decompress().ok_or("not a canonical group element")?;
        match point.is_identity() {
            false => Ok(Element { point, bytes }),
            true => Err("the identity"),
        }
    }
}

impl Wire for [Element; 2] {
    const SIZE: usize = 64;
    fn put(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|e| e.put(out));
    }
    fn get(bytes: &[u8]) -> Result<Self, &'static str> {
        let (zero, one) = bytes.split_at_checked(32).ok_or("of the wrong size")?;
        Ok([Element::get(zero)?, Element::get(one)?])
    }
}

/// The random oracles of one batch.
struct Oracles {
    point: Domain,
    key: Domain,
}

impl Oracles {
    fn new(session: &SessionId, purpose: &'static str) -> Self {
        let part = part(session, purpose);
        Oracles { point: Domain::new(&part, "base OT point"), key: Domain::new(&part, "base OT key") }
    }

    /// H_b(r) for OT `i`.
    fn point(&self, i: usize, branch: u8, r: &[u8; 32]) -> RistrettoPoint {
        let wide = self.point.hash::<64>(&[&(i as u64).to_le_bytes(), &[branch], r]);
        RistrettoPoint::from_uniform_bytes(&wide)
    }

    /// The pad of branch `branch` of OT `i`, from the shared element and the transcript.
    fn pad(&self, i: usize, branch: u8, shared: &RistrettoPoint, r: &[Element; 2], b: &Element) -> Pad {
        let shared = Secret::new(shared.compress().to_bytes());
        let i = (i as u64).to_le_bytes();
        self.key.hash(&[&i, &[branch], &r[0].bytes, &r[1].bytes, &b.bytes, &*shared])
    }
}

fn scalar(rng: &mut Prng) -> Secret<Scalar> {
    let wide = Secret::new(rng.bytes::<64>());
    Secret::new(Scalar::from_bytes_mod_order_wide(&wide))
}

/// The receiver's part: one OT per choice; returns the chosen pads. `purpose`: see [`super`].
pub fn receiver(
    ch: &mut Channel,
    session: &SessionId,
    purpose: &'static str,
    choices: &[bool],
    rng: &mut Prng,
) -> Result<Secrets<Pad>> {
    let oracles = Oracles::new(session, purpose);
    // 1. r_(1-c) is uniform, r_c = a G - H_c(r_(1-c)).
    let n = choices.len();
    let (mut secrets, mut sent) = (Vec::with_capacity(n), Vec::with_capacity(n));
    for (i, &choice) in choices.iter().enumerate() {
        let a = scalar(rng);
        let other = Element::from(RistrettoPoint::from_uniform_bytes(&rng.bytes()));
        let a_g = &*a * G;
        let chosen = [0, 1].map(|branch| Element::from(a_g - oracles.point(i, branch, &other.bytes)));
        let c = Choice::from(u8::from(choice));
        sent.push([select(&chosen[0], &other, c), select(&other, &chosen[1], c)]);
        secrets.push(a);
    }
    ch.tx.send(R, &sent)?;
    // 3. The chosen pad comes from a (b G).
    let answers = ch.rx.recv(B, n)?;
    let mut pads = Secrets::zeros(n);
    for (i, pad) in pads.iter_mut().enumerate() {
        let b = &answers[i];
        *pad = oracles.pad(i, u8::from(choices[i]), &(b.point * *secrets[i]), &sent[i], b);
    }
    Ok(pads)
}

/// The sender's part of `n` OTs; returns both pads of each. `purpose`: see [`super`].
pub fn sender(
    ch: &mut Channel,
    session: &SessionId,
    purpose: &'static str,
    n: usize,
    rng: &mut Prng,
) -> Result<Secrets<[Pad; 2]>> {
    let oracles = Oracles::new(session, purpose);
    let received = ch.rx.recv(R, n)?;
    // 2. The pads come from b (r_0 + H_0(r_1)) and b (r_1 + H_1(r_0)).
    let (mut answers, mut pads) = (Vec::new(), Secrets::zeros(n));
    for (i, (r, pads)) in received.iter().zip(pads.iter_mut()).enumerate() {
        let b = scalar(rng);
        let b_g = Element::from(&*b * G);
        let pad = |branch: u8| {
            let (own, other) = (&r[usize::from(branch)], &r[usize::from(1 - branch)]);
            let shared = (own.point + oracles.point(i, branch, &other.bytes)) * *b;
            oracles.pad(i, branch, &shared, r, &b_g)
        };
        *pads = [pad(0), pad(1)];
        answers.push(b_g);
    }
    ch.tx.send(B, &answers)?;
    Ok(pads)
}

fn select(a: &Element, b: &Element, choice: Choice) -> Element {
    Element {
        point: RistrettoPoint::conditional_select(&a.point, &b.point, choice),
        bytes: <[u8; 32]>::conditional_select(&a.bytes, &b.bytes, choice),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(session: u8, purpose: &'static str, choices: &[bool]) -> (Secrets<[Pad; 2]>, Secrets<Pad>) {
        let (mut a, mut b) = Channel::pair();
        let session = [session; 32];
        std::thread::scope(|s| {
            let (n, rng) = (choices.len(), &mut Prng::from_seed(&[2; 32]));
            let sender = s
                .spawn(move || sender(&mut a, &session, purpose, n, &mut Prng::from_seed(&[1; 32])).unwrap());
            let got = receiver(&mut b, &session, purpose, choices, rng).unwrap();
            (sender.join().unwrap(), got)
        })
    }

    #[test]
    fn the_receiver_gets_the_chosen_pad_and_all_pads_differ() {
        let choices: Vec<bool> = (0..20).map(|i| i % 3 == 0).collect();
        let (sent, got) = run(7, "a", &choices);
        for ((pads, pad), &c) in sent.iter().zip(got.iter()).zip(&choices) {
            assert_eq!(pads[usize::from(c)], *pad);
        }
        let distinct: std::collections::HashSet<Pad> = sent.iter().flatten().copied().collect();
        assert_eq!(distinct.len(), 40);
        assert!(run(7, "a", &[]).1.is_empty());
    }

    #[test]
    fn under_the_same_randomness_another_session_or_purpose_gives_other_pads() {
        let pads = |session, purpose| run(session, purpose, &[true, false]).0;
        let all = [pads(7, "a"), pads(8, "a"), pads(7, "b")];
        let distinct: std::collections::HashSet<Pad> =
            all.iter().flat_map(|pads| pads.iter().flatten()).copied().collect();
        assert_eq!(distinct.len(), 3 * 4);
        assert_eq!(*pads(7, "a"), *all[0]);
    }

    #[test]
    fn the_oracles_depend_on_everything_they_are_given() {
        let element = |n: u64| Element::from(RistrettoPoint::mul_base(&Scalar::from(n)));
        let (r, b) = ([element(1), element(2)], element(3));
        let shared = element(4).point;
        // The first of each list is the one from which each of the others differs in one input.
        let oracles = |session: u8, purpose| Oracles::new(&[session; 32], purpose);
        let pads = [
            oracles(1, "a").pad(0, 0, &shared, &r, &b),
            oracles(2, "a").pad(0, 0, &shared, &r, &b),
            oracles(1, "b").pad(0, 0, &shared, &r, &b),
            oracles(1, "a").pad(1, 0, &shared, &r, &b),
            oracles(1, "a").pad(0, 1, &shared, &r, &b),
            oracles(1, "a").pad(0, 0, &element(5).point, &r, &b),
            oracles(1, "a").pad(0, 0, &shared, &[element(5), r[1]], &b),
            oracles(1, "a").pad(0, 0, &shared, &[r[0], element(5)], &b),
            oracles(1, "a").pad(0, 0, &shared, &r, &element(5)),
        ];
        let points = [
            oracles(1, "a").point(0, 0, &r[0].bytes),
            oracles(2, "a").point(0, 0, &r[0].bytes),
            oracles(1, "b").point(0, 0, &r[0].bytes),
            oracles(1, "a").point(1, 0, &r[0].bytes),
            oracles(1, "a").point(0, 1, &r[0].bytes),
            oracles(1, "a").point(0, 0, &r[1].bytes),
        ];
        assert!(pads[1..].iter().all(|p| *p != pads[0]));
        assert!(points[1..].iter().all(|p| *p != points[0]));
    }

    #[test]
    fn what_is_not_a_group_element_is_refused() {
        let identity = [0u8; 32];
        let mut odd = RistrettoPoint::mul_base(&Scalar::from(5u64)).compress().to_bytes();
        odd[31] |= 0x80;
        for bytes in [identity, [0xff; 32], odd] {
            assert!(Element::get(&bytes).is_err());
            let (mut a, mut b) = Channel::pair();
            a.tx.send_bytes(Message::new(0x31, "forged"), &[bytes, bytes].concat()).unwrap();
            let e = sender(&mut b, &[0; 32], "a", 1, &mut Prng::from_seed(&[1; 32])).unwrap_err();
            assert!(matches!(e, crate::error::Error::Peer(_)), "{e}");
        }
    }
}
