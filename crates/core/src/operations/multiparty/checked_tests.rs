//! Checks of the joint view of all parties but one, in the runs of `observed_tests.rs`. A check returns its findings, so that
//! tests can have it fail.

use super::observed_tests::{CORRECTIONS, K, OPENING, RETURNED, Run, encoded, of_row, opened};
use crate::ahe::elgamal::{Ciphertext, Scalar};
use crate::group::ristretto255::Encoding;
use crate::hash::ItemHash;
use crate::okvs::Value;
use curve25519_dalek::constants::RISTRETTO_BASEPOINT_POINT as G;
use std::collections::{BTreeSet, HashMap, HashSet};

/// The result of a check: an error describes what a coalition can learn from its view.
pub(super) type Check = std::result::Result<(), String>;

/// Collects the findings of all checks.
fn all(checks: impl IntoIterator<Item = Check>) -> Check {
    let wrong: Vec<String> = checks.into_iter().filter_map(Check::err).collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
}

fn fail<T>(what: impl Into<String>) -> std::result::Result<T, String> {
    Err(what.into())
}

/// Adds these values to those seen. No value may occur twice.
fn distinct<T: Eq + std::hash::Hash>(
    what: &str,
    seen: &mut HashSet<T>,
    more: impl IntoIterator<Item = T>,
) -> Check {
    match more.into_iter().all(|value| seen.insert(value)) {
        true => Ok(()),
        false => fail(format!("equal: {what}")),
    }
}

/// Checks that each of these bits is 1 in about half of the list. By Hoeffding's bound, a fair bit fails with a probability of
/// at most 2 e^-32, or 2^-45.
fn fair(what: &str, list: &[impl AsRef<[u8]>], bits: std::ops::Range<usize>) -> Check {
    if list.len() < 200 {
        return fail(format!("only {} of {what}", list.len()));
    }
    for bit in bits {
        let ones = list.iter().filter(|bytes| bytes.as_ref()[bit / 8] >> (bit % 8) & 1 == 1).count();
        let most = 4.0 * (list.len() as f64).sqrt();
        if (ones as f64 - list.len() as f64 / 2.0).abs() > most {
            return fail(format!("frequency: bit {bit} of {what}, {ones} of {}", list.len()));
        }
    }
    Ok(())
}

/// Checks that the lengths and tags of all frames are the same in all runs.
pub(super) fn lengths<T>(runs: &[Run<T>]) -> Check {
    let of = |run: &Run<T>| -> Vec<Vec<Vec<(u16, usize)>>> {
        let of_one =
            |frames: &Vec<(u16, Vec<u8>)>| frames.iter().map(|(tag, body)| (*tag, body.len())).collect();
        run.frames.iter().map(|from| from.iter().map(of_one).collect()).collect()
    };
    match runs.iter().all(|run| of(run) == of(&runs[0])) {
        true => Ok(()),
        false => fail("lengths"),
    }
}

/// Checks that no block of 16 bytes is sent twice, within a run or across runs. Only a party's commitment and opening are
/// sent to all others alike. All other frames go from an honest party to the coalition, or are the coalition's own: with one
/// honest party, there are no others.
pub(super) fn wire<T>(runs: &[Run<T>]) -> Check {
    let (mut seen, mut twice) = (HashSet::new(), BTreeSet::new());
    for (tag, body) in runs.iter().flat_map(|run| run.frames.iter().flatten().flatten()) {
        for block in body.as_chunks::<16>().0 {
            // In the malicious form of the OT extension, the choices of an extra group are u_0, so c_0 is 0 there.
            let extra = *tag == CORRECTIONS && *block == [0; 16];
            if ![0xd8, OPENING].contains(tag) && !extra && !seen.insert(block) {
                twice.insert(*tag);
            }
        }
    }
    match twice.is_empty() {
        true => Ok(()),
        false => fail(format!("equal: blocks of messages {twice:#x?}")),
    }
}

/// Checks the strings that are compared with an honest party, w_b or s_b, and the values of its function: each is random and
/// different from all others.
pub(super) fn compared<T>(runs: &[Run<T>], honest: usize) -> Check {
    let (mut seen, mut all, mut values) = (HashSet::new(), Vec::new(), HashSet::new());
    for run in runs {
        for party in run.coalition(honest) {
            for (_, strings) in run.notes[party].compared.iter().filter(|(peer, _)| *peer == honest) {
                distinct("compared strings", &mut seen, strings.iter().copied())?;
                all.extend(strings.iter().map(|string| string.to_le_bytes()));
            }
            for (_, got) in run.notes[party].evaluated.iter().filter(|(peer, _)| *peer == honest) {
                distinct("values of an honest party's function", &mut values, got.iter().copied())?;
            }
        }
    }
    // Strings have at least this many random bits.
    fair("compared strings", &all, 0..40)
}

