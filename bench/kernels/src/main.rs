//! Compares the curve kernels with other libraries, on one thread: `cargo run --release --manifest-path
//! bench/kernels/Cargo.toml` (it needs libssl-dev and pkg-config).
//!
//! Every section prints its subject. Before any timing, different implementations of a computation must give the same bytes.
//! See [`timing`] for how time and cycles are measured.

mod timing;

use std::hint::black_box;

use aws_lc_rs::agreement::{self, UnparsedPublicKey};
use curve25519_dalek::MontgomeryPoint;
use curve25519_dalek::{RistrettoPoint, Scalar, ristretto::CompressedRistretto};
use openssl::bn::{BigNum, BigNumContext};
use openssl::derive::Deriver;
use openssl::ec::{EcGroup, EcPoint, PointConversionForm};
use openssl::nid::Nid;
use openssl::pkey::{Id, PKey, Private, Public};
use timing::{Candidate, Measured, Random, measure};
use veilset_kernels::ristretto255::{self, Element, Table};
use veilset_kernels::{Backend, curve25519, p256};

type Bytes = [u8; 32];

/// The number of points, from a larger batch, on which libraries that take points one at a time are timed.
const SINGLE: usize = 4096;

fn main() {
    println!("{}", timing::processor());
    println!("{}, aws-lc, curve25519-dalek: see Cargo.lock", openssl::version::version());
    println!("nanoseconds per point, in brackets cycles; the best of several rounds of thread CPU time");
    x25519();
    elligator2();
    ristretto();
    p256();
}

/// Returns the backends that are available here.
fn paths() -> impl Iterator<Item = Backend> {
    curve25519::BACKENDS.iter().copied().filter(|b| b.is_available())
}

// ---- X25519: many points by one scalar. ----

/// The scalar, the points, and the keys of the libraries that need keys, made once.
struct X25519 {
    scalar: Bytes,
    points: Vec<Bytes>,
    openssl: PKey<Private>,
    openssl_points: Vec<PKey<Public>>,
    aws_lc: agreement::PrivateKey,
}

impl X25519 {
    /// Creates random points on the curve or its twist, in the canonical encoding.
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

