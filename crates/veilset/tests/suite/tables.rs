//! The tables in docs/protocols.md match the entries. `VEILSET_BLESS=1` rewrites them. They contain the protocols of every
//! build, so none that needs a feature.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use veilset::channel::Network;
use veilset::operations::{self, Announced, Operation, Terms};
use veilset::planner::{Prices, Setting, Wanted};
use veilset::protocols::{ALL, Choice, MULTIPARTY, Offer, Protocol, Unasked};
use veilset::speed::Speeds;
use veilset::spelling::{Named, spell};
use veilset_kernels::Backend;

/// Held so that tests that write the same file run one after another.
static WRITING: Mutex<()> = Mutex::new(());

/// Asserts that the text between the marks with this name is `table`, or replaces it when blessing.
fn must_stand(file: &str, name: &str, table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let text = std::fs::read_to_string(&path).unwrap();
    let begin = format!("<!-- {name}: written by the test `tables` -->\n");
    let at = text.find(&begin).unwrap_or_else(|| panic!("{file} has no mark of {name}")) + begin.len();
    let until = at + text[at..].find("<!-- end -->").unwrap();
    // The end mark is indented like the begin mark.
    let indent = text[..at - begin.len()].rsplit('\n').next().unwrap();
    let lines: Vec<String> = table.lines().map(|line| format!("{indent}{line}\n")).collect();
    let wanted = format!("\n{}\n{indent}", lines.concat());
    if text[at..until] == wanted {
        return;
    }
    if std::env::var_os("VEILSET_BLESS").is_some() {
        std::fs::write(&path, format!("{}{wanted}{}", &text[..at], &text[until..])).unwrap();
        return;
    }
    panic!(
        "the table of {name} in {file} is stale: run `VEILSET_BLESS=1 cargo test -p veilset --test suite tables`"
    );
}

fn code(name: &str) -> String {
    format!("`{name}`")
}

/// A number rounded to two significant digits.
fn rounded(number: f64) -> String {
    let unit = 10f64.powf(number.log10().floor() - 1.0);
    let number = (number / unit).round() * unit;
    if number >= 10.0 {
        format!("{number:.0}")
    } else if number >= 1.0 {
        format!("{number:.1}")
    } else {
        format!("{number:.2}")
    }
}

/// The predicted time and traffic of a run on one core of each party, over a link of 10 Gbit/s.
fn cost(protocol: &'static Protocol, offer: &Offer) -> String {
    let sizes = offer.largest.map(|most| most.min(1_000_000));
    let wanted = Wanted {
        operation: offer.operation,
        terms: Terms { max_row: 64, reveal_count: offer.reveals_count, ..Terms::default() },
        group: None,
        assume: None,
        sizes: sizes.map(|size| Announced { size, padded: false }),
    };
    let setting = Setting {
        speeds: [Speeds::of_kind(Backend::Ifma512, 1); 2],
        link: Network { bandwidth: 1e10, round_trip: Duration::from_micros(100) },
        prices: Prices::default(),
        shared: None,
    };
    let run = wanted.predict(Choice::of(protocol), &setting).unwrap();
    let moved = (run.traffic.to_sender + run.traffic.to_receiver) as f64 / 1e6;
    let moved = if moved < 1000.0 {
        format!("{} MB", rounded(moved))
    } else {
        format!("{} GB", rounded(moved / 1e3))
    };
    let of =
        if sizes == [1_000_000; 2] { String::new() } else { format!("{} and {} keys: ", sizes[0], sizes[1]) };
    format!("{of}{} s, {moved}", rounded(run.seconds))
}

fn names(protocol: &Protocol) -> String {
    if protocol.offers.len() == operations::ALL.len() {
        return "all operations".into();
    }
    protocol.offers.iter().map(|offer| offer.operation.name).collect::<Vec<_>>().join(", ")
}

#[test]
fn the_protocols_of_the_readme_are_those_of_the_entries() {
    let mut table = String::from(
        "| protocol | for | a million keys per side | rests on | when |\n|---|---|---|---|---|\n",
    );
    for protocol in ALL {
        let rests: Vec<&str> = Choice::of(protocol)
            .rests_on(protocol.offers[0].operation)
            .iter()
            .map(|one| one.name())
            .collect();
        table += &format!(
            "| {} | {} | {} | {} | {} |\n",
            code(protocol.name),
            names(protocol),
            cost(protocol, &protocol.offers[0]),
            rests.join(", "),
            spell(protocol.when, |named| match named {
                Named::Setting(setting, _) => code(&format!("--{}", setting.replace('_', "-"))),
                Named::Command(typed) => code(typed),
            })
        );
    }
    must_stand("docs/protocols.md", "protocols", &table);
}

/// A line of the table: the protocols, the operations, and the possible deviations of each role.
type Line = (Vec<&'static str>, Vec<&'static Operation>, [&'static str; 2]);

#[test]
fn what_a_party_that_deviates_can_do_is_what_the_entries_say() {
    let mut lines: Vec<Line> = Vec::new();
    for protocol in ALL.into_iter().chain(MULTIPARTY) {
        for offer in protocol.offers {
            let can = offer.deviations;
            let same = |line: &&mut Line| {
                line.2 == can && (line.1.contains(&offer.operation) || line.0 == [protocol.name])
            };
            match lines.iter_mut().find(same) {
                Some((who, what, _)) => {
                    if !who.contains(&protocol.name) {
                        who.push(protocol.name);
                    }
                    if !what.contains(&offer.operation) {
                        what.push(offer.operation);
                    }
                }
                None => lines.push((vec![protocol.name], vec![offer.operation], can)),
            }
        }
    }
    let mut table = String::from("| by | for | a receiver can | a sender can |\n|---|---|---|---|\n");
    for (who, what, [receiver, sender]) in lines {
        let who: Vec<String> = who.into_iter().map(code).collect();
        let what: Vec<&str> = what.into_iter().map(|operation| operation.name).collect();
        table += &format!("| {} | {} | {receiver} | {sender} |\n", who.join(", "), what.join(", "));
    }
    must_stand("docs/protocols.md", "deviations", &table);
}

/// The order in which protocols are picked if time does not decide, and the protocols that are picked on request only.
#[test]
fn the_order_of_the_protocols_is_what_the_entries_say() {
    let mut table = String::from("| for | in this order |\n|---|---|\n");
    for operation in operations::ALL {
        let offers = ALL.into_iter().filter_map(|protocol| Some((protocol.offer(operation)?, protocol.name)));
        let mut offers: Vec<_> = offers.filter(|(_, name)| *name != "sigma-fhe").collect();
        offers.sort_by_key(|(offer, _)| (offer.unasked == Unasked::No, offer.order));
        let mut line = String::new();
        let mut asked = false;
        for (offer, name) in offers {
            let between = match (line.is_empty(), offer.unasked == Unasked::No && !asked) {
                (true, _) => "",
                (false, true) => " \\| ",
                (false, false) => ", ",
            };
            asked |= offer.unasked == Unasked::No;
            let but = if offer.unasked == Unasked::WithoutColumns { " (without columns)" } else { "" };
            line += &format!("{between}{}{but}", code(name));
        }
        table += &format!("| {operation} | {line} |\n");
    }
    must_stand("docs/protocols.md", "order", &table);
}
