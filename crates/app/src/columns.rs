//! Column names as typed, separated by commas. A name that contains a comma is quoted as in CSV.

use std::str::FromStr;
pub use veilset::table::quoted;

/// Our columns: `city`, `last,first` or `"last, first",city`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns(pub Vec<String>);

/// The sender's columns, each with its name in our result: `city,plan=their_plan`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received(pub Vec<(String, String)>);

impl FromStr for Columns {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut names = Vec::new();
        let mut rest = Some(text);
        while let Some(text) = rest {
            let (name, after) = first(text, &[','])?;
            names.push(name);
            rest = after.strip_prefix(',');
        }
        Ok(Columns(names))
    }
}

impl FromStr for Received {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut names = Vec::new();
        let mut rest = Some(text);
        while let Some(text) = rest {
            let (theirs, mut after) = first(text, &[',', '='])?;
            let mut ours = theirs.clone();
            if let Some(text) = after.strip_prefix('=') {
                (ours, after) = first(text, &[','])?;
            }
            if theirs.is_empty() || ours.is_empty() {
                return Err("a column has no name. Write each as COL or COL=NAME".into());
            }
            names.push((theirs, ours));
            rest = after.strip_prefix(',');
        }
        Ok(Received(names))
    }
}

/// Returns the complete names of a list whose last name is still being typed, and the beginning of that one.
pub fn unfinished(text: &str) -> (Vec<String>, &str) {
    let (mut names, mut rest) = (Vec::new(), text);
    while let Ok((name, after)) = first(rest, &[','])
        && let Some(after) = after.strip_prefix(',')
    {
        names.push(name);
        rest = after;
    }
    (names, rest)
}

/// Splits off the first name of a text, which ends before one of `ends`.
fn first<'a>(text: &'a str, ends: &[char]) -> Result<(String, &'a str), String> {
    let Some(mut rest) = text.strip_prefix('"') else {
        let end = text.find(ends).unwrap_or(text.len());
        return Ok((text[..end].into(), &text[end..]));
    };
    let mut name = String::new();
    loop {
        let Some((part, after)) = rest.split_once('"') else {
            return Err("a quote is not closed. Quote a name as in CSV: \"last, first\"".into());
        };
        name.push_str(part);
        match after.strip_prefix('"') {
            Some(after) => {
                name.push('"');
                rest = after;
            }
            None if after.is_empty() || after.starts_with(ends) => return Ok((name, after)),
            None => {
                return Err(format!(
                    "there is text after the closing quote of \"{name}\". Separate names with commas, and \
                     double a quote inside a name"
                ));
            }
        }
    }
}

/// Quotes a column of the sender as typed: its name, and an equals sign and its name in our result if that differs.
pub fn quoted_received(element: &str) -> String {
    match element.split_once('=') {
        Some((theirs, ours)) => format!("{}={}", quoted(theirs), quoted(ours)),
        None => quoted(element),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_separated_by_commas_and_quoted_as_in_csv() {
        // (as typed, names)
        let cases: [(&str, &[&str]); 9] = [
            ("a", &["a"]),
            ("a,b", &["a", "b"]),
            ("\"last, first\"", &["last, first"]),
            ("\"last, first\",b,\"c\"", &["last, first", "b", "c"]),
            ("\"say \"\"hi\"\"\",b", &["say \"hi\"", "b"]),
            ("5\" disk,a=b", &["5\" disk", "a=b"]),
            (" a, b", &[" a", " b"]),
            ("", &[""]),
            ("a,,\"\"", &["a", "", ""]),
        ];
        for (typed, names) in cases {
            assert_eq!(typed.parse::<Columns>().unwrap().0, names, "{typed}");
        }
        for (typed, words) in
            [("\"a", "not closed"), ("\"a\"\"", "not closed"), ("\"a\"b", "after the closing quote")]
        {
            assert!(typed.parse::<Columns>().unwrap_err().contains(words), "{typed}");
            assert!(typed.parse::<Received>().unwrap_err().contains(words), "{typed}");
        }
    }

    #[test]
    fn the_last_name_need_not_be_complete() {
        // (as typed, names, the beginning of the last)
        let cases: [(&str, &[&str], &str); 6] = [
            ("", &[], ""),
            ("em", &[], "em"),
            ("a,b", &["a"], "b"),
            ("a,\"b,c\",", &["a", "b,c"], ""),
            ("a,\"b, c", &["a"], "\"b, c"),
            ("\"a\"b,c", &[], "\"a\"b,c"),
        ];
        for (typed, names, last) in cases {
            assert_eq!(unfinished(typed), (names.iter().map(|&n| n.into()).collect(), last), "{typed}");
        }
    }

    #[test]
    fn received_columns_may_get_another_name() {
        let cases: [(&str, &[(&str, &str)]); 4] = [
            ("a,b=c", &[("a", "a"), ("b", "c")]),
            ("\"a, b\"=\"c,d\",e=f=g", &[("a, b", "c,d"), ("e", "f=g")]),
            ("\"a=b\"=c", &[("a=b", "c")]),
            ("\"a=b\"", &[("a=b", "a=b")]),
        ];
        for (typed, names) in cases {
            let names: Vec<_> =
                names.iter().map(|(theirs, ours)| (theirs.to_string(), ours.to_string())).collect();
            assert_eq!(typed.parse::<Received>().unwrap().0, names, "{typed}");
        }
        for typed in ["", "a,", "a=", "=a", "\"\"=b"] {
            assert!(typed.parse::<Received>().unwrap_err().contains("no name"), "{typed}");
        }
    }

    #[test]
    fn what_is_quoted_is_the_name_again() {
        for name in ["a", "", "a,b", "\"", "a\"b", "\"a\",b", "a=b", " x "] {
            assert_eq!(quoted(name).parse(), Ok(Columns(vec![name.into()])), "{name}");
        }
        for (element, theirs, ours) in
            [("a, b", "a, b", "a, b"), ("a,b=c, d", "a,b", "c, d"), ("a=b=c", "a", "b=c")]
        {
            assert_eq!(quoted_received(element).parse(), Ok(Received(vec![(theirs.into(), ours.into())])));
        }
    }
}
