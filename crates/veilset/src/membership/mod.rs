//! Membership tests between two parties: what they are. The files beside this one say how.

pub mod cwprf;
pub mod rpmt;

use crate::context::Context;
use crate::error::Result;
use crate::hashed::Hashed;
use crate::secret::Secrets;

/// Multi-query reverse private membership test (mqRPMT; CZZDL 3.2, Figure 4).
///
/// The server holds a set Y, the client a set X, dummies included. The server learns a bit per query of the client, which
/// says whether that query is in Y, and the client learns nothing. The queries are X in a secret random
/// order that the client chose before its first message, so the position of a bit says nothing to the
/// server (CZZDL Figure 12, step 0). Both know the sizes.
///
/// In the operations the receiver is the server and the sender the client.
pub trait Mqrpmt {
    /// The server's part. `n_x` is the number of queries. Returns a bit per query.
    fn server(&self, cx: &mut Context, y: &Hashed, n_x: usize) -> Result<Secrets<bool>>;

    /// The client's part. `n_y` is the size of the server's set. Returns the order of its queries: query j
    /// was the item at position `order[j]` of X.
    fn client(&self, cx: &mut Context, x: &Hashed, n_y: usize) -> Result<Secrets<u32>>;
}

/// The ideal functionality, for tests of what is built on it: the client sends its queries in the clear.
#[cfg(test)]
pub(crate) struct Ideal;

#[cfg(test)]
pub(crate) const ASK: crate::channel::Message<[u8; 32]> = crate::channel::Message::new(0x7001, "ideal query");

#[cfg(test)]
impl Mqrpmt for Ideal {
    fn server(&self, cx: &mut Context, y: &Hashed, n: usize) -> Result<Secrets<bool>> {
        let all = |set: &Hashed| set.hashes(&(0..set.len() as u32).collect::<Vec<_>>());
        let plain: std::collections::HashSet<[u8; 32]> = all(y).iter().map(|hash| *hash.as_bytes()).collect();
        let bits = (0..n).map(|_| Ok(plain.contains(&cx.ch.rx.recv(ASK, 1)?[0])));
        Ok(Secrets::from(bits.collect::<Result<Vec<bool>>>()?))
    }

    fn client(&self, cx: &mut Context, x: &Hashed, _: usize) -> Result<Secrets<u32>> {
        let order = cx.rng.permutation(x.len());
        order.iter().try_for_each(|&i| cx.ch.tx.send(ASK, &[*x.hashes(&[i])[0].as_bytes()]))?;
        Ok(order)
    }
}
