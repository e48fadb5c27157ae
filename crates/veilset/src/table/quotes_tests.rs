use super::super::tests::{CSV, Slowly, assert_input, content, keyed_set, names, read};
use super::super::{Duplicates, EmptyKeys, Format, KeyedSet, ReadOptions, Table, write_rows};
use super::*;
use crate::error::{Error, Result};
use proptest::prelude::*;

const ESCAPED: ReadOptions = ReadOptions { quoting: Quoting::Escaped(b'\\'), ..CSV };
const ORDINARY: ReadOptions = ReadOptions { quoting: Quoting::Ordinary, ..CSV };
const MULTILINE: ReadOptions = ReadOptions { multiline_keys: true, ..CSV };

fn from(csv: &str, options: &ReadOptions) -> Result<Table> {
    Table::from_reader("a.csv", csv.as_bytes(), options, None)
}

/// What other readers repair, each in its own way.
#[test]
fn misused_quotes_are_refused_with_line_and_column() {
    // (options, file, line, column, what, next)
    type Case<'a> = (ReadOptions, &'a str, u64, &'a str, &'a str, &'a str);
    let (inside, after) =
        ("a quote in a cell that does not begin with one", "continues after its closing quote");
    let cases: &[Case] = &[
        (CSV, "a,b\n1,2\n5\" disk,x\n", 3, "a", inside, "double each quote inside it"),
        (CSV, "a,b\n1,2\n3,x\"y\"\n", 3, "b", inside, "`no_quotes`"),
        (CSV, "a\nx\"", 2, "a", inside, "`no_quotes`"),
        (CSV, "a,b\n1, \"2\"\n", 2, "b", inside, "the whole cell"),
        (CSV, "a,b\"\n1,2\n", 1, "#2", inside, "double each quote"),
        (CSV, "a,b\n\"1\" ,2\n", 2, "a", after, "Double each quote"),
        (CSV, "a,b\n1,\"Hey, I missed \" it\"\n", 2, "b", after, "Double each quote"),
        (CSV, "a,b\n\"1\"\"\"x,2\n", 2, "a", after, "Double each quote"),
        (CSV, "a,b\n1,\"a \\\"quote\\\" b\"\n", 2, "b", "which follows a backslash", "`escape=\\`"),
        // Where the cell of several lines goes wrong, and not where it begins.
        (CSV, "a,b\n\"1\n2\",\"3\r\n\r4\"5\n", 5, "b", after, "Double each quote"),
        (
            ESCAPED,
            "a,b\n\"1\",\"a\\nb\"\n",
            2,
            "b",
            "before a character that does not need it",
            "before a quote",
        ),
        (ESCAPED, "a,b\n\\N,1\n", 2, "a", "in a cell that is not in quotes", "all cells in quotes"),
        (ESCAPED, "a,b\nx\\,y,1\n", 2, "a", "in a cell that is not in quotes", "all cells in quotes"),
        (ESCAPED, "a,b\n1,x\"\n", 2, "b", inside, "double each quote"),
        (ESCAPED, "a,b\n1,\"x\\\"\n", 2, "b", "never closed", "closing quote"),
        (ESCAPED, "a,b\n1,\"x\\", 2, "b", "never closed", "closing quote"),
        (ORDINARY, "a,b\n1,\"2,3\"\n", 2, "#3", "the row has 3 fields", "as many fields"),
    ];
    for (options, csv, line, column, what, next) in cases {
        for step in [1, 3, 1000] {
            let table = Table::from_reader("a.csv", Slowly(step, csv.as_bytes(), None), options, None);
            let Err(error) = table else { panic!("accepted: {csv:?}") };
            assert_input(&error, Some(*line), Some(*column), what, next, csv);
        }
    }
}

