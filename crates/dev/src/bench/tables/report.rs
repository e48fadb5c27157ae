//! The pages: the papers' figures next to ours, in Markdown and in HTML.

use super::Known;
use super::drawings::{Drawn, predictions};
use super::machine::Machine;
use super::papers::Table;
use super::point::Point;
use super::results::{Measured, VERSION};
use maud::{Markup, html};
use veilset::planner::Prices;
use veilset::speed::Speeds;
use veilset_app::page;

const TITLE: &str = "The papers' tables, measured again";

/// The contents of the pages.
pub struct Report<'a> {
    pub machine: &'a Machine,
    pub speeds: &'a Speeds,
    pub tables: &'a [Known<'a>],
}

/// A table as it is shown.
struct Shown<'a> {
    known: &'a Known<'a>,
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
    notes: Vec<String>,
}

/// The columns, by name. Columns without a figure are omitted.
const COLUMNS: [&str; 17] = [
    "",
    "threads",
    "n",
    "network",
    "s",
    "paper's s",
    "predicted s",
    "CPU s",
    "s alone",
    "MB",
    "MB to sender, to receiver",
    "paper's MB",
    "MB held",
    "s, beside",
    "CPU s, beside",
    "s alone, beside",
    "notes",
];

impl Report<'_> {
    /// Returns the page as Markdown.
    pub fn markdown(&self) -> String {
        let mut text = format!("# {TITLE}\n\n");
        for line in self.facts() {
            text += &format!("- {}\n", plain(&line));
        }
        text += &format!("\n{}\n", self.explained().join(" "));
        let mut paper = "";
        for shown in self.shown() {
            let (of, table, _) = shown.known;
            if paper != of.name {
                paper = &of.name;
                text += &format!("\n## {}\n\n{}.\n", of.title, of.source);
            }
            text += &format!("\n### {}\n\n", title(table));
            let row = |cells: Vec<String>| {
                format!("| {} |\n", cells.iter().map(|cell| plain(cell)).collect::<Vec<_>>().join(" | "))
            };
            text += &row(shown.head.iter().map(ToString::to_string).collect());
            text += &format!("|{}\n", "---|".repeat(shown.head.len()));
            text.extend(shown.rows.into_iter().map(row));
            text += "\n";
            text.extend((1..).zip(&shown.notes).map(|(i, note)| format!("{i}. {note}\n")));
        }
        text
    }

    /// Returns the page as HTML, with drawings.
    pub fn html(&self) -> String {
        let mut number = 0;
        let mut next = || {
            number += 1;
            number
        };
        let shown = self.shown();
        let begins = |i: usize| i == 0 || shown[i - 1].known.0.name != shown[i].known.0.name;
        let contents = html! {
            ul { @for fact in self.facts() { li { (fact) } } }
            @for sentence in self.explained() { p { (marked(&sentence)) } }
            @for (i, one) in shown.iter().enumerate() {
                @let (paper, table, results) = one.known;
                @if begins(i) {
                    h2 { (paper.title) }
                    p.quiet { (paper.source) "." }
                }
                (page::table(&title(table), &one.head, &one.rows))
                (notes(&one.notes))
                @for plot in (Drawn { paper, table, results }).plots() { (plot.svg(next())) }
            }
            @if let Some(plot) = predictions(self.tables, self.machine) {
                h2 { "Prediction and measurement" }
                p { "What " code { "veilset plan" } " expects of each run of two parties, with both on this machine's cores." }
                (plot.svg(next()))
            }
        };
        page::page(TITLE, &contents)
    }

    /// Describes the machine, the program and the dates of the measurements, line by line.
    fn facts(&self) -> Vec<String> {
        let Machine { processor, cores, paths, memory_gb, system } = self.machine;
        let dates =
            self.tables.iter().flat_map(|(_, _, results)| &results.points).flat_map(|point| &point.runs);
        let dates: Vec<&str> = dates.map(|run| run.date.as_str()).collect();
        let (first, last) = (dates.iter().min().unwrap_or(&"never"), dates.iter().max().unwrap_or(&"never"));
        let when = if first == last { first.to_string() } else { format!("from {first} to {last}") };
        let vectors = self.machine.vectors();
        vec![
            format!("Processor: {processor}, {cores} cores, {vectors}"),
            format!("Kernels: {}", paths.join(", ")),
            format!("Memory: {memory_gb} GB"),
            format!("System: {system}"),
            format!("Program: veilset {VERSION}"),
            format!("Measured: {when}"),
        ]
    }

    fn explained(&self) -> Vec<String> {
        let speeds = match *self.speeds == Speeds::built_in(1) {
            true => {
                "Predictions rest on built-in speeds; `veilset calibrate` measures those of this machine."
            }
            false => "Predictions rest on the speeds that `veilset calibrate` measured.",
        };
        let Prices { hour, gigabyte } = Prices::default();
        vec![
            "Seconds are of the slower party, from the connection to the end, over an emulated network; MB are 10^6 bytes \
             both ways, TLS included; MB held is the most memory of a party."
                .into(),
            "CPU seconds are of receiver and sender, or of the leader and the most of the others. Each row says by the \
             numbers of its notes how it differs from the paper's."
                .into(),
            format!("{speeds} Dollars are by CM20's prices: {hour} for an hour of a machine, {gigabyte} for a GB."),
        ]
    }

    /// Returns the tables that have measurements.
    fn shown(&self) -> Vec<Shown<'_>> {
        let measured = self.tables.iter().filter(|(_, _, results)| !results.points.is_empty());
        measured.filter_map(|known| self.table(known)).collect()
    }

    fn table<'a>(&self, known: &'a Known<'a>) -> Option<Shown<'a>> {
        let (paper, table, results) = known;
        let mut notes: Vec<String> = Vec::new();
        let mut rows: Vec<Vec<String>> = Vec::new();
        for row in &table.rows {
            for &log_n in table.sizes(row) {
                for network in table.networks(paper) {
                    let Some((point, measured)) = Point::known(table, row, log_n, network, results) else {
                        continue;
                    };
                    // Among several other programs, the last one is shown.
                    let beside =
                        results.points.iter().rfind(|p| p.command == measured.command && p.beside.is_some());
                    let mut differs = self.differs(known, &point);
                    let program = beside.and_then(|point| point.beside.as_ref());
                    differs.extend(program.map(|program| format!("Beside: {program}.")));
                    let numbers: Vec<String> = differs.iter().map(|note| number(&mut notes, note)).collect();
                    let figures = table.figures(row, log_n, &network.name).into();
                    rows.push(cells(&point, measured, beside, figures, &numbers.join(", ")));
                }
            }
        }
        let has = |i: &usize| *i == 0 || rows.iter().any(|row| !row[*i].is_empty());
        let kept: Vec<usize> = (0..COLUMNS.len()).filter(has).collect();
        let head = kept.iter().map(|i| COLUMNS[*i]).collect();
        let rows: Vec<Vec<String>> =
            rows.iter().map(|row| kept.iter().map(|i| row[*i].clone()).collect()).collect();
        (!rows.is_empty()).then_some(Shown { known, head, rows, notes })
    }

    /// Returns the differences between a point and the paper's.
    fn differs(&self, (paper, table, _): &Known<'_>, Point { row, threads, .. }: &Point<'_>) -> Vec<String> {
        let Machine { processor, cores, .. } = self.machine;
        let mut notes = Vec::new();
        if !row.seconds.is_empty() {
            notes.push(format!(
                "The paper measured on: {}. Here all parties share the {cores} cores of: {processor}.",
                paper.machine
            ));
        }
        if *threads != row.threads {
            notes.push(format!("The paper has {} threads a party; ours {threads}.", row.threads));
        }
        notes.extend([&paper.notes, &table.notes, &row.notes].into_iter().flatten().cloned());
        notes
    }
}

