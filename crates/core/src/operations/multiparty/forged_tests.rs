//! Owners that offer malformed rows, or rows with forbidden contents, to see from the rest of the run which of two rows
//! another party has got, and so whether it has the item.

use super::count::Count;
use super::tests::tests;
use super::union::{Public, Union};
use crate::context::Context;
use crate::error::{Error, Fault, Result, Seat};
use crate::group::encoding;
use crate::group::ristretto255::encode;
use crate::hash::SessionId;
use crate::hashed::HashedSet;
use crate::item::ItemSet;
use crate::many::{Many, seat};
use crate::membership::mot::{FromOt, MembershipOt};
use crate::operations::{Confirmed, Sealed};
use crate::secret::Secrets;
use crate::testing::{run_many, split_frames};
use curve25519_dalek::RistrettoPoint;
use curve25519_dalek::constants::RISTRETTO_BASEPOINT_POINT as G;
use curve25519_dalek::ristretto::CompressedRistretto;

/// The bytes of a row with an item of up to 20 bytes, which is one element.
const ROW: usize = 21;

/// A change that an owner makes to the second part of the last ciphertext of a row, given the row's bin.
type Change = fn(usize, &mut [u8]);

/// Replaces the part by a string that is no element.
fn no_element(_: usize, part: &mut [u8]) {
    part.fill(0xff);
}

/// Replaces the part by another element, so that the plaintext is not part of any row.
fn no_item(_: usize, part: &mut [u8]) {
    part.copy_from_slice(G.compress().as_bytes());
}

/// Turns an encryption of nothing into one of a row whose item is longer than a row.
fn too_long(_: usize, part: &mut [u8]) {
    let mut row = [0; ROW];
    row[0] = 0xff;
    add(part, row);
}

/// Turns an encryption of nothing into one of a row with an item, different in each bin, that the leader has in most bins.
fn of_the_leader(bin: usize, part: &mut [u8]) {
    let mut row = [0; ROW];
    (row[0], row[1]) = (1, b"abcd"[bin]);
    add(part, row);
}

/// Adds the element of this row.
fn add(part: &mut [u8], row: [u8; ROW]) {
    let point = |bytes: [u8; 32]| -> RistrettoPoint { CompressedRistretto(bytes).decompress().unwrap() };
    let element: [u8; 32] = encode(&encoding::encode(&row, ROW, &[true]))[0];
    let before: [u8; 32] = (&*part).try_into().unwrap();
    let sum = point(before) + point(element);
    part.copy_from_slice(sum.compress().as_bytes());
}

