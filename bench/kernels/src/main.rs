//! The kernels of the curve beside other libraries, on one thread:
//! `cargo run --release --manifest-path bench/kernels/Cargo.toml` (it needs libssl-dev and pkg-config).
//!
//! Every section says what it compares; before anything is timed, all must give the same bytes. See [`timing`] for how
//! time and cycles are measured.

mod timing;

use std::hint::black_box;

use aws_lc_rs::agreement::{self, UnparsedPublicKey};
use curve25519_dalek::MontgomeryPoint;
use openssl::derive::Deriver;
use openssl::pkey::{Id, PKey, Private, Public};
use timing::{Candidate, Measured, Random, measure};
use veilset_kernels::{Backend, curve25519};

type Bytes = [u8; 32];

/// Libraries that take points one at a time are timed on so many of a larger batch.
const SINGLE: usize = 4096;

fn main() {
    println!("{}", timing::processor());
    println!("{}, aws-lc, curve25519-dalek: see Cargo.lock", openssl::version::version());
    println!("nanoseconds per point, in brackets cycles; the best of several rounds of thread CPU time");
    x25519();
    elligator2();
}

/// The paths that run here.
fn paths() -> impl Iterator<Item = Backend> {
    curve25519::BACKENDS.iter().copied().filter(|b| b.is_available())
}

// ---- X25519: many points by one scalar. ----

/// The keys of the libraries that want keys, made once, and the points.
struct X25519 {
    scalar: Bytes,
    points: Vec<Bytes>,
    openssl: PKey<Private>,
    openssl_points: Vec<PKey<Public>>,
    aws_lc: agreement::PrivateKey,
}

impl X25519 {
    /// Random points on the curve or its twist, in the canonical encoding.
    fn new(n: usize) -> Self {
        let mut random = Random(2);
        let scalar = random.bytes();
        let mut points: Vec<Bytes> = (0..n).map(|_| random.bytes()).collect();
        for point in &mut points {
            point[31] &= 0x7f;
            assert!(curve25519::is_canonical(point));
        }
        let public = |p: &Bytes| PKey::public_key_from_raw_bytes(p, Id::X25519).unwrap();
        X25519 {
            scalar,
            openssl: PKey::private_key_from_raw_bytes(&scalar, Id::X25519).unwrap(),
            openssl_points: points.iter().take(SINGLE).map(public).collect(),
            aws_lc: agreement::PrivateKey::from_private_key(&agreement::X25519, &scalar).unwrap(),
            points,
        }
    }

    /// One context for all points, so that OpenSSL has to do nothing more often than it must.
    fn openssl(&self, n: usize, mut out: impl FnMut(Bytes)) {
        let mut context = Deriver::new(&self.openssl).unwrap();
        for point in &self.openssl_points[..n] {
            context.set_peer(point).unwrap();
            let mut bytes = [0; 32];
            assert_eq!(context.derive(&mut bytes).unwrap(), 32);
            out(bytes);
        }
    }

    fn aws_lc(&self, n: usize, mut out: impl FnMut(Bytes)) {
        for point in &self.points[..n] {
            let peer = UnparsedPublicKey::new(&agreement::X25519, point);
            let take = |bytes: &[u8]| bytes.try_into().map_err(|_| ());
            out(agreement::agree(&self.aws_lc, peer, (), take).unwrap());
        }
    }

    fn dalek(&self, n: usize, mut out: impl FnMut(Bytes)) {
        for point in &self.points[..n] {
            out(MontgomeryPoint(*point).mul_clamped(self.scalar).0);
        }
    }

    fn check(&self) {
        let n = self.points.len().min(1027);
        let mut expected = Vec::new();
        self.dalek(n, |bytes| expected.push(bytes));
        for backend in paths() {
            let mut points = self.points[..n].to_vec();
            assert_eq!(curve25519::ladder_with(backend, &self.scalar, &mut points), backend);
            assert_eq!(points, expected, "{backend:?} and dalek");
        }
        let mut out = Vec::new();
        self.openssl(n, |bytes| out.push(bytes));
        assert_eq!(out, expected, "OpenSSL and dalek");
        out.clear();
        self.aws_lc(n, |bytes| out.push(bytes));
        assert_eq!(out, expected, "aws-lc and dalek");
    }
}