fn title(table: &Table) -> String {
    format!("{} ({})", table.title, table.source)
}

/// Returns the number of a note, which is added if it is new.
fn number(notes: &mut Vec<String>, note: &str) -> String {
    let at = notes.iter().position(|known| known == note).unwrap_or_else(|| {
        notes.push(note.into());
        notes.len() - 1
    });
    (at + 1).to_string()
}

fn notes(notes: &[String]) -> Markup {
    html! { @if !notes.is_empty() { ol.quiet { @for note in notes { li { (marked(note)) } } } } }
}

/// Renders a text, with the parts between backquotes as code.
fn marked(text: &str) -> Markup {
    html! { @for (i, part) in text.split('`').enumerate() { @if i % 2 == 1 { code { (part) } } @else { (part) } } }
}

/// Returns the cells for [`COLUMNS`].
fn cells(
    point: &Point<'_>,
    measured: &Measured,
    beside: Option<&Measured>,
    [paper_seconds, paper_megabytes]: [Option<f64>; 2],
    notes: &str,
) -> Vec<String> {
    let exact = |figure: Option<f64>| figure.map(|x| x.to_string()).unwrap_or_default();
    let three = |figure: Option<f64>| figure.map(digits).unwrap_or_default();
    let of = |point: Option<&Measured>, f: fn(&Measured) -> String| point.map(f).unwrap_or_default();
    vec![
        point.row.what(),
        measured.runs.first().map(|run| run.figures["threads"].to_string()).unwrap_or_default(),
        format!("2^{}", point.log_n),
        point.network.name.clone(),
        digits(measured.seconds),
        exact(paper_seconds),
        three(measured.predicted_seconds),
        cpu(measured),
        alone(measured),
        three(measured.megabytes()),
        each_way(measured),
        exact(paper_megabytes),
        three(held(measured)),
        three(beside.map(|point| point.seconds)),
        of(beside, cpu),
        of(beside, alone),
        notes.into(),
    ]
}