/// Checks that a coalition's shares are random, also if restricted to members or to non-members, and that the bits opened for
/// equality are random too.
pub(super) fn shares<T>(runs: &[Run<T>], honest: usize) -> Check {
    let (mut all, mut split) = (Vec::new(), [Vec::new(), Vec::new()]);
    for run in runs {
        for party in run.coalition(honest) {
            let with = |of: usize, peer: usize| {
                let notes = run.notes[of].shares.iter().filter(move |note| note.0 == peer);
                notes.flat_map(|note| note.1.iter().copied())
            };
            for (own, theirs) in with(party, honest).zip(with(honest, party)) {
                all.push([u8::from(own)]);
                split[usize::from(own ^ theirs)].push([u8::from(own)]);
            }
        }
    }
    fair("shares", &all, 0..1)?;
    for (which, shares) in ["shares of others", "shares of members"].into_iter().zip(&split) {
        if shares.len() >= 200 {
            fair(which, shares, 0..1)?;
        }
    }
    for (tag, what) in [(0xe0, "tables"), (0xe1, "bits opened"), (0xe2, "bits opened by the sender")] {
        let bytes = runs.iter().flat_map(|run| {
            let from_honest = run.coalition(honest).flat_map(|to| run.parts(to, honest, tag, 1));
            from_honest.collect::<Vec<_>>()
        });
        let bytes: Vec<Vec<u8>> = bytes.collect();
        // Some parties are only the sender, or only the receiver.
        if !bytes.is_empty() {
            fair(what, &bytes, 0..8)?;
        }
    }
    Ok(())
}

/// Checks that the ciphertexts that a coalition receives look fresh to it. It knows its own ciphertexts, and all secret keys
/// but one.
pub(super) fn ciphertexts<T>(runs: &[Run<T>], honest: usize) -> Check {
    let mut bytes = Vec::new();
    for run in runs {
        let n = run.parties();
        let missing = run.sum_of_keys(run.coalition(honest));
        // Ciphertexts under the joint key of all parties.
        let mut closed = Vec::new();
        let mut own = Vec::new();
        let mut received = Vec::new();
        for party in run.coalition(honest) {
            let notes = &run.notes[party];
            let got = notes.got.iter().filter(|(peer, _)| *peer == honest);
            closed.extend(got.flat_map(|(_, rows)| rows.iter().flat_map(|row| of_row(row))));
            closed.extend(run.ciphertexts(party, honest, RETURNED));
            let offered = notes.offered.iter().flat_map(|(_, offers)| offers.iter().flatten());
            own.extend(offered.flat_map(|row| of_row(row)));
            own.extend((0..n).flat_map(|to| run.ciphertexts(to, party, RETURNED)));
            own.extend(run.list(party));
        }
        match honest {
            0 => closed.extend(run.list(0)),
            _ => received.extend(run.list(honest)),
        }
        received.extend(closed.iter().copied());
        // Both parts of each differ from all other parts, received or sent.
        let parts = |list: &[Ciphertext]| -> Vec<Encoding> {
            list.iter().flat_map(|c| c.as_ref().as_chunks::<32>().0.to_vec()).collect()
        };
        let mut seen: HashSet<Encoding> = parts(&own).into_iter().collect();
        distinct("parts of ciphertexts", &mut seen, parts(&received))?;
        bytes.extend(parts(&received));
        // After decryption with all keys of the coalition, a message under the missing key equals none that it knows.
        seen.extend([[0; 32], G.compress().0]);
        let items = run.coalition(honest).flat_map(|party| run.sets[party].iter()).collect::<BTreeSet<_>>();
        seen.extend(encoded(items.into_iter()));
        let opened: Vec<Encoding> = closed.iter().map(|c| opened(c, &missing)).collect();
        distinct("ciphertexts under the keys of the coalition", &mut seen, opened.iter().copied())?;
        bytes.extend(opened);
    }
    // The lowest and the highest bit of an encoding are 0.
    fair("parts of ciphertexts", &bytes, 1..255)
}

