//! Transfer of an owner's rows in the step with one other party: a membership OT hands them over, and the other party returns
//! them with fresh randomness. Finally the leader has the rows, and all parties decrypt them.
//!
//! Which of two rows a party gets depends on its set. So an owner that offers a malformed ciphertext must not see whether it
//! was taken. The run goes on with a fresh encryption of the identity in its place, and the party that got it reports it to
//! its own user after the run ([`forged`]). A party knows the rows that it returns, so malformed rows are refused at once
//! there.

use super::setup::Setup;
use crate::ahe::elgamal::{Ciphertext, FirstMalformed, Malformed, PublicKey};
use crate::ahe::shuffle::{Shuffle, ShuffleShape};
use crate::channel::{Message, Wire, frames};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::group::ristretto255::Element;
use crate::many::{Many, seat};
use crate::membership::mot::MembershipOt;
use crate::secret::Secrets;

const RETURNED: Message<Ciphertext> = Message::new(0xdb, "to the owner  rows, re-randomised");

/// The number of ciphertexts of a frame: 256 KiB.
pub(super) const FRAME: usize = 1 << 12;

/// Hands over v_0 of each row whose item the other party has, and v_1 of all other rows. No other party may know the
/// randomness of v_0 or v_1.
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

/// Receives the owner's rows of `k` ciphertexts.
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
        false => Err(Error::bug(format!("{} ciphertexts for {n} rows of {k}", rows.len()))),
    }
}

/// Returns the rows to their owner, with randomness of our own.
pub(super) fn give_back(cx: &mut Context, joint: &PublicKey, rows: &[Ciphertext]) -> Result<FirstMalformed> {
    let mut malformed = FirstMalformed::NONE;
    for (i, rows) in rows.chunks(FRAME).enumerate() {
        let (fresh, first) = cx.threads.run(|| joint.rerandomise_any(rows, cx.rng));
        malformed = malformed.or(first.after(i * FRAME));
        cx.ch.tx.send(RETURNED, &fresh)?;
    }
    Ok(malformed)
}

/// Receives the `n` ciphertexts of our rows that the other party returns, and re-randomises them.
pub(super) fn take_back(cx: &mut Context, joint: &PublicKey, n: usize) -> Result<Vec<Ciphertext>> {
    let mut rows = Vec::new();
    for n in frames(n, FRAME) {
        let returned = cx.ch.rx.recv(RETURNED, n)?;
        rows.extend(cx.threads.run(|| joint.rerandomise(&returned, cx.rng)).map_err(malformed)?);
    }
    Ok(rows)
}

/// Runs Shuffle&Decrypt on the list, which only P_1 has. P_1 calls `take` for each frame of elements. Returns to P_1 the
/// position of the first malformed ciphertext of its list.
pub(super) fn opened(
    many: &mut Many,
    setup: Setup,
    (shape, list): (ShuffleShape, &[Ciphertext]),
    take: impl FnMut(&[Element]) -> Result<()>,
) -> Result<FirstMalformed> {
    let (me, last, rng) = (many.me, many.parties() - 1, &mut many.rng.split());
    let mut shuffle = Shuffle { shape, rng, threads: many.threads };
    if me > 0 {
        let next = if me < last { me + 1 } else { 0 };
        many.between(me - 1, next, |rx, tx| shuffle.pass(setup.key, &setup.rest, rx, tx))?;
        return Ok(FirstMalformed::NONE);
    }
    let malformed = many.with(1, |ch| shuffle.lead(&setup.joint, list, &mut ch.tx))?;
    many.with(last, |ch| shuffle.open(setup.key, &mut ch.rx, take))?;
    Ok(malformed)
}

/// Returns the error for an owner that offered a malformed row; it must be raised only after the run.
pub(super) fn forged(owner: usize) -> Error {
    let what = "it offered a row of which a part is not an element of ristretto255, or its identity";
    Error::misbehaves_unseen(what).by(seat(owner))
}

fn malformed(Malformed(at): Malformed) -> Error {
    Error::misbehaves(format_args!(
        "part of ciphertext {at} of a frame of rows is not an element of ristretto255, or its identity"
    ))
}
