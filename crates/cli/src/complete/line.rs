//! The words of a line, as written in a shell and as parsed into arguments.

/// The arguments typed before the last word: their ids and values.
#[derive(Debug)]
pub struct Typed(Vec<(String, String)>);

impl Typed {
    /// Parses the words of a line. The first is the program, and the last is not complete.
    pub fn before_last(root: &clap::Command, words: &[String]) -> Typed {
        let (mut command, mut found) = (root, Vec::new());
        let (mut positionals, mut escaped) = (0, false);
        let mut words = words[..words.len().saturating_sub(1)].iter().skip(1);
        while let Some(word) = words.next() {
            if !escaped && word == "--" {
                escaped = true;
            } else if let Some(option) = word.strip_prefix("--").filter(|_| !escaped) {
                let (name, value) = match option.split_once('=') {
                    Some((name, value)) => (name, Some(value.to_string())),
                    None => (option, None),
                };
                let Some(arg) = command.get_arguments().find(|arg| arg.get_long() == Some(name)) else {
                    continue;
                };
                let value = match arg.get_action().takes_values() {
                    true => value.or_else(|| words.next().cloned()),
                    false => Some(String::new()),
                };
                // Without a value here, the last word is the value.
                found.extend(value.map(|value| (arg.get_id().to_string(), value)));
            } else if !escaped && word.starts_with('-') && word != "-" {
                continue;
            } else if let Some(below) = command.find_subcommand(word).filter(|_| positionals == 0 && !escaped)
            {
                command = below;
            } else {
                // The last positional argument may be repeated.
                let arg = command.get_positionals().nth(positionals).or(command.get_positionals().last());
                found.extend(arg.map(|arg| (arg.get_id().to_string(), word.clone())));
                positionals += 1;
            }
        }
        Typed(found)
    }

    /// Returns all values of an argument.
    pub fn all<'a>(&'a self, id: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(other, _)| other == id).map(|(_, value)| value.as_str())
    }

    /// Returns the first value of an argument.
    pub fn first<'a>(&'a self, id: &'a str) -> Option<&'a str> {
        self.all(id).next()
    }
}

/// A part of a line without its quotes, and the quote that is still open at its end.
#[derive(Debug, PartialEq, Eq)]
pub struct Unquoted {
    /// The words. The last one is not complete, and may be empty.
    pub words: Vec<String>,
    /// The offset at which the last word begins.
    pub begin: usize,
    /// The quote that is open at the end.
    pub open: Option<char>,
}

/// Removes the quotes from a line as POSIX shells do; variables and patterns stay unchanged.
pub fn unquoted(line: &str) -> Unquoted {
    let (mut words, mut word, mut begin, mut open) = (Vec::new(), None, line.len(), None);
    let mut chars = line.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if open.is_none() && c.is_ascii_whitespace() {
            words.extend(word.take());
            continue;
        }
        if word.is_none() {
            begin = at;
        }
        let text = word.get_or_insert_with(String::new);
        match (open, c) {
            (None, '\'' | '"') => open = Some(c),
            (Some(quote), _) if quote == c => open = None,
            (None, '\\') => text.extend(chars.next().map(|(_, c)| c)),
            (Some('"'), '\\') => match chars.next_if(|(_, c)| matches!(c, '"' | '\\' | '$' | '`')) {
                Some((_, c)) => text.push(c),
                None => text.push('\\'),
            },
            _ => text.push(c),
        }
    }
    if word.is_none() {
        begin = line.len();
    }
    words.push(word.unwrap_or_default());
    Unquoted { words, begin, open }
}

/// Quotes a text for a position where this quote is open.
pub fn quoted(text: &str, open: Option<char>) -> String {
    let mut quoted = String::new();
    for (at, c) in text.char_indices() {
        match open {
            Some('\'') if c == '\'' => quoted.push_str("'\\'"),
            Some('\'') => {}
            Some(_) if matches!(c, '"' | '\\' | '$' | '`') => quoted.push('\\'),
            Some(_) => {}
            None if c == '~' && at > 0 || c.is_alphanumeric() || "_-./:,=@%+".contains(c) => {}
            None if !c.is_ascii() => {}
            None => quoted.push('\\'),
        }
        quoted.push(c);
    }
    quoted
}