/// Checks that both rows that an honest party offers are fresh in every run, also within one session. A party that can
/// predict its offers sees which of the two rows it has got.
fn offers<T>(runs: &[Run<T>], honest: usize) -> Check {
    let mut seen = HashSet::<Encoding>::new();
    for (_, offers) in runs.iter().flat_map(|run| &run.notes[honest].offered) {
        for ciphertext in offers.iter().flatten().flat_map(|row| of_row(row)) {
            distinct("rows that are offered", &mut seen, ciphertext.as_ref().as_chunks::<32>().0.to_vec())?;
        }
    }
    Ok(())
}

/// The elements that a coalition with P_1 sees when an honest client has passed the list on, in rows of `k`.
fn passed_on<T>(run: &Run<T>, honest: usize, k: usize) -> Vec<Vec<Encoding>> {
    let key = run.sum_of_keys(run.remaining(honest));
    let all: Vec<Encoding> = run.list(honest).iter().map(|c| opened(c, &key)).collect();
    let mut rows: Vec<Vec<Encoding>> = all.chunks(k).map(<[_]>::to_vec).collect();
    rows.sort();
    rows
}

/// Checks that the list passed on by an honest client of a union is a function of the result: a row for each item of the
/// union outside X_1, and nothing in all other rows. It must be the same in all runs with the same result.
pub(super) fn rows_follow_from_the_result<T>(runs: &[Run<T>], honest: usize) -> Check {
    if honest == 0 {
        return Ok(());
    }
    for run in runs {
        let new = run.sets[1..].iter().flat_map(|set| set.iter());
        let new: BTreeSet<&[u8]> = new.filter(|item| !run.sets[0].iter().any(|own| own == *item)).collect();
        let rows = passed_on(run, honest, K);
        let live: Vec<_> = rows.iter().filter(|row| **row != [[0; 32]; K]).cloned().collect();
        let mut expected: Vec<_> = encoded(new.into_iter()).chunks(K).map(<[_]>::to_vec).collect();
        expected.sort();
        if live.len() != expected.len() {
            return fail(format!("rows: {} where the result has {}", live.len(), expected.len()));
        }
        if live != expected {
            return fail("rows: others than the result has");
        }
    }
    Ok(())
}

/// Checks that the list passed on by an honest client of a count has the identity for each item of all parties. Every other
/// element must differ from all others and from the multiples of the generator that P_1 knows.
pub(super) fn others_are_unknown<T>(runs: &[Run<T>], honest: usize, known: &[Encoding]) -> Check {
    if honest == 0 {
        return Ok(());
    }
    for run in runs {
        let rows = passed_on(run, honest, 1).concat();
        let all = run.sets[0]
            .iter()
            .filter(|item| run.sets[1..].iter().all(|set| set.iter().any(|other| other == *item)));
        let identities = rows.iter().filter(|row| **row == [0; 32]).count();
        if identities != all.count() {
            return fail(format!("rows: {identities} of the identity"));
        }
        let mut seen: HashSet<Encoding> = known.iter().copied().chain([G.compress().0]).collect();
        distinct("opened elements", &mut seen, rows.into_iter().filter(|row| *row != [0; 32]))?;
    }
    Ok(())
}

/// Checks that a party permutes the rows: at least half of the rows that can be told apart with all keys must move. A row has
/// `k` ciphertexts.
pub(super) fn permuted<T>(runs: &[Run<T>], party: usize, k: usize) -> Check {
    let (mut stayed, mut known) = (0, 0);
    for run in runs {
        let (before, key) = match party {
            0 => (run.first_list(), run.sum_of_keys(0..run.parties())),
            _ => (run.list(party - 1), run.sum_of_keys(run.remaining(party - 1))),
        };
        let places = |list: &[Ciphertext], key: &Scalar| -> HashMap<Encoding, Vec<usize>> {
            let mut places = HashMap::<_, Vec<usize>>::new();
            for (at, row) in list.chunks(k).enumerate() {
                places.entry(opened(&row[0], key)).or_default().push(at);
            }
            places
        };
        let before = places(&before, &key);
        let after = places(&run.list(party), &run.sum_of_keys(run.remaining(party)));
        // In a count, only the positions of the identities are recognisable; in a union, all rows but these are.
        let told = before.iter().filter(|(element, _)| (**element == [0; 32]) == (k == 1));
        let stays: Vec<bool> = told.map(|(element, at)| after.get(element) == Some(at)).collect();
        (stayed, known) = (stayed + stays.iter().filter(|stays| **stays).count(), known + stays.len());
    }
    match 2 * stayed <= known {
        true => Ok(()),
        false => fail(format!("order: {stayed} of {known} rows stay")),
    }
}

