//! Intersection of several parties: the leader learns which of its items all others have, and nothing else.
//!
//! 1. Each client P_i, i >= 2, draws for each of its items x shares s_i,2(x), ..., s_i,n(x) that add up to 0. Through a
//!    programmable OPRF ([`crate::oprf::programmable`]), P_j, j >= 2 other than i, gets s_i,j(x) at each of its items x that
//!    P_i has too, and a random value at the others.
//! 2. P_j adds its own share and all shares it got: T_j(x).
//! 3. Through a programmable OPRF, P_1 gets T_j(x) from each P_j at its items. All parties have an item if these values add
//!    up to 0.
//!
//! If some client lacks an item of P_1, P_1 and the other clients get random values from it there.
//!
//! Security: semi-honest, against any coalition of n - 1 parties, under the assumptions of the programmable OPRF. Shares are
//! drawn for each item and reach only the parties that have it (conditional zero-sharing). If they came from keys of pairs of
//! clients, P_1 and a client together could see whether all others have an item that the client lacks.
//!
//! Leakage: the bounds on all sets. P_1 learns the intersection. The values of an item that some party lacks add up to 0 with
//! probability 2^-l, for values of l bits. So l is [`LAMBDA`] plus the logarithm of P_1's bound, rounded up to bytes. The
//! programmable OPRFs share another 2^-40, the probability that some input is not hidden. Cost: (n - 1)^2 programmable OPRFs,
//! each on a VOLE of its own ([`super::cost`]). Source: not in GNT23, which has the union only.

use crate::context::Context;
use crate::error::Result;
use crate::hash::{SessionId, part};
use crate::hashed::HashedSet;
use crate::many::Many;
use crate::okvs::Value;
use crate::operations::Sealed;
use crate::oprf::programmable::{Bounds, Opprf};
use crate::params::{LAMBDA, share, value_bits};
use crate::rng::Prng;
use crate::secret::Secrets;
use crate::vole::add;

/// The protocol over a programmable OPRF.
pub struct Intersect<F> {
    /// The programmable OPRF on items.
    pub opprf: F,
}

impl<F: Opprf + Sync> Intersect<F> {
    /// Runs one party with its set, which is at most as large as its entry in `bounds`. Returns to the leader, for each of
    /// its items, whether all others have it, and `None` to the others.
    ///
    /// # Errors
    /// The errors of all operations.
    pub fn run<'a>(
        &self,
        many: &mut Many,
        set: &HashedSet,
        bounds: &[usize],
    ) -> Result<Sealed<'a, Option<Vec<bool>>>> {
        super::check(many, bounds)?;
        let me = many.me;
        let items = super::hashed(many, set);
        let at = |receiver, sender| of_pair(bounds, receiver, sender);
        let exponent = exponent(bounds.len());
        if me == 0 {
            // 3. P_1 adds up the values from all others.
            let values = many.each(|other, cx| {
                cx.exponent = exponent;
                self.opprf.receiver(cx, &items, at(0, other))
            })?;
            let (total, real) = (sum(items.len(), &values), set.items().len());
            let of_all = move || Ok(Some(total.iter().take(real).map(|value| *value == [0; 16]).collect()));
            return Ok(Sealed::new(of_all));
        }
        // 1. Draw a share for each other client, and compute our own, which makes the sum 0.
        let clients: Vec<usize> = many.others().filter(|&party| party > 0).collect();
        let shares = clients.iter().map(|_| random(items.len(), many.rng)).collect::<Vec<_>>();
        let own = sum(items.len(), &shares);
        let steps = clients.iter().copied().zip(&shares).collect();
        let mut got = many.each_with(steps, |other, share, cx| {
            // The client with the lower number sends first.
            let session = cx.session;
            cx.exponent = exponent;
            let send = |cx: &mut Context| {
                cx.session = directed(&session, me, other);
                self.opprf.sender(cx, &items, |i| share[i], at(other, me))
            };
            if me < other {
                send(cx)?;
            }
            cx.session = directed(&session, other, me);
            let got = self.opprf.receiver(cx, &items, at(me, other))?;
            if me > other {
                send(cx)?;
            }
            Ok(got)
        })?;
        // 2. T_j(x).
        got.push(own);
        let t = sum(items.len(), &got);
        // 3. P_1 gets it at the items that it has too.
        many.each_with(vec![(0, ())], |_, (), cx| {
            cx.exponent = exponent;
            self.opprf.sender(cx, &items, |i| t[i], at(0, me))
        })?;
        Ok(Sealed::new(|| Ok(None)))
    }
}

/// Returns e such that the error of each programmable OPRF is at most 2^-e; together they share the error of the run.
pub(super) fn exponent(parties: usize) -> u32 {
    let clients = parties.saturating_sub(1);
    share(LAMBDA, clients * clients)
}

/// The public parameters of the programmable OPRF of these two parties.
pub(super) fn of_pair(bounds: &[usize], receiver: usize, sender: usize) -> Bounds {
    let bytes = value_bits(LAMBDA, bounds[0]).div_ceil(8) as usize;
    Bounds { receiver: bounds[receiver], sender: bounds[sender], bytes }
}

/// The session of the programmable OPRF from one client to another.
pub(super) fn directed(session: &SessionId, from: usize, to: usize) -> SessionId {
    match from < to {
        true => part(session, "intersection of several parties, shares of the client with the lower number"),
        false => {
            part(session, "intersection of several parties, shares of the client with the higher number")
        }
    }
}

/// Returns `n` random values; only their first bytes are used.
fn random(n: usize, rng: &mut Prng) -> Secrets<Value> {
    let mut values = Secrets::<Value>::zeros(n);
    rng.fill(values.as_flattened_mut());
    values
}

/// Returns the sums of the values at each position of these lists of length `n`.
fn sum(n: usize, lists: &[Secrets<Value>]) -> Secrets<Value> {
    let mut sums = Secrets::<Value>::zeros(n);
    for list in lists {
        sums.iter_mut().zip(list.iter()).for_each(|(sum, value)| add(sum, value));
    }
    sums
}
