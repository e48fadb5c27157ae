//! Encoding of a shard's result, in the folder of a job and in a worker's output.

use crate::error::{Error, Fault, Result};
use crate::item::Items;
use crate::operations::Learned;
use crate::operations::intersect::Matching;
use crate::operations::union::rows::New;

/// Maximum length of an item in bytes, longer than any item or row.
const LONGEST_ITEM: u64 = 1 << 20;

/// Passes the encoding of a result, or of an error about the peer, to `put`.
///
/// # Errors
/// The errors of `put`, and any error in place of a result that does not blame the peer.
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

/// A source of the bytes of a result.
pub trait From {
    /// Fills `to` with the next bytes.
    ///
    /// # Errors
    /// If fewer bytes are left.
    fn fill(&mut self, to: &mut [u8]) -> Result<()>;
    /// Returns the error for bytes that do not encode a result.
    fn damaged(&self) -> Error;
}

/// Decodes a result, or an error about the peer.
///
/// # Errors
/// The errors of `from`, including [`From::damaged`].
pub fn read(from: &mut impl From) -> Result<Result<Learned>> {
    let mut kind = [0];
    from.fill(&mut kind)?;
    // Nothing is allocated in advance: the bytes end, even if a length claims more.
    let mut positions = Vec::new();
    for _ in 0..number(from)? {
        let mut position = [0; 4];
        from.fill(&mut position)?;
        let position = u32::from_le_bytes(position);
        // Ascending, as a set is.
        if positions.last().is_some_and(|last| *last >= position) {
            return Err(from.damaged());
        }
        positions.push(position);
    }
    let mut lists = [Items::new(), Items::new()];
    let mut item = Vec::new();
    for list in &mut lists {
        for _ in 0..number(from)? {
            let length = number(from)?;
            if length > LONGEST_ITEM {
                return Err(from.damaged());
            }
            item.resize(length as usize, 0);
            from.fill(&mut item)?;
            list.push(&item);
        }
    }
    let [items, payloads] = lists;
    let rows = if kind == [1] { positions.len() } else { items.len() };
    if ![0, rows].contains(&payloads.len()) {
        return Err(from.damaged());
    }
    Ok(match kind {
        [0] => Ok(Learned::Nothing),
        [1] => Ok(Learned::Matching(Matching { positions, payloads })),
        [2] => Ok(Learned::New(New { items, payloads })),
        [3] => Ok(Learned::Union(items)),
        [4] => {
            let what = items.iter().map(String::from_utf8_lossy).collect::<String>();
            Err(Error::peer(Fault::Misbehaved, what))
        }
        _ => return Err(from.damaged()),
    })
}

fn number(from: &mut impl From) -> Result<u64> {
    let mut number = [0; 8];
    from.fill(&mut number)?;
    Ok(u64::from_le_bytes(number))
}

/// Encodes a result, or an error about the peer.
///
/// # Errors
/// Any error in place of a result that does not blame the peer, as in [`write()`].
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
/// [`Error::Usage`] if the bytes do not encode either.
pub fn of_bytes(bytes: &[u8]) -> Result<Result<Learned>> {
    struct Rest<'b>(&'b [u8]);
    impl From for Rest<'_> {
        fn fill(&mut self, to: &mut [u8]) -> Result<()> {
            let (now, rest) = self.0.split_at_checked(to.len()).ok_or_else(|| self.damaged())?;
            to.copy_from_slice(now);
            self.0 = rest;
            Ok(())
        }

        fn damaged(&self) -> Error {
            Error::Usage(
                "what a worker returned is not the result of a shard. Use the same version of veilset on all machines"
                    .into(),
            )
        }
    }
    let mut rest = Rest(bytes);
    let learned = read(&mut rest)?;
    match rest.0.is_empty() {
        true => Ok(learned),
        false => Err(rest.damaged()),
    }
}
