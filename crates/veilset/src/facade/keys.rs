//! Our keys, encoded as every party of veilset encodes them.

use crate::error::{Error, Place, Result};
use crate::item::{ItemSet, Items, MAX_ITEM, encode_key};
use crate::params::MAX_SET;
use crate::table::{Encoding, Normalise};
use std::fmt;
use zeroize::Zeroizing;

/// The name in messages of a list of keys that comes from no file.
const LIST: &str = "the keys";

/// Our keys, each counted once, with their values to sum or share, or columns to send.
///
/// They are encoded as the program encodes keys from a file, so a party that uses this library can run with one that uses the
/// program. Results refer to rows: positions, from 0, in the list from which the keys were made. Among equal keys, the row of
/// the first counts.
///
/// Hashing and sorting the keys takes time that depends on the data. A [`Peer`](crate::Peer) receives nothing until that is
/// done, because the operation itself makes the connection.
///
/// `Debug` shows only how many keys there are. Keys, values and columns are zeroed when dropped; copies that are left behind
/// while the lists of keys and columns grow are not.
///
/// ```
/// use veilset::Keys;
///
/// let keys = Keys::new(["ann@a.org", "bob@b.org", "ann@a.org"])?;
/// assert_eq!((keys.len(), keys.repeated()), (2, 1));
/// # Ok::<(), veilset::Error>(())
/// ```
pub struct Keys {
    pub(super) set: ItemSet,
    /// The row of each item.
    pub(super) rows: Vec<u32>,
    /// Number of rows.
    pub(super) listed: usize,
    /// For each row whose key occurred before: that row, and the first row of the key.
    pub(super) repeated: Vec<(u32, u32)>,
    pub(super) columns: usize,
    /// A description of how the keys were normalised and encoded.
    pub(super) compared: String,
    pub(super) encoding: Encoding,
    pub(super) values: Zeroizing<Vec<i128>>,
    pub(super) sent_columns: Vec<String>,
    pub(super) payloads: Items,
}

impl Keys {
    /// Makes keys of one column of text, compared as they are.
    ///
    /// # Errors
    /// [`Error::Input`], naming the row, if a key is empty, is not UTF-8, or has more than 65,536 bytes including its length;
    /// also if there are more different keys than a run supports, 2^28, or 2^32 rows or more.
    pub fn new<K: AsRef<[u8]>>(keys: impl IntoIterator<Item = K>) -> Result<Keys> {
        Keys::builder().build(keys)
    }

    /// Starts building keys that have several columns, are bytes, or are normalised before they are compared.
    ///
    /// ```
    /// use veilset::Keys;
    ///
    /// let people = [["Doe", "JANE"], ["Roe", "Rick "], ["doe", "Jane"]];
    /// let keys = Keys::builder().normalize("trim,casefold").build_columns(people)?;
    /// assert_eq!((keys.len(), keys.repeated()), (2, 1));
    /// # Ok::<(), veilset::Error>(())
    /// ```
    pub fn builder() -> KeysBuilder {
        KeysBuilder { normalize: String::new(), encoding: Encoding::Utf8, keep_empty: false }
    }

    /// Number of keys, each counted once.
    pub fn len(&self) -> usize {
        self.set.len()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty()
    }

    /// Number of rows that repeat the key of an earlier row.
    pub fn repeated(&self) -> usize {
        self.repeated.len()
    }

    /// Adds a value for each row, for the sender of [`sum`](crate::sum), or of [`share`](crate::share) to share the values
    /// instead of the keys. Values are whole numbers of a unit that both sides know, for instance cents.
    ///
    /// ```
    /// use veilset::Keys;
    ///
    /// let keys = Keys::new(["ann", "bob"])?.with_values([1250, -300])?;
    /// # Ok::<(), veilset::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Input`] if there is not exactly one value for each row, or a key occurs twice: the caller must decide which of
    /// its values is meant.
    pub fn with_values<V: Into<i128>>(mut self, values: impl IntoIterator<Item = V>) -> Result<Keys> {
        if let Some(&(again, first)) = self.repeated.first() {
            let what = format!("the key is that of row {} again, and each key has one value", first + 1);
            return Err(at(again as usize, what, "Add up the values of equal keys, or keep one of them"));
        }
        // Each key occurs once, so the items are the rows. The capacity is reserved in full, so that no copy is left behind.
        self.values = Zeroizing::new(Vec::with_capacity(self.listed + 1));
        self.values.extend(values.into_iter().take(self.listed + 1).map(Into::into));
        self.of_each_row(self.values.len(), "values")?;
        Ok(self)
    }

