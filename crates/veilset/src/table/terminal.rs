//! Text for a terminal, with anything that would command it as a readable escape.
//!
//! Cells come from the peer too. A terminal obeys control characters in them: they move the cursor and overwrite
//! other lines, or change its title or the clipboard. Bidirectional marks show a text in another order. All of these
//! are written as `\x1b` or `\u{202e}`, except line feeds, which end rows, and tabs. A backslash stays as it is: this
//! is for reading, and files and pipes get the exact bytes.

use std::io::{self, Write};

/// Writes text to a terminal, escaped.
pub(super) struct Escaped<W> {
    to: W,
    /// An incomplete character.
    begun: Vec<u8>,
}

impl<W: Write> Escaped<W> {
    pub(super) fn new(to: W) -> Self {
        Escaped { to, begun: Vec::new() }
    }
}

impl<W: Write> Write for Escaped<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut text = std::mem::take(&mut self.begun);
        text.extend_from_slice(bytes);
        let (mut out, mut rest) = (String::with_capacity(text.len()), text.as_slice());
        while !rest.is_empty() {
            let (valid, invalid) = match std::str::from_utf8(rest) {
                Ok(_) => (rest.len(), 0),
                // Without a length, the text ends within a character.
                Err(e) => (e.valid_up_to(), e.error_len().unwrap_or(0)),
            };
            String::from_utf8_lossy(&rest[..valid]).chars().for_each(|c| escape(c, &mut out));
            escape_bytes(&rest[valid..valid + invalid], &mut out);
            rest = &rest[valid + invalid..];
            if invalid == 0 {
                self.begun = rest.to_vec();
                break;
            }
        }
        self.to.write_all(out.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut out = String::new();
        escape_bytes(&std::mem::take(&mut self.begun), &mut out);
        self.to.write_all(out.as_bytes())?;
        self.to.flush()
    }
}

fn escape(c: char, out: &mut String) {
    match c {
        '\n' | '\t' => out.push(c),
        // C0, DEL and C1.
        c if c.is_control() && c.is_ascii() => escape_bytes(&[c as u8], out),
        c if c.is_control() || turns(c) => out.extend(c.escape_unicode()),
        c => out.push(c),
    }
}

/// Whether a character is a bidirectional mark, or a line separator other than the line feed.
fn turns(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escape_bytes(bytes: &[u8], out: &mut String) {
    bytes.iter().for_each(|byte| out.push_str(&format!("\\x{byte:02x}")));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(text: &[u8], at_a_time: usize) -> String {
        let mut out = Vec::new();
        let mut to = Escaped::new(&mut out);
        text.chunks(at_a_time).for_each(|part| to.write_all(part).unwrap());
        to.flush().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_commands_a_terminal_is_escaped_and_other_text_is_not() {
        // (text, what is written)
        let cases: [(&[u8], &str); 9] = [
            ("id,name\n1,\"M\u{fc}ller \u{1f600}\\n\"\tx\n".as_bytes(), "id,name\n1,\"Müller 😀\\n\"\tx\n"),
            (b"\x1b]0;title\x07\x1b[2J", r"\x1b]0;title\x07\x1b[2J"),
            (b"over\rwritten\x08\x7f\0", r"over\x0dwritten\x08\x7f\x00"),
            ("\u{9b}2J\u{85}".as_bytes(), r"\u{9b}2J\u{85}"),
            (b"\x9b2J \xff\xfe", r"\x9b2J \xff\xfe"),
            ("\u{202e}gpj.exe\u{2066}\u{200f}".as_bytes(), r"\u{202e}gpj.exe\u{2066}\u{200f}"),
            (b"cut \xf0\x9f\x98", r"cut \xf0\x9f\x98"),
            (b"\xf0\x9f\x1b", r"\xf0\x9f\x1b"),
            (b"", ""),
        ];
        for (text, expected) in cases {
            for at_a_time in 1..=text.len().max(1) {
                assert_eq!(escaped(text, at_a_time), expected, "{at_a_time} bytes at a time");
            }
        }
    }
}
