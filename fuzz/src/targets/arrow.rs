//! Arrow: any file or stream is either read or refused; a table that was read can be written, and read again.
//!
//! The decoder is a library's, which panics on some damaged files. Such a panic is caught, so it is not a finding.
use veilset::table::{Batches, Encoding, Format, ReadOptions, Table, write_rows};

fn cells(table: &Table) -> Vec<Vec<u8>> {
    let columns = table.header().len();
    (0..table.rows()).flat_map(|row| (0..columns).map(move |c| table.cell(row, c).to_vec())).collect()
}

/// Runs the target on an input.
pub(crate) fn run(data: &[u8]) {
    let Some((how, data)) = data.split_first() else { return };
    let encoding = if how & 1 == 0 { Encoding::Utf8 } else { Encoding::Bytes };
    let options = ReadOptions { format: Some(Format::Arrow), encoding, ..ReadOptions::default() };
    let Ok(table) = Table::from_reader("f.arrow", data, &options, None) else { return };
    // A column of nulls has as many rows as the file claims.
    if table.rows() > 1 << 16 {
        return;
    }
    let rows: Vec<usize> = (0..table.rows()).collect();
    let (mut file, mut memory) = (Vec::new(), Batches::default());
    write_rows(&table, &rows, None, &mut memory).unwrap();
    assert_eq!(memory.rows(), rows.len());
    if table.check_arrow_file().is_err() {
        return;
    }
    write_rows(&table, &rows, None, (Format::Arrow, &mut file)).unwrap();
    let again = Table::from_reader("again.arrow", &file[..], &options, None).unwrap();
    assert_eq!((again.header(), cells(&again)), (table.header(), cells(&table)));
}
