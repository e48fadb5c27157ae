//! The report of a run in a file: JSON for programs, or an HTML page for the records.

mod known;
mod venn;

use crate::page::{page, table};
use crate::words::as_options;
use known::{Known, Regions};
use maud::{Markup, html};
use std::path::Path;
use veilset::error::Result;
use veilset::net::Fingerprint;
use veilset::party;
use veilset::session::Party;
use veilset::session::report::Report;
use veilset::table::Destination;

/// Writes a report into the file at this path: as a page if it ends in .html or .htm, otherwise as JSON. The file appears
/// complete or not at all.
///
/// # Errors
/// [`veilset::error::Error::Output`].
pub(crate) fn write(report: &Report, path: &Path, mut file: Destination) -> Result<()> {
    let extension = path.extension().map(|extension| extension.to_ascii_lowercase());
    if extension.is_none_or(|extension| extension != "html" && extension != "htm") {
        return party::write_report(report, file);
    }
    file.writer().write_all(as_page(report).as_bytes()).map_err(|e| file.unwritable(&e))?;
    file.commit()
}

/// Renders the report as a page.
fn as_page(report: &Report) -> String {
    let others: Vec<String> = report.parties.iter().map(called).collect();
    let title = format!("Report of {} with {}", report.operation, others.join(", "));
    page(
        &title,
        &html! {
            p {
                (as_options(report.summary())) ". This party was the " (report.role) ", on "
                time datetime=(report.time) { (report.time) } "."
            }
            h2 { "What each party learned" }
            ul { @for sentence in &report.learned { li { (as_options(sentence)) } } }
            @if !report.notes.is_empty() {
                p { "What the result or other parties do not have:" }
                ul { @for sentence in &report.notes { li { (as_options(sentence)) } } }
            }
            (learned(report))
            h2 { "What ran" }
            div.record { (run(report)) }
            div.record { (terms(report)) }
            h2 { "With whom" }
            div.record { (parties(report)) }
            h2 { "What this rests on" }
            ul { @for assumption in &report.assumptions { li { (assumption) } } }
            p { "A wrong result has probability at most " (report.failure_bound) "." }
            h2 { "What it cost" }
            (stages(report))
            (messages(report))
            p.quiet {
                "Written by veilset " (report.version) " from what this party knows. "
                "Times and bytes are of this party's own run."
            }
        },
    )
}

/// Returns the name of a party: the one that we gave it, if there is one.
fn called(party: &Party) -> String {
    match (&party.name, party.seat.number()) {
        (Some(name), None) => name.clone(),
        _ => party.to_string(),
    }
}

fn run(report: &Report) -> Markup {
    let yes = |yes: bool| if yes { "yes" } else { "no" }.to_string();
    let optional = |name: Option<&String>| name.map_or("none", String::as_str).to_string();
    let mut rows = vec![
        ("Operation", report.operation.to_string()),
        ("This party's role", report.role.to_string()),
        ("Began", report.time.clone()),
        ("Took", format!("{:.3} seconds", report.seconds)),
        ("Protocol", format!("{} over {}", report.protocol, report.group)),
        ("Why this protocol", as_options(report.why())),
        ("This party's data", optional(report.input.as_ref())),
        ("This party's result", optional(report.output.as_ref())),
    ];
    if !report.key_columns.is_empty() {
        rows.push(("This party's key columns", report.key_columns.join(", ")));
    }
    if report.parties.count() == 1 {
        rows.push(("Both parties get the result", yes(report.both)));
    }
    if !report.sent_columns.is_empty() {
        rows.push(("Columns sent with the sender's items", report.sent_columns.join(", ")));
    }
    rows.extend([
        ("Rows with a repeated key", grouped(report.left_out.duplicates)),
        ("Rows left out because their key is empty", grouped(report.left_out.skipped)),
        ("Offline half prepared in advance", yes(report.prepared)),
    ]);
    if report.shards > 0 {
        rows.push(("Shards", grouped(u64::from(report.shards))));
    }
    rows.push(("Session, the same in the audit logs of all", report.session.clone()));
    let rows: Vec<_> = rows.into_iter().map(|(name, value)| vec![name.to_string(), value]).collect();
    table("The run", &["What", "Value"], &rows)
}

