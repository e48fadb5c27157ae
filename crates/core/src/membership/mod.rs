//! Membership tests between two parties. This file defines the functionalities; the submodules implement them.

#[cfg(feature = "fhe")]
pub(crate) mod bfv;
pub mod conditional;
pub mod cwprf;
pub mod encrypted_filter;
pub(crate) mod lookup;
pub mod mot;
pub mod osn;
pub mod permuted;
pub mod poprf;
pub mod rpmt;
pub mod shared;
pub mod sigma;

use crate::context::Context;
use crate::error::Result;
use crate::hashed::HashedSet;
use crate::oprf::Input;
use crate::secret::Secrets;

/// Multi-query reverse private membership test (mqRPMT; CZZDL 3.2, Figure 4).
///
/// The server holds a set Y, the client a set X, both including dummies. For each query of the client the server
/// learns one bit: whether the query is in Y. The client learns nothing. Both know the sizes.
///
/// The queries are X in a secret random order that the client chooses before its first message. So the position
/// of a bit reveals nothing to the server (CZZDL Figure 12, step 0).
///
/// In the operations, the receiver is the server and the sender is the client.
pub trait Mqrpmt {
    /// Runs the server, for `n_x` queries. Returns one bit per query.
    fn server(&self, cx: &mut Context, y: &HashedSet, n_x: usize) -> Result<Secrets<bool>>;

    /// Runs the client; the server's set has `n_y` items. Returns the order of the queries: query j was the item
    /// at position `order[j]` of X.
    fn client(&self, cx: &mut Context, x: &HashedSet, n_y: usize) -> Result<Secrets<u32>>;
}

/// The content of a slot that holds the bottom item ([`InBins`]). Positions of items in X are smaller.
pub const BOTTOM: u32 = u32::MAX;

/// Reverse private membership tests of items in padded bins (KRTW19 4, Figure 7).
///
/// The receiver holds a set Y, the sender a set X. X is placed in slots; there are more of them than items, and their number
/// follows from the sizes. Every other slot holds the *bottom item*. For each slot the receiver learns one bit: whether its
/// content is in Y or is the bottom item. The sender learns nothing. The slots are in a secret order, to the extent that the
/// test documents.
pub trait InBins {
    /// Runs the receiver with the hashes of the items of Y. Returns one bit per slot.
    fn receiver(&self, cx: &mut Context, y: &[Input]) -> Result<Secrets<bool>>;

    /// Runs the sender with the hashes of the items and dummies of X, of which the first `real` are items. Dummies take slots
    /// like items and only then count as the bottom item, which hides their number. Returns the contents of the slots:
    /// positions in X, or [`BOTTOM`].
    fn sender(&self, cx: &mut Context, x: &[Input], real: usize) -> Result<Secrets<u32>>;
}

/// The ideal functionality, for testing its callers: the client sends its queries in the clear.
#[cfg(any(test, feature = "test-util"))]
pub struct Ideal;

#[cfg(any(test, feature = "test-util"))]
pub(crate) const ASK: crate::channel::Message<[u8; 32]> = crate::channel::Message::new(0x7001, "ideal query");

#[cfg(any(test, feature = "test-util"))]
impl Mqrpmt for Ideal {
    fn server(&self, cx: &mut Context, y: &HashedSet, n: usize) -> Result<Secrets<bool>> {
        let all = |set: &HashedSet| set.hashes(&(0..set.len() as u32).collect::<Vec<_>>());
        let plain: std::collections::HashSet<[u8; 32]> = all(y).iter().map(|hash| *hash.as_bytes()).collect();
        let bits = (0..n).map(|_| Ok(plain.contains(&cx.ch.rx.recv(ASK, 1)?[0])));
        Ok(Secrets::from(bits.collect::<Result<Vec<bool>>>()?))
    }

    fn client(&self, cx: &mut Context, x: &HashedSet, _: usize) -> Result<Secrets<u32>> {
        let order = cx.rng.permutation(x.len());
        order.iter().try_for_each(|&i| cx.ch.tx.send(ASK, &[*x.hashes(&[i])[0].as_bytes()]))?;
        Ok(order)
    }
}
