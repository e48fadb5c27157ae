//! Errors of the library as Python exceptions, with their fields.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use veilset::error::{Error, Place, Reason};
use veilset::spelling::{Named, spell};
use veilset_app::exit_code;

/// Returns a text of the library or the program with settings as Python spells them, `max_row` and `modulus=128`, and functions
/// in place of commands.
#[pyfunction]
pub(crate) fn as_python(text: &str) -> String {
    spell(text, |named| match named {
        Named::Setting(setting, None) => as_name(setting),
        Named::Setting(setting, Some(value)) => format!("{}={value}", as_name(setting)),
        Named::Command(typed) => format!("`{}`", without_command(typed)),
    })
}

/// Returns the help of an option, all of which is the program's own text, with options and commands as Python has them.
pub(crate) fn help_in_python(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(i, part)| if i % 2 == 0 { without_hyphens(part) } else { without_command(part) });
    parts.collect::<Vec<_>>().join("`")
}

/// Returns the Python equivalent of a command, since users of the package may lack the program.
fn without_command(typed: &str) -> String {
    let Some(words) = typed.strip_prefix("veilset ") else { return typed.into() };
    let text =
        |word: &str| if word.chars().any(char::is_lowercase) { format!("{word:?}") } else { word.into() };
    match words.split(' ').collect::<Vec<_>>()[..] {
        ["identity", "new"] => "veilset.Identity.new()".into(),
        // Messages say that the command prints.
        ["identity", "show"] => "print(veilset.Identity.load().fingerprint)".into(),
        ["peer", "add"] => "veilset.PeerBook().add(NAME, FINGERPRINT, ADDRESS)".into(),
        ["peer", "add", name, fingerprint] => {
            format!("veilset.PeerBook().add({}, {})", text(name), text(fingerprint))
        }
        ["peer", "remove", name] => format!("veilset.PeerBook().remove({})", text(name)),
        ["peer", "list"] => "veilset.PeerBook().peers()".into(),
        ["help"] => "print(veilset.guide())".into(),
        ["help", page] => format!("print(veilset.guide({}))", text(page)),
        // Messages say that the command prints.
        ["--version"] => "print(veilset.__version__)".into(),
        ["calibrate"] => "veilset calibrate` of the program `veilset".into(),
        [ref command @ .., "--help"] => format!("help(veilset.{})", command.join(".")),
        ref command => format!("veilset.{}", command.join(".")),
    }
}

/// Returns the name of an option as typed in Python.
pub(crate) fn as_name(option: &str) -> String {
    match option {
        // This is a Python keyword.
        "for" => "for_".into(),
        _ => option.replace('-', "_"),
    }
}

/// Returns a text with `max_row` in place of `--max-row`.
fn without_hyphens(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("--") {
        let (before, option) = rest.split_at(at);
        let option = &option[2..];
        let name = option.find(|c: char| !c.is_ascii_lowercase() && c != '-').unwrap_or(option.len());
        out.push_str(before);
        match before.chars().last().is_none_or(|c| !c.is_alphanumeric()) && name > 0 {
            true => out.push_str(&as_name(&option[..name])),
            false => {
                out.push_str("--");
                out.push_str(&option[..name]);
            }
        }
        rest = &option[name..];
    }
    out + rest
}

/// Returns the exception for an error: its class is given by the kind of error, and its attributes by the error's fields.
/// `about` names the parties that it is about, in a run of several.
pub(crate) fn exception(py: Python<'_>, error: &Error, about: &[String]) -> PyErr {
    let raise = || -> PyResult<PyErr> {
        let fields = PyDict::new(py);
        fields.set_item("exit_code", exit_code(error))?;
        fields.set_item("fault", error.fault().map(|fault| fault.name()))?;
        fields.set_item("reason", error.reason().map(Reason::name))?;
        fields.set_item("party", error.seat().map(|seat| seat.to_string()))?;
        match error {
            Error::Input(e) => {
                fields.set_item("file", &e.file)?;
                fields.set_item("column", &e.column)?;
                let (row, line) = match e.row {
                    Some(Place::Row(row)) => (Some(row), None),
                    Some(Place::Line(line)) => (None, Some(line)),
                    None => (None, None),
                };
                fields.set_item("row", row)?;
                fields.set_item("line", line)?;
            }
            Error::Disagreement(differences) => {
                let list = PyList::empty(py);
                for difference in differences {
                    let one = PyDict::new(py);
                    one.set_item("term", difference.term)?;
                    one.set_item("ours", &difference.ours)?;
                    one.set_item("theirs", &difference.theirs)?;
                    one.set_item("party", difference.who.to_string())?;
                    list.append(one)?;
                }
                fields.set_item("differences", list)?;
            }
            _ => {}
        }
        let make = py.import("veilset._errors")?.getattr("make")?;
        let text = std::iter::once(as_python(&error.marked())).chain(about.iter().cloned());
        let made = make.call1((error.kind(), text.collect::<Vec<_>>().join("\n"), fields))?;
        Ok(PyErr::from_value(made))
    };
    raise().unwrap_or_else(|failed| failed)
}

/// Returns the text to show for a raised exception: all of it for one of our errors, otherwise only the kind, because the
/// message may name a cell.
pub(crate) fn told(raised: &PyErr) -> String {
    Python::attach(|py| {
        let told = || py.import("veilset._errors")?.getattr("told")?.call1((raised.value(py),))?.extract();
        told().unwrap_or_else(|_: PyErr| "an unknown error".into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use veilset::spelling::{BOTH, FOR, MAX_ROW, MODULUS, to_type};

    #[test]
    fn only_our_own_words_are_spelled() {
        for (text, expected) in [
            (format!("use {MAX_ROW}, or {}", MODULUS.with(128)), "use max_row, or modulus=128"),
            (
                format!("give {FOR} ({})", to_type("help data")),
                "give for_ (`print(veilset.guide(\"data\"))`)",
            ),
        ] {
            assert_eq!(as_python(&text), expected);
        }
        let foreign = "missing field `both`, in --max-row, see `veilset help data`";
        assert_eq!(as_python(&format!("{BOTH}: {foreign}. {BOTH}")), format!("both: {foreign}. both"));
    }

    #[test]
    fn the_help_of_an_option_is_spelled() {
        let help = "with --max-row (`veilset help data`)";
        assert_eq!(help_in_python(help), "with max_row (`print(veilset.guide(\"data\"))`)");
    }
}
