//! The encoding of a shard's result, in the folder of a job and in a worker's output.

use crate::error::{Error, Fault, Result};
use crate::item::Items;
use crate::operations::Learned;
use crate::operations::intersect::Matching;
use crate::operations::union::rows::New;

/// The maximum length of an encoded item, payload or error message, in bytes. Items and rows of a run are shorter.
const LONGEST_ITEM: u64 = 1 << 20;

/// Passes the encoding of a result, or of an error about the peer, to `put`.
///
/// # Errors
/// The errors of `put`; the error in `learned` if it is not about the peer; [`Error::Bug`] for a result that no shard has.
pub fn write(learned: Result<Learned>, put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let none = Items::new;
    let (kind, positions, items, payloads) = match learned {
        Ok(Learned::Nothing) => (0u8, Vec::new(), none(), none()),
        Ok(Learned::Matching(Matching { positions, payloads })) => (1, positions, none(), payloads),
        Ok(Learned::New(New { items, payloads })) => (2, Vec::new(), items, payloads),
        Ok(Learned::Union(items)) => (3, Vec::new(), items, none()),
        Err(Error::Peer { what, .. }) => (4, Vec::new(), [what].iter().collect(), none()),
        Err(error) => return Err(error),
        Ok(other) => return Err(Error::bug(format!("a shard with {other:?}"))),
    };
    put(&[kind])?;
    put(&(positions.len() as u64).to_le_bytes())?;
    positions.iter().try_for_each(|position| put(&position.to_le_bytes()))?;
    for items in [&items, &payloads] {
        put(&(items.len() as u64).to_le_bytes())?;
        for item in items.iter() {
            put(&(item.len() as u64).to_le_bytes())?;
            put(item)?;
        }
    }
    Ok(())
}

/// Decodes a result, or an error about the peer. `fill` provides the next bytes. Returns `None` for bytes that encode neither.
///
/// # Errors
/// The errors of `fill`, which must fail if too few bytes are left.
pub fn read(fill: &mut dyn FnMut(&mut [u8]) -> Result<()>) -> Result<Option<Result<Learned>>> {
    let mut kind = [0];
    fill(&mut kind)?;
    // No list is allocated in advance, because its length may be wrong: `fill` fails when the bytes end.
    let mut positions = Vec::new();
    for _ in 0..number(fill)? {
        let mut position = [0; 4];
        fill(&mut position)?;
        let position = u32::from_le_bytes(position);
        // Positions ascend.
        if positions.last().is_some_and(|last| *last >= position) {
            return Ok(None);
        }
        positions.push(position);
    }
    let mut lists = [Items::new(), Items::new()];
    let mut item = Vec::new();
    for list in &mut lists {
        for _ in 0..number(fill)? {
            let length = number(fill)?;
            if length > LONGEST_ITEM {
                return Ok(None);
            }
            item.resize(length as usize, 0);
            fill(&mut item)?;
            list.push(&item);
        }
    }
    let [items, payloads] = lists;
    let rows = if kind == [1] { positions.len() } else { items.len() };
    if ![0, rows].contains(&payloads.len()) {
        return Ok(None);
    }
    Ok(Some(match kind {
        [0] => Ok(Learned::Nothing),
        [1] => Ok(Learned::Matching(Matching { positions, payloads })),
        [2] => Ok(Learned::New(New { items, payloads })),
        [3] => Ok(Learned::Union(items)),
        [4] => {
            let what = items.iter().map(String::from_utf8_lossy).collect::<String>();
            Err(Error::peer(Fault::Misbehaved, what))
        }
        _ => return Ok(None),
    }))
}

fn number(fill: &mut dyn FnMut(&mut [u8]) -> Result<()>) -> Result<u64> {
    let mut number = [0; 8];
    fill(&mut number)?;
    Ok(u64::from_le_bytes(number))
}

/// Encodes a result, or an error about the peer.
///
/// # Errors
/// The error in `learned` if it is not about the peer; [`Error::Bug`] for a result that no shard has.
pub fn to_bytes(learned: Result<Learned>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    write(learned, &mut |more| {
        bytes.extend_from_slice(more);
        Ok(())
    })?;
    Ok(bytes)
}

/// Decodes a result, or an error about the peer, from a worker's bytes.
///
/// # Errors
/// [`Error::Usage`] if the bytes encode neither.
pub fn of_bytes(bytes: &[u8]) -> Result<Result<Learned>> {
    let damaged = || {
        Error::Usage(
            "what a worker returned is not the result of a shard. Use the same version of veilset on all machines"
                .into(),
        )
    };
    let mut rest = bytes;
    let learned = read(&mut |to| {
        to.copy_from_slice(rest.split_off(..to.len()).ok_or_else(damaged)?);
        Ok(())
    })?;
    learned.filter(|_| rest.is_empty()).ok_or_else(damaged)
}