#[test]
fn quotes_are_read_as_the_file_says() {
    // (options, file, the cells of its row)
    let cases: &[(ReadOptions, &str, [&str; 2])] = &[
        (CSV, "a,b\n\"x\"\"y\",\"\"\"\"\n", ["x\"y", "\""]),
        (CSV, "a,b\n\"x\\\",y\\\n", ["x\\", "y\\"]),
        (ESCAPED, "a,b\n\"x\\\"y\",\"\\\\\"\n", ["x\"y", "\\"]),
        (ESCAPED, "a,b\n\"\\\\\\\"\",\"x\"\"y\"\n", ["\\\"", "x\"y"]),
        (ESCAPED, "a,b\n\"1\n,2\",\"\\\",\"\n", ["1\n,2", "\","]),
        (ORDINARY, "a,b\n\"x\",5\" \"\"disk\n", ["\"x\"", "5\" \"\"disk"]),
        (ORDINARY, "a\tb\n\"\t\\\n", ["\"", "\\"]),
    ];
    for (options, csv, cells) in cases {
        for step in [1, 1000] {
            let table = Table::from_reader("-", Slowly(step, csv.as_bytes(), None), options, None).unwrap();
            assert_eq!(content(&table).0[1..], [names(cells)], "{csv:?}");
        }
    }
    // What is written has no escapes, and quotes where they are needed, whatever was read.
    let table = from("a,b\n\"x\\\"y\",\"\\\\\"\n", &ESCAPED).unwrap();
    let mut written = Vec::new();
    write_rows(&table, &[0], None, (Format::Csv, &mut written)).unwrap();
    assert_eq!(written, b"a,b\n\"x\"\"y\",\\\n");
    // The delimiter may be guessed, too.
    let guessed = ReadOptions { quoting: Quoting::Escaped(b','), ..CSV };
    assert!(
        matches!(from("a,b\n", &guessed), Err(Error::Usage(m)) if m.contains("`escape` and `delimiter`"))
    );
    let same = ReadOptions { delimiter: Some(b'\\'), ..ESCAPED };
    assert!(matches!(from("a", &same), Err(Error::Usage(m)) if m.contains("`escape` and `delimiter`")));
}

