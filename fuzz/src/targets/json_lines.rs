//! JSON lines, also compressed: any file is either read or refused; a table that was read has the same number of cells in each
//! row, and can be written.
use veilset::table::{Format, ReadOptions, Table, write_rows};

/// Runs the target on an input.
pub(crate) fn run(data: &[u8]) {
    let options = ReadOptions { format: Some(Format::JsonLines), ..ReadOptions::default() };
    let Ok(table) = Table::from_reader("f.jsonl", data, &options, None) else { return };
    let (rows, columns): (Vec<usize>, _) = ((0..table.rows()).collect(), table.header().len());
    // Text with zeros in its header looks like UTF-16.
    if table.header().iter().any(|name| name.contains('\0')) {
        return;
    }
    let mut csv = Vec::new();
    if write_rows(&table, &rows, None, (Format::Csv, &mut csv)).is_ok() && columns > 0 {
        // The delimiter is not guessed: a name may contain another one as often.
        let options = ReadOptions { delimiter: Some(b','), ..ReadOptions::default() };
        let again = Table::from_reader("again.csv", &csv[..], &options, None).unwrap();
        assert_eq!((again.header(), again.rows()), (table.header(), table.rows()));
        for row in rows {
            assert!((0..columns).all(|column| again.cell(row, column) == table.cell(row, column)));
        }
    }
}