/// Returns the CPU seconds of receiver and sender, or of the leader and the largest of the others.
fn cpu(point: &Measured) -> String {
    let pair = match point.parties() {
        Some(each) => {
            let mut seconds = each.iter().filter_map(|party| party["cpu_seconds"].as_f64());
            let leader = seconds.next();
            [leader, seconds.reduce(f64::max)]
        }
        None => ["receiver_cpu_seconds", "sender_cpu_seconds"].map(|name| point.least(name)),
    };
    pair.into_iter().flatten().map(digits).collect::<Vec<_>>().join(", ")
}

fn alone(point: &Measured) -> String {
    let names = ["one_sided_receiver_seconds", "one_sided_sender_seconds"];
    names.into_iter().filter_map(|name| point.least(name)).map(digits).collect::<Vec<_>>().join(", ")
}

/// Returns the megabytes to the sender and to the receiver, where each party also ran alone.
fn each_way(point: &Measured) -> String {
    let bytes = ["bytes_receiver_to_sender", "bytes_sender_to_receiver"].map(|name| point.least(name));
    match alone(point).is_empty() {
        true => String::new(),
        false => bytes.into_iter().flatten().map(|bytes| digits(bytes / 1e6)).collect::<Vec<_>>().join(", "),
    }
}

fn held(point: &Measured) -> Option<f64> {
    match point.parties() {
        Some(each) => each.iter().filter_map(|party| party["peak_rss_mb"].as_f64()).reduce(f64::max),
        None => point.least("peak_rss_mb"),
    }
}

/// Formats a number with three significant digits, or more if it is at least 1000; with at most five decimals.
pub fn digits(number: f64) -> String {
    if number <= 0.0 {
        return "0".into();
    }
    let decimals = (2.0 - number.log10().floor()).clamp(0.0, 5.0) as usize;
    format!("{number:.decimals$}")
}

/// Escapes text for a cell of Markdown.
fn plain(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