/// A transfer in which all v_0, or all v_1, are changed in one session.
struct Forging {
    to: Option<SessionId>,
    which: usize,
    change: Change,
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
                (self.change)(i, &mut [v_0, v_1][self.which][width - 32..]);
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

/// An attack: the owner that offers forged rows, the holder, which of the two rows are forged, and the change.
#[derive(Debug, Clone, Copy)]
struct Forgery {
    owner: usize,
    holder: usize,
    which: usize,
    change: Change,
}

/// The party that reports a forged row in the end, the seat that it blames, and the words of its report.
type Notice = (usize, Seat, &'static str);

/// The end of a run for each party, and the tags and lengths of the frames that the owner gets from each.
type Ends<T> = (Vec<Result<Option<T>>>, Vec<Vec<(u16, usize)>>);

/// Runs three parties with these sets.
fn ends<T: Send>(
    forgery: Forgery,
    sets: &[ItemSet; 3],
    party: impl for<'s> Fn(&mut Many, &'s HashedSet<'s>, Forging) -> Result<Sealed<'s, Option<T>>> + Sync,
) -> Ends<T> {
    let Forgery { owner, holder, which, change } = forgery;
    let (ends, views) = run_many(3, 1, |many| {
        let to = (many.me == owner).then(|| many.pairs[holder]);
        let hashed = HashedSet::new(&sets[many.me]);
        // All parties reach the end.
        let sealed = party(many, &hashed, Forging { to, which, change })?;
        Ok(sealed.open(Confirmed::for_tests()))
    });
    let of_one = |view: &Vec<u8>| split_frames(view).iter().map(|(tag, body)| (*tag, body.len())).collect();
    (ends, views[owner].iter().map(of_one).collect())
}

/// Sets in which the holder has all three items of the owner, or none of them; the third party has none.
fn sets(owner: usize, holder: usize, has: bool) -> [ItemSet; 3] {
    let set = |items: &[&str]| items.iter().map(|item| item.as_bytes()).collect::<ItemSet>();
    [0, 1, 2].map(|party| match party {
        _ if party == owner || party == holder && has => set(&["a", "b", "c"]),
        0 => set(&["d", "e", "f"]),
        1 => set(&["g", "h", "i"]),
        _ => set(&["k", "l", "m"]),
    })
}

/// Checks that the owner's view is the same whether or not the holder has its items. If the holder got a forged row, a party
/// reports it in the end.
fn shows_nothing<T: Send>(
    forgery: Forgery,
    (notices, blames, words): Notice,
    party: impl for<'s> Fn(&mut Many, &'s HashedSet<'s>, Forging) -> Result<Sealed<'s, Option<T>>> + Sync + Copy,
) {
    let Forgery { owner, holder, which, .. } = forgery;
    let [(has, seen), (lacks, seen_too)] =
        [true, false].map(|has| ends(forgery, &sets(owner, holder, has), party));
    assert_eq!(seen, seen_too, "{forgery:?}");
    // The holder has got v_0 for the items that it has. Bins without an item are treated like items that it lacks.
    for (ends, got) in [(&has, true), (&lacks, which == 1)] {
        for (party, end) in ends.iter().enumerate() {
            match end {
                // A leader that deviates may get any result.
                _ if party == 0 && owner == 0 => {}
                Err(Error::Peer { fault: Fault::Misbehaved, who, what, .. }) if party == notices && got => {
                    assert_eq!(*who, blames);
                    assert!(what.contains(words) && what.contains("do not tell"), "{what}");
                }
                Ok(result) if party != notices || !got => assert_eq!(result.is_some(), party == 0),
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
            let forgery = Forgery { owner, holder, which, change: no_element };
            shows_nothing(forgery, (holder, seat(owner), "offered a row"), |many, set, transfer| {
                Union { tests: tests(), transfer }.run(many, set, &public)
            });
        }
    }
}

/// The leader reads all rows to the end, regardless of their contents, and reports the forgery only to its own user. It
/// cannot identify the row's owner.
#[test]
fn an_owner_of_a_union_does_not_see_who_got_a_row_of_no_item() {
    let public = Public::new(vec![3; 3], 20);
    for (owner, holder) in [(1, 0), (2, 0), (2, 1)] {
        for which in [0, 1] {
            let forgery = Forgery { owner, holder, which, change: no_item };
            shows_nothing(forgery, (0, Seat::SOMEBODY, "does not decrypt"), |many, set, transfer| {
                Union { tests: tests(), transfer }.run(many, set, &public)
            });
        }
    }
}

/// An owner does not see who got a row that no honest party leaves: one with an item of another length, or one that the
/// leader has.
#[test]
fn an_owner_of_a_union_does_not_see_who_got_a_row_that_should_not_be_left() {
    let public = Public::new(vec![3; 3], 20);
    let wrong: [(Change, &'static str); 2] =
        [(too_long, "does not decrypt"), (of_the_leader, "should not be left")];
    for owner in [1, 2] {
        for (change, words) in wrong {
            // A leader that has the item is offered an encryption of nothing.
            let forgery = Forgery { owner, holder: 0, which: 0, change };
            shows_nothing(forgery, (0, Seat::SOMEBODY, words), |many, set, transfer| {
                Union { tests: tests(), transfer }.run(many, set, &public)
            });
        }
    }
}

#[test]
fn the_leader_of_a_count_does_not_see_who_got_a_row_that_is_no_ciphertext() {
    for holder in [1, 2] {
        for which in [0, 1] {
            let forgery = Forgery { owner: 0, holder, which, change: no_element };
            shows_nothing(forgery, (holder, seat(0), "offered a row"), |many, set, transfer| {
                Count { tests: tests(), transfer }.run(many, set, &[3; 3])
            });
        }
    }
}

/// A transfer whose receiver treats all rows as malformed, if the flag is set. So it returns ciphertexts of the identity.
struct Spoiling(bool);

impl MembershipOt for Spoiling {
    fn sender(
        &self,
        cx: &mut Context,
        shares: Secrets<bool>,
        width: usize,
        fill: impl Fn(usize, &mut [u8], &mut [u8]) + Sync,
    ) -> Result<()> {
        FromOt::default().sender(cx, shares, width, fill)
    }

    fn receiver(
        &self,
        cx: &mut Context,
        shares: Secrets<bool>,
        width: usize,
        mut take: impl FnMut(&[u8]),
    ) -> Result<()> {
        FromOt::default().receiver(cx, shares, width, |row| match self.0 {
            true => take(&vec![0xff_u8; row.len()]),
            false => take(row),
        })
    }
}

/// The leader has three items, and the last party turns each of its four bins into a match.
#[test]
fn more_matches_than_the_leader_has_items_are_found_out_and_only_its_user_is_told() {
    let sets = sets(0, 1, true);
    let (ends, _) = run_many(3, 1, |many| {
        let (hashed, transfer) = (HashedSet::new(&sets[many.me]), Spoiling(many.me == 2));
        let sealed = Count { tests: tests(), transfer }.run(many, &hashed, &[3; 3])?;
        Ok(sealed.open(Confirmed::for_tests()))
    });
    let error = ends[0].as_ref().unwrap_err();
    assert_eq!((error.fault(), error.seat()), (Some(Fault::Misbehaved), Some(Seat::SOMEBODY)));
    let what = error.to_string();
    assert!(what.contains("more matches than we have items") && what.contains("do not tell"), "{what}");
    assert!(matches!(ends[1], Ok(None)));
}
