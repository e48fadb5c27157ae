//! Group elements and numbers as received over the wire, and both parties of the base OT, whose messages consist of elements.
use crate::{byte, check, peer};
use std::sync::LazyLock;
use veilset::channel::Wire;
use veilset::context::Context;
use veilset::group::curve25519::{Key, Point, raise};
use veilset::group::p256::{P256, P256Compressed};
use veilset::group::{Group, Key as _};
use veilset::ot::base;
use veilset_core::hazmat::{seeded, session_id};

static KEYS: LazyLock<[Key; 2]> = LazyLock::new(|| [1, 2].map(|seed| Key::random(&mut seeded(&[seed; 32]))));

/// Each element has only one encoding.
fn canonical<T: Wire>(bytes: &[u8]) -> Option<T> {
    let element = T::get(bytes).ok()?;
    let mut out = Vec::new();
    element.put(&mut out);
    assert_eq!(out, bytes);
    Some(element)
}

/// Multiplications of a point by two keys commute, and the products are points.
fn commutes<G: Group>(data: &[u8]) {
    let [a, b] = [1, 2].map(|seed| G::Key::random(&mut seeded(&[seed; 32])));
    let each = data.chunks(G::Point::SIZE).filter_map(canonical::<G::Point>);
    let points: Vec<G::Point> = each.filter(|point| G::raise(&[*point], &a).is_ok()).collect();
    let [Ok(to_a), Ok(to_b)] = [&a, &b].map(|key| G::raise(&points, key)) else { panic!("each is a point") };
    assert!(G::raise(&to_a, &b) == G::raise(&to_b, &a));
    assert!(to_a.iter().all(|point| canonical::<G::Point>(point.as_ref()).is_some()));
}

/// Runs the target on an input.
pub(crate) fn run(data: &[u8]) {
    let mut data = data;
    let (kind, n) = (byte(&mut data) % 3, usize::from(byte(&mut data) % 9));
    match kind {
        0 => {
            canonical::<u64>(data);
            canonical::<[u8; 25]>(data);
            commutes::<P256>(data);
            commutes::<P256Compressed>(data);
            let points: Vec<Point> = data.chunks(32).filter_map(canonical::<Point>).collect();
            let [a, b] = &*KEYS;
            let (Ok(to_a), Ok(to_b)) = (raise(&points, a), raise(&points, b)) else { return };
            // In either order, on the curve and on the twist.
            assert_eq!(raise(&to_a, b), raise(&to_b, a));
            assert!(to_a.iter().all(|p| canonical::<Point>(p.as_bytes()).is_some()));
        }
        1 => {
            match base::sender(
                &mut Context::new(&mut peer(data), &session_id([7; 32]), &mut seeded(&[3; 32])),
                "fuzz",
                n,
            ) {
                Ok(pads) => assert!(pads.len() == n && pads.iter().all(|[zero, one]| zero != one)),
                Err(e) => check(&e),
            }
        }
        _ => {
            let choices: Vec<bool> = (0..n).map(|i| i % 2 == 0).collect();
            match base::receiver(
                &mut Context::new(&mut peer(data), &session_id([7; 32]), &mut seeded(&[3; 32])),
                "fuzz",
                &choices,
            ) {
                Ok(pads) => assert_eq!(pads.len(), n),
                Err(e) => check(&e),
            }
        }
    }
}