/// The cells of a text of rows, read one cell after the other; `None` if it is not CSV with this escape.
fn slowly(text: &str, escape: Option<char>) -> Option<Vec<Vec<String>>> {
    let (mut rest, mut rows, mut row) = (text, Vec::new(), Vec::new());
    loop {
        let mut cell = String::new();
        rest = match rest.strip_prefix('"') {
            None => {
                let end = rest.find([',', '\n']).unwrap_or(rest.len());
                cell.push_str(&rest[..end]);
                if cell.contains('"') || escape.is_some_and(|escape| cell.contains(escape)) {
                    return None;
                }
                &rest[end..]
            }
            Some(quoted) => {
                let mut left = quoted;
                loop {
                    let first = left.chars().next()?;
                    let second = left[first.len_utf8()..].chars().next();
                    let pair = match second {
                        Some('"') => first == '"' || Some(first) == escape,
                        Some(second) => Some(first) == escape && Some(second) == escape,
                        None => false,
                    };
                    match (pair, first) {
                        (true, _) => {
                            cell.extend(second);
                            left = &left[2..];
                        }
                        (false, '"') => break left = &left[1..],
                        (false, first) if Some(first) == escape => return None,
                        (false, first) => {
                            cell.push(first);
                            left = &left[first.len_utf8()..];
                        }
                    }
                }
                left
            }
        };
        row.push(cell);
        rest = match rest.chars().next() {
            Some(',') => &rest[1..],
            Some('\n') | None => {
                rows.push(std::mem::take(&mut row));
                rest = rest.strip_prefix('\n').unwrap_or("");
                if rest.is_empty() {
                    return Some(rows);
                }
                rest
            }
            Some(_) => return None,
        };
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Nothing is read that a reader without any leniency does not read, and it is the same.
    #[test]
    fn what_is_read_is_what_the_grammar_says(
        text in prop::collection::vec(prop::sample::select(vec!["a", "\"", ",", "\n", "\\", "\"\"", "\\\"", "\",\"", "é"]), 1..12),
        escaped: bool,
    ) {
        let text = text.concat();
        // Blank lines are skipped, and say nothing of quotes.
        prop_assume!(!text.starts_with('\n') && !text.contains("\n\n"));
        let options = if escaped { ESCAPED } else { CSV };
        let options = ReadOptions { headerless: true, delimiter: Some(b','), ..options };
        let expected = slowly(&text, escaped.then_some('\\'));
        let expected = expected.filter(|rows| rows.iter().all(|row| row.len() == rows[0].len()));
        let read = from(&text, &options);
        prop_assert_eq!(read.as_ref().ok().map(|table| content(table).0[1..].to_vec()), expected, "{:?}", text);
    }
}

/// All bytes of these letters are letters in EBCDIC too.
#[test]
fn text_in_utf8_is_not_taken_for_another_encoding() {
    let text = "é\\é\\aaéé\\éa".repeat(3);
    let options = ReadOptions { headerless: true, delimiter: Some(b','), ..CSV };
    assert_eq!(content(&from(&text, &options).unwrap()).0[1..], [[text]]);
}

/// What the public collections of CSV files have, by what a file of each kind must come to: its cells or a refusal.
#[test]
fn files_like_those_of_the_public_collections_are_read_or_refused() {
    // Each is written for this test: (what it is, file, the rows with the header, as cells with | between them)
    let read: &[(&str, &str, &[&str])] = &[
        ("commas in quotes", "first,last\nJohn,\"Doe, Jr.\"\n", &["first|last", "John|Doe, Jr."]),
        ("empty cells", "a,b,c\n1,\"\",\"\"\n2,,\n", &["a|b|c", "1||", "2||"]),
        ("only empty cells", "a,b\n,\n,\n", &["a|b", "|", "|"]),
        ("doubled quotes", "a,b\n1,\"ha \"\"ha\"\" ha\"\n", &["a|b", "1|ha \"ha\" ha"]),
        ("JSON in a cell", "k,v\n1,\"{\"\"t\"\": [1, 2]}\"\n", &["k|v", "1|{\"t\": [1, 2]}"]),
        ("line feeds", "a,b\n\"Once \nupon\",2\n", &["a|b", "Once \nupon|2"]),
        ("CRLF in cells", "a,b\r\n\"Once\r\nupon\",2\r\n", &["a|b", "Once\r\nupon|2"]),
        ("quotes and line feeds", "a\n\"x\n\"\"y\"\"\n\"\n", &["a", "x\n\"y\"\n"]),
        ("UTF-8", "a,b\n1,ʤ\n", &["a|b", "1|ʤ"]),
        ("a byte-order mark", "\u{feff}a,b\n1,2", &["a|b", "1|2"]),
        ("spaces belong to cells", "a , b\n 1,2 \n\" 3 \",\t\n", &["a | b", " 1|2 ", " 3 |\t"]),
        ("header alone", "a,b\n", &["a|b"]),
        ("one column", "a\n1\n2\n", &["a", "1", "2"]),
        ("semicolons", "a;b\n\"1;1\";2,5\n", &["a|b", "1;1|2,5"]),
        ("tabs", "a\tb\n1\t\n", &["a|b", "1|"]),
        ("blank lines", "\n\na,b\n\n1,2\n\n", &["a|b", "1|2"]),
        ("carriage returns", "a,b\r1,2\r", &["a|b", "1|2"]),
        ("quotes of other scripts", "a,b\n＂1,“2”\n", &["a|b", "＂1|“2”"]),
        ("apostrophes", "a,b\n'1,2'\n", &["a|b", "'1|2'"]),
        ("formulas", "a,b\n=1+1,@x\n", &["a|b", "=1+1|@x"]),
        ("numbers as they stand", "a\n007\n1.50\n1E5\n", &["a", "007", "1.50", "1E5"]),
    ];
    for (what, csv, rows) in read {
        let table = from(csv, &CSV).unwrap_or_else(|e| panic!("{what}: {e}"));
        let rows: Vec<Vec<String>> =
            rows.iter().map(|row| row.split('|').map(String::from).collect()).collect();
        assert_eq!(content(&table).0, rows, "{what}");
    }
    // (what it is, file, line, what is said)
    let refused: &[(&str, &str, u64, &str)] = &[
        ("a row too short", "a,b,c\n1,2\n", 2, "the row has 2 fields, the header 3"),
        ("a row too long", "a,b\n1,2,3\n", 2, "the row has 3 fields, the header 2"),
        ("a row with empty cells too many", "a,b\n1,2,\n", 2, "the row has 3 fields"),
        ("a delimiter at the end of the header", "a,b,\n1,2\n", 2, "the row has 2 fields, the header 3"),
        ("a quote that is not closed", "a,b,c\n1,\"I forgot to close this one,3\n", 2, "never closed"),
        ("a quote in a cell", "a,b,c\n1,This \"quotes\" must be escaped,3\n", 2, "a quote in a cell"),
        ("a space before the quote", "a,b\nx, \"y\"\n", 2, "a quote in a cell"),
        ("a space after the quote", "a,b\nx,\"y\" \n", 2, "after its closing quote"),
        ("a hint", "sep=;\na;b\n1;2\n", 1, "neither a header nor a row"),
        ("a hint after a mark", "\u{feff}SEP=|\r\na|b\r\n", 1, "neither a header nor a row"),
        ("a hint with the comma", "sep=,\na,b\n", 1, "neither a header nor a row"),
        ("a hint with the tab", "\nsep=\t\na\tb\n", 2, "neither a header nor a row"),
    ];
    for (what, csv, line, said) in refused {
        let error = from(csv, &CSV).err().unwrap_or_else(|| panic!("{what} is read"));
        assert!(
            matches!(&error, Error::Input(e) if e.row == Some(crate::error::Place::Line(*line))),
            "{what}: {error}"
        );
        assert!(error.to_string().contains(said), "{what}: {error}");
    }
    let error = from("sep=;\na;b\n", &CSV).unwrap_err().to_string();
    assert!(error.contains("Delete it, and use `delimiter`"), "{error}");
    // What only looks like it, and what is in quotes, is no hint, and what is written is in quotes.
    for (csv, rows) in [("sep=,a\n1,2\n", 1), ("se,p=\n1,2\n", 1), ("sep=1\nx\n", 1), ("\"sep=;\"\nx\n", 1)] {
        assert_eq!(from(csv, &CSV).unwrap().rows(), rows, "{csv:?}");
    }
    let table = from("\"sep=;\"\nx\n", &CSV).unwrap();
    let mut written = Vec::new();
    write_rows(&table, &[0], None, (Format::Csv, &mut written)).unwrap();
    assert_eq!(from(std::str::from_utf8(&written).unwrap(), &CSV).unwrap().header(), ["sep=;"]);
    // A list has such lines as items.
    let list = ReadOptions { format: Some(Format::List), ..CSV };
    assert_eq!(from("sep=;\nsep=\n", &list).unwrap().rows(), 2);
}

/// The texts of a table's notes.
fn notes(csv: &str, options: &ReadOptions) -> Vec<String> {
    from(csv, options).unwrap().notes().iter().map(super::super::Note::text).collect()
}

#[test]
fn what_is_odd_is_said_with_the_line() {
    let list = ReadOptions { format: Some(Format::List), ..CSV };
    let raw = ReadOptions { encoding: super::super::Encoding::Bytes, ..CSV };
    // (options, file, how each note begins)
    let cases: &[(&ReadOptions, &str, &[&str])] = &[
        (&CSV, "a,b\n1,2\n", &[]),
        (&CSV, "a,b\n1,2\na,b\n3,4\n", &["a.csv, line 3: the row repeats the header"]),
        (&CSV, "a,b\na,b\n\"a\",b\n3,4\n", &["a.csv, line 2 (and 1 more): the row repeats the header"]),
        (&CSV, "a,b\na,c\nab,\n", &[]),
        (&CSV, "a,b\n1,2\n\u{feff}a,b\n", &["a.csv, line 3: a cell begins with a byte-order mark"]),
        (&CSV, "\u{feff}\u{feff}a,b\n1,2\n", &["a.csv, line 1: a cell begins with a byte-order mark"]),
        (&CSV, "a,b\n1,x\u{feff}y\n", &[]),
        (&CSV, "a,b\n1,x\0y\n\0,\0\n", &["a.csv, line 2 (and 1 more): a cell contains a NUL"]),
        (
            &CSV,
            "a,b\n1,\"x\ny\"\n\"1\r\",\"\n\"\n",
            &["a.csv, line 2 (and 1 more): a cell spans several lines"],
        ),
        (&CSV, "a,b\n\n1,2\n\n3,\"4\n\"", &["a.csv, line 5: a cell spans several lines"]),
        (&CSV, "a,\"b\nc\"\n1,2\n", &["a.csv, line 1: a cell spans several lines"]),
        (
            &CSV,
            "a,b\n\u{feff}a,\0\na,b\n",
            &[
                "a.csv, line 2: a cell begins with",
                "a.csv, line 2: a cell contains a NUL",
                "a.csv, line 3: the row repeats",
            ],
        ),
        (
            &list,
            "a\n\u{feff}b\nitem\nc\0\n",
            &["a.csv, line 2: a cell begins with", "a.csv, line 4: a cell contains a NUL"],
        ),
        // Bytes are nobody's text.
        (&raw, "a,b\n\u{feff}1,x\0y\n", &[]),
    ];
    for (options, csv, said) in cases {
        let notes = notes(csv, options);
        let fits =
            notes.len() == said.len() && notes.iter().zip(*said).all(|(note, said)| note.starts_with(said));
        assert!(fits, "{csv:?}: {notes:?}");
    }
    let headerless = ReadOptions { headerless: true, ..CSV };
    assert!(notes("a,b\na,b\n", &headerless).is_empty());
}

#[test]
fn notes_of_several_files_and_of_pieces_are_each_files_own() {
    let dir = tempfile::tempdir().unwrap();
    let odd = "a,b\n1,\"x\ny\"\n".to_string() + &"2,2\n".repeat(7) + "3,\"\n\"\na,b\n";
    let files = [("x.csv", odd.as_str()), ("y.csv", "a,b\na,b\n"), ("z.csv", "a,b\n5,6\n")];
    let files = files.map(|(name, text)| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    });
    let texts = |table: &Table| table.notes().iter().map(super::super::Note::text).collect::<Vec<_>>();
    let whole = texts(&Table::read_all(&files, &CSV, None, &|_| Ok(())).unwrap());
    let starts = [
        "x.csv, line 2 (and 1 more): a cell spans",
        "x.csv, line 13: the row repeats",
        "y.csv, line 2: the row",
    ];
    let fits = whole.iter().zip(starts).all(|(note, start)| note.contains(start));
    assert!(whole.len() == starts.len() && fits, "{whole:?}");
    let mut head: Option<Table> = None;
    let mut pieces = 0;
    Table::in_pieces(&files, &CSV, None, 3, &|_| Ok(()), &mut |piece| {
        pieces += 1;
        match &mut head {
            None => head = Some(piece.without_rows()),
            Some(head) => head.include(&piece),
        }
        Ok(())
    })
    .unwrap();
    assert!(pieces > 3);
    assert_eq!(texts(&head.unwrap()), whole);
}

