//! Owners that offer rows which are no ciphertexts, to see from how the run goes on which of two rows another party has
//! got, and so whether it has the item.

use super::count::Count;
use super::tests::tests;
use super::union::{Public, Union};
use crate::context::Context;
use crate::error::{Error, Fault, Result};
use crate::hash::SessionId;
use crate::hashed::Hashed;
use crate::item::ItemSet;
use crate::many::{Many, seat};
use crate::membership::mot::{FromOt, MembershipOt};
use crate::operations::{Confirmed, Sealed};
use crate::secret::Secrets;
use crate::testing::{run_many, split_frames};

/// A transfer in which all v_0, or all v_1, that go to the party of one session are no ciphertexts.
struct Forging {
    to: Option<SessionId>,
    which: usize,
}

impl MembershipOt for Forging {
    fn sender(
        &self,
        cx: &mut Context,
        shares: Secrets<bool>,
        width: usize,
        fill: impl Fn(usize, &mut [u8], &mut [u8]) + Sync,
    ) -> Result<()> {
        let forges = self.to == Some(cx.session);
        FromOt::default().sender(cx, shares, width, |i, v_0, v_1| {
            fill(i, v_0, v_1);
            if forges {
                // A part of the last ciphertext of the row.
                [v_0, v_1][self.which][width - 32..].fill(0xff);
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
        FromOt::default().receiver(cx, shares, width, take)
    }
}

/// Who offers what is no ciphertext, to whom, and which of the two rows that is.
#[derive(Debug, Clone, Copy)]
struct Forgery {
    owner: usize,
    holder: usize,
    which: usize,
}

/// How a run ends for each party, and tags and lengths of what the owner gets from each.
type Ends<T> = (Vec<Result<Option<T>>>, Vec<Vec<(u16, usize)>>);

/// Runs three parties with these sets.
fn ends<T: Send>(
    forgery: Forgery,
    sets: &[ItemSet; 3],
    party: impl for<'s> Fn(&mut Many, &'s Hashed<'s>, Forging) -> Result<Sealed<'s, Option<T>>> + Sync,
) -> Ends<T> {
    let Forgery { owner, holder, which } = forgery;
    let (ends, views) = run_many(3, 1, |many| {
        let to = (many.me == owner).then(|| many.pairs[holder]);
        let hashed = Hashed::new(&sets[many.me]);
        // All get to the end.
        let sealed = party(many, &hashed, Forging { to, which })?;
        Ok(sealed.open(Confirmed(())))
    });
    let of_one = |view: &Vec<u8>| split_frames(view).iter().map(|(tag, body)| (*tag, body.len())).collect();
    (ends, views[owner].iter().map(of_one).collect())
}

/// Sets of which the holder has all three items of the owner, or none of them; nobody else has them.
fn sets(owner: usize, holder: usize, has: bool) -> [ItemSet; 3] {
    let set = |items: &[&str]| items.iter().map(|item| item.as_bytes()).collect::<ItemSet>();
    [0, 1, 2].map(|party| match party {
        _ if party == owner || party == holder && has => set(&["a", "b", "c"]),
        0 => set(&["d", "e", "f"]),
        1 => set(&["g", "h", "i"]),
        _ => set(&["k", "l", "m"]),
    })
}

/// The owner sees and is told the same whether the holder has its items. The holder says in the end what it got.
fn shows_nothing<T: Send>(
    forgery: Forgery,
    party: impl for<'s> Fn(&mut Many, &'s Hashed<'s>, Forging) -> Result<Sealed<'s, Option<T>>> + Sync + Copy,
) {
    let Forgery { owner, holder, which } = forgery;
    let [(has, seen), (lacks, seen_too)] =
        [true, false].map(|has| ends(forgery, &sets(owner, holder, has), party));
    assert_eq!(seen, seen_too, "{forgery:?}");
    // v_0 is what the holder has got of the items that it has. All bins without one are like items that it lacks.
    for (ends, got) in [(&has, true), (&lacks, which == 1)] {
        for (party, end) in ends.iter().enumerate() {
            match end {
                // What a leader that deviates makes of its own result.
                _ if party == 0 && owner == 0 => {}
                Err(Error::Peer { fault: Fault::Misbehaved, who, what }) if party == holder && got => {
                    assert_eq!(*who, seat(owner));
                    assert!(what.contains("offered a row") && what.contains("do not tell"), "{what}");
                }
                Ok(result) if party != holder || !got => assert_eq!(result.is_some(), party == 0),
                other => panic!("{forgery:?}, party {party}: {:?}", other.as_ref().err()),
            }
        }
    }
}

#[test]
fn an_owner_of_a_union_does_not_see_who_got_a_row_that_is_no_ciphertext() {
    let public = Public::new(vec![3; 3], 20);
    for (owner, holder) in [(1, 0), (2, 0), (2, 1)] {
        for which in [0, 1] {
            shows_nothing(Forgery { owner, holder, which }, |many, set, transfer| {
                Union { tests: tests(), transfer }.run(many, set, &public)
            });
        }
    }
}

#[test]
fn the_leader_of_a_count_does_not_see_who_got_a_row_that_is_no_ciphertext() {
    for holder in [1, 2] {
        for which in [0, 1] {
            shows_nothing(Forgery { owner: 0, holder, which }, |many, set, transfer| {
                Count { tests: tests(), transfer }.run(many, set, &[3; 3])
            });
        }
    }
}