    /// Adds columns for the sender of [`intersect`](crate::intersect) or [`union`](crate::union) to send: their names, and for
    /// every row one cell of each column. The receiver names the same columns
    /// ([`Options::receive_columns`](crate::Options::receive_columns)). If rows have equal keys, the cells of the first are
    /// sent.
    ///
    /// ```
    /// use veilset::Keys;
    ///
    /// let keys = Keys::new(["ann", "bob"])?.with_columns(["city", "plan"], [["Rome", "A"], ["Oslo", "B"]])?;
    /// # Ok::<(), veilset::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Input`], naming the row, if it does not have one cell for each name, a cell is not UTF-8 where the keys are
    /// text, or its cells have more than 65,536 bytes including their lengths; also if the number of rows differs from that in
    /// the list of keys.
    pub fn with_columns<N: Into<String>, R: IntoIterator<Item: AsRef<[u8]>>>(
        mut self,
        names: impl IntoIterator<Item = N>,
        rows: impl IntoIterator<Item = R>,
    ) -> Result<Keys> {
        self.sent_columns = names.into_iter().map(Into::into).collect();
        self.payloads = Items::new();
        let mut firsts = self.rows.iter().peekable();
        let (mut listed, mut cells) = (0, Zeroizing::new(Vec::new()));
        for row in rows.into_iter().take(self.listed + 1) {
            cells.clear();
            let columns =
                encode(row, self.encoding, &mut cells).map_err(|wrong| wrong.at(listed, "a cell"))?;
            if columns != self.sent_columns.len() {
                let what = format!("it has {columns} cells for {} columns", self.sent_columns.len());
                return Err(at(listed, what, "Give one cell for each column"));
            }
            if cells.len() > MAX_ITEM {
                return Err(too_long(listed, "the columns to be sent have", cells.len()));
            }
            if firsts.next_if(|first| **first as usize == listed).is_some() {
                self.payloads.push(&cells);
            }
            listed += 1;
        }
        self.of_each_row(listed, "rows of columns to send")?;
        Ok(self)
    }

    /// Refuses a list whose length differs from that of the list of keys.
    fn of_each_row(&self, listed: usize, what: &str) -> Result<()> {
        if listed == self.listed {
            return Ok(());
        }
        let many = if listed > self.listed { "more".to_string() } else { listed.to_string() };
        let what = format!("there are {} keys, and {many} {what}", self.listed);
        Err(Error::input(LIST, what, "Give one for each key, in their order"))
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys({})", self.len())
    }
}

/// Options for reading a list of keys, from [`Keys::builder`].
#[derive(Debug, Clone)]
#[must_use]
pub struct KeysBuilder {
    normalize: String,
    encoding: Encoding,
    keep_empty: bool,
}

impl KeysBuilder {
    /// Normalises each column before it is compared, with one or more of `trim`, `casefold` and `nfc`, separated by commas. An
    /// empty text means none of them. Must be the same on both sides. See the program's `--normalize`.
    pub fn normalize(mut self, steps: &str) -> Self {
        self.normalize = steps.into();
        self
    }

    /// Treats keys as bytes, which need not be text. Must be the same on both sides. See the program's `--encoding bytes`.
    pub fn bytes(mut self) -> Self {
        self.encoding = Encoding::Bytes;
        self
    }

    /// Accepts keys with an empty column. They are compared like any others, so an empty column is equal to an empty column.
    pub fn keep_empty(mut self) -> Self {
        self.keep_empty = true;
        self
    }

