//! Parquet: any file is either read or refused; a table that was read can be written and read again.
//!
//! The decoder is a library's, which panics on some damaged files. Such a panic is caught, so it is not a finding. The decoder
//! also reserves more memory than it uses, so the fuzzer sets no allocation limit for this target.
use veilset::table::{Encoding, Format, ReadOptions, Table, write_rows};

fn cells(table: &Table) -> Vec<Vec<u8>> {
    let columns = table.header().len();
    (0..table.rows()).flat_map(|row| (0..columns).map(move |c| table.cell(row, c).to_vec())).collect()
}

/// Runs the target on an input.
pub(crate) fn run(data: &[u8]) {
    let Some((how, data)) = data.split_first() else { return };
    let encoding = if how & 1 == 0 { Encoding::Utf8 } else { Encoding::Bytes };
    let options = ReadOptions { format: Some(Format::Parquet), encoding, ..ReadOptions::default() };
    let Ok(table) = Table::from_reader("f.parquet", data, &options, None) else { return };
    let rows: Vec<usize> = (0..table.rows()).collect();
    let mut out = Vec::new();
    // Names that occur twice are refused.
    if write_rows(&table, &rows, None, (Format::Parquet, &mut out)).is_ok() {
        let again = Table::from_reader("again.parquet", &out[..], &options, None).unwrap();
        assert_eq!((again.header(), cells(&again)), (table.header(), cells(&table)));
    }
    write_rows(&table, &rows, None, (Format::Csv, &mut Vec::new())).unwrap();
}
