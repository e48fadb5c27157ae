//! Membership oblivious transfer (mOT; GNT23 3.1, Figures 2 and 3). GNT23: Jiahui Gao, Son Nguyen, Ni Trieu, "Toward A
//! Practical Multi-party Private Set Union", PoPETs 2024.
//!
//! The sender S has keywords y, and for each of them two rows v_0 and v_1 of one public width. The receiver R has a set X. For
//! each keyword R gets v_0 if y is in X, and v_1 otherwise. It does not learn which of the two it got, unless the rows show it,
//! nor anything about the other. S learns nothing.
//!
//! A secret-shared private membership test (SS-PMT) has already determined which keywords are in X: S and R have shares b_S and
//! b_R, with b_S + b_R = 1 if y is in X and 0 otherwise. So the keywords and the set do not appear here.
//!
//! Security and leakage: those of the semi-honest OT. Cost: an OT and both rows per keyword ([`FromOt::traffic`]). Memory: a
//! byte per share, and the memory of the transfer ([`crate::ot::transfer`]).
//!
//! **Shares serve one transfer.** From two transfers with the same shares, R would see that both give v_0 or both give v_1. So
//! shares are taken by value.
//!
//! Departures from Figure 3:
//! - The figure gives R the row v_1 if b_S + b_R = 1, that is, if y is in X. In Figure 2 and here, R gets v_0.
//! - The figure offers r + v_0 and r + v_1, and then sends u = r + b_S (v_0 + v_1). Here b_S sets the order in which S offers
//!   the rows: the choice c gets v_0 if b_S + c = 1. This saves a row, and R's view is the same: its output of the OT.

use crate::channel::{HEADER, frames};
use crate::context::Context;
use crate::error::Result;
use crate::ot::Security;
use crate::ot::extension::{self, DEFAULT_K, FRAME, correction_bytes, setup_bytes};
use crate::ot::transfer::{check, receive_chosen, rows_per_frame, send_pairs};
use crate::secret::Secrets;
use subtle::{Choice, ConditionallySelectable};

/// The purpose of the OTs.
const PURPOSE: &str = "membership OT";

/// A protocol for mOT, from the shares of an SS-PMT. Both parties pass the same number of shares.
///
/// A session runs it once. To run it again, pass `part(session, ..)` ([`crate::hash::part`]) with a different name each
/// time.
pub trait MembershipOt {
    /// Runs S. `fill(i, v_0, v_1)` writes the rows of keyword i, of `width` bytes, into zeroed buffers. It may be called
    /// more than once for each i.
    fn sender(
        &self,
        cx: &mut Context,
        shares: Secrets<bool>,
        width: usize,
        fill: impl Fn(usize, &mut [u8], &mut [u8]) + Sync,
    ) -> Result<()>;

    /// Runs R. Calls `take(row)` for each keyword, in order.
    fn receiver(
        &self,
        cx: &mut Context,
        shares: Secrets<bool>,
        width: usize,
        take: impl FnMut(&[u8]),
    ) -> Result<()>;
}

/// The protocol of Figure 3, with a 1-of-2 OT for each keyword.
pub struct FromOt {
    /// The depth of the OT extension's trees, from 1 to 8; see [`crate::ot::extension`].
    pub k: usize,
}

impl FromOt {
    /// Bytes for `n` keywords with rows of `width` bytes, including frame headers: from R to S, and back.
    pub fn traffic(&self, n: usize, width: usize) -> (usize, usize) {
        let (mut there, mut back) = setup_bytes(self.k, Security::SemiHonest);
        for n in frames(n, FRAME) {
            there += HEADER + correction_bytes(n, self.k, Security::SemiHonest);
            back += 2 * n * width + HEADER * frames(n, rows_per_frame(2 * width)).len();
        }
        (there, back)
    }
}

impl Default for FromOt {
    fn default() -> Self {
        FromOt { k: DEFAULT_K }
    }
}

impl MembershipOt for FromOt {
    fn sender(
        &self,
        cx: &mut Context,
        shares: Secrets<bool>,
        width: usize,
        fill: impl Fn(usize, &mut [u8], &mut [u8]) + Sync,
    ) -> Result<()> {
        check(width)?;
        let mut ot = extension::Sender::setup(cx, PURPOSE, self.k, Security::SemiHonest)?;
        // The choice c gets v_0 if b_S + c = 1, and v_1 otherwise.
        send_pairs(cx.ch, &mut ot, shares.len(), width, |i, choice, row| {
            let mut both = Secrets::<u8>::zeros(2 * width);
            let (v_0, v_1) = both.split_at_mut(width);
            fill(i, v_0, v_1);
            let is_member = Choice::from(u8::from(shares[i] ^ choice));
            for ((row, v_0), v_1) in row.iter_mut().zip(v_0).zip(v_1) {
                *row = u8::conditional_select(v_1, v_0, is_member);
            }
        })
    }

    fn receiver(
        &self,
        cx: &mut Context,
        shares: Secrets<bool>,
        width: usize,
        take: impl FnMut(&[u8]),
    ) -> Result<()> {
        check(width)?;
        let mut ot = extension::Receiver::setup(cx, PURPOSE, self.k, Security::SemiHonest)?;
        // R's choice is b_R.
        receive_chosen(cx.ch, &mut ot, &shares, width, take)
    }
}

/// The ideal functionality, for testing its callers: the sender sends its shares and all rows in the clear.
#[cfg(any(test, feature = "test-util"))]
pub struct Ideal;

#[cfg(any(test, feature = "test-util"))]
const SHARES: crate::channel::Message<[u8; 1]> =
    crate::channel::Message::new(0x70e0, "S->R  ideal mOT, shares");
#[cfg(any(test, feature = "test-util"))]
const ROWS: crate::channel::Message<[u8]> =
    crate::channel::Message::new(0x70e1, "S->R  ideal mOT, v_0 and v_1");

#[cfg(any(test, feature = "test-util"))]
impl MembershipOt for Ideal {
    fn sender(
        &self,
        cx: &mut Context,
        shares: Secrets<bool>,
        width: usize,
        fill: impl Fn(usize, &mut [u8], &mut [u8]) + Sync,
    ) -> Result<()> {
        cx.ch.tx.send(SHARES, &shares.iter().map(|share| [u8::from(*share)]).collect::<Vec<_>>())?;
        (0..shares.len()).try_for_each(|i| {
            let mut both = vec![0; 2 * width];
            let (v_0, v_1) = both.split_at_mut(width);
            fill(i, v_0, v_1);
            cx.ch.tx.send_bytes(ROWS, &both)
        })
    }

    fn receiver(
        &self,
        cx: &mut Context,
        shares: Secrets<bool>,
        width: usize,
        mut take: impl FnMut(&[u8]),
    ) -> Result<()> {
        let theirs = cx.ch.rx.recv(SHARES, shares.len())?;
        for (theirs, ours) in theirs.iter().zip(shares.iter()) {
            let both = cx.ch.rx.recv_bytes(ROWS, 2 * width)?;
            let is_member = (theirs[0] == 1) ^ ours;
            take(if is_member { &both[..width] } else { &both[width..] });
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "mot_tests.rs"]
pub(crate) mod tests;