/// Runs all checks of a union, on runs that the result does not distinguish.
pub(super) fn union_is_private<T>(runs: &[Run<T>], honest: usize) -> Check {
    all([
        lengths(runs),
        wire(runs),
        compared(runs, honest),
        shares(runs, honest),
        offers(runs, honest),
        ciphertexts(runs, honest),
        rows_follow_from_the_result(runs, honest),
        permuted(runs, honest, K),
    ])
}

/// Runs all checks of a count. `known` are elements that P_1 would recognise.
pub(super) fn count_is_private<T>(runs: &[Run<T>], honest: usize, known: &[Encoding]) -> Check {
    all([
        lengths(runs),
        wire(runs),
        compared(runs, honest),
        shares(runs, honest),
        offers(runs, honest),
        ciphertexts(runs, honest),
        others_are_unknown(runs, honest, known),
        permuted(runs, honest, 1),
    ])
}

/// Returns a value as a number, to search for sums that are 0.
fn number(value: &[u8]) -> u128 {
    let mut wide = [0; 16];
    wide[..value.len()].copy_from_slice(value);
    u128::from_le_bytes(wide)
}

/// The number of values that are sums of others.
fn dependent(values: &[u128]) -> usize {
    let mut basis: Vec<u128> = Vec::new();
    for value in values {
        let rest = basis.iter().fold(*value, |rest, own| rest.min(rest ^ own));
        if rest != 0 {
            basis.push(rest);
            basis.sort_unstable_by(|a, b| b.cmp(a));
        }
    }
    values.len() - basis.len()
}

/// The value of a pair's key at an item, in a flawed variant.
pub(super) fn of_pair(key: &[u8; 32], item: &ItemHash) -> Value {
    crate::hash::Domain::without_session("coalition tests, zero share").hash(&[key, item.as_bytes()])
}

/// Runs all checks of an intersection. At each item, the only sums of the coalition's values that are 0 are those that it
/// made itself, and one for each item of the result.
pub(super) fn intersection_is_private<T>(runs: &[Run<T>], honest: usize) -> Check {
    let sums = runs.iter().flat_map(|run| {
        let items: BTreeSet<&[u8]> = run.coalition(honest).flat_map(|party| run.sets[party].iter()).collect();
        items.into_iter().map(|item| at_item(run, honest, item)).find(Check::is_err)
    });
    all([lengths(runs), wire(runs), values(runs, honest)].into_iter().chain(sums))
}

/// Checks that the values that a coalition gets from an honest party in programmable OPRFs are random and all different.
fn values<T>(runs: &[Run<T>], honest: usize) -> Check {
    let (mut seen, mut bytes) = (HashSet::new(), Vec::new());
    for run in runs {
        for party in run.coalition(honest) {
            for (_, values) in run.notes[party].received.iter().filter(|(peer, _)| *peer == honest) {
                distinct("values of a programmable OPRF", &mut seen, values.iter().copied())?;
                // Values have at least this many random bytes.
                bytes.extend(values.iter().flat_map(|value| &value[..5]).map(|byte| [*byte]));
            }
        }
    }
    // The leader programs nothing.
    match honest {
        0 => Ok(()),
        _ => fair("values of a programmable OPRF", &bytes, 0..8),
    }
}

fn at_item<T>(run: &Run<T>, honest: usize, item: &[u8]) -> Check {
    let place = |party: usize| run.sets[party].iter().position(|own| own == item);
    let (mut values, mut made) = (Vec::new(), 0);
    for party in run.coalition(honest) {
        let notes = &run.notes[party];
        if let Some(at) = place(party) {
            // Values that another member programmed there are counted as that member's.
            let from = |peer: usize| peer == honest || place(peer).is_none();
            let received = notes.received.iter().filter(|(peer, _)| from(*peer));
            values.extend(received.map(|(_, values)| number(&values[at])));
            values.extend(notes.programmed.iter().map(|(_, values)| number(&values[at])));
            // T_j(x) is the sum of a client's other values.
            made += usize::from(party > 0);
        }
        let keys = notes.keys.iter().filter(|(peer, _)| *peer == honest || *peer > party);
        values.extend(keys.map(|(_, key)| number(&of_pair(key, &ItemHash::of_item(item)))));
    }
    let all = (0..run.parties()).all(|party| place(party).is_some());
    let expected = made + usize::from(honest > 0 && all);
    match dependent(&values) == expected {
        true => Ok(()),
        false => fail(format!("sums: {} at an item where {expected} are known", dependent(&values))),
    }
}
