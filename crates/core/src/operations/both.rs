//! Results that the receiver sends on to the sender, if the parties agreed that both get them.
//!
//! The sender learns exactly what the operation states: one bit per query, a number, or the sorted items of the union without
//! payload, spelling or origin. Message sizes follow from the sizes of the sets. Nothing forces the receiver to send the
//! correct result.

use super::row::Layout;
use super::{Sealed, Terms};
use crate::channel::{Channel, Message, frames};
use crate::error::{Error, Result};
use crate::item::Items;
use crate::secret::Secrets;

const COUNT: Message<u64> = Message::new(0x71, "R->S  number of matches");
const BITS: Message<[u8]> = Message::new(0x72, "R->S  which queries match, a bit each");
const ROWS: Message<[u8]> = Message::new(0x73, "R->S  the union, sorted");
/// Bits per frame: 128 KiB.
pub(crate) const BITS_FRAME: usize = 1 << 20;
/// Maximum bytes of rows per frame. A longer row gets a frame of its own.
const ROW_BYTES: usize = 1 << 18;

/// Sends the number of matches.
pub(super) fn send_count(ch: &mut Channel, matches: usize) -> Result<()> {
    ch.tx.send(COUNT, &[matches as u64])
}

/// Receives the number of matches, at most `most`.
pub(super) fn recv_count(ch: &mut Channel, most: usize) -> Result<u64> {
    match ch.rx.recv(COUNT, 1)?[..] {
        [n] if n <= most as u64 => Ok(n),
        _ => Err(Error::misbehaves("its number of matches is larger than a set")),
    }
}

/// Sends one bit per query.
pub(super) fn send_bits(ch: &mut Channel, bits: &[bool]) -> Result<()> {
    bits.chunks(BITS_FRAME).try_for_each(|bits| {
        let byte = |bits: &[bool]| bits.iter().rev().fold(0u8, |byte, &bit| byte << 1 | u8::from(bit));
        ch.tx.send_bytes(BITS, &bits.chunks(8).map(byte).collect::<Vec<u8>>())
    })
}

/// Receives one bit for each of `n` queries. At most `most` of them may be set.
pub(super) fn recv_bits(ch: &mut Channel, n: usize, most: usize) -> Result<Secrets<bool>> {
    let mut bits = Secrets::zeros(0);
    for n in frames(n, BITS_FRAME) {
        let bytes = ch.rx.recv_bytes(BITS, n.div_ceil(8))?;
        let all = bytes.iter().flat_map(|byte| (0..8).map(move |i| byte >> i & 1 == 1));
        if all.clone().skip(n).any(|bit| bit) {
            return Err(Error::misbehaves("it set bits past the last query"));
        }
        bits.extend(&all.take(n).collect::<Vec<_>>());
    }
    match bits.iter().filter(|&&bit| bit).count() <= most {
        true => Ok(bits),
        false => Err(Error::misbehaves("more of our items match than it has items")),
    }
}

pub(crate) fn rows_per_frame(width: usize) -> usize {
    (ROW_BYTES / width).max(1)
}

/// Sends the sorted union in `n` rows. The rows after the last item are empty.
pub(super) fn send_union(ch: &mut Channel, union: &[&[u8]], n: usize, terms: &Terms) -> Result<()> {
    let layout = Layout::<1>::of(terms);
    layout.check(union.iter().map(|item| [item.len()]))?;
    send_count(ch, union.len())?;
    let mut at = 0;
    for count in frames(n, rows_per_frame(layout.width())) {
        let mut rows = vec![0; count * layout.width()];
        for (row, item) in rows.chunks_exact_mut(layout.width()).zip(&union[at.min(union.len())..]) {
            layout.write([item], row);
        }
        ch.tx.send_bytes(ROWS, &rows)?;
        at += count;
    }
    Ok(())
}