    /// Makes keys of one column.
    ///
    /// # Errors
    /// [`Error::Usage`] for an unknown normalisation, or a normalisation of bytes; also the errors of [`Keys::new`].
    pub fn build<K: AsRef<[u8]>>(self, keys: impl IntoIterator<Item = K>) -> Result<Keys> {
        self.build_columns(keys.into_iter().map(|key| [key]))
    }

    /// Makes keys of several columns. Each key must have the same number of columns.
    ///
    /// # Errors
    /// [`Error::Input`] for a key without columns, or whose number of columns differs from the first key's; also the errors
    /// of [`KeysBuilder::build`].
    pub fn build_columns<R: IntoIterator<Item: AsRef<[u8]>>>(
        self,
        keys: impl IntoIterator<Item = R>,
    ) -> Result<Keys> {
        let KeysBuilder { normalize, encoding, keep_empty } = self;
        let normalise = if normalize.is_empty() { Normalise::default() } else { normalize.parse()? };
        normalise.check(encoding)?;
        let mut items = Items::new();
        let mut all_columns = None;
        let (mut item, mut text) = (Zeroizing::new(Vec::new()), Zeroizing::new(String::new()));
        for key in keys {
            let row = items.len();
            if row == u32::MAX as usize {
                return Err(Error::input(LIST, "there are more than 2^32 - 1 rows", "Split the list"));
            }
            item.clear();
            let mut columns = 0;
            for cell in key {
                let cell = normalise.apply(
                    checked(cell.as_ref(), encoding).map_err(|wrong| wrong.at(row, "the key"))?,
                    &mut text,
                );
                if cell.is_empty() && !keep_empty {
                    return Err(at(
                        row,
                        "the key is empty",
                        "Leave it out, or accept empty keys (KeysBuilder::keep_empty)",
                    ));
                }
                encode_key([cell], &mut item);
                columns += 1;
            }
            match *all_columns.get_or_insert(columns) {
                0 => return Err(at(row, "the key has no columns", "Give each key one or more")),
                all if all != columns => {
                    let what = format!("the key has {columns} columns, and the first one has {all}");
                    return Err(at(row, what, "Give each key the same columns, in the same order"));
                }
                _ => {}
            }
            if item.len() > MAX_ITEM {
                return Err(too_long(row, "the key has", item.len()));
            }
            items.push(&item);
        }
        let listed = items.len();
        let distinct = ItemSet::keep_first(items);
        if distinct.set.len() > MAX_SET {
            let what = format!("{} keys are more than this version supports ({MAX_SET})", distinct.set.len());
            return Err(Error::input(LIST, what, "Split the list"));
        }
        Ok(Keys {
            set: distinct.set,
            rows: distinct.positions,
            listed,
            repeated: distinct.duplicates,
            columns: all_columns.unwrap_or(1),
            compared: normalise.name(encoding),
            encoding,
            values: Zeroizing::default(),
            sent_columns: Vec::new(),
            payloads: Items::new(),
        })
    }
}

/// A cell that is not text where text is expected.
struct NotText;

impl NotText {
    fn at(self, row: usize, what: &str) -> Error {
        at(row, format!("{what} is not UTF-8"), "Correct it, or read all keys as bytes, on both sides")
    }
}

fn checked(cell: &[u8], encoding: Encoding) -> Result<&[u8], NotText> {
    match encoding == Encoding::Bytes || std::str::from_utf8(cell).is_ok() {
        true => Ok(cell),
        false => Err(NotText),
    }
}

/// Appends the encoding of these cells, and returns their number.
fn encode(
    cells: impl IntoIterator<Item: AsRef<[u8]>>,
    encoding: Encoding,
    to: &mut Vec<u8>,
) -> Result<usize, NotText> {
    let mut columns = 0;
    for cell in cells {
        encode_key([checked(cell.as_ref(), encoding)?], to);
        columns += 1;
    }
    Ok(columns)
}

/// An error about a row of the list.
fn at(row: usize, what: impl Into<String>, next: &str) -> Error {
    Error::input(LIST, what, next).at(Place::Row(row as u64 + 1))
}

fn too_long(row: usize, what: &str, bytes: usize) -> Error {
    at(row, format!("{what} {bytes} bytes when encoded, but the maximum is {MAX_ITEM}"), "Shorten it")
}
