//! Intersection from mqRPMT and one-sided OT (CZZDL 8.1, Figure 12, "intersection").
//!
//! Security: semi-honest, of the mqRPMT and the OT; nothing binds the receiver's choices to its bits.
//! Leakage: |X| and X n Y to the receiver, |Y| to the sender. Cost beside the mqRPMT: ceil(128 / k) / 8
//! bytes and 16 bytes an item.
//!
//! Departure from the figure: what is transferred is not the item but a 128-bit digest of it, by which the
//! receiver finds the item in its own set: items may be of any length, none shows, and a tag that matched
//! by accident is noticed. Digests of different items collide with probability n_x n_y 2^-128, and only
//! where the tags collide too.

use crate::channel::Channel;
use crate::error::{Error, Result};
use crate::hash::{Domain, SessionId};
use crate::item::ItemSet;
use crate::membership::Mqrpmt;
use crate::operations::Sealed;
use crate::ot::{extension, transfer};
use crate::rng::Prng;
use rayon::prelude::*;

pub(crate) const WIDTH: usize = 16;
const PURPOSE: &str = "intersection by mqRPMT, OT of digests";

fn digests(session: &SessionId) -> impl Fn(&[u8]) -> [u8; WIDTH] + Send + Sync + use<> {
    let domain = Domain::new(session, "intersection by mqRPMT, digest of an item");
    move |item| domain.hash(&[item])
}

/// The receiver, with set `y`; the sender's has `n_x` items. Returns the positions in `y` of the items
/// that match, ascending.
pub fn receiver<'a>(
    protocol: &impl Mqrpmt,
    ch: &mut Channel,
    session: &SessionId,
    y: &'a ItemSet,
    n_x: usize,
    rng: &mut Prng,
) -> Result<Sealed<'a, Vec<u32>>> {
    // 1. P1 obtains the bits e.
    let e = protocol.server(ch, session, y, n_x, rng)?;
    // 2. P1 holding e_i and P2 holding (-, x_i) run one-sided OTs: P1 learns x_i where e_i = 1.
    let mut ot = extension::Receiver::setup(ch, session, PURPOSE, extension::DEFAULT_K, rng)?;
    let mut matched: Vec<[u8; WIDTH]> = Vec::new();
    // As much work for a row that is not wanted: the sender sees the time.
    transfer::receive(ch, &mut ot, &e, true, WIDTH, |wanted, row| {
        let n = matched.len();
        matched.extend(<[u8; WIDTH]>::try_from(row));
        matched.truncate(n + usize::from(wanted));
    })?;
    let digest = digests(session);
    Ok(Sealed::new(move || find(&matched, y, digest)))
}

/// The positions in `y` of the items with these digests, ascending.
fn find(
    matched: &[[u8; WIDTH]],
    y: &ItemSet,
    digest: impl Fn(&[u8]) -> [u8; WIDTH] + Sync,
) -> Result<Vec<u32>> {
    let mut own: Vec<([u8; WIDTH], u32)> =
        (0..y.len() as u32).into_par_iter().map(|i| (digest(y.get(i as usize)), i)).collect();
    own.par_sort_unstable();
    let positions = matched.iter().map(|d| own.binary_search_by_key(d, |o| o.0).ok().map(|at| own[at].1));
    let mut positions: Vec<u32> = positions.collect::<Option<_>>().ok_or_else(inconsistent)?;
    positions.sort_unstable();
    match positions.windows(2).any(|w| w[0] == w[1]) {
        false => Ok(positions),
        true => Err(inconsistent()),
    }
}

fn inconsistent() -> Error {
    Error::misbehaves_unseen(
        "an item it sent does not belong to the match it stands for (by chance this happens with probability 2^-40)",
    )
}

/// The sender, with set `x`; the receiver's has `n_y` items.
pub fn sender(
    protocol: &impl Mqrpmt,
    ch: &mut Channel,
    session: &SessionId,
    x: &ItemSet,
    n_y: usize,
    rng: &mut Prng,
) -> Result<()> {
    // Before the first message: in the middle the receiver could see where the long items are.
    let digest = digests(session);
    let digests: Vec<[u8; WIDTH]> = (0..x.len()).into_par_iter().map(|i| digest(x.get(i))).collect();
    // 0. and 1. X in random order; P2 obtains nothing.
    let order = protocol.client(ch, session, x, n_y, rng)?;
    // 2. One-sided OTs of (-, x_i).
    let mut ot = extension::Sender::setup(ch, session, PURPOSE, extension::DEFAULT_K, rng)?;
    transfer::send(ch, &mut ot, x.len(), true, WIDTH, |i, row| {
        row.copy_from_slice(&digests[order[i] as usize]);
    })
}