#[test]
fn a_key_over_several_lines_is_refused_unless_it_is_allowed() {
    let csv = "id,n\nx,1\ny,\"2\n2\"\n\"z\r\n\",3\n";
    let keyed = |table: &Table, key: &[usize]| -> Result<KeyedSet> {
        keyed_set(table, key, EmptyKeys::Error, Duplicates::Error)
    };
    let error = keyed(&read(csv), &[0]).unwrap_err();
    assert_input(&error, Some(5), Some("id"), "the key spans several lines", "`multiline_keys`", csv);
    let error = keyed(&read(csv), &[0, 1]).unwrap_err();
    assert_input(&error, Some(3), Some("n"), "the key spans several lines", "a missing quote", csv);
    let table = from(csv, &MULTILINE).unwrap();
    assert_eq!(keyed(&table, &[0, 1]).unwrap().set.len(), 3);
    assert_eq!(keyed(&table, &[0]).unwrap().set.get(2), super::super::tests::key(&["z\r\n"]));
    // It is a matter of CSV alone: nowhere else does a line end say anything of quotes.
    let json = ReadOptions { format: Some(Format::JsonLines), ..CSV };
    let table = from("{\"id\": \"x\\ny\"}\n", &json).unwrap();
    assert_eq!(keyed(&table, &[0]).unwrap().set.len(), 1);
}
