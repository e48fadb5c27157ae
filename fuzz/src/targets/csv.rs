//! CSV and lists. A table that was read can be written and read again, and the keyed set equals the result of a slow
//! computation. A union's new rows are read back as they were received, including payload columns.
use crate::byte;
use veilset::item::{Items, decode_key, encode_key};
use veilset::table::{
    Duplicates, EmptyKeys, Encoding, Format, KeyColumns, NewRows, Normalise, ReadOptions, SentColumns, Table,
    check_max_row, keyed_set, payloads, values, write_keys, write_rows, write_union,
};

fn cells(table: &Table) -> Vec<Vec<Vec<u8>>> {
    let columns = table.header().len();
    (0..table.rows()).map(|row| (0..columns).map(|c| table.cell(row, c).to_vec()).collect()).collect()
}

/// Writes all rows, reads them again and returns the written bytes.
fn round_trip(table: &Table, options: &ReadOptions) -> Vec<u8> {
    let mut out = Vec::new();
    let rows: Vec<usize> = (0..table.rows()).collect();
    write_rows(table, &rows, None, (Format::Csv, &mut out)).unwrap();
    let again = Table::from_reader("again.csv", &out[..], options, None).unwrap();
    assert_eq!(again.header(), table.header());
    assert_eq!(cells(&again), cells(table));
    out
}

/// Computes the set as a list of rows by searching for each row's key.
fn slow_set(table: &Table, key: &[usize], empty: EmptyKeys) -> Option<(Vec<u32>, u64, u64)> {
    let key_of = |row: usize| -> Vec<Vec<u8>> { key.iter().map(|&c| table.cell(row, c).into()).collect() };
    let (mut rows, mut duplicates, mut skipped) = (Vec::new(), 0, 0);
    for row in 0..table.rows() {
        let cells = key_of(row);
        match (cells.iter().any(|cell| cell.is_empty()), empty) {
            (true, EmptyKeys::Error) => return None,
            (true, EmptyKeys::Skip) => skipped += 1,
            _ if rows.iter().any(|&r| key_of(r as usize) == cells) => duplicates += 1,
            _ => rows.push(row as u32),
        }
    }
    Some((rows, duplicates, skipped))
}

/// Runs the target on an input.
pub(crate) fn run(data: &[u8]) {
    let mut data = data;
    let (how, raw, columns, rules) = (byte(&mut data), byte(&mut data), byte(&mut data), byte(&mut data));
    let delimiter = match how % 8 {
        0 => None,
        n @ 1..6 => Some(b",;\t| "[usize::from(n) - 1]),
        _ => Some(raw),
    };
    let encoding = if how & 8 == 0 { Encoding::Utf8 } else { Encoding::Bytes };
    let name = if how & 16 == 0 { "f.csv" } else { "f.TSV" };
    let format = if how & 32 == 0 { Format::Csv } else { Format::List };
    let headerless = how & 64 != 0 && format == Format::Csv;
    let options = ReadOptions {
        format: Some(format),
        delimiter,
        encoding,
        headerless,
        multiline_keys: true,
        ..ReadOptions::default()
    };
    let Ok(table) = Table::from_reader(name, data, &options, None) else { return };

    let options = ReadOptions { format: Some(Format::Csv), delimiter: Some(table.delimiter()), ..options };
    let written = round_trip(&table, &options);
    let again = Table::from_reader(name, &written[..], &options, None).unwrap();
    assert_eq!(round_trip(&again, &options), written);
    assert!((1..table.rows()).all(|row| table.place(row - 1) != table.place(row)));

    let width = table.header().len();
    let mut key = vec![usize::from(columns & 15) % width];
    if columns >> 4 != 0 && usize::from(columns >> 4) % width != key[0] {
        key.push(usize::from(columns >> 4) % width);
    }
    let empty = [EmptyKeys::Error, EmptyKeys::Skip, EmptyKeys::Keep][usize::from(rules) % 3];
    let duplicates = [Duplicates::First, Duplicates::Error, Duplicates::Add][usize::from(rules / 3) % 3];
    let expected = slow_set(&table, &key, empty);
    let Ok(keyed) = keyed_set(&table, &key, Normalise::default(), empty, duplicates) else {
        assert!(expected.is_none_or(|e| duplicates == Duplicates::Error && e.1 > 0));
        return;
    };
    assert_eq!(Some((keyed.rows.clone(), keyed.duplicates, keyed.skipped)), expected);
    assert_eq!(keyed.rows.len(), keyed.set.len());
    let most = keyed.set.iter().map(<[u8]>::len).max().unwrap_or(0);
    assert!(check_max_row(&table, &keyed, true, &Items::new(), most).is_ok());
    if let Ok(values) = values(&table, &keyed, width - 1, u32::from(rules / 9)) {
        assert_eq!(values.len(), keyed.set.len());
    }

    // A union in which every other row is the peer's: it is received as an item, with the last column as payload.
    let theirs = |items: &Items| items.iter().skip(1).step_by(2).collect::<Items>();
    let (new, sent) = (theirs(&keyed.set), theirs(&payloads(&table, &keyed, &[width - 1]).unwrap()));
    let names = ["sent".to_owned()];
    let mut out = Vec::new();
    let columns = SentColumns { names: &names, payloads: &sent };
    write_union(
        &table,
        KeyColumns::of(&key),
        &keyed,
        NewRows { items: &new, sent: Some(columns) },
        (Format::Csv, &mut out),
    )
    .unwrap();
    let union = Table::from_reader("union.csv", &out[..], &options, None);
    if headerless && keyed.set.is_empty() {
        // Neither a header nor a row, so there is nothing to read.
        assert!(out.is_empty() && union.is_err());
        return;
    }
    let union = union.unwrap();
    assert_eq!(union.rows(), keyed.set.len() + new.len());
    let mut order: Vec<usize> = (0..new.len()).collect();
    order.sort_by_key(|&i| new.get(i));
    for (i, &at) in order.iter().enumerate() {
        let row = keyed.set.len() + i;
        let (mut got, mut cell) = (Vec::new(), Vec::new());
        key.iter().for_each(|&c| encode_key([&union.cell(row, c)[..]], &mut got));
        encode_key([&union.cell(row, width)[..]], &mut cell);
        assert_eq!((&got[..], &cell[..]), (new.get(at), sent.get(at)));
        assert!((0..width).all(|c| key.contains(&c) || union.cell(row, c).is_empty()));
    }
    // Items and payloads of a peer, which need not be valid encodings.
    let strange: Items = data.split(|&b| b == b'\n').collect();
    let good = |columns: usize| {
        strange.iter().all(|item| {
            decode_key(item, columns).is_some_and(|cells| {
                encoding == Encoding::Bytes || cells.iter().all(|cell| std::str::from_utf8(cell).is_ok())
            })
        })
    };
    let csv = Format::Csv;
    let union = write_union(
        &table,
        KeyColumns::of(&key),
        &keyed,
        NewRows { items: &strange, sent: None },
        (csv, &mut Vec::new()),
    );
    assert_eq!(union.is_ok(), good(key.len()));
    assert_eq!(
        write_keys(&table, KeyColumns::of(&key), &strange, (csv, &mut Vec::new())).is_ok(),
        good(key.len())
    );
    let rows: Vec<usize> = (0..strange.len()).map(|i| i % table.rows().max(1)).collect();
    if table.rows() > 0 {
        let sent = Some(SentColumns { names: &names, payloads: &strange });
        assert_eq!(write_rows(&table, &rows, sent, (csv, &mut Vec::new())).is_ok(), good(1));
    }
}
