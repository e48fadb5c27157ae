//! VOLE from correlated OTs, 128 per element (Gilboa, "Two Party RSA Key Generation", CRYPTO 1999, for vectors).
//! The receiver's bits are the choices, so no message is needed beyond those of the OTs.
//!
//! Bit j of a is the choice a_j of an OT that gives the receiver v_j and the sender q_j = v_j + a_j Delta. With
//! c = sum of x^j v_j and b = sum of x^j q_j, we have c = b + Delta a.
//!
//! Security and leakage: those of the OTs. Cost: 128 correlated OTs per element; 390 bytes from receiver to
//! sender at k = 6.

use super::Element;
use crate::channel::{Rx, Tx, frames};
use crate::error::Result;
use crate::ot::extension::{FRAME, Receiver, Sender};
use crate::secret::Secrets;
use veilset_kernels::gf128::sum_of_products;

/// Bits per element.
pub(super) const BITS: usize = 128;
/// Elements per frame of OTs.
const PER_FRAME: usize = FRAME / BITS;

/// Runs the receiver: c for its elements `a`.
pub(super) fn receiver(tx: &mut Tx, ot: &mut Receiver, a: &[Element]) -> Result<Secrets<Element>> {
    let mut c = Secrets::zeros(0);
    for a in a.chunks(PER_FRAME) {
        let bit = |i: usize| a[i / BITS][i % BITS / 8] >> (i % 8) & 1 == 1;
        let choices = Secrets::from((0..a.len() * BITS).map(bit).collect::<Vec<_>>());
        c.extend(&combined(&ot.correlated(tx, &choices)?));
    }
    Ok(c)
}

/// Runs the sender: b for `n` elements of the receiver.
pub(super) fn sender(rx: &mut Rx, ot: &mut Sender, n: usize) -> Result<Secrets<Element>> {
    let mut b = Secrets::zeros(0);
    for n in frames(n, PER_FRAME) {
        b.extend(&combined(&ot.correlated(rx, n * BITS)?));
    }
    Ok(b)
}

/// For each 128 rows, the sum of x^b times row b.
fn combined(rows: &[Element]) -> Secrets<Element> {
    let powers: [Element; BITS] = std::array::from_fn(|b| (1u128 << b).to_le_bytes());
    Secrets::from(rows.chunks_exact(BITS).map(|rows| sum_of_products(&powers, rows)).collect::<Vec<_>>())
}
