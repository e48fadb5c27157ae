//! The results that both parties should have in the end, from the plain computation.

use super::case::{Side, Terms, decimal};
use super::cells::Rows;
use std::collections::BTreeSet;
use veilset::item::{ItemSet, Items, encode_key};
use veilset::operations::{self, Inputs, Learned, Role, Shape};
use veilset::party::ID_COLUMN;

/// The result that a party should have in the end.
pub enum Expected {
    /// No result.
    Nothing,
    /// A header and rows.
    Rows(Rows),
    /// A header and rows in this order, with the plain computation's identifiers in the last column, and the number of
    /// identifiers in the list.
    Identified { rows: Rows, all: usize },
    /// Shares: for the first row of each of the sender's keys, in row order, the sum of its shares in hexadecimal; and the
    /// number of shares.
    Shared { rows: Vec<String>, all: usize },
}

/// Settings that results depend on.
#[derive(Clone, Copy)]
pub struct Rules {
    /// Whether values of rows with the same key are added.
    pub add: bool,
    /// The least number of matches for which there is a sum.
    pub min_count: usize,
    /// Whether the receiver gives the sent columns names of its own.
    pub rename: bool,
    /// The most bytes of a row.
    pub max_row: usize,
}

/// Returns the expected results. In the plain computation, items are the numbers of keys, and payloads the numbers of rows.
pub fn expected(
    terms: &Terms,
    [ours, theirs]: &[Side; 2],
    pads: [Option<usize>; 2],
    how: Rules,
) -> [Expected; 2] {
    let Rules { add, min_count, rename, max_row } = how;
    let (y, x) = (ours.firsts(), theirs.firsts());
    let set = |firsts: &[(usize, usize)]| firsts.iter().map(|(n, _)| n.to_le_bytes()).collect::<ItemSet>();
    let payloads: Items = x.iter().filter(|_| terms.sent > 0).map(|(_, row)| row.to_le_bytes()).collect();
    let value = |&(number, first): &(usize, usize)| -> i128 {
        let rows = theirs.rows.iter().zip(&theirs.values).enumerate();
        let counts = rows.filter(|(row, ((n, _), _))| *row == first || add && *n == Some(number));
        counts.map(|(_, (_, value))| value).sum()
    };
    let values: Vec<i128> = x.iter().filter(|_| terms.valued).map(value).collect();
    // The sum of the shares of a row.
    let shared = |i: usize, number: usize, matches: bool| match (terms.valued, matches) {
        (true, matches) => format!("{:016x}", if matches { values[i] as u64 } else { 0 }),
        (false, matches) => {
            let mut row = vec![0; 2];
            if matches {
                encode_key(terms.universe[number].iter().map(Vec::as_slice), &mut row);
                let length = row.len() as u16 - 2;
                row[..2].copy_from_slice(&length.to_le_bytes());
            }
            row.resize(2 + max_row, 0);
            row.iter().map(|byte| format!("{byte:02x}")).collect()
        }
    };
    let in_y: BTreeSet<usize> = y.iter().map(|(number, _)| *number).collect();
    let shares = x.iter().enumerate().map(|(i, (number, _))| shared(i, *number, in_y.contains(number)));
    let shares: Vec<String> = shares.collect();
    let agreed = operations::Terms {
        payload: terms.sent > 0,
        both: terms.both,
        reveal_count: terms.reveals,
        min_count: min_count as u64,
        shared_values: terms.operation.uses.shares && terms.valued,
        max_row: 8,
        ..Default::default()
    };
    let (y, x) = (set(&y), set(&x));
    let [we_pad, they_pad] = pads;
    let dummies = we_pad.map_or(0, |n| n - y.len()) + they_pad.map_or(0, |n| n - x.len());
    let data = Inputs { y: &y, x: &x, values: &values, payloads: &payloads, terms: agreed };
    let [here, there] = (terms.operation.plain)(&data);
    let sent_names: Vec<String> =
        (0..terms.sent).map(|n| if rename { format!("their {n}") } else { format!("p{n}") }).collect();
    let sent = |payload: &[u8]| -> Vec<Vec<u8>> {
        let row = number(payload);
        let cell = |n| theirs.column(&format!("p{n}")).map(|at| theirs.rows[row].1[at].clone());
        (0..terms.sent).map(|n| cell(n).unwrap_or_default()).collect()
    };
    let result = |learned, own: &Side, receiver, set: &ItemSet, peer: Option<usize>| {
        let (names, payload) = if receiver { (&sent_names[..], terms.sent > 0) } else { (&[][..], false) };
        let role = if receiver { Role::Receiver } else { Role::Sender };
        let key = own.key(receiver, terms.keys);
        let header = |names: &[String]| bytes([own.header.clone(), names.to_vec()].concat());
        let rows = own.firsts();
        let numbers = |row: &[(&str, String)]| {
            let (names, row) = row.iter().cloned().map(|(name, cell)| (name.to_string(), cell)).unzip();
            Expected::Rows(vec![bytes(names), bytes(row)])
        };
        match learned {
            Learned::Nothing => Expected::Nothing,
            Learned::Matching(m) => {
                let row = |(i, &at): (usize, &u32)| {
                    let sent = if payload { sent(m.payloads.get(i)) } else { Vec::new() };
                    [own.rows[rows[at as usize].1].1.clone(), sent].concat()
                };
                let rows = m.positions.iter().enumerate().map(row);
                Expected::Rows(std::iter::once(header(names)).chain(rows).collect())
            }
            Learned::New(new) => {
                let old = rows
                    .iter()
                    .map(|(_, row)| [own.rows[*row].1.clone(), vec![Vec::new(); names.len()]].concat());
                let row = |i: usize| {
                    let key_of = &terms.universe[number(new.items.get(i))];
                    let cell = |name: &String| {
                        key.iter().position(|k| k == name).map_or(Vec::new(), |place| key_of[place].clone())
                    };
                    let sent = if payload { sent(new.payloads.get(i)) } else { Vec::new() };
                    [own.header.iter().map(cell).collect(), sent].concat()
                };
                let rows = old.chain((0..new.items.len()).map(row));
                Expected::Rows(std::iter::once(header(names)).chain(rows).collect())
            }
            Learned::Union(items) => {
                let rows = items.iter().map(|item| terms.universe[number(item)].clone());
                Expected::Rows(std::iter::once(bytes(key)).chain(rows).collect())
            }
            Learned::Matches(n) => match (terms.shape(role), peer) {
                (Shape::MatchesAndUnion, Some(peer)) => {
                    let union = set.len() + peer - n as usize;
                    numbers(&[("matches", n.to_string()), ("union_size", union.to_string())])
                }
                _ => numbers(&[("matches", n.to_string())]),
            },
            Learned::Shares(_) => {
                let all = theirs.firsts().len() + they_pad.map_or(0, |n| n - theirs.firsts().len());
                Expected::Shared { rows: shares.clone(), all }
            }
            Learned::Identifiers(identifiers) => {
                let column = if rename { "number" } else { ID_COLUMN };
                let numbers: Vec<usize> = rows.iter().map(|(number, _)| *number).collect();
                let identified = own.rows.iter().filter_map(|(number, cells)| {
                    let position = numbers.iter().position(|n| Some(n) == number.as_ref())?;
                    Some([&cells[..], &[identifiers.own[position].to_vec()]].concat())
                });
                let rows = std::iter::once(header(&[column.to_string()])).chain(identified).collect();
                Expected::Identified { rows, all: identifiers.all.len() + dummies }
            }
            Learned::Sum(sum) => {
                let row = match sum {
                    None => [String::new(), String::new(), "true".into()],
                    Some(sum) => [sum.matches.to_string(), decimal(sum.sum, terms.scale), "false".into()],
                };
                let [matches, sum, below] = row;
                numbers(&[("matches", matches), ("sum", sum), ("below_minimum", below)])
            }
        }
    };
    [
        result(here, ours, true, &y, they_pad.is_none().then_some(x.len())),
        result(there, theirs, false, &x, we_pad.is_none().then_some(y.len())),
    ]
}

/// Returns the number that an item or payload encodes.
fn number(bytes: &[u8]) -> usize {
    usize::from_le_bytes(bytes.try_into().unwrap_or_default())
}

fn bytes(names: Vec<String>) -> Vec<Vec<u8>> {
    names.into_iter().map(String::into_bytes).collect()
}
