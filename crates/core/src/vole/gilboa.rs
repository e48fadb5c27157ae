//! VOLE from correlated OTs, one per bit of a scalar (Gilboa, "Two Party RSA Key Generation", CRYPTO 1999, for
//! vectors). The receiver's bits are the choices, so only the OTs need messages.
//!
//! Bit j of a is the choice a_j of an OT that gives the receiver v_j and the sender q_j = v_j + a_j Delta. With c = sum
//! of x^j v_j and b = sum of x^j q_j, we have c = b + Delta a. For a in GF(2^64), this holds in each of the two lanes
//! of a pad.
//!
//! Security and leakage: those of the OTs. Cost: 128 correlated OTs per element, or 64 for a in GF(2^64); 390 or 195
//! bytes from receiver to sender at k = 6.

use super::{Element, VoleScalar};
use crate::channel::{Rx, Tx, frames};
use crate::error::Result;
use crate::ot::extension::{FRAME, Receiver, Sender};
use crate::secret::Secrets;

/// Runs the receiver, which obtains c for its scalars `a`.
pub(super) fn receiver<S: VoleScalar>(tx: &mut Tx, ot: &mut Receiver, a: &[S]) -> Result<Secrets<Element>> {
    let mut c = Secrets::zeros(0);
    for a in a.chunks(FRAME / S::BITS) {
        let bits = a.iter().flat_map(|a| (0..S::BITS).map(|i| a.bit(i)));
        let choices = Secrets::from(bits.collect::<Vec<_>>());
        c.extend(&combined::<S>(&ot.correlated(tx, &choices)?));
    }
    Ok(c)
}

/// Runs the sender, which obtains b for `n` scalars of the receiver.
pub(super) fn sender<S: VoleScalar>(rx: &mut Rx, ot: &mut Sender, n: usize) -> Result<Secrets<Element>> {
    let mut b = Secrets::zeros(0);
    for n in frames(n, FRAME / S::BITS) {
        b.extend(&combined::<S>(&ot.correlated(rx, n * S::BITS)?));
    }
    Ok(b)
}

/// The sum of x^b times row b, for each group of rows with one row per bit of a scalar.
fn combined<S: VoleScalar>(rows: &[Element]) -> Secrets<Element> {
    Secrets::from(rows.chunks_exact(S::BITS).map(S::combined).collect::<Vec<_>>())
}