/// Receives the sorted union in `n` rows: distinct items, including all of `own`.
///
/// Whether `own` is included depends on our set, so the verdict is sealed. Otherwise the receiver could omit an
/// item to learn whether we have it.
pub(super) fn recv_union<'a>(
    ch: &mut Channel,
    own: &'a Items,
    n: usize,
    terms: &Terms,
) -> Result<Sealed<'a, Items>> {
    let layout = Layout::<1>::of(terms);
    let len = recv_count(ch, n)? as usize;
    let (mut union, mut sound) = (Items::new(), true);
    let mut at = 0;
    for count in frames(n, rows_per_frame(layout.width())) {
        for row in ch.rx.recv_bytes(ROWS, count * layout.width())?.chunks_exact(layout.width()) {
            let parts = layout.read(row);
            let (item, length) = parts.get(0);
            let item = item.get(..length).unwrap_or_default();
            sound &= parts.well_formed;
            if at < len {
                sound &= at == 0 || union.get(at - 1) < item;
                union.push(item);
            } else {
                sound &= row.iter().all(|&byte| byte == 0);
            }
            at += 1;
        }
    }
    Ok(Sealed::new(move || {
        let mut own: Vec<&[u8]> = own.iter().collect();
        own.sort_unstable();
        let mut rest = union.iter();
        let complete = own.into_iter().all(|item| rest.any(|other| other == item));
        drop(rest);
        match sound && complete {
            true => Ok(union),
            false => Err(Error::misbehaves_unseen(
                "what it sent is not the union: it is not sorted, or one of our items is missing",
            )),
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::ItemSet;
    use crate::operations::Confirmed;
    use crate::testing::ANY_SESSION;
    use crate::testing::run_pair;

    const TERMS: Terms = Terms { max_row: 9, ..super::super::tests::TERMS };

    #[test]
    fn a_number_arrives_unless_it_is_larger_than_a_set() {
        for (n, good) in [(0, true), (5, true), (6, false), (usize::MAX, false)] {
            let got = run_pair(&ANY_SESSION, |cx| send_count(cx.ch, n), |cx| Ok(recv_count(cx.ch, 5))).0.1;
            assert_eq!(got.ok(), good.then_some(n as u64));
        }
    }

    #[test]
    fn bits_arrive_and_too_many_are_refused() {
        for n in [0, 1, 8, 9, BITS_FRAME + 3] {
            let bits: Vec<bool> = (0..n).map(|i| i % 3 == 0).collect();
            let got = run_pair(&ANY_SESSION, |cx| send_bits(cx.ch, &bits), |cx| recv_bits(cx.ch, n, n)).0.1;
            assert_eq!(*got, *bits);
        }
        let refused = |bits: &'static [bool], n, most| {
            run_pair(&ANY_SESSION, |cx| send_bits(cx.ch, bits), |cx| Ok(recv_bits(cx.ch, n, most).is_err()))
                .0
                .1
        };
        assert!(refused(&[true, true], 2, 1) && refused(&[false, false, true], 2, 2));
        assert!(!refused(&[true, true, false], 3, 2));
    }

    #[test]
    fn a_union_arrives_and_what_is_none_is_refused() {
        let own: ItemSet = ["b", "d"].iter().collect();
        // (rows, good)
        for (union, good) in [
            (vec!["a", "b", "d"], true),
            (vec!["b", "d"], true),
            (vec!["a", "d"], false),
            (vec!["b", "a", "d"], false),
            (vec!["b", "b", "d"], false),
            (vec![], false),
        ] {
            let rows: Vec<&[u8]> = union.iter().map(|s| s.as_bytes()).collect();
            let got = run_pair(
                &ANY_SESSION,
                |cx| send_union(cx.ch, &rows, 5, &TERMS),
                |cx| Ok(recv_union(cx.ch, &own, 5, &TERMS)?.open(Confirmed::for_tests())),
            );
            assert_eq!(got.0.1.is_ok(), good, "{union:?}");
            if let Ok(items) = got.0.1 {
                assert!(items.iter().eq(rows));
            }
        }
        // Bare rows: those after the last item must be zeros.
        let terms = Terms { max_row: 1, bare: true, ..TERMS };
        for (rest, good) in [([0, 0], true), ([0, 1], false)] {
            let rows = [b'b', b'd', b'x', rest[0], rest[1]];
            let send = |ch: &mut Channel| send_count(ch, 3).and_then(|()| ch.tx.send_bytes(ROWS, &rows));
            let got = run_pair(
                &ANY_SESSION,
                |cx| send(cx.ch),
                |cx| Ok(recv_union(cx.ch, &own, 5, &terms)?.open(Confirmed::for_tests())),
            );
            assert_eq!(got.0.1.is_ok(), good, "{rest:?}");
        }
        // The rows on the wire depend only on the bound.
        let sizes = |rows: &[&[u8]]| {
            let take = |ch: &mut Channel| Ok(recv_union(ch, &own, 5, &TERMS).is_ok());
            run_pair(&ANY_SESSION, |cx| send_union(cx.ch, rows, 5, &TERMS), |cx| take(cx.ch)).1.frames(1)
        };
        assert_eq!(sizes(&[b"b"]), sizes(&[b"a", b"b", b"c", b"d", b"123456789"]));
    }
}
