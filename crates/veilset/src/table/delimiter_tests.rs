use super::super::tests::CSV;
use super::super::{Quoting, Table};
use super::*;

/// What divides this text, of which columns with these names are needed.
fn of(text: &str, options: &ReadOptions, named: &[&str]) -> Result<u8> {
    let named: Vec<String> = named.iter().map(ToString::to_string).collect();
    let wanted = Wanted { columns: None, named: &named };
    Table::from_wanted("a.csv", text.as_bytes(), options, wanted).map(|table| table.delimiter())
}

#[test]
fn of_several_delimiters_the_named_columns_tell_which_it_is() {
    let headerless = ReadOptions { headerless: true, ..CSV };
    let cases: [(&str, &ReadOptions, &[&str], u8); 11] = [
        ("x,y;z\n1,2;3\n", &CSV, &["x"], b','),
        ("x,y;z\n1,2;3\n", &CSV, &["x,y"], b';'),
        ("x,y;z\n1,2;3\n", &CSV, &["z"], b';'),
        ("x;y|z\n1;2|3\n", &CSV, &["x"], b';'),
        ("x;y|z\n1;2|3\n", &CSV, &["z"], b'|'),
        ("id|x;y,z\n1|2;3,4\n", &CSV, &["x;y,z", "id"], b'|'),
        // A column of this number is there with one of them only.
        ("1,5;2,5\n3,5;4,5\n", &headerless, &["3"], b','),
        // One fits, or none: the name changes nothing.
        ("1;2,5\n3;4\n", &headerless, &["1"], b';'),
        ("a@b\nc@d\n", &headerless, &["1"], b','),
        ("x;y\n1;2\n", &CSV, &["none"], b';'),
        // With the other one, quotes would be misused.
        ("\"1;2\",3\n\"4;5\",6\n", &headerless, &["1"], b','),
    ];
    for (text, options, named, delimiter) in cases {
        match of(text, options, named) {
            Ok(found) => assert_eq!(char::from(found), char::from(delimiter), "{text:?} {named:?}"),
            Err(error) => panic!("{text:?} {named:?}: {error}"),
        }
    }
}

#[test]
fn delimiters_that_fit_equally_well_are_asked_for() {
    let headerless = ReadOptions { headerless: true, ..CSV };
    let plain = ReadOptions { quoting: Quoting::Ordinary, ..headerless };
    let cases: [(&str, &ReadOptions, &[&str], &str); 7] = [
        (
            "ann,Rome;Italy\nben,Oslo;Norway\n",
            &headerless,
            &["1"],
            "',' makes 2 columns of them, ';' makes 2",
        ),
        ("1,5;2,5\n3,5;4,5\n", &headerless, &["1", "2"], "',' makes 3 columns of them, ';' makes 2"),
        ("1\t2|3\n", &headerless, &["2"], "a tab makes 2 columns of them, '|' makes 2"),
        (
            "1,2;3\t4\n",
            &headerless,
            &["1"],
            "',' makes 2 columns of them, ';' makes 2 columns of them, a tab makes 2",
        ),
        ("\"1;2\",3\n", &plain, &["1"], "',' makes 2 columns of them, ';' makes 2"),
        // No name decides it, nor one that is nowhere.
        ("x,y;z\n1,2;3\n", &CSV, &[], "',' makes 2 columns of them, ';' makes 2"),
        ("x,y;z\n1,2;3\n", &CSV, &["none"], "',' makes 2 columns of them, ';' makes 2"),
    ];
    for (text, options, named, words) in cases {
        let Err(Error::Input(error)) = of(text, options, named) else { panic!("{text:?} {named:?}") };
        assert!(error.what.contains(words) && error.next.contains("`delimiter`"), "{text:?}: {error:?}");
        // Whichever is given is taken.
        for given in [b',', b';', b'|'] {
            assert_eq!(of(text, &ReadOptions { delimiter: Some(given), ..*options }, &[]).unwrap(), given);
        }
    }
}