/// Lists the terms that all parties agreed on. A value of 0 does not apply or was not requested.
fn terms(report: &Report) -> Markup {
    let terms = report.terms.iter().filter(|term| term.value != "0");
    let rows: Vec<_> = terms.map(|term| vec![as_options(term.words), term.value.clone()]).collect();
    table("The terms that all parties agreed on", &["Term", "Value"], &rows)
}

fn parties(report: &Report) -> Markup {
    let ours = Known::Exactly(report.sizes.ours);
    let told = match report.sizes.announced {
        n if n == report.sizes.ours => format!("{ours}"),
        n => format!("{ours}, announced as {}", Known::AtMost(n)),
    };
    let shown = |fingerprint: Option<Fingerprint>| {
        let none = || "none: the connection was not protected".to_string();
        fingerprint.map_or_else(none, |fingerprint| fingerprint.to_string())
    };
    let mut rows = vec![vec!["this party".to_string(), told, shown(report.our)]];
    rows.extend(report.parties.iter().map(|party| {
        vec![called(party), Known::announced(party.announced).to_string(), shown(party.fingerprint)]
    }));
    table("The parties, and the sizes of their sets as known here", &["Party", "Items", "Fingerprint"], &rows)
}

/// Shows the numbers that this party learned; in a run of two, also as a drawing.
fn learned(report: &Report) -> Markup {
    let mut rows: Vec<(String, Known)> = Vec::new();
    let of_two = report.parties.count() == 1;
    let regions = Regions::of(report);
    let known = |n: Option<usize>| n.map_or(Known::Unknown, Known::Exactly);
    let peer = called(report.parties.peer());
    if of_two {
        rows.push(("Items that only this party has".into(), regions.ours));
        rows.push(("Items that both have".into(), regions.both));
        rows.push((format!("Items that only {peer} has"), regions.theirs));
        rows.push(("Items that at least one has".into(), regions.union()));
    } else {
        rows.push(("Items that all have".into(), known(report.result.matches)));
        rows.push(("Items that at least one has".into(), known(report.result.union_size)));
    }
    let mut rows: Vec<_> = rows.into_iter().map(|(name, known)| vec![name, known.to_string()]).collect();
    match (&report.result.sum, report.result.below_minimum) {
        (Some(sum), _) => rows.push(vec!["Sum of this party's values over matches".into(), sum.get().into()]),
        (None, Some(true)) => rows.push(vec![
            "Sum of this party's values over matches".into(),
            "withheld: fewer items match than the agreed minimum".into(),
        ]),
        (None, _) => {}
    }
    html! {
        @if of_two { (venn::diagram(report.sizes.ours, report.parties.peer().announced, &peer, &regions)) }
        (table("Numbers that this party learned, or that follow from what it learned", &["What", "Number"], &rows))
        @if !of_two {
            p.quiet { "No overlaps of pairs are shown: nobody learns them in a run of several parties." }
        }
    }
}

fn stages(report: &Report) -> Markup {
    let all: f64 = report.stages.iter().map(|stage| stage.seconds).sum();
    let share = |seconds: f64| if all > 0.0 { format!("{:.0}%", 100.0 * seconds / all) } else { "-".into() };
    let row = |name: &str, seconds: f64| vec![name.to_string(), format!("{seconds:.3}"), share(seconds)];
    let mut rows: Vec<_> = report.stages.iter().map(|stage| row(stage.name, stage.seconds)).collect();
    rows.push(row("all", all));
    html! {
        (table("Time by stage", &["Stage", "Seconds", "Share"], &rows))
        p.quiet {
            "A stage lasts until the next begins, and includes waiting for others. "
            "\"Agreeing\" ends when all parties allow the run."
        }
    }
}

fn messages(report: &Report) -> Markup {
    let row = |name: &str, sent, received| vec![name.to_string(), grouped(sent), grouped(received)];
    let mut rows: Vec<_> =
        report.messages.iter().map(|message| row(message.name, message.sent, message.received)).collect();
    rows.push(row("all", report.bytes.sent, report.bytes.received));
    html! {
        (table("Bytes by message", &["Message", "Sent", "Received"], &rows))
        p.quiet {
            "R and S, the receiver and the sender, and others like them, are roles in the part of the protocol that a \
             message belongs to. Its receiver may be the sender of the run."
        }
    }
}

/// Formats a number with commas between its thousands.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
#[path = "report/tests.rs"]
mod tests;