    /// Uses one context for all points, so that OpenSSL does no more work than necessary.
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

/// Consumes a result, so that the compiler must compute it.
fn ignore(bytes: Bytes) {
    black_box(bytes);
}

// ---- Hashing to the curve. ----

/// Hashes items as `veilset::hash::Domain` does: keyed BLAKE3, with the key made once.
fn hash_items(domain: &Bytes, items: &[[u8; 16]], out: &mut [Bytes]) {
    for (item, out) in items.iter().zip(out) {
        *out = *blake3::keyed_hash(domain, item).as_bytes();
    }
}

fn elligator2() {
    println!("\n== Elligator2 in batches of 1024, alone and of the hash of a 16-byte item ==");
    const N: usize = 1024;
    let mut random = Random(3);
    let numbers: Vec<Bytes> = (0..N).map(|_| random.bytes()).collect();
    let items: Vec<[u8; 16]> = numbers.iter().map(|r| *r.first_chunk().unwrap()).collect();
    let domain = blake3::derive_key("veilset bench", b"an item");
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

// ---- ristretto255: many points by many scalars. ----

fn ristretto() {
    println!(
        "\n== ristretto255 in batches of 1024: encodings by a scalar each, and the generator by many =="
    );
    const N: usize = 1024;
    let mut random = Random(4);
    let scalars: Vec<Scalar> = (0..N).map(|_| Scalar::from_bytes_mod_order(random.bytes())).collect();
    let bytes: Vec<Bytes> = scalars.iter().map(Scalar::to_bytes).collect();
    let uniform: Vec<[u8; 64]> =
        (0..N).map(|_| [random.bytes(), random.bytes()].as_flattened().try_into().unwrap()).collect();
    let encodings: Vec<Bytes> =
        uniform.iter().map(|u| RistrettoPoint::from_uniform_bytes(u).compress().0).collect();
    let dalek = |point: &Bytes, scalar: &Scalar| {
        (CompressedRistretto(*point).decompress().unwrap() * scalar).compress().0
    };
    let expected: Vec<Bytes> = encodings.iter().zip(&scalars).map(|(p, s)| dalek(p, s)).collect();
    let expected_fixed: Vec<Bytes> =
        scalars.iter().map(|s| RistrettoPoint::mul_base(s).compress().0).collect();

    let mut candidates: Vec<Candidate> = Vec::new();
    for backend in paths() {
        let (encodings, bytes) = (&encodings, &bytes);
        let (mut elements, mut out) = (vec![Element::IDENTITY; N], vec![[0; 32]; N]);
        let mut variable = move |out: &mut Vec<Bytes>| {
            assert_eq!(
                ristretto255::decode_with(backend, black_box(encodings), &mut elements),
                (backend, Ok(()))
            );
            ristretto255::multiply_with(backend, &mut elements, bytes);
            ristretto255::encode_with(backend, &elements, out);
        };
        variable(&mut out);
        assert_eq!(out, expected, "{backend:?} and dalek");
        let mut elements = vec![Element::IDENTITY; N];
        let mut fixed = move |out: &mut Vec<Bytes>| {
            Table::generator().multiply_with(backend, black_box(bytes), &mut elements);
            ristretto255::encode_with(backend, &elements, out);
        };
        fixed(&mut out);
        assert_eq!(out, expected_fixed, "{backend:?} and dalek");
        let mut other = out.clone();
        candidates
            .push(Candidate::new(format!("veilset {backend:?}: variable"), N, move || variable(&mut out)));
        candidates.push(Candidate::new(format!("veilset {backend:?}: fixed"), N, move || fixed(&mut other)));
    }
    let (encodings, scalars) = (&encodings, &scalars);
    candidates.push(Candidate::new("curve25519-dalek: variable".into(), N, move || {
        encodings.iter().zip(scalars).for_each(|(p, s)| ignore(dalek(black_box(p), s)));
    }));
    candidates.push(Candidate::new("curve25519-dalek: fixed".into(), N, move || {
        scalars.iter().for_each(|s| ignore(RistrettoPoint::mul_base(black_box(s)).compress().0));
    }));
    let measured = measure(&mut candidates, 4.0);
    timing::print_table(&["1024"], std::slice::from_ref(&measured));
    let (ours, dalek) = measured.split_at(measured.len() - 2);
    for (our, dalek) in ours.iter().zip(dalek.iter().cycle()) {
        println!("{} is {:.2} times dalek's in speed", our.name, dalek.ns / our.ns);
    }
}

// ---- P-256: many points by one scalar. ----

fn p256() {
    println!("\n== P-256 in batches of 1024: points by one scalar, the map and square roots ==");
    const N: usize = 1024;
    let mut random = Random(5);
    let uniform: Vec<[u8; 48]> =
        (0..N).map(|_| [random.bytes(), random.bytes()].as_flattened()[..48].try_into().unwrap()).collect();
    let mut points = vec![[0; 64]; N];
    p256::map(&uniform, &mut points);
    let mut scalar: Bytes = random.bytes();
    scalar[0] = 0x7f;
    let mut expected = points.clone();
    p256::multiply(&scalar, &mut expected).unwrap();

    // OpenSSL's multiplication alone: points are decoded beforehand, and results stay in the form in which it returns them.
    let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).unwrap();
    let mut context = BigNumContext::new().unwrap();
    let decoded: Vec<EcPoint> = points
        .iter()
        .map(|point| EcPoint::from_bytes(&group, &[&[4], &point[..]].concat(), &mut context).unwrap())
        .collect();
    let number = BigNum::from_slice(&scalar).unwrap();
    let mut product = EcPoint::new(&group).unwrap();
    for (point, expected) in decoded.iter().zip(&expected) {
        product.mul2(&group, point, &number, &mut context).unwrap();
        let bytes = product.to_bytes(&group, PointConversionForm::UNCOMPRESSED, &mut context).unwrap();
        assert_eq!(bytes[1..], expected[..], "OpenSSL and aws-lc");
    }

    let abscissae: Vec<Bytes> = points.iter().map(|point| *point.first_chunk().unwrap()).collect();
    let (mut mapped, mut lifted, mut multiplied) = (points.clone(), points.clone(), points.clone());
    let mut candidates = vec![
        Candidate::new("OpenSSL: multiplication alone".into(), N, || {
            for point in &decoded {
                product.mul2(&group, black_box(point), &number, &mut context).unwrap();
            }
        }),
        Candidate::new("veilset: map".into(), N, || p256::map(black_box(&uniform), &mut mapped)),
        Candidate::new("veilset: lift".into(), N, || p256::lift(black_box(&abscissae), &mut lifted).unwrap()),
        Candidate::new("veilset: multiply".into(), N, || {
            p256::multiply(&scalar, black_box(&mut multiplied)).unwrap()
        }),
    ];
    let measured = measure(&mut candidates, 4.0);
    timing::print_table(&["1024"], std::slice::from_ref(&measured));
    if let [openssl, map, lift, multiply] = &measured[..] {
        // A party maps and multiplies each of its items, and multiplies an equal number of the peer's points.
        let both = |lift: f64| (map.ns + lift + 2.0 * multiply.ns) / (2.0 * openssl.ns);
        println!("an item here and one there take {:.2} times two multiplications by OpenSSL;", both(0.0));
        println!("by abscissae {:.2} times", both(lift.ns));
    }
}
