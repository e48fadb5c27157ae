//! What becomes of the rows of an owner in the step with one other party: a membership OT hands them over, and the
//! other party returns them with fresh randomness. In the end the leader has rows, and all decrypt them.
//!
//! Which of two rows a party gets follows from its set. So an owner that offers one that is no ciphertext must not see
//! whether it was taken: the run goes on with a fresh encryption of nothing in its place, and who has got it says so
//! when all have left ([`forged`]). What a party returns it knows, and malformed rows are refused at once there.

use super::setup::Setup;
use crate::ahe::elgamal::{Ciphertext, Malformed, PublicKey};
use crate::ahe::shuffle::{Shape, Shuffle};
use crate::channel::{Message, Wire, frames};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::group::ristretto255::Element;
use crate::many::{Many, seat};
use crate::membership::mot::MembershipOt;
use crate::secret::Secrets;

const RETURNED: Message<Ciphertext> = Message::new(0xdb, "to the owner  rows, re-randomised");

/// Ciphertexts of a frame: 256 KiB.
pub(super) const FRAME: usize = 1 << 12;

/// Hands over v_0 of each row whose item the other party has, and v_1 of the others. Both have randomness that
/// nobody has seen.
pub(super) fn offer(
    cx: &mut Context,
    transfer: &impl MembershipOt,
    shares: Secrets<bool>,
    v: [&[Ciphertext]; 2],
) -> Result<()> {
    let k = v[0].len() / shares.len().max(1);
    transfer.sender(cx, shares, k * Ciphertext::SIZE, |i, v_0, v_1| {
        for (to, v) in [v_0, v_1].into_iter().zip(v) {
            let ciphertexts = to.chunks_exact_mut(Ciphertext::SIZE).zip(&v[k * i..][..k]);
            ciphertexts.for_each(|(to, ciphertext)| to.copy_from_slice(ciphertext.as_ref()));
        }
    })
}

/// What the owner handed over, rows of `k` ciphertexts.
pub(super) fn accept(
    cx: &mut Context,
    transfer: &impl MembershipOt,
    shares: Secrets<bool>,
    k: usize,
) -> Result<Vec<Ciphertext>> {
    let n = shares.len();
    let mut rows = Vec::new();
    transfer.receiver(cx, shares, k * Ciphertext::SIZE, |row| {
        rows.extend(row.chunks_exact(Ciphertext::SIZE).filter_map(|bytes| Ciphertext::get(bytes).ok()));
    })?;
    match rows.len() == k * n {
        true => Ok(rows),
        false => Err(Error::Bug(format!("{} ciphertexts for {n} rows of {k}", rows.len()))),
    }
}

/// Returns the rows to their owner, with randomness of our own. Tells whether all were ciphertexts, which is for the end
/// of the run ([`forged`]).
pub(super) fn give_back(cx: &mut Context, joint: &PublicKey, rows: &[Ciphertext]) -> Result<bool> {
    let mut intact = true;
    for rows in rows.chunks(FRAME) {
        let (fresh, malformed) = cx.threads.run(|| joint.rerandomise_any(rows, cx.rng));
        intact &= malformed.is_none();
        cx.ch.tx.send(RETURNED, &fresh)?;
    }
    Ok(intact)
}

/// The `n` ciphertexts of our rows as the other party returned them, with fresh randomness.
pub(super) fn take_back(cx: &mut Context, joint: &PublicKey, n: usize) -> Result<Vec<Ciphertext>> {
    let mut rows = Vec::new();
    for n in frames(n, FRAME) {
        let returned = cx.ch.rx.recv(RETURNED, n)?;
        rows.extend(cx.threads.run(|| joint.rerandomise(&returned, cx.rng)).map_err(malformed)?);
    }
    Ok(rows)
}

/// Shuffle&Decrypt of the list that P_1 has, and no other party. P_1 calls `take` for each frame of elements, and gets
/// the first row of the list that was malformed, which is for the end of the run ([`forged`]).
pub(super) fn opened(
    many: &mut Many,
    setup: Setup,
    joint: &PublicKey,
    (shape, list): (Shape, &[Ciphertext]),
    take: impl FnMut(&[Element]) -> Result<()>,
) -> Result<Option<usize>> {
    let (me, last, rng) = (many.me, many.parties() - 1, &mut many.rng.split());
    let mut shuffle = Shuffle { shape, rng, threads: many.threads };
    if me > 0 {
        let rest = setup.remaining(me)?;
        let next = if me < last { me + 1 } else { 0 };
        many.between(me - 1, next, |rx, tx| shuffle.pass(setup.key, &rest, rx, tx))?;
        return Ok(None);
    }
    let malformed = many.with(1, |ch| shuffle.lead(joint, list, &mut ch.tx))?;
    many.with(last, |ch| shuffle.open(setup.key, &mut ch.rx, take))?;
    Ok(malformed)
}

/// The error for an owner that offered a row which is no ciphertext.
pub(super) fn forged(owner: usize) -> Error {
    let what = "it offered a row of which a part is not an element of ristretto255, or its identity";
    Error::misbehaves_unseen(what).by(seat(owner))
}

fn malformed(Malformed(at): Malformed) -> Error {
    Error::misbehaves(format_args!(
        "part of ciphertext {at} of a frame of rows is not an element of ristretto255, or its identity"
    ))
}