fn x25519() {
    println!("\n== Points by one scalar (X25519), in batches ==");
    let all = X25519::new(1 << 16);
    all.check();
    let mut table: Vec<Vec<Measured>> = Vec::new();
    for n in [4, 64, 1024, 1 << 16] {
        let mut candidates: Vec<Candidate> = Vec::new();
        for backend in paths() {
            let n = if backend == Backend::Portable { n.min(SINGLE) } else { n };
            let mut points = all.points[..n].to_vec();
            candidates.push(Candidate::new(format!("veilset {backend:?}"), n, move || {
                curve25519::ladder_with(backend, black_box(&all.scalar), &mut points);
            }));
        }
        let all = &all;
        let mut single = |name: &str, run: fn(&X25519, usize, fn(Bytes))| {
            let n = n.min(SINGLE);
            candidates.push(Candidate::new(name.into(), n, move || run(all, n, ignore)));
        };
        single("OpenSSL", X25519::openssl);
        single("aws-lc", X25519::aws_lc);
        single("curve25519-dalek", X25519::dalek);
        table.push(measure(&mut candidates, 4.0));
    }
    timing::print_table(&["4", "64", "1024", "65536"], &table);
    let (ours, others): (Vec<_>, Vec<_>) = table[2].iter().partition(|m| m.name.starts_with("veilset"));
    for our in ours {
        print!("at 1024, {} is", our.name);
        others.iter().for_each(|other| print!(" {:.2} times {},", other.ns / our.ns, other.name));
        println!(" in speed");
    }
}

/// Takes a result, which the compiler must then compute.
fn ignore(bytes: Bytes) {
    black_box(bytes);
}

// ---- Hashing to the curve. ----

/// The hash of items as `veilset::hash::Domain` computes it: keyed BLAKE3, the key made once.
fn hash_items(domain: &blake3::Hasher, items: &[[u8; 16]], out: &mut [Bytes]) {
    for (item, out) in items.iter().zip(out) {
        domain.clone().update(item).finalize_xof().fill(out);
    }
}

fn elligator2() {
    println!("\n== Elligator2 in batches of 1024, alone and of the hash of a 16-byte item ==");
    const N: usize = 1024;
    let mut random = Random(3);
    let numbers: Vec<Bytes> = (0..N).map(|_| random.bytes()).collect();
    let items: Vec<[u8; 16]> = numbers.iter().map(|r| *r.first_chunk().unwrap()).collect();
    let domain = blake3::Hasher::new_keyed(&blake3::derive_key("veilset bench", b"an item"));
    let scalar = random.bytes();
    let mut expected = vec![[0; 32]; N];
    curve25519::elligator2_with(Backend::Portable, &numbers, &mut expected);

    let mut candidates: Vec<Candidate> = Vec::new();
    for backend in paths() {
        let mut out = vec![[0; 32]; N];
        assert_eq!(curve25519::elligator2_with(backend, &numbers, &mut out), backend);
        assert_eq!(out, expected, "{backend:?} and the portable path");
        let (numbers, items, domain) = (&numbers, &items, &domain);
        let (mut mapped, mut hashed, mut both) = (out.clone(), out.clone(), out.clone());
        candidates.push(Candidate::new(format!("veilset {backend:?}: multiplication"), N, move || {
            curve25519::ladder_with(backend, black_box(&scalar), &mut out);
        }));
        candidates.push(Candidate::new(format!("veilset {backend:?}: Elligator2"), N, move || {
            curve25519::elligator2_with(backend, black_box(numbers), &mut mapped);
        }));
        candidates.push(Candidate::new(format!("veilset {backend:?}: hash, Elligator2"), N, move || {
            hash_items(domain, black_box(items), &mut hashed);
            curve25519::elligator2_with(backend, &hashed, &mut both);
        }));
    }
    let measured = measure(&mut candidates, 4.0);
    timing::print_table(&["1024"], std::slice::from_ref(&measured));
    for path in measured.chunks(3) {
        let [multiplication, rest @ ..] = path else { continue };
        for m in rest {
            println!("{} is {:.1}% of a multiplication", m.name, 100.0 * m.ns / multiplication.ns);
        }
    }
}
